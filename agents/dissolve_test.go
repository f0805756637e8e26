package agents_test

import (
	"os"
	"path/filepath"
	"testing"

	"capgate/agents"
	"capgate/capability"
)

// TestEditNeverWidens: whatever sandbox: says, writing it out gives no grant of the
// record more than it meant.
func TestEditNeverWidens(t *testing.T) {
	sandboxes := []string{"a", "./a", "a/", ".a", "+a", ".", "..", "/", "/srv", "/srv/root/a", "~/x"}
	grants := []string{
		"fs.read: { paths: [x] }", "fs.read: { paths: ['**'] }", "fs.read: { in: b }", "fs.read: { in: ., paths: [root/a] }",
		"proc.eval: { in: . }", "proc.exec: { in: ./b, cmds: [ls] }", "proc.exec: { cmds: [ls] }", "fs.read:/srv/**", "fs.write",
	}
	edits := 0
	for _, config := range []string{"", "/", "/srv/root"} {
		opts := agents.Options{View: capability.View{Cwd: "/srv/root", Home: home}}
		if config != "" {
			opts.Config = capability.Root{Dir: config, Real: config}
		}
		for _, sandbox := range sandboxes {
			for _, grant := range grants {
				for _, key := range []string{"capabilities", "delegable"} {
					text := record("sandbox: " + sandbox + "\n" + key + ":\n  - " + grant)
					out, err := agents.Edit("scout.md", []byte(text), agents.Change{Options: opts, Grant: specs(t, "records.create")})
					before := loaded(t, opts, text)
					if err != nil || before.Err != nil {
						continue // nothing was written
					}
					edits++
					after := loaded(t, opts, string(out.Data))
					for _, gap := range append(before.Set.Covers(after.Set), before.Giveable().Covers(after.Giveable())...) {
						if gap.Grant.Verb() != "records.create" {
							t.Errorf("below %q,\n%s\nbecame\n%s\n%s", config, text, out.Data, gap)
						}
					}
				}
			}
		}
	}
	if edits < 100 {
		t.Errorf("%d edits were made", edits)
	}
}

// TestEditGrantsWhatWasShown: a new grant means after the edit what it meant in the
// record as it stood, also where sandbox: was clamped, or it is refused.
func TestEditGrantsWhatWasShown(t *testing.T) {
	opts := agents.Options{
		Config: capability.Root{Dir: "/srv/root", Real: "/srv/root"},
		View:   capability.View{Cwd: "/srv/root", Home: home},
	}
	made := 0
	for _, sandbox := range []string{"a", "/srv/root/a", "/srv/root", "/srv", "/", "/other"} {
		text := record("sandbox: " + sandbox)
		before := loaded(t, opts, text)
		for _, grant := range []string{
			"fs.delete{paths=[root/a]}", "fs.delete{paths=[root/**]}", "fs.delete{paths=[**]}", "fs.delete{paths=[.]}",
			"proc.eval{in=root/a}", "proc.eval{in=.}", "proc.eval{in=/srv/root}", "net.get{hosts=[a.com]}",
		} {
			shown, _ := capability.Compile(specs(t, grant), capability.Options{Config: opts.Config, Agent: before.Root, View: opts.View})
			out, err := agents.Edit("scout.md", []byte(text), agents.Change{Options: opts, Grant: specs(t, grant)})
			if err != nil {
				continue
			}
			made++
			after := loaded(t, opts, string(out.Data)).Set
			if gaps := after.Covers(shown); len(gaps) > 0 {
				t.Errorf("sandbox: %s, %s: not granted: %v", sandbox, grant, gaps)
			}
			for g := range after.All() {
				if g.Inert() != "" {
					continue
				}
				one, _ := capability.Compile([]capability.Spec{g.Spec()}, capability.Options{Config: opts.Config, View: opts.View})
				if len(before.Set.Covers(one)) > 0 && len(shown.Covers(one)) > 0 {
					t.Errorf("sandbox: %s, %s: %s is granted as well", sandbox, grant, g)
				}
			}
		}
	}
	if made < 15 {
		t.Errorf("%d grants were made", made)
	}
}

// loaded is the one agent whose record a text is.
func loaded(t *testing.T, opts agents.Options, text string) *agents.Agent {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "scout.md"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := agents.Load(opts, dir)
	if err != nil {
		t.Fatal(err)
	}
	ag, ok := r.Agent("agents/scout")
	if !ok {
		t.Fatalf("%s is no agent", text)
	}
	return ag
}
