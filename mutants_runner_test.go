//go:build mutants

package capgate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRunner proves that the runner tells a mutant that dies from one that
// lives, that strays, and that proves nothing, built alone and among others.
func TestRunner(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "sum"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"go.mod":     "module example\n\ngo 1.26.0\n",
		"sum/sum.go": "package example\n\nfunc sum(a, b int) int { return a + b }\n\nfunc zero() int { return 0 }\n\nconst none = 3\n",
		"sum/sum_test.go": "package example\n\nimport \"testing\"\n\n" +
			"func TestSum(t *testing.T) {\n\tt.Run(\"two\", func(t *testing.T) {\n\t\tif sum(1, 2) != none {\n\t\t\tt.Fail()\n\t\t}\n\t})\n" +
			"\tt.Run(\"none\", func(t *testing.T) { _ = zero() })\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		kills, old, new string
		want            outcome
	}{
		"dies":            {"TestSum/two", "a + b", "a - b", killed},
		"panics":          {"TestSum/two", "return a + b", "panic(a)", killed},
		"lives":           {"TestSum/none", "return 0", "return 1", survived},
		"strays":          {"TestSum/none", "a + b", "a - b", stray},
		"unread":          {"TestSum", "a + b", "a +", broken},
		"uncompiled":      {"TestSum", "a + b", "a + \"b\"", broken},
		"elsewhere":       {"TestSum/two", "const none = 3", "const none = 4", killed},
		"absent":          {"TestSum", "a * b", "a + b", broken},
		"ambiguous":       {"TestSum", "return", "return 1 +", broken},
		"same":            {"TestSum", "a + b", "a + b", broken},
		"dies of another": {"TestGone|TestSum/two", "a + b", "a - b", killed},
		"no such one":     {"TestGone", "a + b", "a - b", survived},
	}
	var all []mutant
	for name, tt := range tests {
		m, err := parseMutant(name, strings.Join([]string{
			"file: sum/sum.go", "rule: R-1", "kills: " + tt.kills, "package: ./sum",
			"-- old --", tt.old, "-- new --", tt.new, "",
		}, "\n"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	made, err := newBundle(t.Context(), root, t.TempDir(), all)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		t.Run(m.name, func(t *testing.T) {
			want := tests[m.name].want
			if got, detail := m.run(t.Context(), root, t.TempDir()); got != want {
				t.Errorf("got %s, want %s: %s", got, want, detail)
			}
			if got, detail := made.run(t.Context(), m, t.TempDir()); got != want {
				t.Errorf("among others got %s, want %s: %s", got, want, detail)
			}
			alone := want == broken || m.name == "elsewhere"
			if _, in := made.turns[m.name]; in == alone {
				t.Errorf("it is among others: %t", in)
			}
		})
	}
	if out, err := made.test(t.Context(), t.TempDir(), ".", []string{"./sum"}, noTurn); err != nil {
		t.Errorf("the tests are red when it is nobody's turn: %s", out)
	}
}

func TestParseMutant(t *testing.T) {
	const whole = "file: a.go\nrule: R-1\nkills: TestA\npackage: . ./b\n-- old --\nx\n-- new --\ny\n"
	if _, err := parseMutant("whole", whole); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		"no rule":   strings.Replace(whole, "rule: R-1\n", "", 1),
		"two rules": "rule: R-2\n" + whole,
		"no old":    strings.Replace(whole, "-- old --\nx\n", "", 1),
		"bad kills": strings.Replace(whole, "TestA", "Test(", 1),
		"grouped":   strings.Replace(whole, "TestA", "TestA/(x|y)", 1),
	} {
		t.Run(name, func(t *testing.T) {
			if m, err := parseMutant(name, data); err == nil {
				t.Errorf("no error, but %+v", m)
			}
		})
	}
}
