package config_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"capgate/config"
	"capgate/wire"
)

// Everything that YAML offers beyond maps, lists and text is refused, with its
// place and what to write instead.
func TestYAML(t *testing.T) {
	const (
		empty = "capgate.yml:1:1: the file is empty | config.example.yml is one to start from"
		alias = ` | write out what it stands for, or quote it: "*"`
	)
	for _, tc := range []struct {
		name, in string
		want     []string
	}{
		{"no bytes", "", []string{empty}},
		{"a comment", "# nothing\n", []string{empty}},
		{"a mark", "---\n", []string{empty}},
		{"null", "~\n", []string{empty}},
		{"a list", "- agents\n", []string{"capgate.yml:1:1: capgate.yml takes a map, not a list | write " + served}},
		{"text", "agents\n", []string{"capgate.yml:1:1: capgate.yml takes a map, not text | write " + served}},

		{"byte order mark", "\uFEFFagents: ./a\n", []string{"capgate.yml:1:1: there is a byte order mark | save the file as UTF-8 without one"}},
		{"byte order mark inside", "agents: ./a\uFEFF\n", []string{"capgate.yml:1:12: there is a byte order mark | save the file as UTF-8 without one"}},
		{"UTF-16", "\xff\xfea\x00g\x00", []string{"capgate.yml:1:1: the file is not UTF-8 from here on | save it as UTF-8"}},
		{"invalid UTF-8", "agents: ./ü\xc3\n", []string{"capgate.yml:1:12: the file is not UTF-8 from here on | save it as UTF-8"}},
		{"tabs", "agents:\n\t- ./a\n\t- ./\tb\n", []string{
			"capgate.yml:2:1: there is a tab | indent with spaces",
			"capgate.yml:3:1: there is a tab | indent with spaces",
		}},
		{"a tab in a comment", "agents: ./a #\tx\n", []string{"capgate.yml:1:14: there is a tab | indent with spaces"}},
		{"NUL", "agents: ./a\x00\n", []string{"capgate.yml:1:12: there is the control character U+0000 | remove it"}},
		{"escape", "agents: ./a\x1b[2J\n", []string{"capgate.yml:1:12: there is the control character U+001B | remove it"}},
		{"lone CR", "agents: ./a\rstate: ./b\n", []string{"capgate.yml:1:12: there is the control character U+000D | remove it"}},
		{"next line", "agents: ./a\u0085state: ./b\n", []string{"capgate.yml:1:12: there is the control character U+0085 | remove it"}},
		{"line separator", "# all\u2028agents: ./a\n", []string{"capgate.yml:1:6: there is the control character U+2028 | remove it"}},
		{"right to left", "agents: ./a # \u202e./b\n", []string{"capgate.yml:1:15: there is the control character U+202E | remove it"}},
		{"directive", "%TAG ! !x\n---\nagents: ./a\n", []string{"capgate.yml:1:1: there is a YAML directive | remove the line"}},

		{"second document", "agents: ./a\n---\nagents: ./b\n", []string{"capgate.yml:2:1: a second document begins here | keep one document in the file"}},
		{"empty second document", "agents: ./a\n---\n", []string{"capgate.yml:2:1: a second document begins here | keep one document in the file"}},
		{"broken second document", "agents: ./a\n---\nb: 'x\n", []string{"capgate.yml:3: the YAML cannot be read: found unexpected end of stream | close the quote"}},
		{"anchor and alias", "agents: &a ./a\nstate: *a\n", []string{
			"capgate.yml:1:9: &a is an anchor | remove it",
			"capgate.yml:2:8: *a is an alias" + alias,
		}},
		{"alias of nothing", "agents: ./a\nstate: *a\n", []string{"capgate.yml:2:8: *a is an alias" + alias}},
		{"alias as a key", "agents: &a ./a\n*a : ./b\n", []string{
			"capgate.yml:1:9: &a is an anchor | remove it",
			"capgate.yml:2:1: a key must be text, not an alias | quote it",
		}},
		{"merge key", "<<: {agents: ./a}\n", []string{"capgate.yml:1:1: << is a merge key" + alias}},
		{"merge key further in", "sandbox: {<<: {root: ./a}}\n", []string{"capgate.yml:1:11: << is a merge key" + alias}},
		{"quoted merge key", "\"<<\": {agents: ./a}\n", []string{`capgate.yml:1:1: "<<" is no key of capgate.yml | what can be written here is ` + served}},
		{"tag", "agents: !!str ./a\n", []string{`capgate.yml:1:9: "!!str" is a tag | remove it`}},
		{"tag with an escape", "agents: !x%1b ./a\n", []string{`capgate.yml:1:9: "!x\x1b" is a tag | remove it`}},
		{"duplicate key", "agents: ./a\nstate: ./s\nagents: ./b\n", []string{`capgate.yml:3:1: "agents" stands twice | it already stands in line 1`}},
		{"duplicate key in other quotes", "agents: ./a\n\"agents\": ./b\n", []string{`capgate.yml:2:1: "agents" stands twice | it already stands in line 1`}},
		{"duplicate key further in", "sandbox: {root: a, root: b}\n", []string{`capgate.yml:1:20: "root" stands twice | it already stands in line 1`}},
		{"number as a key", "1: x\n", []string{"capgate.yml:1:1: a key must be text, not a number | quote it"}},
		{"list as a key", "? [a]\n: x\n", []string{"capgate.yml:1:3: a key must be text, not a list | quote it"}},
		{"map as a key", "{a: b}: c\n", []string{"capgate.yml:1:1: a key must be text, not a map | quote it"}},
		{"null as a key", "~: x\n", []string{"capgate.yml:1:1: a key must be text, not nothing | quote it"}},
		{"escape in quotes", `state: "./a\u202eb"` + "\n", []string{"capgate.yml:1:8: a value holds a line break or a control character | write it in one line, without escapes"}},
		{"block text", "state: |\n  ./a\n", []string{"capgate.yml:1:8: a value holds a line break or a control character | write it in one line, without escapes"}},
		{"depth", "providers: " + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "\n", []string{
			"capgate.yml:1:12: providers takes a map of providers, not a list | write each name with a colon, and what belongs to it behind",
			"capgate.yml:1:43: this is nested deeper than 32 levels",
		}},

		{"no colon", "state: ./s\nagents ./x\ntests: []\n", []string{"capgate.yml:2: the YAML cannot be read: could not find expected ':' | write key: value"}},
		{"two colons", "state: ./s\nagents: ./x: y\n", []string{"capgate.yml:2: the YAML cannot be read: mapping values are not allowed in this context | quote a value that holds a colon and a space, and put a colon after every key"}},
		{"open quote", "agents: ./a\nstate: './s\n", []string{"capgate.yml:2: the YAML cannot be read: found unexpected end of stream | close the quote"}},
		{"open bracket", "state: ./s\nagents: [./a\ntests: []\n", []string{"capgate.yml:2: the YAML cannot be read: did not find expected ',' or ']' | close the bracket, and quote values that hold one"}},
		{"open brace", "sandbox: {root: ./a\n", []string{"capgate.yml:1: the YAML cannot be read: did not find expected ',' or '}' | close the bracket, and quote values that hold one"}},
		{"stray list", "agents: ./a\n- ./b\n", []string{"capgate.yml:2: the YAML cannot be read: did not find expected key | indent the lines of one map or list alike"}},
		{"stray character", "state: ./s\nagents: @a\n", []string{"capgate.yml:2: the YAML cannot be read: found character that cannot start any token | quote the value"}},
		{"a star without quotes", "agents: *.md\n", []string{"capgate.yml:1: the YAML cannot be read: did not find expected alphabetic or numeric character" + alias}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, wrong(t, tc.in, view())); diff != "" {
				t.Errorf("Parse(%q): the errors differ (-want +got):\n%s", tc.in, diff)
			}
		})
	}
}

// What is built to be slow to read, or to flood its reader with errors, is
// refused like anything else.
func TestHostile(t *testing.T) {
	const size = 256 << 10
	for name, in := range map[string]string{
		"brackets": strings.Repeat("[", size),
		"braces":   strings.Repeat("{a: ", 9000),
		"dashes":   strings.Repeat("- ", size/2),
		"anchors":  "x:\n" + strings.Repeat("- &a b\n", size/8),
		"tabs":     strings.Repeat("\t\n", size/2),
		"keys":     strings.Repeat("a: b\n", size/5),
		"entries":  "tests:\n" + strings.Repeat("- 5\n", size/5),
		"commas":   "agents: [" + strings.Repeat("x,", size/3),
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := config.Parse(file, []byte(in), view())
			if n := len(config.Errors(err)); n == 0 || n > 101 {
				t.Errorf("there are %d errors", n)
			}
		})
	}
}

// A file that is too large is not looked at, and aliases are not followed.
// Either takes milliseconds; the allowance is for a machine that is busy.
func TestQuick(t *testing.T) {
	const allowance = 5 * time.Second
	bomb := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c <= 'z'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat("*"+string(c-1)+", ", 9), ", "))
	}
	for name, in := range map[string]string{
		"alias bomb":   bomb,
		"ten megabyte": strings.Repeat("# ten million bytes\n", 1<<19),
	} {
		start := time.Now()
		_, _, err := config.Parse(file, []byte(in), view())
		if took := time.Since(start); err == nil || took > allowance {
			t.Errorf("%s: this took %v and says %v", name, took, err)
		}
	}
}

func TestManyErrors(t *testing.T) {
	got := wrong(t, "agents: ["+strings.Repeat("5,", 250)+"]\n", view())
	if len(got) != 101 || got[100] != "capgate.yml: and 150 more errors" {
		t.Errorf("there are %d errors, the last: %s", len(got), got[len(got)-1])
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"agents: ./a\nsandbox: {root: ~/x, backend: auto}\nstate: ./s\n",
		"tests:\n- agent: scout\n  allow: [agent.discover, {covers: 'net.get{hosts=[a.b]}'}]\n  deny: [{requirement: 'fs.read{path=x}', code: scope_violation}]\n",
		"a: &a [*a]\n<<: *a\n? [x]\n: !!y z\n", "\uFEFF\t\x00", "- a # x\n# y\n\n# z\n", "a:\n  # b\n c: d\n", "state: \"\\u202e\"\n", "--- a\n--- b\n",
	} {
		f.Add([]byte(seed))
	}
	for _, name := range []string{"testdata/gateway.yml", "testdata/mistakes.yml"} {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, findings, err := config.Parse(file, data, view())
		if (c == nil) == (err == nil) {
			t.Fatalf("Parse(%q) = %v, %v", data, c, err)
		}
		if err != nil && (findings != nil || len(config.Errors(err)) == 0) {
			t.Fatalf("Parse(%q) fails with %v and findings %v", data, err, findings)
		}
		for _, e := range config.Errors(err) {
			if e.Pos.File != file || e.Text == "" || strings.ContainsFunc(e.Text+e.Hint, unicode.IsControl) {
				t.Fatalf("Parse(%q) says %+v", data, e)
			}
			if e.Pos.Line > strings.Count(string(data), "\n")+1 {
				t.Fatalf("Parse(%q) places an error in line %d", data, e.Pos.Line)
			}
		}
		if c != nil {
			whole(t, c)
		}
	})
}

// whole checks what must be so of every configuration that is accepted.
func whole(t *testing.T, c *config.Config) {
	t.Helper()
	if c.File == "" || c.State == "" || c.Guardrail.Log == "" || c.Guardrail.Fsync == "" || c.Hash == [32]byte{} {
		t.Fatalf("something is missing: %+v", c)
	}
	if l := c.Limits; min(l.Call, l.Start) <= 0 || min(l.Body, l.Answer, l.CallsPerMinute, l.UpstreamProcesses, l.Sessions) <= 0 {
		t.Fatalf("a limit does not limit: %+v", l)
	}
	if l := c.Listen; (l.Address == "") == (l.Socket == "") || (l.Cert == "") != (l.Key == "") {
		t.Fatalf("nobody can listen there: %+v", l)
	}
	for _, u := range c.Upstreams {
		wholeUpstream(t, u)
	}
	for _, test := range c.Tests {
		if _, err := wire.Parse(test.Args); (test.Tool != "") != (err == nil) {
			t.Fatalf("the arguments of %q are %q", test.Tool, test.Args)
		}
	}
}

func wholeUpstream(t *testing.T, u config.Upstream) {
	t.Helper()
	kinds := map[bool]int{len(u.Command) > 0: 1}
	kinds[u.URL != ""]++
	kinds[u.Builtin != ""]++
	if kinds[true] != 1 {
		t.Fatalf("nobody can tell what the upstream is: %+v", u)
	}
	if u.Pins == "" || u.MayAsk == nil || min(u.Call, u.Start) <= 0 || u.Answer <= 0 || u.Declared && u.Unmediated {
		t.Fatalf("the upstream is not whole: %+v", u)
	}
}
