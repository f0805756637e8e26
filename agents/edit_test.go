package agents_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"capgate/agents"
	"capgate/capability"
	"capgate/capability/hostfs"
)

// TestEdit makes the changes of each case and compares the whole file.
func TestEdit(t *testing.T) {
	files, err := filepath.Glob("testdata/edits/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no cases", err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			_, names, texts := archive(t, path)
			before := texts[names[0]]
			if strings.Contains(path, "crlf") {
				before = strings.ReplaceAll(before, "\n", "\r\n")
			}
			settle(t, path, texts["want"], edited(t, names[0], before, texts["change"]))
		})
	}
}

func edited(t *testing.T, name, before, lines string) string {
	t.Helper()
	change := agents.Change{Options: agents.Options{View: capability.View{Home: home}}}
	for line := range strings.Lines(lines) {
		what, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		spec, err := capability.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		switch what {
		case "grant":
			change.Grant = append(change.Grant, spec)
		case "revoke":
			change.Revoke = append(change.Revoke, spec)
		default:
			t.Fatalf("%q is no change", line)
		}
	}
	out, err := agents.Edit(name, []byte(before), change)
	if err != nil {
		return fmt.Sprintln("error:", err)
	}
	got := string(out.Data)
	if !out.Changed {
		got = "unchanged\n"
	}
	for _, s := range out.Still {
		got += fmt.Sprintln("still covered by", s)
	}
	return strings.ReplaceAll(got, "\r", "␍")
}

// linked is a file system in which ~/p/link leads to /etc.
type linked struct{ hostfs.FS }

func (linked) Real(path string) (string, error) {
	if rest, ok := strings.CutPrefix(path, home+"/p/link"); ok {
		return "/etc" + rest, nil
	}
	if strings.HasPrefix(path, home+"/p/loop") {
		return "", errors.New("a loop")
	}
	return path, nil
}

// TestEditLinks: a root that sandbox: held back because of where it really leads
// is not let loose by dissolving it.
func TestEditLinks(t *testing.T) {
	change := agents.Change{
		Grant:   specs(t, "records.create"),
		Options: agents.Options{View: capability.View{Home: home, FS: linked{}}},
	}
	for in, sound := range map[string]bool{"link": false, "~/p/link": false, "loop": false, "docs": true, "~/p/docs": true} {
		text := record("sandbox: ~/p\ncapabilities: [fs.read: { in: " + in + " }]")
		out, err := agents.Edit("scout.md", []byte(text), change)
		if refusal := (*agents.Refusal)(nil); sound != (err == nil) || !sound && !errors.As(err, &refusal) {
			t.Errorf("in: %s: %+v, %v", in, out, err)
		}
	}
}

// TestEditClamped: what a clamped sandbox: kept in effect and its own directory does
// not is said, and what the directory would allow besides is refused.
func TestEditClamped(t *testing.T) {
	for _, c := range []struct{ sandbox, grant, lost, refused string }{
		{"/srv", "fs.read: { paths: [docs] }", "fs.read{in=/srv,paths=[docs]}", ""},
		{"/srv", "proc.eval: { in: sub }", "proc.eval{in=/srv/sub}", ""},
		{"/srv", "fs.read: { paths: ['!x'] }", "", ""}, // inert before
		{"/srv", "net.get: { hosts: [a.example] }", "", ""},
		{home, "fs.read: { paths: [docs] }", "fs.read{in=" + home + ",paths=[docs]}", ""},
		{home, "fs.read: { in: " + home + "/w }", "", ""},
		{home, "fs.read: { paths: [w/docs] }", "", "fs.read{in=" + home + ",paths=[w/docs]} would mean more"},
		{"../w", "net.get: { hosts: [a.example] }", "", "sandbox:"},
		{home + "/w/in", "fs.read: { paths: [docs] }", "", ""},
	} {
		config := capability.Root{Dir: home + "/w", Real: home + "/w"}
		change := agents.Change{
			Grant:   specs(t, "records.create"),
			Options: agents.Options{Config: config, View: capability.View{Home: home}},
		}
		// What the shorthand grants is listed, so that the one grant is all there is.
		const none = "fs.write: { paths: [] }, fs.read: { paths: [] }, proc.exec: { cmds: [] }"
		out, err := agents.Edit("scout.md", []byte(record("sandbox: "+c.sandbox+"\ncapabilities: [ "+none+", "+c.grant+" ]")), change)
		if c.refused != "" {
			if refusal := (*agents.Refusal)(nil); !errors.As(err, &refusal) || !strings.Contains(refusal.Text, c.refused) {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		lost := ""
		for _, s := range out.Lost {
			lost += s.String()
		}
		if lost != c.lost {
			t.Errorf("%+v: lost %q", c, lost)
		}
	}
}

// TestEditBroken: a broken record is not edited, and says why.
func TestEditBroken(t *testing.T) {
	out, err := agents.Edit("scout.md", []byte(record("access: x")), agents.Change{Grant: specs(t, "records.create")})
	if invalid := (*agents.Invalid)(nil); out != nil || !errors.As(err, &invalid) {
		t.Errorf("got %+v, %v", out, err)
	}
}
