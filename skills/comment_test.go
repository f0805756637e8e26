package skills_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"capgate/skills"
)

// TestKeysThatHoldAColon: a blank that is none to YAML may end a key to some, whose value
// names tools then.
func TestKeysThatHoldAColon(t *testing.T) {
	for _, blank := range []string{"\u00a0", "\u3000", "\ufeff"} {
		text := "---\nname: one\ndescription: a: b\nallowed-tools:" + blank + "Bash(*),x: y\n---\nGo.\n"
		if s := skills.Parse("one", []byte(text), skills.Options{}); s.Broken == "" {
			t.Errorf("%q needs %v", text, s.Needs)
		}
	}
}

// TestToolsInComments: what is a comment to YAML is a text to who goes line by line.
func TestToolsInComments(t *testing.T) {
	for _, comment := range []string{"\u00a0Bash", "x,\u00a0Bash", "\u2003Bash(rm:*)", "( ( ) Bash", "(' ) Bash 'x", "(\") Bash (\") ) x", "((a) Bash b)", "*"} {
		text := "---\nname: one\ndescription: Deploy: to prod\nallowed-tools: # " + comment + "\n---\nGo.\n"
		if s := skills.Parse("one", []byte(text), skills.Options{}); s.Broken == "" {
			t.Errorf("%q needs %v", text, s.Needs)
		}
	}
}

// TestNameOfTwoWords: it is taken out as one, so that a word may begin behind it.
func TestNameOfTwoWords(t *testing.T) {
	for body, want := range map[string]int{"a$x y@/etc/passwd": 2, "a $x y": 0} {
		if s := skills.Parse("one", []byte(top+"arguments: ['x y']\n---\n"+body), skills.Options{}); len(s.Needs) != want || s.Broken != "" {
			t.Errorf("%q: needs %v, %s", body, s.Needs, s.Broken)
		}
	}
}

// TestTooManyPlaces: what may be filled in is not looked for without end.
func TestTooManyPlaces(t *testing.T) {
	names := "arguments: [" + strings.Repeat("a, b, c, d, e, f, g, h, ", 20) + "z]\n"
	for _, body := range []string{strings.Repeat("$", 1<<17+1), strings.Repeat("$", 1<<14)} {
		begun := time.Now()
		s := skills.Parse("one", []byte(top+names+"---\n"+body), skills.Options{})
		if got := strings.Join(needs(s), " "); got != "proc.eval fs.read agent.create" || s.Broken != "" || time.Since(begun) > time.Second {
			t.Errorf("%d bytes need %q in %s, %s", len(body), got, time.Since(begun), s.Broken)
		}
	}
}

// TestKeysWrittenOtherwise: a reader that goes line by line sees what stands in the line.
func TestKeysWrittenOtherwise(t *testing.T) {
	for _, head := range []string{
		"{name: one,\ndescription: a: b\n,x: y,\nlicense: ,\"allowed-tools\":Bash,\"arguments\":\"<\"\n}",
		"{name: one, description: d, allowed-tools: ! Bash}",
		"{\"name\": \"one\",\n\"description\": \"d\"}",
		"name: one\ndescription: d\n\"allowed-tool\\x73\": !\nBash: x",
		"name: one\ndescription: d\n\"allowed-tool\\x73\": >-\n    Read\n  # Bash",
		"name: one\ndescription: d\n\"allowed-\\\n  tools\": Bash",
		"name: one\ndescription: d\n? |-\n  allowed-tools\n: Bash",
		"name: one\ndescription: d\nallowed-tools:\n  |\nlicense: Bash",
		"name: one\ndescription: d\nallowed-tools:\n  - >-\nlicense: Bash",
		"name: one\ndescription: d\nallowed-tools: |\nlicense: Bash",
		"name: one\ndescription: d\nallowed-tools: >-\n\n  Read\nlicense: Bash",
		"name: one\ndescription: d\nallowed-tools: |2\n  Read\nlicense: Bash",
		"name: one\ndescription: d\nallowed-tools: Read\u00a0Bash",
		"name: one\ndescription: d\nallowed-tools: [\"\u00a0mcp__files__write\"]",
		"name: one\ndescription: a: b\nallowed-tools:\u00a0* : AskUserQuestion",
		"name: one\ndescription: d\nallowed-tools: \"Re\\x61d\"",
		"name: one\ndescription: d\nallowed-tools: [Read,\n  Bash]",
		"name: one\ndescription: d\nallowed-tools: \"Read,\n  Bash\"",
		"name: one\ndescription: d\ncontext: {fork: true}",
		"name: one\ndescription: a: b\nallowed-tools: Bash(a, b) # Read---`--",
		"name: one\ndescription: d\nagent: *x",
	} {
		if s := skills.Parse("one", []byte("---\n"+head+"\n---\nGo.\n"), skills.Options{}); s.Broken == "" {
			t.Errorf("%q needs %v", head, s.Needs)
		}
	}
	const quoted = "---\n'name': one\n\"description\" : d\n\"allowed-tools\": Bash\n---\nGo.\n"
	if s := skills.Parse("one", []byte(quoted), skills.Options{}); s.Broken != "" || len(s.Needs) != 1 {
		t.Errorf("%q needs %v, %s", quoted, s.Needs, s.Broken)
	}
	for _, tools := range []string{
		"Bash", "  Read, Bash(git log:*) ", "'Read, Bash'", "\"Read Bash\"", "[Read, Bash(git:*), 'Azure MCP/x', ]", "[ ]", "Read # for a look", "Bash({dir}/x:*) Bash(${DIR}/y.sh *)",
		"\n  - Read\n  - \"Bash(a b)\"\n\n  # and\n  - Write", "\n- Read\n- Bash(claude-security:scan, x)", ">-\n  Read,\n  Bash", "|\n  Read\n  Write", "\n  [\n    Read,\n    \"Bash(a)\",\n  ]", " Read\r",
		"[\n  \"Read\",\n  \"Bash(git add:*)\"\n]", "\n  - Read\n  # - Bash(git diff*)\n  - Write",
	} {
		text := "---\nname: one\ndescription: d\nallowed-tools: " + tools + "\n---\nGo.\n"
		if s := skills.Parse("one", []byte(text), skills.Options{IgnoreUnknown: true}); s.Broken != "" {
			t.Errorf("%q: %s", text, s.Broken)
		}
	}
	const inJSON = "---\n{\"name\": \"one\", \"description\": \"d\", \"allowed-tools\": [\"Bash\"]}\n---\nGo.\n"
	if s := skills.Parse("one", []byte(inJSON), skills.Options{}); s.Broken != "" || len(s.Needs) != 1 {
		t.Errorf("%q needs %v, %s", inJSON, s.Needs, s.Broken)
	}
}

// TestModeCounts: a library is another when a file may be run.
func TestModeCounts(t *testing.T) {
	dir := tree(t, map[string]string{"a/SKILL.md": md("a"), "a/run.sh": "x"})
	before := skills.Load(skills.Options{}, dir).Digest()
	if err := os.Chmod(filepath.Join(dir, "a/run.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	if skills.Load(skills.Options{}, dir).Digest() == before {
		t.Error("nothing has changed")
	}
}

// TestTextsOfOthers: what no tool depends on may stand there as YAML has it.
func TestTextsOfOthers(t *testing.T) {
	for _, head := range []string{
		"description: >\n\n  what it is for\nlicense: |\n\nversion: 1", "description: d\nmetadata:\n  - {a: [b,\n    c]}\n  - ? x\nlicense: \"a\n  b\"", "description: 'a --- b'",
		"arguments: [x.y]\ndescription: a --- b",
		"description: >-\n  a: b # c\n  | d\nallowed-tools: Read\nmetadata: {a: \"\\x41\"}",
	} {
		if s := skills.Parse("one", []byte("---\nname: one\n"+head+"\n---\nGo.\n"), skills.Options{}); s.Broken != "" {
			t.Errorf("%q: %s", head, s.Broken)
		}
	}
}

// TestOddNames: where readers do not agree on the names of arguments, what is typed for one
// may bring all of a command but what it runs.
func TestOddNames(t *testing.T) {
	for _, names := range []string{"[b] # c", "a # b", "a #b c", "[a?a]", "!x\u2167", "[-b?]"} {
		for text, want := range map[string]bool{"Look: $[b]!\ntouch x\n$[b]\n": true, "Run it: !$b x\n": true, "`$b x": true, "Run it!\n": false} {
			s := skills.Parse("one", []byte("---\nname: one\ndescription: fix it: quickly\narguments: "+names+"\n---\n"+text), skills.Options{})
			if got := len(s.Needs) > 0 && s.Needs[0].Spec.Verb == "proc.eval"; s.Broken == "" && got != want {
				t.Errorf("%s %q: needs %v", names, text, s.Needs)
			}
		}
	}
}
