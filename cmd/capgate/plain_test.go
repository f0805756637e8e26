package main

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"capgate/guardrail"
	"capgate/proxy"
)

func TestPlain(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`C:\src "a" \n \u000a é 文 😀`, `C:\src "a" \n \u000a é 文 😀`},
		{"a\nb\u2028c\u2029d", `a\u{a}b\u{2028}c\u{2029}d`},
		{"\u00ad\u034f\u115f\u180e\u3164\ufe0f\u200b\u202e", `\u{ad}\u{34f}\u{115f}\u{180e}\u{3164}\u{fe0f}\u{200b}\u{202e}`},
		{"\u00a0\u3000\u2800", `\u{a0}\u{3000}\u{2800}`},
		{"\U000e0041", `\u{e0041}`},
		{`\u{a} \\u{a} \u`, `\u{5c}u{a} \\u{5c}u{a} \u`},
		{"\x9b31m", "\ufffd31m"},
		{"\x9b31m\x1b[31m", "\ufffd31m\\u{1b}[31m"},
	} {
		if got := plain(c.text); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}

func TestCell(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"git log -1", "git log -1"},
		{"up.ok  tool.invoke up.ok  0123456789abcdef", `up.ok \u{20}tool.invoke up.ok \u{20}0123456789abcdef`},
		{"a   b", `a \u{20}\u{20}b`},
		{" a", `\u{20}a`},
		{"a ", `a\u{20}`},
		{" ", `\u{20}`},
		{"\u2800\u2800", `\u{2800}\u{2800}`},
		{"", `""`},
		{`""`, `\u{22}"`},
	} {
		if got := cell(c.text); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}

// FuzzPlain: whatever a text says, it shows, reads back as it was, and is one of the texts of a line.
func FuzzPlain(f *testing.F) {
	sign := regexp.MustCompile(`\\u\{([0-9a-f]+)\}`)
	read := func(shown string) string {
		return sign.ReplaceAllStringFunc(shown, func(text string) string {
			n, err := strconv.ParseInt(text[len(unseen):len(text)-1], 16, 32)
			if err != nil {
				return "?"
			}
			return string(rune(n))
		})
	}
	for _, seed := range []string{"", " ", `""`, "a  b", `\u{a}`, `\\u{a}`, "\\\u200bu{a}", "\xff\u2028", "a \u00a0 b", `\u`, "\U000e0001f"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want := strings.ToValidUTF8(text, "\ufffd")
		shown, in := plain(text), cell(text)
		if read(shown) != want || text != "" && read(in) != want {
			t.Errorf("%q is shown as %q, and in a line as %q", text, shown, in)
		}
		for _, s := range []string{shown, in} {
			if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || guardrail.Hidden(r) }) {
				t.Errorf("%q: not all of %q is seen", text, s)
			}
		}
		if in == "" || strings.Contains(in, "  ") || strings.TrimSpace(in) != in || (in == `""`) != (text == "") {
			t.Errorf("%q could be taken for something else: %q", text, in)
		}
	})
}

// TestPinCells: the name of a tool is one column of the list of pins, however it is written.
func TestPinCells(t *testing.T) {
	var out bytes.Buffer
	a := &app{ui: newUI(stdio{out: &out})}
	for _, name := range []string{"ok  0123456789ab  pinned  approved", "line\u2028", "", strings.Repeat("long", 9), "a "} {
		out.Reset()
		r := pinRow{Upstream: "up", Tool: name, Pinned: &pinnedDef{}, pin: proxy.Pin{Tool: name, Current: &proxy.Definition{Hash: strings.Repeat("0", 64)}}}
		a.printPin(r)
		columns := regexp.MustCompile(` {2,}`).Split(strings.TrimSuffix(out.String(), "\n"), -1)
		if want := []string{"up", cell(name), "000000000000", "pinned", "seen first"}; !slices.Equal(columns, want) {
			t.Errorf("%q: got %q, want %q", name, columns, want)
		}
	}
}

// TestRowCells: so is what is known of an event, and of a need. A command is there to be typed.
func TestRowCells(t *testing.T) {
	var out bytes.Buffer
	a := &app{ui: newUI(stdio{out: &out})}
	a.ui.row("tool", "read  of its arguments", "")
	a.ui.row("needs", "fs.read a", "argument x  y")
	a.ui.rowOf("to allow", "capgate agents grant scout 'a  b'", "")
	a.printNeeds(explanation{Needs: []asked{{Need: "fs.read a  b", Grant: "g  h", Source: "s.md:1", Argument: "x  y", Decision: "allow"}, {Decision: "deny", Code: "scope_violation"}}})
	want := `  tool     read \u{20}of its arguments
  needs    fs.read a  argument x \u{20}y
  to allow capgate agents grant scout 'a  b'
  needs    deny  ""  scope_violation
  needs    allow  fs.read a \u{20}b  x \u{20}y  g \u{20}h  s.md:1
`
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
