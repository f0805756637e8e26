package wire_test

import (
	"strings"
	"testing"

	"capgate/wire"
)

// call is a tools/call of the size most have: 300 bytes.
const call = `{"jsonrpc":"2.0","id":1042,"method":"tools/call","params":{"name":"files__read_text_file",` +
	`"arguments":{"path":"/home/agent/projects/foo/src/main.go","head":200,"encoding":"utf-8"},` +
	`"_meta":{"progressToken":"6f1d3c2e-77aa-4b0e-9d1e-0c5b7f0a1b2c","traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}}}`

// document returns a call of about size bytes whose argument is made of parts.
func document(size int, open, part, sep, end string) []byte {
	n := max(1, size/(len(part)+len(sep)))
	parts := strings.Repeat(part+sep, n)
	return []byte(`{"method":"tools/call","params":{"arguments":{"content":` + open + strings.TrimSuffix(parts, sep) + end + `}}}`)
}

func BenchmarkParse(b *testing.B) {
	for _, bench := range []struct {
		name string
		data []byte
	}{
		{"300B/call", []byte(call)},
		{"300B/pretty", []byte(strings.NewReplacer(`,"`, ",\n  \"", `":`, `": `).Replace(call))},
		{"64KB/string", document(64<<10, `"`, "The quick brown fox jumps over the lazy dog. ", "", `"`)},
		{"64KB/source", document(64<<10, `"`, `\tif err != nil {\n\t\treturn fmt.Errorf(\"read %s: %w\", path, err)\n\t}\n`, "", `"`)},
		{"64KB/utf8", document(64<<10, `"`, "Der schnelle Fuchs überspringt 速い茶色の狐 ", "", `"`)},
		{"64KB/members", document(64<<10, `[`, `{"id":17,"name":"item","ok":true,"tags":["a","b"],"at":null}`, ",", `]`)},
		{"1MB/string", document(1<<20, `"`, "The quick brown fox jumps over the lazy dog. ", "", `"`)},
		{"1MB/members", document(1<<20, `[`, `{"id":17,"name":"item","ok":true,"tags":["a","b"],"at":null}`, ",", `]`)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			var doc wire.Doc
			b.SetBytes(int64(len(bench.data)))
			b.ReportAllocs()
			for b.Loop() {
				if err := doc.Parse(bench.data, wire.Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRead reads a call as a gateway does, after parsing it.
func BenchmarkRead(b *testing.B) {
	var doc wire.Doc
	if err := doc.Parse([]byte(call), wire.Limits{}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		read(b, &doc)
	}
}
