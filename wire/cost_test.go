package wire_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"capgate/wire"
)

// TestAllocations: on the path of every call, a Doc in use allocates nothing.
func TestAllocations(t *testing.T) {
	var doc wire.Doc
	data := []byte(call)
	large := []byte(object(1000, "key"))
	plain := []byte(`"a string that does not fit a small buffer on the stack"`)
	escaped := []byte(`"a string that \n \t \u00e9 does not fit a small buffer on the stack"`)
	for _, test := range []struct {
		name string
		want float64
		run  func()
	}{
		{"a call", 0, func() { mustParse(t, &doc, data) }},
		{"a call with 1000 arguments", 0, func() { mustParse(t, &doc, large) }},
		{"a call and its values", 0, func() {
			mustParse(t, &doc, data)
			read(t, &doc)
			doc.Reset()
		}},
		{"a plain string", 1, func() {
			mustParse(t, &doc, plain)
			doc.Root().Str()
		}},
		{"a string with escapes", 1, func() {
			mustParse(t, &doc, escaped)
			doc.Root().Str()
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.run()
			if got := testing.AllocsPerRun(100, test.run); got != test.want {
				t.Errorf("%v allocations, want %v", got, test.want)
			}
		})
	}
}

func mustParse(t *testing.T, doc *wire.Doc, data []byte) {
	if err := doc.Parse(data, wire.Limits{}); err != nil {
		t.Fatal(err)
	}
}

// read looks a call over as a gateway does.
func read(t testing.TB, doc *wire.Doc) {
	method, _ := doc.Root().Get("method")
	params, _ := doc.Root().Get("params")
	arguments, _ := params.Get("arguments")
	names := 0
	for key, member := range arguments.Members() {
		if key.Equal("path") && member.Kind() == wire.String || key.Kind() == wire.String {
			names++
		}
	}
	id, _ := doc.Root().Get("id")
	number, _ := id.Int64()
	if !method.Equal("tools/call") || names != 3 || number != 1042 {
		t.Fatal("the call reads wrong")
	}
}

// TestReset: one huge message does not stay in the pool.
func TestReset(t *testing.T) {
	var doc wire.Doc
	huge := []byte("[" + strings.Repeat("1,", 100_000) + "1]")
	small := []byte(call)
	if got := testing.AllocsPerRun(10, func() { mustParse(t, &doc, huge); doc.Reset() }); got == 0 {
		t.Error("Reset kept the index of a huge document")
	}
	if got := testing.AllocsPerRun(10, func() { mustParse(t, &doc, small); doc.Reset() }); got != 0 {
		t.Errorf("Reset dropped the index of a small document: %v allocations", got)
	}
}

// fastest returns the least time of a few readings of data.
func fastest(data []byte, limits wire.Limits) time.Duration {
	var doc wire.Doc
	best := time.Hour
	for range 4 {
		start := time.Now()
		_ = doc.Parse(data, limits)
		best = min(best, time.Since(start))
	}
	return best
}

// TestNoQuadraticTime reads documents made to be slow, and bounds their time by
// that of an everyday document of the same size. All are about a megabyte, so
// that anything worse than linear is thousands of times slower.
func TestNoQuadraticTime(t *testing.T) {
	const size = 1 << 20
	const bound = 20
	everyday := func(n int) []byte {
		return document(n, `[`, `{"id":17,"name":"item","ok":true,"tags":["a","b"],"at":null}`, ",", `]`)
	}
	keys := func(n int, key func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(`,"` + key(i) + `":0`)
		}
		return "{" + b.String()[1:] + "}"
	}
	prefix := strings.Repeat("x", 1000)
	for name, attack := range map[string]string{
		"100000 keys":                  keys(100_000, func(i int) string { return "k" + strconv.Itoa(i) }),
		"100000 keys and a duplicate":  keys(100_001, func(i int) string { return "k" + strconv.Itoa(i%100_000) }),
		"100000 keys of one length":    keys(100_000, func(i int) string { return "a" + strconv.Itoa(100_000+i) + "z" }),
		"100000 keys with an escape":   keys(100_000, func(i int) string { return `\u006b` + strconv.Itoa(i) }),
		"keys of other scripts":        keys(30_000, func(i int) string { return "ΣΊΣΥΦΟΣ" + strconv.Itoa(i) }),
		"long keys alike":              keys(1000, func(i int) string { return prefix + strconv.Itoa(i) }),
		"objects of 17 keys":           "[" + strings.Repeat(object(17, "key")+",", 5000) + "0]",
		"objects of 2 long keys alike": "[" + strings.Repeat(`{"`+prefix+`ab":0,"`+prefix+`cb":0},`, 500) + "0]",
		"escapes":                      `"` + strings.Repeat(`\n`, size/2) + `"`,
		"hex escapes":                  `"` + strings.Repeat(`\u00e9`, size/6) + `"`,
		"surrogate pairs":              `"` + strings.Repeat(`\ud83d\ude00`, size/12) + `"`,
		"escapes between UTF-8":        `"` + strings.Repeat(`é\n`, size/4) + `"`,
		"strings next to UTF-8":        "[" + strings.Repeat(`"","é",`, size/8) + "0]",
		"bad UTF-8 at the end":         `"` + strings.Repeat(`é`, size/2) + "\xff\"",
		"whitespace":                   strings.Repeat(" ", size) + "0",
		"deep":                         "[" + strings.Repeat(strings.Repeat("[", 63)+strings.Repeat("]", 63)+",", size/127) + "0]",
		"too deep":                     strings.Repeat("[", size),
		"too deep in objects":          strings.Repeat(`{"a":`, size/5),
		"unclosed objects":             strings.Repeat(`[{"a":0,"b":`, 30),
		"one long number":              strings.Repeat("1", size),
		"numbers with exponents":       "[" + strings.Repeat("1.2345678901234567890123456789012345678901234567890123456789e300,", size/64) + "0]",
		"empty containers":             "[" + strings.Repeat("{},[],", size/6) + "0]",
		"unclosed string":              `"` + strings.Repeat("x", size),
		"unclosed strings":             strings.Repeat(`{"x`, size/3),
	} {
		t.Run(name, func(t *testing.T) {
			usual := fastest(everyday(max(len(attack), size/4)), wire.Limits{})
			got := fastest([]byte(attack), wire.Limits{})
			for tries := 0; got > bound*usual && tries < 5; tries++ { // the machine may be busy
				got = min(got, fastest([]byte(attack), wire.Limits{}))
			}
			if got > bound*usual {
				t.Errorf("%v for %d bytes; %v for an everyday document", got, len(attack), usual)
			} else {
				t.Logf("%.2f times an everyday document", float64(got)/float64(usual))
			}
		})
	}
}
