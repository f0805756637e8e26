package agents_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"capgate/agents"
	"capgate/capability"
)

// grown is a record that holds more while its end is missing: a YAML file has no mark for it.
const (
	grown = "id: agents/eve\ndialect: ethos\nfs_reach: { read: [/srv, /etc] }\n"
	whole = grown + "parent: agents/lead\n"
	lead  = "id: agents/lead\ndialect: ethos\nfs_reach: { read: [/srv] }\n"
)

// reads says what agents/eve may read: "srv", "etc", both, "broken" or "unknown".
func reads(t *testing.T, r *agents.Roster) string {
	t.Helper()
	line, err := r.Lineage("eve")
	switch {
	case errors.Is(err, agents.ErrUnknown):
		return "unknown"
	case err != nil:
		return "broken"
	}
	said := ""
	for _, dir := range []string{"srv", "etc"} {
		need, err := capability.ParseRequirement("fs.read{path=/"+dir+"/f}", capability.View{})
		if err != nil {
			t.Fatal(err)
		}
		if line.Chain.Decide(need).Allowed() {
			said += dir
		}
	}
	return said
}

// through waits until an agent is in a state, and fails if it is in one meanwhile that isn't named. That
// of agents/eve is what she may read.
func through(t *testing.T, r *agents.Registry, id, want string, meanwhile ...string) {
	t.Helper()
	late := time.After(patience)
	for {
		changed := r.Changed()
		got := stateOf(r.Current(), id)
		if id == "eve" {
			got = reads(t, r.Current())
		}
		if got == want {
			return
		}
		if !slices.Contains(meanwhile, got) {
			t.Fatalf("%s is %q on the way to %q", id, got, want)
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("%s is %q still, and not %q", id, got, want)
		}
	}
}

// looked waits until the folders have been read since.
func looked(t *testing.T, r *agents.Registry, do func()) {
	t.Helper()
	changed := r.Changed()
	do()
	receive(t, changed)
}

// untilRested waits until nothing waits to count.
func untilRested(t *testing.T, r *agents.Registry) {
	t.Helper()
	for {
		changed := r.Changed()
		if !r.Current().Resting() {
			return
		}
		receive(t, changed)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func extend(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	_, err = f.WriteString(text)
	must(t, errors.Join(err, f.Close()))
}

// TestGrowing: a record that is read before all of it is written gives nothing that neither the old
// one nor the new one does, however often it is read, and what it takes away is gone meanwhile.
func TestGrowing(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T, path string){
		"created anew": func(t *testing.T, path string) {
			must(t, os.Remove(path))
			must(t, os.WriteFile(path, []byte(grown), 0o600))
		},
		"set aside": func(t *testing.T, path string) {
			must(t, os.Rename(path, path+"~"))
			must(t, os.WriteFile(path, []byte(grown), 0o600))
		},
		"in place": func(t *testing.T, path string) { must(t, os.WriteFile(path, []byte(grown), 0o600)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "lead.yml", lead)
			eve := write(t, dir, "eve.yml", whole)
			r := open(t, &journal{}, dir)
			r.Rest(time.Hour)
			watched(t, r)
			if got := reads(t, r.Current()); got != "srv" {
				t.Fatal(got)
			}
			for range 3 {
				time.Sleep(2 * agents.Settle) // so that an early look would be taken
				looked(t, r, func() { begin(t, eve) })
				for i := range 4 { // others come and go, and the folders are read each time
					if got := reads(t, r.Current()); got == "srvetc" {
						t.Fatalf("half a record counts: %q", got)
					}
					looked(t, r, func() { over(t, filepath.Join(dir, "lead.yml"), lead+"# "+string(rune('a'+i))+"\n") })
				}
				extend(t, eve, "parent: agents/lead\n")
				through(t, r, "eve", "srv", "", "broken", "unknown")
			}
			r.Rest(time.Millisecond) // what stays as it is counts
			must(t, os.WriteFile(eve, []byte(grown), 0o600))
			through(t, r, "eve", "srvetc", "srv", "", "broken")
		})
	}
}

// TestNewRests: a record that is new gives nothing until it has rested, and says why.
func TestNewRests(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "lead.yml", lead)
	r := open(t, &journal{}, dir)
	r.Rest(time.Hour)
	watched(t, r)
	write(t, dir, "eve.yml", grown)
	until(t, r, "eve", "broken")
	a, ok := r.Current().Agent("eve")
	if got := reads(t, r.Current()); got != "broken" || !ok || a.Code() != capability.InvalidConfig || !r.Current().Resting() {
		t.Errorf("she is %q: %v", got, a)
	}
	r.Rest(2 * agents.Settle)
	extend(t, filepath.Join(dir, "eve.yml"), "\n")
	through(t, r, "eve", "srvetc", "broken")
	if r.Current().Resting() {
		t.Error("what has rested is kept within what was before")
	}
}

// TestEmptied: a file that is saved in place is empty for a moment, which is not to say that its
// agent is gone.
func TestEmptied(t *testing.T) {
	dir := t.TempDir()
	eve := write(t, dir, "eve.yml", lead+"toolset: [x]\n")
	scout := write(t, dir, "scout.md", record("access: r"))
	r := open(t, &journal{}, dir)
	watched(t, r)
	r.Rest(2 * agents.Settle)
	for _, blank := range []string{"", " \n"} {
		must(t, os.WriteFile(scout, []byte(blank), 0o600))
		through(t, r, "scout", "broken", "records.read")
		if _, err := r.Current().Lineage("scout"); err == nil || !strings.Contains(err.Error(), "the file is empty") {
			t.Errorf("with %q: %v", blank, err)
		}
		untilRested(t, r) // nor when it stays so
		if got := stateOf(r.Current(), "scout"); got != "broken" {
			t.Errorf("it is %s then", got)
		}
		must(t, os.WriteFile(scout, []byte(record("access: r")), 0o600))
		until(t, r, "scout", "records.read")
	}
	// What holds no agent any more may be on its way to one that it holds, and is believed later.
	untilRested(t, r)
	r.Rest(time.Hour)
	must(t, os.WriteFile(scout, []byte("Prose\n"), 0o600))
	through(t, r, "scout", "broken", "records.read")
	r.Rest(2 * agents.Settle)
	must(t, os.WriteFile(scout, []byte("Prose.\n"), 0o600))
	until(t, r, "scout", "unknown")
	must(t, os.Remove(eve))
	until(t, r, "lead", "unknown")
}

// TestAgain: a registry that takes the place of another one believes no half record either.
func TestAgain(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "lead.yml", lead)
	eve := write(t, dir, "eve.yml", whole)
	first := open(t, &journal{}, dir)
	must(t, os.WriteFile(eve, []byte(grown), 0o600))
	r, err := first.Again(agents.Options{View: capability.View{Home: home}}, []string{dir})
	must(t, err)
	if got := reads(t, r.Current()); got != "srv" {
		t.Errorf("she is %q", got)
	}
	watched(t, r)
	through(t, r, "eve", "srvetc", "srv")
}

// TestRootRests: a root that is wider is told to nobody before it has rested, and that of a file that is
// empty for a moment is what it was, as servers are started anew for another one.
func TestRootRests(t *testing.T) {
	dir := t.TempDir()
	scout := write(t, dir, "scout.md", record("sandbox: ~/p"))
	r := open(t, &journal{}, dir)
	for _, c := range []struct{ text, want string }{
		{record("sandbox: ~/p/q"), home + "/p/q"},
		{record(""), home + "/p"},
		{record("sandbox: ~/other"), home + "/p"},
		{"", home + "/p"},
	} {
		must(t, os.WriteFile(scout, []byte(c.text), 0o600))
		next, err := r.Again(agents.Options{View: capability.View{Home: home}}, []string{dir})
		must(t, err)
		a, ok := next.Current().Agent("scout")
		if got := next.Current().Root(a).Dir; !ok || got != c.want {
			t.Errorf("with %q the root is %s, want %s", c.text, got, c.want)
		}
	}
}

// TestWhole: what took the place of a record that was there counts at once, as it came. What was made
// where nothing was, or is written to since, may yet grow.
func TestWhole(t *testing.T) {
	const created, written, removed, renamed = fsnotify.Create, fsnotify.Write, fsnotify.Remove, fsnotify.Rename
	for name, c := range map[string]struct {
		events []fsnotify.Op
		text   string // what is written afterwards
		lost   bool
		want   string
	}{
		"replaced":                     {events: []fsnotify.Op{created}, want: "srvetc"},
		"replaced after another one":   {events: []fsnotify.Op{created, created}, want: "srvetc"},
		"replaced and touched":         {events: []fsnotify.Op{created, fsnotify.Chmod}, want: "srvetc"},
		"taken away first":             {events: []fsnotify.Op{removed, created}, want: "srv"},
		"written to and taken away":    {events: []fsnotify.Op{removed, written, created}, want: "srv"},
		"set aside first":              {events: []fsnotify.Op{renamed, created}, want: "srv"},
		"written to since":             {events: []fsnotify.Op{created, written}, want: "srv"},
		"written to, nobody said":      {events: []fsnotify.Op{created}, text: "# more\n", want: "srv"},
		"nobody said anything":         {want: "srv"},
		"something was not announced":  {events: []fsnotify.Op{created}, lost: true, want: "srv"},
		"taken away, and later anew":   {events: []fsnotify.Op{created, removed, created}, want: "srv"},
		"written in place, and so on":  {events: []fsnotify.Op{written}, want: "srv"},
		"replaced, and taken away now": {events: []fsnotify.Op{created, removed}, want: "srv"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "lead.yml", lead)
			eve := write(t, dir, "eve.yml", whole)
			r := open(t, &journal{}, dir)
			r.Rest(time.Hour)
			h := r.Listen()
			if c.lost {
				h.Lose()
			}
			over(t, eve, grown)
			for _, op := range c.events {
				h.Tell(eve, op)
			}
			extend(t, eve, c.text)
			h.Look()
			if got := reads(t, r.Current()); got != c.want {
				t.Errorf("she is %q, want %q", got, c.want)
			}
		})
	}
	t.Run("read before it was announced", func(t *testing.T) {
		dir := t.TempDir()
		eve := write(t, dir, "eve.yml", grown)
		r := open(t, &journal{}, dir)
		h := r.Listen()
		if h.Tell(eve, created) {
			t.Error("what is the same file took no place")
		}
		if h.Tell(write(t, dir, "new.yml", lead), created) {
			t.Error("nothing was there that it took the place of")
		}
	})
}
