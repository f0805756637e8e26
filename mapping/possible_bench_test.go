package mapping_test

import (
	"fmt"
	"testing"

	"capgate/capability"
	"capgate/mapping"
)

// BenchmarkPossible asks what a list asks of every tool: three arguments against
// fifty grants, and again through a parent that holds as many.
func BenchmarkPossible(b *testing.B) {
	tool := parseTool(b, `{source: [fs.read, fs.delete], destination: fs.write, url: net.get, force: free}`)
	grants := func(dir string) *capability.Set {
		var list []string
		for i := range 10 {
			for _, text := range []string{
				"fs.read{in=/w/%[1]s,paths=[src%[2]d,\"src%[2]d/**/*.go\"]}", "fs.delete{in=/w/%[1]s,paths=[\"src%[2]d/**\"]}",
				"fs.write{in=/w/%[1]s,paths=[\"out%[2]d/*\"]}", "net.get{hosts=[\"*.h%[2]d.%[1]s.com\",h%[2]d.org]}", "memory.read{keys=[\"%[1]s%[2]d/*\"]}",
			} {
				list = append(list, fmt.Sprintf(text, dir, i))
			}
		}
		return lawSet(b, list)
	}
	own, other := grants("a"), grants("b")
	for _, bb := range []struct {
		name  string
		tool  *mapping.Tool
		chain capability.Chain
		want  bool
	}{
		{"yes", tool, capability.Chain{{Set: own}}, true},
		{"yes through a parent", tool, capability.Chain{{Set: own}, {Set: own}}, true},
		{"no", tool, capability.Chain{{Set: own}, {Set: other}}, false},
		{"absent", parseTool(b, "{line: proc.eval}"), capability.Chain{{Set: own}}, false},
		{"unmapped", nil, capability.Chain{{Set: lawSet(b, []string{"tool.invoke{tools=[\"s.*\"],args={o=[x]}}"})}}, true},
	} {
		b.Run(bb.name, func(b *testing.B) {
			c := callOf(b, "")
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := bb.tool.Possible(c, bb.chain, nil); ok != bb.want {
					b.Fatal(ok)
				}
			}
		})
	}
}
