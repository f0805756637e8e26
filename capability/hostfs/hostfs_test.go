package hostfs_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"capgate/capability"
	"capgate/capability/hostfs"
)

var _ capability.FS = hostfs.FS{}

// dir makes a directory with links, and returns where it really is.
func dir(t testing.TB, links map[string]string, dirs ...string) string {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		if err := os.MkdirAll(base+"/"+d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range links {
		if err := os.Symlink(target, base+"/"+link); err != nil {
			t.Fatal(err)
		}
	}
	return base
}

// TestReal is what R-SEC-06 asks for.
func TestReal(t *testing.T) {
	base := dir(t, map[string]string{
		"in":       "a/b",
		"up":       "a/b/..",
		"out":      "/",
		"dangling": "nowhere/x",
		"climbing": "nowhere/../a",
		"loop":     "loop",
		"a/back":   "../a",
		"slash":    "a/",
		"tofile":   "a/f",
	}, "a/b")
	if err := os.WriteFile(base+"/a/f", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		path, want string
		err        string
	}{
		{"BASE", "BASE", ""},
		{"BASE/", "BASE", ""},
		{"BASE//a/./b/", "BASE/a/b", ""},
		{"BASE/a/b/..", "BASE/a", ""},
		{"BASE/in", "BASE/a/b", ""},
		{"BASE/in/..", "BASE/a", ""}, // not BASE: .. is the parent of where the link leads
		{"BASE/in/../f", "BASE/a/f", ""},
		{"BASE/up/f", "BASE/a/f", ""},
		{"BASE/a/back/back/f", "BASE/a/f", ""},
		{"BASE/slash/f", "BASE/a/f", ""},
		{"BASE/tofile", "BASE/a/f", ""},
		{"BASE/out", "/", ""},
		{"BASE/out/nowhere-at-all", "/nowhere-at-all", ""},
		{"BASE/new", "BASE/new", ""},
		{"BASE/new/deep/./er/", "BASE/new/deep/er", ""},
		{"BASE/dangling", "BASE/nowhere/x", ""},
		{"BASE/a/f/x", "BASE/a/f/x", ""},
		{"BASE/a/f/", "BASE/a/f", ""},
		{"/", "/", ""},
		{"/..", "/", ""},
		{"/../..BASE/a", "BASE/a", ""},
		{"BASE/new/../a", "", "beneath a directory that does not exist"},
		{"BASE/a/f/../b", "", "beneath a directory that does not exist"},
		{"BASE/climbing", "", "beneath a directory that does not exist"},
		{"BASE/loop", "", "more than 40 symbolic links"},
		{"BASE/loop/x", "", "more than 40 symbolic links"},
		{"BASE/" + strings.Repeat("a", 300), "", "file name too long"},
		{"BASE/a\x00b", "", "invalid argument"},
		{"BASE/" + strings.Repeat("./", 5000), "", "more than 4096 components"},
		{"/.vol/1/2", "", "numbered elsewhere"},
		{"a", "", "not absolute"},
		{"", "", "not absolute"},
	} {
		got, err := hostfs.FS{}.Real(strings.ReplaceAll(tc.path, "BASE", base))
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) || got != "" {
				t.Errorf("%.80s: got %q, %v, want an error with %q", tc.path, got, err, tc.err)
			}
		} else if want := strings.ReplaceAll(tc.want, "BASE", base); err != nil || got != want {
			t.Errorf("%.80s: got %q, %v, want %q", tc.path, got, err, want)
		}
	}
}

// Forty links are followed and one more is not, as in Linux.
func TestRealCountsLinks(t *testing.T) {
	links := map[string]string{"0": "."}
	for i := range 40 {
		links[strconv.Itoa(i+1)] = strconv.Itoa(i)
	}
	base := dir(t, links)
	if got, err := (hostfs.FS{}).Real(base + "/39"); err != nil || got != base {
		t.Errorf("40 links: %q, %v", got, err)
	}
	if got, err := (hostfs.FS{}).Real(base + "/40"); err == nil {
		t.Errorf("41 links: %q", got)
	}
	if _, err := os.Stat(base + "/39"); err != nil {
		t.Errorf("the system follows fewer: %v", err)
	}
}

// Where a path exists, the walk ends where the kernel's does.
func TestRealIsTheKernels(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	segs := []string{"a", "b", "c", "..", "..", ".", ""}
	random := func(n int) string {
		var b strings.Builder
		for range 1 + r.IntN(n) {
			b.WriteString(segs[r.IntN(len(segs))] + "/")
		}
		return strings.TrimLeft(strings.TrimSuffix(b.String(), "/"), "/")
	}
	found := 0
	for range 40 {
		base := dir(t, nil, "a/b/c", "b/a", "c/c/a")
		// The links are made through a root that they cannot lead out of.
		within, err := os.OpenRoot(base)
		if err != nil {
			t.Fatal(err)
		}
		for range 12 {
			if target := random(4); target != "" {
				_ = within.Symlink(target, random(3)) // what exists or has no parent stays as it is
			}
		}
		if err := within.Close(); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			p := base + "/" + random(6)
			want, err := os.Stat(p)
			if err != nil {
				continue
			}
			found++
			at, err := hostfs.FS{}.Real(p)
			if err != nil {
				t.Errorf("%s exists: %v", p, err)
				continue
			}
			got, err := os.Lstat(at)
			if err != nil || !os.SameFile(got, want) {
				t.Errorf("%s is not where the system finds it: %s", p, at)
			}
			if clean, err := filepath.EvalSymlinks(at); err != nil || clean != at {
				t.Errorf("%s leads to %s, which still holds a link to %s", p, at, clean)
			}
		}
	}
	if found < 500 {
		t.Errorf("only %d paths existed: the test tries nothing", found)
	}
}

func BenchmarkReal(b *testing.B) {
	base := dir(b, map[string]string{"in": "a/b"}, "a/b")
	for _, p := range []string{"a/b", "in", "new/file"} {
		b.Run(p, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := (hostfs.FS{}).Real(base + "/" + p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestLinks: where a link would lead is known before it is made, also when its folder is
// named by another link.
func TestLinks(t *testing.T) {
	base := dir(t, map[string]string{"w/a/b/up": "../.."}, "w/a/b", "home")
	spec, err := capability.ParseSpec("proc.exec{in=" + base + "/w,cmds=[ln]}")
	if err != nil {
		t.Fatal(err)
	}
	set, _ := capability.Compile([]capability.Spec{spec}, capability.Options{})
	v := capability.View{Cwd: base + "/w/a/b", FS: hostfs.FS{}}
	at, err := v.Path(".")
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]bool{
		"ln -s ../home ../../l": false,
		"ln -s ../home up/l":    false,
		"ln -s ../home up":      false,
		"ln -s ../home l":       true,
		"ln -s ../../a/b up/l":  false,
		"ln -s a/b up/l":        true,
	} {
		r, err := capability.Exec(v, at, strings.Fields(line))
		if err != nil {
			t.Fatal(err)
		}
		if got := set.Decide(r).Allowed(); got != want {
			t.Errorf("%s: got %v, want %v", line, got, want)
		}
	}
}

// TestEffort: paths that share an effort are looked up as long as there is some, and what lies
// deep costs more than as many steps elsewhere.
func TestEffort(t *testing.T) {
	const depth = 100
	folders := strings.Repeat("folder/", depth)
	base := dir(t, nil, folders)
	spent := func(path string) int {
		const all = 1 << 20
		effort := all
		if _, err := (hostfs.FS{}).Within(path, &effort); err != nil {
			t.Error(err)
		}
		return all - effort
	}
	if top, deep := spent(base+"/"+strings.Repeat("folder/../", depth)), spent(base+"/"+folders); deep < 3*top {
		t.Errorf("%d steps cost %d, and as many down %d", depth, top, deep)
	}
	effort, found := 100*spent(base), 0
	for range 200 {
		if _, err := (hostfs.FS{}).Within(base, &effort); err == nil {
			found++
		}
	}
	if found != 100 || effort >= 0 {
		t.Errorf("%d paths were found, and %d is left", found, effort)
	}
	if _, err := (hostfs.FS{}).Real(base + "/" + folders); err != nil {
		t.Error(err)
	}
}

// TestEffortOfNames: what a name is compared with counts as well.
func TestEffortOfNames(t *testing.T) {
	base := dir(t, nil, "a", "b", "c", "d")
	plain, accented := 1<<10, 1<<10
	if _, err := (hostfs.FS{}).Within(base+"/e", &plain); err != nil {
		t.Error(err)
	}
	if _, err := (hostfs.FS{}).Within(base+"/\u00e9", &accented); err != nil || accented >= plain {
		t.Errorf("%d is left, and %d of a plain name, %v", accented, plain, err)
	}
}

// TestEffortOfLongNames: a name with accents takes as long to compare as it is long.
func TestEffortOfLongNames(t *testing.T) {
	spent := func(names ...string) int {
		effort := 1 << 20
		if _, err := (hostfs.FS{}).Within(dir(t, nil, names...)+"/\u00e9", &effort); err != nil {
			t.Error(err)
		}
		return 1<<20 - effort
	}
	long := strings.Repeat("e\u0301", 60)
	if short, more := spent("a1", "a2", "a3"), spent(long+"1", long+"2", long+"3"); more < short+3*60 {
		t.Errorf("short names cost %d, long ones %d", short, more)
	}
	names := make([]string, 20)
	for i := range names {
		names[i] = long + strconv.Itoa(i)
	}
	effort := 1 << 10
	if _, err := (hostfs.FS{}).Within(dir(t, nil, names...)+"/\u00e9", &effort); err == nil || effort >= 0 {
		t.Errorf("%d is left, %v", effort, err)
	}
}

// TestList: what lies in a directory, and that something else is none.
func TestList(t *testing.T) {
	base := dir(t, map[string]string{"some/link": "sub", "link": "some", "round": "round"}, "some/sub", "empty")
	if err := os.WriteFile(base+"/some/file", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		"some": "file=---------- link=L--------- sub=d---------", "link": "file=---------- link=L--------- sub=d---------", "empty": "", "none": "", "none/more": "", "some/file/more": "", "some/file": "",
	} {
		entries, err := hostfs.FS{}.List(base + "/" + dir)
		var got []string
		for _, e := range entries {
			got = append(got, e.Name()+"="+e.Type().String())
		}
		if slices.Sort(got); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, %v", dir, got, err)
		}
	}
	for path, is := range map[string]bool{"some/file/..": true, "none/..": true, "some/..": false, "round/..": false} {
		if _, err := (hostfs.FS{}).Real(base + "/" + path); errors.Is(err, capability.ErrNoDirectory) != is {
			t.Errorf("%s: %v", path, err)
		}
	}
	if entries, err := (hostfs.FS{}).List(base + "/round"); err == nil {
		t.Errorf("a link that leads nowhere else: %v, %v", entries, err)
	}
	if entries, err := (hostfs.FS{}).List(base + "/" + strings.Repeat("long/", 1000)); err == nil {
		t.Errorf("a path that is too long: %v", entries)
	}
}

// TestEffortOfList: each name costs something, and once nothing is left, none is told.
func TestEffortOfList(t *testing.T) {
	var names []string
	for i := range 100 {
		names = append(names, strconv.Itoa(i))
	}
	base := dir(t, nil, names...)
	for effort, want := range map[int]int{1 << 18: 100, 500 + len(base)/8: 100, 300: 0, 31: 0} {
		left := effort
		entries, err := hostfs.FS{}.ListWithin(base, &left)
		if len(entries) != want || (err == nil) != (want > 0) || left >= 0 && effort-left < 4*want {
			t.Errorf("with %d: %d entries, %v, %d left", effort, len(entries), err, left)
		}
		if _, err := (hostfs.FS{}).ListWithin(base, &left); effort < 1000 && err == nil {
			t.Errorf("with what is left of %d: looked again", effort)
		}
	}
}
