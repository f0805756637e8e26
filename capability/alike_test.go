package capability_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"capgate/capability"
)

// TestMayBe: what some servers take for what is in a place, and what none does.
func TestMayBe(t *testing.T) {
	for _, test := range []struct {
		place string
		whole bool
		uri   string
		may   bool
	}{
		{"docs:/inner/", false, "docs://inner/a", true},
		{"docs:/inner/", false, "docs://inner!/a", true},
		{"docs:/inner/", false, "docs://inne_/a", true},
		{"docs:/inner/", false, "docs://i.ner/a", true},
		{"docs:/inner/", false, "docs://innжer/a", true},
		{"docs:/inner/", false, "docs://ж/inner/a", true},
		{"docs:/inner/", false, "docs://inner,a", true},
		{"docs:/inner/", false, "docs://inner", true},
		{"docs:/inner/", false, "docs://inners/a", false},
		{"docs:/inner/", false, "docs://in-er/a", false},
		{"docs:/inner/", false, "docs://x/inner/a", false},
		{"docs:/user/17/", true, "docs://user/17", true},
		{"docs:/user/17/", true, "docs://user/017", true},
		{"docs:/user/17/", true, "docs://user/17a", true},
		{"docs:/user/17/", true, "docs://user/1_7", true},
		{"docs:/user/17/", true, "docs://user/170", false},
		{"docs:/user/17/", true, "docs://user/x17", false},
		{"docs:/user/17/", true, "docs://user/17/a", false},
		{"docs:/user/017/", true, "docs://user/17", true},
		{"docs:/my-notes", false, "docs://my_notes/a", true},
		{"docs:/my-notes", false, "docs://mynotes", true},
		{"docs:/my-notes", false, "docs://mynote", false},
		{"https:/a-b.com/x/", false, "https://a-b.com/x_/a", true},
		{"https:/a-b.com/x/", false, "https://ab.com/x/a", false},
		{"docs:/" + strings.Repeat("a", 1000) + "b/", true, "docs://" + strings.Repeat("_a", 1000), false},
		{"docs:/" + strings.Repeat("a", 2000) + "b/", true, "docs://" + strings.Repeat("_a", 2000), true}, // which takes too long
	} {
		if got := capability.ReadURI(test.uri).MayBe(test.place, test.whole); got != test.may {
			t.Errorf("%.60s may be %.60s: %v", test.uri, test.place, got)
		}
	}
}

// TestMayBeOfMany: what would take too long to tell from many places, as servers and agents may have it, is
// taken for one of them. What is told from each at once is none of thousands.
func TestMayBeOfMany(t *testing.T) {
	long := "docs:/u@h:1/" + strings.Repeat("_", 100)
	uri := capability.ReadURI("docs://u@h:1/" + strings.Repeat("_", 100) + "y")
	if uri.MayBe(long+"x/", true) {
		t.Error("it is taken for the first one")
	}
	if !slices.ContainsFunc(make([]int, 400), func(int) bool { return uri.MayBe(long+"x/", true) }) {
		t.Error("it was compared for as long as it took")
	}
	uri = capability.ReadURI("docs://notes/my_report_of-today_(1).txt")
	for i := range 16 << 10 {
		if place := fmt.Sprintf("docs:/notes/my_report_of-%05d.txt/", i); uri.MayBe(place, true) {
			t.Fatal("it is taken for", place)
		}
	}
}

// TestUnmarked: what is left of a URI to who leaves out marks, and of one to who leaves out more.
func TestUnmarked(t *testing.T) {
	for uri, want := range map[string]string{
		"docs://in-ner/a_b": "docs:/inner/ab",
		"docs://in,a/жb.c":  "docs:/ina/жbc docs:/in/a/bc",
		"docs://a/SKILL.md": "docs:/a/skillmd",
		"docs://(+)/!":      "docs:/( )/! docs:",
		"docs://u@h:80/x":   "docs:/u@h:80/x docs:/uh80/x docs:/h:80/x docs:/h80/x docs:/u@h/x docs:/uh/x docs:/h/x",
	} {
		if got := strings.Join(capability.ReadURI(uri).Unmarked(), " "); got != want {
			t.Errorf("%s is %s, not %s", uri, got, want)
		}
	}
}
