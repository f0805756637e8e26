package mapping_test

import (
	"errors"
	"strings"
	"testing"

	"capgate/capability"
	"capgate/mapping"
	"capgate/wire"
)

// FuzzRequire sends any arguments to any tool of the built-in mappings, and to
// an unmapped one. A call is read and needs something, or it is refused; and the
// handle of a secret gets through nowhere but where it is asked for.
func FuzzRequire(f *testing.F) {
	const every = "server: s\ntools: {t: {a: fs.read, b: {verb: fs.write, tree: true, optional: true}, \"c[*].d\": [memory.write, fs.delete], u: {verb: net, method: m, default: GET}, h: {headers: [Accept]}, s: secret, x: {argv0: proc.exec}, \"y[*]\": {argv: proc.exec}, w: {in: proc.exec}, e: {env: proc.exec}, additional: free}}"
	own, _, err := mapping.Parse("m", []byte(every))
	if err != nil {
		f.Fatal(err)
	}
	tools := []*mapping.Tool{nil, own.Tool("t")}
	for _, name := range mapping.Builtins() {
		m := builtin(f, name)
		for _, tool := range m.Names() {
			tools = append(tools, m.Tool(tool))
		}
	}
	for _, seed := range []string{
		`{}`, `{"path":"a"}`, `{"paths":["a",null]}`, `{"a":"x","c":[{"d":"k"}],"u":"https://a.com","x":"git"}`, `{"url":"https://a.com","headers":{"Accept":"x"}}`,
		`{"s":"{{secret:a}}"}`, `{"path":"\u007b{secret:a}}"}`, `{"edits":[{"oldText":"{{secret:a}}"}]}`, `[]`, `null`, `{"a":{"b":[[{"c":1e9}]]}}`,
		`{"a":"..","b":"%2e%2e/x","c":[],"u":"http:x","m":"PATCH","x":"","y":[""],"w":"~","e":{"A":"b"},"z":"ftp://x"}`,
	} {
		for i := range tools {
			f.Add(uint8(i), []byte(seed))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, args []byte) {
		if doc, err := wire.Parse(args); err == nil {
			checkRequire(t, tools[int(which)%len(tools)], doc.Root())
		}
	})
}

func checkRequire(t *testing.T, tool *mapping.Tool, args wire.Value) {
	t.Helper()
	needs, err := tool.Require(mapping.Call{Name: "s.t", Args: args, View: capability.View{Cwd: "/w", Home: "/h"}})
	if err != nil {
		if refused := (*mapping.Refused)(nil); !errors.As(err, &refused) || refused.Code == "" || len(needs) > 0 {
			t.Fatalf("%s: refused by %v with %d needs", args.Raw(), err, len(needs))
		}
		return
	}
	if len(needs) == 0 {
		t.Fatalf("%s: needs nothing", args.Raw())
	}
	honoured := 0
	for _, n := range needs {
		if n.Requirement.Verb() == "secret.use" {
			honoured++
		}
	}
	if found := handles(args); found != honoured {
		t.Fatalf("%s: %d handles in the call, %d asked for", args.Raw(), found, honoured)
	}
}

// handles counts the handles of secrets in every text of a value.
func handles(v wire.Value) int {
	text, _ := v.Str()
	n := strings.Count(text, "{{secret:")
	for key, member := range v.Members() {
		n += handles(key) + handles(member)
	}
	for elem := range v.Elems() {
		n += handles(elem)
	}
	return n
}

// FuzzParse reads any text as a mapping. What is accepted can be asked.
func FuzzParse(f *testing.F) {
	for _, name := range mapping.Builtins() {
		text, err := mapping.Source(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("server: s\ntools: {t: {\"a[*].b\": [fs.read, {in: proc.exec}], c: {verb: net, method: m, default: GET}, requires: [{net.get: a.com}]}}"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, _, err := mapping.Parse("m", text)
		var invalid *mapping.Invalid
		if err != nil && (!errors.As(err, &invalid) || m != nil) {
			t.Fatalf("%q: %v is no error of the mapping", text, err)
		}
		for _, name := range m.Names() {
			tool := m.Tool(name)
			if len(tool.Verbs()) == 0 {
				t.Fatalf("%q: every call of %q needs nothing", text, name)
			}
			needs, err := tool.Require(mapping.Call{Name: "s.t", View: capability.View{Cwd: "/w"}})
			if err == nil && len(needs) == 0 {
				t.Fatalf("%q: a call of %q needs nothing", text, name)
			}
		}
	})
}
