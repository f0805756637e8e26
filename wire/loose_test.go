package wire_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"capgate/wire"
)

// TestLoose: what is read loosely and says where Parse would have stopped.
func TestLoose(t *testing.T) {
	for _, test := range []struct {
		name, text string
		faults     []string // "" alone: it is refused all the same
	}{
		{"no NUL", `{"a":"b","c":["\\u0000","\\\\u0000"]}`, nil},
		{"a NUL", `["a","ab\u0000c\u0000"]`, []string{"escaped NUL in a string at byte 8"}},
		{"a NUL behind a backslash", `["\\\u0000"]`, []string{"escaped NUL in a string at byte 4"}},
		{"a NUL behind what looks like one", `["\\u0000\u0000"]`, []string{"escaped NUL in a string at byte 9"}},
		{"a NUL in a key", `{"\u0000":1}`, []string{"escaped NUL in a string at byte 2"}},
		{"a NUL alone", `"\u0000"`, []string{"escaped NUL in a string at byte 1"}},
		{"two of them", `["\u0000",["\u0000"]]`, []string{"escaped NUL in a string at byte 2", "escaped NUL in a string at byte 12"}},
		{"a raw NUL", "[\"\x00\"]", []string{""}},
		{"a NUL and half a pair", `["\u0000\ud800"]`, []string{"escaped NUL in a string at byte 2"}},
		{"half a pair", `["a\ud800b"]`, []string{"half of a surrogate pair in a string at byte 3"}},
		{"the other half", `["\udc00\u0000"]`, []string{"half of a surrogate pair in a string at byte 2"}},
		{"half a pair and a pair", `["\ud83d\ude00","\ud83d\ud83d\ude00"]`, []string{"half of a surrogate pair in a string at byte 17"}},
		{"half a pair behind a backslash", `["\\ud800"]`, nil},
		{"half a pair in a key", `{"\udfff":1}`, []string{"half of a surrogate pair in a string at byte 2"}},
		{"half a pair, raw", "[\"\xed\xa0\x80\"]", []string{""}},
		{"half a pair and no escape", `["\ud800\ud8"]`, []string{""}},
		{"two halves that are one key", `{"\ud800":1,"\udc00":2}`, []string{""}},
		{"a NUL and no end", `["\u0000`, []string{""}},
		{"case", `{"id":1,"ID":2}`, []string{`key "ID" is another key in different case at byte 8`}},
		{"case, inside", `{"a":[{"id":1,"x":{},"Id":2}],"b":1}`, []string{`key "Id" is another key in different case at byte 21`}},
		{"case, once an object", `{"id":1,"ID":2,"Id":3,"x":{"y":1,"Y":1}}`, []string{`key "Y" is another key in different case at byte 33`, `key "ID" is another key in different case at byte 8`}},
		{"both", `{"id\u0000":1,"ID\u0000":"\u0000"}`, []string{
			"escaped NUL in a string at byte 4", "escaped NUL in a string at byte 17", "escaped NUL in a string at byte 26",
			`key "ID\x00" is another key in different case at byte 14`,
		}},
		{"the same twice", `{"a":1,"a":2}`, []string{""}},
		{"the same twice, by escape", `{"a":1,"\u0061":2}`, []string{""}},
		{"the same twice, and case before", `{"A":1,"a":2,"a":3}`, []string{""}},
		{"the same twice, and case between", `{"a":1,"A":2,"a":3}`, []string{""}},
		{"the same twice, and case behind", `{"a":1,"a":2,"A":3}`, []string{""}},
		{"the same twice, with a NUL", `{"a\u0000":1,"a\u0000":3}`, []string{""}},
		{"the same twice, among many", `{` + many(40) + `"k7":1}`, []string{""}},
		{"case among many", `{` + many(40) + `"K7":1}`, []string{`key "K7" is another key in different case at byte 311`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var doc wire.Doc
			err := doc.ParseLoosely([]byte(test.text), wire.Limits{})
			got := faults(&doc)
			if refused := slices.Equal(test.faults, []string{""}); refused != (err != nil) || !refused && !slices.Equal(got, test.faults) {
				t.Errorf("%v, faults %q, want %q", err, got, test.faults)
			}
			if doc.Sound() != (len(got) == 0) {
				t.Errorf("sound is %v", doc.Sound())
			}
			checkLoose(t, []byte(test.text))
		})
	}
}

// TestLooseTexts: a NUL says what it is, and half of a pair U+FFFD, which it is not.
func TestLooseTexts(t *testing.T) {
	var doc wire.Doc
	for _, test := range []struct {
		text, says string
		is         bool
	}{{`"\u0000"`, "\x00", true}, {`"\ud800"`, "\ufffd", false}} {
		if err := doc.ParseLoosely([]byte(test.text), wire.Limits{}); err != nil {
			t.Fatal(err)
		}
		if says, ok := doc.Root().Str(); !ok || says != test.says || doc.Root().Equal(says) != test.is {
			t.Errorf("%s says %q", test.text, says)
		}
	}
	if err := doc.Parse([]byte(`"\u0000"`), wire.Limits{}); err == nil || !doc.Sound() {
		t.Error("what was read loosely once is read so again")
	}
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"k%d":1,`, i)
	}
	return b.String()
}

func faults(doc *wire.Doc) (all []string) {
	for f := range doc.Faults() {
		all = append(all, f.Error())
	}
	return all
}

// checkLoose: ParseLoosely accepts what Parse does, with no faults, and whatever else
// it accepts has some, the one that Parse stops at among them. No object has the same
// key twice.
func checkLoose(t *testing.T, data []byte) {
	t.Helper()
	var strict, loose wire.Doc
	no := strict.Parse(data, wire.Limits{})
	err := loose.ParseLoosely(data, wire.Limits{})
	switch {
	case no == nil && (err != nil || !loose.Sound()):
		t.Fatalf("%q is accepted, and loosely: %v %v", data, err, faults(&loose))
	case err != nil:
	case no != nil && !slices.Contains(faults(&loose), no.Error()):
		t.Fatalf("%q: %v is none of %q", data, no, faults(&loose))
	case !json.Valid(data):
		t.Fatalf("%q is no JSON", data)
	default:
		checkKeys(t, loose.Root())
	}
}

func checkKeys(t *testing.T, v wire.Value) {
	t.Helper()
	seen := map[string]bool{}
	for key, member := range v.Members() {
		name, _ := key.Str()
		if seen[name] {
			t.Fatalf("%q stands twice in %s", name, v.Raw())
		}
		seen[name] = true
		checkKeys(t, member)
	}
	for element := range v.Elems() {
		checkKeys(t, element)
	}
}

// TestLooseLaw checks it over documents made up, and over what their halves make
// together.
func TestLooseLaw(t *testing.T) {
	random := documents{Rand: rand.New(rand.NewPCG(5, 6))}
	for range 500 {
		data := random.next()
		checkLoose(t, data)
		checkLoose(t, bytes.ReplaceAll(data, []byte("a"), []byte(`\u0000`)))
		checkLoose(t, bytes.ReplaceAll(data, []byte("a"), []byte(`\udbff`)))
		checkLoose(t, bytes.ToUpper(data))
	}
}

// TestLooseKeys: many keys that are one but for their case cost no more than others.
func TestLooseKeys(t *testing.T) {
	text := []byte{'{'}
	for i := range 1 << 16 {
		text = append(text, '"')
		for bit := range 16 {
			text = append(text, "aA"[i>>bit&1])
		}
		text = append(text, `":1,`...)
	}
	text = append(text, `"b":1}`...)
	var doc wire.Doc
	if err := doc.ParseLoosely(text, wire.Limits{}); err != nil || len(faults(&doc)) != 1 {
		t.Errorf("%v, %d faults", err, len(faults(&doc)))
	}
	steps := 0
	for range doc.Faults() {
		steps++
		break
	}
	if steps != 1 {
		t.Errorf("%d steps", steps)
	}
}
