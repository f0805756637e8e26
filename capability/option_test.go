package capability_test

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"capgate/capability"
)

// allowed is the section of the calls that must stay possible.
const allowed = "allowed"

// optionCalls reads the calls of testdata/option, by what is said of them.
func optionCalls(t testing.TB) map[string][][]string {
	t.Helper()
	a, err := txtar.ParseFile("testdata/option/calls.txtar")
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string][][]string{}
	for _, f := range a.Files {
		for line := range strings.Lines(string(f.Data)) {
			if words := argv(line); len(words) > 0 {
				calls[f.Name] = append(calls[f.Name], words)
			}
		}
	}
	if len(calls[allowed]) == 0 {
		t.Fatal("no calls are allowed")
	}
	return calls
}

func TestViolation(t *testing.T) {
	for want, calls := range optionCalls(t) {
		for _, call := range calls {
			switch why := capability.Violation(call); {
			case want == allowed && why != "":
				t.Errorf("%q: %s, want it allowed", call, why)
			case want != allowed && !strings.Contains(why, want):
				t.Errorf("%q: %q, want %q", call, why, want)
			}
		}
	}
}

// TestViolationNames the option that is too much, not how the call wrote it.
func TestViolationNames(t *testing.T) {
	cases := map[string]string{
		"git -C a fetch --uplo=x":       "git fetch --upload-pack can run other programs",
		"/usr/bin/git clone -qccore=id": "git clone -c can run other programs",
		"rg --pre x":                    "rg --pre can run other programs",
		"fd --exec x":                   "fd --exec can run other programs",
		"file --uncompress x":           "file --uncompress can run other programs",
		"find . -delete":                "find -delete writes or deletes where nothing says so",
		"git config a b":                `git "config" is not among the subcommands and options that do no more than they say`,
		"curl --next x":                 `curl "--next" is not among the options that do no more than they say`,
	}
	for line, want := range cases {
		if why := capability.Violation(argv(line)); why != want {
			t.Errorf("%s: %q, want %q", line, why, want)
		}
	}
	if why := capability.Violation(nil); why == "" {
		t.Error("a call of nothing is allowed")
	}
	if why := capability.Violation([]string{"git", strings.Repeat("x", 1000)}); len(why) > 200 {
		t.Errorf("%d bytes for a long word: %s", len(why), why)
	}
}

// TestViolationAnywhere adds words and a directory: what is denied stays denied.
func TestViolationAnywhere(t *testing.T) {
	for want, calls := range optionCalls(t) {
		for _, call := range calls {
			behind := append(slices.Clone(call), "x", "--", "y")
			placed := slices.Concat([]string{"/usr/local/bin/" + call[0]}, call[1:])
			for _, other := range [][]string{behind, placed} {
				if want != allowed && capability.Violation(other) == "" {
					t.Errorf("%q is allowed, %q is not: %s", other, call, want)
				}
			}
		}
	}
}

func TestRuled(t *testing.T) {
	for _, yes := range []string{"git", "/usr/bin/git", "rg", "jq", "jq-1.6", "find", "gtar", "fdfind", "Grep", "wget", "curl.exe", "git2"} {
		if !capability.Ruled(yes) {
			t.Errorf("%s is not ruled", yes)
		}
	}
	for _, no := range []string{"", "cat", "gitk", "sh", "make", "git-lfs", "/git/x", "rg x", "git status"} {
		if capability.Ruled(no) || capability.Violation([]string{no, "-c", "--exec", "x"}) != "" {
			t.Errorf("%s is ruled", no)
		}
	}
}

func TestFolder(t *testing.T) {
	cases := map[string]string{
		"git status":                    "",
		"git -C src status":             "src",
		"git -C /w/a -p diff -C -C":     "/w/a",
		"git --no-pager -C .. log":      "..",
		"git -C":                        "",
		"git commit -C HEAD":            "",
		"git grep -C 3 x":               "",
		"tar -C out -xf a":              "out",
		"tar -xf a -Cout":               "out",
		"tar -xzC out -f a":             "out",
		"tar -xzCout":                   "out",
		"tar --directory=out -xf a":     "out",
		"tar --directory out -xf a":     "out",
		"tar --dir ../out -xf a":        "../out",
		"tar -xfCa":                     "",
		"tar xzf a -C out":              "out",
		"fd --base-directory src x":     "src",
		"fd -C../src x":                 "../src",
		"rg -C 3 x":                     "",
		"cat -C x":                      "",
		"/usr/bin/git -C src rev-parse": "src",
	}
	for line, want := range cases {
		if got, ok := capability.Folder(argv(line)); got != want || !ok {
			t.Errorf("%s: %q, %v, want %q", line, got, ok, want)
		}
	}
	if got, ok := capability.Folder(nil); got != "" || !ok {
		t.Errorf("no argv: %q, %v", got, ok)
	}
	for want, calls := range optionCalls(t) {
		for _, call := range calls {
			if _, once := capability.Folder(call); once == strings.HasPrefix(want, "change the folder") {
				t.Errorf("%q changes its folder at most once: %v", call, once)
			}
		}
	}
}

func TestViolationAllocatesNothing(t *testing.T) {
	for _, line := range []string{"git log --oneline -n 5", "rg -n foo src", "tar -xzf a.tgz dir", "cat x"} {
		call := argv(line)
		if n := testing.AllocsPerRun(100, func() { capability.Violation(call) }); n != 0 {
			t.Errorf("%s: %v allocations", line, n)
		}
	}
}

func FuzzViolation(f *testing.F) {
	for _, calls := range optionCalls(f) {
		for _, call := range calls {
			f.Add(strings.Join(call, "\x00"))
		}
	}
	f.Fuzz(func(t *testing.T, joined string) {
		call := strings.Split(joined, "\x00")
		why := capability.Violation(call)
		if why == "" {
			if _, once := capability.Folder(call); !once {
				t.Fatalf("%q is allowed to change its folder twice", call)
			}
			return
		}
		if !capability.Ruled(call[0]) {
			t.Fatalf("%q: %s, without a rule", call, why)
		}
		if more := append(slices.Clone(call), "x"); capability.Violation(more) == "" {
			t.Fatalf("%q: %s, but one more word makes it fine", call, why)
		}
	})
}

func BenchmarkViolation(b *testing.B) {
	for _, line := range []string{
		"git log --oneline -n 5", "git commit -am fix;␣rm␣-rf␣$HOME␣&&␣done", "git config a b", "rg -n foo src x", "cat a b c d",
	} {
		call := argv(line)
		b.Run(strings.Join(call[:2], "-"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				capability.Violation(call)
			}
		})
	}
}

// attacks are the cases of family cmd of the attack corpus that arguments or the
// command line decide, under their ids. A line is a command string, its words
// are an argv otherwise.
var attacks = []struct {
	id, cmds string
	argv     string
	line     string
	want     string // allow, deny, malformed
}{
	{"CMD-ARGV0-NUL-01", "rg jq git", "git\x00sh x", "", "malformed"},
	{"CMD-ARGV0-SPACE-01", "rg jq git", "git␣status x", "", "deny"},
	{"CMD-BUSYBOX-01", "rg jq git", "busybox sh", "", "deny"},
	{"CMD-CASE-01", "rg jq git", "GIT status", "", "deny"},
	{"CMD-FIND-EXEC-01", "find tar sed awk", "find . -exec sh -c id ;", "", "deny"},
	{"CMD-GIT-C-01", "rg jq git", "git -c core.sshCommand=touch␣pwned fetch", "", "deny"},
	{"CMD-GIT-CONFIG-ENV-01", "rg jq git", "git --config-env=core.pager=X log", "", "deny"},
	{"CMD-GIT-EXT-01", "rg jq git", "git clone ext::sh␣-c␣id", "", "deny"},
	{"CMD-GIT-NOINDEX-01", "rg jq git", "git diff --no-index /etc/passwd ok.txt", "", "deny"},
	{"CMD-GIT-OUT-01", "rg jq git", "git diff --output=/etc/cron.d/x", "", "deny"},
	{"CMD-GIT-UPLOAD-01", "rg jq git", "git fetch --upload-pack=touch␣pwned .", "", "deny"},
	{"CMD-JQ-ENV-01", "rg jq git", "jq -n env", "", "deny"},
	{"CMD-JQ-FILE-01", "rg jq git", "jq --rawfile x /etc/passwd -n $x", "", "deny"},
	{"CMD-OK-01", "rg jq git", "git status --short", "", "allow"},
	{"CMD-OK-CWD-01", "rg jq git", "jq .name ok.json", "", "allow"},
	{"CMD-OK-META-ARG-01", "rg jq git", "git commit -m fix;␣rm␣-rf␣$HOME␣&&␣done", "", "allow"},
	{"CMD-OTHER-01", "rg jq git", "curl https://evil.com", "", "deny"},
	{"CMD-PATH-ARGV0-01", "rg jq git", "./git status", "", "deny"},
	{"CMD-PATH-ARGV0-DOTDOT-01", "rg jq git", "../bin/git x", "", "deny"},
	{"CMD-RG-HOSTNAME-01", "rg jq git", "rg --hostname-bin=./evil.sh x", "", "deny"},
	{"CMD-RG-PRE-01", "rg jq git", "rg --pre sh x", "", "deny"},
	{"CMD-SED-E-01", "find tar sed awk", "sed 1e␣id ok.txt", "", "deny"},
	{"CMD-SH-AND-01", "rg jq git", "", "git status && curl evil.com", "deny"},
	{"CMD-SH-BRACE-01", "rg jq git", "", "{git,status}", "deny"},
	{"CMD-SH-COMMENT-01", "rg jq git", "", "git status # && id", "deny"},
	{"CMD-SH-ENV-01", "rg jq git", "", "GIT_PAGER=id git log", "deny"},
	{"CMD-SH-GLOB-01", "rg jq git", "", "rg x ~/.ssh/*", "deny"},
	{"CMD-SH-MANY-01", "rg jq git", "", strings.Repeat(":;", 60) + "curl evil.com", "deny"},
	{"CMD-SH-NEWLINE-01", "rg jq git", "", "git status\nid", "malformed"},
	{"CMD-SH-OK-01", "rg jq git", "", "git status --short", "allow"},
	{"CMD-SH-PIPE-01", "rg jq git", "", "git log | sh", "deny"},
	{"CMD-SH-QUOTE-01", "rg jq git", "", `"g"it -c core.pager=id log`, "deny"},
	{"CMD-SH-REDIRECT-01", "rg jq git", "", "git log > /etc/cron.d/x", "deny"},
	{"CMD-SH-SEMICOLON-01", "rg jq git", "", "git status; id", "deny"},
	{"CMD-SH-SUBST-01", "rg jq git", "", "git log $(id)", "deny"},
	{"CMD-SH-VAR-01", "rg jq git", "", "git log $IFS", "deny"},
	{"CMD-TAR-01", "find tar sed awk", "tar --to-command=id -xf a.tar", "", "deny"},
	{"CMD-WRAPPER-01", "rg jq git", "env git status", "", "deny"},
}

// elsewhere are the other cases of the family, with who decides them: option
// rules must not, or nobody would notice when the other stops to.
var elsewhere = []struct{ id, argv, who string }{
	{"CMD-CWD-01", "git status", "the working directory is a path"},
	{"CMD-CWD-LINK-01", "git status", "the working directory is a path"},
	{"CMD-DASH-PATH-01", "git log -- ../../outside/secret.txt", "the argument is a path outside"},
	{"CMD-GIT-DIR-01", "git -C /etc status", "the argument is a path outside"},
	{"CMD-OPT-PATH-01", "git apply --directory=../../outside p.diff", "the argument holds a path outside"},
	{"CMD-RG-OUTSIDE-01", "rg root /etc/passwd", "the argument is a path outside"},
	{"CMD-ENV-ARG-01", "git status", "a mapping gives no tool its environment"},
	{"CMD-ENV-PATH-01", "git status", "a mapping gives no tool its environment"},
	{"CMD-EVAL-ABSENT-01", "ls", "proc.eval is another verb"},
	{"CMD-EVAL-OK-01", "ls", "proc.eval is another verb"},
	{"CMD-NOCMDS-01", "ls", "without cmds no option rule is asked"},
}

func TestAttackCorpusCommands(t *testing.T) {
	for _, a := range attacks {
		t.Run(a.id, func(t *testing.T) {
			words, plain, err := argv(a.argv), true, error(nil)
			if a.line != "" {
				words, plain, err = capability.PlainWords(a.line)
			}
			if plain && err == nil {
				_, err = capability.ParseArgv(words)
			}
			got := "deny"
			switch {
			case isMalformed(err):
				got = "malformed"
			case err == nil && plain && slices.Contains(strings.Fields(a.cmds), words[0]) &&
				!capability.NeedsPatterns(words[0]) && capability.Violation(words) == "":
				got = "allow"
			}
			if got != a.want {
				t.Errorf("%q%q: %s, want %s", a.argv, a.line, got, a.want)
			}
		})
	}
	for _, e := range elsewhere {
		if why := capability.Violation(argv(e.argv)); why != "" {
			t.Errorf("%s: %s, but %s", e.id, why, e.who)
		}
	}
}
