package wire_test

import (
	"strings"
	"testing"

	"capgate/wire"
)

func TestAppendEdited(t *testing.T) {
	for _, tt := range []struct {
		raw   string
		edits []wire.Edit
		want  string
	}{
		{`"a{x}b"`, nil, `"a{x}b"`},
		{`"a{x}b"`, []wire.Edit{{1, 4, "y"}}, `"ayb"`},
		{`"{x}"`, []wire.Edit{{0, 3, ""}}, `""`},
		{`"{x}{x}"`, []wire.Edit{{0, 3, "p"}, {3, 6, `q"`}}, `"pq\""`},
		// What is not touched stays as it is written, however that is.
		{`"\u0041\/{x}\u00e9é\ud83d\ude00\n"`, []wire.Edit{{2, 5, "y\n\"\\\u2028"}}, `"\u0041\/y\n\"\\\u2028\u00e9é\ud83d\ude00\n"`},
		{`"é😀\ud83d\ude00\u007bx}z"`, []wire.Edit{{10, 13, "y"}}, `"é😀\ud83d\ude00yz"`},
		{`17`, []wire.Edit{{0, 1, "y"}}, `17`},
	} {
		doc, err := wire.Parse([]byte(tt.raw))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(doc.Root().AppendEdited([]byte("> "), tt.edits...)); got != "> "+tt.want {
			t.Errorf("%s: %s, want %s", tt.raw, got, tt.want)
		}
	}
	if got := (wire.Value{}).AppendEdited(nil); got != nil {
		t.Errorf("no value: %s", got)
	}
}

// FuzzAppendEdited: what is read afterwards is what the edit says, and no byte of the
// document beside the edit is another one.
func FuzzAppendEdited(f *testing.F) {
	for _, seed := range []string{`"{{secret:a}}"`, `"\u007b{secret:a}} \u0041\\"`, `"é\ud83d\ude00{{"`, `"\"\\\/\b"`} {
		for at := range 4 {
			f.Add(seed, "a\"\\\n\u2028é", at, at+2)
		}
	}
	f.Fuzz(func(t *testing.T, raw, with string, start, end int) {
		doc, err := wire.Parse([]byte(raw))
		if err != nil {
			return
		}
		text, ok := doc.Root().Str()
		if !ok || start < 0 || start > end || end > len(text) || said(text[:start])+said(text[start:end])+said(text[end:]) != text {
			return // an edit lies between characters
		}
		got := string(doc.Root().AppendEdited(nil, wire.Edit{Start: start, End: end, Text: with}))
		again, err := wire.Parse([]byte(got))
		if err != nil {
			t.Fatalf("%s became %s: %v", raw, got, err)
		}
		if now, _ := again.Root().Str(); now != text[:start]+said(with)+text[end:] {
			t.Errorf("%s became %s", raw, got)
		}
		own, inner := string(doc.Root().Raw()), string(wire.AppendString(nil, with))
		inner = inner[1 : len(inner)-1]
		for at := range own {
			after, ok := strings.CutPrefix(got, own[:at]+inner)
			if ok && at+len(after) <= len(own) && strings.HasSuffix(own, after) {
				return
			}
		}
		t.Errorf("%s became %s", own, got)
	})
}
