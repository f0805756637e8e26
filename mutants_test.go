//go:build mutants

package capgate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"golang.org/x/tools/txtar"
)

// A mutant is one requirement broken on purpose: the tests of the package must
// notice. Each is a file of testdata/mutants:
//
//	file: capability/host.go
//	rule: the id of the requirement
//	kills: TestHost/lookalike
//	package: ./capability
//	-- old --
//	the text, which stands in the file once
//	-- new --
//	what it becomes
//
// kills is an expression: a test whose name it finds must fail. The tree itself
// is never touched: the changed file reaches the compiler as an overlay, at first
// with the others that can be told apart when they run (see bundle). One that lives
// there is built once more by itself, and so is one that cannot be among others.
type mutant struct {
	name     string
	file     string
	rule     string
	kills    *regexp.Regexp
	packages []string
	old, new string
}

const (
	minMutants     = 30 // fewer say nothing about the whole; none at all is a tree without them
	mutantsAtOnce  = 2
	mutantTestTime = 90 * time.Second // of one test binary; it compiles beside that
	mutantTime     = 5 * time.Minute
	mutantTries    = 3 // a race is not lost every time, and a machine has its bad moments
)

// outcome is what became of a mutant. The zero value is the bad one.
type outcome int

const (
	survived outcome = iota // every test passed: nothing guards the rule
	stray                   // tests failed, but not the one that guards the rule
	broken                  // it does not apply or compile, so it proves nothing
	killed
)

func (o outcome) String() string {
	return [...]string{"SURVIVED", "STRAY", "BROKEN", "killed"}[o]
}

func TestMutants(t *testing.T) {
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob("testdata/mutants/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		t.Log("there are no mutants yet")
		return
	}
	if len(names) < minMutants {
		t.Errorf("there are %d mutants, the least is %d", len(names), minMutants)
	}
	all := make([]mutant, 0, len(names))
	for _, name := range names {
		m, err := readMutant(name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, m)
	}
	made, err := newBundle(t.Context(), root, t.TempDir(), all)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d mutants were built together", len(made.turns), len(all))
	if !t.Run("baseline", func(t *testing.T) { checkBaseline(t, made, all) }) {
		return
	}

	rows, lives := make([]string, len(all)), make([]string, len(all))
	t.Cleanup(func() { printTable(t, rows); printLast(t, lives) })
	slots := make(chan struct{}, mutantsAtOnce)
	for i, m := range all {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			got, detail := made.run(t.Context(), m, t.TempDir())
			for again := 1; got != killed && again < mutantTries; again++ {
				t.Logf("%s, and tried again: %s", got, detail)
				got, detail = m.run(t.Context(), root, t.TempDir())
			}
			rows[i] = fmt.Sprintf("%s\t%s\t%s\t%s", m.name, m.rule, m.kills, got)
			if got != killed {
				lives[i] = rows[i] + "\n" + detail[max(0, len(detail)-1000):]
				t.Errorf("%s (%s in %s): %s", got, m.rule, m.file, detail)
			}
		})
	}
}

func printTable(t *testing.T, rows []string) {
	t.Helper()
	var out bytes.Buffer
	w := tabwriter.NewWriter(&out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "mutant\trule\tguarded by\toutcome")
	for _, row := range rows {
		fmt.Fprintln(w, row)
	}
	_ = w.Flush() // to memory
	t.Logf("\n%s", &out)
}

// printLast names what was not killed where one looks first, which is at the end.
func printLast(t *testing.T, lives []string) {
	t.Helper()
	for _, one := range lives {
		if one != "" {
			t.Log(one)
		}
	}
}

func readMutant(name string) (mutant, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return mutant{}, err
	}
	return parseMutant(strings.TrimSuffix(filepath.Base(name), ".txt"), string(data))
}

func parseMutant(name, data string) (mutant, error) {
	archive := txtar.Parse([]byte(data))
	says := fields(archive.Comment)
	for _, key := range []string{"file", "rule", "kills", "package"} {
		if len(says[key]) != 1 {
			return mutant{}, fmt.Errorf("the header must say %s, once", key)
		}
	}
	parts := archive.Files
	if len(parts) != 2 || parts[0].Name != "old" || parts[1].Name != "new" {
		return mutant{}, errors.New("the sections must be old and new")
	}
	kills, err := regexp.Compile(says["kills"][0])
	if err != nil {
		return mutant{}, fmt.Errorf("read kills: %w", err)
	}
	if _, err := regexp.Compile(top(kills.String())); err != nil {
		return mutant{}, fmt.Errorf("read kills: write its alternatives out, as A/x|B/y: %w", err)
	}
	return mutant{
		name:     name,
		file:     says["file"][0],
		rule:     says["rule"][0],
		kills:    kills,
		packages: strings.Fields(says["package"][0]),
		old:      strings.TrimSuffix(string(parts[0].Data), "\n"),
		new:      strings.TrimSuffix(string(parts[1].Data), "\n"),
	}, nil
}

// top is the part of kills that names tests and not their subtests, for -run:
// "TestA/x|TestB/y" is "TestA|TestB".
func top(kills string) string {
	var tops []string
	for alternative := range strings.SplitSeq(kills, "|") {
		name, _, _ := strings.Cut(alternative, "/")
		if !slices.Contains(tops, name) {
			tops = append(tops, name)
		}
	}
	return strings.Join(tops, "|")
}

// checkBaseline proves that the guarding tests pass while it is no mutant's turn: a
// test that is red already kills everything.
func checkBaseline(t *testing.T, made *bundle, all []mutant) {
	t.Helper()
	type pkgs string
	tops := map[pkgs][]string{}
	for _, m := range all {
		key := pkgs(strings.Join(m.packages, " "))
		for name := range strings.SplitSeq(top(m.kills.String()), "|") {
			if !slices.Contains(tops[key], name) {
				tops[key] = append(tops[key], name)
			}
		}
	}
	for key, names := range tops {
		t.Run(string(key), func(t *testing.T) {
			t.Parallel()
			run := func() (string, error) {
				return made.test(t.Context(), t.TempDir(), strings.Join(names, "|"), strings.Fields(string(key)), noTurn)
			}
			out, err := run()
			for again := 1; err != nil && again < mutantTries; again++ {
				t.Logf("tried again, for these failed: %s", strings.Join(failedTests(out), ", "))
				out, err = run()
			}
			if err != nil {
				t.Fatalf("the tests are red before any mutant: %v\n%s\nfailed: %s", err, out, strings.Join(failedTests(out), ", "))
			}
			for _, name := range names {
				if !regexp.MustCompile(`(?m)^=== RUN +[^ ]*` + name).MatchString(out) {
					t.Errorf("no test is called %s", name)
				}
			}
		})
	}
}

// run applies the mutant as an overlay and asks the tests what they think of it.
func (m mutant) run(ctx context.Context, root, dir string) (outcome, string) {
	overlay, err := m.overlay(root, dir)
	if err != nil {
		return broken, err.Error()
	}
	ctx, cancel := context.WithTimeout(ctx, mutantTime)
	defer cancel()
	out, err := goTest(ctx, root, top(m.kills.String()), m.packages, "-overlay="+overlay)
	return m.judge(ctx, out, err)
}

// judge says what tests made of the mutant.
func (m mutant) judge(ctx context.Context, out string, err error) (outcome, string) {
	failed := failedTests(out)
	switch {
	case strings.Contains(out, "[build failed]"), strings.Contains(out, "[setup failed]"), ctx.Err() != nil:
		return broken, out
	case err == nil:
		return survived, "every test passed"
	case slices.ContainsFunc(failed, m.kills.MatchString):
		return killed, ""
	}
	return stray, fmt.Sprintf("failed: %s; none of them matches %s\n%s", strings.Join(failed, ", "), m.kills, out)
}

// overlay writes the changed file and the map that puts it in place.
func (m mutant) overlay(root, dir string) (string, error) {
	name := filepath.Join(root, filepath.FromSlash(m.file))
	data, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(data), m.old); n != 1 || m.old == m.new {
		return "", fmt.Errorf("the old text stands in %s %d times, and must once and be another than the new", m.file, n)
	}
	changed := filepath.Join(dir, filepath.Base(name))
	if err := os.WriteFile(changed, []byte(strings.Replace(string(data), m.old, m.new, 1)), 0o600); err != nil {
		return "", err
	}
	places, err := json.Marshal(map[string]map[string]string{"Replace": {name: changed}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, places, 0o600)
}

func goTest(ctx context.Context, root, run string, packages []string, flags ...string) (string, error) {
	args := []string{"test", "-v", "-count=1", "-vet=off", "-timeout=" + mutantTestTime.String(), "-run=" + run}
	cmd := exec.CommandContext(ctx, "go", slices.Concat(args, flags, packages)...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	return string(out), err
}

var failLine = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

func failedTests(out string) (names []string) {
	for _, m := range failLine.FindAllStringSubmatch(out, -1) {
		names = append(names, m[1])
	}
	return names
}
