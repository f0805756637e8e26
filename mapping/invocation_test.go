package mapping_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/capability"
	"capgate/mapping"
)

// TestSecret is what R-SCA-05 asks for.
func TestSecret(t *testing.T) {
	const tool = `{token: secret, "tokens[*]": secret, body: free, path: {verb: fs.read, optional: true}}`
	const stray = " holds the handle of a secret, and no secret is filled in there"
	for _, tt := range []struct{ args, want string }{
		{`{"token":"{{secret:db-prod}}"}`, "secret.use db-prod @ token\ntool.invoke s.t"},
		{`{"token":"Bearer {{secret:a}} and {{secret:b}}"}`, "secret.use a @ token\nsecret.use b @ token\ntool.invoke s.t"},
		{`{"tokens":["{{secret:a}}","x","{{secret:b}}"]}`, "secret.use a @ tokens[0]\nsecret.use b @ tokens[2]\ntool.invoke s.t\ntool.invoke s.t\ntool.invoke s.t"},
		{`{"token":"\u007b{secret:a}}"}`, "secret.use a @ token\ntool.invoke s.t"},
		{`{"token":"plain"}`, "tool.invoke s.t"},
		{`{"token":"{{secret:a"}`, "malformed_arguments: the argument token holds a handle that is not {{secret:name}}"},
		{`{"token":"{{secret:}}"}`, "malformed_arguments: the argument token holds a handle that is not {{secret:name}}"},
		{`{"token":"{{secret:a b}}"}`, "malformed_arguments: the argument token holds a handle that is not {{secret:name}}"},
		{`{"token":"{{secret:{{secret:a}}}}"}`, "malformed_arguments: the argument token holds a handle that is not {{secret:name}}"},
		{`{"token":7}`, "malformed_arguments: the argument token is a number, where text belongs"},
		{`{"body":"{{secret:a}}"}`, "scope_violation: the argument body" + stray},
		{`{"body":{"x":[1,{"y":"a {{secret:a}}"}]}}`, "scope_violation: the argument body.x[1].y" + stray},
		{`{"body":"\u007b{secret:a}}"}`, "scope_violation: the argument body" + stray},
		{`{"body":"{{\u0073ecret:"}`, "scope_violation: the argument body" + stray},
		{`{"body":{"{{secret:a}}":1}}`, "scope_violation: the argument body.{{secret:a}}" + stray},
		{`{"token":"{{secret:a}}","body":"{{secret:a}}"}`, "scope_violation: the argument body" + stray},
		{`{"path":"{{secret:a}}"}`, "scope_violation: the argument path" + stray},
		{`{"body":"{ {secret:a}} secret: \u00e9"}`, "tool.invoke s.t"},
	} {
		if diff := cmp.Diff(tt.want, required(t, parseTool(t, tool), tt.args)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.args, diff)
		}
	}
	if got := required(t, nil, `{"a":["{{secret:a}}"]}`); got != "scope_violation: the argument a[0]"+stray {
		t.Errorf("an unmapped tool: got %s", got)
	}
}

func TestAdditional(t *testing.T) {
	tool := parseTool(t, `{path: fs.read, additional: free}`)
	for _, tt := range []struct{ args, want string }{
		{`{"path":"a","x":1,"y":{"z":[true,null,"text"]}}`, "fs.read a @ path"},
		{`{"path":"a","x":"https://b.com/cb"}`, "fs.read a @ path|net.get b.com:443 @ x"},
		{`{"path":"a","x":{"y":[1,"HTTP://b.com/"]}}`, "fs.read a @ path|net.get b.com:80 @ x.y[1]"},
		{`{"path":"a","x":"http:b.com"}`, "fs.read a @ path|net.get (the URL does not begin with http:// or https://) @ x"},
		{`{"path":"a","x":" https://b.com"}`, "fs.read a @ path|net.get (the URL holds a space) @ x"},
		{`{"path":"a","x":"ftp://b.com"}`, "fs.read a @ path|net.get (the URL does not begin with http:// or https://) @ x"},
		{`{"path":"a","x":"gopher:\\\\b.com"}`, `fs.read a @ path|net.get (the URL holds a backslash) @ x`},
		{`{"path":"a","x":"ht\ntps://b.com"}`, "malformed_arguments: the argument x holds a control character"},
		{`{"path":"a","x":"\u200bhttps://b.com"}`, "fs.read a @ path|net.get (the URL holds an invisible character) @ x"},
		{`{"path":"a","https://b.com/":1}`, "fs.read a @ path|net.get b.com:443 @ https://b.com/"},
		{`{"path":"a","x":[{"https://b.com/":"https://c.com/"}]}`, "fs.read a @ path|net.get b.com:443 @ x[0].https://b.com/|net.get c.com:443 @ x[0].https://b.com/"},
		{`{"path":"a","":1}`, "fs.read a @ path"},
		{`{"path":"a","x":"see https://b.com"}`, "fs.read a @ path"},
		{`{"path":"a","x":"note: x","y":"1:2","z":"c:/d","w":":","v":"// todo"}`, "fs.read a @ path"},
		{`{"Path":"a"}`, "malformed_arguments: the argument path is missing, and what the tool does without it is not known"},
		{`{"path":"a","__proto__":{"path":"b"}}`, "malformed_arguments: the argument __proto__ is not one that the tool is known to take"},
		{`{"path":"a","x":["` + strings.Repeat(`y","`, 1100) + `"]}`, "limit_exceeded: the call has more than 1024 values to decide on"},
	} {
		if diff := cmp.Diff(strings.ReplaceAll(tt.want, "|", "\n"), required(t, tool, tt.args)); diff != "" {
			t.Errorf("%.80s (-want +got):\n%s", tt.args, diff)
		}
	}
}

// TestAdditionalCase proves that an argument cannot come in under another case.
func TestAdditionalCase(t *testing.T) {
	tool := parseTool(t, `{path: fs.read, cwd: {verb: fs.read, optional: true}, "o.in": {verb: fs.read, optional: true}, additional: free}`)
	for args, want := range map[string]string{
		`{"path":"a","CWD":"/etc"}`:      "malformed_arguments: the argument CWD is another argument in different case",
		`{"path":"a","o":{"In":"/etc"}}`: "malformed_arguments: the argument o.In is another argument in different case",
	} {
		if got := required(t, tool, args); got != want {
			t.Errorf("%s: got %s, want %s", args, got, want)
		}
	}
}

// TestInvocation decides calls of tools that are called by name.
func TestInvocation(t *testing.T) {
	set := compile(t,
		"tool.invoke{tools=[s.t],args={owner=[acme],n=[7,true]}}",
		"tool.invoke{tools=[s.t],args={repo.name=[a,b]}}",
		"tool.invoke{tools=[wide.*],args={owner=[acme*]}}",
		"tool.invoke{tools=[open.*]}",
		`tool.invoke{tools=[dot.*],args={a\.b=[c]}}`,
		"tool.invoke{tools=[pay.*],args={n=[?,??,???]}}",
	)
	many := func(n int, format string) string {
		var parts []string
		for i := range n {
			parts = append(parts, fmt.Sprintf(format, i))
		}
		return strings.Join(parts, ",")
	}
	for _, tt := range []struct{ name, tool, args, want string }{
		{"within", "s.t", `{"owner":"acme","n":7}`, allow},
		{"truth", "s.t", `{"owner":"acme","n":true,"x":null}`, allow},
		{"another value", "s.t", `{"owner":"evil","n":7}`, "scope_violation"},
		{"another number", "s.t", `{"owner":"acme","n":7.0}`, "scope_violation"},
		{"absent", "s.t", `{"owner":"acme"}`, "scope_violation"},
		{"a number of three digits", "pay.it", `{"n":999}`, allow},
		{"a larger one in three characters", "pay.it", `{"n":9e9}`, "scope_violation"},
		{"one of several", "pay.it", `{"n":[1,9E9]}`, "scope_violation"},
		{"a text of three characters", "pay.it", `{"n":"9e9"}`, allow},
		{"null", "s.t", `{"owner":"acme","n":null}`, "scope_violation"},
		{"no arguments", "s.t", ``, "scope_violation"},
		{"an array of it", "s.t", `{"owner":["acme"],"n":[7,7]}`, allow},
		{"truth in an array", "s.t", `{"owner":"acme","n":[true]}`, "scope_violation"},
		{"truth in words", "s.t", `{"owner":"acme","n":"true"}`, "scope_violation"},
		{"a number in words", "s.t", `{"owner":"acme","n":"7"}`, allow},
		{"inside an argument without a name", "s.t", `{"":{"owner":"acme"},"n":7}`, "scope_violation"},
		{"an argument without a name inside", "s.t", `{"owner":{"":"acme"},"n":7}`, "scope_violation"},
		{"another argument without a name", "s.t", `{"owner":"acme","n":7,"":{"x":{"":1}}}`, allow},
		{"beside an object in an array", "s.t", `{"owner":["acme",{}],"n":7}`, "scope_violation"},
		{"beside an array in an array", "s.t", `{"owner":["acme",[]],"n":7}`, "scope_violation"},
		{"an array with another", "s.t", `{"owner":["acme","evil"],"n":7}`, "scope_violation"},
		{"an array in an array", "s.t", `{"owner":[["acme",["evil"]]],"n":7}`, "scope_violation"},
		{"an array with null", "s.t", `{"owner":["acme",null],"n":7}`, "scope_violation"},
		{"an empty array", "s.t", `{"owner":[],"n":7}`, "scope_violation"},
		{"an object instead", "s.t", `{"owner":{"x":"acme"},"n":7}`, "scope_violation"},
		{"inside an object", "s.t", `{"repo":{"name":"a"}}`, allow},
		{"inside objects in an array", "s.t", `{"repo":[{"name":"a"},{"name":"b"}]}`, allow},
		{"one of them outside", "s.t", `{"repo":[{"name":"a"},{"name":"c"}]}`, "scope_violation"},
		{"two ways to one name", "s.t", `{"repo":{"name":"a"},"repo.name":"c"}`, "scope_violation"},
		{"the other of two ways", "s.t", `{"repo.name":"a"}`, "scope_violation"},
		{"the other of two ways beside something else", "s.t", `{"repo":"c","repo.name":"a"}`, "scope_violation"},
		{"both of two ways", "s.t", `{"repo":{"name":"a"},"repo.name":"b"}`, allow},
		{"a name with a dot", "dot.t", `{"a.b":"c"}`, allow},
		{"a name with a step for a dot", "dot.t", `{"a":{"b":"c"}}`, "scope_violation"},
		{"an object in an array without it", "s.t", `{"repo":[{"name":"a"},{}]}`, "scope_violation"},
		{"an object in an array without it, further in", "s.t", `{"repo":[[{"name":"a"}],[]]}`, "scope_violation"},
		{"long text elsewhere", "s.t", `{"owner":"acme","n":7,"body":"` + strings.Repeat("x", 9000) + `"}`, allow},
		{"many values elsewhere", "s.t", `{"owner":"acme","n":7,"ids":[` + many(900, "%d") + `]}`, allow},
		{"many combinations", "s.t", `{"owner":"acme","n":7,"a":[` + many(50, "%d") + `],"b":[` + many(50, "%d") + `]}`, allow},
		{"a value behind many", "s.t", `{"owner":["acme",` + many(70, `"acme%d"`) + `,"evil"],"n":7}`, "scope_violation"},
		{"another value among many combinations", "s.t", `{"owner":["acme","evil"],"n":7,"a":[` + many(50, "%d") + `],"b":[` + many(50, "%d") + `]}`, "scope_violation"},
		{"a value behind many that are allowed", "wide.t", `{"owner":[` + many(70, `"acme%d"`) + `,"evil"]}`, "scope_violation"},
		{"a long value behind one that is allowed", "wide.t", `{"owner":["acme","evil` + strings.Repeat("x", 5000) + `"]}`, "scope_violation"},
		{"many values that are allowed", "wide.t", `{"owner":[` + many(60, `"acme%d"`) + `]}`, allow},
		{"too many values", "s.t", `{"owner":"acme","n":7,"ids":[` + many(5000, "%d") + `]}`, "scope_violation"},
		{"too many names", "s.t", `{"owner":"acme","n":7,` + many(300, `"x%d":1`) + `}`, "scope_violation"},
		{"without a limit", "open.x", `{"a":[` + many(5000, "%d") + `]}`, allow},
		{"another tool", "s.u", `{"owner":"acme","n":7}`, "scope_violation"},
	} {
		c := callOf(t, tt.args)
		c.Name = tt.tool
		for _, tool := range []*mapping.Tool{nil, parseTool(t, `{additional: free}`)} {
			needs, err := tool.Require(c)
			if err != nil {
				if tool != nil && strings.Contains(err.Error(), "limit_exceeded") {
					continue // what is passed on without a role is looked at, and bounded
				}
				t.Fatalf("%s: %v", tt.name, err)
			}
			if got := answerAll(set, needs); got != tt.want || len(needs) > 64 {
				t.Errorf("%s: got %s with %d needs, want %s", tt.name, got, len(needs), tt.want)
			}
		}
	}
}

// TestInvocationLimits proves that only what some grant limits is written out.
func TestInvocationLimits(t *testing.T) {
	c := callOf(t, `{"owner":["acme","evil"],"labels":["a","b","c"]}`)
	c.Limits = func(argument string) bool { return argument == "owner" }
	needs, err := (*mapping.Tool)(nil).Require(c)
	if err != nil || len(needs) != 2 {
		t.Fatalf("%d needs, %v; want one for each owner", len(needs), err)
	}
	if got := answerAll(compile(t, "tool.invoke{tools=[*],args={owner=[acme]}}"), needs); got != "scope_violation" {
		t.Errorf("got %s for an owner that is not allowed", got)
	}
}

func TestInvocationRefused(t *testing.T) {
	c := callOf(t, `{"a":1}`)
	c.Name = ""
	for name, c := range map[string]mapping.Call{
		"malformed_arguments: the call names no tool":                                                    c,
		"malformed_arguments: the call is over 4096 bytes or holds control characters":                   {Name: "a\nb"},
		"malformed_arguments: the call has arguments that are text, not an object":                       {Name: "a", Args: callOf(t, `"x"`).Args},
		"scope_violation: the argument a holds the handle of a secret, and no secret is filled in there": {Name: "a", Args: callOf(t, `{"a":"{{secret:x}}"}`).Args},
		"malformed_arguments: the call has arguments that are an array, not an object":                   {Name: "a", Args: callOf(t, `[{"a":1}]`).Args},
		"malformed_arguments: the call has arguments that are a boolean, not an object":                  {Name: "a", Args: callOf(t, `true`).Args},
		"malformed_arguments: the call has arguments that are a number, not an object":                   {Name: "a", Args: callOf(t, `1`).Args},
	} {
		needs, err := (*mapping.Tool)(nil).Require(c)
		if err == nil || err.Error() != name || needs != nil {
			t.Errorf("got %v %v, want %s", needs, err, name)
		}
	}
}

// TestLimits proves that what is too much is denied, whatever it holds. This is R-SEC-10.
func TestLimits(t *testing.T) {
	list := func(n int, item string) string { return strings.Repeat(item+",", n-1) + item }
	var members strings.Builder
	for i := range 1100 {
		fmt.Fprintf(&members, `"x%d":"y",`, i)
	}
	for _, tt := range []struct{ name, tool, args, want string }{
		{"elements", `{"paths[*]": fs.read}`, `{"paths":[` + list(1025, `"a"`) + `]}`, "limit_exceeded: the call has more than 1024 values to decide on"},
		{"elements that are free", `{"e[*].x": free}`, `{"e":[` + list(1025, `{}`) + `]}`, "limit_exceeded: the call has more than 1024 values to decide on"},
		{"elements in several arrays", `{"a[*]": fs.read, "b[*]": fs.read}`, `{"a":[` + list(600, `"a"`) + `],"b":[` + list(600, `"b"`) + `]}`, "limit_exceeded: the call has more than 1024 values to decide on"},
		{"words", `{argv: proc.exec}`, `{"argv":[` + list(1025, `"a"`) + `]}`, "limit_exceeded: the argument argv has more than 1024 values"},
		{"members", `{path: fs.read, additional: free}`, `{` + members.String() + `"path":"a"}`, "limit_exceeded: the call has more than 1024 members"},
		{"headers", `{h: {headers: [Accept]}}`, `{"h":{` + members.String() + `"Accept":"a"}}`, "limit_exceeded: the argument h has more than 1024 headers"},
		{"requirements", `{"p[*]": [fs.read, fs.write]}`, `{"p":[` + list(600, `"a"`) + `]}`, "limit_exceeded: the call has more than 1024 requirements"},
		{"combinations", `{"c[*]": {verb: records.update, dim: class}, "p[*]": {verb: records.update, dim: path}}`, `{"c":[` + list(40, `"a"`) + `],"p":[` + list(40, `"b"`) + `]}`, "limit_exceeded: the argument p[0] has more than 1024 combinations with other arguments"},
	} {
		if got := required(t, parseTool(t, tt.tool), tt.args); got != tt.want {
			t.Errorf("%s: got %.200s, want %s", tt.name, got, tt.want)
		}
	}
	at := `{"paths":[` + list(1024, `"a"`) + `]}`
	if got := required(t, parseTool(t, `{"paths[*]": fs.read}`), at); strings.Count(got, "\n") != 1023 {
		t.Errorf("1024 paths: got %.200s", got)
	}
}

func TestVerbs(t *testing.T) {
	for _, tt := range []struct{ tool, verbs, surface string }{
		{`{path: fs.read}`, "fs.read", "fs.read"},
		{`{a: [fs.read, fs.delete], b: fs.write, c: fs.read}`, "fs.read & fs.delete & fs.write", "fs.delete fs.read fs.write"},
		{`{a: fs.read, out: {verb: fs.write, optional: true}}`, "fs.read", "fs.read fs.write"},
		{`{a: {verb: fs.read, default: .}}`, "fs.read", "fs.read"},
		{`{url: {verb: net, method: m}}`, "net.get | net.post | net.put | net.delete", "net.delete net.get net.post net.put"},
		{`{c: records.update}`, "agent.update | records.update", "agent.update records.update"},
		{`{c: records.read}`, "records.read", "records.read"},
		{`{}`, "tool.invoke", "tool.invoke"},
		{`{a: free, t: secret}`, "tool.invoke", "secret.use tool.invoke"},
		{`{out: {verb: fs.write, optional: true}}`, "fs.write | tool.invoke", "fs.write tool.invoke"},
		{`{requires: [{net.get: a.com}], q: free}`, "net.get", "net.get"},
		{`{cmd: proc.eval, cwd: {in: proc.eval}, env: {env: proc.eval}}`, "proc.eval", "proc.eval"},
		{`{a: fs.read, additional: free}`, "fs.read", "fs.read net.get"},
	} {
		tool := parseTool(t, tt.tool)
		if got := joinVerbs(tool.Verbs()); got != tt.verbs {
			t.Errorf("%s: every call needs %q, want %q", tt.tool, got, tt.verbs)
		}
		if got := joined(tool.Surface(), " "); got != tt.surface {
			t.Errorf("%s: the surface is %q, want %q", tt.tool, got, tt.surface)
		}
		changed := tool.Verbs()
		changed[0][0] = "changed"
		if got := joinVerbs(tool.Verbs()); got != tt.verbs {
			t.Errorf("%s: the verbs can be changed from outside", tt.tool)
		}
	}
}

func joinVerbs(choices [][]capability.Verb) string {
	var parts []string
	for _, c := range choices {
		parts = append(parts, joined(c, " | "))
	}
	return strings.Join(parts, " & ")
}

func joined(verbs []capability.Verb, with string) string {
	var words []string
	for _, v := range verbs {
		words = append(words, string(v))
	}
	return strings.Join(words, with)
}

// TestMapping asks a mapping for its tools.
func TestMapping(t *testing.T) {
	m, _, err := mapping.Parse("m.yml", []byte("server: s\ntools: {t: {path: fs.read}, a: {}}"))
	if err != nil {
		t.Fatal(err)
	}
	if m.Tool("T") != nil || m.Tool("t") == nil {
		t.Error("a tool is found by another name, or not at all")
	}
	if got := strings.Join(m.Names(), " "); got != "a t" {
		t.Errorf("the names are %q", got)
	}
	if m.Server() != "s" {
		t.Errorf("the server is %q", m.Server())
	}
	if pos := m.Tool("t").Pos(); pos.String() != "m.yml:2:9" {
		t.Errorf("the tool stands at %s", pos)
	}
	var none *mapping.Mapping
	if none.Tool("t") != nil || none.Names() != nil || none.Server() != "" {
		t.Error("no mapping says something")
	}
}

// TestUnmapped proves that nothing is known of a tool without a mapping.
func TestUnmapped(t *testing.T) {
	var none *mapping.Tool
	if joinVerbs(none.Verbs()) != "tool.invoke" || joined(none.Surface(), " ") != "tool.invoke" {
		t.Errorf("an unmapped tool needs %v, at most %v", none.Verbs(), none.Surface())
	}
	if none.Arguments() != nil || none.Labels() != nil || none.Pos() != (capability.Pos{}) {
		t.Error("an unmapped tool has something that a mapping says")
	}
	if got := required(t, none, `{"path":"/etc/passwd"}`); got != "tool.invoke s.t" {
		t.Errorf("an unmapped tool needs %s", got)
	}
}

// TestNeedValue proves that a need says which bytes it comes from.
func TestNeedValue(t *testing.T) {
	tool := parseTool(t, `{"tokens[*]": secret, path: fs.read}`)
	needs, err := tool.Require(callOf(t, `{"path":"a","tokens":["x","{{secret:y}}"]}`))
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(needs, func(n mapping.Need) bool { return n.Requirement.Verb() == "secret.use" })
	if at < 0 || string(needs[at].Value.Raw()) != `"{{secret:y}}"` || needs[at].Argument != "tokens[1]" || !needs[at].Handle {
		t.Errorf("the handle is not found where it stands: %+v", needs)
	}
}

func TestRefusedError(t *testing.T) {
	_, err := parseTool(t, `{path: fs.read}`).Require(callOf(t, `{"path":1}`))
	var refused *mapping.Refused
	if !errors.As(err, &refused) || refused.Code != capability.MalformedArguments || refused.Argument != "path" {
		t.Errorf("got %+v", err)
	}
}
