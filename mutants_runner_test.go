//go:build mutants

package capgate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRunner proves that the runner tells a mutant that dies from one that
// lives, that strays, and that proves nothing.
func TestRunner(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example\n\ngo 1.26.0\n",
		"sum.go": "package example\n\nfunc sum(a, b int) int { return a + b }\n\nfunc zero() int { return 0 }\n",
		"sum_test.go": "package example\n\nimport \"testing\"\n\n" +
			"func TestSum(t *testing.T) {\n\tt.Run(\"two\", func(t *testing.T) {\n\t\tif sum(1, 2) != 3 {\n\t\t\tt.Fail()\n\t\t}\n\t})\n" +
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
		"uncompiled":      {"TestSum", "a + b", "a +", broken},
		"absent":          {"TestSum", "a * b", "a + b", broken},
		"ambiguous":       {"TestSum", "return", "return 1 +", broken},
		"same":            {"TestSum", "a + b", "a + b", broken},
		"dies of another": {"TestGone|TestSum/two", "a + b", "a - b", killed},
		"no such one":     {"TestGone", "a + b", "a - b", survived},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			m, err := parseMutant(name, strings.Join([]string{
				"file: sum.go", "rule: R-1", "kills: " + tt.kills, "package: .",
				"-- old --", tt.old, "-- new --", tt.new, "",
			}, "\n"))
			if err != nil {
				t.Fatal(err)
			}
			if got, detail := m.run(t.Context(), root, t.TempDir()); got != tt.want {
				t.Errorf("got %s, want %s: %s", got, tt.want, detail)
			}
		})
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
