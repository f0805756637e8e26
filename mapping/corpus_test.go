package mapping_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// elsewhere are the families that are no matter of arguments, each with the package
// whose tests decide it. What is not here must be decided here.
func elsewhere() map[string]string {
	return map[string]string{
		"description": "proxy",
		"envelope":    "proxy",
		"name":        "proxy",
		"provider":    "provider",
		"skill":       "skills",
	}
}

// pendingScenarios are single cases of a family that is decided otherwise.
func pendingScenarios() map[string]string {
	return map[string]string{"upstream_start": "the sandbox starts upstreams"}
}

// judgedWrong are cases of the corpus that the design contradicts, each with the
// sentence that says why.
func judgedWrong() map[string]string {
	return map[string]string{
		"PROMPT-ABSENT-01": "prompt.get is held, for the prompts of docs: another prompt violates that scope",
		"PROMPT-ARGS-01":   "no grant of fs.read is held, and that is decided before any scope",
	}
}

// attack is one line of the corpus.
type attack struct {
	ID     string            `json:"id"`
	Family string            `json:"family"`
	Grant  []json.RawMessage `json:"grant"`
	Hint   hint              `json:"tool_args_schema_hint"`
	Args   json.RawMessage   `json:"args"`
	Expect string            `json:"expect"`
	Code   string            `json:"code"`
	Why    string            `json:"why"`
}

// want is the answer that the case must get: allow, or the code of the denial.
func (a attack) want() string {
	if a.Expect == "allow" {
		return "allow"
	}
	return a.Code
}

// hint says how a case is to be read.
type hint struct {
	Scenario   string              `json:"scenario"`
	Tool       string              `json:"tool"`
	Server     string              `json:"server"`
	Requires   string              `json:"requires"`
	Properties map[string]property `json:"properties"`
	Bind       map[string]string   `json:"bind"`
	Cwd        string              `json:"cwd"`
	Additional bool                `json:"additional_properties"`
	Strict     bool                `json:"strict_unbound"`
	Missing    bool                `json:"unregistered"`

	ConfigSandbox string `json:"config_sandbox"`
	AgentSandbox  string `json:"agent_sandbox"`

	Granter   string              `json:"granter"`
	Target    string              `json:"target"`
	Ancestors [][]json.RawMessage `json:"ancestors"`

	Primary   string            `json:"primary"`
	ItemType  string            `json:"item_type"`
	Op        string            `json:"op"`
	Delegable []json.RawMessage `json:"delegable"`

	Dialect    string   `json:"dialect"`
	Approval   []string `json:"approval"`
	InArgument bool     `json:"in_argument"`

	RedirectTo string              `json:"redirect_to"`
	DNS        map[string][]string `json:"dns"`
}

// property is the schema of an argument.
type property struct {
	Type       string              `json:"type"`
	Properties map[string]property `json:"properties"`
	Items      *property           `json:"items"`
}

// TestAttackCorpus decides every case of the attack corpus with the production
// code: mappings are parsed, grants compiled, messages read strictly.
func TestAttackCorpus(t *testing.T) {
	corpus := findCorpus(t)
	site := buildSite(t, filepath.Join(filepath.Dir(corpus), "attacks-fixture.json"))
	pending := map[string]int{}
	var decided int
	var failed []string
	for _, a := range readAttacks(t, corpus, site) {
		if _, other := elsewhere()[a.Family]; other {
			continue
		}
		if _, later := pendingScenarios()[a.Hint.Scenario]; later {
			pending[a.Family+"/"+a.Hint.Scenario]++
			continue
		}
		decided++
		got, err := site.decide(a)
		why, wrong := judgedWrong()[a.ID]
		switch {
		case err != nil:
			failed = append(failed, fmt.Sprintf("%s: %v", a.ID, err))
		case wrong && got == a.want():
			failed = append(failed, fmt.Sprintf("%s: is judged wrong, and comes out as it says: %s", a.ID, why))
		case !wrong && got != a.want():
			failed = append(failed, fmt.Sprintf("%s: got %s, want %s (%s)", a.ID, got, a.want(), a.Why))
		}
	}
	if decided == 0 {
		t.Fatalf("%s holds no case that can be decided", corpus)
	}
	report(t, decided, pending)
	if len(failed) > 0 {
		t.Errorf("%d cases came out otherwise:\n%s", len(failed), strings.Join(failed, "\n"))
	}
}

func report(t *testing.T, decided int, pending map[string]int) {
	t.Helper()
	total := 0
	var parts []string
	for _, family := range slices.Sorted(maps.Keys(pending)) {
		total += pending[family]
		parts = append(parts, fmt.Sprintf("%s %d", family, pending[family]))
	}
	t.Logf("corpus: %d decided, %d pending (%s)", decided, total, strings.Join(parts, ", "))
	for family, pkg := range elsewhere() {
		t.Logf("corpus: %s is decided in package %s", family, pkg)
	}
}

// findCorpus returns the file that CAPGATE_CORPUS names, the shared corpus where
// one lies in or beside the checkout, or else the part of it that is kept here.
func findCorpus(t *testing.T) string {
	t.Helper()
	if named := os.Getenv("CAPGATE_CORPUS"); named != "" {
		return named
	}
	const name, levels = "attacks-shared.jsonl", 2
	up := ".."
	for range levels {
		for _, below := range []string{name, "*/" + name, "*/*/" + name} {
			found, err := filepath.Glob(filepath.Join(up, below))
			if err != nil {
				t.Fatal(err)
			}
			if len(found) > 0 {
				return found[0]
			}
		}
		up = filepath.Join(up, "..")
	}
	return filepath.Join("testdata", "attacks.jsonl")
}

func readAttacks(t *testing.T, file string, s *site) []attack {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const longestLine = 1 << 20
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, longestLine)
	var attacks []attack
	seen := map[string]bool{}
	for lines.Scan() {
		var a attack
		if err := json.Unmarshal([]byte(s.replace(lines.Text())), &a); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if seen[a.ID] {
			t.Fatalf("%s: %s stands twice", file, a.ID)
		}
		seen[a.ID] = true
		attacks = append(attacks, a)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return attacks
}

// site is the tree that the cases are about.
type site struct {
	root, config, state, home string
	placeholders              *strings.Replacer
}

func (s *site) replace(text string) string { return s.placeholders.Replace(text) }

// buildSite makes the tree of the fixture beneath a new directory.
func buildSite(t *testing.T, fixture string) *site {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &site{
		root: top + "/root", config: top + "/config", state: top + "/state", home: top + "/home",
	}
	s.placeholders = strings.NewReplacer(
		"${ROOT}", s.root, "${ROOT_NAME}", "root", "${ROOT_UPPER}", strings.ToUpper(s.root), "${OUTSIDE}", top+"/outside",
		"${CAPGATE_CONFIG}", s.config, "${CAPGATE_STATE}", s.state, "${CURSOR_OF_OTHER_AGENT}", "b3RoZXI",
	)
	data, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	var tree struct {
		Dirs            []string
		Files, Symlinks map[string]string
	}
	if err := json.Unmarshal([]byte(s.replace(string(data))), &tree); err != nil {
		t.Fatal(err)
	}
	for _, dir := range append(tree.Dirs, s.config, s.state, s.home) {
		check(t, os.MkdirAll(dir, 0o755))
	}
	for file, text := range tree.Files {
		check(t, os.WriteFile(file, []byte(text), 0o600))
	}
	for link, target := range tree.Symlinks {
		check(t, os.Symlink(target, link))
	}
	return s
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// arguments returns the bytes that the agent sends as arguments.
func (s *site) arguments(args json.RawMessage) ([]byte, error) {
	var raw struct {
		Text   *string `json:"$raw"`
		Base64 *string `json:"$raw_base64"`
	}
	if err := json.Unmarshal(args, &raw); err != nil {
		return nil, err
	}
	switch {
	case raw.Text != nil:
		return []byte(*raw.Text), nil
	case raw.Base64 != nil:
		data, err := base64.StdEncoding.DecodeString(*raw.Base64)
		return []byte(s.replace(string(data))), err
	}
	return args, nil
}
