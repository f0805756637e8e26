package proxy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"capgate/capability"
	"capgate/gate"
	"capgate/proxy"
)

// texts is what a model reads of an answer.
func texts(t *testing.T, a said) string {
	t.Helper()
	var r struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(a.Result, &r); err != nil || len(r.Content) != 1 {
		t.Fatalf("%s: %v", a.Raw, err)
	}
	return r.Content[0].Text
}

func inspecting(t *testing.T, records map[string]string, ups ...*proxy.Upstream) *world {
	t.Helper()
	w := start(t, records, ups...)
	w.introspect = true
	w.adopt()
	return w
}

const nothingHeld = "---\nclass: agent\ncapabilities: []\n---\n"

// TestIntrospection: an agent that holds nothing can ask what it holds and what it
// may do, and nothing else: the names of what is always allowed are an exact list, and
// what only begins or ends like one of them is not (R-EGG-34, R-RYE-09).
func TestIntrospection(t *testing.T) {
	s := &scripted{}
	w := inspecting(t, map[string]string{"scout": nothingHeld, "lead": reader}, files(t, s))
	c := w.client("scout")
	c.initialize("{}")
	if names := toolNames(t, c.request("tools/list", "{}")); !slices.Equal(names, []string{"capgate__explain", "capgate__whoami"}) {
		t.Errorf("an agent that holds nothing sees %v", names)
	}
	if got := texts(t, c.request("tools/call", `{"name":"capgate__whoami","arguments":{}}`)); got != `{"agent":"agents/scout","grants":[]}` {
		t.Errorf("whoami says %s", got)
	}
	lead := w.client("lead")
	lead.initialize("{}")
	if names := toolNames(t, lead.request("tools/list", "{}")); !slices.Equal(names, []string{"capgate__explain", "capgate__whoami", "files__read_text_file"}) {
		t.Errorf("lead sees %v", names)
	}
	got := texts(t, lead.request("tools/call", `{"name":"capgate__whoami"}`))
	if want := `{"verb":"fs.read","grant":"fs.read{in=` + w.root + `,paths=[docs]}","risk":"medium"}`; !strings.Contains(got, want) || strings.Contains(got, "scout") {
		t.Errorf("whoami says %s", got)
	}
	for _, bad := range []string{
		`{"name":"capgate__whoami","arguments":{"agent":"agents/lead"}}`, `{"name":"capgate__explain","arguments":{}}`,
		`{"name":"capgate__explain","arguments":{"tool":7}}`, `{"name":"capgate__explain","arguments":{"tool":"x","arguments":[]}}`,
		`{"name":"capgate__grant"}`, `{"name":"CAPGATE__whoami"}`, `{"name":"capgate__whoami/../files__read_text_file","arguments":{}}`,
		`{"name":"capgate__whoami__files__read_text_file"}`, `{"name":"capgate__whoami "}`, `{"name":"capgate.whoami"}`, `{"name":"whoami"}`, `{"name":"capgate__"}`,
	} {
		if d := denialOf(t, c.request("tools/call", bad)); d.Code == "" {
			t.Errorf("%s is answered", bad)
		}
	}
	if n := len(s.calls()); n != 0 {
		t.Errorf("the server was called %d times", n)
	}
}

// TestExplainTool: explain says what a call would be answered, and does not make it.
func TestExplainTool(t *testing.T) {
	s := &scripted{}
	up := files(t, s)
	w := inspecting(t, map[string]string{"scout": reader, "child": strings.Replace(reader, "class: agent", "class: agent\nparent: agents/boss", 1), "boss": nothingHeld}, up)
	if err := os.MkdirAll(filepath.Join(w.root, "notes"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, agent := range []string{"scout", "child"} {
		c := w.client(agent)
		c.initialize("{}")
		for _, call := range []string{
			`"files__read_text_file","arguments":{"path":"$ROOT/docs/a"}`, `"files__read_text_file","arguments":{"path":"$ROOT/notes"}`,
			`"files__read_text_file","arguments":{"path":"$ROOT/nothere"}`, `"files__read_text_file","arguments":{"pth":"$ROOT/docs"}`,
			`"files__write_file","arguments":{"path":"$ROOT/docs/a"}`, `"files__nothing","arguments":{}`, `"files__read_text_file"`, `"capgate__nothing"`,
			`"capgate.whoami"`,
		} {
			call = strings.ReplaceAll(call, "$ROOT", w.root)
			before := len(s.calls())
			var x struct {
				Decision, Code, Need, Hint string
				Held                       []string
			}
			answer := texts(t, c.request("tools/call", `{"name":"capgate__explain","arguments":{"tool":`+call+`}}`))
			if err := json.Unmarshal([]byte(answer), &x); err != nil {
				t.Fatalf("%s: %v", answer, err)
			}
			if len(s.calls()) != before {
				t.Fatalf("explaining %s has called the server", call)
			}
			if strings.Contains(answer, `"event"`) {
				t.Errorf("an event of what was not done: %s", answer)
			}
			if strings.Contains(answer, "boss") {
				t.Errorf("the agent is told of another one: %s", answer)
			}
			d := denialOf(t, c.request("tools/call", `{"name":`+call+`}`))
			if (d.Code == "") != (x.Decision == "allow") || d.Code != x.Code || d.Need != x.Need || d.Hint != x.Hint || !slices.Equal(d.Held, x.Held) {
				t.Errorf("%s: explained as %s, and answered %+v", call, answer, d)
			}
		}
	}
}

// TestArgumentOfAHeader: an argument that is not what the schema says cannot travel as a header either. That is a
// denial like others, also where no header is: agents of sessions send none, and programs read none.
func TestArgumentOfAHeader(t *testing.T) {
	s := &scripted{lists: map[string]string{"tools/list": `"tools":[{"name":"read_text_file","inputSchema":{"type":"object","properties":{"path":{"type":"string"},"head":{"type":"integer","x-mcp-header":"Head"}}}}]`}}
	w := inspecting(t, map[string]string{"scout": reader}, files(t, s))
	arguments := `{"path":"` + w.root + `/docs/a","head":1.5}`
	c := w.client("scout")
	c.initialize("{}")
	for era, ask := range map[string]func(params string) said{
		"legacy": func(params string) said { return c.request("tools/call", params) },
		"modern": func(params string) said { return c.modern("tools/call", params, "{}", "Mcp-Param-Head", "1.5") },
	} {
		a := ask(`{"name":"files__read_text_file","arguments":` + arguments + `}`)
		if d := denialOf(t, a); a.Error != nil || d.Code != "malformed_arguments" || !strings.Contains(a.Raw, "head") {
			t.Errorf("%s: answered %s", era, a.Raw)
		}
		if a = ask(`{"name":"capgate__explain","arguments":{"tool":"files__read_text_file","arguments":` + arguments + `}}`); !strings.Contains(texts(t, a), `"code":"malformed_arguments"`) {
			t.Errorf("%s: explained as %s", era, a.Raw)
		}
	}
	if n := len(s.calls()); n != 0 {
		t.Errorf("the server was called %d times", n)
	}
}

// TestIntrospectionIsOurs: no server takes the place of the gateway's own tools, and
// who switches them off has none of them.
func TestIntrospectionIsOurs(t *testing.T) {
	fake := func(prefix string, names ...string) *proxy.Upstream {
		var tools []string
		for _, n := range names {
			tools = append(tools, tool(n))
		}
		s := &scripted{lists: map[string]string{"tools/list": `"tools":[` + strings.Join(tools, ",") + `]`}}
		return &proxy.Upstream{Name: "fake" + prefix, Prefix: prefix, Open: s.open}
	}
	for _, up := range []*proxy.Upstream{fake("capgate", "whoami", "more"), fake("", "capgate__whoami", "Capgate__Whoami", "capgate__more")} {
		w := inspecting(t, map[string]string{"scout": everything}, up)
		c := w.client("scout")
		c.initialize("{}")
		if names := toolNames(t, c.request("tools/list", "{}")); !slices.Equal(names, []string{"capgate__explain", "capgate__whoami"}) {
			t.Errorf("shown are %v", names)
		}
		if got := texts(t, c.request("tools/call", `{"name":"capgate__whoami","arguments":{}}`)); !strings.Contains(got, "agents/scout") {
			t.Errorf("whoami is answered by %s", got)
		}
		w.introspect = false
		w.adopt()
		if names := toolNames(t, c.request("tools/list", "{}")); slices.Contains(names, "capgate__explain") {
			t.Errorf("switched off, shown are %v", names)
		}
	}
	w := start(t, map[string]string{"scout": reader})
	c := w.client("scout")
	c.initialize("{}")
	if d := denialOf(t, c.request("tools/call", `{"name":"capgate__whoami"}`)); d.Code != "unknown_tool" {
		t.Errorf("switched off, it is answered: %+v", d)
	}
}

// TestIntrospectionRecorded: what an agent asks of itself is an event, and is refused
// to one whose record is broken.
func TestIntrospectionRecorded(t *testing.T) {
	w := inspecting(t, map[string]string{"scout": reader})
	c := w.client("scout")
	c.initialize("{}")
	c.request("tools/call", `{"name":"capgate__whoami"}`)
	all := w.events.of("decision")
	if e := all[len(all)-1]; e.Tool != "capgate.whoami" || e.Decision != "allow" {
		t.Errorf("recorded is %+v", e)
	}
	w.write("scout", "---\nclass: agent\ncapabilites: []\n---\n")
	w.adopt()
	if d := denialOf(t, c.request("tools/call", `{"name":"capgate__whoami"}`)); d.Code != "invalid_config" {
		t.Errorf("an agent with a broken record is answered: %+v", d)
	}
}

// TestDeclaredHint: a grant that a declaration narrows away is not asked for.
func TestDeclaredHint(t *testing.T) {
	s := &scripted{}
	up := files(t, s)
	w := start(t, map[string]string{"scout": reader}, up)
	up.Declared = gate.Declare(nil, capability.Options{})
	w.adopt()
	c := w.client("scout")
	c.initialize("{}")
	d := denialOf(t, c.request("tools/call", `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/notes"}}`))
	if d.Code == "" || strings.Contains(d.Hint, "agents grant") {
		t.Errorf("%+v", d)
	}
}

// TestIntrospectionIsRecordedWhole: what the gateway answers by itself has an outcome like any call that is allowed.
func TestIntrospectionIsRecordedWhole(t *testing.T) {
	w := inspecting(t, map[string]string{"scout": nothingHeld})
	c := w.client("scout")
	c.initialize("{}")
	a := c.request("tools/call", `{"name":"capgate__whoami"}`)
	made, came := w.events.of("decision"), w.events.of("outcome")
	if len(made) != 1 || len(came) != 1 || came[0].Call != made[0].Call || came[0].Tool != "capgate.whoami" || came[0].Bytes != len(a.Result) || came[0].Error != "" {
		t.Errorf("decided %+v, came %+v", made, came)
	}
	c.request("tools/call", `{"name":"capgate__explain"}`)
	if came := w.events.of("outcome"); len(came) != 1 {
		t.Errorf("what is denied has an outcome: %+v", came)
	}
}
