package gate_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capgate/agents"
	"capgate/capability"
	"capgate/capability/hostfs"
	"capgate/gate"
	"capgate/mapping"
)

// TestVisibleWith: a tool is worth a grant where the grant is missing and nothing else is,
// in each record of the line.
func TestVisibleWith(t *testing.T) {
	g := gateOf(t, map[string]string{
		"none.md":   "---\nclass: agent\n---\n",
		"reader.md": "---\nclass: agent\ncapabilities: [\"fs.read{in=/w/docs}\"]\n---\n",
		"child.md":  "---\nclass: agent\nparent: reader\ncapabilities: [\"fs.write{in=/w}\", \"fs.delete{in=/w}\"]\n---\n",
		"ruled.md":  "---\nclass: agent\ntoolset: [\"files.note\"]\n---\n",
		"lost.md":   "---\nclass: agent\nparent: nobody\n---\n",
		"broken.md": records["broken.md"],
	})
	for name, tt := range map[string]struct {
		agent  string
		tool   *gate.Tool
		grants []string
		want   bool
	}{
		"what it needs":                    {"none", tool(t, "read"), []string{"fs.read{in=/w}"}, true},
		"something else":                   {"none", tool(t, "read"), []string{"fs.write{in=/w}"}, false},
		"one of two":                       {"none", tool(t, "move"), []string{"fs.read{in=/w}", "fs.delete{in=/w}"}, false},
		"the one that is missing":          {"reader", tool(t, "move"), []string{"fs.write{in=/w}", "fs.delete{in=/w/docs}"}, true},
		"in another place":                 {"reader", tool(t, "move"), []string{"fs.write{in=/w}", "fs.delete{in=/w/src}"}, false},
		"what an agent above lacks":        {"child", tool(t, "move"), []string{"fs.read{in=/w}", "fs.write{in=/w}", "fs.delete{in=/w}"}, true},
		"an agent above lacks another":     {"child", tool(t, "move"), []string{"fs.read{in=/w}"}, false},
		"its name":                         {"none", tool(t, "note"), []string{"tool.invoke{tools=[files.note]}"}, true},
		"outside the toolset":              {"ruled", tool(t, "read"), []string{"fs.read{in=/w}"}, false},
		"inside the toolset":               {"ruled", tool(t, "note"), []string{"tool.invoke{tools=[files.note]}"}, true},
		"a parent that is not there":       {"lost", tool(t, "read"), []string{"fs.read{in=/w}"}, false},
		"a broken record":                  {"broken", tool(t, "read"), []string{"fs.read{in=/w}"}, false},
		"nobody":                           {"nobody", tool(t, "read"), []string{"fs.read{in=/w}"}, false},
		"declared":                         {"none", tool(t, "read", "fs.read{in=/w,paths=[docs]}"), []string{"fs.read{in=/w}"}, true},
		"not declared":                     {"none", tool(t, "read", "fs.read{in=/srv}"), []string{"fs.read{in=/w}"}, false},
		"held already":                     {"reader", tool(t, "read"), nil, true},
		"a grant that is inert":            {"none", tool(t, "read"), []string{"fs.read"}, false},
		"a grant that is narrow, and held": {"reader", tool(t, "read", "fs.read{in=/w,paths=[src]}"), []string{"fs.read{in=/w/src}"}, true},
	} {
		var specs []capability.Spec
		for _, text := range tt.grants {
			spec, err := capability.ParseSpec(text)
			if err != nil {
				t.Fatal(err)
			}
			specs = append(specs, spec)
		}
		before := g.Visible(tt.agent, tt.tool)
		if got := g.VisibleWith(tt.agent, tt.tool, specs...); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
		if g.Visible(tt.agent, tt.tool) != before || before && tt.grants != nil {
			t.Errorf("%s: visible without them", name)
		}
	}
}

// TestEditOfAddress: where a name is held and the address that it leads to is not, a grant
// of the name would change nothing.
func TestEditOfAddress(t *testing.T) {
	g := gateOf(t, map[string]string{"scout.md": "---\nclass: agent\ncapabilities: [\"net.get{hosts=[db.example.com]}\"]\n---\n"})
	target, err := capability.ParseTarget("db.example.com:80")
	if err != nil {
		t.Fatal(err)
	}
	need := capability.Net("net.get", target.Resolved(netip.MustParseAddr("10.0.0.1")))
	e := g.Edit("scout", "up.t", nil, []mapping.Need{{Requirement: need}})
	if len(e.Grants) > 0 || !strings.Contains(e.Blocked, "address") || strings.Contains(e.Blocked, "10.0.0.1") {
		t.Errorf("got %v, blocked by %q", e.Grants, e.Blocked)
	}
	other, err := capability.ParseTarget("www.example.com:80")
	if err != nil {
		t.Fatal(err)
	}
	need = capability.Net("net.get", other.Resolved(netip.MustParseAddr("8.8.8.8")))
	if e := g.Edit("scout", "up.t", nil, []mapping.Need{{Requirement: need}}); len(e.Grants) != 1 || e.Blocked != "" {
		t.Errorf("got %v, blocked by %q, of a public one", e.Grants, e.Blocked)
	}
}

// TestEditOfApproval: no grant is named where somebody would have to approve the call all the same.
func TestEditOfApproval(t *testing.T) {
	path, err := capability.View{Cwd: "/w"}.Path("a")
	if err != nil {
		t.Fatal(err)
	}
	needs := []mapping.Need{{Requirement: capability.File("fs.read", path)}}
	for entry, blocked := range map[string]bool{"fs.read": true, "fs.*": true, "files.read": true, "files.*": true, "*": true, "fs.write": false, "web.*": false} {
		for _, in := range []string{"scout", "lead"} {
			records := map[string]string{
				"scout.md": "---\nclass: agent\nparent: agents/lead\ncapabilities: []\n---\n",
				"lead.md":  "---\nclass: agent\ncapabilities: [\"fs.read{in=/w,paths=[.]}\"]\n---\n",
			}
			records[in+".md"] = strings.Replace(records[in+".md"], "class: agent\n", "class: agent\napprove: [\""+entry+"\"]\n", 1)
			g := gateOf(t, records)
			e := g.Edit("scout", "files.read", nil, needs)
			if (e.Blocked != "") != blocked || blocked != strings.Contains(e.Blocked, entry) || blocked != (len(e.Grants) == 0) {
				t.Errorf("approve: %s of %s: got %v, blocked by %q", entry, in, e.Grants, e.Blocked)
			}
		}
	}
}

// TestEditBesidesHeld: a grant is named that would do together with what is held, as where a .. leaves a folder.
func TestEditBesidesHeld(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "src"), 0o700); err != nil {
		t.Fatal(err)
	}
	view := capability.View{Cwd: root, FS: hostfs.FS{}}
	path, err := view.Path("src/../a.md")
	if err != nil {
		t.Fatal(err)
	}
	for held, want := range map[string]int{"src": 1, "doc": 0} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "scout.md"), []byte("---\nclass: agent\ncapabilities: [\"fs.read{in="+root+",paths=["+held+"]}\"]\n---\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		roster, err := agents.Load(agents.Options{View: view}, dir)
		if err != nil {
			t.Fatal(err)
		}
		g := &gate.Gate{Roster: roster, Fence: capability.NewFence()}
		if e := g.Edit("scout", "up.t", nil, []mapping.Need{{Requirement: capability.File("fs.read", path)}}); len(e.Grants) != want {
			t.Errorf("with %s: %v, blocked by %q", held, e.Grants, e.Blocked)
		}
	}
}

// TestEditTellsNothingOfFiles: whether a grant is named does not hang on what lies where it is for.
func TestEditTellsNothingOfFiles(t *testing.T) {
	dir, places := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "scout.md"), []byte("---\nclass: agent\ncapabilities: [\"fs.read{in=/w}\"]\n---\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("loop", filepath.Join(places, "loop")); err != nil {
		t.Fatal(err)
	}
	roster, err := agents.Load(agents.Options{View: capability.View{Cwd: "/w", FS: hostfs.FS{}}}, dir)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate.Gate{Roster: roster, Fence: capability.NewFence()}
	for _, name := range []string{"loop", "none"} {
		path, err := capability.View{Cwd: "/w"}.Path(filepath.Join(places, name, "x"))
		if err != nil {
			t.Fatal(err)
		}
		if e := g.Edit("scout", "up.t", nil, []mapping.Need{{Requirement: capability.File("fs.read", path)}}); len(e.Grants) != 1 {
			t.Errorf("%s: %v, blocked by %q", name, e.Grants, e.Blocked)
		}
	}
}
