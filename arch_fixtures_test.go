package capgate_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// fixtures holds small trees, each of which keeps or breaks one law. Its header
// says which, and every breach that must be found:
//
//	law: imports
//	breach: wire/read.go:3: wire may not import gate
const fixtures = "testdata/arch"

// TestLawsCanFail proves of each law that it finds what it is there to find,
// and nothing else.
func TestLawsCanFail(t *testing.T) {
	names, err := filepath.Glob(fixtures + "/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	broken := map[string]bool{}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			law, want, fsys := readFixture(t, name)
			tr, err := loadTree(fsys)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, b := range law.check(tr) {
				got = append(got, b.String())
			}
			broken[law.name] = broken[law.name] || len(want) > 0
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("breaches of %q (-want +got):\n%s", law.name, diff)
			}
		})
	}
	for _, l := range laws() {
		if !broken[l.name] {
			t.Errorf("no fixture in %s breaks the law %q", fixtures, l.name)
		}
	}
}

func readFixture(t *testing.T, name string) (law, []string, fstest.MapFS) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	archive := txtar.Parse(data)
	says := fields(archive.Comment)
	if len(says["law"]) != 1 {
		t.Fatalf("%s must name one law", name)
	}
	fsys := fstest.MapFS{"docs/design.md": {Data: []byte("No dependency yet.\n")}}
	for _, f := range archive.Files {
		fsys[f.Name] = &fstest.MapFile{Data: grown(f.Data)}
	}
	return lawNamed(t, says["law"][0]), says["breach"], fsys
}

// fields reads the lines "key: value" of a header; a key may be repeated.
func fields(header []byte) map[string][]string {
	all := map[string][]string{}
	for line := range strings.Lines(string(header)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			all[key] = append(all[key], value)
		}
	}
	return all
}

func lawNamed(t *testing.T, name string) law {
	t.Helper()
	for _, l := range laws() {
		if l.name == name {
			return l
		}
	}
	t.Fatalf("there is no law %q", name)
	return law{}
}

// grown writes out the lines of a fixture that stand for many: "N× text"
// becomes text N times, %d in it counting from 1.
func grown(data []byte) []byte {
	var out strings.Builder
	for line := range strings.Lines(string(data)) {
		var n int
		if _, err := fmt.Sscanf(line, "%d×", &n); err != nil {
			out.WriteString(line)
			continue
		}
		_, text, _ := strings.Cut(line, "× ")
		for i := range n {
			out.WriteString(strings.ReplaceAll(text, "%d", fmt.Sprint(i+1)))
		}
	}
	return []byte(out.String())
}
