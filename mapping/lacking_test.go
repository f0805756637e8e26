package mapping_test

import (
	"slices"
	"testing"

	"capgate/capability"
	"capgate/mapping"
)

// TestLacking: it says of every tool what can be read off its Verbs.
func TestLacking(t *testing.T) {
	m, _, err := mapping.Parse("x.yml", []byte(`server: x
tools:
  read: { path: fs.read }
  both: { path: fs.read, url: net.get }
  word: { text: free }
`))
	if err != nil {
		t.Fatal(err)
	}
	all := []capability.Verb{"fs.read", "net.get", "tool.invoke"}
	for _, name := range append(m.Names(), "another") {
		tool := m.Tool(name)
		for held := range 1 << len(all) {
			holds := func(v capability.Verb) bool { i := slices.Index(all, v); return i >= 0 && held>>i&1 == 1 }
			var want capability.Verb
			for _, choice := range tool.Verbs() {
				if want == "" && !slices.ContainsFunc(choice, holds) {
					want = choice[0]
				}
			}
			if got := tool.Lacking(holds); got != want {
				t.Errorf("%s lacks %q with %03b, want %q", name, got, held, want)
			}
		}
	}
}
