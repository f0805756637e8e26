package proxy_test

import (
	"bytes"
	"encoding/json"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"capgate/proxy"
	"capgate/wire"
)

func TestCanonical(t *testing.T) {
	for from, want := range map[string]string{
		`{ "b" : [ 1 , {} ], "a" : null }`: `{"a":null,"b":[1,{}]}`,
		`{"a":{"d":true,"c":false}}`:       `{"a":{"c":false,"d":true}}`,
		"[\n\t]":                           `[]`,

		// RFC 8785, 3.2.2 and 3.2.3.
		`{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}`: `{"literals":[null,true,false],"numbers":[333333333.33333329,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
		`{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}`:                                                                                         `{"\r":2,"1":4,"` + "\u0080" + `":6,"ö":7,"€":1,"😀":5,"` + "\ufb33" + `":3}`,
		`{"\ud83d\ude01":1,"\ud83d\ude00":2}`: `{"😀":2,"😁":1}`,

		`"\b\f\n\r\t\u001F\u007f\u2028"`: `"\b\f\n\r\t\u001f` + "\x7f\u2028" + `"`,
		`["a/\u0062",""]`:                `["a/b",""]`,

		`[0,-0,0.0,-0e5,0.000e-3]`:                      `[0,0,0,0,0]`,
		`[1,1.0,10e-1,0.1e1,1e0]`:                       `[1,1,1,1,1]`,
		`[-12.50,1e20,1e21,123e19,1e-6,1e-7,12e-8]`:     `[-12.5,100000000000000000000,1e+21,1.23e+21,0.000001,1e-7,1.2e-7]`,
		`[9007199254740993,18446744073709551617]`:       `[9007199254740993,18446744073709551617]`,
		`[0.1000000000000000055511151231257827,1e-400]`: `[0.1000000000000000055511151231257827,1e-400]`,
	} {
		if got := string(proxy.Canonical(nil, valueOf(t, from))); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", from, got, want)
		}
	}
	if got := proxy.Canonical([]byte("x"), wire.Value{}); string(got) != "x" {
		t.Errorf("no value is %s", got)
	}
}

// TestCanonicalNumbers: what a float64 holds is written as ECMAScript writes it.
func TestCanonicalNumbers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 5_000 {
		f := (random.Float64() - 0.5) * pow10(random.IntN(60)-30)
		if random.IntN(4) == 0 {
			f = float64(random.Int64N(1<<53)) * pow10(random.IntN(6))
		}
		want := ecmascript(f)
		for _, format := range []byte("eEfg") {
			text := strconv.FormatFloat(f, format, -1, 64)
			if len(text) > wire.MaxNumber {
				continue
			}
			if got := string(proxy.Canonical(nil, valueOf(t, text))); got != want {
				t.Fatalf("%s: got %s, want %s", text, got, want)
			}
		}
	}
}

func pow10(n int) float64 {
	f, err := strconv.ParseFloat("1e"+strconv.Itoa(n), 64)
	if err != nil {
		panic(err)
	}
	return f
}

// ecmascript is Number.prototype.toString as encoding/json writes it, which
// differs only in the bounds that it changes to exponents at.
func ecmascript(f float64) string {
	data, err := json.Marshal(f)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// shuffled writes a value in another spelling: members in another order, escapes
// where none are needed, spaces.
func shuffled(random *rand.Rand, dst []byte, v wire.Value) []byte {
	space := func() {
		dst = append(dst, []string{"", " ", "\n\t"}[random.IntN(3)]...)
	}
	switch v.Kind() {
	case wire.Object:
		var members [][2]wire.Value
		for key, value := range v.Members() {
			members = append(members, [2]wire.Value{key, value})
		}
		random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		dst = append(dst, '{')
		for i, m := range members {
			if i > 0 {
				dst = append(dst, ',')
			}
			space()
			dst = append(shuffled(random, dst, m[0]), ':')
			space()
			dst = shuffled(random, dst, m[1])
		}
		return append(dst, '}')
	case wire.Array:
		dst = append(dst, '[')
		first := true
		for e := range v.Elems() {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			space()
			dst = shuffled(random, dst, e)
		}
		return append(dst, ']')
	case wire.String:
		text, _ := v.Str()
		dst = append(dst, '"')
		for _, unit := range utf16.Encode([]rune(text)) {
			if unit < ' ' || unit >= 0x7f || unit == '"' || unit == '\\' || random.IntN(4) == 0 {
				const hex = "0123456789aBcDEf"
				dst = append(dst, '\\', 'u', hex[unit>>12], hex[unit>>8&15], hex[unit>>4&15], hex[unit&15])
			} else {
				dst = append(dst, byte(unit))
			}
		}
		return append(dst, '"')
	default:
		return append(dst, v.Raw()...)
	}
}

// TestPinOfRealDefinitions: R-SEC-14, no spelling changes a pin, and no two
// definitions share one.
func TestPinOfRealDefinitions(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	texts := map[[32]byte]string{}
	for at, def := range realDefinitions(t) {
		v := valueOf(t, string(def))
		pin := proxy.Digest(v)
		for range 3 {
			if other := shuffled(random, nil, v); proxy.Digest(valueOf(t, string(other))) != pin {
				t.Errorf("%s: another pin for %s", at, other)
			}
		}
		text := string(proxy.Canonical(nil, v))
		if was, ok := texts[pin]; ok && was != text {
			t.Errorf("%s: the pin of another definition", at)
		}
		texts[pin] = text
		var a, b any
		if json.Unmarshal(def, &a) != nil || json.Unmarshal([]byte(text), &b) != nil || !slices.Equal(mustMarshal(a), mustMarshal(b)) {
			t.Errorf("%s: says something else", at)
		}
	}
}

func mustMarshal(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// decoded is a value as encoding/json reads it, numbers by their digits.
func decoded(t *testing.T, data []byte) any {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v: %q", err, data)
	}
	return v
}

func FuzzCanonical(f *testing.F) {
	f.Add([]byte(`{"b":[1.50,-0,1e3],"a":"\u0062\/","😀":null,"ﬀ":{}}`), []byte(`{"a":"b/","b":[1.5,0,1000],"😀":null,"ﬀ":{}}`), uint64(1))
	f.Add([]byte(`9007199254740993`), []byte(`9007199254740992`), uint64(1))
	f.Fuzz(func(t *testing.T, a, b []byte, seed uint64) {
		x, err := wire.Parse(a)
		if err != nil {
			return
		}
		text := proxy.Canonical(nil, x.Root())
		again, err := wire.Parse(text)
		if err != nil {
			t.Fatalf("%v: %q", err, text)
		}
		if twice := proxy.Canonical(nil, again.Root()); !bytes.Equal(text, twice) {
			t.Fatalf("%q is not what stays: %q", text, twice)
		}
		random := rand.New(rand.NewPCG(seed, 0))
		other, err := wire.Parse(shuffled(random, nil, x.Root()))
		if err != nil {
			t.Fatal(err)
		}
		if proxy.Digest(other.Root()) != proxy.Digest(x.Root()) {
			t.Fatalf("another pin for %q", other.Root().Raw())
		}
		if !sameJSON(decoded(t, a), decoded(t, text)) {
			t.Fatalf("%q says something else than %q", text, a)
		}
		y, err := wire.Parse(b)
		if err != nil {
			return
		}
		if (proxy.Digest(y.Root()) == proxy.Digest(x.Root())) != sameJSON(decoded(t, a), decoded(t, b)) {
			t.Fatalf("%q and %q: one pin although they differ, or two although they do not", a, b)
		}
	})
}

// sameJSON compares what encoding/json has read. Numbers are compared as fractions
// of whole numbers.
func sameJSON(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for key, member := range a {
			if other, ok := b[key]; !ok || !sameJSON(member, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameJSON)
	case json.Number:
		b, ok := b.(json.Number)
		return ok && equalNumbers(a.String(), b.String())
	}
	return a == b
}

func equalNumbers(a, b string) bool {
	x, ok := new(big.Rat).SetString(a)
	y, fine := new(big.Rat).SetString(b)
	return ok && fine && x.Cmp(y) == 0
}

// TestPinCost: 10,000 definitions are pinned while somebody waits for a list. One
// of a kilobyte takes 8 µs on the machine this was written on; so that the test
// holds on any, the measure is what encoding/json needs to read and write it.
func TestPinCost(t *testing.T) {
	text := []byte(kilobyte())
	def := valueOf(t, string(text))
	pin := leastTime(func() { proxy.Digest(def) })
	standard := leastTime(func() {
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		mustMarshal(v)
	})
	if t.Logf("%v for %d bytes; encoding/json %v", pin, len(text), standard); pin > standard {
		t.Errorf("%v, more than the %v of encoding/json", pin, standard)
	}
}

// leastTime is the least time of one run among many.
func leastTime(run func()) time.Duration {
	const rounds, runs = 10, 50
	best := time.Hour
	for range rounds {
		start := time.Now()
		for range runs {
			run()
		}
		best = min(best, time.Since(start)/runs)
	}
	return best
}

// kilobyte is a definition of the usual size and shape.
func kilobyte() string {
	var b strings.Builder
	for i := range 8 {
		b.WriteString(`,"argument` + strconv.Itoa(i) + `":{"type":"string","description":"What the \"argument\" is for, in a sentence.\nAnd one more.","default":1.5}`)
	}
	return `{"name":"search_files","title":"Search files","description":"Recursively search for files and directories matching a pattern.",` +
		`"inputSchema":{"type":"object","properties":{` + b.String()[1:] + `},"required":["argument0"],"additionalProperties":false,` +
		`"$schema":"http://json-schema.org/draft-07/schema#"},"annotations":{"readOnlyHint":true}}`
}

func BenchmarkPin(b *testing.B) {
	def := valueOf(b, kilobyte())
	b.SetBytes(int64(len(def.Raw())))
	b.ReportAllocs()
	for b.Loop() {
		proxy.Digest(def)
	}
}

func BenchmarkVet(b *testing.B) {
	def := valueOf(b, kilobyte())
	b.SetBytes(int64(len(def.Raw())))
	b.ReportAllocs()
	for b.Loop() {
		if code, why := proxy.Vet(def); code != "" {
			b.Fatal(why)
		}
	}
}
