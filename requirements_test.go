package capgate_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The four documents that capgate lives up to, statement by statement, and what
// cuts across them: how many requirements each has.
var requirementCounts = []struct {
	source string
	count  int
}{
	{"EGG", 39}, {"ETH", 12}, {"RYE", 13}, {"SCA", 13}, {"SEC", 18},
}

// openRequirements have no case yet, because what would keep them is not built.
// Building it moves the line from here to a test.
var openRequirements = map[string]string{
	"R-EGG-25": "agent.grant as a tool comes with run-time authority",
	"R-EGG-38": "the OS sandbox and its egress",
	"R-EGG-39": "a statement of what is not prevented: SECURITY.md",
	"R-ETH-06": "backends: the OS sandbox and egress",
	"R-ETH-11": "the OS sandbox",
}

var requirementID = regexp.MustCompile(`R-(EGG|ETH|RYE|SCA|SEC)-(\d\d)`)

// TestRequirements: every statement has a case that is named after it, or stands
// in the list of what is open, and not in both.
func TestRequirements(t *testing.T) {
	cases := requirementCases(t)
	known := map[string]bool{}
	for _, s := range requirementCounts {
		for n := 1; n <= s.count; n++ {
			id := fmt.Sprintf("R-%s-%02d", s.source, n)
			known[id] = true
			_, open := openRequirements[id]
			switch {
			case len(cases[id]) == 0 && !open:
				t.Errorf("%s has no case", id)
			case len(cases[id]) > 0 && open:
				t.Errorf("%s is listed as open, and has cases: %s", id, strings.Join(cases[id], ", "))
			}
		}
	}
	for id, places := range cases {
		if !known[id] {
			t.Errorf("there is no %s: %s", id, strings.Join(places, ", "))
		}
	}
	t.Logf("%s requirements have cases, %d are open", strconv.Itoa(len(cases)), len(openRequirements))
}

// requirementCases finds the ids in the names of test data and in test code.
func requirementCases(t *testing.T) map[string][]string {
	t.Helper()
	cases := map[string][]string{}
	add := func(text, place string) {
		for _, id := range requirementID.FindAllString(text, -1) {
			if !slices.Contains(cases[id], place) {
				cases[id] = append(cases[id], place)
			}
		}
	}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return nil
		case strings.Contains(filepath.ToSlash(path), "testdata/") && !strings.Contains(path, "mutants"):
			add(d.Name(), path)
		case strings.HasSuffix(path, "_test.go") && path != "requirements_test.go":
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			add(string(data), path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return cases
}
