package mapping_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"capgate/capability"
	"capgate/capability/hostfs"
	"capgate/mapping"
)

// slow is a file system in which each look costs something.
type slow struct {
	hostfs.FS
	cost int
}

func (slow) Real(string) (string, error) { return "", errors.New("nobody counts this") }

func (s slow) Within(path string, effort *int) (string, error) {
	if *effort -= s.cost; *effort < 0 {
		return "", errors.New("it takes too long")
	}
	return path, nil
}

// TestLookups: the paths of one call are looked up with one effort, whatever names them.
func TestLookups(t *testing.T) {
	for _, test := range []struct {
		role string
		cost int
		want capability.Code
	}{
		{`{ "p[*]": fs.read }`, 1000, ""},
		{`{ "p[*]": fs.read }`, 1 << 12, capability.LimitExceeded},
		{`{ "p[*]": { verb: fs.read, tree: true } }`, 1 << 12, capability.LimitExceeded},
		{`{ p: proc.exec }`, 1 << 12, capability.LimitExceeded},
	} {
		words := make([]string, 1000)
		for i := range words {
			words[i] = fmt.Sprintf(`"/w/%d"`, i)
		}
		words[0] = `"ls"`
		c := callOf(t, `{"p":[`+strings.Join(words, ",")+`]}`)
		c.View.FS = slow{cost: test.cost}
		needs, err := parseTool(t, test.role).Require(c)
		refused := (*mapping.Refused)(nil)
		switch errors.As(err, &refused); {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", test.role, err)
		case test.want != "" && (refused == nil || refused.Code != test.want):
			t.Errorf("%s: %d needs, %v", test.role, len(needs), err)
		}
	}
}

// TestLookupsOfResource: so are the ways in which the address of a file may be read.
func TestLookupsOfResource(t *testing.T) {
	var none *mapping.Mapping
	for cost, want := range map[int]capability.Code{1 << 10: "", 1 << 19: capability.LimitExceeded} {
		_, err := none.Resource("s", "file:///w/%2541%2542", capability.View{Cwd: "/w", FS: slow{cost: cost}})
		refused := (*mapping.Refused)(nil)
		if errors.As(err, &refused) != (want != "") || refused != nil && refused.Code != want {
			t.Errorf("%d: %v", cost, err)
		}
	}
}

// TestLookupsOfGlobs: so are the directories that globs look into.
func TestLookupsOfGlobs(t *testing.T) {
	tool := parseTool(t, `{ "p[*]": { verb: fs.read, glob: true } }`)
	base := t.TempDir()
	if err := os.MkdirAll(base+strings.Repeat("/d", 40), 0o755); err != nil {
		t.Fatal(err)
	}
	root := capability.Root{Dir: base, Real: base}
	set, findings := capability.Compile([]capability.Spec{{Verb: "fs.read", Scope: []capability.Param{{Key: "paths", Values: []string{"."}}}}}, capability.Options{Config: root})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	for n, want := range map[int]string{10: "", 120: "more than can be looked at", 200: "limit_exceeded: the argument p[12"} {
		c := callOf(t, `{"p":["`+strings.Repeat(`**","`, n)+`x"]}`)
		c.View = capability.View{Cwd: base, FS: hostfs.FS{}}
		needs, err := tool.Require(c)
		why := ""
		if err != nil {
			why = err.Error()
		}
		for _, need := range needs {
			if d := set.Decide(need.Requirement); !d.Allowed() && why == "" {
				why = d.String()
			}
		}
		if (why == "") != (want == "") || !strings.Contains(why, want) {
			t.Errorf("%d globs: %s", n, why)
		}
	}
}
