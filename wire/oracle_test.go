package wire_test

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"capgate/wire"
)

// accepts is the reference: the rules of the package said again, slowly, on top
// of encoding/json. Parse must agree with it on every document.
func accepts(data []byte) bool {
	if len(data) > wire.MaxBytes || !utf8.Valid(data) || !json.Valid(data) {
		return false
	}
	for _, escape := range escapes(data) {
		if len(escape) != len(`\u0000`) {
			continue
		}
		if code := strings.ToLower(escape[2:]); code == "0000" || code >= "d800" && code < "e000" {
			return false
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	return acceptsValue(decoder, 0)
}

// escapes returns the escapes of a valid document; those of a pair stay together.
func escapes(data []byte) []string {
	if !bytes.Contains(data, []byte(`\`)) {
		return nil
	}
	escape := regexp.MustCompile(`(?i)\\ud[89ab]..\\ud[c-f]..|\\u....|\\.`)
	return escape.FindAllString(string(data), -1)
}

func acceptsValue(decoder *json.Decoder, depth int) bool {
	token, err := decoder.Token()
	if err != nil {
		return false
	}
	switch token := token.(type) {
	case json.Number:
		return acceptsNumber(token.String())
	case json.Delim:
		if depth == wire.MaxDepth {
			return false
		}
		var keys []string
		for decoder.More() {
			if token == '{' {
				key, err := decoder.Token()
				if err != nil {
					return false
				}
				keys = append(keys, key.(string))
			}
			if !acceptsValue(decoder, depth+1) {
				return false
			}
		}
		if _, err := decoder.Token(); err != nil {
			return false
		}
		return !anyEqualFold(keys)
	}
	return true
}

func acceptsNumber(number string) bool {
	_, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	_, err := strconv.ParseFloat(number, 64)
	return err == nil && len(number) <= wire.MaxNumber && len(strings.Trim(exponent, "+-")) <= 3
}

func anyEqualFold(keys []string) bool {
	if len(keys) > 1000 { // too slow; the large objects of these tests are in lower case
		slices.Sort(keys)
		return len(slices.Compact(keys)) < len(keys)
	}
	for i, key := range keys {
		for _, other := range keys[:i] {
			if strings.EqualFold(key, other) {
				return true
			}
		}
	}
	return false
}

// tree returns v as encoding/json would decode it.
func tree(v wire.Value) any {
	switch v.Kind() {
	case wire.Bool:
		b, _ := v.Bool()
		return b
	case wire.Number:
		return json.Number(v.Raw())
	case wire.String:
		s, _ := v.Str()
		return s
	case wire.Array:
		elems := []any{}
		for elem := range v.Elems() {
			elems = append(elems, tree(elem))
		}
		return elems
	case wire.Object:
		members := map[string]any{}
		for key, member := range v.Members() {
			name, _ := key.Str()
			members[name] = tree(member)
		}
		return members
	}
	return nil
}

// checkIndex checks that v and all in it are where the index says.
func checkIndex(t *testing.T, data []byte, v wire.Value) {
	t.Helper()
	start, end := v.Span()
	if start < 0 || start >= end || end > len(data) || !bytes.Equal(v.Raw(), data[start:end]) || !json.Valid(v.Raw()) {
		t.Fatalf("%s at [%d:%d] is not where it says", v.Kind(), start, end)
	}
	at := start + 1
	for _, child := range children(t, v) {
		from, to := child.Span()
		if from < at || to >= end {
			t.Fatalf("%s at [%d:%d] inside [%d:%d]", child.Kind(), from, to, at, end)
		}
		if gap := strings.Trim(string(data[at:from]), " \t\r\n,:"); gap != "" {
			t.Fatalf("%q at [%d:%d] is in no value", gap, at, from)
		}
		at = to
		checkIndex(t, data, child)
	}
	if s, ok := v.Str(); ok && (!v.Equal(s) || v.Equal(s+"x") || v.Equal("x"+s)) {
		t.Fatalf("%s is not equal to its own text %q", v.Raw(), s)
	}
}

// children returns the keys and values right inside v.
func children(t *testing.T, v wire.Value) []wire.Value {
	t.Helper()
	all := slices.Collect(v.Elems())
	for key, member := range v.Members() {
		all = append(all, key, member)
		name, ok := key.Str()
		if got, found := v.Get(name); !ok || !found || got != member {
			t.Fatalf("Get(%q) = %s, %v", name, got.Raw(), found)
		}
	}
	want := v.Len()
	if v.Kind() == wire.Object {
		want *= 2
	}
	if len(all) != want {
		t.Fatalf("%s of length %d holds %d values", v.Kind(), v.Len(), len(all))
	}
	return all
}

// check holds Parse against the reference and returns whether it accepts data.
func check(t *testing.T, doc *wire.Doc, data []byte) bool {
	t.Helper()
	err := doc.Parse(data, wire.Limits{})
	if want := accepts(data); (err == nil) != want {
		t.Fatalf("Parse(%q): %v; the reference accepts: %v", data, err, want)
	}
	if err != nil {
		if len(err.Error()) > 300 || strings.ContainsFunc(err.Error(), func(r rune) bool { return !strconv.IsPrint(r) }) {
			t.Fatalf("Parse(%q): unfit to print: %q", data, err)
		}
		return false
	}
	checkIndex(t, data, doc.Root())
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var want any
	if err := decoder.Decode(&want); err != nil {
		t.Fatalf("encoding/json refuses %q: %v", data, err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		t.Fatalf("encoding/json finds more than one value in %q", data)
	}
	if diff := cmp.Diff(want, tree(doc.Root())); diff != "" {
		t.Fatalf("%q is not what encoding/json reads (-want +got):\n%s", data, diff)
	}
	line := doc.Root().AppendLine(nil)
	if bytes.ContainsAny(line, "\r\n") {
		t.Fatalf("AppendLine left a line break in %q", line)
	}
	again, err := wire.Parse(line)
	if err != nil {
		t.Fatalf("Parse(%q), one line of what was accepted: %v", line, err)
	}
	if diff := cmp.Diff(want, tree(again.Root())); diff != "" {
		t.Fatalf("AppendLine changed %q (-want +got):\n%s", data, diff)
	}
	return true
}

// TestEveryByte puts every byte into every kind of place.
func TestEveryByte(t *testing.T) {
	var doc wire.Doc
	for _, place := range []string{
		"?", "?1", "1?", "[?]", "[1?]", "[1?2]", "[1,?2]", "{?}", `{?"a":1}`, `{"a"?:1}`, `{"a":?1}`, `{"a":1?}`, `{"a":1?"b":2}`,
		`"?"`, `"?`, `"0123456?"`, `"01234567?"`, `"0123456789abcdef?0123456789abcdef"`, `{"0123456789abcdef?":1}`,
		`"\?"`, `"\?0041"`, `"\u?041"`, `"\u004?"`, `"\u00?0"`, `"\ud?00"`, `"\ud800?udc00"`, `"\ud800\?dc00"`, `"\ud800\ud?00"`,
		`{"a":1,"?":2}`, `{"S":1,"?":2}`, `{"aS":1,"a?":2}`,
		"-?", "0?", "0?0", "1?0", "1.?", "1.5?", "1e?", "1e?5", "1e5?", "tru?", "true?", "nul?", "fals?",
	} {
		for c := range 256 {
			check(t, &doc, bytes.ReplaceAll([]byte(place), []byte("?"), []byte{byte(c)}))
		}
	}
}

// documents writes random documents, half of them slightly wrong.
type documents struct {
	*rand.Rand
	out []byte
}

func (d *documents) pick(from ...string) { d.out = append(d.out, from[d.IntN(len(from))]...) }

func (d *documents) space() {
	if d.IntN(8) == 0 {
		d.pick(" ", "\n", "\t", "\r\n", "  ")
	}
}

func (d *documents) text() {
	d.pick(`"`)
	for range d.IntN(4) {
		d.pick("a", "A", "s", "ſ", `\u017f`, "k", "\u212a", `\u212a`, "é", "É", `\u00c9`, "速", "😀", `\ud83d\ude00`,
			`\n`, `\"`, `\\`, `\/`, "/", "plain text of some length", `\ufffd`, "\ufffd", "σ", "ς", "Σ", `\u0001`)
	}
	d.pick(`"`)
}

func (d *documents) value(depth int) {
	d.space()
	switch n := d.IntN(9); {
	case n < 3 && depth > 0:
		d.list("{", "}", func() {
			d.text()
			d.space()
			d.pick(":")
			d.value(depth - 1)
		})
	case n < 5 && depth > 0:
		d.list("[", "]", func() { d.value(depth - 1) })
	case n < 7:
		d.text()
	default:
		d.pick("null", "true", "false", "0", "-0", "17", "-1.50", "9007199254740993", "1e3", "2E-7", "1e308", "1e309", "1e1000")
	}
	d.space()
}

func (d *documents) list(open, end string, item func()) {
	d.pick(open)
	d.space()
	n := d.IntN(5)
	if d.IntN(20) == 0 {
		n = 24
	}
	for i := range n {
		if i > 0 {
			d.pick(",")
			d.space()
		}
		item()
	}
	d.pick(end)
}

func (d *documents) next() []byte {
	d.out = d.out[:0]
	d.value(5)
	if d.IntN(2) == 0 {
		at := d.IntN(len(d.out))
		wrong := []string{"", ",", "}", "]", ":", `"`, `\`, "\x00", "\xff", "\x80", "0", "e", "{}", " ", `\ud800`, `\u0000`, "\n", "\ufeff", "\u00e9", "a"}
		d.out = slices.Replace(d.out, at, at+d.IntN(2), []byte(wrong[d.IntN(len(wrong))])...)
	}
	return slices.Clone(d.out)
}

// TestReference writes documents at random and asks both readers.
func TestReference(t *testing.T) {
	random := documents{Rand: rand.New(rand.NewPCG(1, 2))}
	var doc wire.Doc
	const count = 10000
	accepted := 0
	for range count {
		if check(t, &doc, random.next()) {
			accepted++
		}
	}
	if accepted < count/5 || accepted > count*4/5 {
		t.Errorf("%d of %d documents accepted: the test proves little", accepted, count)
	}
}

func FuzzParse(f *testing.F) {
	random := documents{Rand: rand.New(rand.NewPCG(3, 4))}
	for range 200 {
		f.Add(random.next())
	}
	f.Add([]byte(call))
	f.Add([]byte(strings.Repeat("[", 65) + strings.Repeat("]", 65)))
	f.Add([]byte(`{"a":1e400,"b":123456789012345678901234567890123456789012345678901234567890123456789}`))
	f.Add([]byte("\xef\xbb\xbf{}"))
	f.Add([]byte(object(40, "key")))
	f.Fuzz(func(t *testing.T, data []byte) {
		check(t, new(wire.Doc), data)
		checkLoose(t, data)
	})
}
