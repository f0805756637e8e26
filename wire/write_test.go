package wire_test

import (
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
