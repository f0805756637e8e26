package wire_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"capgate/wire"
)

// said is what a text says once it was written: what cannot stand in a document
// is replaced, byte by byte.
func said(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if r == 0 {
			r = utf8.RuneError
		}
		b.WriteRune(r)
		text = text[size:]
	}
	return b.String()
}

func TestAppendString(t *testing.T) {
	for text, want := range map[string]string{
		"":               `""`,
		"plain é ☃":      `"plain é ☃"`,
		`a"b\c`:          `"a\"b\\c"`,
		"l1\nl2\t\r\x01": `"l1\nl2\t\u000d\u0001"`,
		"\x7f":           `"\u007f"`,
		"\u2028\u2029":   `"\u2028\u2029"`,
		"a\x00b":         `"a\ufffdb"`,
		"a\xffb":         `"a\ufffdb"`,
	} {
		if got := string(wire.AppendString(nil, text)); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func FuzzAppendString(f *testing.F) {
	f.Add("a\"b\\\n\x00\xff\u2028")
	f.Fuzz(func(t *testing.T, text string) {
		data := wire.AppendString(nil, text)
		doc, err := wire.Parse(data)
		if err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		if got, ok := doc.Root().Str(); !ok || got != said(text) {
			t.Errorf("%q came back as %q", text, got)
		}
	})
}

// TestLongTexts: texts are looked at eight bytes at a time, and no byte hides among others.
func TestLongTexts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const odd = "\x00\x01\x1f\n\"\\\x7f !#[]~"
	for range 50_000 {
		text := []byte(strings.Repeat("x", random.IntN(40)))
		for range random.IntN(4) {
			if len(text) > 0 {
				text[random.IntN(len(text))] = odd[random.IntN(len(odd))]
			}
		}
		want := `"`
		for _, c := range text {
			one := string(wire.AppendString(nil, string(rune(c))))
			want += one[1 : len(one)-1]
		}
		want += `"`
		if got := string(wire.AppendString(nil, string(text))); got != want {
			t.Fatalf("%q: %s, want %s", text, got, want)
		}
	}
}
