package mapping_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"capgate/capability"
	"capgate/mapping"
)

const kinds = `
server: s
prompts:
  summarise: { file: fs.read, style: free }
  plain: {}
  any: { additional: free, q: free }
resources:
  notes: memory.read
  docs://internal/*: { verb: records.update, dim: path }
  docs://all: [resource.read, memory.read]
  local: { verb: fs.read, tree: true }
  docs: resource.read
  graph: { requires: [memory.read] }
  https://intranet.example/*: [net.get, resource.read]
declares:
  network: { allowedHosts: [a.com] }
`

func parseKinds(t testing.TB) *mapping.Mapping {
	t.Helper()
	m, _, err := mapping.Parse("m.yml", []byte(kinds))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestPrompt(t *testing.T) {
	m := parseKinds(t)
	for _, tt := range []struct{ prompt, args, want string }{
		{"summarise", `{"file":"a.md"}`, "prompt.get s.t\nfs.read a.md @ file"},
		{"summarise", `{"file":"a.md","style":"short"}`, "prompt.get s.t\nfs.read a.md @ file"},
		{"summarise", `{"style":"short"}`, "malformed_arguments: the argument file is missing, and what the tool does without it is not known"},
		{"summarise", `{"file":"a.md","x":"y"}`, "malformed_arguments: the argument x is not one that the tool is known to take"},
		{"summarise", `{"file":["a.md"]}`, "malformed_arguments: the argument file is an array, where text belongs"},
		{"summarise", `{"file":"a.md","style":{"a":1}}`, "malformed_arguments: the argument style is an object, where text belongs"},
		{"summarise", `["a.md"]`, "malformed_arguments: the call has arguments that are an array, not an object"},
		{"plain", ``, "prompt.get s.t"},
		{"plain", `{"a":"b"}`, "malformed_arguments: the argument a is not one that the tool is known to take"},
		{"any", `{"u":"https://a.com/"}`, "prompt.get s.t\nnet.get a.com:443 @ u"},
		{"other", `{"a":"b","c":null}`, "prompt.get s.t"},
		{"other", `{"a":7}`, "malformed_arguments: the argument a is a number, where text belongs"},
		{"other", `{"a":"{{secret:k}}"}`, "scope_violation: the argument a holds the handle of a secret, and no secret is filled in there"},
		{"Summarise", `{"x":"y"}`, "prompt.get s.t"},
	} {
		if got := required(t, m.Prompt(tt.prompt), tt.args); got != tt.want {
			t.Errorf("%s %s:\n got %s\nwant %s", tt.prompt, tt.args, got, tt.want)
		}
	}
	if d := cmp.Diff([][]capability.Verb{{"prompt.get"}, {"fs.read"}}, m.Prompt("summarise").Verbs()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]capability.Verb{"prompt.get"}, (*mapping.Mapping)(nil).Prompt("x").Surface()); d != "" {
		t.Error(d)
	}
}

// TestPromptNames: a name that is made to mislead is no prompt's.
func TestPromptNames(t *testing.T) {
	for _, name := range []string{"", "s.x\u202ey", "s.a\nb", "s.\u200b"} {
		_, err := parseKinds(t).Prompt("x").Require(mapping.Call{Name: name})
		if refused := (*mapping.Refused)(nil); !errors.As(err, &refused) || refused.Code != capability.UnknownTool {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestPromptPossible(t *testing.T) {
	m := parseKinds(t)
	for _, tt := range []struct {
		prompt string
		grants []string
		want   string
	}{
		{"summarise", []string{"prompt.get{names=[\"s.*\"]}", "fs.read{in=/w,paths=[a]}"}, `{"file":"/w/a"}`},
		{"summarise", []string{"prompt.get{names=[\"s.*\"]}"}, "hidden"},
		{"summarise", []string{"fs.read{in=/w}"}, "hidden"},
		{"summarise", []string{"fs.read{in=/w}", "prompt.get{names=[s.x]}"}, "hidden"},
		{"plain", []string{"prompt.get{names=[s.t]}"}, `{}`},
		{"other", []string{"rye.execute.directive{ids=[s.t]}"}, `{}`},
		{"other", []string{"tool.invoke{tools=[\"*\"]}"}, "hidden"},
	} {
		// A ceiling bounds the names of tools, not of prompts.
		ceilings := capability.Chain{{Set: lawSet(t, []string{"tool.invoke{tools=[none]}"})}}
		got, ok := m.Prompt(tt.prompt).Possible(callOf(t, ""), capability.Chain{{Set: lawSet(t, tt.grants)}}, ceilings)
		if !ok {
			got = "hidden"
		}
		if got != tt.want {
			t.Errorf("%s with %v: got %s, want %s", tt.prompt, tt.grants, got, tt.want)
		}
	}
}

func resourced(m *mapping.Mapping, uri string) string {
	needs, err := m.Resource("", uri, capability.View{Cwd: "/w"})
	if err != nil {
		return err.Error()
	}
	text := ""
	for _, n := range needs {
		if text += n.Requirement.String(); n.Requirement.Opaque() != "" {
			text = string(n.Requirement.Verb()) + " never: " + strings.Replace(n.Requirement.Opaque(), "the call names neither the class nor the path of the record", "nokey", 1)
		} else if uri := n.Requirement.Object(); n.Requirement.Verb() == "resource.read" && capability.ReadURI(uri).Odd() != "" {
			text += " or any"
		}
		text += "; "
	}
	return text
}

func TestResource(t *testing.T) {
	m := parseKinds(t)
	for uri, want := range map[string]string{
		"file:///srv/a.md":                       "fs.read /srv/a.md; ",
		"FILE:///srv/a.md":                       "fs.read /srv/a.md; ",
		"file://localhost/srv/a.md":              "fs.read /srv/a.md; ",
		"file:///srv/a%20b":                      "fs.read /srv/a%20b; ",
		"file:///srv/..%2fetc":                   "fs.read never: holds .. and can be read in several ways; ",
		"file://evil.example/a":                  "fs.read never: the URI names another host; ",
		"file:/srv/a":                            "fs.read never: the URI is not of the form file:///path; ",
		"file:srv/a":                             "fs.read never: the URI is not of the form file:///path; ",
		"file:////srv/a":                         "fs.read never: the URI is not of the form file:///path; ",
		"file://":                                "fs.read never: the URI is not of the form file:///path; ",
		"file:///srv/a?x":                        "fs.read never: the URI has more than a path; ",
		"file:///srv/a#x":                        "fs.read never: the URI has more than a path; ",
		`file:///srv\a`:                          "fs.read never: the URI has more than a path; ",
		"https://a.com/x":                        "net.get a.com:443; ",
		"HTTP://a.com/x":                         "net.get a.com:80; ",
		"https://u@a.com/":                       "net.get never: the URL carries a user name; ",
		"https://intranet.example/x":             "net.get intranet.example:443; resource.read https://intranet.example/x; ",
		"notes://a/b":                            "memory.read a/b; ",
		"notes:a":                                "memory.read a; memory.read; ",
		"NOTES://a":                              "memory.read a; ",
		"notes://":                               "memory.read; ",
		"notes://a/../b":                         "memory.read never: the URI holds . or .. as a segment; ",
		"notes://a[::1]/b":                       "memory.read; ",
		"notes://[a].b":                          "memory.read; ",
		"notes://u@a:.b/c":                       "memory.read; ",
		"notes://a:80.b?x":                       "memory.read; ",
		"notes://a:80:1":                         "memory.read; ",
		"notes://[a]/b":                          "memory.read; ",
		"docs://[internal]/a":                    "records.update never: nokey; resource.read docs://[internal]/a or any; memory.read; ",
		"docs://internal:x/a":                    "records.update never: nokey; resource.read docs://internal:x/a or any; memory.read; ",
		"notes://[::1":                           "memory.read; ",
		"notes://a]":                             "memory.read; ",
		"notes://u:p@[::1]:80/b:c":               "memory.read; ",
		"sftp://a/b;.md?x":                       "resource.read sftp://a/b;.md?x or any; ",
		"sftp://a/b;c/d?x;y":                     "resource.read sftp://a/b;c/d?x;y or any; ",
		"notes://a/b;c":                          "memory.read; ",
		"notes://a:/b":                           "memory.read; ",
		"notes://a/b:c":                          "memory.read; ",
		"notes:a:b":                              "memory.read a:b; memory.read b; memory.read a; ",
		"notes://u[x]@[::1]/b[c]":                "memory.read; ",
		"notes://u@a/b?x":                        "memory.read; ",
		"notes:u@a":                              "memory.read; ",
		"notes://a/u@b":                          "memory.read; ",
		"notes://a://b":                          "memory.read; ",
		"notes:a://b":                            "memory.read; ",
		"notes://a/%2E%2e/b":                     "memory.read never: the URI hides a separator or a dot; ",
		"docs://internal/a":                      "records.update  internal/a; ",
		"docs://internal/../all":                 "memory.read never: the URI holds . or .. as a segment; ",
		"docs://all":                             "resource.read docs://all; memory.read all; ",
		"docs://all/x":                           "resource.read docs://all/x; ",
		"docs://a?..":                            "records.update never: nokey; resource.read docs://a?.. or any; memory.read; ",
		"docs://a?x=../b":                        "resource.read docs://a?x=../b; ",
		"docs://a/x?/../../b":                    "memory.read never: the URI holds . or .. as a segment; ",
		"docs://a/x#/./b":                        "memory.read never: the URI holds . or .. as a segment; ",
		"docs://a/..;x/b":                        "memory.read never: the URI holds . or .. as a segment; ",
		"docs://a/..://b":                        "memory.read never: the URI holds . or .. as a segment; ",
		"docs://a@b@c/d":                         "records.update never: nokey; resource.read docs://a@b@c/d or any; memory.read; ",
		"docs://a@b/c@d":                         "records.update never: nokey; resource.read docs://a@b/c@d or any; memory.read; ",
		"imap://a/b;.md":                         "resource.read imap://a/b;.md or any; ",
		"docs://a/b//c/d":                        "records.update never: nokey; resource.read docs://a/b//c/d or any; memory.read; ",
		"docs:///a//b///c?d":                     "records.update never: nokey; resource.read docs:///a//b///c?d or any; memory.read; ",
		"docs:////a":                             "records.update never: nokey; resource.read docs:////a or any; memory.read; ",
		"docs://a/x://b/y:///c":                  "records.update never: nokey; resource.read docs://a/x://b/y:///c or any; memory.read; ",
		"docs://a//b//c//d//e":                   "records.update never: nokey; resource.read docs://a//b//c//d//e or any; memory.read; ",
		"docs://a//b//c//d//e//f":                "records.update never: nokey; resource.read docs://a//b//c//d//e//f or any; memory.read; ",
		"docs://a?/%2fb":                         "records.update never: nokey; resource.read docs://a?/%2fb or any; memory.read; ",
		"docs://a?b=https%3a%2f%2fc%2fd":         "records.update never: nokey; resource.read docs://a?b=https%3a%2f%2fc%2fd or any; memory.read; ",
		"docs://a#b%2fc":                         "resource.read docs://a#b%2fc; ",
		"docs://a?x=%2f..%2fb":                   "memory.read never: the URI holds . or .. as a segment; ",
		`docs://a?x=b\c`:                         `records.update never: nokey; resource.read docs://a?x=b\c or any; memory.read; `,
		`docs://a?x=\..\c`:                       "memory.read never: the URI holds . or .. as a segment; ",
		"docs://a/..%0a/b":                       "memory.read never: the URI holds . or .. as a segment; ",
		"docs://a/..%20/b":                       "memory.read never: the URI holds . or .. as a segment; ",
		"docs://a/..%3bb/c":                      "memory.read never: the URI holds . or .. as a segment; ",
		"docs://a/100%25":                        "records.update never: nokey; resource.read docs://a/100%25 or any; memory.read; ",
		"docs://a/%252e%252e/b":                  "memory.read never: the URI hides a separator or a dot; ",
		"docs://a/%25252525252e":                 "memory.read never: the URI is escaped too often; ",
		"docs://a/..docs:///b":                   "memory.read never: the URI holds its own scheme once more, which some servers take out wherever it stands; ",
		"docs://a/docs://a../b":                  "memory.read never: the URI holds its own scheme once more, which some servers take out wherever it stands; ",
		"docs://a?DOCS%3a//b":                    "memory.read never: the URI holds its own scheme once more, which some servers take out wherever it stands; ",
		"docs://a?x=1&y=2&x=3#z":                 "records.update never: nokey; resource.read docs://a?x=1&y=2&x=3#z or any; memory.read; ",
		"notes://a//b":                           "memory.read; ",
		"notes://a?x=1&%78=2":                    "memory.read; ",
		"graph:all":                              "memory.read; ",
		"local:///srv":                           "fs.read /srv; ",
		"custom://x":                             "resource.read custom://x; ",
		"custom://x/../y":                        "resource.read never: the URI holds . or .. as a segment; ",
		"custom://{x}":                           "malformed_arguments: the argument uri is a template whose variables are not filled in",
		"custom://{{secret:x}}":                  "malformed_arguments: the argument uri is a template whose variables are not filled in",
		"":                                       "malformed_arguments: the argument uri is no URI",
		"a.md":                                   "malformed_arguments: the argument uri is no URI",
		"c:/a":                                   "malformed_arguments: the argument uri is no URI",
		"custom://x y":                           "malformed_arguments: the argument uri is no URI",
		"custom://x\u202ey":                      "malformed_arguments: the argument uri is no URI",
		"custom://\xff":                          "malformed_arguments: the argument uri is no URI",
		"custom://" + string(make([]byte, 9000)): "limit_exceeded: the argument uri is longer than 8192 bytes",
	} {
		if got := resourced(m, uri); got != want {
			t.Errorf("%.40q:\n got %s\nwant %s", uri, got, want)
		}
	}
	if got := resourced(nil, "notes://a"); got != "resource.read notes://a; " {
		t.Error(got)
	}
}

func TestDeclaration(t *testing.T) {
	m := parseKinds(t)
	var read string
	specs, _, err := m.Declaration(func(node *yaml.Node, file string) ([]capability.Spec, []capability.Finding, error) {
		read = file + " " + node.Content[0].Value
		return []capability.Spec{{Verb: "net.get", Bare: true}}, nil, nil
	})
	if err != nil || !m.Declares() || read != "m.yml network" || len(specs) != 1 {
		t.Errorf("%q, %v, %v", read, specs, err)
	}
	for _, none := range []*mapping.Mapping{nil, builtin(t, "memory")} {
		if specs, _, err := none.Declaration(nil); specs != nil || err != nil || none.Declares() {
			t.Errorf("%v, %v", specs, err)
		}
	}
}

// What a server may take for a resource that an entry is of needs what that entry says.
func TestResourceSpelling(t *testing.T) {
	m := parseKinds(t)
	const internal, whole = "records.update  internal/a; ", "records.update never: nokey; "
	for uri, want := range map[string]string{
		"https://INTRANET.example/x":      "resource.read https://INTRANET.example/x; ",
		"https://intranet.example:443/x":  "resource.read https://intranet.example:443/x; ",
		"https://intranet.example:0443/x": "net.get never",
		"https://intranet.example":        "resource.read https://intranet.example; ",
		"https://intranet.example?x":      "resource.read https://intranet.example?x; ",
		"docs:internal/a":                 "records.update  internal/a; records.update  ternal/a; ",
		"docs:///internal/a":              "records.update  /internal/a; ",
		"docs://Internal/a":               "records.update  Internal/a; ",
		"docs://%69nternal/a":             whole,
		"docs://x@internal/a":             whole,
		"docs://internal:/a":              whole,
		"docs://internal:80/a":            whole,
		"docs://x%3f@internal/a":          whole,
		"docs://x%23%40y@internal/a":      whole,
		"docs:x://internal/a":             whole,
		"docs:///internal/a://b":          whole,
		"docs://al%6C":                    "memory.read; ",
		"docs://docs://internal/a":        "memory.read never: the URI holds its own scheme once more",
		"docs://x//internal/a":            whole,
		"docs:xxinternal/a":               "records.update  xxinternal/a; records.update  internal/a; ",
		"docs://internal;x/a":             whole,
		"docs://internal:x?y":             whole,
		"docs://all%20":                   "memory.read",
		"docs://all/":                     "memory.read all/; ",
		"docs://all?x":                    "memory.read all?x; ",
		"docs://all#x":                    "memory.read all#x; ",
		"docs:all":                        "memory.read all; memory.read l; ",
	} {
		if got := resourced(m, uri); !strings.Contains(got, want) && !strings.Contains(got, "malformed") {
			t.Errorf("%q needs %s, and not %s", uri, got, want)
		}
	}
	for uri, want := range map[string]string{
		"https://intranet.example:8443/x": "net.get intranet.example:8443; ",
		"https://intranet.example.com/x":  "net.get intranet.example.com:443; ",
		"docs://internals/a":              "resource.read docs://internals/a; ",
		"docs://a/internal/a":             "resource.read docs://a/internal/a; ",
		"docs://allx":                     "resource.read docs://allx; ",
	} {
		if got := resourced(m, uri); got != want {
			t.Errorf("%q needs %s, want %s", uri, got, want)
		}
	}
}

// An entry of all that a scheme has is of that however it is spelt, and decides alone on what is written like it.
func TestResourceOfAll(t *testing.T) {
	m, _, err := mapping.Parse("m.yml", []byte("server: s\ntools: {}\nresources:\n  docs://*: { requires: [memory.read] }\n  ws://inner/*: { requires: [memory.read] }\n"))
	if err != nil {
		t.Fatal(err)
	}
	for uri, want := range map[string]string{
		"docs://a/b":          "memory.read; ",
		"docs://did:a:b/c%2f": "memory.read; ",
		"docs:a":              "memory.read; resource.read docs:a; ",
		"docs:/a":             "memory.read; resource.read docs:/a; ",
		"docs:":               "memory.read; resource.read docs:; ",
		"docs:abc":            "memory.read; resource.read docs:abc; ",
		"doc://a":             "resource.read doc://a; ",
		"ws://a/é":            "resource.read ws://a/é; ",
		"ws://é@b/":           "resource.read ws://é@b/; ",
		"ws://ｉnner/a":        "memory.read; resource.read ws://ｉnner/a or any; ",
		"ws:///inner:/a":      "memory.read; resource.read ws:///inner:/a or any; ",
		"ws:inner:1/a":        "memory.read; resource.read ws:inner:1/a or any; ",
		"ftp://é/a":           "resource.read ftp://é/a or any; ",
	} {
		if got := resourced(m, uri); got != want {
			t.Errorf("%q needs %s, want %s", uri, got, want)
		}
	}
}

// What needs more by an entry needs that also where another entry, of all that its scheme has, does not look at the URI.
func TestResourceBesideAll(t *testing.T) {
	m, _, err := mapping.Parse("m.yml", []byte(`server: s
tools: {}
resources:
  docs://inner/*: { requires: [memory.write] }
  docs://a+b: { requires: [memory.write] }
  docs://*: { requires: [memory.read] }
`))
	if err != nil {
		t.Fatal(err)
	}
	for uri, inner := range map[string]bool{
		"docs://inner/a":              true,
		"docs://inner%2fa":            true,
		"docs://inner/a%2Fb":          true,
		"docs://a/inner%2fa":          false,
		"docs://docs://inner/a":       true,
		"docs://..docs:///inner/a":    true,
		"docs://docs%3a%2f%2finner/a": true,
		"docs://x//inner/a":           true,
		"docs://x//inner?a":           true,
		"docs:xxinner/a":              true,
		"docs://inner;x/a":            true,
		"docs://x/..;y/inner/a":       true,
		"docs://inner:x/a":            true,
		"docs://[inner]/a":            true,
		"docs://inner/../a":           true,
		"docs://x%2fy/../inner/a":     true,
		`docs://x%2f\y/../inner/a`:    true,
		`docs://:..\x/inner/a`:        true,
		"docs:///inner/a/..//../b":    true,
		"docs://%09inner/a":           true,
		"docs://a%20b":                true,
		"docs://a%20b%20":             true,
		"docs://x/inner/a":            false,
		"docs://inn:er/a":             true,
		"docs://inners?inner/a":       true,
		"docs://inners?inner=a":       false,
		"docs://inn*/a":               true,
		"docs://ｉnner/a":              true,
		"docs://ínner/a":              true,
		"docs://inner./a":             true,
		"docs://~inner/a":             true,
		"docs://inne%72/a":            true,
		"docs://%20inner/a":           true,
		"docs://$inner/a":             true,
		"docs://büro/a":               false,
		"docs://b%C3%BCro/a":          false,
		"docs://a/%E2%80%8Binner":     true,
	} {
		if got := resourced(m, uri); strings.Contains(got, "memory.write") != inner {
			t.Errorf("%q needs %s", uri, got)
		}
	}
	if got := resourced(m, "docs://inner/docs://inner../a"); got != "memory.write; memory.read; " {
		t.Error("an entry decides alone on what may lead out of it:", got)
	}
}

// A URI that is an argument is read as strictly as one that is asked for.
func TestResourceArgument(t *testing.T) {
	tool := parseTool(t, `{uri: resource.read, n: {verb: memory.read, optional: true}}`)
	for _, uri := range []string{"docs://a/../b", "docs://a/%2e%2E/b", "docs://a/%2fb", `docs://a/..\\b`} {
		needs, err := tool.Require(callOf(t, `{"uri":"`+uri+`","n":"a/../b"}`))
		if err != nil || !slices.ContainsFunc(needs, func(n mapping.Need) bool { return n.Requirement.Opaque() != "" && n.Argument == "uri" }) {
			t.Errorf("%s needs %v, %v", uri, needs, err)
		}
	}
	if _, err := tool.Require(callOf(t, `{"uri":"`+strings.Repeat("a", mapping.MaxURI+1)+`"}`)); err == nil || !strings.Contains(err.Error(), "is longer than 8192 bytes") {
		t.Error("a name is of any length:", err)
	}
	needs, err := tool.Require(callOf(t, `{"uri":"docs://a/b"}`))
	if err != nil || len(needs) != 1 || needs[0].Requirement.Opaque() != "" {
		t.Errorf("needs %v, %v", needs, err)
	}
}

// FuzzResource: what a URI needs is never nothing.
func FuzzResource(f *testing.F) {
	for _, uri := range []string{"file:///a", "https://a.com/", "notes://a/b", "docs://internal/..", "x:"} {
		f.Add(uri)
	}
	m := parseKinds(f)
	f.Fuzz(func(t *testing.T, uri string) {
		needs, err := m.Resource("", uri, capability.View{Cwd: "/w"})
		if refused := (*mapping.Refused)(nil); err != nil && !errors.As(err, &refused) {
			t.Fatalf("%q: %v is no refusal", uri, err)
		}
		if err == nil && len(needs) == 0 || err != nil && len(needs) > 0 {
			t.Fatalf("%q: %d needs and %v", uri, len(needs), err)
		}
	})
}
