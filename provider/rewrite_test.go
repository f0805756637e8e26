package provider_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/provider"
)

const (
	messages  = "anthropic /v1/messages"
	responses = "openai /v1/responses"
	chats     = "openai /v1/chat/completions"
	generate  = "gemini /v1beta/models/gemini-pro:generateContent"
	grok      = "xai /v1/responses"
	router    = "openrouter /v1/chat/completions"
	sonar     = "perplexity /chat/completions"
	mistral   = "mistral /v1/chat/completions"
)

// rewriting is one case: what an agent sends, and what goes up. An empty sent is
// the request as it came.
type rewriting struct {
	where, body string
	grants      []string
	change      func(*provider.Policy)
	sent        string
	did         string
}

func strict(p *provider.Policy) { p.Strict = true }

func (c rewriting) run(t *testing.T) {
	t.Helper()
	p := holding(t, c.grants...)
	if c.change != nil {
		c.change(&p)
	}
	out, changes, refused := rewrite(t, c.where, c.body, p)
	if refused != nil {
		t.Fatal(refused)
	}
	want := c.sent
	if want == "" {
		want = c.body
	}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("sent:\n%s", diff)
	}
	if got := did(changes); got != c.did {
		t.Errorf("did %q, want %q", got, c.did)
	}
	again, _, refused := rewrite(t, c.where, out, p)
	if refused != nil || again != out {
		t.Errorf("again it becomes %s (%v)", again, refused)
	}
}

// TestMismatches: the ways in which what a provider means by a domain is not what
// a grant means by a host.
func TestMismatches(t *testing.T) {
	search := func(rest string) string {
		return `{"model":"m","tools":[{"type":"web_search_20250305","name":"web_search"` + rest + `}],"messages":[]}`
	}
	fetch := func(rest string) string {
		return `{"model":"m","tools":[{"type":"web_fetch_20250910","name":"web_fetch"` + rest + `}],"messages":[]}`
	}
	open := func(rest string) string {
		return `{"model":"m","input":"a","tools":[{"type":"web_search"` + rest + `}]}`
	}
	shown := func(rest string) string {
		return open(rest)[:len(open(rest))-1] + `,"include":["web_search_call.action.sources"]}`
	}
	none := `{"model":"m","messages":[]}`
	for name, test := range map[string]rewriting{
		"R-EGG-36 1 a name becomes a domain, and is wider": {
			where: messages, grants: []string{hosts("github.com")}, body: search(``),
			sent: search(`,"allowed_domains":["github.com"]`),
			did:  "narrowed web_search_20250305 [github.com]; provider_scope_wider web_search_20250305 [github.com]",
		},
		"R-EGG-36 1 strictly, a name cannot be said": {
			where: messages, grants: []string{hosts("github.com")}, body: search(``), change: strict,
			sent: none, did: "omitted web_search_20250305 scope_violation",
		},
		"1 beneath a name nothing is held": {
			where: messages, grants: []string{hosts("github.com")}, body: search(`,"allowed_domains":["gist.github.com"]`),
			sent: none, did: "omitted web_search_20250305 scope_violation",
		},
		"8 beneath what is blocked": {
			where: messages, grants: []string{hosts("*.github.com")}, body: search(`,"allowed_domains":["gist.github.com"],"blocked_domains":["github.com"]`),
			sent: none, did: "omitted web_search_20250305 scope_violation",
		},
		"10 a name of the local network": {
			where: messages, grants: []string{hosts("intranet.local", "*.github.com")}, body: search(``),
			sent: search(`,"allowed_domains":["github.com"]`), did: "narrowed web_search_20250305 [github.com]",
		},
		"2 a wildcard is exact": {
			where: messages, grants: []string{hosts("*.github.com")}, body: search(``), change: strict,
			sent: search(`,"allowed_domains":["github.com"]`), did: "narrowed web_search_20250305 [github.com]",
		},
		"4 without a grant": {
			where: messages, body: search(``), sent: none, did: "omitted web_search_20250305 capability_absent",
		},
		"4 never an empty list": {
			where: messages, grants: []string{hosts("*.github.com")}, body: search(`,"allowed_domains":["gitlab.com"]`),
			sent: none, did: "omitted web_search_20250305 scope_violation",
		},
		"4 an empty list asks for nothing": {
			where: messages, grants: []string{hosts("*.github.com")}, body: search(`,"allowed_domains":[]`),
			sent: none, did: "omitted web_search_20250305 scope_violation",
		},
		"4 null is no list": {
			where: messages, grants: []string{hosts("*.github.com")}, body: search(`,"allowed_domains":null`),
			sent: search(`,"allowed_domains":["github.com"]`), did: "narrowed web_search_20250305 [github.com]",
		},
		"5 every host, no list":           {where: messages, grants: []string{hosts("*")}, body: search(``)},
		"5 every host, the agent's list":  {where: messages, grants: []string{hosts("*")}, body: search(`,"allowed_domains":["a.example"]`)},
		"5 every host, the agent's block": {where: messages, grants: []string{hosts("*")}, body: search(`,"blocked_domains":["a.example"]`)},
		"6 a public suffix": {
			where: messages, grants: []string{hosts("github.io", "co.uk", "*.com", "a.example")}, body: search(``),
			sent: search(`,"allowed_domains":["a.example"]`),
			did:  "narrowed web_search_20250305 [a.example]; provider_scope_wider web_search_20250305 [a.example]",
		},
		"6 nothing but public suffixes": {
			where: messages, grants: []string{hosts("*.github.io", "*.com")}, body: search(``),
			sent: none, did: "omitted web_search_20250305 scope_violation",
		},
		"6 beneath a public suffix": {
			where: messages, grants: []string{hosts("*.github.io")}, body: search(`,"allowed_domains":["alice.github.io"]`),
		},
		"7 collapsed, then cut off": {
			where: grok, grants: []string{hosts("*.a.example", "b.a.example", "*.b.example", "*.c.example", "*.d.example", "*.e.example", "*.f.example")},
			body: open(``), sent: open(`,"filters":{"allowed_domains":["a.example","b.example","c.example","d.example","e.example"]}`),
			did: "narrowed web_search [a.example b.example c.example d.example e.example]",
		},
		"8 a block list gives way": {
			where: messages, grants: []string{hosts("*.github.com", "*.example.com", "*.example.org")},
			body: search(`,"blocked_domains":["example.com","a.example.org"]`),
			sent: search(`,"allowed_domains":["github.com"]`), did: "narrowed web_search_20250305 [github.com]",
		},
		"8 both lists": {
			where: messages, grants: []string{hosts("*.github.com")},
			body: search(`,"allowed_domains":["a.github.com","b.github.com"],"blocked_domains":["b.github.com"]`),
			sent: search(`,"allowed_domains":["a.github.com"]`), did: "narrowed web_search_20250305 [a.github.com]",
		},
		"8 a block that cannot be read blocks all": {
			where: messages, grants: []string{hosts("*.github.com")}, body: search(`,"blocked_domains":["*.x"]`),
			sent: none, did: "omitted web_search_20250305 scope_violation",
		},
		"9 a path stays in a search": {
			where: messages, grants: []string{hosts("*.github.com")}, body: search(`,"allowed_domains":["github.com/blog/*"]`),
		},
		"9 a path is dead in a fetch": {
			where: messages, grants: []string{hosts("*.github.com")}, body: fetch(`,"allowed_domains":["github.com/blog"]`),
			sent: none, did: "omitted web_fetch_20250910 scope_violation",
		},
		"9 a path is dead at OpenAI": {
			where: responses, grants: []string{hosts("*.github.com")}, body: open(`,"filters":{"allowed_domains":["github.com/a"]}`),
			sent: `{"model":"m","input":"a"}`, did: "omitted web_search scope_violation",
		},
		"10 plainly written": {
			where: messages, grants: []string{hosts("*.github.com", "*.xn--bcher-kva.example")}, body: search(`,"allowed_domains":["API.GitHub.com.","bücher.example"]`),
			sent: search(`,"allowed_domains":["api.github.com","xn--bcher-kva.example"]`), did: "narrowed web_search_20250305 [api.github.com xn--bcher-kva.example]",
		},
		"10 no address and no port": {
			where: messages, grants: []string{hosts("8.8.8.8", "github.com:443", "localhost", "*.example.com")}, body: search(``),
			sent: search(`,"allowed_domains":["example.com"]`), did: "narrowed web_search_20250305 [example.com]",
		},
		"10 no scheme": {
			where: messages, grants: []string{hosts("*.github.com")}, body: search(`,"allowed_domains":["https://github.com","u@github.com","github.com:80","*.github.com","github.com"]`),
			sent: search(`,"allowed_domains":["github.com"]`), did: "narrowed web_search_20250305 [github.com]",
		},
		"11 a minus blocks": {
			where: sonar, grants: []string{hosts("*.github.com", "*.example.com")},
			body: `{"model":"sonar","messages":[],"search_domain_filter":["-example.com"]}`,
			sent: `{"model":"sonar","messages":[],"search_domain_filter":["github.com"]}`, did: "narrowed search [github.com]",
		},
		"12 only net.get counts": {
			where: messages, grants: []string{"net.post{hosts=[*]}"}, body: search(``), sent: none, did: "omitted web_search_20250305 capability_absent",
		},
		"14 what takes no list": {
			where: generate, grants: []string{hosts("*.github.com")},
			body: `{"contents":[],"tools":[{"googleSearch":{}},{"url_context":{}},{"functionDeclarations":[{"name":"f"}],"code_execution":{}}]}`,
			sent: `{"contents":[],"tools":[{"functionDeclarations":[{"name":"f"}]}]}`,
			did:  "omitted googleSearch capability_absent; omitted url_context capability_absent; omitted code_execution capability_absent",
		},
		"14 every host is enough to read": {
			where: generate, grants: []string{hosts("*")}, body: `{"contents":[],"tools":[{"googleSearch":{}},{"urlContext":{}},{"codeExecution":{}}]}`,
			sent: `{"contents":[],"tools":[{"googleSearch":{}},{"urlContext":{}}]}`, did: "omitted codeExecution capability_absent",
		},
		"14 a grant of its own": {
			where: generate, grants: []string{"provider.google_maps", "provider.web_search"},
			body: `{"contents":[],"tools":[{"googleSearch":{}},{"google_maps":{}},{"fileSearch":{}},{"urlContext":{}}]}`,
			sent: `{"contents":[],"tools":[{"googleSearch":{}},{"google_maps":{}}]}`, did: "omitted fileSearch capability_absent; omitted urlContext capability_absent",
		},
		"14 the preview takes no list": {
			where: responses, grants: []string{hosts("*.github.com")}, body: `{"input":"a","tools":[{"type":"web_search_preview"},{"type":"function","name":"f"}]}`,
			sent: `{"input":"a","tools":[{"type":"function","name":"f"}]}`, did: "omitted web_search_preview capability_absent",
		},
		"14 a search that is a switch": {
			where: chats, grants: []string{hosts("*.github.com")}, body: `{"web_search_options":{},"model":"m","messages":[]}`,
			sent: `{"model":"m","messages":[]}`, did: "omitted web_search_options capability_absent",
		},
		"nothing is put right in what is left out": {
			where: messages, grants: []string{hosts("*.github.com")}, body: `{"tools":[{"type":"web_fetch_20260318","name":"web_fetch","allowed_domains":["gitlab.com"],"response_inclusion":"excluded"}],"messages":[]}`,
			sent: `{"messages":[]}`, did: "omitted web_fetch_20260318 scope_violation",
		},
		"16 no code behind a search": {
			where: messages, grants: []string{hosts("*")}, body: `{"tools":[{"type":"web_search_20260318","name":"web_search","response_inclusion":"excluded"}]}`,
			sent: `{"tools":[{"type":"web_search_20260318","name":"web_search","response_inclusion":"full","allowed_callers":["direct"]}]}`,
			did:  "repaired web_search_20260318; repaired web_search_20260318",
		},
		"16 code that is held": {
			where: messages, grants: []string{hosts("*"), "provider.code_execution"}, body: `{"tools":[{"type":"web_search_20260318","name":"web_search"},{"type":"code_execution_20260521","name":"code_execution"}]}`,
		},
		"17 a lookalike": {
			where: messages, grants: []string{hosts("*.github.com")}, body: search(`,"allowed_domains":["api-github.com","xgithub.com"]`),
			sent: none, did: "omitted web_search_20250305 scope_violation",
		},
		"OpenAI": {
			where: responses, grants: []string{hosts("*.github.com", "*.gitlab.com")}, body: open(`,"filters":{"allowed_domains":["docs.github.com","x.example"]}`),
			sent: shown(`,"filters":{"allowed_domains":["docs.github.com"]}`), did: "narrowed web_search [docs.github.com]; repaired include",
		},
		"OpenAI, a block list": {
			where: responses, grants: []string{hosts("*.github.com")}, body: open(`,"filters":{"blocked_domains":["x.example"]}`),
			sent: shown(`,"filters":{"allowed_domains":["github.com"]}`), did: "narrowed web_search [github.com]; repaired include",
		},
		"xAI: pictures are elsewhere": {
			where: grok, grants: []string{hosts("*.github.com")}, body: open(`,"enable_image_search":true,"filters":{"allowed_domains":["github.com"]}`),
			sent: open(`,"enable_image_search":false,"filters":{"allowed_domains":["github.com"]}`), did: "repaired web_search",
		},
		"xAI: lists in the tool itself, as some clients write them": {
			where: grok, grants: []string{hosts("*.github.com", "*.gitlab.com")}, body: open(`,"allowed_domains":["docs.github.com","x.example"],"enable_image_search":false`),
			sent: open(`,"enable_image_search":false,"filters":{"allowed_domains":["docs.github.com"]}`), did: "narrowed web_search [docs.github.com]",
		},
		"xAI: the last of all, and what is not wanted": {
			where: grok, grants: []string{hosts("*.github.com", "*.gitlab.com")}, body: open(`,"enable_image_search":true,"excluded_domains":["gitlab.com"],"allowed_domains":null`),
			sent: open(`,"enable_image_search":false,"filters":{"allowed_domains":["github.com"]}`), did: "repaired web_search; narrowed web_search [github.com]",
		},
		"xAI: a list before all else": {
			where: grok, grants: []string{hosts("*.github.com")}, body: `{"tools":[{"allowed_domains":["github.com"],"type":"web_search"}],"input":"a"}`,
			sent: `{"tools":[{"type":"web_search","filters":{"allowed_domains":["github.com"]}}],"input":"a"}`, did: "narrowed web_search [github.com]",
		},
		"xAI: a list in the tool of what is not held": {
			where: grok, grants: []string{hosts("*.github.com")}, body: open(`,"allowed_domains":["gitlab.com"]`),
			sent: `{"model":"m","input":"a"}`, did: "omitted web_search scope_violation",
		},
		"xAI: lists in both places": {
			where: grok, grants: []string{hosts("*.github.com")}, body: open(`,"allowed_domains":["github.com"],"filters":{"allowed_domains":["github.com"]}`),
			sent: `{"model":"m","input":"a"}`, did: "omitted web_search not_available",
		},
		"xAI: lists in the tool, and no filters": {
			where: grok, grants: []string{hosts("*.github.com")}, body: open(`,"allowed_domains":["github.com"],"filters":null`),
			sent: `{"model":"m","input":"a"}`, did: "omitted web_search not_available",
		},
		"xAI: a list in the tool that is none": {
			where: grok, grants: []string{hosts("*.github.com")}, body: open(`,"allowed_domains":"github.com"`),
			sent: `{"model":"m","input":"a"}`, did: "omitted web_search malformed_arguments",
		},
		"OpenAI: a list in the tool itself is none of its": {
			where: responses, grants: []string{hosts("*.github.com")}, body: open(`,"allowed_domains":["github.com"]`),
			sent: `{"model":"m","input":"a"}`, did: "omitted web_search not_available",
		},
		"OpenRouter: an engine that keeps to the list": {
			where: router, grants: []string{hosts("*.github.com")},
			body: `{"model":"m","messages":[],"tools":[{"type":"openrouter:web_search"}],"plugins":[{"id":"web","engine":"native"}]}`,
			sent: `{"model":"m","messages":[],"tools":[{"type":"openrouter:web_search","parameters":{"allowed_domains":["github.com"],"engine":"exa"}}],"plugins":[{"id":"web","engine":"exa","include_domains":["github.com"]}]}`,
			did:  "narrowed openrouter:web_search [github.com]; repaired web; narrowed web [github.com]",
		},
		"OpenRouter: what stands in the tool itself, as its own client writes it": {
			where: router, grants: []string{hosts("*.github.com", "*.gitlab.com")},
			body: `{"model":"m","messages":[],"tools":[{"type":"openrouter:web_search","allowed_domains":["docs.github.com","x.example"],"max_results":3,"engine":"native","x_search":{"a":1}}]}`,
			sent: `{"model":"m","messages":[],"tools":[{"type":"openrouter:web_search","parameters":{"allowed_domains":["docs.github.com"],"engine":"exa","max_results":3}}]}`,
			did:  "repaired openrouter:web_search; narrowed openrouter:web_search [docs.github.com]",
		},
		"OpenRouter: the same, of what is not wanted": {
			where: router, grants: []string{hosts("*.github.com", "*.gitlab.com")},
			body: `{"model":"m","messages":[],"tools":[{"excluded_domains":["gitlab.com"],"type":"openrouter:web_search"}]}`,
			sent: `{"model":"m","messages":[],"tools":[{"type":"openrouter:web_search","parameters":{"allowed_domains":["github.com"],"engine":"exa"}}]}`,
			did:  "narrowed openrouter:web_search [github.com]",
		},
		"OpenRouter: the same, of what is not held": {
			where: router, grants: []string{hosts("*.github.com")},
			body: `{"model":"m","messages":[],"tools":[{"type":"openrouter:web_search","allowed_domains":["x.example"]}]}`,
			sent: `{"model":"m","messages":[]}`, did: "omitted openrouter:web_search scope_violation",
		},
		"OpenRouter: the same, in both places": {
			where: router, grants: []string{hosts("*.github.com")},
			body: `{"model":"m","messages":[],"tools":[{"type":"openrouter:web_search","allowed_domains":["github.com"],"parameters":{}}]}`,
			sent: `{"model":"m","messages":[]}`, did: "omitted openrouter:web_search not_available",
		},
	} {
		t.Run(name, test.run)
	}
}
