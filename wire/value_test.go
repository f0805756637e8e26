package wire_test

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"capgate/wire"
)

func parse(t testing.TB, document string) wire.Value {
	t.Helper()
	doc, err := wire.Parse([]byte(document))
	if err != nil {
		t.Fatalf("Parse(%.80q): %v", document, err)
	}
	return doc.Root()
}

// object returns an object with n keys that begin with prefix.
func object(n int, prefix string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`,"` + prefix + strconv.Itoa(i) + `":` + strconv.Itoa(i))
	}
	return "{" + strings.TrimPrefix(b.String(), ",") + "}"
}

func TestKind(t *testing.T) {
	for _, test := range []struct {
		document string
		kind     wire.Kind
		name     string
		len      int
	}{
		{`null`, wire.Null, "null", 0},
		{`true`, wire.Bool, "boolean", 0},
		{`false`, wire.Bool, "boolean", 0},
		{`-1`, wire.Number, "number", 0},
		{`"a\n\n"`, wire.String, "string", 0},
		{`[1,[2,3],{}]`, wire.Array, "array", 3},
		{`{"a":{"b":1,"c":2}}`, wire.Object, "object", 1},
	} {
		v := parse(t, test.document)
		if v.Kind() != test.kind || v.Kind().String() != test.name || v.Len() != test.len {
			t.Errorf("%s is %s of length %d, want %s of length %d", test.document, v.Kind(), v.Len(), test.name, test.len)
		}
	}
	if got := wire.Invalid.String() + " " + wire.Kind(200).String(); got != "invalid invalid" {
		t.Errorf("names of no kind: %s", got)
	}
}

func TestStr(t *testing.T) {
	for _, test := range []struct{ document, want string }{
		{`""`, ""},
		{`"plain"`, "plain"},
		{`"é速😀"`, "é速😀"},
		{`"\"\\\/\b\f\n\r\t"`, "\"\\/\b\f\n\r\t"},
		{`"\u0041\u00e9\u901F\ud83d\uDE00"`, "Aé速😀"},
		{`"a\tb\tc"`, "a\tb\tc"},
		{`"\ufffd"`, "\ufffd"},
	} {
		v := parse(t, test.document)
		if got, ok := v.Str(); !ok || got != test.want {
			t.Errorf("%s says %q, %v, want %q", test.document, got, ok, test.want)
		}
		if !v.Equal(test.want) {
			t.Errorf("%s is not equal to %q", test.document, test.want)
		}
	}
}

func TestEqual(t *testing.T) {
	for _, test := range []struct{ document, other string }{
		{`"plain"`, "Plain"},
		{`"plain"`, "plai"},
		{`"plain"`, "plain "},
		{`"plain"`, `"plain"`},
		{`"a\nb"`, `a\nb`},
		{`"a\nb"`, "a"},
		{`"a\nb"`, "a\n"},
		{`"a\nb"`, "a\nbc"},
		{`"a\nb"`, "b\nb"},
		{`"abc\n"`, "ab"},
		{`"\ufffd"`, "\xff"},
		{`"\ufffd"`, ""},
		{`"\ud83d\ude00"`, "\ud7ff"},
		{`1`, "1"},
		{`null`, ""},
		{`["a"]`, "a"},
	} {
		if parse(t, test.document).Equal(test.other) {
			t.Errorf("%s is equal to %q", test.document, test.other)
		}
	}
}

func TestInt64(t *testing.T) {
	for _, test := range []struct {
		document string
		want     int64
		ok       bool
	}{
		{`0`, 0, true},
		{`-0`, 0, true},
		{`-17`, -17, true},
		{`9007199254740993`, 9007199254740993, true},
		{`9223372036854775807`, math.MaxInt64, true},
		{`-9223372036854775808`, math.MinInt64, true},
		{`9223372036854775808`, 0, false},
		{`-9223372036854775809`, 0, false},
		{`123456789012345678901234567890`, 0, false},
		{`1.0`, 0, false},
		{`1e2`, 0, false},
		{`"1"`, 0, false},
		{`true`, 0, false},
	} {
		if got, ok := parse(t, test.document).Int64(); ok != test.ok || ok && got != test.want {
			t.Errorf("%s is %d, %v, want %d, %v", test.document, got, ok, test.want, test.ok)
		}
	}
}

func TestBool(t *testing.T) {
	for _, test := range []struct {
		document  string
		value, ok bool
	}{
		{`true`, true, true}, {`false`, false, true}, {`"true"`, false, false}, {`1`, false, false}, {`null`, false, false},
	} {
		if value, ok := parse(t, test.document).Bool(); value != test.value || ok != test.ok {
			t.Errorf("%s is %v, %v", test.document, value, ok)
		}
	}
}

func TestGet(t *testing.T) {
	v := parse(t, `{"a":1,"nested":{"a":2,"b":3},"\u0062":4,"":5,"é\n":6}`)
	for key, want := range map[string]string{
		"a": "1", "nested": `{"a":2,"b":3}`, "b": "4", "": "5", "é\n": "6", "A": "", "x": "", `\u0062`: "", "nested.a": "",
	} {
		got, ok := v.Get(key)
		if ok != (want != "") || string(got.Raw()) != want {
			t.Errorf("Get(%q) = %s, %v, want %s", key, got.Raw(), ok, want)
		}
	}
	for _, document := range []string{`["a"]`, `"a"`, `null`} {
		if got, ok := parse(t, document).Get("a"); ok || got != (wire.Value{}) {
			t.Errorf("%s has a member a", document)
		}
	}
}

func TestMembersAndElems(t *testing.T) {
	v := parse(t, ` { "a" : [ 1 , [ ] , { "x" : 2 } ] , "b" : "c" , "d" : { } } `)
	var got []string
	for key, member := range v.Members() {
		got = append(got, string(key.Raw()), string(member.Raw()))
	}
	a, _ := v.Get("a")
	for elem := range a.Elems() {
		got = append(got, string(elem.Raw()))
	}
	want := []string{`"a"`, `[ 1 , [ ] , { "x" : 2 } ]`, `"b"`, `"c"`, `"d"`, `{ }`, `1`, `[ ]`, `{ "x" : 2 }`}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}

	seen := 0
	for range v.Members() {
		seen++
		break
	}
	for range a.Elems() {
		seen++
		break
	}
	for range a.Members() {
		t.Error("an array has members")
	}
	for range v.Elems() {
		t.Error("an object has elements")
	}
	if seen != 2 {
		t.Errorf("%d steps, want 2", seen)
	}
}

// TestRaw: nobody who appends to Raw writes into the document.
func TestRaw(t *testing.T) {
	data := []byte(`{"a":1,"b":2}`)
	doc, err := wire.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := doc.Root().Get("a")
	if _ = append(a.Raw(), "23"...); string(data) != `{"a":1,"b":2}` {
		t.Errorf("the document is now %s", data)
	}
	if start, end := a.Span(); start != 5 || end != 6 {
		t.Errorf("Span() = %d, %d, want 5, 6", start, end)
	}
}

// TestAppendLine: on a transport of lines, what stands on a line of its own
// inside an argument must not become a message of its own.
func TestAppendLine(t *testing.T) {
	v := parse(t, "{\"a\":\n{\"method\":\"tools/call\"}\r\n,\r\"b\\n\": [\n\n] }\n")
	const want = `> {"a": {"method":"tools/call"}  , "b\n": [  ] }`
	if got := string(v.AppendLine([]byte("> "))); got != want {
		t.Errorf("AppendLine\n got: %s\nwant: %s", got, want)
	}
	if got := string(wire.Value{}.AppendLine([]byte("\n"))); got != "\n" {
		t.Errorf("AppendLine of nothing = %q", got)
	}
}

// TestNoValue: the zero Value, and one whose document is gone, says no.
func TestNoValue(t *testing.T) {
	const document = `{"a":{"b":[true,1,"x"]}}`
	for _, test := range []struct {
		name string
		lose func(*wire.Doc) error
	}{
		{"reset", func(d *wire.Doc) error { d.Reset(); return nil }},
		{"parsed again", func(d *wire.Doc) error { return d.Parse([]byte(document), wire.Limits{}) }},
		{"refused", func(d *wire.Doc) error {
			if d.Parse([]byte(document[1:]), wire.Limits{}) == nil {
				return errors.New("half a document accepted")
			}
			return nil
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var doc wire.Doc
			isNothing(t, doc.Root())
			if err := doc.Parse([]byte(document), wire.Limits{}); err != nil {
				t.Fatal(err)
			}
			root := doc.Root()
			a, _ := root.Get("a")
			if err := test.lose(&doc); err != nil {
				t.Fatal(err)
			}
			isNothing(t, root)
			isNothing(t, a)
		})
	}
	isNothing(t, wire.Value{})
}

// answers is all that a Value says of itself.
type answers struct {
	Kind                wire.Kind
	Raw                 []byte
	Start, End, Len     int
	Text                string
	Number              int64
	Truth               bool
	Member              bool
	IsText, IsInt, IsTF bool
	Empty               bool
	Children            int
}

func isNothing(t *testing.T, v wire.Value) {
	t.Helper()
	got := answers{Kind: v.Kind(), Raw: v.Raw(), Len: v.Len(), Empty: v.Equal("")}
	got.Start, got.End = v.Span()
	got.Text, got.IsText = v.Str()
	got.Number, got.IsInt = v.Int64()
	got.Truth, got.IsTF = v.Bool()
	_, got.Member = v.Get("a")
	for range v.Members() {
		got.Children++
	}
	for range v.Elems() {
		got.Children++
	}
	if diff := cmp.Diff(answers{}, got); diff != "" {
		t.Errorf("no value, and it says (-want +got):\n%s", diff)
	}
}

// TestReparseInLoop: a document that goes away under a loop is no reason to read
// another one's values.
func TestReparseInLoop(t *testing.T) {
	var doc wire.Doc
	for _, document := range []string{`{"a":1,"b":2,"c":3}`, `[1,2,3]`} {
		if err := doc.Parse([]byte(document), wire.Limits{}); err != nil {
			t.Fatal(err)
		}
		root, seen := doc.Root(), 0
		step := func(v wire.Value) {
			if seen++; seen == 1 {
				if err := doc.Parse([]byte(`"other"`), wire.Limits{}); err != nil {
					t.Fatal(err)
				}
			}
			if v.Kind() != wire.Invalid {
				t.Errorf("%s: step %d reads %s", document, seen, v.Raw())
			}
		}
		for _, member := range root.Members() {
			step(member)
		}
		for elem := range root.Elems() {
			step(elem)
		}
	}
}

// TestFolding pairs every character with every other that differs from it only
// in case, and with its neighbour.
func TestFolding(t *testing.T) {
	var doc wire.Doc
	accepted := func(a, b rune) bool {
		return doc.Parse([]byte(`{"x`+string(a)+`":1,"x`+string(b)+`":2}`), wire.Limits{}) == nil
	}
	pairs := 0
	for r := rune(' '); r < unicode.MaxRune; r++ {
		if r == '"' || r == '\\' || 0xd7ff <= r && r < 0xe000 || r+1 == '"' || r+1 == '\\' {
			continue
		}
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			pairs++
			if accepted(r, f) {
				t.Errorf("%q and %q accepted as two keys", r, f)
			}
		}
		if want := !strings.EqualFold(string(r), string(r+1)); r < 0x30000 && accepted(r, r+1) != want {
			t.Errorf("%q and %q accepted: %v, want %v", r, r+1, !want, want)
		}
	}
	if pairs < 2000 {
		t.Errorf("%d pairs", pairs)
	}
}

// TestDuplicateAnywhere puts one key too many into objects of every size around
// the borders of the methods, at every distance.
func TestDuplicateAnywhere(t *testing.T) {
	for _, size := range []int{2, 3, 8, 15, 16, 17, 18, 31, 32, 33, 64, 65} {
		keys := make([]string, size)
		for i := range keys {
			keys[i] = "key" + strconv.Itoa(i)
		}
		for first := range size {
			for second := first + 1; second < size; second++ {
				for _, double := range []string{keys[first], strings.ToUpper(keys[first]), "\u212a" + keys[first][1:], `\u006b` + keys[first][1:]} {
					with := slices.Clone(keys)
					with[second] = double
					document := `{"` + strings.Join(with, `":0,"`) + `":0}`
					if _, err := wire.Parse([]byte(document)); err == nil {
						t.Fatalf("%q at %d and %q at %d of %d accepted", keys[first], first, double, second, size)
					}
				}
			}
		}
	}
}

func TestDuplicateAtEveryDepth(t *testing.T) {
	for depth := range wire.MaxDepth {
		document := strings.Repeat(`{"a":[],"b":`, depth) + `{"a":1,"c":2,"a":3}` + strings.Repeat("}", depth)
		if _, err := wire.Parse([]byte(document)); err == nil || !strings.HasPrefix(err.Error(), "duplicate key") {
			t.Errorf("a duplicate %d deep: %v", depth, err)
		}
	}
}

func TestDuplicateAmongMany(t *testing.T) {
	const size = 10_000
	many := strings.TrimSuffix(object(size, "key"), "}")
	for i := 0; i < size; i += 97 {
		for _, double := range []string{"key", "KEY", "\u212aey", `k\u0065y`} {
			if _, err := wire.Parse([]byte(many + `,"` + double + strconv.Itoa(i) + `":0}`)); err == nil {
				t.Errorf("%s%d accepted twice", double, i)
			}
		}
	}
}

func TestNumbered(t *testing.T) {
	var doc wire.Doc
	for text, want := range map[string]bool{
		`{"a":"b","c":["d",1,null]}`: false,
		`"\u0041"`:                   true,
		`{"a":["x\ny","\"naïve\"","😀\u00e9"]}`: true,
		`["\u0041","b"]`:     true,
		`{"k\u0065y":1}`:     true,
		`"C:\\users\\u0041"`: false, // slashes, and no escape by a number
		`"` + strings.Repeat("é", 3000) + `\u0041"`:   true,
		`"` + strings.Repeat("\\\\", 3000) + `u0041"`: false,
	} {
		if err := doc.Parse([]byte(text), wire.Limits{}); err != nil {
			t.Fatal(err)
		}
		v := doc.Root()
		if v.Numbered() != want {
			t.Errorf("%.40s: %v", text, !want)
		}
		if err := doc.ParseLoosely([]byte(`"\ud800"`), wire.Limits{}); err != nil || !doc.Root().Numbered() || v.Numbered() {
			t.Errorf("half of a pair after %.40s: %v", text, err)
		}
	}
	if (wire.Value{}).Numbered() {
		t.Error("nothing is written with a number")
	}
}
