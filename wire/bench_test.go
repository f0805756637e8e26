package wire_test

import (
	"math/rand/v2"
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

const (
	english = "The quick brown fox jumps over the lazy dog. "
	text    = `some text with \"quotes\", newlines\n, <>& and accents é à ü, `
	item    = `{"id":17,"name":"item","ok":true,"tags":["a","b"],"at":null}`
)

// shuffled returns text with escapes and accents where nothing foresees them, as
// the branch predictor does in what is repeated.
func shuffled(size int) string {
	random := rand.New(rand.NewPCG(5, 6))
	var b strings.Builder
	for b.Len() < size {
		b.WriteString(strings.Repeat("x", random.IntN(24)))
		b.WriteString([]string{`\"`, `\n`, `\t`, "é", "à", "ü", "“", `\\`}[random.IntN(8)])
	}
	return b.String()
}

func BenchmarkParse(b *testing.B) {
	for _, bench := range []struct {
		name string
		data []byte
	}{
		{"300B/call", []byte(call)},
		{"300B/pretty", []byte(strings.NewReplacer(`,"`, ",\n  \"", `":`, `": `).Replace(call))},
		{"64KB/string", document(64<<10, `"`, english, "", `"`)},
		{"64KB/text", document(64<<10, `"`, text, "", `"`)},
		{"64KB/source", document(64<<10, `"`, `\tif err != nil {\n\t\treturn fmt.Errorf(\"read %s: %w\", path, err)\n\t}\n`, "", `"`)},
		{"64KB/utf8", document(64<<10, `"`, "Der schnelle Fuchs überspringt 速い茶色の狐 ", "", `"`)},
		{"100KB/members", document(100<<10, `[`, item, ",", `]`)},
		{"1MB/string", document(1<<20, `"`, english, "", `"`)},
		{"1MB/text", document(1<<20, `"`, text, "", `"`)},
		{"1MB/shuffled", document(1<<20, `"`, shuffled(64<<10), "", `"`)},
		{"1MB/cjk", document(1<<20, `"`, "敏捷的棕色狐狸跳过了懒狗。天地玄黄,宇宙洪荒。", "", `"`)},
		{"1MB/cyrillic", document(1<<20, `"`, "Съешь же ещё этих мягких французских булок, да выпей чаю. ", "", `"`)},
		{"1MB/hex", document(1<<20, `"`, `\u003cb\u003e caf\u00e9 \u0026 th\u00e9 \ud83d\ude00`, "", `"`)},
		{"1MB/json", document(1<<20, `"`, strings.ReplaceAll(item, `"`, `\"`)+",", "", `"`)},
		{"1MB/emoji", document(1<<20, `"`, "ok 😀 done 👍🏽 next ", "", `"`)},
		{"1MB/members", document(1<<20, `[`, item, ",", `]`)},
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
