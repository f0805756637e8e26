package agents_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"capgate/agents"
)

const (
	bob  = "id: agents/bob\ndialect: ethos\nfs_reach: { read: [/srv] }\n"
	wide = "id: agents/lead\ndialect: ethos\nfs_reach: { read: [/srv, /etc] }\n"
)

// hand is a folder of records that is looked at by hand. Nothing rests by itself.
type hand struct {
	*agents.Registry
	*agents.Heard
	t   *testing.T
	dir string
	n   int
}

func byHand(t *testing.T, records map[string]string) *hand {
	t.Helper()
	dir := t.TempDir()
	for name, text := range records {
		write(t, dir, name+".yml", text)
	}
	r := open(t, &journal{}, dir)
	r.Rest(time.Hour)
	return &hand{r, r.Listen(), t, dir, 0}
}

// save writes a record in place, "" to delete it, and looks. Want is what agents/eve may read then.
func (h *hand) save(name, text, want string) {
	h.t.Helper()
	path := filepath.Join(h.dir, name+".yml")
	if text == "" {
		must(h.t, os.Remove(path))
	} else {
		must(h.t, os.WriteFile(path, []byte(text), 0o600))
	}
	h.Look()
	if got := reads(h.t, h.Current()); got != want {
		h.t.Errorf("after %s is %q, eve is %q and not %q", name, text, got, want)
	}
}

// busy saves another record, which has not rested since.
func (h *hand) busy(want string) {
	h.t.Helper()
	h.n++
	h.save("bob", bob+strings.Repeat("#", h.n)+"\n", want)
}

// TestTakenAwayStays: what was taken away comes back with nothing that has not rested, whatever else
// changes all the time.
func TestTakenAwayStays(t *testing.T) {
	all := map[string]string{"lead": lead, "bob": bob, "eve": grown}
	t.Run("renamed over", func(t *testing.T) {
		h := byHand(t, all)
		h.busy("srvetc")
		eve := filepath.Join(h.dir, "eve.yml")
		over(t, eve, whole)
		h.Tell(eve, fsnotify.Create)
		h.busy("srv")
		h.save("eve", grown, "srv")
		h.save("eve", whole, "srv")
	})
	t.Run("in place", func(t *testing.T) {
		h := byHand(t, all)
		h.save("eve", whole, "srv")
		h.save("eve", grown, "srv")
		h.busy("srv")
		h.save("eve", "", "unknown")
	})
	t.Run("deleted", func(t *testing.T) {
		h := byHand(t, all)
		h.busy("srvetc")
		h.save("eve", "", "unknown")
		h.save("eve", grown, "broken")
		h.save("eve", whole, "broken")
		h.Rest(0)
		h.busy("srv")
	})
	t.Run("broken on the way", func(t *testing.T) {
		h := byHand(t, all)
		h.save("eve", whole, "srv")
		h.save("eve", "id: agents/eve\nfs_reach: {", "broken")
		h.save("eve", grown, "srv")
	})
	t.Run("above", func(t *testing.T) {
		h := byHand(t, map[string]string{"lead": wide, "bob": bob, "eve": whole})
		h.save("lead", " ", "")
		h.save("lead", wide, "srvetc") // who is saved keeps what it has
		h.save("lead", lead, "srv")
		h.busy("srv")
		h.save("lead", wide, "srv")
		h.save("lead", "", "")
		h.save("lead", wide, "")
		h.Rest(0)
		h.busy("srvetc")
	})
	t.Run("two for one", func(t *testing.T) {
		h := byHand(t, map[string]string{"lead": lead, "bob": bob, "eve": whole, "other": grown})
		h.save("eve", "", "broken")
		h.busy("broken") // that it is gone has not rested
		h.busy("broken")
		h.Rest(0)
		h.busy("srvetc")
	})
}

// TestRestsAlone: a record counts when it has rested, and those above it have, whatever else changes.
func TestRestsAlone(t *testing.T) {
	h := byHand(t, map[string]string{"lead": lead, "bob": bob, "eve": whole})
	h.busy("srv")
	h.save("eve", grown, "srv")
	h.Rest(0)
	h.busy("srvetc")
	if !h.Current().Resting() {
		t.Error("nothing changes any more")
	}
	h.save("eve", whole, "srv")
	h.save("lead", wide, "srv")
	h.busy("srvetc")
}

// TestNeverRests: what is kept has an end.
func TestNeverRests(t *testing.T) {
	h := byHand(t, map[string]string{"eve": grown})
	for i := range 300 {
		must(t, os.WriteFile(filepath.Join(h.dir, "eve.yml"), fmt.Appendf(nil, "id: agents/eve\ndialect: ethos\nfs_reach: { read: [/%d] }\n", i%10), 0o600))
		h.Look()
	}
	if got := reads(t, h.Current()); got != "" {
		t.Errorf("the same again and again is too much: %q", got)
	}
	for i := range 100 {
		must(t, os.WriteFile(filepath.Join(h.dir, "eve.yml"), fmt.Appendf(nil, "id: agents/eve\ndialect: ethos\nfs_reach: { read: [/%d] }\n", i), 0o600))
		h.Look()
	}
	h.save("eve", grown, "broken")
	h.Rest(0)
	h.Look()
	if got := reads(t, h.Current()); got != "srvetc" {
		t.Errorf("it is %q when it has rested", got)
	}
}

// TestGrowsAndGrows: what widens again and again keeps no more than what it began with.
func TestGrowsAndGrows(t *testing.T) {
	h := byHand(t, map[string]string{"eve": "id: agents/eve\ndialect: ethos\nfs_reach: { read: [/srv] }\n"})
	reach := "/srv"
	for i := range 80 {
		reach += fmt.Sprintf(", /%d", i)
		must(t, os.WriteFile(filepath.Join(h.dir, "eve.yml"), fmt.Appendf(nil, "id: agents/eve\ndialect: ethos\nfs_reach: { read: [%s] }\n", reach), 0o600))
		h.Look()
	}
	h.save("eve", grown, "srv")
}

// TestFollowed: what is written between a roster that was loaded and the registry that goes on from it is an edit.
func TestFollowed(t *testing.T) {
	for first, want := range map[string]string{whole: "srv", grown: "srvetc", "": "broken"} {
		dir := t.TempDir()
		write(t, dir, "lead.yml", lead)
		if first != "" {
			write(t, dir, "eve.yml", first)
		}
		opts := agents.Options{}
		before, err := agents.Load(opts, dir)
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, "eve.yml", grown)
		r, err := before.Follow(opts, []string{dir}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if got := reads(t, r.Current()); got != want {
			t.Errorf("after %q eve is %q, want %q", first, got, want)
		}
		r.Rest(0)
		r.Listen().Look()
		if got := reads(t, r.Current()); got != "srvetc" {
			t.Errorf("when it has rested eve is %q", got)
		}
	}
}

// TestIsCalm: a disk that tells seconds tells nothing of the last one.
func TestIsCalm(t *testing.T) {
	now := time.Unix(100, 900)
	for _, tt := range []struct {
		changed, since time.Time
		want           bool
	}{
		{now.Add(-time.Second), now, true},
		{now.Add(-100 * time.Millisecond), now, false},
		{time.Unix(99, 0), now, false},
		{time.Unix(10, 0), now, false},
		{time.Unix(99, 0), now.Add(-time.Second), true},
		{now.Add(time.Hour), now, false},
		{now.Add(time.Hour), now.Add(-time.Second), true},
	} {
		if got := agents.IsCalm(now, tt.changed, tt.since); got != tt.want {
			t.Errorf("changed at %v and seen since %v: %v", tt.changed, tt.since, got)
		}
	}
}
