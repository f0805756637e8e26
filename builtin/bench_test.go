package builtin_test

import (
	"fmt"
	"testing"

	"capgate/builtin"
)

// BenchmarkFiles is what a call costs besides the gateway around it: a small file,
// and a directory whose thousand entries are each decided on.
func BenchmarkFiles(b *testing.B) {
	files := []string{"a=hello\n"}
	for i := range 1000 {
		files = append(files, fmt.Sprintf("many/%04d=x", i))
	}
	root := tree(b, files...)
	conn := open(b, "fs", builtin.Options{Root: root, Decide: holds(b, "fs.read{in="+root.Dir+"}")})
	for _, c := range [][3]string{{"read", "read", `{"path":"a"}`}, {"list", "list", `{"path":"many"}`}, {"search", "search", `{"path":"many","text":"hello"}`}} {
		b.Run(c[0], func(b *testing.B) {
			for b.Loop() {
				call(b, conn, c[1], c[2])
			}
		})
	}
}
