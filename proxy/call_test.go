package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/upstream"
)

// TestHintOfArguments: a schema may list more than the mapping knows, and to call
// with what it lists is then no way to proceed.
func TestHintOfArguments(t *testing.T) {
	s := &scripted{}
	w := start(t, map[string]string{"scout": reader}, files(t, s))
	c := w.client("scout")
	c.initialize("{}")
	a := c.request("tools/call", `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a","other":1}}`)
	if !strings.Contains(string(a.Result), "leave out what the operator's mapping of the tool does not know") {
		t.Errorf("%s", a.Raw)
	}
}

func TestCall(t *testing.T) {
	s := &scripted{}
	w := start(t, map[string]string{"scout": reader}, files(t, s))
	c := w.client("scout")
	c.initialize("{}")
	if got := toolNames(t, c.request("tools/list", "{}")); !cmp.Equal(got, []string{"files__read_text_file"}) {
		t.Errorf("tools/list shows %v", got)
	}
	a := c.request("tools/call", `{"name":"files__read_text_file","arguments":{ "path" : "`+w.root+`/docs/a.txt","head":10 },"_meta":{"x":1}}`)
	if string(a.Result) != `{"content":[{"type":"text","text":"done"}]}` {
		t.Errorf("allowed: %s", a.Raw)
	}
	calls := s.calls()
	if len(calls) != 1 {
		t.Fatalf("%d calls reached the server", len(calls))
	}
	if got, want := string(calls[0].Params), `{"name":"read_text_file","arguments":{ "path" : "`+w.root+`/docs/a.txt","head":10 }}`; got != want {
		t.Errorf("forwarded %s, want %s", got, want)
	}
	for _, test := range []struct{ name, args, code, argument string }{
		{"files__read_text_file", `{"path":"/etc/passwd"}`, "scope_violation", "path"},
		{"files__read_text_file", `{"path":"` + w.root + `/docs/../x"}`, "scope_violation", "path"},
		{"files__read_text_file", `{"path":"` + w.root + `/docs/a","other":1}`, "malformed_arguments", "other"},
		{"files__write_file", `{"path":"` + w.root + `/docs/a","content":""}`, "capability_absent", ""},
		{"files__nothing", `{}`, "unknown_tool", ""},
		{"files.read_text_file", `{}`, "unknown_tool", ""},
	} {
		a := c.request("tools/call", `{"name":"`+test.name+`","arguments":`+test.args+`}`)
		d := denialOf(t, a)
		if d.Code != test.code || d.Argument != test.argument || a.Status != 200 || d.Event == "" {
			t.Errorf("%s %s: %+v\n%s", test.name, test.args, d, a.Raw)
		}
		if !strings.Contains(a.Raw, "Denied by capgate ("+test.code+")") {
			t.Errorf("%s: the text does not say the code: %s", test.name, a.Raw)
		}
	}
	if n := len(s.calls()); n != 1 {
		t.Errorf("%d calls reached the server in the end", n)
	}
	if n := len(w.events.of("outcome")); n != 1 {
		t.Errorf("%d outcomes", n)
	}
}

// TestArgumentNames: an event says which arguments a call had, and not what they were.
func TestArgumentNames(t *testing.T) {
	s := &scripted{}
	w := start(t, map[string]string{"scout": reader}, files(t, s))
	c := w.client("scout")
	c.initialize("{}")
	var many strings.Builder
	for i := range 70 {
		fmt.Fprintf(&many, `,"n%d":"sesame"`, i)
	}
	for _, test := range []struct {
		args, decision string
		names          []string
		more           int
	}{
		{`{"path":"` + w.root + `/docs/a.txt","head":10}`, "allow", []string{"path", "head"}, 0},
		{`{"path":"/etc/passwd","h\u0065ad":4711}`, "deny", []string{"path", "head"}, 0},
		{`{"path":"/etc/passwd"` + many.String() + `}`, "deny", nil, 7},
		{`{}`, "deny", nil, 0},
	} {
		c.request("tools/call", `{"name":"files__read_text_file","arguments":`+test.args+`}`)
		all := w.events.of("decision")
		e := all[len(all)-1]
		if e.Decision != test.decision || e.MoreNames != test.more || test.more == 0 && !slices.Equal(e.Names, test.names) || test.more > 0 && len(e.Names) != 64 {
			t.Errorf("%s: %s %v %d", test.args, e.Decision, e.Names, e.MoreNames)
		}
		if text := fmt.Sprintf("%+v", e); strings.Contains(text, "sesame") || strings.Contains(text, "4711") {
			t.Errorf("the value of an argument is recorded: %s", text)
		}
	}
}

// TestFailedOutcome: an outcome says that a tool has failed, by its own word.
func TestFailedOutcome(t *testing.T) {
	for _, failed := range []bool{true, false} {
		s := &scripted{reply: func(context.Context, upstream.Request, upstream.Sink) (upstream.Answer, error) {
			return upstream.Answer{Result: fmt.Appendf(nil, `{"content":[],"isError":%v}`, failed), Failed: failed}, nil
		}}
		w := start(t, map[string]string{"scout": reader}, files(t, s))
		c := w.client("scout")
		c.initialize("{}")
		c.request("tools/call", `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a.txt"}}`)
		all := w.events.of("outcome")
		if len(all) != 1 || all[0].Bytes == 0 || (all[0].Error != "") != failed {
			t.Errorf("failed %v: %+v", failed, all)
		}
	}
}

// TestGrantsOfEvent: where a call needs several things, the event has every grant that allowed one,
// once.
func TestGrantsOfEvent(t *testing.T) {
	s := &scripted{lists: map[string]string{"tools/list": `"tools":[` + tool("edit_file", "path") + `,` + tool("move_file", "source", "destination") + `]`}}
	w := start(t, map[string]string{"scout": `---
class: agent
capabilities:
  - fs.read: { in: $ROOT, paths: [docs] }
  - fs.write: { in: $ROOT, paths: [docs/a] }
  - fs.write: { in: $ROOT, paths: [docs/b] }
  - fs.delete: { in: $ROOT, paths: [docs] }
---
`}, files(t, s))
	c := w.client("scout")
	c.initialize("{}")
	at := `"` + w.root + `/docs/`
	for i, test := range []struct{ call, want string }{
		{`{"name":"files__edit_file","arguments":{"path":` + at + `a"}}`, "fs.read docs; fs.write docs/a"},
		{`{"name":"files__move_file","arguments":{"source":` + at + `c","destination":` + at + `b/x"}}`, "fs.read docs; fs.delete docs; fs.write docs/b"},
	} {
		c.request("tools/call", test.call)
		all := w.events.of("decision")
		got := strings.NewReplacer("{in="+w.root+",paths=[", " ", "]}", "").Replace(all[len(all)-1].Grant)
		if len(all) != i+1 || all[i].Decision != "allow" || !slices.Equal(slices.Sorted(strings.SplitSeq(got, "; ")), slices.Sorted(strings.SplitSeq(test.want, "; "))) {
			t.Errorf("%s: %d events, the last of %s by %s", test.call, len(all), all[len(all)-1].Decision, got)
		}
	}
}

func TestUnrecordedIsNotForwarded(t *testing.T) {
	s := &scripted{}
	w := start(t, map[string]string{"scout": reader}, files(t, s))
	c := w.client("scout")
	c.initialize("{}")
	c.request("tools/list", "{}")
	w.events.failWith(errors.New("the disk is full"))
	a := c.request("tools/call", `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a.txt"}}`)
	if d := denialOf(t, a); d.Code != "not_available" || !strings.Contains(a.Raw, "cannot record") {
		t.Errorf("%s", a.Raw)
	}
	if n := len(s.calls()); n != 0 {
		t.Errorf("%d calls reached the server", n)
	}
}

func TestModernCall(t *testing.T) {
	s := &scripted{}
	w := start(t, map[string]string{"scout": reader}, files(t, s))
	c := w.client("scout")
	a := c.modern("tools/list", "{}", "{}")
	for _, want := range []string{`"cacheScope":"private"`, `"ttlMs":`, `"resultType":"complete"`} {
		if !strings.Contains(string(a.Result), want) {
			t.Errorf("tools/list lacks %s: %s", want, a.Raw)
		}
	}
	a = c.modern("tools/call", `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a.txt"}}`, "{}")
	if string(a.Result) != `{"resultType":"complete","content":[{"type":"text","text":"done"}]}` {
		t.Errorf("%s", a.Raw)
	}
	a = c.modern("tools/call", `{"name":"files__read_text_file","arguments":{"path":"/etc/passwd"}}`, "{}")
	if d := denialOf(t, a); d.Code != "scope_violation" {
		t.Errorf("%s", a.Raw)
	}
	a = c.modern("tools/call", `{"name":"files__read_text_file","arguments":{}}`, "{}", "Mcp-Name", "files__write_file")
	if a.Status != 400 || a.Error == nil || a.Error.Code != -32020 {
		t.Errorf("%s", a.Raw)
	}
}
