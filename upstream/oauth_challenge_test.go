package upstream_test

import (
	"testing"

	"capgate/upstream"
)

func TestBearer(t *testing.T) {
	for _, tt := range []struct {
		text, metadata, scope string
		ok                    bool
	}{
		{`Bearer`, "", "", true},
		{`bearer realm="x"`, "", "", true},
		{`Bearer resource_metadata="https://h/x", scope="a b"`, "https://h/x", "a b", true},
		{`Bearer realm="a, b=\"c\"" , Resource_Metadata = "https://h/x"`, "https://h/x", "", true},
		{`Basic realm="x", Bearer resource_metadata=x`, "x", "", true},
		{`Negotiate, Bearer scope=a`, "", "a", true},
		{`Bearer scope=a, Basic realm="x", resource_metadata="https://h/y"`, "", "a", true},
		{`Bearer,scope=a`, "", "", true},

		{``, "", "", false},
		{`Basic resource_metadata="https://h/x"`, "", "", false},
		{`Bearer scope="a", scope="b"`, "", "", false},
		{`Bearer scope="a`, "", "", false},
		{`Bearer scope="a" resource_metadata="b"`, "", "", false},
		{"Bearer scope=\"a\x00\"", "", "", false},
		{`Bearer="x"`, "", "", false},
		{`Basic YWJjOmRlZg==, Bearer scope=a`, "", "", false},
	} {
		metadata, scope, ok := upstream.Bearer(tt.text)
		if metadata != tt.metadata || scope != tt.scope || ok != tt.ok {
			t.Errorf("%s: got %q %q %v", tt.text, metadata, scope, ok)
		}
	}
}

func FuzzBearer(f *testing.F) {
	f.Add(`Basic realm="x", Bearer resource_metadata="https://h/x", scope="a b"`)
	f.Add(`Bearer ,, a=b, c d`)
	f.Fuzz(func(t *testing.T, text string) {
		metadata, scope, ok := upstream.Bearer(text)
		if !ok && metadata+scope != "" {
			t.Errorf("%q: no challenge, and yet %q %q", text, metadata, scope)
		}
		for _, value := range []string{metadata, scope} {
			for _, c := range []byte(value) {
				if c < ' ' && c != '\t' || c == 0x7f {
					t.Errorf("%q: a control character in %q", text, value)
				}
			}
		}
	})
}
