package builtin_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/builtin"
	"capgate/capability"
)

// TestFiles: what the tools do when nothing stands against it.
func TestFiles(t *testing.T) {
	root := tree(t, "a.txt=one\ntwo\nthree\n", "docs/b.md=hello\n", "docs/deep/c.go=package c\n// hello", "in -> docs", "abs -> $ROOT/docs/b.md", "empty/", "none=")
	in := "{in=" + root.Dir + "}"
	conn := open(t, "fs", builtin.Options{Root: root, Decide: holds(t, "fs.read"+in, "fs.write"+in, "fs.delete"+in)})
	for _, s := range []step{
		{"whole", "read", `{"path":"a.txt"}`, "one\ntwo\nthree\n"},
		{"absolute", "read", `{"path":"` + root.Dir + `/a.txt"}`, "one\n"},
		{"lines", "read", `{"path":"./a.txt","offset":2,"limit":1}`, "two\n|[lines 2 to 2; there are more, go on with offset 3]"},
		{"last line", "read", `{"path":"a.txt","offset":3}`, "three\n"},
		{"after the end", "read", `{"path":"a.txt","offset":9}`, "error: the file ends with line 3"},
		{"just after the end", "read", `{"path":"a.txt","offset":4}`, "error: the file ends with line 3"},
		{"after a line without end", "read", `{"path":"docs/deep/c.go","offset":3}`, "error: the file ends with line 2"},
		{"after nothing", "read", `{"path":"none","offset":2}`, "error: the file is empty"},
		{"nothing from the first line on", "read", `{"path":"none","offset":1}`, ""},
		{"empty", "read", `{"path":"none"}`, ""},
		{"link", "read", `{"path":"in/b.md"}`, "hello"},
		{"absolute link", "read", `{"path":"abs"}`, "hello"},
		{"missing", "read", `{"path":"zzz"}`, "error: there is no such file"},
		{"directory", "read", `{"path":"docs"}`, "error: the path is a directory"},
		{"beneath a file", "read", `{"path":"a.txt/b"}`, "error: "},
		{"list", "list", `{}`, "link\tabs\ndirectory\tdocs\ndirectory\tempty\nlink\tin\nfile\tnone\t0\n"},
		{"list a file", "list", `{"path":"a.txt"}`, "error: "},
		{"by name", "search", `{"pattern":"*.md"}`, "docs/b.md"},
		{"by path", "search", `{"path":"docs","pattern":"**/c.go"}`, "docs/deep/c.go"},
		{"through a link", "search", `{"path":"in","pattern":"deep/*"}`, "in/deep/c.go"},
		{"by text", "search", `{"text":"hello"}`, "docs/b.md:1: hello\ndocs/deep/c.go:2: // hello\n"},
		{"by both", "search", `{"text":"hello","pattern":"*.go"}`, "docs/deep/c.go:2"},
		{"in vain", "search", `{"text":"nowhere"}`, "[nothing was found]"},
		{"no glob", "search", `{"pattern":"[a"}`, "error: "},
		{"info", "info", `{"path":"a.txt"}`, "file, 14 bytes, -rw-r--r--"},
		{"info of the root", "info", `{"path":"."}`, "directory"},
		{"create", "write", `{"path":"new","content":"x"}`, "wrote 1 bytes"},
		{"create again", "write", `{"path":"new","content":"y"}`, "error: there is a file"},
		{"append", "write", `{"path":"new","content":"z","mode":"append"}`, "wrote 1"},
		{"appended", "read", `{"path":"new"}`, "xz"},
		{"overwrite", "write", `{"path":"new","content":"longer","mode":"overwrite"}`, "wrote 6"},
		{"overwritten", "read", `{"path":"new"}`, "longer"},
		{"overwrite through a link", "write", `{"path":"abs","content":"by link","mode":"overwrite"}`, "wrote 7"},
		{"overwritten by link", "read", `{"path":"docs/b.md"}`, "by link"},
		{"overwrite a directory", "write", `{"path":"docs","content":"x","mode":"overwrite"}`, "error: "},
		{"no parents", "write", `{"path":"p/q/r","content":"x"}`, "error: there is no such directory: it is made with parents: true"},
		{"parents", "write", `{"path":"p/q/r","content":"x","parents":true}`, "wrote 1"},
		{"parents of what is there", "write", `{"path":"in/s/t","content":"x","parents":true}`, "wrote 1"},
		{"made by link", "read", `{"path":"docs/s/t"}`, "x"},
		{"not empty", "delete", `{"path":"p"}`, "error: the directory is not empty"},
		{"recursive", "delete", `{"path":"p","recursive":true}`, "deleted"},
		{"empty directory", "delete", `{"path":"empty"}`, "deleted"},
		{"the link itself", "delete", `{"path":"in"}`, "deleted"},
		{"still there", "read", `{"path":"docs/b.md"}`, "by link"},
		{"gone", "delete", `{"path":"zzz","recursive":true}`, "error: there is no such"},
		{"the root", "delete", `{"path":".","recursive":true}`, "error: "},
		{"the root by name", "delete", `{"path":"` + root.Dir + `/","recursive":true}`, "error: "},
	} {
		s.run(t, conn)
	}
	if left, err := filepath.Glob(root.Dir + "/.capgate-*"); err != nil || left != nil {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// TestBuiltinOfBrackets: a name with wildcards in it is that name and no other.
func TestBuiltinOfBrackets(t *testing.T) {
	root := tree(t, "app/[id]/p=literal", "app/i/p=another", "app/[id]/q=more", "a*b=star", "ab=none")
	conn := open(t, "fs", builtin.Options{Root: root, Decide: holds(t, `fs.read{in=`+root.Dir+`,paths=["app/\\[id\\]/p","a\\*b"]}`)})
	for _, s := range []step{
		{"granted", "read", `{"path":"app/[id]/p"}`, "literal"},
		{"beside it", "read", `{"path":"app/[id]/q"}`, "denied scope_violation"},
		{"as a glob", "read", `{"path":"app/i/p"}`, "denied scope_violation"},
		{"a star", "read", `{"path":"a*b"}`, "star"},
		{"what a star is", "read", `{"path":"ab"}`, "denied scope_violation"},
	} {
		s.run(t, conn)
	}
}

// TestMode: what is overwritten keeps its permission bits.
func TestMode(t *testing.T) {
	root := tree(t, "x=1")
	if err := os.Chmod(root.Dir+"/x", 0o751); err != nil {
		t.Fatal(err)
	}
	conn := open(t, "fs", builtin.Options{Root: root, Decide: holds(t, "fs.write{in="+root.Dir+"}")})
	step{"overwrite", "write", `{"path":"x","content":"2","mode":"overwrite"}`, "wrote"}.run(t, conn)
	if info, err := os.Stat(root.Dir + "/x"); err != nil || info.Mode() != 0o751 {
		t.Errorf("mode %v %v", info.Mode(), err)
	}
}

// TestBinary: pictures are shown, other bytes come as base64, and neither in part.
func TestBinary(t *testing.T) {
	picture := "\x89PNG\r\n\x1a\n\x00\x01"
	root := tree(t, "p.png="+picture, "b=\x00\xff", "l=caf\xe9", "big=\x00"+strings.Repeat("x", 200))
	conn := open(t, "fs", builtin.Options{Root: root, Decide: holds(t, "fs.read{in="+root.Dir+"}"), Limits: builtin.Limits{Read: 100}})
	if b := call(t, conn, "read", `{"path":"p.png"}`).Content[0]; b.Type != "image" || b.MimeType != "image/png" || b.Data != base64.StdEncoding.EncodeToString([]byte(picture)) {
		t.Errorf("%+v", b)
	}
	if b := call(t, conn, "read", `{"path":"b"}`).Content[0]; b.Type != "resource" || b.Resource.Blob != "AP8=" || b.Resource.URI != "file://"+root.Dir+"/b" {
		t.Errorf("%+v", b)
	}
	if b := call(t, conn, "read", `{"path":"l"}`).Content[0]; b.Type != "resource" {
		t.Errorf("%+v", b)
	}
	step{"lines of bytes", "read", `{"path":"b","limit":1}`, "error: the file is not text"}.run(t, conn)
	step{"too large", "read", `{"path":"big"}`, "error: the file is not text and holds more than 100"}.run(t, conn)
}

// TestPages: a text of any shape can be read to its end, page by page.
func TestPages(t *testing.T) {
	text := strings.Repeat("0123456789\n", 25) + strings.Repeat("é", 40) + "\nend"
	root := tree(t, "t="+text)
	conn := open(t, "fs", builtin.Options{Root: root, Decide: holds(t, "fs.read{in="+root.Dir+"}"), Limits: builtin.Limits{Read: 49}})
	var got strings.Builder
	for offset, pages := 1, 0; ; pages++ {
		o := call(t, conn, "read", fmt.Sprintf(`{"path":"t","offset":%d}`, offset))
		if o.IsError || pages > 20 || len(o.Content[0].Text) > 49 {
			t.Fatal(o.text())
		}
		got.WriteString(o.Content[0].Text)
		if len(o.Content) == 1 {
			break
		}
		if strings.Contains(o.Content[1].Text, "was cut") {
			got.WriteString(strings.Repeat("é", 16) + "\n")
		}
		note := o.Content[1].Text
		if _, err := fmt.Sscanf(note[strings.LastIndexByte(note, ' ')+1:], "%d]", &offset); err != nil {
			t.Fatal(note)
		}
	}
	if diff := cmp.Diff(text, got.String()); diff != "" {
		t.Error(diff)
	}
}

// TestShown: what an agent may not read is in no list and no search, and what is
// listed can be read.
func TestShown(t *testing.T) {
	root := tree(t, "d/a.md=x", "d/b.key=x", "d/a\nb.md=x", "d/ok -> a.md", "d/bad -> b.key", "d/out -> /etc/passwd", "d/loop -> loop")
	read := func(r string) string { return "fs.read{in=" + root.Dir + ",paths=[" + r + "]}" }
	conn := open(t, "fs", builtin.Options{Root: root, Decide: holds(t, read("{d,d/a.md,d/ok,d/bad,d/out,d/loop,d/a?b.md}"))})
	if got, want := call(t, conn, "list", `{"path":"d"}`).text(), "file\ta.md\t1\nlink\tok\n"; got != want {
		t.Errorf("list: %q, want %q", got, want)
	}
	step{"search without the tree", "search", `{"path":"d"}`, "denied scope_violation"}.run(t, conn)
	allowTree := holds(t, read("d"))
	conn = open(t, "fs", builtin.Options{Root: root, Decide: func(r *capability.Requirement) error {
		if strings.HasSuffix(r.Object(), ".key") {
			return holds(t, read("nothing"))(r)
		}
		return allowTree(r)
	}})
	if got, want := call(t, conn, "search", `{"path":"d","text":"x"}`).text(), "d/a.md:1: x\n"; got != want {
		t.Errorf("search: %q, want %q", got, want)
	}
}
