package capability_test

import (
	"errors"
	"html"
	"math/rand/v2"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/capability"
)

// laxReaders are what upstreams do to a path before they open it.
func laxReaders() []func(p string) string {
	readers := []func(string) string{
		func(p string) string { return p },
		path.Clean,
		strings.TrimSpace,
		func(p string) string { return strings.Trim(p, `"'`) },
		func(p string) string { return strings.TrimRight(p, ". ") },
		func(p string) string { return strings.TrimPrefix(p, "file://") },
		func(p string) string { return strings.TrimPrefix(p, "@") },
		html.UnescapeString,
		unescapePath,
		func(p string) string { return strings.Map(halfwidth, p) },
		func(p string) string { return os.Expand(p, func(string) string { return "/" }) },
		func(p string) string { return os.Expand(p, func(string) string { return "" }) },
		func(p string) string {
			if u, err := url.Parse(p); err == nil && u.Scheme == "file" {
				return u.Path
			}
			return p
		},
	}
	for _, pairs := range [][]string{
		{`\`, "/"},
		{`\`, ""},
		{"%2e", ".", "%2E", "."},
		{"∕", "/", "⁄", "/"},
		{"‥", "..", "…", "..."},
		{"\u200b", ""},
		{"file://", ""},
	} {
		readers = append(readers, strings.NewReplacer(pairs...).Replace)
	}
	for _, rule := range [][2]string{
		{`^~[a-z]*`, "/"},
		{`\{[^{}]*,([^{},]*)\}`, "$1"},
		{`\{([^{},]*),[^{}]*\}`, "$1"},
		{`([^./ ])[. ]+(/|$)`, "$1$2"},
		{` +(/|$)`, "$1"},
		{`(:\d+){1,2}$`, ""},
		{`#L\d+$`, ""},
		{`^[a-z]+:`, ""},
	} {
		from := regexp.MustCompile(rule[0])
		readers = append(readers, func(p string) string { return from.ReplaceAllString(p, rule[1]) })
	}
	return readers
}

func unescapePath(p string) string {
	if u, err := url.PathUnescape(p); err == nil {
		return u
	}
	return p
}

func halfwidth(r rune) rune {
	if r >= '！' && r <= '～' {
		return r - '！' + '!'
	}
	return r
}

// What is covered is where the system, and each lax reader, finds it: inside.
func FuzzPath(f *testing.F) {
	tree := newFileTree(f)
	for _, seed := range []string{
		"ok.txt", "../outside/secret.txt", "dirlink_out/../secret_parent.txt", "src/../ok.txt", "link_abs_in/main.go", "ROOT/ok.txt", "..%2foutside", "．．/outside",
		`..\outside`, "{..,src}/ok.txt", "~/x", "file://ROOT/ok.txt", "[id]", "src/*", " /etc", "a%2fb/%2e%2e/..", "link_root/etc", "loop_a/x", "$HOME", "a\x00b",
	} {
		f.Add(seed)
	}
	table, readers := tree.table(f, ".", "src/**"), laxReaders()
	root, err := os.OpenRoot(tree.root)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		arg = strings.ReplaceAll(arg, "ROOT", tree.root)
		wild := strings.ContainsAny(arg, "*?[{")
		for role, read := range map[string]func(string) (capability.Path, error){"path": tree.view().Path, "tree": tree.view().Tree, "glob": tree.view().Glob} {
			p, err := read(arg)
			if bad := (*capability.Malformed)(nil); err != nil && !errors.As(err, &bad) {
				t.Fatalf("%v is no malformed value", err)
			}
			if _, ok := table.Covers(p); !ok {
				continue
			}
			if role == "glob" && wild {
				continue // no reader here expands a glob
			}
			for _, lax := range readers {
				if out := tree.escapes(lax(arg)); out != "" {
					t.Errorf("%q was covered, and %q opens %s", arg, lax(arg), out)
				}
			}
			tree.checkRoot(t, root, arg)
		}
		tree.view().Argument(arg)
	})
}

// In any tree of links, what is covered opens inside.
func TestPathRandomLinks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	covered := 0
	for range 30 {
		tree := randomTree(t, r)
		table := tree.table(t, ".")
		for range 200 {
			arg := randomPath(r, 6)
			if arg == "" {
				continue
			}
			p, err := tree.view().Path(arg)
			if decidePath(table, p, err) != allow {
				continue
			}
			covered++
			for _, p := range []string{arg, path.Clean(arg)} {
				if out := tree.escapes(p); out != "" {
					t.Errorf("%q was covered, and %q opens %s", arg, p, out)
				}
			}
		}
	}
	if covered < 300 {
		t.Errorf("only %d paths were covered: the test tries nothing", covered)
	}
}

// However a path is spelled, and whatever chain of readers takes it, what is
// covered opens inside.
func TestPathRandomSpellings(t *testing.T) {
	tree := newFileTree(t)
	table, readers := tree.table(t, "."), laxReaders()
	words := []string{
		"..", "..", "/", "/", "/", ".", "a", "src", "root", "outside", "dirlink_out", "ok.txt", "%2e", "%2f", "%25", "%5c", "%7e", "．", "／", "∕", "‥",
		"\u200b", `\`, " ", "~", "{", ",", "}", `"`, "file:", "//", "$1", "*", "[", "]", tree.outside,
	}
	r := rand.New(rand.NewPCG(5, 6))
	covered, rewritten := 0, 0
	for range 5_000 {
		var b strings.Builder
		for range 1 + r.IntN(8) {
			b.WriteString(words[r.IntN(len(words))])
		}
		arg := b.String()
		p, err := tree.view().Path(arg)
		if decidePath(table, p, err) != allow {
			continue
		}
		covered++
		for range 10 {
			read := arg
			for range 1 + r.IntN(4) {
				read = readers[r.IntN(len(readers))](read)
			}
			if read != arg {
				rewritten++
			}
			if out := tree.escapes(read); out != "" {
				t.Errorf("%q was covered, and %q opens %s", arg, read, out)
			}
		}
	}
	if covered < 500 || rewritten < 500 {
		t.Errorf("only %d paths were covered and %d rewritten: the test tries nothing", covered, rewritten)
	}
}

// What a denial may quote of a path says nothing of where a link leads, or of
// whether it is one.
func TestOpaqueTellsNothing(t *testing.T) {
	tree := newFileTree(t)
	seen := map[string]bool{}
	for _, arg := range []string{"loop_a", "nowhere/../x", "dirlink_out/nowhere/../x", "/proc/self/cwd"} {
		p, err := tree.view().Path(arg)
		if err != nil {
			t.Fatal(err)
		}
		seen[p.Opaque()] = true
	}
	if diff := cmp.Diff(map[string]bool{"": true}, seen); diff != "" {
		t.Error(diff)
	}
	for _, args := range [][2]string{{"loop_a/[", "nowhere/["}, {"/proc/self/fd/0/[", "/proc/self/fd/99/["}, {"loop_a, ROOT//x", "nowhere, ROOT//x"}, {"loop_a/a~*[", "x/a~*["}} {
		var said [2]string
		for i, arg := range args {
			p, err := tree.view().Path(strings.ReplaceAll(arg, "ROOT", tree.root))
			if err != nil {
				t.Fatal(err)
			}
			said[i] = p.Opaque()
		}
		if said[0] == "" || said[0] != said[1] {
			t.Errorf("%s: %q", args, said)
		}
	}
}
