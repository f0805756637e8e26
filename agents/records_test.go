package agents_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/agents"
	"capgate/capability"
)

var update = flag.Bool("update", false, "write what is got into testdata, for review")

// home is what ~ stands for in all cases.
const home = "/home/u"

// archive reads a file of cases: a remark, then texts, each under "-- name --".
func archive(t *testing.T, path string) (remark string, names []string, texts map[string]string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	texts = map[string]string{}
	current := ""
	for line := range strings.Lines(string(data)) {
		if name, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "-- "); ok && strings.HasSuffix(name, " --") {
			current = strings.TrimSuffix(name, " --")
			names = append(names, current)
			continue
		}
		texts[current] += line
	}
	return texts[""], names, texts
}

// lay writes the records of a case into a fresh folder.
func lay(t *testing.T, names []string, texts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		if filepath.Ext(name) == "" {
			continue
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(texts[name]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func optionsOf(t *testing.T, config string) agents.Options {
	t.Helper()
	opts := agents.Options{View: capability.View{Home: home, Cwd: home}}
	for line := range strings.Lines(config) {
		root, ok := strings.CutPrefix(strings.TrimSpace(line), "sandbox: ")
		if !ok {
			t.Fatalf("config: %q", line)
		}
		var err error
		if opts.Config, err = capability.ParseRoot(root, home, opts.View); err != nil {
			t.Fatal(err)
		}
	}
	return opts
}

// TestRecords loads every example, table row and rule of the four dialects that
// concerns records, and the slips that must not widen anything.
func TestRecords(t *testing.T) {
	files, err := filepath.Glob("testdata/records/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no cases", err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			_, names, texts := archive(t, path)
			dir := lay(t, names, texts)
			opts := optionsOf(t, texts["config"])
			roster, err := agents.Load(opts, dir)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(describe(roster), dir+"/", "")
			got += strings.ReplaceAll(ask(t, roster, opts.View, texts["ask"]), dir+"/", "")
			settle(t, path, texts["want"], got)
		})
	}
}

// settle compares with what is wanted, or writes it down.
func settle(t *testing.T, path, want, got string) {
	t.Helper()
	if !*update {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		return
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(data), "-- want --\n")
	if err := os.WriteFile(path, []byte(head+"-- want --\n"+got), 0o644); err != nil {
		t.Fatal(err)
	}
}

// describe writes out all that a roster says.
func describe(r *agents.Roster) string {
	var b strings.Builder
	for a := range r.All() {
		describeAgent(&b, a)
	}
	for _, f := range r.Findings() {
		if f.Pos.File == "" {
			b.WriteString("nowhere: ")
		}
		fmt.Fprintln(&b, f)
	}
	return b.String()
}

func describeAgent(b *strings.Builder, a *agents.Agent) {
	if a.Err != nil {
		fmt.Fprintf(b, "%s: %s\n", a.ID, a.Code())
		return
	}
	fmt.Fprintf(b, "%s: %s\n", a.ID, a.Record.Dialect)
	show := func(key string, value any, shown bool) {
		if shown {
			fmt.Fprintf(b, "  %s %v\n", key, value)
		}
	}
	show("root", a.Root.Dir, !a.Root.IsZero())
	grants(b, "", a.Set)
	own := map[string]bool{}
	for g := range a.Set.All() {
		own[g.String()] = true
	}
	for g := range a.Giveable().All() {
		show("delegable", g, !own[g.String()])
	}
	show("parent", a.Record.Parent, a.Record.Parent != "")
	show("inherits", "", a.Record.Inherit)
	show("toolset", fmt.Sprintf("%q", a.Record.Toolset), a.Record.Toolset != nil)
	show("approve", fmt.Sprintf("%q", a.Record.Approve), a.Record.Approve != nil)
	show("body", fmt.Sprintf("%q", a.Record.Body), a.Record.Dialect == capability.Egghead && a.Record.Body != "")
}

func grants(b *strings.Builder, prefix string, set *capability.Set) {
	for g := range set.All() {
		fmt.Fprintf(b, "  %s%s", prefix, g)
		if origin := g.Spec().Origin; origin != "" {
			fmt.Fprintf(b, " (%s)", origin)
		}
		if g.Inert() != "" {
			b.WriteString(" inert")
		}
		b.WriteString("\n")
	}
}

// ask decides each line "agent requirement" under the agent's chain and ceilings.
func ask(t *testing.T, r *agents.Roster, view capability.View, lines string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		id, need, _ := strings.Cut(line, " ")
		b.WriteString(line + " => " + answer(t, r, view, id, need) + "\n")
	}
	return b.String()
}

func answer(t *testing.T, r *agents.Roster, view capability.View, id, need string) string {
	t.Helper()
	lineage, err := r.Lineage(id)
	if err != nil {
		return err.Error()
	}
	req, err := capability.ParseRequirement(need, view)
	if err != nil {
		t.Fatal(err)
	}
	d := lineage.Chain.Decide(req)
	if !d.Allowed() {
		return strings.TrimSpace(fmt.Sprintf("%s %s", d.Code, d.Link()))
	}
	for _, c := range lineage.Ceilings {
		if req.Verb() == "tool.invoke" && !c.Set.Decide(req).Allowed() {
			return "above the ceiling of " + c.Name
		}
	}
	return "allowed by " + d.Grant().String()
}
