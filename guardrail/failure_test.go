package guardrail_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"capgate/guardrail"

	"github.com/google/go-cmp/cmp"
)

// full is a file that no byte can be written to.
func full(t *testing.T) *os.File {
	t.Helper()
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		lacking(t, "no-dev-full: "+err.Error())
	}
	return f
}

// lacking skips a test that cannot run here, which is a failure where nothing may be skipped.
func lacking(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CAPGATE_REQUIRE") == "all" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// by is a clock that a test moves on.
type by struct {
	mu  sync.Mutex
	now time.Time
}

func (c *by) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *by) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// refused records an event that cannot be recorded.
func refused(t *testing.T, l *guardrail.Log) {
	t.Helper()
	e := decision(99)
	if ref, err := l.Record(&e); err == nil || ref != "" {
		t.Fatalf("ref %q, %v", ref, err)
	}
	if err := l.Err(); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the cause was forgotten: %v", err)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// TestWriteError: what cannot be recorded is an error, nothing is recorded after
// it as if nothing had been, and a new file says what is missing.
func TestWriteError(t *testing.T) {
	clock := &by{now: noon}
	l, dir := start(t, guardrail.Options{Clock: clock.time})
	record(t, l, decision(1))
	record(t, l, outcome(1)) // is lost: nothing wrote it yet
	guardrail.Break(l, full(t))
	refused(t, l)
	rename(t, dir, dir+".away") // where no folder can be there is no new file either
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		refused(t, l)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	rename(t, dir+".away", dir)
	refused(t, l) // it was tried a moment ago
	clock.pass(time.Second)
	record(t, l, decision(3))
	if err := l.Err(); err != nil {
		t.Fatalf("it works again: %v", err)
	}
	shut(t, l)

	var got []string
	for _, e := range events(t, dir, guardrail.Filter{}) {
		got = append(got, e.Kind+" "+e.Call+e.Text)
	}
	// The outcome, the decision that met the error, and four that came too early.
	want := []string{
		"decision c-1",
		"notice 6 events were not recorded: write " + filepath.Base(files(t, dir)[0]) + ": no space left on device",
		"decision c-3",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	sound(t, dir)
}

// TestRemovedWhileWritten: an event that nobody will ever read was not recorded. The log goes on
// in a new folder, with the same key, and says so.
func TestRemovedWhileWritten(t *testing.T) {
	for name, remove := range map[string]func(dir, file string) error{
		"folder": func(dir, _ string) error { return os.RemoveAll(dir) },
		"file":   func(_, file string) error { return os.Remove(file) },
	} {
		t.Run(name, func(t *testing.T) {
			l, dir := start(t, guardrail.Options{})
			key := filepath.Join(dir, guardrail.KeyFile)
			record(t, l, decision(1))
			before, err := guardrail.PublicKey(key)
			if err != nil {
				t.Fatal(err)
			}
			if err := remove(dir, files(t, dir)[0]); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Millisecond) // it has looked a moment ago
			e := decision(2)
			if ref, err := l.Record(&e); err == nil {
				t.Fatalf("an event was recorded as %s where nobody will find it", ref)
			}
			record(t, l, decision(3))
			shut(t, l)
			var got []string
			for _, e := range events(t, dir, guardrail.Filter{}) {
				got = append(got, e.Kind+" "+e.Call+e.Text)
			}
			want := []string{
				"notice 1 events were not recorded: somebody has removed the file while it was written to",
				"decision c-3",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if after, err := guardrail.PublicKey(key); after != before {
				t.Errorf("the key is another one: %v", err)
			}
			if r, err := guardrail.Verify(dir, guardrail.VerifyOptions{}); err != nil || r.OK() {
				t.Errorf("that a file is gone is not noticed: %v", err)
			}
		})
	}
}

// TestCloseAfterError: the last that a log does is to say what was lost.
func TestCloseAfterError(t *testing.T) {
	l, dir := start(t, guardrail.Options{})
	guardrail.Break(l, full(t))
	refused(t, l)
	shut(t, l)
	if all := events(t, dir, guardrail.Filter{Kind: guardrail.Notice}); len(all) != 1 {
		t.Errorf("%+v", all)
	}
	sound(t, dir)

	l, dir = start(t, guardrail.Options{})
	record(t, l, outcome(1))
	guardrail.Break(l, full(t))
	if err := l.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("an outcome was lost without a word: %v", err)
	}
	sound(t, dir)
}

func TestContinue(t *testing.T) {
	l, dir := start(t, guardrail.Options{Continue: true})
	guardrail.Break(l, full(t))
	e := decision(1)
	if ref, err := l.Record(&e); ref != "" || err != nil {
		t.Fatalf("ref %q, %v", ref, err)
	}
	if l.Err() == nil {
		t.Error("the error is not shown")
	}
	record(t, l, decision(2)) // opens a new file
	l.Close()
	if all := events(t, dir, guardrail.Filter{}); len(all) != 2 || all[1].Call != "c-2" {
		t.Errorf("%+v", all)
	}
	sound(t, dir)
}

// TestTornWrite: part of a batch that reached the disk before it was full is no
// fault, for the next file says where the chain went on.
func TestTornWrite(t *testing.T) {
	l, dir := start(t, guardrail.Options{})
	record(t, l, decision(1))
	name := files(t, dir)[0]
	guardrail.Break(l, full(t))
	refused(t, l)
	lines := linesOf(t, name)
	next := bytes.Replace(lines[1], []byte(`{"seq":2,`), []byte(`{"seq":3,`), 1)
	rewrite(t, name, append(rechained(append(lines, next), 2), `{"seq":4,"prev":"`...))
	record(t, l, decision(3))
	shut(t, l)
	if f := sound(t, dir).Files[0]; f.Torn != 17 || f.Lines != 3 || f.Signed != 1 {
		t.Errorf("%+v", f)
	}
}

func appendTo(t testing.TB, name, text string) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// TestConcurrent: whoever is told that an event is recorded finds it, also when
// writing breaks off and goes on meanwhile.
func TestConcurrent(t *testing.T) {
	l, dir := start(t, guardrail.Options{Rotate: 64 << 10, CheckpointLines: 10})
	const writers, each = 16, 50
	refs := make([]map[string]bool, writers)
	breakers := make([]*os.File, 4)
	for i := range breakers {
		breakers[i] = full(t)
	}
	var wg sync.WaitGroup
	for w := range writers {
		refs[w] = map[string]bool{}
		wg.Go(func() {
			for n := range each {
				e := decision(n)
				if ref, err := l.Record(&e); err == nil {
					refs[w][ref] = true
				}
				o := outcome(n)
				l.Record(&o)
				if w < len(breakers) && n == each/2 {
					guardrail.Break(l, breakers[w])
				}
			}
		})
	}
	wg.Wait()
	l.Close()
	found := map[string]bool{}
	for _, e := range events(t, dir, guardrail.Filter{Kind: guardrail.Decision}) {
		found[e.Ref] = true
	}
	for w := range refs {
		for ref := range refs[w] {
			if !found[ref] {
				t.Errorf("%s is not there", ref)
			}
		}
	}
	if len(found) == 0 {
		t.Error("nothing was recorded")
	}
	sound(t, dir)
}
