package proxy_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"capgate/capability"
	"capgate/gate"
	"capgate/mapping"
	"capgate/proxy"
	"capgate/secrets"
	"capgate/upstream"
	"capgate/wire"
)

const postMapping = `server: web
tools:
  post: { token: secret, "tokens[*]": secret, auth.key: secret, method: free, body: free }
prompts:
  greet: { token: secret, style: free }
`

// What the secrets of these tests are.
const (
	valueA    = "value-of-a-0123456789"
	valueB    = "value-of-b-9876543210"
	valueOdd  = "quo\"te \\ back\nline \u2028 é 😀"
	valueFake = "{{secret:a}} is a value"
	valueJSON = `","body":"injected","x":"`
)

const poster = `---
class: agent
capabilities:
  - tool.invoke: { tools: [web.post] }
  - prompt.get: { names: ["web.*"] }
  - secret.use: { names: [a, b, odd, fake, json, gone, short, nul, latin, undeclared] }
---
`

// web is a gateway in front of a server that takes secrets, and the files of those.
type web struct {
	*world
	keeper *secrets.Keeper
	files  string
}

func (w *web) put(name, value string) {
	w.t.Helper()
	must(w.t, os.WriteFile(filepath.Join(w.files, name), []byte(value), 0o600))
}

func startWeb(t *testing.T, s *scripted, change func(*proxy.Upstream)) *web {
	t.Helper()
	m := parsed(t, postMapping)
	dir := t.TempDir()
	sources := map[string]secrets.Source{}
	for _, name := range []string{"a", "b", "odd", "fake", "json", "gone", "short", "nul", "latin", "undeclared", "forbidden"} {
		sources[name] = secrets.Source{File: filepath.Join(dir, name)}
	}
	keeper, err := secrets.New(sources, secrets.Options{})
	must(t, err)
	if s.lists == nil {
		s.lists = map[string]string{"tools/list": `"tools":[` + tool("post", "token") + `]`, "prompts/list": `"prompts":[{"name":"greet"}]`}
	}
	spec, err := capability.ParseSpec("secret.use{names=[a,b,odd,fake,json,gone,short,nul,latin,forbidden]}")
	must(t, err)
	up := &proxy.Upstream{Name: "web", Prefix: "web", Mapping: m, Open: s.open, Declared: gate.Declare([]capability.Spec{spec}, capability.Options{})}
	if change != nil {
		change(up)
	}
	w := &web{keeper: keeper, files: dir}
	w.world = startWith(t, proxy.Options{Scrub: keeper.Scrub}, map[string]string{"scout": poster, "spy": poster[:strings.Index(poster, "  - secret.use")] + "---\n"}, up)
	w.secrets = keeper
	w.adopt()
	for name, value := range map[string]string{
		"a": valueA, "b": valueB, "odd": valueOdd, "fake": valueFake, "json": valueJSON,
		"short": "1234567", "nul": "with a \x00 in it", "latin": "with a \xff in it", "undeclared": "value-of-undeclared", "forbidden": "value-of-forbidden",
	} {
		w.put(name, value)
	}
	return w
}

// say makes a tools/call in one of the eras.
func (w *web) say(agent string, modern bool, arguments string) said {
	w.t.Helper()
	c := w.client(agent)
	params := `{"name":"web__post","arguments":` + arguments + `}`
	if modern {
		return c.modern("tools/call", params, "{}")
	}
	c.initialize("{}")
	return c.request("tools/call", params)
}

// silent fails when a value stands in what an agent or an operator gets to see.
func (w *web) silent(seen string) {
	w.t.Helper()
	events, err := json.Marshal(w.events.all())
	must(w.t, err)
	for _, value := range []string{valueA, valueB, "value-of-undeclared", "value-of-forbidden", "is a value", "injected"} {
		if strings.Contains(seen, value) || bytes.Contains(events, []byte(value)) {
			w.t.Errorf("%s is seen: %s\n%s", value, seen, events)
		}
	}
}

// TestSecretsInArguments is R-SCA-05 at the server: a handle that the agent may use
// becomes its value there, and not one other byte is changed.
func TestSecretsInArguments(t *testing.T) {
	quote := func(text string) string { return strings.Trim(quoted(text), "\n") }
	inner := func(text string) string { return strings.Trim(quote(text), `"`) }
	for name, test := range map[string]struct{ sent, got string }{
		"alone":         {`{"token":"{{secret:a}}"}`, `{"token":"` + valueA + `"}`},
		"within a text": {`{ "token" : "Bearer {{secret:a}}." , "body":1.0e1 }`, `{ "token" : "Bearer ` + valueA + `." , "body":1.0e1 }`},
		"two in one":    {`{"token":"{{secret:a}}:{{secret:b}}{{secret:a}}"}`, `{"token":"` + valueA + `:` + valueB + valueA + `"}`},
		"in no order": {
			`{"body":"\u003c","tokens":["{{secret:b}}","plain","x{{secret:a}}"],"auth":{"key":"{{secret:a}}"},"token":"{{secret:b}}"}`,
			`{"body":"\u003c","tokens":["` + valueB + `","plain","x` + valueA + `"],"auth":{"key":"` + valueA + `"},"token":"` + valueB + `"}`,
		},
		"escaped":            {`{"token":"\u0041\/\u007b{secret\u003aa}}\u00e9\ud83d\ude00"}`, `{"token":"\u0041\/` + valueA + `\u00e9\ud83d\ude00"}`},
		"three braces":       {`{"token":"{{{secret:a}}}"}`, `{"token":"{` + valueA + `}"}`},
		"to be escaped":      {`{"token":"{{secret:odd}}"}`, `{"token":"quo\"te \\ back\nline \u2028 é 😀"}`},
		"like a handle":      {`{"token":"{{secret:fake}}{{secret:b}}"}`, `{"token":"` + valueFake + valueB + `"}`},
		"like JSON":          {`{"token":"{{secret:json}}"}`, `{"token":"` + strings.ReplaceAll(valueJSON, `"`, `\"`) + `"}`},
		"no handle":          {`{"token":"\u0070lain {{x}}","body":["\u0041"]}`, `{"token":"\u0070lain {{x}}","body":["\u0041"]}`},
		"spread over a line": {"{\n\"token\":\"{{secret:a}}\"}", "{\n\"token\":\"" + valueA + "\"}"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, server := range []bool{false, true} {
				s := &scripted{info: upstream.Info{Modern: server}}
				s.reply = func(_ context.Context, r upstream.Request, _ upstream.Sink) (upstream.Answer, error) {
					return upstream.Answer{Result: []byte(`{"content":[{"type":"text","text":` + quoted(string(r.Params)) + `}]}`)}, nil
				}
				w := startWeb(t, s, nil)
				for _, modern := range []bool{false, true} {
					before := len(s.calls())
					a := w.say("scout", modern, test.sent)
					calls := s.calls()
					if len(calls) != before+1 {
						t.Fatalf("%d calls reach the server: %s", len(calls)-before, a.Raw)
					}
					if got := string(calls[before].Params); !strings.Contains(got, `"arguments":`+test.got) || strings.Contains(got, inner("{{secret:a}}")) && name != "like a handle" {
						t.Errorf("the server gets %s\nwant %s", got, test.got)
					}
					w.silent(a.Raw)
				}
			}
		})
	}
}

// TestSecretsThatAreNotFilledIn: what may not be used, or cannot be had, denies before
// anything goes up, and the agent is not told why in detail.
func TestSecretsThatAreNotFilledIn(t *testing.T) {
	mirrored := func(s *scripted) {
		s.lists = map[string]string{"tools/list": `"tools":[{"name":"post","inputSchema":{"type":"object","properties":{"token":{"type":"string","x-mcp-header":"Token"}}}}]`}
	}
	undeclared := func(u *proxy.Upstream) { u.Declared, u.Unmediated = nil, true }
	for name, test := range map[string]struct {
		agent, arguments, code, says string
		server                       func(*scripted)
		change                       func(*proxy.Upstream)
	}{
		"not held at all":          {"spy", `{"token":"{{secret:a}}"}`, "capability_absent", "secret.use", nil, nil},
		"not held":                 {"scout", `{"token":"{{secret:forbidden}}"}`, "scope_violation", "forbidden", nil, nil},
		"one of two is not":        {"scout", `{"token":"{{secret:a}}{{secret:forbidden}}"}`, "scope_violation", "forbidden", nil, nil},
		"not declared":             {"scout", `{"token":"{{secret:undeclared}}"}`, "scope_violation", "undeclared", nil, nil},
		"nothing is declared":      {"scout", `{"token":"{{secret:a}}"}`, "scope_violation", "secret.use", nil, undeclared},
		"not there":                {"scout", `{"tokens":["x","{{secret:gone}}"]}`, "not_available", "the secret gone cannot be filled in", nil, nil},
		"one of two is not there":  {"scout", `{"token":"{{secret:a}}{{secret:gone}}"}`, "not_available", "gone", nil, nil},
		"too short to be scrubbed": {"scout", `{"token":"{{secret:short}}"}`, "not_available", "short", nil, nil},
		"a value with NUL":         {"scout", `{"token":"{{secret:nul}}"}`, "not_available", "nul", nil, nil},
		"a value that is no text":  {"scout", `{"token":"{{secret:latin}}"}`, "not_available", "latin", nil, nil},
		"too many":                 {"scout", `{"token":"` + strings.Repeat("{{secret:a}}", 1025) + `"}`, "limit_exceeded", "1024", nil, nil},
		"elsewhere":                {"scout", `{"body":"{{secret:a}}"}`, "scope_violation", "no secret is filled in there", nil, nil},
		"elsewhere, and where":     {"scout", `{"token":"{{secret:a}}","body":{"x":["\u007b{secret:a}}"]}}`, "scope_violation", "body.x[0]", nil, nil},
		"in a key":                 {"scout", `{"body":{"{{secret:a}}":1}}`, "scope_violation", "no secret is filled in there", nil, nil},
		"no handle":                {"scout", `{"token":"{{secret:a b}}"}`, "malformed_arguments", "token", nil, nil},
		"one and a near miss":      {"scout", `{"token":"{{secret:a}} {{ secret:b }}"}`, "malformed_arguments", "token", nil, nil},
		"no text":                  {"scout", `{"token":["{{secret:a}}"]}`, "malformed_arguments", "token", nil, nil},
		"in a header too":          {"scout", `{"token":"{{secret:a}}"}`, "scope_violation", "travels as a header too", mirrored, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, modern := range []bool{false, true} {
				s := &scripted{info: upstream.Info{Modern: true}}
				if test.server != nil {
					test.server(s)
				}
				w := startWeb(t, s, test.change)
				var a said
				if c := w.client(test.agent); modern {
					a = c.modern("tools/call", `{"name":"web__post","arguments":`+test.arguments+`}`, "{}", "Mcp-Param-Token", "{{secret:a}}")
				} else {
					a = w.say(test.agent, false, test.arguments)
				}
				d := denialOf(t, a)
				if d.Code != test.code || !strings.Contains(a.Raw, test.says) || strings.Contains(a.Raw, w.files) {
					t.Errorf("%s: %s", d.Code, a.Raw)
				}
				if n := len(s.calls()); n != 0 {
					t.Errorf("%d calls reach the server", n)
				}
				for _, e := range w.events.all() {
					if e.Decision == "allow" {
						t.Errorf("%+v", e)
					}
				}
				w.silent(a.Raw)
				w.introspect = true
				w.adopt()
				if a = w.client(test.agent).modern("tools/call", `{"name":"capgate__explain","arguments":{"tool":"web__post","arguments":`+test.arguments+`}}`, "{}"); !strings.Contains(texts(t, a), `"code":"`+test.code+`"`) {
					t.Errorf("explained as %.300s", a.Raw)
				}
				w.silent(a.Raw)
			}
		})
	}
}

// TestTooMuchOfASecret: what is filled in is bounded, whatever is asked for.
func TestTooMuchOfASecret(t *testing.T) {
	s := &scripted{}
	w := startWeb(t, s, nil)
	w.put("a", strings.Repeat("0123456789abcde\n", 1000))
	most := strings.Repeat("{{secret:a}}", 1<<20/15999)
	if a := w.say("scout", true, `{"token":"`+most+`"}`); len(s.calls()) != 1 {
		t.Errorf("%.300s", a.Raw)
	}
	a := w.say("scout", true, `{"token":"`+most+`","tokens":["{{secret:a}}"]}`)
	if d := denialOf(t, a); d.Code != "limit_exceeded" || len(s.calls()) != 1 {
		t.Errorf("%.300s", a.Raw)
	}
}

// TestSecretsOfPrompts: the same holds for the arguments of prompts.
func TestSecretsOfPrompts(t *testing.T) {
	s := &scripted{}
	s.reply = func(_ context.Context, r upstream.Request, _ upstream.Sink) (upstream.Answer, error) {
		return upstream.Answer{Result: []byte(`{"messages":[],"echo":` + quoted(string(r.Params)) + `}`)}, nil
	}
	w := startWeb(t, s, nil)
	c := w.client("scout")
	for token, want := range map[string]string{"a": "", "gone": "not_available", "forbidden": "scope_violation"} {
		before := len(s.calls())
		a := c.modern("prompts/get", `{"name":"web__greet","arguments":{"style":"\u0041","token":"{{secret:`+token+`}}"}}`, "{}")
		calls := s.calls()[before:]
		if d := denialOf(t, a); want != "" && (d.Code != want || len(calls) > 0) {
			t.Errorf("%s: %s", token, a.Raw)
		}
		if want == "" && (len(calls) != 1 || !strings.Contains(string(calls[0].Params), `"arguments":{"style":"\u0041","token":"`+valueA+`"}`)) {
			t.Errorf("%s: %s", token, a.Raw)
		}
		w.silent(a.Raw)
	}
}

// TestSecretsAreScrubbed: a server that gives back what it was told, in whatever it
// may send, shows the agent the handle. What the scrubber knows are the encodings that
// its documentation names.
func TestSecretsAreScrubbed(t *testing.T) {
	echoes := func(value string) string {
		return quoted([]string{
			value, "x" + base64.StdEncoding.EncodeToString([]byte("user:"+value)), base64.RawURLEncoding.EncodeToString([]byte(value)),
			hex.EncodeToString([]byte(value)), url.QueryEscape(value), quoted(value),
		})
	}
	for _, name := range []string{"a", "odd"} {
		value := map[string]string{"a": valueA, "odd": valueOdd}[name]
		s := &scripted{}
		s.reply = func(ctx context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
			if !bytes.Contains(r.Params, []byte(`"body":"fail"`)) {
				sink.Notify("notifications/progress", []byte(`{"progressToken":"`+r.Token+`","progress":1,"message":`+quoted(value)+`}`))
				sink.Notify("notifications/message", []byte(`{"level":"error","data":`+echoes(value)+`}`))
				_, err := sink.Ask(ctx, "elicitation/create", []byte(`{"message":`+quoted(value)+`,"requestedSchema":{"type":"object","properties":{}}}`))
				return upstream.Answer{Result: []byte(`{"content":[],"structuredContent":{"echo":` + echoes(value) + `}}`)}, err
			}
			return upstream.Answer{Error: []byte(`{"code":-32000,"message":` + quoted(value) + `,"data":` + echoes(value) + `}`)}, nil
		}
		w := startWeb(t, s, func(u *proxy.Upstream) { u.MayAsk = []string{"elicitation"} })
		c := w.client("scout")
		args := func(body string) string {
			return `"name":"web__post","arguments":{"token":"{{secret:` + name + `}}","body":"` + body + `"},"_meta":{"progressToken":1}`
		}
		var seen []string
		c.initialize(`{"elicitation":{}}`)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		in := c.open(ctx, t, "POST", `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{`+args("ask")+`}}`)
		for answered := false; !answered; {
			data := in.next()
			seen = append(seen, data)
			var m struct {
				ID     any
				Method string
				Result json.RawMessage
			}
			must(t, json.Unmarshal([]byte(data), &m))
			if m.Method == "elicitation/create" {
				c.post(`{"jsonrpc":"2.0","id":` + quoted(m.ID) + `,"result":{"action":"accept","content":{}}}`)
			}
			answered = m.Result != nil
		}
		seen = append(seen, c.request("tools/call", `{`+args("fail")+`}`).Raw)
		handle := "{{secret:" + name + "}}"
		for _, text := range seen {
			shown := strings.Count(text, handle)
			if plain := string(w.keeper.Scrub([]byte(text))); plain != text || shown == 0 {
				t.Errorf("%s: %s", name, text)
			}
			if strings.Contains(text, "echo") && shown != 6 {
				t.Errorf("of 6 echoes %d are handles: %s", shown, text)
			}
		}
		if len(seen) != 5 {
			t.Errorf("%q", seen)
		}
	}
}

// TestSecretsAreRenewed: each call gets the value as it is then, and both values are
// taken out of what comes back.
func TestSecretsAreRenewed(t *testing.T) {
	s := &scripted{}
	s.reply = func(context.Context, upstream.Request, upstream.Sink) (upstream.Answer, error) {
		return upstream.Answer{Result: []byte(`{"content":[{"type":"text","text":"` + valueA + ` and the-next-value-of-a"}]}`)}, nil
	}
	w := startWeb(t, s, nil)
	first := w.say("scout", true, `{"token":"{{secret:a}}"}`)
	if !strings.Contains(first.Raw, "{{secret:a}} and the-next-value-of-a") {
		t.Errorf("%s", first.Raw)
	}
	w.put("a", "the-next-value-of-a\n")
	if a := w.say("scout", true, `{"token":"{{secret:a}}"}`); !strings.Contains(a.Raw, "{{secret:a}} and {{secret:a}}") {
		t.Errorf("%s", a.Raw)
	}
	if got := string(s.calls()[1].Params); !strings.Contains(got, `{"token":"the-next-value-of-a"}`) {
		t.Errorf("the server gets %s", got)
	}
	must(t, os.Remove(filepath.Join(w.files, "a")))
	if a := w.say("scout", true, `{"token":"{{secret:a}}"}`); denialOf(t, a).Code != "not_available" || len(s.calls()) != 2 {
		t.Errorf("%s", a.Raw)
	}
}

// TestSecretsGoUpEachTime: however often a call goes up, the value is what goes, and
// never into what the agent carries in between.
func TestSecretsGoUpEachTime(t *testing.T) {
	const args = `"name":"web__post","arguments":{"token":"{{secret:a}}","body":"b"}`
	for _, server := range []bool{false, true} {
		for _, agent := range []bool{false, true} {
			s := questioner(server, "elicitation/create", `{"message":"is it `+valueA+`?"}`)
			w := startWeb(t, s, func(u *proxy.Upstream) { u.MayAsk = []string{"elicitation"} })
			// What is answered is no argument: a handle in it stays what it is.
			a := w.client("scout").answered(t, agent, `{"elicitation":{}}`, args, `{"action":"accept","content":{"x":"{{secret:b}}"}}`)
			calls := s.calls()
			if len(calls) == 0 || !strings.Contains(a.Raw, `"heard"`) || strings.Contains(a.Raw, valueB) {
				t.Errorf("server modern %v, agent modern %v: %s", server, agent, a.Raw)
			}
			for _, r := range calls {
				if p := string(r.Params); !strings.Contains(p, `"arguments":{"token":"`+valueA+`","body":"b"}`) || strings.Contains(p, valueB) {
					t.Errorf("server modern %v, agent modern %v: %s", server, agent, p)
				}
			}
			w.silent(a.Raw)
		}
	}
	var tries [][]byte
	s := &scripted{}
	s.reply = func(_ context.Context, r upstream.Request, _ upstream.Sink) (upstream.Answer, error) {
		if tries = append(tries, r.Params); len(tries) == 1 {
			return upstream.Answer{}, &upstream.Failed{Upstream: "web", Text: "no longer knows the session", Unsent: true, Lost: true}
		}
		return upstream.Answer{Result: []byte(`{"content":[]}`)}, nil
	}
	startWeb(t, s, nil).say("scout", true, `{"token":"{{secret:a}}"}`)
	if len(tries) != 2 || !bytes.Equal(tries[0], tries[1]) || !bytes.Contains(tries[1], []byte(valueA)) {
		t.Errorf("%q", tries)
	}
}

// TestStateWithASecretIsForOne: what an agent carries of a call with a secret is no use
// to one that may not use the secret.
func TestStateWithASecretIsForOne(t *testing.T) {
	const args, able = `"name":"web__post","arguments":{"token":"{{secret:a}}"}`, `{"elicitation":{}}`
	for _, server := range []bool{false, true} {
		s := questioner(server, "elicitation/create", `{"message":"?"}`)
		w := startWeb(t, s, func(u *proxy.Upstream) { u.MayAsk = []string{"elicitation"} })
		state := inputOf(t, w.client("scout").modern("tools/call", `{`+args+`}`, able)).RequestState
		if raw, err := base64.RawURLEncoding.DecodeString(state); err != nil || bytes.Contains(raw, []byte(valueA)) {
			t.Errorf("the state is %q, %v", raw, err)
		}
		before := len(s.calls())
		for _, key := range []string{"k", "ask-1"} {
			a := w.client("spy").modern("tools/call", `{`+args+`,"inputResponses":{"`+key+`":{"action":"accept"}},"requestState":"`+state+`"}`, able)
			if denialOf(t, a).Code != "capability_absent" || len(s.calls()) != before {
				t.Errorf("server modern %v: %s", server, a.Raw)
			}
		}
	}
}

// vanishing is a secret that can be had so many times.
type vanishing struct{ left int }

func (v *vanishing) Value(string) (string, error) {
	if v.left--; v.left < 0 {
		return "", errors.New("it was there a moment ago: /run/secrets/a")
	}
	return valueA, nil
}

// TestSecretsThatVanish: one that is gone when the call is written is not sent, and
// what is recorded ends in a denial.
func TestSecretsThatVanish(t *testing.T) {
	for _, parked := range []bool{false, true} {
		s := &scripted{}
		w := startWeb(t, s, func(u *proxy.Upstream) {
			if parked {
				u.MayAsk = []string{"elicitation"}
			}
		})
		w.secrets = &vanishing{left: 1}
		w.adopt()
		a := w.client("scout").modern("tools/call", `{"name":"web__post","arguments":{"token":"{{secret:a}}"}}`, `{"elicitation":{}}`)
		if d := denialOf(t, a); d.Code != "not_available" || len(s.calls()) != 0 || strings.Contains(a.Raw, "/run") {
			t.Errorf("%s", a.Raw)
		}
		var kinds []string
		for _, e := range w.events.all() {
			if e.Method == "tools/call" {
				kinds = append(kinds, e.Kind+" "+e.Decision)
			}
		}
		if want := []string{"decision allow", "outcome ", "decision deny"}; !slices.Equal(kinds, want) {
			t.Errorf("%q", kinds)
		}
	}
}

// TestNoSecrets: a gateway that has none fills in none.
func TestNoSecrets(t *testing.T) {
	s := &scripted{}
	w := startWeb(t, s, nil)
	w.secrets = nil
	w.adopt()
	if a := w.say("scout", true, `{"token":"{{secret:a}}"}`); denialOf(t, a).Code != "not_available" || len(s.calls()) != 0 {
		t.Errorf("%s", a.Raw)
	}
}

// FuzzSecretText: whatever a text says, the server gets it with the secrets that were
// decided on in it, or nothing.
func FuzzSecretText(f *testing.F) {
	for _, seed := range []string{"{{secret:a}}", "{{{secret:a}}}", "{{secret:{{secret:a}}}}", "{{ secret:a}}{{secret:a}}", "{{secret:b}}{{SECRET:a}}", "{{{{secret:a}}secret:a}}", "é{{secret:a", "{{secrets:a}}"} {
		f.Add(seed)
	}
	m := parsed(f, postMapping)
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := wire.Parse([]byte(`{"token":` + quoted(text) + `}`))
		if err != nil {
			return
		}
		needs, err := m.Tool("post").Require(mapping.Call{Name: "web.post", Args: doc.Root()})
		if err != nil {
			return
		}
		var decided []string
		for _, n := range needs {
			if n.Handle {
				decided = append(decided, n.Requirement.Object())
			}
		}
		plain, _ := doc.Root().Get("token")
		said, _ := plain.Str()
		handles, err := secrets.Handles(said)
		if err != nil {
			return // and so it is denied, if there is anything to fill in
		}
		var found []string
		for _, h := range handles {
			found = append(found, h.Name)
		}
		if fmt.Sprint(found) != fmt.Sprint(decided) {
			t.Errorf("%q: decided on %q, filled in %q", text, decided, found)
		}
	})
}
