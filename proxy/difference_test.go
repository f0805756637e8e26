package proxy_test

import (
	"strings"
	"testing"
	"time"

	"capgate/proxy"

	"github.com/google/go-cmp/cmp"
)

// pinOf is a pin with one definition that is shown and one that waits; "" for none.
func pinOf(current, waiting string) proxy.Pin {
	p := proxy.Pin{Tool: "read"}
	if current != "" {
		p.Current = &proxy.Definition{Text: current}
	}
	if waiting != "" {
		p.Waiting = &proxy.Definition{Text: waiting}
	}
	return p
}

func written(lines []proxy.Line) (all []string) {
	for _, l := range lines {
		all = append(all, string(l.Sign)+l.Text)
	}
	return all
}

func TestDifference(t *testing.T) {
	for name, c := range map[string]struct {
		before, after string
		want          []string
	}{
		"the first":       {"", `{"a":1}`, []string{`+{`, `+  "a": 1`, `+}`}},
		"one text":        {`{"a":"x\ny","b":1}`, `{"a":"x\nz","b":1}`, []string{` {`, `   "a": "x\n`, `-    y",`, `+    z",`, `   "b": 1`, ` }`}},
		"around the same": {`["a","k","b"]`, `["c","k","d"]`, []string{` [`, `-  "a",`, `+  "c",`, `   "k",`, `-  "b"`, `+  "d"`, ` ]`}},
		"not seen":        {`["a"]`, "[\"a\u200b\U000e0041\u202e\"]", []string{` [`, `-  "a"`, `+  "a\u{200b}\u{e0041}\u{202e}"`, ` ]`}},
		"other scripts":   {"", `"読む"`, []string{`+"読む"`}},
		"no text kept":    {`{}`, "", nil},
	} {
		pin := pinOf(c.before, c.after)
		if c.after == "" {
			pin.Waiting = &proxy.Definition{}
		}
		if diff := cmp.Diff(c.want, written(pin.Difference())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// FuzzDifference: what is signed as gone and what stays is what was there before,
// and what is signed as new and what stays is what waits.
func FuzzDifference(f *testing.F) {
	f.Add(`{"a":[1,2,3]}`, `{"a":[1,3,4]}`)
	f.Add("a\nb\nc\na", "c\na\nb")
	f.Fuzz(func(t *testing.T, before, after string) {
		if before == "" || after == "" {
			return
		}
		var old, now []string
		for _, l := range pinOf(before, after).Difference() {
			if l.Sign != '+' {
				old = append(old, "+"+l.Text)
			}
			if l.Sign != '-' {
				now = append(now, "+"+l.Text)
			}
		}
		if diff := cmp.Diff(written(pinOf("", before).Difference()), old); diff != "" {
			t.Errorf("before: %s", diff)
		}
		if diff := cmp.Diff(written(pinOf("", after).Difference()), now); diff != "" {
			t.Errorf("after: %s", diff)
		}
	})
}

// TestDifferenceBounded: two long definitions that have nothing in common are not
// compared line by line.
func TestDifferenceBounded(t *testing.T) {
	const many = 4000
	long := func(text string) string { return "[" + strings.Repeat(`"`+text+`",`, many) + `"` + text + `"]` }
	lines := pinOf(long("a"), long("b")).Difference()
	if want := 2*(many+1) + 2; len(lines) != want {
		t.Errorf("the difference has %d lines, not %d", len(lines), want)
	}
}

// TestPinHidden: what the pins say of a tool is what the gateway does.
func TestPinHidden(t *testing.T) {
	sound, odd := toolNamed("read", "Reads."), toolNamed("read", "Reads.\u200b")
	at := time.Unix(1, 0)
	for name, c := range map[string]struct {
		pin  proxy.Pin
		mode proxy.Pins
		want string
	}{
		"first":                            {pinOf(sound, ""), proxy.Tofu, ""},
		"first of require":                 {pinOf(sound, ""), proxy.Require, "nobody has approved the definition"},
		"suspicious":                       {pinOf(odd, ""), proxy.Tofu, "the definition holds a character that is not seen, U+200B"},
		"suspicious off":                   {pinOf(odd, ""), proxy.Off, "the definition holds a character that is not seen, U+200B"},
		"approved all same":                {proxy.Pin{Current: &proxy.Definition{Text: odd}, Approved: at}, proxy.Require, ""},
		"another one waits":                {proxy.Pin{Current: &proxy.Definition{Text: sound}, Approved: at, Waiting: &proxy.Definition{Why: "w"}}, proxy.Tofu, "w"},
		"it waits, off":                    {proxy.Pin{Current: &proxy.Definition{Text: sound}, Waiting: &proxy.Definition{Text: sound, Why: "w"}}, proxy.Off, ""},
		"an odd one waits, off":            {proxy.Pin{Current: &proxy.Definition{Text: sound}, Waiting: &proxy.Definition{Text: odd, Why: "w"}}, proxy.Off, "the definition holds a character that is not seen, U+200B"},
		"one that was not kept waits, off": {proxy.Pin{Current: &proxy.Definition{Text: sound}, Waiting: &proxy.Definition{Why: "w"}}, proxy.Off, "w"},
		"nothing to look at":               {proxy.Pin{Current: &proxy.Definition{}}, proxy.Tofu, ""},
	} {
		if got := c.pin.Hidden(c.mode); got != c.want {
			t.Errorf("%s: hidden because %q, not %q", name, got, c.want)
		}
	}
}
