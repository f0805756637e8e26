package wire_test

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"capgate/wire"
)

// readString is the reference for strings: it reads the one that data begins
// with, a character at a time, and returns what it says and where it ends. The
// sentence is why it is none, or empty.
func readString(data []byte) (text string, end int, sentence string) {
	var said []rune
	for i := 1; ; {
		r, n := utf8.DecodeRune(data[i:])
		switch {
		case n == 0:
			return "", 0, fmt.Sprintf("the document ends in a string at byte %d", i)
		case r == '"':
			return string(said), i + 1, ""
		case r < ' ':
			return "", 0, fmt.Sprintf("raw control character 0x%02x in a string at byte %d", r, i)
		case r == utf8.RuneError && n == 1:
			return "", 0, fmt.Sprintf("invalid UTF-8 at byte %d", i)
		case r == '\\':
			if r, n, sentence = readEscape(string(data[i:])); sentence != "" {
				return "", 0, fmt.Sprintf("%s in a string at byte %d", sentence, i)
			}
		}
		said = append(said, r)
		i += n
	}
}

func readEscape(s string) (r rune, n int, sentence string) {
	const letters, meant = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	if len(s) >= 2 && strings.Contains(letters, s[1:2]) {
		return rune(meant[strings.Index(letters, s[1:2])]), 2, ""
	}
	r, ok := readHex(s)
	switch {
	case !ok:
		return 0, 0, "invalid escape"
	case r == 0:
		return 0, 0, "escaped NUL"
	case !utf16.IsSurrogate(r):
		return r, 6, ""
	}
	if low, ok := readHex(s[6:]); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
		return utf16.DecodeRune(r, low), 12, ""
	}
	return 0, 0, "half of a surrogate pair"
}

func readHex(s string) (r rune, ok bool) {
	if len(s) < 6 || s[:2] != `\u` {
		return 0, false
	}
	code, err := strconv.ParseUint(s[2:6], 16, 16)
	return rune(code), err == nil
}

// checkString holds Parse against the reference on a document that is body
// behind a quote, and reports whether it is accepted.
func checkString(t *testing.T, doc *wire.Doc, body []byte) bool {
	t.Helper()
	data := append([]byte{'"'}, body...)
	text, end, want := readString(data)
	got := ""
	if err := doc.Parse(data, wire.Limits{}); err != nil {
		got = err.Error()
	}
	if rest := bytes.TrimLeft(data[end:], " \t\r\n"); want == "" && len(rest) > 0 {
		behind := fmt.Sprintf("the end of the document was due at byte %d", len(data)-len(rest))
		if !strings.HasPrefix(got, "unexpected ") || !strings.HasSuffix(got, behind) {
			t.Fatalf("Parse(%q): %q, want one that ends in %q", data, got, behind)
		}
		return false
	}
	if got != want {
		t.Fatalf("Parse(%q): %q, want %q", data, got, want)
	}
	if want != "" {
		return false
	}
	if _, at := doc.Root().Span(); at != end {
		t.Fatalf("%q ends at byte %d, want %d", data, at, end)
	}
	if s, ok := doc.Root().Str(); !ok || s != text || !doc.Root().Equal(text) {
		t.Fatalf("%q says %q, want %q", data, s, text)
	}
	return true
}

// TestStringPairs puts every two of what may stand in a string next to each
// other, at every distance from its beginning and from the end of the document
// that a reader of many bytes at once may treat in a way of its own.
func TestStringPairs(t *testing.T) {
	units := []string{
		"", "x", "#", "]", " ", "!", "[", "~", "\x7f", `"`, `\`, `\"`, `\\`, `\/`, `\b`, `\n`, `\N`, `\]`, `\#`, "\\\n", `\é`,
		`\u00e9`, `\u0000`, `\u00`, `\ud83d\ude00`, `\ud83d`, `\ude00`, "\x00", "\n", "\x1f",
		"é", "速", "😀", "\u0080", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\ufffd", "\uffff", "\U00010000", "\U0010ffff",
		"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc3", "\xe0\x9f\xbf", "\xe9\x80", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf0\x9f\x98", "\xf4\x90\x80\x80", "\xf5", "\xff",
	}
	var doc wire.Doc
	accepted, all := 0, 0
	for _, first := range units {
		for _, second := range units {
			for before := range 18 {
				for _, behind := range []string{"", `"`, `"` + strings.Repeat(" ", 16), strings.Repeat("x", 17) + `"`} {
					all++
					if checkString(t, &doc, []byte(strings.Repeat("x", before)+first+second+behind)) {
						accepted++
					}
				}
			}
		}
	}
	if accepted < all/10 || accepted > all/2 {
		t.Errorf("%d of %d strings accepted: the test proves little", accepted, all)
	}
}

// TestEveryCharacter puts four bytes of every kind into a string: every first one
// beyond ASCII, every second one, and those around what may follow.
func TestEveryCharacter(t *testing.T) {
	var doc wire.Doc
	edges := []byte{0x7f, 0x80, 0xbf, 0xc0}
	for first := 0x80; first < 0x100; first++ {
		for second := range 256 {
			for _, third := range edges {
				for _, fourth := range edges {
					body := []byte{byte(first), byte(second), third, fourth, '"'}
					plain := second >= ' ' && second != '"' && second != '\\'
					if got := checkString(t, &doc, body); got != (plain && utf8.Valid(body)) {
						t.Fatalf("%q accepted: %v", body, got)
					}
				}
			}
		}
	}
}

// TestLongStrings puts something special around the distances at which long text
// is read in another way.
func TestLongStrings(t *testing.T) {
	var doc wire.Doc
	for _, unit := range []string{`\n`, `\\`, `\"`, `\u00e9`, `\ud83d\ude00`, "é", "速", "😀", `"`, `\x`, "\n", "\x80", "\xed\xa0\x80", "\xf0\x9f\x98"} {
		for _, fill := range []string{"x", "é", `\t`} {
			for length := 1000; length < 1100; length++ {
				body := `\n` + strings.Repeat(fill, length/len(fill)) + strings.Repeat("x", length%len(fill)) + unit + strings.Repeat("y", 40) + `"`
				checkString(t, &doc, []byte(body))
			}
		}
	}
}

func FuzzString(f *testing.F) {
	for _, body := range []string{
		`some text with \"quotes\", newlines\n, <>& and accents é à ü"`, `\u003c\ud83d\ude00\`, "\xed\xa0\xbd\\ude00\"", "速い茶色の狐😀\"\n", "\\\"#\\]\x00",
	} {
		f.Add([]byte(body), uint16(0), uint8(0))
		f.Add([]byte(body), uint16(1021), uint8(17))
	}
	f.Fuzz(func(t *testing.T, body []byte, before uint16, behind uint8) {
		padded := append(bytes.Repeat([]byte("x"), int(before%2048)), body...)
		padded = append(padded, bytes.Repeat([]byte(" "), int(behind%64))...)
		checkString(t, new(wire.Doc), padded)
		checkString(t, new(wire.Doc), append([]byte("é"), padded...)) // read by other means from the start
		checkString(t, new(wire.Doc), append(padded, '"'))
	})
}
