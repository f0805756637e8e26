package capability_test

import (
	"strconv"
	"strings"
	"testing"
)

func TestArgument(t *testing.T) {
	tree := newFileTree(t)
	table := tree.table(t, ".")
	expand := strings.NewReplacer("ROOT", tree.root).Replace
	for _, tc := range []struct{ word, want string }{
		// The words of the attack corpus.
		{"status", allow},
		{"--short", allow},
		{".name", allow},
		{"fix; rm -rf $HOME && done", allow},
		{"../../outside/secret.txt", deny},
		{"/etc", deny},
		{"--output=/etc/cron.d/x", deny},
		{"--directory=../../outside", deny},
		{"/etc/passwd", deny},
		{"https://github.com/a/b", allow},
		// Their relatives.
		{"https://example.com/?next=/home&x=a,/b", allow},
		{"-C/etc", deny},
		{"-I../x", deny},
		{"-xf/etc/passwd", deny},
		{"-xfdirlink_out/secret.txt", deny},
		{"-#o/etc/x", deny}, // a letter is what a program takes for one
		{"-s#odirlink_out/x", deny},
		{"-.f/etc/passwd", deny},
		{"-s-~+o/etc/x", deny},
		{"-i!/etc/passwd", deny},
		{"-ir!../x", deny},
		{"-üo/etc/x", deny},
		{"-mlöst", allow},
		{"-g!src/**/*.go", allow},
		{"-g**/*.go", allow},
		{"-e^/api", allow},
		{"-e(/api|x)", allow},
		{"-e\\/api", allow},
		{"-S\"/api\"", allow},
		{"-L10,20:src/main.go", allow},
		{"-mfix the /health endpoint", allow},
		{"--file=dirlink_out/secret.txt", deny},
		{"-I./src", allow},
		{"-n1", allow},
		{"--", allow},
		{"-", allow},
		{"", allow},
		{"-Wl,-rpath,/opt", deny},
		{"type=bind,src=/etc,dst=/x", deny},
		{"@/etc/passwd", deny},
		{"file=@/etc/passwd", deny},
		{"x=</etc/passwd", deny},
		{"src:/mnt", deny},
		{"src:~/x", deny},
		{"src:..", deny},
		{"HEAD:src/main.go", allow},
		{"git@github.com:a/b.git", allow},
		{"link_out:12", deny},
		{"ok.txt,link_out,src", deny},
		{"sub_link/../link_out", deny},
		{"dirlink_out", deny},
		{"loop_a", deny},
		{"~", deny},
		{"~/x", deny},
		{"~root/x", deny},
		{"HEAD~1", allow},
		{"@~", allow},
		{"@~1", allow},
		{"@~12^2~..@", allow},
		{"@~2..main", allow},
		{"@~1:src/main.go", allow},
		{"@~1:../../x", deny},
		{"@~1../../../x", deny},
		{"@~/x", deny},
		{"@~1/../../x", deny},
		{"@~root", deny},
		{"x=~1", deny},
		{"~1", deny},
		{"./...", allow},
		{"src/*.go", allow},
		{"[id].tsx", allow},
		{"%2e%2e/x", allow},
		{"file:///etc/passwd", deny},
		{"FILE:/etc/passwd", deny},
		{"git+file:///etc/x", deny},
		{"file://ROOT/ok.txt", allow},
		{"file:///etc%2fpasswd", deny},
		{"file://ROOT/%64irlink_out/secret.txt", deny},
		{"file://evil.exampleROOT/ok.txt", deny},
		{"file: say what it holds", allow},
		{"Makefile: build once", allow},
		{"ROOT/src/main.go", allow},
		{"ROOT/link_in", allow},
		{"a\nb", allow},
		{"a\x00b", deny},
		{strings.Repeat("word ", 1000), allow},
		{strings.Repeat("a", 300), allow},
		{"/" + strings.Repeat("a", 300), deny},
		{"~/" + strings.Repeat("a", 300), deny},
		{strings.Repeat("a", 300) + "/../../../etc", deny},
		{"../" + strings.Repeat("a", 300), deny},
		{"dirlink_out/" + strings.Repeat("./", 3000) + "secret.txt", deny},
		{distinctParts(300), deny},
		{distinctParts(200), deny},
		{distinctParts(100), allow},
		{"-" + strings.Repeat("v", 300), deny},
		{"a:b:c:" + strings.Repeat("d", 1<<20), deny},
	} {
		got := allow
		for _, p := range tree.view().Argument(expand(tc.word)) {
			if d := decidePath(table, p, nil); d != allow {
				got = d
			}
		}
		if got != tc.want {
			t.Errorf("%.60q: got %s, want %s", tc.word, got, tc.want)
		}
	}
}

// distinctParts is a list of n elements.
func distinctParts(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strconv.Itoa(i) + ",")
	}
	return b.String()
}

func BenchmarkArgument(b *testing.B) {
	tree := newFileTree(b)
	for _, word := range []string{"status", "--directory=src/sub"} {
		b.Run(word, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				tree.view().Argument(word)
			}
		})
	}
}
