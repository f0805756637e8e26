package guardrail_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"capgate/guardrail"

	"github.com/google/go-cmp/cmp"
)

// start opens a log in a fresh folder.
func start(t testing.TB, o guardrail.Options) (*guardrail.Log, string) {
	t.Helper()
	if o.Dir == "" {
		o.Dir = filepath.Join(t.TempDir(), "events")
	}
	l, err := guardrail.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, o.Dir
}

func record(t testing.TB, l *guardrail.Log, e guardrail.Event) string {
	t.Helper()
	ref, err := l.Record(&e)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func decision(n int) guardrail.Event {
	return guardrail.Event{
		Kind: guardrail.Decision, Call: fmt.Sprintf("c-%d", n),
		Agent: "scout", Session: "s-1", Upstream: "files", Tool: "files__read", Method: "tools/call",
		Decision: "allow", Grant: "fs.read: /srv/**", Policy: "sha256:0123456789abcdef",
		Needs: []guardrail.Need{
			{Verb: "tool.invoke", Object: "files.read"},
			{Verb: "fs.read", Object: "/srv/data/a.txt", Argument: "path"},
		},
		Names: []string{"path", "encoding"},
	}
}

func outcome(n int) guardrail.Event {
	return guardrail.Event{
		Kind: guardrail.Outcome, Call: fmt.Sprintf("c-%d", n), Agent: "scout", Tool: "files__read",
		Latency: 1500 * time.Microsecond, Bytes: 4711,
	}
}

func shut(t testing.TB, l *guardrail.Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// events returns what Read finds, which must be without errors.
func events(t testing.TB, dir string, f guardrail.Filter) (all []guardrail.Entry) {
	t.Helper()
	for e, err := range guardrail.Read(dir, f) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// files returns the names of the log's files.
func files(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// onDisk returns the lines of all files.
func onDisk(t testing.TB, dir string) (lines []string) {
	t.Helper()
	for _, name := range files(t, dir) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")...)
	}
	return lines
}

// sound verifies a folder and returns the report.
func sound(t testing.TB, dir string, anchors ...string) *guardrail.Report {
	t.Helper()
	r, err := guardrail.Verify(dir, guardrail.VerifyOptions{Anchors: anchors})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Faults {
		t.Error(f)
	}
	return r
}

func TestRecord(t *testing.T) {
	l, dir := start(t, guardrail.Options{})
	want := []guardrail.Event{decision(1), outcome(1)}
	refs := []string{record(t, l, want[0]), record(t, l, want[1])}
	shut(t, l)
	var got []guardrail.Event
	for i, e := range events(t, dir, guardrail.Filter{}) {
		got = append(got, e.Event)
		if e.Ref != refs[i] || e.Seq != uint64(i+2) {
			t.Errorf("event %d: ref %s, seq %d", i, e.Ref, e.Seq)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for i, ref := range refs {
		found := events(t, dir, guardrail.Filter{Ref: ref})
		if len(found) != 1 || found[0].Kind != want[i].Kind {
			t.Errorf("ref %s found %v", ref, found)
		}
	}
	state := []guardrail.FileReport{{Name: filepath.Base(files(t, dir)[0]), Lines: 4, Signed: 4, Closed: true}}
	if diff := cmp.Diff(state, sound(t, dir).Files); diff != "" {
		t.Error(diff)
	}
}

func TestLines(t *testing.T) {
	l, dir := start(t, guardrail.Options{})
	record(t, l, decision(1))
	shut(t, l)
	form := regexp.MustCompile(`^\{"seq":\d+,"prev":"[0-9a-f]{64}","time":"[0-9T:.-]{29}Z","kind":"[a-z]+".*,"hash":"[0-9a-f]{64}"(,"sig":"[0-9a-f]{128}")?\}$`)
	for _, line := range onDisk(t, dir) {
		if !json.Valid([]byte(line)) || !form.MatchString(line) {
			t.Error(line)
		}
	}
}

func TestClosed(t *testing.T) {
	l, _ := start(t, guardrail.Options{Continue: true})
	shut(t, l)
	shut(t, l)
	e := decision(1)
	if ref, err := l.Record(&e); err == nil || ref != "" {
		t.Errorf("a closed log recorded %q", ref)
	}
}

// TestWritten: when Record returns, a decision stands in the file, and an
// outcome at the latest a moment later.
func TestWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, dir := start(t, guardrail.Options{Sync: guardrail.SyncNone})
		defer l.Close()
		for i, e := range []guardrail.Event{
			decision(1),
			{Kind: guardrail.Refusal, Code: "malformed_request"},
			{Kind: guardrail.Notice, Text: "reload"},
		} {
			record(t, l, e)
			if n := len(onDisk(t, dir)); n != i+2 {
				t.Fatalf("%s: %d lines", e.Kind, n)
			}
		}
		record(t, l, outcome(1))
		if n := len(onDisk(t, dir)); n != 4 {
			t.Fatalf("an outcome cost a write: %d lines", n)
		}
		time.Sleep(100 * time.Millisecond) // of the bubble
		synctest.Wait()
		if n := len(onDisk(t, dir)); n != 5 {
			t.Fatalf("the outcome was not written: %d lines", n)
		}
		record(t, l, outcome(2))
		record(t, l, decision(2))
		if n := len(onDisk(t, dir)); n != 7 {
			t.Fatalf("the outcome did not go with the decision: %d lines", n)
		}
		if r := sound(t, dir); r.Files[0].Signed != 1 {
			t.Fatalf("signed too early: %+v", r.Files)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if r := sound(t, dir); r.Files[0].Signed != 8 {
			t.Fatalf("not signed: %+v", r.Files)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(onDisk(t, dir)); n != 8 {
			t.Fatalf("an idle log wrote: %d lines", n)
		}
	})
}

func TestModes(t *testing.T) {
	l, dir := start(t, guardrail.Options{})
	record(t, l, decision(1))
	for name, want := range map[string]fs.FileMode{
		dir:                                   0o700,
		files(t, dir)[0]:                      0o600,
		filepath.Join(dir, guardrail.KeyFile): 0o600,
	} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s: %v, want %v", name, info.Mode().Perm(), want)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	open := t.TempDir()
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	loose, empty, linked := t.TempDir(), t.TempDir(), t.TempDir()
	for dir, text := range map[string]string{loose: "capgate-log-key-1 " + strings.Repeat("ab", 32) + "\n", empty: ""} {
		if err := os.WriteFile(filepath.Join(dir, guardrail.KeyFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(loose, guardrail.KeyFile), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(loose, guardrail.KeyFile), filepath.Join(linked, guardrail.KeyFile)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		o    guardrail.Options
		want string
	}{
		"no folder":     {guardrail.Options{}, "no folder is named"},
		"open folder":   {guardrail.Options{Dir: open}, "others may write"},
		"a file":        {guardrail.Options{Dir: "/dev/null"}, "not a directory"},
		"open key":      {guardrail.Options{Dir: loose}, "others may use log.key"},
		"no key":        {guardrail.Options{Dir: empty}, "holds no key"},
		"linked key":    {guardrail.Options{Dir: linked}, "no regular file"},
		"negative":      {guardrail.Options{Dir: empty, Rotate: -1}, "negative"},
		"unknown sync":  {guardrail.Options{Dir: empty, Sync: 7}, "no Sync 7"},
		"no randomness": {guardrail.Options{Dir: t.TempDir(), Rand: strings.NewReader("")}, "random"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := guardrail.Open(c.o)
			if err == nil {
				l.Close()
				t.Fatal("it opened")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// zeros is a reader that has the same bytes for everybody.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestNeverOver: a file that is there is never written to or replaced.
func TestNeverOver(t *testing.T) {
	o := guardrail.Options{Clock: func() time.Time { return noon }, Rand: zeros{}}
	l, dir := start(t, o)
	record(t, l, decision(1))
	o.Dir = dir
	if l, err := guardrail.Open(o); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v, %v", l, err)
	}
	if n := len(events(t, dir, guardrail.Filter{})); n != 1 {
		t.Errorf("%d events", n)
	}
	name := files(t, dir)[0]
	shut(t, l)
	rename(t, name, name+".new")
	if l, err := guardrail.Open(o); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v, %v", l, err)
	}
	if n := len(linesOf(t, name+".new")); n != 3 {
		t.Errorf("%d lines", n)
	}
}

func TestUnknownKind(t *testing.T) {
	l, dir := start(t, guardrail.Options{Continue: true})
	for _, kind := range []string{"", "begin", "checkpoint", "end", "Decision", "decision\n"} {
		if ref, err := l.Record(&guardrail.Event{Kind: kind}); err == nil || ref != "" {
			t.Errorf("kind %q: ref %q", kind, ref)
		}
	}
	if n := len(events(t, dir, guardrail.Filter{})); n != 0 {
		t.Errorf("%d events", n)
	}
}

func TestHashTargets(t *testing.T) {
	l, dir := start(t, guardrail.Options{HashTargets: true})
	for n := range 3 {
		e := decision(n)
		e.Needs = e.Needs[1:]
		if n == 2 {
			e.Needs[0].Object = "/srv/data/b.txt"
		}
		e.Needs[0].Also, e.Needs[0].In = []string{"/srv/real/a.txt"}, "/srv/real/a.txt"
		e.Text = "this needs fs.read /srv/data/a.txt" // as a denial is worded
		record(t, l, e)
	}
	other, elsewhere := start(t, guardrail.Options{HashTargets: true})
	e := decision(1)
	e.Needs = e.Needs[1:]
	record(t, other, e)
	var seen []string
	for _, e := range append(events(t, dir, guardrail.Filter{}), events(t, elsewhere, guardrail.Filter{})...) {
		if strings.Contains(e.Line, "a.txt") || !strings.HasPrefix(e.Needs[0].Object, "hmac:") {
			t.Errorf("in clear: %s", e.Line)
		}
		seen = append(seen, e.Needs[0].Object)
	}
	if seen[0] != seen[1] || seen[0] == seen[2] || seen[0] == seen[3] {
		t.Errorf("one object, one hash, of one install: %v", seen)
	}
}

func TestScrub(t *testing.T) {
	l, dir := start(t, guardrail.Options{Scrub: func(upstream, text string) string {
		return strings.ReplaceAll(strings.ReplaceAll(text, "hunter2", "***"), "learnt of "+upstream, "+++")
	}})
	record(t, l, guardrail.Event{
		Kind: guardrail.Outcome, Text: "a hunter2 b", Error: "hunter2", Link: "the hunter2 link",
		Needs: []guardrail.Need{{Verb: "net.get", Object: "https://x/?k=hunter2"}},
	})
	for _, named := range []guardrail.Event{{Kind: guardrail.Refusal}, {Kind: guardrail.Notice}, {Kind: guardrail.Decision, Code: "unknown_tool"}} {
		named.Tool, named.Method, named.Argument, named.Names = "a.hunter2", "hunter2/get", "hunter2", []string{"a", "hunter2"} // as a server, or an agent, calls it
		record(t, l, named)
	}
	for _, upstream := range []string{"one", "", "two"} {
		record(t, l, guardrail.Event{Kind: guardrail.Notice, Upstream: upstream, Text: "what is learnt of one"})
	}
	l.Close()
	all := events(t, dir, guardrail.Filter{})
	for i, want := range []string{"what is +++", "what is +++one", "what is learnt of one"} {
		if got := all[len(all)-3+i].Text; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	all = all[:len(all)-3]
	e := all[0]
	if strings.Contains(e.Line, "hunter2") || e.Text != "a *** b" || e.Error != "***" || e.Needs[0].Object != "https://x/?k=***" {
		t.Error(e.Line)
	}
	for _, e := range all[1:] {
		if strings.Contains(e.Line, "hunter2") || e.Tool != "a.***" || e.Method != "***/get" || e.Argument != "***" {
			t.Error(e.Line)
		}
	}
}

func TestRotation(t *testing.T) {
	for _, sync := range []guardrail.Sync{guardrail.SyncInterval, guardrail.SyncAlways, guardrail.SyncNone} {
		l, dir := start(t, guardrail.Options{Rotate: 4 << 10, Sync: sync})
		for n := range 60 {
			record(t, l, decision(n))
			record(t, l, outcome(n))
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if n := len(files(t, dir)); n < 12 || n > 30 {
			t.Errorf("%d files", n)
		}
		all := events(t, dir, guardrail.Filter{})
		if len(all) != 120 {
			t.Fatalf("%d events", len(all))
		}
		for i, e := range all {
			if want := fmt.Sprintf("c-%d", i/2); e.Call != want {
				t.Fatalf("event %d is of call %s", i, e.Call)
			}
		}
		if r := sound(t, dir); !r.Files[0].Closed {
			t.Errorf("%+v", r.Files[0])
		}
	}
}
