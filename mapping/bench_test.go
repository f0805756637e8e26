package mapping_test

import (
	"strings"
	"testing"

	"capgate/mapping"
)

func BenchmarkRequire(b *testing.B) {
	files := builtin(b, "filesystem")
	fetch := builtin(b, "fetch")
	for _, bb := range []struct {
		name string
		tool *mapping.Tool
		args string
	}{
		{"path", files.Tool("read_text_file"), `{"path":"/w/src/main.go"}`},
		{"path and 64 KB", files.Tool("write_file"), `{"path":"/w/src/main.go","content":"` + strings.Repeat("text ", 13000) + `"}`},
		{"100 paths", files.Tool("read_multiple_files"), `{"paths":[` + strings.Repeat(`"/w/a.go",`, 99) + `"/w/a.go"]}`},
		{"odd path", files.Tool("read_text_file"), `{"path":"/w/with space.txt"}`},
		{"url", fetch.Tool("fetch_txt"), `{"url":"https://api.github.com/x","headers":{"Accept":"x"}}`},
		{"unmapped", nil, `{"owner":"acme","repo":"x","labels":["a","b"],"body":"some text"}`},
	} {
		b.Run(bb.name, func(b *testing.B) {
			c := callOf(b, bb.args)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := bb.tool.Require(c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	text, err := mapping.Source("filesystem")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, _, err := mapping.Parse("m", text); err != nil {
			b.Fatal(err)
		}
	}
}

// TestRequireAllocations holds the hot path to what it cost when it was written.
func TestRequireAllocations(t *testing.T) {
	tool := builtin(t, "filesystem").Tool("read_text_file")
	c := callOf(t, `{"path":"/w/src/main.go","head":3}`)
	const most = 12
	if n := testing.AllocsPerRun(100, func() {
		if _, err := tool.Require(c); err != nil {
			t.Error(err)
		}
	}); n > most {
		t.Errorf("a call with one path allocates %v times, at most %d is meant", n, most)
	}
}
