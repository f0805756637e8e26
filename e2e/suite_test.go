//go:build unix

package e2e_test

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// check is one check of the conformance suite. An id may stand several times in
// a scenario, under several names.
type check struct{ scenario, id, name string }

func (c check) String() string { return c.scenario + " " + c.id }

// severity orders the statuses of checks: what a check says is the worst of what
// it says anywhere.
type severity int

const (
	fine severity = iota
	skipped
	warning
	failure
)

func severityOf(status string) severity {
	switch status {
	case "SUCCESS", "INFO":
		return fine
	case "SKIPPED":
		return skipped
	case "WARNING":
		return warning
	}
	return failure
}

// finding is what a check said.
type finding struct {
	severity severity
	text     string
}

// suite asks a server everything that a set of requirements consists of.
func suite(t *testing.T, url, requirements string) map[check]finding {
	t.Helper()
	dir := t.TempDir()
	ran := run(t, command(t, installed(t, conformance), "server", "--url", url, "--requirements", requirements, "-o", dir))
	found := findings(t, dir)
	if len(found) == 0 {
		t.Fatalf("the suite checked nothing: %s%s", ran.out, ran.err)
	}
	return found
}

// findings reads the folders that a run of the suite leaves behind.
func findings(t *testing.T, dir string) map[check]finding {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	name, found := regexp.MustCompile(`^server-(.*)-\d{4}-\d\d-\d\dT`), map[check]finding{}
	for _, e := range entries {
		m := name.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name(), "checks.json"))
		if err != nil {
			t.Fatal(err)
		}
		var checks []struct{ ID, Name, Status, ErrorMessage string }
		if err := json.Unmarshal(data, &checks); err != nil {
			t.Fatal(err)
		}
		for _, c := range checks {
			key := check{m[1], c.ID, c.Name}
			f := finding{severityOf(c.Status), c.Status + " " + c.ErrorMessage}
			if have, ok := found[key]; !ok || f.severity > have.severity {
				found[key] = f
			}
		}
	}
	return found
}

// worse are the checks that say something worse of one server than of another,
// or nothing at all.
func worse(direct, via map[check]finding) []check {
	var all []check
	for c, was := range direct {
		if is, ok := via[c]; !ok && was.severity < failure || is.severity > was.severity {
			all = append(all, c)
		}
	}
	for c, is := range via {
		if _, ok := direct[c]; !ok && is.severity > skipped {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b check) int { return cmp.Compare(a.String(), b.String()) })
	return all
}

// compare fails for each check that is worse through the gateway and not known to
// be, and for each that is known to be and is not. Known ones are named by their
// scenario, or by scenario and id. Nothing is said of scenarios that are unsteady.
func compare(t *testing.T, direct, via map[check]finding, known map[string]string, unsteady ...string) {
	t.Helper()
	const shown = 20
	met, unknown := map[string]bool{}, 0
	for _, c := range worse(direct, via) {
		if slices.Contains(unsteady, c.scenario) {
			continue
		}
		key := c.String()
		if _, ok := known[key]; !ok {
			key = c.scenario
		}
		if _, ok := known[key]; ok {
			met[key] = true
			continue
		}
		if unknown++; unknown > shown {
			continue
		}
		t.Errorf("%s: directly %q, through the gateway %q", c, strings.TrimSpace(direct[c].text), strings.TrimSpace(via[c].text))
	}
	if unknown > shown {
		t.Errorf("and %d more", unknown-shown)
	}
	for key := range known {
		if !met[key] {
			t.Errorf("%s is no worse through the gateway any more: take it off the list", key)
		}
	}
}
