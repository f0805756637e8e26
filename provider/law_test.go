package provider_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"capgate/capability"
	"capgate/provider"
)

// TestStrictLaw: over random grants, and lists that an agent asks for, what goes up
// strictly never lets a provider read a host that the grants do not allow. The
// provider takes a name for itself and everything beneath.
func TestStrictLaw(t *testing.T) {
	grants := []string{
		"*", "*:443", "a.com", "*.a.com", "b.a.com", "*.b.a.com", "x.b.a.com", "a.com:443", "*.a.com:443", "com", "*.com", "co.uk",
		"*.co.uk", "c.co.uk", "*.github.io", "github.io", "d.github.io", "ba.com", "*.ba.com", "localhost", "10.0.0.1", "8.8.8.8", "x.local",
	}
	asked := []string{"a.com", "b.a.com", "c.b.a.com", "com", "co.uk", "c.co.uk", "d.github.io", "e.d.github.io", "ba.com", "A.COM.", "*.a.com", "a.com/x", "http://a.com", "10.0.0.1", "localhost", "", "-a.com", "a.com:80", "x.com"}
	var probes []string
	for _, name := range []string{"a.com", "b.a.com", "x.b.a.com", "ba.com", "com", "co.uk", "c.co.uk", "github.io", "d.github.io", "x.com", "localhost", "x.local", "e.d.github.io"} {
		probes = append(probes, name, "sub."+name, "deep.sub."+name, "evil"+name)
	}
	r := rand.New(rand.NewPCG(7, 7))
	pick := func(from []string, most int) []string {
		some := make([]string, r.IntN(most+1))
		for i := range some {
			some[i] = from[r.IntN(len(from))]
		}
		return some
	}
	sent := 0
	for range 4000 {
		held := pick(grants, 4)
		p := holding(t, append([]string{"provider.image_generation"}, hosts(held...))[:1+min(1, len(held))]...)
		p.Strict = true
		vendor, member := []string{messages, responses, grok, flatly, routed, sonar}[r.IntN(6)], ""
		if list, _ := json.Marshal(pick(asked, 4)); r.IntN(2) == 0 {
			member = string(list)
		}
		blocked, _ := json.Marshal(pick(asked, 1))
		list, refused := sentList(t, vendor, member, string(blocked), p)
		if refused {
			continue
		}
		sent++
		if why := tooWide(p, list, probes); why != "" {
			t.Fatalf("%s: %q held, %s asked, %q sent: %s", vendor, held, member, list, why)
		}
	}
	if sent < 500 {
		t.Errorf("only %d of the tools were sent: that says nothing", sent)
	}
}

// TestNetworkLaw: over random grants, a container reaches no name that a net verb does
// not hold, and strictly none beneath it either.
func TestNetworkLaw(t *testing.T) {
	hosts := []string{"*", "a.com", "*.a.com", "b.a.com", "*.b.a.com", "x.b.a.com", "a.com:443", "*.com", "ba.com", "*.github.io", "localhost"}
	verbs := []capability.Verb{"net.get", "net.post", "net.put", "net.delete"}
	r := rand.New(rand.NewPCG(3, 4))
	some := func() string {
		list := make([]string, 1+r.IntN(3))
		for i := range list {
			list[i] = hosts[r.IntN(len(hosts))]
		}
		text, _ := json.Marshal(list)
		return string(text)
	}
	sent := 0
	for range 3000 {
		grants := []string{"provider.code_execution"}
		for _, v := range verbs {
			grants = append(grants, fmt.Sprintf("%s{hosts=%s}", v, some()))
		}
		p := holding(t, grants...)
		p.Strict = r.IntN(2) == 0
		out, _, _ := rewrite(t, responses, `{"tools":[{"type":"code_interpreter","container":{"type":"auto","network_policy":{"type":"allowlist","allowed_domains":`+some()+`}}}]}`, p)
		_, list, reaches := strings.Cut(out, `"allowed_domains":[`)
		if !reaches {
			continue
		}
		sent++
		list, _, _ = strings.Cut(list, "]")
		for name := range strings.SplitSeq(strings.ReplaceAll(list, `"`, ""), ",") {
			for _, v := range verbs {
				target, _ := capability.ParseTarget(name)
				below, _ := capability.ParseTarget("sub." + name)
				if !p.Authority.Require(capability.Net(v, target)).Allowed() || p.Strict && !p.Authority.Require(capability.Net(v, below)).Allowed() {
					t.Fatalf("%q: %s is not held for %s: %s", grants, v, name, out)
				}
			}
		}
	}
	if sent < 200 {
		t.Errorf("only %d containers reach anything: that says nothing", sent)
	}
}

// tooWide says what a provider reads by a list that is not held. Nil is no list.
func tooWide(p provider.Policy, list, probes []string) string {
	switch {
	case holdsAll(p):
		return ""
	case len(list) == 0:
		return "there is no list, or an empty one"
	}
	for _, host := range probes {
		target, _ := capability.ParseTarget(host)
		reached := slices.ContainsFunc(list, func(e string) bool {
			name, _, _ := strings.Cut(e, "/")
			return host == name || strings.HasSuffix(host, "."+name)
		})
		if reached && !p.Authority.Require(capability.Net("net.get", target)).Allowed() {
			return host + " is reached"
		}
	}
	return ""
}

// flatly is xAI, asked with the lists in the tool itself, and routed is OpenRouter.
const (
	flatly = "flatly"
	routed = "routed"
)

// sentList sends a search to a vendor, and returns the list that it carries when it
// goes up: nil for none. Refused says that it does not.
func sentList(t *testing.T, where, allowed, blocked string, p provider.Policy) (list []string, refused bool) {
	t.Helper()
	member := func(name, value string) string {
		if value == "" {
			return ""
		}
		return fmt.Sprintf(",%q:%s", name, value)
	}
	var body string
	switch where {
	case messages:
		body = `{"tools":[{"type":"web_search_20250305"` + member("allowed_domains", allowed) + member("blocked_domains", blocked) + `}]}`
	case sonar:
		body = `{"model":"sonar"` + member("search_domain_filter", allowed) + `}`
	case flatly:
		where, body = grok, `{"tools":[{"type":"web_search"`+member("excluded_domains", blocked)+member("allowed_domains", allowed)+`}]}`
	case routed:
		where, body = router, `{"model":"m","tools":[{"type":"openrouter:web_search"`+member("excluded_domains", blocked)+member("allowed_domains", allowed)+`}]}`
	default:
		name := "blocked_domains"
		if where == grok {
			name = "excluded_domains"
		}
		inner := strings.TrimPrefix(member("allowed_domains", allowed)+member(name, blocked), ",")
		body = `{"tools":[{"type":"web_search","filters":{` + inner + `}}]}`
	}
	out, _, no := rewrite(t, where, body, p)
	if no != nil {
		return nil, true
	}
	var sent struct {
		Filter []string `json:"search_domain_filter"`
		Tools  []struct {
			Domains []string `json:"allowed_domains"`
			Filters struct {
				Domains []string `json:"allowed_domains"`
			} `json:"filters"`
			Parameters struct {
				Domains []string `json:"allowed_domains"`
			} `json:"parameters"`
		} `json:"tools"`
	}
	if err := json.Unmarshal([]byte(out), &sent); err != nil {
		t.Fatal(err)
	}
	switch {
	case where == sonar:
		list = sent.Filter
	case len(sent.Tools) == 0:
		return nil, true
	case where == messages:
		list = sent.Tools[0].Domains
	case where == router:
		list = sent.Tools[0].Parameters.Domains
	default:
		list = sent.Tools[0].Filters.Domains
	}
	return list, false
}

func holdsAll(p provider.Policy) bool {
	return slices.ContainsFunc(p.Authority.Hosts("net.get"), func(h capability.Host) bool { return h.Any() && h.Port() == 0 })
}

// FuzzRewrite: whatever an agent sends, what goes up is JSON that stays as it is
// when it is sent again, holds no tool that is not held, and is the same bytes when
// nothing was done.
func FuzzRewrite(f *testing.F) {
	places := []string{messages, responses, chats, generate, grok, router, sonar, mistral}
	for i, body := range []string{
		`{"tools":[{"type":"web_search_20250305","name":"web_search","allowed_domains":["github.com","x"],"blocked_domains":[]}],"messages":[{"role":"user","content":[{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"type":"code_execution_20250825"}}}]}]}`,
		`{"input":[{"type":"additional_tools","tools":[{"type":"web_search","filters":{"blocked_domains":["a"]}},{"type":"namespace","tools":[{"type":"mcp"}]}]}],"tools":[{"type":"shell","environment":{"type":"container_auto"}}],"tool_choice":{"type":"allowed_tools","tools":[{"type":"shell"}]}}`,
		`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:a"}}]}],"web_search_options":{}}`,
		`{"contents":[{"parts":[{"file_data":{}}]}],"tools":[{"googleSearch":{},"function_declarations":[]}],"toolConfig":{}}`,
		`{"tools":[{"type":"web_search","enable_image_search":true},{"type":"x_search"}]}`,
		`{"model":"m","plugins":[{"id":"web","engine":"native","exclude_domains":["a.com"]}],"tools":[{"type":"openrouter:web_fetch","parameters":{}}]}`,
		`{"model":"sonar","search_domain_filter":["-a.com"],"return_images":true}`,
		`{"mcp_servers":[{"name":"a"}],"tools":[{"type":"mcp_toolset","cache_control":{}},{"name":"f","allowed_callers":[]}],"tool_choice":{"type":"tool","name":"f"}}`,
		`{"messages":[{"role":"assistant","content":[{"type":"tool_use","input":{"Tools":1,"tools":["\u0000"]}}]}],"tools":[{"type":"web_search_20250305"},{"name":"f","input_schema":{"a":1,"A":2}}]}`,
		`{"input":[{"type":"function_call_output","output":"\u0000"}],"tools":[{"type":"mcp"},{"type":"function","parameters":{"a":1,"A":2}}]}`,
	} {
		f.Add([]byte(body), uint8(i))
	}
	f.Add([]byte(`{"model":"m","tools":[{"x_search":true,"type":"openrouter:web_search","allowed_domains":["github.com"],"excluded_domains":[],"max_uses":1}]}`), uint8(slices.Index(places, router)))
	p := holding(f, hosts("*.github.com", "example.org"))
	f.Fuzz(func(t *testing.T, body []byte, n uint8) {
		name, path, _ := strings.Cut(places[int(n)%len(places)], " ")
		vendor, _ := provider.Lookup(name)
		place, err := vendor.Endpoint("POST", path, "")
		if err != nil {
			t.Fatal(err)
		}
		before := string(body)
		out, changes, err := vendor.Rewrite(place, body, p)
		if string(body) != before {
			t.Fatal("the body was written to")
		}
		if err != nil {
			if out != nil || changes != nil {
				t.Fatalf("refused, and sent %s", out)
			}
			return
		}
		if !json.Valid(out) {
			t.Fatalf("%s becomes %s", body, out)
		}
		again, _, err := vendor.Rewrite(place, out, p)
		if err != nil || string(again) != string(out) {
			t.Fatalf("%s becomes %s, and then %s (%v)", body, out, again, err)
		}
		if len(changes) == 0 && string(out) != before {
			t.Fatalf("%s becomes %s, and nothing is said", body, out)
		}
		if tool := forbidden(out); tool != "" {
			t.Fatalf("%s becomes %s, with %s", body, out, tool)
		}
	})
}

// forbidden looks for tools that nobody in the test holds, without the rules of the
// rewriting: any list called tools, wherever one is read as such.
func forbidden(body []byte) string {
	var top struct {
		Tools   []map[string]any  `json:"tools"`
		Servers []any             `json:"mcp_servers"`
		Cached  any               `json:"cachedContent"`
		Input   []json.RawMessage `json:"input"`
	}
	_ = json.Unmarshal(body, &top) // what has another form has no tools
	if len(top.Servers) > 0 || top.Cached != nil {
		return "a server or a cache"
	}
	for _, item := range top.Input {
		var kind struct{ Type string }
		if _ = json.Unmarshal(item, &kind); kind.Type == "additional_tools" {
			if tool := forbidden(item); tool != "" {
				return tool
			}
		}
	}
	for _, tool := range top.Tools {
		if bad := forbiddenTool(tool); bad != "" {
			return bad
		}
	}
	return ""
}

func forbiddenTool(tool map[string]any) string {
	kind, _ := tool["type"].(string)
	for _, bad := range []string{"code_", "mcp", "x_search", "file_search", "image_generation", "web_search_preview", "openrouter:bash"} {
		if strings.HasPrefix(kind, bad) {
			return kind
		}
	}
	for name := range tool {
		if slices.Contains([]string{"googlesearch", "urlcontext", "codeexecution"}, strings.ToLower(strings.ReplaceAll(name, "_", ""))) {
			return name
		}
	}
	if text, _ := json.Marshal(tool); (strings.HasPrefix(kind, "web_") || kind == "openrouter:web_search") && !strings.Contains(string(text), `_domains":["`) {
		return kind + " without a list"
	}
	return ""
}
