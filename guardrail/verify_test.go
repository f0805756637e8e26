package guardrail_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"capgate/guardrail"

	"github.com/google/go-cmp/cmp"
)

// closed writes a log of some events and closes it.
func closed(t testing.TB, dir string, calls int, o guardrail.Options) {
	t.Helper()
	o.Dir = dir
	l, err := guardrail.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	for n := range calls {
		record(t, l, decision(n))
		record(t, l, outcome(n))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func contents(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func rewrite(t testing.TB, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// faults verifies a folder that something was done to.
func faults(t testing.TB, dir string, o guardrail.VerifyOptions) string {
	t.Helper()
	r, err := guardrail.Verify(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range r.Faults {
		all = append(all, f.String())
	}
	if r.OK() != (len(all) == 0) {
		t.Error("OK is not whether there are faults")
	}
	return strings.Join(all, "\n")
}

// TestEveryByte changes each byte up to the last signed line, and every seventh
// in other ways too.
func TestEveryByte(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "events")
	closed(t, dir, 1, guardrail.Options{CheckpointLines: 2})
	name := files(t, dir)[0]
	whole := contents(t, name)
	sound(t, dir)
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	put := func(text []byte, at int) {
		if _, err := f.WriteAt(text, int64(at)); err != nil {
			t.Fatal(err)
		}
	}
	for i, was := range whole {
		for _, b := range []byte{was ^ 1, was ^ 0x20, '\n'} {
			if b == was || b != was^1 && i%7 != 0 {
				continue
			}
			put([]byte{b}, i)
			if faults(t, dir, guardrail.VerifyOptions{}) == "" {
				t.Fatalf("byte %d: %q for %q was not found", i, b, was)
			}
		}
		if put([]byte{was}, i); i%7 != 0 {
			continue
		}
		put(append(whole[i+1:len(whole):len(whole)], '\n'), i)
		if i < len(whole)-1 && faults(t, dir, guardrail.VerifyOptions{}) == "" {
			t.Fatalf("byte %d: it was not missed", i)
		}
		put(whole[i:], i)
	}
	sound(t, dir)
}

// TestTampering does to a log of three files, two of one chain, what somebody
// would do who holds no key.
func TestTampering(t *testing.T) {
	edit := func(name string, change func(lines [][]byte) [][]byte) func(*testing.T, string, []string) {
		return func(t *testing.T, dir string, all []string) {
			path := all[strings.Index("abc", name)]
			lines := bytes.SplitAfter(contents(t, path), []byte("\n"))
			rewrite(t, path, bytes.Join(change(lines[:len(lines)-1]), nil))
		}
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string, all []string)
		want   string
	}{
		"nothing": {func(*testing.T, string, []string) {}, ""},
		"removed line": {
			edit("a", func(l [][]byte) [][]byte { return slices.Delete(l, 2, 3) }),
			"removed, inserted or exchanged",
		},
		"swapped lines": {
			edit("a", func(l [][]byte) [][]byte { l[2], l[3] = l[3], l[2]; return l }),
			"removed, inserted or exchanged",
		},
		"repeated line": {
			edit("a", func(l [][]byte) [][]byte { return slices.Insert(l, 2, l[2]) }),
			"removed, inserted or exchanged",
		},
		"empty line": {edit("a", func(l [][]byte) [][]byte { return slices.Insert(l, 2, []byte("\n")) }), "no line of an event log"},
		"carriage return": {
			edit("c", func(l [][]byte) [][]byte { l[1] = []byte(strings.Replace(string(l[1]), "\n", "\r\n", 1)); return l }),
			"no line of an event log",
		},
		"added to the end":    {edit("c", func(l [][]byte) [][]byte { return append(l, l[1]) }), "behind the end"},
		"torn behind the end": {edit("c", func(l [][]byte) [][]byte { return append(l, []byte(`{"seq":`)) }), "no whole line"},
		"end gone, rubbish instead": {
			edit("c", func(l [][]byte) [][]byte { return append(l[:len(l)-1], []byte("rubbish")) }),
			"nor the beginning of one",
		},
		"first line gone": {edit("c", func(l [][]byte) [][]byte { return l[1:] }), "stand at the beginning"},
		"emptied":         {edit("c", func([][]byte) [][]byte { return nil }), "not even its first line"},
		"an old file cut": {edit("a", func(l [][]byte) [][]byte { return l[:len(l)-2] }), "the file was cut"},
		"line too long": {
			edit("c", func(l [][]byte) [][]byte { l[1] = bytes.Repeat([]byte("x"), guardrail.MaxLine+2); return l }),
			"longer than",
		},
		"one line anew": {edit("a", func(l [][]byte) [][]byte {
			l[2] = bytes.Replace(l[2], []byte(`"bytes":4711`), []byte(`"bytes":1`), 1)
			rechained(l[:3], 2)
			return l
		}), "does not follow the one before it"},
		"signature taken away": {edit("a", func(l [][]byte) [][]byte {
			l[5] = append(l[5][:bytes.Index(l[5], []byte(`,"sig":"`))], "}\n"...)
			return l
		}), "not signed"},
		"signature added": {edit("a", func(l [][]byte) [][]byte {
			l[1] = append(bytes.TrimSuffix(l[1], []byte("}\n")), l[0][bytes.Index(l[0], []byte(`,"sig":"`)):]...)
			return l
		}), "a signature was added"},
		"old file goes on": {edit("a", func(l [][]byte) [][]byte {
			last := l[len(l)-2]
			more := bytes.Replace(l[2], []byte(`{"seq":3,`), fmt.Appendf(nil, `{"seq":%d,`, len(l)), 1)
			l = append(l[:len(l)-1], more)
			if bytes.Contains(last, []byte(`"sig"`)) {
				panic("the last line is signed: change the sizes")
			}
			rechained(l, len(l)-1)
			return l
		}), "where 2"},
		"first of a chain gone":  {func(t *testing.T, _ string, all []string) { os.Remove(all[0]) }, "the file is missing"},
		"second of a chain gone": {func(t *testing.T, _ string, all []string) { os.Remove(all[1]) }, "the file is missing"},
		"renamed": {func(t *testing.T, dir string, all []string) {
			os.Rename(all[2], filepath.Join(dir, "20200101T000000.000000Z-1-0123456789abcdef.jsonl"))
		}, "the line belongs to the file"},
		"copied": {func(t *testing.T, dir string, all []string) {
			rewrite(t, filepath.Join(dir, "20990101T000000.000000Z-1-0123456789abcdef.jsonl"), contents(t, all[2]))
		}, "the line belongs to the file"},
		"exchanged": {func(t *testing.T, _ string, all []string) {
			a, b := contents(t, all[0]), contents(t, all[2])
			rewrite(t, all[0], b)
			rewrite(t, all[2], a)
		}, "the line belongs to the file"},
		"a link instead": {func(t *testing.T, dir string, all []string) {
			os.Rename(all[2], filepath.Join(dir, "moved"))
			os.Symlink("moved", all[2])
		}, "no file of the log"},
		"foreign file": {func(t *testing.T, dir string, _ []string) {
			rewrite(t, filepath.Join(dir, "more.jsonl"), nil)
		}, "no file of the log"},
		"another install's file": {func(t *testing.T, dir string, all []string) {
			other := filepath.Join(t.TempDir(), "other")
			closed(t, other, 2, guardrail.Options{})
			name := files(t, other)[0]
			rewrite(t, filepath.Join(dir, filepath.Base(name)), contents(t, name))
		}, "not signed with the key of this log"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "events")
			closed(t, dir, 8, guardrail.Options{Rotate: 8000, CheckpointLines: 4})
			closed(t, dir, 3, guardrail.Options{})
			all := files(t, dir)
			if len(all) != 3 {
				t.Fatalf("%d files", len(all))
			}
			c.change(t, dir, all)
			found := faults(t, dir, guardrail.VerifyOptions{})
			if !strings.Contains(found, c.want) || c.want == "" && found != "" {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}

// TestForged: lines that are chained as they should be, and signed by whoever
// could not hold the key of this log.
func TestForged(t *testing.T) {
	dir, other := filepath.Join(t.TempDir(), "events"), filepath.Join(t.TempDir(), "other")
	closed(t, dir, 2, guardrail.Options{})
	name := files(t, dir)[0]
	when := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	closed(t, other, 5, guardrail.Options{Clock: func() time.Time { return when }})
	rewrite(t, name, contents(t, files(t, other)[0]))
	if found := faults(t, dir, guardrail.VerifyOptions{}); !strings.Contains(found, "not signed with the key") {
		t.Errorf("found %q", found)
	}
	// With the forger's key in its place, what was kept elsewhere still tells.
	closed(t, dir, 0, guardrail.Options{})
	all, err := guardrail.Checkpoints(dir)
	if err != nil {
		t.Fatal(err)
	}
	if found := faults(t, other, guardrail.VerifyOptions{Anchors: all[1:]}); !strings.Contains(found, "anchor 1 is not signed") {
		t.Errorf("found %q", found)
	}
}

// rechained gives lines, from one on, the hashes that their text asks for: what
// somebody can do who knows how the log is made, and does not hold its key.
func rechained(lines [][]byte, from int) []byte {
	form := regexp.MustCompile(`^(\{"seq":\d+,"prev":")[0-9a-f]{64}(.*,"hash":")[0-9a-f]{64}("(,"sig":"[0-9a-f]+")?\}\n)$`)
	prev := string(lines[from-1][strings.LastIndex(string(lines[from-1]), `,"hash":"`)+9:][:64])
	for i := from; i < len(lines); i++ {
		parts := form.FindSubmatch(lines[i])
		head := string(parts[1]) + prev + strings.TrimSuffix(string(parts[2]), `,"hash":"`)
		prev = fmt.Sprintf("%x", sha256.Sum256([]byte(head)))
		lines[i] = []byte(head + `,"hash":"` + prev + string(parts[3]))
	}
	return bytes.Join(lines, nil)
}

// linesOf returns the lines of a file, with their line feeds.
func linesOf(t testing.TB, name string) [][]byte {
	t.Helper()
	lines := bytes.SplitAfter(contents(t, name), []byte("\n"))
	return lines[:len(lines)-1]
}

func expect(t *testing.T, found, want string) {
	t.Helper()
	if !strings.Contains(found, want) || want == "" && found != "" {
		t.Errorf("found %q, want %q", found, want)
	}
}

// TestRechained: a chain that fits is worth what its signatures are.
func TestRechained(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "events")
	closed(t, dir, 6, guardrail.Options{CheckpointLines: 4})
	name := files(t, dir)[0]
	whole := contents(t, name)
	lines := linesOf(t, name)
	lines[2] = bytes.Replace(lines[2], []byte(`"bytes":4711`), []byte(`"bytes":1`), 1)
	rewrite(t, name, rechained(lines, 2))
	expect(t, faults(t, dir, guardrail.VerifyOptions{}), ":6: the line is not signed with the key")

	// Behind the last signature it is worth nothing, and the report says so,
	rewrite(t, name, whole)
	lines = linesOf(t, name)[:6]
	for n := 7; n < 60; n++ {
		lines = append(lines, []byte(fmt.Sprintf(`{"seq":%d,"prev":"%064d","time":"2026-11-21T12:00:00.000000000Z","kind":"decision","agent":"scout","decision":"allow","hash":"%064d"}`+"\n", n, 0, 0)))
	}
	forged := rechained(lines, 6)
	rewrite(t, name, forged)
	r := sound(t, dir)
	expect(t, strings.Join(r.Unknown, "\n"), "53 whole lines and 0 bytes behind its last signed line prove nothing")

	// unless a file that began later has seen what stood there.
	rewrite(t, name, whole)
	closed(t, dir, 0, guardrail.Options{})
	sound(t, dir)
	rewrite(t, name, forged)
	expect(t, faults(t, dir, guardrail.VerifyOptions{}), "of the chain is missing or another one")
}

// TestCut: a tail behind the last signed line is cut unnoticed, and the report
// says so; a signed line that was kept tells, and so does a later file.
func TestCut(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "events")
	closed(t, dir, 6, guardrail.Options{CheckpointLines: 4})
	anchors := checkpoints(t, dir, 1)
	sound(t, dir, anchors...)
	name := files(t, dir)[0]
	whole, lines := contents(t, name), linesOf(t, name)
	rewrite(t, name, bytes.Join(lines[:8], nil)) // begin, 4, checkpoint, 2
	r := sound(t, dir)
	want := []guardrail.FileReport{{Name: filepath.Base(name), Lines: 8, Signed: 6}}
	if diff := cmp.Diff(want, r.Files); diff != "" {
		t.Error(diff)
	}
	expect(t, strings.Join(r.Unknown, "\n"), "2 whole lines and 0 bytes behind its last signed line prove nothing")
	expect(t, faults(t, dir, guardrail.VerifyOptions{Anchors: anchors}), "anchor 1 names it")

	rewrite(t, name, whole)
	closed(t, dir, 0, guardrail.Options{})
	rewrite(t, name, whole[:len(whole)-1])
	expect(t, faults(t, dir, guardrail.VerifyOptions{}), "the file was cut")
}

// TestRemoved: the same of a whole file.
func TestRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "events")
	closed(t, dir, 1, guardrail.Options{})
	closed(t, dir, 1, guardrail.Options{})
	anchors := checkpoints(t, dir, 2)
	if err := os.Remove(files(t, dir)[1]); err != nil {
		t.Fatal(err)
	}
	expect(t, strings.Join(sound(t, dir).Unknown, "\n"), "or the newest files removed")
	o := guardrail.VerifyOptions{Anchors: anchors, Since: time.Now().Add(time.Hour)}
	expect(t, faults(t, dir, o), "anchor 2 names it")
}

func TestBadAnchors(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "events")
	closed(t, dir, 1, guardrail.Options{})
	good := checkpoints(t, dir, 1)[0]
	for text, want := range map[string]string{
		"":                                      "no line of an event log",
		"{}":                                    "no line of an event log",
		string(linesOf(t, files(t, dir)[0])[1]): "not signed",
		strings.Replace(good, `"end"`, `"enD"`, 1): "was changed",
	} {
		expect(t, faults(t, dir, guardrail.VerifyOptions{Anchors: []string{text}}), "anchor 1")
		expect(t, faults(t, dir, guardrail.VerifyOptions{Anchors: []string{text}}), want)
	}
	expect(t, faults(t, dir, guardrail.VerifyOptions{Anchors: []string{" " + good + "\n"}}), "")
}

func checkpoints(t *testing.T, dir string, n int) []string {
	t.Helper()
	all, err := guardrail.Checkpoints(dir)
	if err != nil || len(all) != n {
		t.Fatal(all, err)
	}
	return all
}

func TestSince(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "events")
	for day := range 3 {
		when := time.Date(2026, 1, 1+day, 0, 0, 0, 0, time.UTC)
		closed(t, dir, 1, guardrail.Options{Clock: func() time.Time { return when }})
	}
	if err := os.Remove(files(t, dir)[0]); err != nil {
		t.Fatal(err)
	}
	if found := faults(t, dir, guardrail.VerifyOptions{}); strings.Count(found, "missing") != 1 {
		t.Errorf("found %q", found)
	}
	since := guardrail.VerifyOptions{Since: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)}
	if found := faults(t, dir, since); found != "" {
		t.Errorf("found %q", found)
	}
	if err := os.Remove(files(t, dir)[0]); err != nil {
		t.Fatal(err)
	}
	if found := faults(t, dir, since); !strings.Contains(found, "missing") {
		t.Errorf("found %q", found)
	}
}

// TestKeys: a log is verified with the key of its install, a public key, an
// anchor's key, or, which the report says, with none.
func TestKeys(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "events")
	closed(t, dir, 1, guardrail.Options{})
	file := filepath.Join(dir, guardrail.KeyFile)
	key, err := guardrail.PublicKey(file)
	if err != nil {
		t.Fatal(err)
	}
	anchors, err := guardrail.Checkpoints(dir)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := file + ".away"
	if err := os.Rename(file, elsewhere); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		o      guardrail.VerifyOptions
		want   string
		unsure bool
	}{
		"file":        {guardrail.VerifyOptions{KeyFile: elsewhere}, "", false},
		"key":         {guardrail.VerifyOptions{Key: key}, "", false},
		"another key": {guardrail.VerifyOptions{Key: strings.Repeat("ab", 32)}, "not signed with the key", false},
		"anchor":      {guardrail.VerifyOptions{Anchors: anchors}, "", false},
		"none":        {guardrail.VerifyOptions{}, "", true},
	} {
		r, err := guardrail.Verify(dir, c.o)
		if err != nil {
			t.Fatal(err)
		}
		found := faults(t, dir, c.o)
		if !strings.Contains(found, c.want) || c.want == "" && found != "" {
			t.Errorf("%s: found %q, want %q", name, found, c.want)
		}
		if unsure := strings.Contains(strings.Join(r.Unknown, "\n"), "whose signatures"); unsure != c.unsure {
			t.Errorf("%s: %v", name, r.Unknown)
		}
	}
	for _, o := range []guardrail.VerifyOptions{{Key: "ab"}, {Key: "x"}, {KeyFile: files(t, dir)[0]}} {
		if _, err := guardrail.Verify(dir, o); err == nil {
			t.Errorf("%+v is a key", o)
		}
	}
	if _, err := guardrail.Verify(file, guardrail.VerifyOptions{}); err == nil {
		t.Error("verified nothing")
	}
}

// TestLive: what is being written is no fault.
func TestLive(t *testing.T) {
	l, dir := start(t, guardrail.Options{})
	record(t, l, decision(1))
	appendTo(t, files(t, dir)[0], `{"seq":3,"pr`)
	if f := sound(t, dir).Files[0]; !f.Live || f.Closed || f.Torn != 12 || f.Lines != 2 || f.Signed != 1 {
		t.Errorf("%+v", f)
	}
	if n := len(events(t, dir, guardrail.Filter{})); n != 1 {
		t.Errorf("%d events", n)
	}
}

// TestLiveAndSigned: nothing is unknown of the lines of a log that are all signed.
func TestLiveAndSigned(t *testing.T) {
	_, dir := start(t, guardrail.Options{})
	r := sound(t, dir)
	if f := r.Files[0]; !f.Live || f.Lines != f.Signed {
		t.Fatalf("%+v", f)
	}
	for _, u := range r.Unknown {
		if strings.Contains(u, "not signed yet") {
			t.Error(u)
		}
	}
}

// TestVerifyWhileWriting: a log that is in use is sound at any moment.
func TestVerifyWhileWriting(t *testing.T) {
	l, dir := start(t, guardrail.Options{Rotate: 8 << 10, CheckpointLines: 5, Sync: guardrail.SyncNone})
	var stopped atomic.Bool
	go func() {
		defer stopped.Store(true)
		for n := range 300 {
			d, o := decision(n), outcome(n)
			_, first := l.Record(&d)
			_, second := l.Record(&o)
			if err := errors.Join(first, second); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for !stopped.Load() && !t.Failed() {
		sound(t, dir)
		events(t, dir, guardrail.Filter{Call: "c-7"})
	}
	sound(t, dir)
}
