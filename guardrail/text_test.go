package guardrail_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"capgate/guardrail"
)

// keyFile makes the key of an install.
func keyFile(t testing.TB) string {
	t.Helper()
	_, dir := start(t, guardrail.Options{})
	return filepath.Join(dir, guardrail.KeyFile)
}

// written returns the event as it is read back, and its line.
func written(t testing.TB, key string, e guardrail.Event) guardrail.Entry {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "events")
	l, err := guardrail.Open(guardrail.Options{Dir: dir, KeyFile: key, Sync: guardrail.SyncNone})
	if err != nil {
		t.Fatal(err)
	}
	record(t, l, e)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(onDisk(t, dir)); n != 3 {
		t.Fatalf("%d lines", n)
	}
	r, err := guardrail.Verify(dir, guardrail.VerifyOptions{KeyFile: key})
	if err != nil || !r.OK() {
		t.Fatal(err, r.Faults)
	}
	return events(t, dir, guardrail.Filter{})[0]
}

func TestEscape(t *testing.T) {
	key := keyFile(t)
	for _, c := range []struct{ text, want string }{
		{"plain /srv/ä 文 <b>&", `plain /srv/ä 文 <b>&`},
		{`a"b\c`, `a\"b\\c`},
		{"a\nb\tc\rd\x00\x1b[31m\x7f", `a\nb\tc\u000dd\u0000\u001b[31m\u007f`},
		{"a\u0085\u009bb", `a\u0085\u009bb`},
		{"a\u2028b\u2029c", `a\u2028b\u2029c`},
		{"a\u202eb\u2066c\u200ed\u061c", `a\u202eb\u2066c\u200ed\u061c`},
		{"a\u200bb\u200dc\ufeffd\u2060\u00ad\u180e", `a\u200bb\u200dc\ufeffd\u2060\u00ad\u180e`},
		{"a\u00a0b\u3000c", `a\u00a0b\u3000c`},
		{"a\U000e0041b\U0001f600", `a\udb40\udc41b😀`},
		{"a\ufe0fb\U000e0100c\u034fd\u3164e\uffa0\u115f", `a\ufe0fb\udb40\udd00c\u034fd\u3164e\uffa0\u115f`},
		{"a\xffb\xc3", `a\ufffdb\ufffd`},
		{"a\ue000b\U0010ffff", `a\ue000b\udbff\udfff`},
	} {
		e := written(t, key, guardrail.Event{Kind: guardrail.Notice, Text: c.text})
		if !strings.Contains(e.Line, `"text":"`+c.want+`"`) {
			t.Errorf("%q is written %s", c.text, e.Line)
		}
		if e.Text != string([]rune(c.text)) {
			t.Errorf("%q is read %q", c.text, e.Text)
		}
	}
}

func TestCutText(t *testing.T) {
	key := keyFile(t)
	long := strings.Repeat("ä", 5000)
	e := written(t, key, guardrail.Event{
		Kind: guardrail.Decision, Tool: long, Text: strings.Repeat("\u202e", 5000), Names: strings.Split(strings.Repeat("n,", 99), ","), MoreNames: 7,
		Needs: make([]guardrail.Need, 40),
	})
	if want := strings.Repeat("ä", 128) + "…(+9744)"; e.Tool != want {
		t.Errorf("tool %q", e.Tool)
	}
	if want := strings.Repeat("\u202e", 682) + "…(+12954)"; e.Text != want {
		t.Errorf("text %q", e.Text)
	}
	if len(e.Names) != 64 || len(e.Needs) != 32 || !strings.Contains(e.Line, `"more_needs":8`) || !strings.Contains(e.Line, `"more_names":43`) {
		t.Errorf("%s", e.Line)
	}
	fits := strings.Repeat("ä", 128)
	if e := written(t, key, guardrail.Event{Kind: guardrail.Decision, Tool: fits}); e.Tool != fits {
		t.Errorf("tool %q", e.Tool)
	}
}

// FuzzRecord: any bytes in any field make one line of JSON that reads back as
// they were, and that nothing can hide in (injection, MCP08).
func FuzzRecord(f *testing.F) {
	f.Add("scout", "fs.read", "/srv/a", "text", int64(12))
	f.Add("\n", `","hash":"`, "\xff\u2028", `"}`+"\n"+`{"seq":1}`, int64(-1))
	f.Add(strings.Repeat("a", 300), strings.Repeat("\"", 300), strings.Repeat("\x00", 5000), strings.Repeat("\U000e0001", 2000), int64(1)<<62)
	key := keyFile(f)
	f.Fuzz(func(t *testing.T, name, verb, object, text string, n int64) {
		in := guardrail.Event{
			Kind: guardrail.Outcome, Call: name, Agent: name, Session: verb, Upstream: name, Tool: text, Method: object,
			Decision: verb, Code: object, Grant: text, Link: object, Policy: name, Argument: verb, Text: text,
			Needs: []guardrail.Need{
				{Verb: verb, Object: object, Also: []string{text, name}, In: verb, Argument: name},
				{Verb: name, Object: text, Argument: verb},
			}, Names: []string{name, text},
			Bytes: int(n), Error: object,
		}
		e := written(t, key, in)
		if len(e.Line) > guardrail.MaxLine || !json.Valid([]byte(e.Line)) || !utf8.ValidString(e.Line) {
			t.Fatalf("%d bytes: %q", len(e.Line), e.Line)
		}
		if i := strings.IndexFunc(e.Line, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			t.Fatalf("%q shows in %q", e.Line[i:i+4], e.Line)
		}
		same(t, in.Agent, e.Agent, 256)
		same(t, in.Tool, e.Tool, 256)
		same(t, in.Code, e.Code, 256)
		same(t, in.Text, e.Text, 4096)
		same(t, in.Error, e.Error, 4096)
		same(t, object, e.Needs[0].Object, 4096)
		same(t, text, e.Needs[1].Object, 4096)
		same(t, text, e.Needs[0].Also[0], 768)
		same(t, verb, e.Needs[0].In, 768)
		same(t, name, e.Names[0], 256)
		if e.Bytes != in.Bytes {
			t.Fatalf("%d bytes", e.Bytes)
		}
	})
}

// TestLargest: an event with everything at its limit is one line that can be read.
func TestLargest(t *testing.T) {
	long := strings.Repeat("\U000e0001", 5000)
	need := guardrail.Need{Verb: long, Object: long, Also: []string{long, long, long}, In: long, Argument: long}
	in := guardrail.Event{
		Kind: guardrail.Decision, Call: long, Agent: long, Session: long, Upstream: long, Tool: long, Method: long,
		Decision: long, Code: long, Grant: long, Link: long, Policy: long, Argument: long, Text: long, Error: long,
	}
	for range 100 {
		in.Needs, in.Names = append(in.Needs, need), append(in.Names, long)
	}
	e := written(t, keyFile(t), in)
	if len(e.Line) > guardrail.MaxLine || len(e.Needs) == 0 || len(e.Needs[0].Also) != 2 {
		t.Errorf("%d bytes, %d needs", len(e.Line), len(e.Needs))
	}
}

// same checks that a text is what was written, as far as it was kept.
func same(t *testing.T, in, out string, most int) {
	t.Helper()
	in = string([]rune(in)) // each byte that is no UTF-8 on its own
	if in == out {
		return
	}
	kept, rest, found := strings.Cut(out, "…(+")
	if i := strings.LastIndex(out, "…(+"); found && i >= 0 {
		kept, rest = out[:i], out[i:]
	}
	if rest == "" || !strings.HasPrefix(in, kept) || len(in) <= most/12 {
		t.Fatalf("%q became %q", in, out)
	}
}

// FuzzVerify: nothing crashes the readers, and what is not what was written is
// found.
func FuzzVerify(f *testing.F) {
	dir := filepath.Join(f.TempDir(), "events")
	closed(f, dir, 2, guardrail.Options{CheckpointLines: 3})
	name := files(f, dir)[0]
	whole := string(contents(f, name))
	f.Add(whole[:700], uint(0), uint(700))
	f.Add("{\"seq\":1,", uint(3), uint(9))
	f.Add("\n", uint(700), uint(0))
	f.Add("}", uint(1), uint(999))
	f.Add("", uint(1<<20), uint(0))
	f.Fuzz(func(t *testing.T, text string, from, gap uint) {
		from = min(from, uint(len(whole)))
		now := whole[:from] + text + whole[min(from+gap%1000, uint(len(whole))):]
		replace(t, name, now)
		found := faults(t, dir, guardrail.VerifyOptions{})
		for range guardrail.Read(dir, guardrail.Filter{Agent: "scout"}) {
		}
		if _, err := guardrail.Checkpoints(dir); err != nil && found == "" {
			t.Fatal(err)
		}
		if found == "" && !strings.HasPrefix(whole, now) {
			t.Fatalf("not found: %q", now)
		}
	})
}

// replace writes over a file in place, which is much quicker than to empty it first.
func replace(t *testing.T, name, text string) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte(text), 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(int64(len(text))); err != nil {
		t.Fatal(err)
	}
}
