package builtin_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"capgate/builtin"
)

const nothingFound = "[nothing was found]\n"

// TestGlob: which paths a pattern finds, and by how many ways it gets there.
func TestGlob(t *testing.T) {
	root := tree(t, "a/b/c.go=", "a/b/b/d.go=", "a/c.go=", "c.go=", "x/")
	conn := open(t, "fs", builtin.Options{Root: root, Decide: everything(t)})
	for _, c := range []struct{ path, pattern, want string }{
		{".", "", "a a/b a/b/b a/b/b/d.go a/b/c.go a/c.go c.go x"},
		{".", "*", "a a/b a/b/b a/b/b/d.go a/b/c.go a/c.go c.go x"},
		{".", "**", "a a/b a/b/b a/b/b/d.go a/b/c.go a/c.go c.go x"},
		{".", "c.go", "a/b/c.go a/c.go c.go"},
		{".", "[^a-c]*", "a/b/b/d.go x"},
		{".", "*/c.go", "a/c.go"},
		{".", "**/c.go", "a/b/c.go a/c.go c.go"},
		{".", "a/**", "a a/b a/b/b a/b/b/d.go a/b/c.go a/c.go"},
		{".", "a/**/c.go", "a/b/c.go a/c.go"},
		{".", "**/b/*", "a/b/b a/b/b/d.go a/b/c.go"},
		{".", "**/b/**/**/d.go", "a/b/b/d.go"},
		{".", "**/b/**/b/*.go", "a/b/b/d.go"},
		{".", "a/b/", ""},
		{".", "/a", ""},
		{"a", "b/*", "a/b/b a/b/c.go"},
		{"a", "a/b/*", ""},
		{"a/b", "**/?.go", "a/b/b/d.go a/b/c.go"},
	} {
		got := call(t, conn, "search", fmt.Sprintf(`{"path":%q,"pattern":%q}`, c.path, c.pattern)).text()
		got = strings.TrimPrefix(got, nothingFound)
		if got = strings.Join(strings.Fields(got), " "); got != c.want {
			t.Errorf("%s in %s: %q, want %q", c.pattern, c.path, got, c.want)
		}
	}
}

// TestGlobWork: no pattern takes long over what one search looks at, however often it
// goes back.
func TestGlobWork(t *testing.T) {
	root := tree(t, "wide/")
	deep, long := root.Dir+"/deep", strings.Repeat("a", 240)
	for i := range 40 {
		deep += "/" + long[:80]
		if err := errors.Join(os.MkdirAll(deep, 0o755), os.WriteFile(deep+"/x", nil, 0o644)); err != nil {
			t.Fatal(err)
		}
		for j := range 60 {
			name := fmt.Sprintf("%s/wide/%s-%d-%d", root.Dir, long, i, j)
			if err := os.WriteFile(name, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	conn := open(t, "fs", builtin.Options{Root: root, Decide: everything(t)})
	class := "*[" + strings.Repeat("A-B", 78) + "]x"
	for _, c := range []struct{ path, pattern, want string }{
		{"deep", class, ""},
		{"deep", "**/a*/" + class, ""},
		{"deep", "**/" + strings.Repeat("*a*/", 62) + "x", ""},
		{"deep", strings.Repeat("**/*a/", 42) + "y", ""},
		{"wide", class, "error: the pattern takes too long: search in a smaller directory, or for less"},
		{"wide", "*-7-7", "wide/" + long + "-7-7\n"},
		{".", strings.Repeat("a", 257), "error: the argument pattern is longer than 256 bytes"},
	} {
		begun := time.Now()
		if got := call(t, conn, "search", fmt.Sprintf(`{"path":%q,"pattern":%q}`, c.path, c.pattern)).text(); strings.TrimPrefix(got, nothingFound) != c.want {
			t.Errorf("%s: %.200q, want %.200q", c.pattern, got, c.want)
		}
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("%s: it took %v", c.pattern, took)
		}
	}
}
