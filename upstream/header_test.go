package upstream_test

import (
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"capgate/upstream"
	"capgate/wire"
	"github.com/google/go-cmp/cmp"
)

func TestEncodeHeader(t *testing.T) {
	tests := []struct{ text, want string }{
		{"us-west1", "us-west1"},
		{"Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="},
		{" padded ", "=?base64?IHBhZGRlZCA=?="},
		{"line1\nline2", "=?base64?bGluZTEKbGluZTI=?="},
		{"=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="},
		{"", "=?base64??="},
		{"a\tb", "=?base64?YQli?="},
		{"=?base64?", "=?base64?"},
		{"?=", "?="},
		{"file:///a b", "file:///a b"},
	}
	for _, tt := range tests {
		if got := upstream.EncodeHeader(tt.text); got != tt.want {
			t.Errorf("EncodeHeader(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestDecodeHeader(t *testing.T) {
	tests := []struct {
		value, want string
		ok          bool
	}{
		{"", "", true},
		{"plain", "plain", true},
		{"=?base64??=", "", true},
		{"=?base64?SGVsbG8=?=", "Hello", true},
		{"=?base64?SGVsbG8?=", "", false},  // no padding
		{"=?base64?SGVsbG9=?=", "", false}, // bits that say nothing
		{"=?base64?SGV%bG8=?=", "", false}, // not the alphabet
		{"=?base64?=", "", false},          // the marks overlap
		{"=?base64?/w==?=", "", false},     // not UTF-8
		{"=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?=", true},
		{"=?base64?SGVsbG8=", "=?base64?SGVsbG8=", true},
		{" edge", "", false},
		{"edge ", "", false},
		{"t\tb", "", false},
		{"caf\xc3\xa9", "", false},
		{"a\r\nb", "", false},
	}
	for _, tt := range tests {
		got, ok := upstream.DecodeHeader(tt.value)
		if got != tt.want || ok != tt.ok {
			t.Errorf("DecodeHeader(%q) = %q, %v, want %q, %v", tt.value, got, ok, tt.want, tt.ok)
		}
	}
}

// FuzzHeader: what is encoded is decoded to the same, and can be sent.
func FuzzHeader(f *testing.F) {
	for _, seed := range []string{"", "a", " a", "=?base64?x?=", "=?base64?=", "é", "\x00", "a\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, ok := upstream.DecodeHeader(text); ok && got != text {
			if again, ok := upstream.DecodeHeader(upstream.EncodeHeader(got)); !ok || again != got {
				t.Errorf("%q decodes to %q, and that to %q", text, got, again)
			}
		}
		if !utf8.ValidString(text) {
			return // no JSON string that was read is that
		}
		value := upstream.EncodeHeader(text)
		if got, ok := upstream.DecodeHeader(value); !ok || got != text {
			t.Errorf("%q becomes %q becomes %q, %v", text, value, got, ok)
		}
		if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) || strings.TrimSpace(value) != value || value == "" {
			t.Errorf("%q becomes %q, which is changed on its way", text, value)
		}
	})
}

func parse(t testing.TB, text string) wire.Value {
	t.Helper()
	doc, err := wire.Parse([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return doc.Root()
}

func TestParamHeadersInvalid(t *testing.T) {
	tests := []struct{ name, schema string }{
		{"empty", `{"properties":{"a":{"type":"string","x-mcp-header":""}}}`},
		{"not a string", `{"properties":{"a":{"type":"string","x-mcp-header":7}}}`},
		{"null", `{"properties":{"a":{"type":"string","x-mcp-header":null}}}`},
		{"space", `{"properties":{"a":{"type":"string","x-mcp-header":"My Region"}}}`},
		{"colon", `{"properties":{"a":{"type":"string","x-mcp-header":"a:b"}}}`},
		{"control", `{"properties":{"a":{"type":"string","x-mcp-header":"a\r\nb"}}}`},
		{"not ascii", `{"properties":{"a":{"type":"string","x-mcp-header":"é"}}}`},
		{"too long", `{"properties":{"a":{"type":"string","x-mcp-header":"` + strings.Repeat("a", 65) + `"}}}`},
		{"number", `{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`},
		{"object", `{"properties":{"a":{"type":"object","x-mcp-header":"A"}}}`},
		{"array", `{"properties":{"a":{"type":"array","x-mcp-header":"A"}}}`},
		{"type null", `{"properties":{"a":{"type":"null","x-mcp-header":"A"}}}`},
		{"several types", `{"properties":{"a":{"type":["string","null"],"x-mcp-header":"A"}}}`},
		{"no type", `{"properties":{"a":{"x-mcp-header":"A"}}}`},
		{"twice", `{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}`},
		{"twice in depth", `{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"object","properties":{"c":{"type":"string","x-mcp-header":"a"}}}}}`},
		{"root", `{"type":"string","x-mcp-header":"A"}`},
		{"items", `{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}`},
		{"properties below items", `{"properties":{"a":{"items":{"properties":{"b":{"type":"string","x-mcp-header":"A"}}}}}}`},
		{"anyOf", `{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}`},
		{"oneOf in a property", `{"properties":{"a":{"oneOf":[{"type":"string","x-mcp-header":"A"}]}}}`},
		{"if", `{"if":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}`},
		{"not", `{"not":{"x-mcp-header":"A","type":"string"}}`},
		{"$defs", `{"$defs":{"s":{"type":"string","x-mcp-header":"A"}}}`},
		{"patternProperties", `{"patternProperties":{"^a":{"type":"string","x-mcp-header":"A"}}}`},
		{"additionalProperties", `{"additionalProperties":{"type":"string","x-mcp-header":"A"}}`},
		{"unknown keyword", `{"x-more":{"y":[{"x-mcp-header":"A"}]}}`},
	}
	for _, tt := range tests {
		if m, err := upstream.ParamHeaders(parse(t, tt.schema)); err == nil {
			t.Errorf("%s: %s is accepted: %v", tt.name, tt.schema, m)
		}
	}
	var many strings.Builder
	for i := range 65 {
		many.WriteString(`,"p` + strings.Repeat("x", i) + `":{"type":"string","x-mcp-header":"` + strings.Repeat("h", i+1)[:min(i+1, 64)] + `"}`)
	}
	if _, err := upstream.ParamHeaders(parse(t, `{"properties":{`+many.String()[1:]+`}}`)); err == nil {
		t.Error("65 headers are accepted")
	}
}

func TestMirrorFields(t *testing.T) {
	const schema = `{"type":"object","title":"x","properties":{
		"region":{"type":"string","x-mcp-header":"Region"},
		"count":{"type":"integer","x-mcp-header":"Count"},
		"dry":{"type":"boolean","x-mcp-header":"Dry-Run"},
		"query":{"type":"string","default":{"x-mcp-header":"data, not an annotation"}},
		"x-mcp-header":{"type":"string"},
		"to":{"type":"object","properties":{"host":{"type":"string","x-mcp-header":"Method"}}}},
		"examples":[{"x-mcp-header":"A"}],
		"$defs":{"x-mcp-header":{"type":"string"}}}`
	tests := []struct {
		name, arguments string
		want            []upstream.Field
		ok              bool
	}{
		{
			"all", `{"region":"us-west1","count":-7,"dry":true,"query":"q","to":{"host":"h"}}`,
			[]upstream.Field{{"Mcp-Param-Region", "us-west1"}, {"Mcp-Param-Count", "-7"}, {"Mcp-Param-Dry-Run", "true"}, {"Mcp-Param-Method", "h"}},
			true,
		},
		{"none", `{}`, nil, true},
		{"nulls", `{"region":null,"count":null,"dry":null,"to":null}`, nil, true},
		{"no object on the way", `{"to":"x"}`, nil, true},
		{"encoded", `{"region":"é"}`, []upstream.Field{{"Mcp-Param-Region", "=?base64?w6k=?="}}, true},
		{"injection", `{"region":"a\r\nX-Evil: 1"}`, []upstream.Field{{"Mcp-Param-Region", "=?base64?YQ0KWC1FdmlsOiAx?="}}, true},
		{"empty", `{"region":""}`, []upstream.Field{{"Mcp-Param-Region", "=?base64??="}}, true},
		{"whole", `{"count":42.0}`, []upstream.Field{{"Mcp-Param-Count", "42"}}, true},
		{"exponent", `{"count":1e3}`, []upstream.Field{{"Mcp-Param-Count", "1000"}}, true},
		{"largest", `{"count":9007199254740991}`, []upstream.Field{{"Mcp-Param-Count", "9007199254740991"}}, true},
		{"too large", `{"count":9007199254740992}`, nil, false},
		{"not whole", `{"count":1.5}`, nil, false},
		{"string for a number", `{"count":"1"}`, nil, false},
		{"object for a string", `{"region":{}}`, nil, false},
		{"number for a boolean", `{"dry":1}`, nil, false},
		{"too long", `{"region":"` + strings.Repeat("a", 5000) + `"}`, nil, false},
	}
	m, err := upstream.ParamHeaders(parse(t, schema))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		got, unfit := m.Fields(parse(t, tt.arguments))
		if (unfit == "") != tt.ok || !tt.ok && !strings.Contains(tt.arguments, unfit) {
			t.Errorf("%s: unfit is %q", tt.name, unfit)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestMirrorShows: which values of a call others on the way get to see.
func TestMirrorShows(t *testing.T) {
	m, err := upstream.ParamHeaders(parse(t, `{"properties":{"a":{"type":"string","x-mcp-header":"A"},"to":{"properties":{"host":{"type":"string","x-mcp-header":"B"}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	args := parse(t, `{"a":"x","b":"x","to":{"host":"x","a":"x"}}`)
	for path, want := range map[string]bool{"a": true, "b": false, "to": false, "to host": true, "to a": false, "c": false} {
		v := args
		for name := range strings.SplitSeq(path, " ") {
			v, _ = v.Get(name)
		}
		if got := m.Shows(v, args); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	if m.Shows(wire.Value{}, parse(t, "{}")) || (upstream.Mirror{}).Shows(args, args) {
		t.Error("what is not there is shown")
	}
}

// FuzzMirror: no schema and no arguments make a header that cannot be sent, or
// one that is not a parameter's.
func FuzzMirror(f *testing.F) {
	f.Add(`{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}`, `{"a":"x"}`)
	f.Add(`{"properties":{"a":{"properties":{"b":{"type":"integer","x-mcp-header":"B"}}}}}`, `{"a":{"b":1e3}}`)
	f.Add(`{"anyOf":[{"x-mcp-header":"A"}]}`, `{}`)
	f.Fuzz(func(t *testing.T, schema, arguments string) {
		s, err := wire.Parse([]byte(schema))
		if err != nil {
			return
		}
		a, err := wire.Parse([]byte(arguments))
		if err != nil {
			return
		}
		m, err := upstream.ParamHeaders(s.Root())
		if err != nil {
			return
		}
		fields, unfit := m.Fields(a.Root())
		if unfit != "" {
			return
		}
		seen := http.Header{}
		for _, field := range fields {
			if !strings.HasPrefix(http.CanonicalHeaderKey(field.Name), "Mcp-Param-") || seen.Get(field.Name) != "" {
				t.Errorf("%s: the header %q", schema, field.Name)
			}
			if _, ok := upstream.DecodeHeader(field.Value); !ok || len(field.Value) > 4096 {
				t.Errorf("%s: the value %q", arguments, field.Value)
			}
			seen.Set(field.Name, "x")
		}
	})
}
