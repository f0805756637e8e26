package wire_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"capgate/wire"
)

func TestAccepts(t *testing.T) {
	for name, document := range map[string]string{
		"null":                       `null`,
		"true":                       `true`,
		"false":                      `false`,
		"string":                     `"text"`,
		"empty string":               `""`,
		"empty object":               `{}`,
		"empty array":                `[]`,
		"empty containers inside":    `{"a":{},"b":[],"c":[{},[]]}`,
		"whitespace everywhere":      " \t\r\n{ \"a\" : [ 1 , 2 ] , \"b\" : { } } \n",
		"whitespace in empty":        "[ \n ]",
		"all short escapes":          `"\"\\\/\b\f\n\r\t"`,
		"hex escape, both cases":     `"\u00e9\u00E9"`,
		"surrogate pair":             `"\ud83d\ude00"`,
		"surrogate pair, uppercase":  `"\uD83D\uDE00"`,
		"last surrogate pair":        `"\udbff\udfff"`,
		"neighbours of surrogates":   `"\ud7ff\ue000"`,
		"escaped U+FFFD":             `"\ufffd"`,
		"escaped U+0001":             `"\u0001"`,
		"UTF-8 of every length":      `"é速😀"`,
		"UTF-8 after many bytes":     `"0123456789abcdef0123456789é"`,
		"noncharacter":               "\"\uffff\"",
		"byte order mark in string":  "\"\ufeff\"",
		"line separators":            "\"\u2028\u2029\"",
		"DEL":                        "\"\x7f\"",
		"zero":                       `0`,
		"minus zero":                 `-0`,
		"fraction":                   `-12.50`,
		"exponents":                  `[1e5,1E+5,1.5e-5,0e0]`,
		"largest float":              `1.7976931348623157e308`,
		"too small for a float":      `1e-999`,
		"integer past 2^53":          `9007199254740993`,
		"64 bytes of number":         strings.Repeat("9", 64),
		"zero with a large exponent": `0e999`,
		"depth 64":                   strings.Repeat("[", 64) + strings.Repeat("]", 64),
		"depth 64 in objects":        strings.Repeat(`{"a":`, 64) + "1" + strings.Repeat("}", 64),
		"depth 64 twice":             `[` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `,` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `]`,
		"same key in two objects":    `[{"a":1},{"a":1},{"b":{"a":1},"a":{"a":2}}]`,
		"same text as value":         `{"a":"a","b":"A"}`,
		"empty key":                  `{"":1,"a":2}`,
		"keys that only look alike":  "{\"a\":1,\"\u0430\":2}",
		"normalization":              "{\"\u00e9\":1,\"e\u0301\":2}",
		"full folding":               `{"ß":1,"ss":2}`,
		"dotless i":                  `{"ı":1,"i":2,"İ":3}`,
		"prototype":                  `{"__proto__":{"a":1},"constructor":2}`,
		"17 keys":                    object(17, "key"),
		"10000 keys":                 object(10000, "key"),
	} {
		t.Run(name, func(t *testing.T) {
			doc, err := wire.Parse([]byte(document))
			if err != nil {
				t.Fatalf("Parse(%.80q): %v", document, err)
			}
			if got, want := string(doc.Root().Raw()), strings.Trim(document, " \t\r\n"); got != want {
				t.Errorf("Raw() = %.80q, want %.80q", got, want)
			}
			if !accepts([]byte(document)) {
				t.Errorf("the reference refuses %.80q", document)
			}
		})
	}
}

// TestRefuses holds R-SEC-01, one case for everything two readers may take in two
// ways.
func TestRefuses(t *testing.T) {
	long := strings.Repeat("x", 100)
	for _, test := range []struct{ name, document, want string }{
		{"nothing", ``, `the document ends where a value was due at byte 0`},
		{"only whitespace", "  ", `the document ends where a value was due at byte 2`},
		{"byte order mark", "\ufeff{}", `the document begins with a byte order mark at byte 0`},
		{"byte order mark after space", " \ufeff{}", `unexpected byte 0xef where a value was due at byte 1`},
		{"UTF-16", "{\x00}\x00", `unexpected byte 0x00 where a key was due at byte 1`},
		{"second value", `{} {}`, `unexpected '{' where the end of the document was due at byte 3`},
		{"second value on a line", "{}\n{}", `unexpected '{' where the end of the document was due at byte 3`},
		{"comma at the end", `{},`, `unexpected ',' where the end of the document was due at byte 2`},
		{"NUL at the end", "{}\x00", `unexpected byte 0x00 where the end of the document was due at byte 2`},
		{"NUL first", "\x00{}", `unexpected byte 0x00 where a value was due at byte 0`},
		{"NUL between tokens", "[1,\x00 2]", `unexpected byte 0x00 where a value was due at byte 3`},
		{"form feed as space", "\f{}", `unexpected byte 0x0c where a value was due at byte 0`},
		{"no-break space", "\u00a0{}", `unexpected byte 0xc2 where a value was due at byte 0`},
		{"line comment", "// x\n{}", `unexpected '/' where a value was due at byte 0`},
		{"block comment", `{"a":/**/1}`, `unexpected '/' where a value was due at byte 5`},
		{"hash comment", `{} # x`, `unexpected '#' where the end of the document was due at byte 3`},
		{"record separator", "\x1e{}", `unexpected byte 0x1e where a value was due at byte 0`},

		{"trailing comma in object", `{"a":1,}`, `unexpected '}' where a key was due at byte 7`},
		{"trailing comma in array", `[1,]`, `unexpected ']' where a value was due at byte 3`},
		{"leading comma", `[,1]`, `unexpected ',' where a value was due at byte 1`},
		{"two commas", `[1,,2]`, `unexpected ',' where a value was due at byte 3`},
		{"only a comma", `{,}`, `unexpected ',' where a key was due at byte 1`},
		{"missing comma in array", `[1 2]`, `unexpected '2' where "," or "]" was due at byte 3`},
		{"missing comma in object", `{"a":1 "b":2}`, `unexpected '"' where "," or "}" was due at byte 7`},
		{"missing colon", `{"a" 1}`, `unexpected '1' where ":" was due at byte 5`},
		{"missing value", `{"a":}`, `unexpected '}' where a value was due at byte 5`},
		{"key alone", `{"a"}`, `unexpected '}' where ":" was due at byte 4`},
		{"bare key", `{a:1}`, `unexpected 'a' where a key was due at byte 1`},
		{"single quotes", `{'a':1}`, `unexpected '\'' where a key was due at byte 1`},
		{"number as key", `{1:1}`, `unexpected '1' where a key was due at byte 1`},
		{"colon in array", `["a":1]`, `unexpected ':' where "," or "]" was due at byte 4`},
		{"wrong closer of array", `[1}`, `unexpected '}' where "," or "]" was due at byte 2`},
		{"wrong closer of object", `{"a":1]`, `unexpected ']' where "," or "}" was due at byte 6`},
		{"wrong closer of empty", `[}`, `unexpected '}' where a value was due at byte 1`},
		{"closer too many", `[]]`, `unexpected ']' where the end of the document was due at byte 2`},
		{"open object", `{`, `the document ends where a key was due at byte 1`},
		{"open object after member", `{"a":1`, `the document ends where "," or "}" was due at byte 6`},
		{"open array", `[1`, `the document ends where "," or "]" was due at byte 2`},
		{"open after comma", `[1,`, `the document ends where a value was due at byte 3`},
		{"open after key", `{"a"`, `the document ends where ":" was due at byte 4`},
		{"semicolon", `[1;2]`, `unexpected ';' where "," or "]" was due at byte 2`},

		{"open string", `"abc`, `the document ends in a string at byte 4`},
		{"open string after escape", `"abc\"`, `the document ends in a string at byte 6`},
		{"open key", `{"abc`, `the document ends in a string at byte 5`},
		{"raw newline", "\"ab\ncd\"", `raw control character 0x0a in a string at byte 3`},
		{"raw newline far in", "\"0123456789abcdef\n\"", `raw control character 0x0a in a string at byte 17`},
		{"raw NUL", "\"ab\x00\"", `raw control character 0x00 in a string at byte 3`},
		{"raw tab in key", "{\"a\tb\":1}", `raw control character 0x09 in a string at byte 3`},
		{"raw unit separator", "\"\x1f\"", `raw control character 0x1f in a string at byte 1`},
		{"escaped NUL", `"ab\u0000"`, `escaped NUL in a string at byte 3`},
		{"escaped NUL in key", `{"\u0000":1}`, `escaped NUL in a string at byte 2`},
		{"unknown escape", `"\x41"`, `invalid escape in a string at byte 1`},
		{"escaped newline", "\"\\\n\"", `invalid escape in a string at byte 1`},
		{"uppercase escape", `"\N"`, `invalid escape in a string at byte 1`},
		{"uppercase U", `"\U0041"`, `invalid escape in a string at byte 1`},
		{"short hex", `"\u004"`, `invalid escape in a string at byte 1`},
		{"hex at the end", `"\u00`, `invalid escape in a string at byte 1`},
		{"backslash at the end", `"\`, `invalid escape in a string at byte 1`},
		{"not hex", `"\u00g0"`, `invalid escape in a string at byte 1`},
		{"sign in hex", `"\u+041"`, `invalid escape in a string at byte 1`},
		{"high surrogate alone", `"\ud800"`, `half of a surrogate pair in a string at byte 1`},
		{"low surrogate alone", `"\udc00"`, `half of a surrogate pair in a string at byte 1`},
		{"surrogates swapped", `"\ude00\ud83d"`, `half of a surrogate pair in a string at byte 1`},
		{"two high surrogates", `"\ud83d\ud83d\ude00"`, `half of a surrogate pair in a string at byte 1`},
		{"high surrogate and letter", `"\ud83dx"`, `half of a surrogate pair in a string at byte 1`},
		{"high surrogate and escape", `"\ud83d\n\ude00"`, `half of a surrogate pair in a string at byte 1`},
		{"high surrogate and U", `"\ud83d\Ude00"`, `half of a surrogate pair in a string at byte 1`},
		{"high surrogate and broken hex", `"\ud83d\ude0"`, `half of a surrogate pair in a string at byte 1`},
		{"high surrogate and the end", `"\ud83d\u`, `half of a surrogate pair in a string at byte 1`},
		{"high surrogate raw and escaped", "\"\xed\xa0\xbd\\ude00\"", `invalid UTF-8 at byte 1`},
		{"surrogate in key", `{"\ud800":1}`, `half of a surrogate pair in a string at byte 2`},
		{"UTF-8 of a surrogate", "\"\xed\xa0\x80\"", `invalid UTF-8 at byte 1`},
		{"bare continuation", "\"ab\x80\"", `invalid UTF-8 at byte 3`},
		{"bad byte", "\"0123456789\xff0123456789\"", `invalid UTF-8 at byte 11`},
		{"bad byte after good", "\"é速\xff\"", `invalid UTF-8 at byte 6`},
		{"cut sequence", "\"\xe9\x80\"", `invalid UTF-8 at byte 1`},
		{"sequence cut by an escape", "\"\xc3\\n\xa9\"", `invalid UTF-8 at byte 1`},
		{"overlong slash", "\"\xc0\xaf\"", `invalid UTF-8 at byte 1`},
		{"overlong NUL", "\"\xc0\x80\"", `invalid UTF-8 at byte 1`},
		{"past U+10FFFF", "\"\xf4\x90\x80\x80\"", `invalid UTF-8 at byte 1`},
		{"bad byte in key", "{\"\xff\":1}", `invalid UTF-8 at byte 2`},
		{"bad byte outside", "[\xff]", `unexpected byte 0xff where a value was due at byte 1`},

		{"NaN", `NaN`, `unexpected 'N' where a value was due at byte 0`},
		{"nan", `nan`, `a value that begins like null and is not at byte 0`},
		{"Infinity", `[Infinity]`, `unexpected 'I' where a value was due at byte 1`},
		{"-Infinity", `-Infinity`, `unexpected 'I' where a digit was due at byte 1`},
		{"undefined", `undefined`, `unexpected 'u' where a value was due at byte 0`},
		{"True", `True`, `unexpected 'T' where a value was due at byte 0`},
		{"cut true", `tru`, `a value that begins like true and is not at byte 0`},
		{"cut false", `[fals]`, `a value that begins like false and is not at byte 1`},
		{"long null", `nulls`, `unexpected 's' where the end of the document was due at byte 4`},
		{"plus", `+1`, `unexpected '+' where a value was due at byte 0`},
		{"minus alone", `-`, `the document ends where a digit was due at byte 1`},
		{"two minus", `--1`, `unexpected '-' where a digit was due at byte 1`},
		{"leading zero", `[01]`, `a number begins with a superfluous zero at byte 1`},
		{"negative leading zero", `-012`, `a number begins with a superfluous zero at byte 1`},
		{"hexadecimal", `0x10`, `unexpected 'x' where the end of the document was due at byte 1`},
		{"underscore", `1_000`, `unexpected '_' where the end of the document was due at byte 1`},
		{"no whole part", `.5`, `unexpected '.' where a value was due at byte 0`},
		{"no fraction", `[1.]`, `unexpected ']' where a digit was due at byte 3`},
		{"no fraction before exponent", `1.e5`, `unexpected 'e' where a digit was due at byte 2`},
		{"no exponent", `1e`, `the document ends where a digit was due at byte 2`},
		{"no digits after sign", `1e+`, `the document ends where a digit was due at byte 3`},
		{"fraction in exponent", `1e5.5`, `unexpected '.' where the end of the document was due at byte 3`},
		{"other digits", `[١]`, `unexpected byte 0xd9 where a value was due at byte 1`},
		{"infinite", `{"a":1e400}`, `a number is too large at byte 5`},
		{"just infinite", `1.7976931348623159e308`, `a number is too large at byte 0`},
		{"negative infinite", `-1e309`, `a number is too large at byte 0`},
		{"four digits of exponent", `1e-1000`, `a number has more than 3 digits of exponent at byte 0`},
		{"zeros in exponent", `1e0001`, `a number has more than 3 digits of exponent at byte 0`},
		{"65 bytes of number", strings.Repeat("9", 65), `a number is longer than 64 bytes at byte 0`},
		{"65 bytes of fraction", "0." + strings.Repeat("1", 63), `a number is longer than 64 bytes at byte 0`},

		{"depth 65", strings.Repeat("[", 65) + strings.Repeat("]", 65), `the document is nested more than 64 deep at byte 64`},
		{"depth 65 in objects", strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65), `the document is nested more than 64 deep at byte 320`},
		{"unclosed depth", strings.Repeat("[", 100000), `the document is nested more than 64 deep at byte 64`},

		{"duplicate", `{"path":1,"path":2}`, `duplicate key "path" at byte 10`},
		{"duplicate with the same value", `{"a":1,"a":1}`, `duplicate key "a" at byte 7`},
		{"duplicate after others", `{"a":1,"b":{"c":[]},"c":"x","b":2}`, `duplicate key "b" at byte 28`},
		{"duplicate empty key", `{"":1,"":2}`, `duplicate key "" at byte 6`},
		{"duplicate by escape", `{"path":1,"p\u0061th":2}`, `duplicate key "path" at byte 10`},
		{"duplicate by escaped slash", `{"a/b":1,"a\/b":2}`, `duplicate key "a/b" at byte 9`},
		{"duplicate by surrogate pair", `{"😀":1,"\ud83d\ude00":2}`, `duplicate key "\U0001f600" at byte 10`},
		{"duplicate nested", `{"a":[{"b":{"c":1,"c":2}}]}`, `duplicate key "c" at byte 18`},
		{"duplicate proto", `{"__proto__":1,"__proto__":2}`, `duplicate key "__proto__" at byte 15`},
		{"case", `{"path":1,"Path":2}`, `key "Path" is another key in different case at byte 10`},
		{"case nested", `{"path":1,"opts":{"Url":1,"url":2}}`, `key "url" is another key in different case at byte 26`},
		{"case by escape", `{"path":1,"\u0050ath":2}`, `key "Path" is another key in different case at byte 10`},
		{"case of every letter", `{"abcdefghijklmnopqrstuvwxyz":1,"ABCDEFGHIJKLMNOPQRSTUVWXYZ":2}`, `key "ABCDEFGHIJKLMNOPQRSTUVWXYZ" is another key in different case at byte 32`},
		{"long s", `{"task":1,"ta\u017fk":2}`, `key "ta\u017fk" is another key in different case at byte 10`},
		{"long s raw and upper", `{"taſk":1,"TASK":2}`, `key "TASK" is another key in different case at byte 11`},
		{"kelvin", `{"key":1,"\u212aey":2}`, `key "\u212aey" is another key in different case at byte 9`},
		{"kelvin raw", "{\"K\":1,\"\u212a\":2}", `key "\u212a" is another key in different case at byte 7`},
		{"accents", `{"É":1,"é":2}`, `key "\u00e9" is another key in different case at byte 8`},
		{"three sigmas", `{"σ":1,"x":1,"ς":2}`, `key "\u03c2" is another key in different case at byte 14`},
		{"cut echo", `{"` + long + `":1,"` + long + `":2}`, `duplicate key "` + long[:40] + `"… at byte 106`},
		{
			"cut echo between characters", `{"xy` + strings.Repeat("速", 20) + `":1,"xy` + strings.Repeat("速", 20) + `":2}`,
			`duplicate key "xy` + strings.Repeat(`\u901f`, 12) + `"… at byte 68`,
		},
		{"escaped echo", `{"\u001b[31m\n\u202e":1,"\u001b[31m\n\u202e":2}`, `duplicate key "\x1b[31m\n\u202e" at byte 24`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var doc wire.Doc
			err := doc.Parse([]byte(test.document), wire.Limits{})
			var syntax *wire.SyntaxError
			if !errors.As(err, &syntax) {
				t.Fatalf("Parse(%.80q) = %v, want a SyntaxError", test.document, err)
			}
			if err.Error() != test.want {
				t.Errorf("Parse(%.80q)\n got: %s\nwant: %s", test.document, err, test.want)
			}
			if doc.Root() != (wire.Value{}) {
				t.Errorf("a refused document has the root %s", doc.Root().Kind())
			}
			if accepts([]byte(test.document)) {
				t.Errorf("the reference accepts %.80q", test.document)
			}
			if got, err := wire.Parse([]byte(test.document)); got != nil || err == nil {
				t.Errorf("Parse = %v, %v", got, err)
			}
		})
	}
}

// TestAttackCorpus holds the JSON cases of the attack corpus: arguments of a
// call that parsers read differently.
func TestAttackCorpus(t *testing.T) {
	const elsewhere = "well formed; refused where the declared arguments of the tool are known"
	for _, test := range []struct{ id, document, want string }{
		{"JSON-BIGNUM-01", `{"path":"ok.txt","limit":1e400}`, "a number is too large at byte 25"},
		{"JSON-BOM-01", "\ufeff" + `{"path":"ok.txt"}`, "the document begins with a byte order mark at byte 0"},
		{"JSON-CASE-01", `{"path":"ok.txt","Path":"/etc/passwd"}`, `key "Path" is another key in different case at byte 17`},
		{"JSON-CASE-NESTED-01", `{"path":"ok.txt","opts":{"Url":"a","url":"b"}}`, `key "url" is another key in different case at byte 35`},
		{"JSON-CASE-ONLY-01", `{"Path":"/etc/passwd"}`, elsewhere},
		{"JSON-CONTROL-RAW-01", "{\"path\":\"ok.txt\n\"}", "raw control character 0x0a in a string at byte 15"},
		{"JSON-DEPTH-01", `{"path":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}`, "the document is nested more than 64 deep at byte 71"},
		{"JSON-DUP-01", `{"path":"${ROOT}/ok.txt","path":"/etc/passwd"}`, `duplicate key "path" at byte 25`},
		{"JSON-DUP-ESCAPE-01", `{"path":"ok.txt","p\u0061th":"/etc/passwd"}`, `duplicate key "path" at byte 17`},
		{"JSON-FOLD-S-01", `{"task":"ok.txt","ta\u017fk":"/etc/passwd"}`, `key "ta\u017fk" is another key in different case at byte 17`},
		{"JSON-INT-FIDELITY-01", `{"path":"ok.txt","limit":9007199254740993}`, ""},
		{"JSON-NAN-01", `{"path":"ok.txt","limit":NaN}`, "unexpected 'N' where a value was due at byte 25"},
		{"JSON-NESTED-DUP-01", `{"path":"ok.txt","opts":{"a":1,"a":2}}`, `duplicate key "a" at byte 31`},
		{"JSON-NON-OBJECT-01", `["path","/etc/passwd"]`, elsewhere},
		{"JSON-OK-01", `{"path":"${ROOT}/ok.txt"}`, ""},
		{"JSON-PROTO-01", `{"path":"ok.txt","__proto__":{"path":"/etc/passwd"}}`, elsewhere},
		{"JSON-SURROGATE-01", `{"path":"${ROOT}/\ud800ok.txt"}`, "half of a surrogate pair in a string at byte 17"},
		{"JSON-TRAILING-01", `{"path":"ok.txt"}{"path":"/etc/passwd"}`, "unexpected '{' where the end of the document was due at byte 17"},
		{"JSON-TRAILING-COMMA-01", `{"path":"ok.txt",}`, "unexpected '}' where a key was due at byte 17"},
		{"JSON-UTF8-01", "{\"path\":\"${ROOT}/o\xffk.txt\"}", "invalid UTF-8 at byte 18"},
	} {
		t.Run(test.id, func(t *testing.T) {
			doc, err := wire.Parse([]byte(test.document))
			switch {
			case test.want == "" || test.want == elsewhere:
				if err != nil {
					t.Fatalf("Parse: %v", err)
				}
				if got := string(doc.Root().Raw()); got != test.document {
					t.Errorf("Raw() = %q, want %q", got, test.document)
				}
			case err == nil:
				t.Errorf("Parse accepts %q", test.document)
			case err.Error() != test.want:
				t.Errorf("Parse\n got: %v\nwant: %s", err, test.want)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	for _, test := range []struct {
		name, document string
		limits         wire.Limits
		want           string
	}{
		{"bytes met", `"abc"`, wire.Limits{Bytes: 5}, ""},
		{"bytes", `"abcd"`, wire.Limits{Bytes: 5}, "the document is longer than 5 bytes at byte 5"},
		{"bytes of whitespace", `"abc" `, wire.Limits{Bytes: 5}, "the document is longer than 5 bytes at byte 5"},
		{"depth met", `{"a":[1]}`, wire.Limits{Depth: 2}, ""},
		{"depth", `{"a":[[]]}`, wire.Limits{Depth: 2}, "the document is nested more than 2 deep at byte 6"},
		{"nodes met", `{"a":[1]}`, wire.Limits{Nodes: 4}, ""},
		{"nodes: value", `{"a":[1,2]}`, wire.Limits{Nodes: 4}, "the document has more than 4 values and keys at byte 8"},
		{"nodes: key", `{"a":1,"b":2}`, wire.Limits{Nodes: 3}, "the document has more than 3 values and keys at byte 7"},
		{"nodes: container", `[1,[]]`, wire.Limits{Nodes: 2}, "the document has more than 2 values and keys at byte 3"},
		{"nodes: object", `[1,{}]`, wire.Limits{Nodes: 2}, "the document has more than 2 values and keys at byte 3"},
		{"number met", `123`, wire.Limits{Number: 3}, ""},
		{"number", `1234`, wire.Limits{Number: 3}, "a number is longer than 3 bytes at byte 0"},
		{"long and finite", strings.Repeat("9", 300), wire.Limits{Number: 400}, ""},
		{"long and infinite", strings.Repeat("9", 310), wire.Limits{Number: 400}, "a number is too large at byte 0"},
		{"long fraction", "0." + strings.Repeat("9", 390), wire.Limits{Number: 400}, ""},
		{"more depth", strings.Repeat("[", 10000) + strings.Repeat("]", 10000), wire.Limits{Depth: 10000}, ""},
		{"less than nothing", `[[1]]`, wire.Limits{-1, -1, -1, -1}, ""},
		{"beyond the index", `[[1]]`, wire.Limits{math.MaxInt, math.MaxInt, math.MaxInt, math.MaxInt}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var doc wire.Doc
			got := ""
			if err := doc.Parse([]byte(test.document), test.limits); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("Parse(%.80q, %+v)\n got: %s\nwant: %s", test.document, test.limits, got, test.want)
			}
		})
	}
}

func TestDefaultLimits(t *testing.T) {
	blank := strings.Repeat(" ", wire.MaxBytes-2)
	values := "[" + strings.Repeat("1,", wire.MaxNodes-2) + "1"
	for _, test := range []struct{ name, document, want string }{
		{"bytes met", blank + "[]", ""},
		{"bytes", blank + " []", "the document is longer than 33554432 bytes at byte 33554432"},
		{"nodes met", values + "]", ""},
		{"nodes", values + ",1]", "the document has more than 1048576 values and keys at byte 2097151"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := ""
			if _, err := wire.Parse([]byte(test.document)); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("Parse\n got: %s\nwant: %s", got, test.want)
			}
		})
	}
}
