package mapping_test

import (
	"strings"
	"testing"

	"capgate/mapping"
)

// A tool may take a name without a scheme for one of any that its server knows.
func TestResourceArgumentWithoutScheme(t *testing.T) {
	m, _, err := mapping.Parse("m.yml", []byte(`server: s
tools:
  read: { uri: resource.read }
resources:
  docs://inner/*: { requires: [memory.write] }
  notes://a/*: memory.read
  file:///srv/*: [fs.read, memory.read]
`))
	if err != nil {
		t.Fatal(err)
	}
	for uri, want := range map[string]string{
		"b/c":                "resource.read b/c; ",
		"inner/a":            "memory.write; resource.read inner/a; ",
		"/inner/a":           "memory.write; resource.read /inner/a; ",
		"Inner/a?x=1":        "memory.write; resource.read Inner/a?x=1; ",
		"a/b":                "memory.read a/b; memory.read b; resource.read a/b; ",
		"srv/a":              "fs.read never: the name of the resource has no scheme; memory.read srv/a; memory.read v/a; resource.read srv/a; ",
		"//inner/a":          "memory.write",
		"docs%3A//inner/a":   "memory.write",
		"docs%3A%2F%2Finner": "never",
	} {
		needs, err := m.Tool("read").Require(callOf(t, `{"uri":"`+uri+`"}`))
		got := ""
		for _, n := range needs {
			if got += n.Requirement.String() + "; "; n.Requirement.Opaque() != "" {
				got = strings.TrimSuffix(got, n.Requirement.String()+"; ") + string(n.Requirement.Verb()) + " never: " + n.Requirement.Opaque() + "; "
			}
		}
		if err != nil || got != want && !(strings.Contains(got, want) && !strings.HasSuffix(want, "; ")) {
			t.Errorf("%s needs %s, not %s: %v", uri, got, want, err)
		}
	}
}

// TestKeyBehindColons: where a URI has no host, some look at what stands behind its last colon.
func TestKeyBehindColons(t *testing.T) {
	m := parseKinds(t)
	for uri, want := range map[string]string{
		"notes:abc:x:inner": "memory.read abc:x:inner; memory.read c:x:inner; memory.read abc; memory.read inner; memory.read c; ",
		"notes:abc%3Ainner": "memory.read; ",
		"notes://a?x=b:c":   "memory.read a?x=b:c; memory.read a; ",
	} {
		if got := resourced(m, uri); got != want {
			t.Errorf("%s needs %s", uri, got)
		}
	}
}

// TestResourceMayBe: what some servers take for what an entry is of, and what none does.
func TestResourceMayBe(t *testing.T) {
	m, _, err := mapping.Parse("m.yml", []byte(`server: s
tools: {}
resources:
  docs://inner/*: { requires: [memory.write] }
  docs://user/17: { requires: [memory.write] }
  docs://my-notes*: { requires: [memory.write] }
  docs://тайна/*: { requires: [memory.write] }
  https://a-b.com/x/*: { requires: [memory.write] }
`))
	if err != nil {
		t.Fatal(err)
	}
	for uri, may := range map[string]bool{
		"docs://inner!/a": true, "docs://inne_/a": true, "docs://i.ner/a": true, "docs://_inner/a": true, "docs://innжer/a": true, "docs://ж/inner/a": true, "docs://inner,a": true, "docs://inner_a": true,
		"docs://(inner)/a": true, "docs://i\u20ddnner/a": true, "docs:x:inner": true,
		"docs://user/017": true, "docs://user/17a": true, "docs://user/17.0": true, "docs://user/+17": true, "docs://user/1_7": true, "docs://user/\u0661\u0667": true,
		"docs://my_notes/a": true, "docs://mynotes": true, "docs://my.notes-2": true,
		"docs://тайна!/a": true, "https://a-b.com/x_/a": true,
		"docs://inner.md": false, "docs://in-er/a": false, "docs://inners/a": false, "docs://x/inner/a": false, "docs://other_one/a": false, "docs://документ/a": false,
		"docs://user/170": false, "docs://user/1": false, "docs://user/x17": false, "docs://user/17/a": false,
		"docs://mynote": false, "docs://тайник/a": false, "https://ab.com/x/a": false, "https://a.b.com/x/a": false,
	} {
		if got := resourced(m, uri); strings.Contains(got, "memory.write") != may {
			t.Errorf("%s needs %s", uri, got)
		}
	}
	long, _, err := mapping.Parse("m.yml", []byte("server: s\ntools: {}\nresources:\n  docs://"+strings.Repeat("a", 1000)+"b: { requires: [memory.write] }\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := resourced(long, "docs://"+strings.Repeat("_", 3000)+"c"); !strings.Contains(got, "memory.write") {
		t.Error("what takes too long to compare needs nothing")
	}
}
