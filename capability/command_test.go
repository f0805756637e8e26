package capability_test

import (
	"errors"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/capability"
	"capgate/capability/pattern"
)

// argv splits a line into words; ␣ is a space inside one, ⏎ the end of a line,
// ∅ is an empty one.
func argv(line string) []string {
	words := strings.Fields(line)
	for i, w := range words {
		words[i] = strings.NewReplacer("␣", " ", "⏎", "\n", "∅", "").Replace(w)
	}
	return words
}

func isMalformed(err error) bool {
	var m *capability.Malformed
	return errors.As(err, &m)
}

func TestParseArgv(t *testing.T) {
	joined, err := capability.ParseArgv([]string{"git", "commit", "", "-m", "a\tb\r\nc é"})
	if err != nil {
		t.Fatal(err)
	}
	if want := "git\x1fcommit\x1f\x1f-m\x1fa\tb\r\nc é"; joined != want {
		t.Errorf("joined = %q, want %q", joined, want)
	}
}

func TestParseArgvMalformed(t *testing.T) {
	many := slices.Repeat([]string{"x"}, 4097)
	cases := map[string][]string{
		"none":                nil,
		"empty program":       {"", "x"},
		"blank program":       {"  ", "x"},
		"NUL in the program":  {"git\x00sh", "x"},
		"line in the program": {"git\nsh"},
		"tab in the program":  {"git\tx"},
		"NUL":                 {"git", "a\x00b"},
		"escape":              {"git", "\x1b[2J"},
		"separator of words":  {"git", "a\x1fb"},
		"delete":              {"git", "a\x7f"},
		"C1":                  {"git", "a\u0085b"},
		"not UTF-8":           {"git", "a\xffb"},
		"too many":            many,
		"too long":            {"git", strings.Repeat("x", 128<<10)},
		"too long together":   slices.Repeat([]string{strings.Repeat("x", 1023)}, 129),
	}
	for name, words := range cases {
		t.Run(name, func(t *testing.T) {
			if joined, err := capability.ParseArgv(words); !isMalformed(err) || joined != "" {
				t.Errorf("got %.40q, %v, want malformed", joined, err)
			}
		})
	}
	if _, err := capability.ParseArgv(many[1:]); err != nil {
		t.Errorf("4096 words: %v", err)
	}
	if _, err := capability.ParseArgv(slices.Repeat([]string{strings.Repeat("x", 1023)}, 128)); err != nil {
		t.Errorf("128 KiB: %v", err)
	}
}

func TestPlainWords(t *testing.T) {
	cases := map[string][]string{
		"git status --short":                 {"git", "status", "--short"},
		"  git   log  ":                      {"git", "log"},
		"rg -n a_b ./src/x.go:1 a=b @u +x,y": {"rg", "-n", "a_b", "./src/x.go:1", "a=b", "@u", "+x,y"},
		"git log --format=%h":                {"git", "log", "--format=%h"},
		"a.b=c":                              {"a.b=c"}, // no name of a variable
	}
	for line, want := range cases {
		got, ok, err := capability.PlainWords(line)
		if err != nil || !ok {
			t.Errorf("%q: ok = %v, err = %v", line, ok, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", line, diff)
		}
	}
}

func TestPlainWordsNeedShell(t *testing.T) {
	lines := []string{
		"git log | sh", "git status; id", "git status && id", "git status & id", "git log > x", "git log < x",
		"git log $(id)", "git log `id`", "git log $IFS", "git log ${IFS}", "git log # x", "git log !x", "!!",
		`"g"it log`, "'git' log", `git\ log`, `g\it log`, "{git,status}", "git a{b,c}", "rg x *", "rg x ?", "rg x [a]",
		"rg x ~/a", "~/git", "(git log)", "GIT_PAGER=id git log", "PATH+=:/tmp git log", "x=1", "_=1 git", "X= git",
		"=git log", "git =x", "%1", "git %x", "git log a^b", "git лог", "git log \u00a0x", "git log \u2028x",
	}
	for _, line := range lines {
		if got, ok, err := capability.PlainWords(line); ok || err != nil || got != nil {
			t.Errorf("%q: %q, ok = %v, err = %v, want not plain", line, got, ok, err)
		}
	}
}

func TestPlainWordsMalformed(t *testing.T) {
	lines := []string{
		"", "   ", "git status\nid", "git status\rid", "git status\tx", "git\x00sh", "git \x1f", "git\u0085id",
		"git \xff", "git log | sh\n", "git " + strings.Repeat("x", 128<<10),
	}
	for _, line := range lines {
		if got, ok, err := capability.PlainWords(line); !isMalformed(err) || ok || got != nil {
			t.Errorf("%.40q: %q, ok = %v, err = %v, want malformed", line, got, ok, err)
		}
	}
}

// TestPlainWordsAsShell holds plainWords against what a shell makes of the line.
func TestPlainWordsAsShell(t *testing.T) {
	requireProgram(t, "sh")
	const plain = "abzAZ09_./:=@%+,-   "
	random := rand.New(rand.NewPCG(1, 2))
	var script strings.Builder
	var want [][]string
	for range 2000 {
		var line strings.Builder
		for range random.IntN(24) {
			line.WriteByte(plain[random.IntN(len(plain))])
		}
		words, ok, err := capability.PlainWords(line.String())
		if !ok || err != nil {
			continue
		}
		want = append(want, words)
		script.WriteString(`printf '%s\037' ` + line.String() + "; echo\n")
	}
	cmd := exec.Command("sh", "-s")
	cmd.Stdin, cmd.Dir = strings.NewReader(script.String()), t.TempDir()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if len(want) < 1000 {
		t.Fatalf("only %d lines are plain", len(want))
	}
	for i, line := range strings.SplitN(strings.TrimSuffix(string(out), "\n"), "\n", len(want)) {
		if got := strings.Split(strings.TrimSuffix(line, "\x1f"), "\x1f"); !slices.Equal(got, want[i]) {
			t.Errorf("shell: %q, plainWords: %q", got, want[i])
		}
	}
}

func FuzzPlainWords(f *testing.F) {
	for _, line := range []string{"git status --short", "A=b c", "=x", "%1", "a  b", "git\nx", "x/y:z @%+,-"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words, ok, err := capability.PlainWords(line)
		if !ok {
			if words != nil || err != nil && !isMalformed(err) {
				t.Fatalf("%q, %v", words, err)
			}
			return
		}
		again, ok, err := capability.PlainWords(strings.Join(words, " "))
		if !ok || err != nil || !slices.Equal(words, again) {
			t.Fatalf("%q reads as %q, its words as %q", line, words, again)
		}
		joined, err := capability.ParseArgv(words)
		if err == nil && !slices.Equal(strings.Split(joined, "\x1f"), words) {
			t.Fatalf("%q joins to %q", words, joined)
		}
	})
}

func TestParseCmd(t *testing.T) {
	for _, good := range []string{
		"git", "g++", "python3.12", "/usr/bin/git", "docker-compose", "7z", "été", "x@1", "a,b", ".hidden", strings.Repeat("x", 200),
	} {
		if got, err := capability.ParseCmd(good); err != nil || got != good {
			t.Errorf("%q: %q, %v", good, got, err)
		}
	}
	for _, bad := range []string{
		"", " ", "git status", "/opt/a b", "[", "git ", "git\tx", "git\x00", "git\u00a0", "g*t", "g?t", "[g]it", "{git,sh}", `g\it`, "\"git\"", "'git'",
		"./git", "../bin/git", "bin/git", "/usr/bin/../bin/git", "/usr//bin/git", "/usr/bin/", "/", ".", "..", "/..", "-git", "$SHELL",
		"~/git", "`id`", "a;b", "a|b", "a&b", "a>b", "a=b", "!x", "git\xff", "git\u200b", strings.Repeat("x", 201),
	} {
		if got, err := capability.ParseCmd(bad); err == nil || got != "" {
			t.Errorf("%q: %q, %v, want an error", bad, got, err)
		}
	}
}

func TestParseArgvPattern(t *testing.T) {
	cases := []struct {
		pattern  string
		yes, not []string // lines for argv
	}{
		{"git status", []string{"git status"}, []string{"git", "git status --short", "git statu", "sh -c git␣status", "git␣status"}},
		{"git status *", []string{"git status --short", "git status ∅", "git status a␣b"}, []string{"git status", "git status a b"}},
		{"git log **", []string{"git log", "git log -p", "git log -p -- a␣b", "git log ∅"}, []string{"git", "git logs", "git diff", "git log2 x"}},
		{"make", []string{"make"}, []string{"make x", "make ∅", "/usr/bin/make"}},
		{"npm run {test,lint} **", []string{"npm run test", "npm run lint -- x"}, []string{"npm run", "npm run build", "npm run tests"}},
		{"{git,hg} status", []string{"git status", "hg status"}, []string{"svn status", "git,hg status"}},
		{"go test ./...", []string{"go test ./..."}, []string{"go test ./x", "go test ./... -exec"}},
		{"go test ./pkg-?/* -run=[a-c]*", []string{"go test ./pkg-1/x/y -run=a"}, []string{"go test ./pkg-1/x", "go test ./pkg-/x -run=a", "go test ./pkg-1/x -run=d"}},
		{`git commit -m fix\ it`, []string{"git commit -m fix␣it"}, []string{"git commit -m fix it"}},
		{`git commit -m \*`, []string{"git commit -m *"}, []string{"git commit -m x"}},
		{`rg \\ x`, []string{`rg \ x`}, []string{`rg \␣x`}},
		{"rg -g !x {}", []string{"rg -g !x ∅"}, []string{"rg -g !x", "rg -g y ∅"}},
		{"  a   b  ", []string{"a b"}, []string{"a ∅ b"}},
		{"/usr/bin/git status", []string{"/usr/bin/git status"}, []string{"git status"}},
	}
	for _, c := range cases {
		p, err := capability.ParseArgvPattern(c.pattern)
		if err != nil {
			t.Errorf("%q: %v", c.pattern, err)
			continue
		}
		for _, line := range append(c.yes, c.not...) {
			joined, err := capability.ParseArgv(argv(line))
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			if want := slices.Contains(c.yes, line); p.Match(joined) != want {
				t.Errorf("%q matches %q: %v, want %v", c.pattern, line, !want, want)
			}
		}
	}
}

func TestParseArgvPatternRefuses(t *testing.T) {
	for _, bad := range []string{
		"", " ", "*", "**", "* x", "?", "git* x", "/usr/bin/* x", "[g]it", `\*`, "{git,*}", "../x", "./gradlew test", "bin/x",
		"/usr/bin/../x", "{./x,git}", "git ** x", "git a**", "git **a", "git {**,x}", "git ***", "git [**]", "git ** **",
		"git {a", "git {a b}", "git a} {b", "git [a", `git \`, "git [!a]", "git a\x1fb", "git\x00", "git a\tb", "git\n",
		"git " + strings.Repeat("x", 600), "!git",
	} {
		if p, err := capability.ParseArgvPattern(bad); err == nil {
			joined, literal := p.Literal()
			t.Errorf("%q is accepted: %q, %v", bad, joined, literal)
		}
	}
}

func FuzzParseArgvPattern(f *testing.F) {
	f.Add("git log **", "git log -p")
	f.Add(`git commit -m fix\ it`, "git commit -m fix␣it")
	f.Add("npm run {a,b} [x-z]?", "npm run a xy")
	f.Fuzz(func(t *testing.T, text, line string) {
		p, err := capability.ParseArgvPattern(text)
		joined, bad := capability.ParseArgv(argv(line))
		if err != nil || bad != nil || !p.Match(joined) {
			return
		}
		words := strings.Fields(strings.ReplaceAll(strings.ReplaceAll(text, `\\`, "x"), `\ `, "x"))
		open := words[len(words)-1] == "**"
		n := strings.Count(joined, "\x1f") + 1
		if !open && n != len(words) || open && n < len(words)-1 {
			t.Fatalf("%q matches the %d words of %q", text, n, joined)
		}
		if strings.ContainsAny(argv(line)[0], "*?[") {
			t.Fatalf("%q lets a call choose the program %q", text, argv(line)[0])
		}
	})
}

// TestArgvPatternIsAPattern makes sure that argv patterns can be compared.
func TestArgvPatternIsAPattern(t *testing.T) {
	outer, err := capability.ParseArgvPattern("git log **")
	if err != nil {
		t.Fatal(err)
	}
	inner, err := capability.ParseArgvPattern("git log -n ? -- *")
	if err != nil {
		t.Fatal(err)
	}
	words := []pattern.Universe{pattern.Any}
	if v := pattern.Covers([]pattern.Row{{outer}}, pattern.Row{inner}, words); !v.Yes {
		t.Error("git log ** does not cover git log -n ? -- *")
	}
	if v := pattern.Covers([]pattern.Row{{inner}}, pattern.Row{outer}, words); v.Yes {
		t.Error("git log -n ? -- * covers git log **")
	}
}
