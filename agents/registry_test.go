package agents_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"capgate/agents"
	"capgate/capability"
)

// journal is a log that a test can read while it is written.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

func open(t *testing.T, log *journal, dirs ...string) *agents.Registry {
	t.Helper()
	opts := agents.Options{View: capability.View{Home: home}}
	r, err := agents.Open(opts, dirs, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// watched starts to watch and returns when the watch is in place.
func watched(t *testing.T, r *agents.Registry) {
	t.Helper()
	first := r.Changed()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Watch(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Watch ended with %v", err)
		}
	})
	receive(t, first)
}

const patience = 20 * time.Second

func receive(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatal("nothing happened")
	}
}

// until waits for a roster in which an agent is in a state.
func until(t *testing.T, r *agents.Registry, id, state string) {
	t.Helper()
	late := time.After(patience)
	for {
		changed := r.Changed()
		got := stateOf(r.Current(), id)
		if got == state {
			return
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("%s is %s, want %s", id, got, state)
		}
	}
}

// stateOf says what a roster knows of an agent: unknown, broken, or its grants.
func stateOf(r *agents.Roster, id string) string {
	a, ok := r.Agent(id)
	switch {
	case !ok:
		return "unknown"
	case a.Err != nil:
		return "broken"
	}
	var texts []string
	for g := range a.Set.All() {
		texts = append(texts, g.String())
	}
	return strings.Join(texts, " ")
}

// over replaces a file as editors do.
func over(t *testing.T, path, text string) {
	t.Helper()
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(tmp, path); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// vanish takes a folder away in one step.
func vanish(t *testing.T, dir string) {
	t.Helper()
	if err := os.Rename(dir, filepath.Join(t.TempDir(), "gone")); err != nil {
		t.Fatal(err)
	}
}

func TestWatch(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "agents")
	scout := write(t, dir, "scout.md", record("access: rw"))
	log := &journal{}
	r := open(t, log, dir)
	if got := stateOf(r.Current(), "scout"); got != "records.read records.create records.update" {
		t.Fatal(got)
	}
	watched(t, r)

	write(t, dir, "scout.md", record("access: r"))
	until(t, r, "scout", "records.read")

	over(t, scout, record("access: w"))
	until(t, r, "scout", "records.create records.update")

	// A mistyped revocation never leaves the old grant standing.
	write(t, dir, "scout.md", record("access: x"))
	until(t, r, "scout", "broken")
	if !strings.Contains(log.String(), `access: \"x\" is no access`) {
		t.Errorf("the log does not say so: %s", log)
	}
	write(t, dir, "scout.md", record("access: r"))
	until(t, r, "scout", "records.read")

	// A file that loses its id in a slip stands for the agent that it held.
	write(t, dir, "lead.md", record("id: agents/boss\naccess: r"))
	until(t, r, "boss", "records.read")
	write(t, dir, "lead.md", record("idd: agents/boss\naccess: x"))
	until(t, r, "boss", "broken")
	r.Reload()
	if got := stateOf(r.Current(), "boss"); got != "broken" {
		t.Errorf("after another reload boss is %s", got)
	}

	remove(t, scout)
	until(t, r, "scout", "unknown")
	write(t, dir, "scout.md", record("access: r"))
	until(t, r, "scout", "records.read")

	write(t, dir, "sub/deep/new.md", record("access: r"))
	until(t, r, "new", "records.read")
	write(t, dir, "sub/deep/new.md", record("access: w"))
	until(t, r, "new", "records.create records.update")
	remove(t, filepath.Join(dir, "sub"))
	until(t, r, "new", "unknown")

	// Without its folder an agent is denied, and not forgotten.
	vanish(t, dir)
	until(t, r, "scout", "broken")
	write(t, dir, "scout.md", record("access: w"))
	until(t, r, "scout", "records.create records.update")
	write(t, dir, "scout.md", record("access: r"))
	until(t, r, "scout", "records.read")
}

// TestReplaced: a record that took the place of another is in force sooner than one that is
// being written, and not by the next look.
func TestReplaced(t *testing.T) {
	dir := t.TempDir()
	scout := write(t, dir, "scout.md", record("access: rw"))
	r := open(t, &journal{}, dir)
	watched(t, r)
	least := time.Minute
	for i := range 20 {
		time.Sleep(2 * agents.Settle)
		access := []string{"r", "w"}[i%2]
		begun := time.Now()
		over(t, scout, record("access: "+access))
		until(t, r, "scout", map[string]string{"r": "records.read", "w": "records.create records.update"}[access])
		least = min(least, time.Since(begun))
	}
	if least >= agents.Settle {
		t.Errorf("it took %s at the least", least)
	}
}

// TestSweep: where nothing is announced, the folders are looked at.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "scout.md", record("access: rw"))
	r := open(t, &journal{}, dir)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.WatchOnlySweeping(ctx, time.Millisecond) }()
	write(t, dir, "scout.md", record("access: r"))
	until(t, r, "scout", "records.read")
	vanish(t, dir)
	until(t, r, "scout", "broken")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestSweepSeesTexts: the sweep finds what was written to a file that is mapped into memory, of which
// nothing else tells.
func TestSweepSeesTexts(t *testing.T) {
	dir := t.TempDir()
	path := write(t, dir, "scout.md", record("access: rw"))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	mapped, err := syscall.Mmap(int(f.Fd()), 0, len(record("access: rw")), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	must(t, err)
	defer func() { must(t, syscall.Munmap(mapped)) }()
	mapped[0] = '-' // from the first time on, nobody is told
	r := open(t, &journal{}, dir)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	changed := r.Changed()
	go func() { done <- r.WatchOnlySweeping(ctx, time.Millisecond) }()
	receive(t, changed)
	copy(mapped, record("access: r "))
	until(t, r, "scout", "records.read")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestToldOnce: what is wrong is logged when it begins to be, and not with each edit of something else.
func TestToldOnce(t *testing.T) {
	dir := t.TempDir()
	const wrong = "access: no"
	write(t, dir, "scout.md", record(wrong))
	log := &journal{}
	r := open(t, log, dir)
	for i, c := range []struct {
		other string
		want  int
	}{{"access: r", 1}, {"access: w", 1}, {wrong, 2}, {"access: r", 2}, {wrong, 3}} {
		write(t, dir, "lead.md", record(c.other))
		r.Reload()
		if got := strings.Count(log.String(), "level=WARN"); got != c.want {
			t.Fatalf("after %d edits there are %d lines, want %d:\n%s", i+1, got, c.want, log)
		}
	}
}

// turn has a link lead elsewhere, at once.
func turn(t *testing.T, link, to string) {
	t.Helper()
	must(t, os.Symlink(to, link+"~"))
	must(t, os.Rename(link+"~", link))
}

// TestElsewhere: a folder that is another one by something above it is read at once, though nothing is
// announced, and the next sweep is far away.
func TestElsewhere(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "1/agents/scout.md", record("access: rw"))
	write(t, dir, "2/agents/scout.md", record("access: r"))
	turn(t, filepath.Join(dir, "now"), "1")
	r := open(t, &journal{}, filepath.Join(dir, "now", "agents"))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	changed := r.Changed()
	go func() { done <- r.WatchOnlySweeping(ctx, time.Hour) }()
	receive(t, changed)
	turn(t, filepath.Join(dir, "now"), "2")
	until(t, r, "scout", "records.read")
	must(t, os.Rename(filepath.Join(dir, "2"), filepath.Join(dir, "3")))
	until(t, r, "scout", "broken")
	turn(t, filepath.Join(dir, "now"), "3")
	until(t, r, "scout", "records.read")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestForgetsFolders: a folder that a path leads to no more is watched no more, nor is what came there whole.
func TestForgetsFolders(t *testing.T) {
	watches := func() (n int) {
		names, err := filepath.Glob("/proc/self/fdinfo/*")
		must(t, err)
		for _, name := range names {
			if data, err := os.ReadFile(name); err == nil {
				n += strings.Count(string(data), "inotify wd:")
			}
		}
		return n
	}
	dir := t.TempDir()
	link := filepath.Join(dir, "agents")
	for i := range 9 {
		write(t, dir, strconv.Itoa(i)+"/eve.yml", grown)
	}
	write(t, dir, "8/eve.yml", strings.Replace(lead, "agents/lead", "agents/eve", 1))
	turn(t, link, "8")
	r := open(t, &journal{}, link)
	r.Rest(time.Hour)
	h := r.Listen()
	must(t, h.Open())
	defer func() { must(t, h.Close()) }()
	h.Look()
	before := watches()
	if before == 0 && runtime.GOOS == "linux" {
		t.Fatal("no folder is seen to be watched")
	}
	for i := range 8 {
		turn(t, link, strconv.Itoa(i))
		h.Tell(filepath.Join(link, "eve.yml"), fsnotify.Create) // which was of the folder before
		h.Look()
	}
	if got := reads(t, r.Current()); got != "srv" {
		t.Errorf("eve may read %q", got)
	}
	if now := watches(); now != before {
		t.Errorf("%d folders are watched, and were %d", now, before)
	}
}

// TestSignature: a file of the same length, time and mode may be another one, or have been written to.
func TestSignature(t *testing.T) {
	dir := t.TempDir()
	path := write(t, dir, "scout.md", record("access: r"))
	info, err := os.Stat(path)
	must(t, err)
	before := agents.Signature(dir)
	if agents.Signature(dir) != before {
		t.Error("nothing has changed")
	}
	time.Sleep(agents.Settle) // times are as exact as the clock of the kernel
	must(t, os.WriteFile(path, []byte(record("access: w")), 0o600))
	must(t, os.Chtimes(path, time.Time{}, info.ModTime()))
	if agents.Signature(dir) == before {
		t.Error("it was written to")
	}
}

// TestReload: the roster that was in force stays as it was for whoever holds it
// (R-SCA-11); what changed in the files counts from then on (R-EGG-02).
func TestReload(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a/scout.md", record("access: r"))
	write(t, dir, "b/lead.md", record("access: r"))
	r := open(t, &journal{}, filepath.Join(dir, "a"), filepath.Join(dir, "b"))
	before, changed := r.Current(), r.Changed()
	remove(t, filepath.Join(dir, "a"))
	write(t, dir, "b/lead.md", record("access: w"))
	r.Reload()
	receive(t, changed)
	if got := stateOf(before, "scout") + ", " + stateOf(before, "lead"); got != "records.read, records.read" {
		t.Errorf("the old roster says %s", got)
	}
	if got := stateOf(r.Current(), "scout") + ", " + stateOf(r.Current(), "lead"); got != "broken, records.create records.update" {
		t.Errorf("the new roster says %s", got)
	}
	found := false
	for _, f := range r.Current().Findings() {
		found = found || strings.Contains(f.Text, "its agents are denied everything")
	}
	if !found {
		t.Error("no finding for the folder that is gone")
	}
	if _, err := agents.Open(agents.Options{}, []string{filepath.Join(dir, "a")}, slog.Default()); err == nil {
		t.Error("opened a folder that is not there")
	}
}
