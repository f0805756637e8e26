package capability_test

import (
	"slices"
	"testing"

	"capgate/capability"
)

// TestSpecialRequirement: what no wildcard covers is told by its name or address.
func TestSpecialRequirement(t *testing.T) {
	for text, want := range map[string]bool{
		"net.get{url=http://169.254.169.254/}": true,
		"net.get{url=http://localhost:8080/}":  true,
		"net.get{url=http://printer.local/}":   true,
		"net.get{url=http://[::1]/}":           true,
		"net.get{url=https://example.com/}":    false,
		"net.get{url=https://8.8.8.8/}":        false,
		"net.get{url=ftp://localhost/}":        false, // nobody can tell where it leads
		"fs.read{path=/localhost}":             false,
		"tool.invoke{tool=localhost}":          false,
	} {
		need, err := capability.ParseRequirement(text, capability.View{Cwd: "/"})
		if err != nil {
			t.Fatal(err)
		}
		if got := need.Special(); got != want {
			t.Errorf("%s: special is %v", text, got)
		}
	}
}

// TestCanonical: what is recorded of a requirement is what was decided on.
func TestCanonical(t *testing.T) {
	v := capability.View{Cwd: "/w", Home: "/home/u"}
	for _, c := range []struct {
		text, canonical, dir string
		also                 []string
	}{
		{"fs.read{path=a//b/../c}", "/w/a/c", "", nil},
		{"fs.read{path=a/}", "/w/a", "", nil},
		{"fs.read{path=~/x}", "/w/~/x", "", []string{"/home/u/x"}},
		{"fs.read{path=a*}", "/w/a*", "", nil},
		{"fs.read{tree=a}", "/w/a{,/**}", "", nil},
		{"fs.read{glob=a/*.go}", "/w/a/*.go", "", nil},
		{"fs.read{glob=~/*.go}", "/w/~/*.go", "", []string{"/home/u/*.go"}},
		{"fs.read{glob=../*}", "../*", "", nil},
		{"net.get{url=HTTPS://Example.com/x}", "example.com:443", "", nil},
		{"proc.exec{argv=[git,\"a b\",\"\"]}", `git "a b" ""`, "/w", nil},
		{"proc.exec{command=\"git log | sh\"}", "git log | sh", "/w", nil},
		{"proc.eval{command=\"ls a\",cwd=src}", "ls a", "/w/src", nil},
		{"proc.eval{command=\" git  log | sh\"}", " git  log | sh", "/w", nil},
		{"memory.read{key=k}", "k", "", nil},
	} {
		need, err := capability.ParseRequirement(c.text, v)
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		if got := need.Canonical(); got != c.canonical {
			t.Errorf("%s: canonical is %q, not %q", c.text, got, c.canonical)
		}
		if got := need.Also(); !slices.Equal(got, c.also) {
			t.Errorf("%s: also is %q, not %q", c.text, got, c.also)
		}
		if got := need.Dir(); got != c.dir {
			t.Errorf("%s: runs in %q, not %q", c.text, got, c.dir)
		}
	}
}

// TestWideAddresses: a range of every address is wider than any public host.
func TestWideAddresses(t *testing.T) {
	for text, wide := range map[string]bool{
		"net.get{hosts=[0.0.0.0/0]}": true, "net.get{hosts=[\"::/0\"]}": true, "net.get{hosts=[10.0.0.0/8]}": false, "net.get{hosts=[0.0.0.0]}": false,
	} {
		for g := range compile(t, text).All() {
			if (g.Wide() != "") != wide || g.Inert() != "" {
				t.Errorf("%s: wide because %q, inert because %q", text, g.Wide(), g.Inert())
			}
		}
	}
}
