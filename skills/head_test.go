package skills_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/skills"
)

// top begins every SKILL.md of these tests.
const top = "---\nname: one\ndescription: one skill\n"

// TestFrontmatter: what is broken, or read in different ways by different clients,
// hides the skill. None of it means that nothing is required (R-EGG-34).
func TestFrontmatter(t *testing.T) {
	const tools = "allowed-tools: Read\n"
	for _, tt := range []struct{ name, text, broken string }{
		{"plain", top + tools + "---\nbody\n", ""},
		{"end of file after the mark", top + tools + "---", ""},
		{"windows", strings.ReplaceAll(top+tools+"---\nbody\n", "\n", "\r\n"), ""},
		{"blanks after the last mark", top + tools + "--- \t\nbody\n", ""},
		{"marks in the body", top + tools + "---\nbody\n---\nallowed-tools: Bash\n---\n", ""},
		{"byte order mark, no tools", "\ufeff" + top + "---\n", ""},

		{"values that need quotes", top + quotable(30) + "---\n", ""},
		{"more of them than anybody writes", top + quotable(31) + "---\n", "is not YAML"},

		{"nothing", "", "does not begin"},
		{"no frontmatter", "# One\n", "does not begin"},
		{"never closed", top + tools, "does not begin"},
		{"a line before it", "\n" + top + tools + "---\n", "does not begin"},
		{"an indented mark", " " + top + tools + "---\n", "does not begin"},
		{"four dashes", "-" + top + tools + "---\n", "does not begin"},
		{"empty", "---\n---\n", "is empty"},
		{"a list", "---\n- name: one\n---\n", "is a list, not a map"},

		{"blanks after the first mark", "--- \nname: one\ndescription: d\n" + tools + "---\n", "do not agree"},
		{"frontmatter behind a first mark with blanks", "---\t\nname: one\ndescription: d\n---\n" + tools + "---\n", "do not agree"},
		{"what only others read behind it", "---\t\nname: one\ndescription: d\n---\n&a\n" + tools + "---\u00a0\n", "do not agree"},
		{"byte order mark", "\ufeff" + top + tools + "---\n", "do not agree"},
		{"a mark in a value", "---\nname: one\ndescription: a --- b\n" + tools + "---\n", "do not agree"},
		{"a mark in a value after the tools", "---\nname: one\n" + tools + "description: a --- b\n---\n", ""},
		{"a mark in a value, no tools", "---\nname: one\ndescription: a --- b\n---\n", ""},
		{"an indented mark in a value", top + "note: |\n  x\n  ---\n  y\n" + tools + "---\n", "do not agree"},
		{"a mark with text behind it", top + "---x: 1\n" + tools + "---\n", "do not agree"},
		{"tools that only the quick see", "---\nname: one\ndescription: d\nnote: |\n  x\n  ---\n  y\nallowed-tools: Bash\n---\n", "do not agree"},
		{"hooks that only the quick see", "---\nhooks: {a: b}\nname: one\ndescription: d ---\n---\n", ""},
		{"byte order mark, tools that only the quick see", "\ufeff---\nname: one\ndescription: d\nnote: \"# x\nallowed-tools: Bash ---\n  y\"\n---\n", "do not agree"},
		{"tools on a line of a value", "---\nname: one\ndescription: d\nnote: \"# x\nallowed-tools: Bash\nlicense: y\"\n---\n", "do not agree"},
		{"hooks on a line of a value", "---\nname: one\ndescription: d\nnote: 'x\n\"hooks\" : {a: b}\n'\n---\n", "do not agree"},
		{"tools on a line of a value, indented", "---\nname: one\ndescription: d\nnote: |\n  x\n  allowed-tools: Bash\n---\n", ""},
		{"tools on a line of a value, and further in", "---\n  name: one\n  description: d\n  allowed-tools: Read\n  note: \"x\nallowed-tools: Bash\n  y\"\n---\n", "do not agree"},
		{"tools on a line of a value, and behind a mark", top + "? allowed-tools\n: Read\n? note\n: \"x\nallowed-tools: Bash\ny\"\n---\n", "do not agree"},
		{"tools behind a mark", top + "? allowed-tools\n: Read\n---\n", "do not agree"},
		{"tools in a comment", top + "allowed-tools: Read # Bash\n---\n", "do not agree"},
		{"tools that are a comment", top + "allowed-tools: # Bash\n---\n", "do not agree"},
		{"a list and a comment", top + "allowed-tools: [Read] # Bash\n---\n", "do not agree"},
		{"tools behind a sign that is no comment to all", top + "allowed-tools: []#, Bash\n---\n", "do not agree"},
		{"the same behind a quote", top + "allowed-tools: \"\"#, Bash\n---\n", "do not agree"},
		{"tools on a line of a value, with an anchor", top + "note: \"[x\n&a allowed-tools: >\n x\n  Bash\n  y\"\n---\n", "do not agree"},
		{"tools on a line of a value, escaped", top + "note: '*x\n\"allowed\\x2dtools\": Bash\nz: y'\n---\n", "do not agree"},
		{"tools on a line of a value, behind a mark of a key", top + "note: '*x\n? \"allowed\\x2dtools\"\n: Bash\nz: y'\n---\n", "do not agree"},
		{"tools on a line of a value, all of it further in", "---\n  name: one\n  description: d\n  note: \"*x\n  allowed-tools: Bash\n  y\"\n---\n", "do not agree"},
		{"a tab in place of two blanks", "---\n  name: one\n  description: d\n  note: \"*x\n\tallowed-tools: Bash\n  y\"\n---\n", "do not agree"},
		{"a text over several lines", top + "note: \"x\n- y: z\n# y: z\ny z\"\nmetadata:\n- a: b\n# c: d\n? e\n: f\n---\n", ""},
		{"a token that ends sooner for some", top + "allowed-tools: Workflow(a (b), Bash, (c))\n---\n", "where a token of allowed-tools ends"},
		{"a token in quotes for some", top + "allowed-tools: ['Workflow(x\"), Bash, Task(\"y)']\n---\n", "where a token of allowed-tools ends"},
		{"parentheses in a token", top + "allowed-tools: Bash(echo $(id))\n---\n", ""},
		{"a tag that is none to some", top + "allowed-tools: !\nBash: x\n---\n", "do not agree"},
		{"the same on a line of its own", top + "allowed-tools:\n  !\nBash: x\n---\n", "do not agree"},
		{"the same in a list", top + "allowed-tools:\n  - Read\n  - ! Bash\n---\n", "do not agree"},
		{"hooks behind such a tag", top + "hooks: !\nx: y\n---\n", "do not agree"},
		{"a ! in hooks that count", top + "hooks:\n  Stop:\n    - command: |\n        ! grep x\n---\n", ""},
		{"a ! elsewhere", top + "allowed-tools: Read\nnote: ! x\nlicense: wow!\n---\n", ""},
		{"a comment in a text", top + "allowed-tools: |\n    Read\n  # Bash\n---\n", "do not agree"},
		{"a folded one", top + "allowed-tools: >-\n    Read\n  # Bash\n---\n", "do not agree"},
		{"a comment in a text on a line of its own", top + "allowed-tools:\n  |\n     Read\n   # Bash\n---\n", "do not agree"},
		{"the same behind a comment", top + "allowed-tools: # x\n  |\n     Read\n   # Bash\n---\n", "do not agree"},
		{"the same in a list", top + "allowed-tools:\n  - Grep\n  - >-\n     Read\n   # Bash(*)\n---\n", "do not agree"},
		{"the same behind a mark of a key", top + "? allowed-tools\n: |\n    Read\n  # Bash\n---\n", "do not agree"},
		{"a comment in a list", top + "allowed-tools:\n  - Read\n  # - Bash\n---\n", ""},
		{"a long comment", top + "allowed-tools: Read #" + strings.Repeat(" a", 300) + "\n---\n", "do not agree"},
		{"a comment of no tools", top + "allowed-tools: Read # to look\nnote: x # y\n---\n", ""},
		{"a sign in a token", top + "allowed-tools: Read Bash(foo#bar:*)\n---\n", ""},
		{"an agent that only the slow see", "---\nname: one\ndescription: d ---\nagent: a\n---\n", "do not agree"},
		{"hooks that only the slow see", "---\nname: one\ndescription: d ---\nhooks: {a: b}\n---\n", "do not agree"},

		{"twice", top + tools + "allowed-tools: Bash\n---\n", "stands twice"},
		{"twice further in", top + "metadata: {a: 1, a: 2}\n---\n", "stands twice"},
		{"an anchor", top + "allowed-tools: &a Read\n---\n", "anchors"},
		{"an alias", top + "license: &a x\nallowed-tools: *a\n---\n", "anchors"},
		{"a merge", top + "<<: {allowed-tools: Bash}\n---\n", "not plain text"},
		{"a tag", top + "allowed-tools: !!str Read\n---\n", "tag"},
		{"a number as tools", top + "allowed-tools: 5\n---\n", "not text or a list"},
		{"a map as tools", top + "allowed-tools: {Read: x}\n---\n", "not text or a list"},
		{"a list in the list", top + "allowed-tools: [[Read]]\n---\n", "not text"},
		{"a list after a colon", top + "allowed-tools: - Read\n- Write\n- Bash\n---\n", "not YAML"},
		{"conflict markers", top + "<<<<<<< a\n" + tools + "=======\n>>>>>>> b\n---\n", "not YAML"},
		{"two documents", top + "...\nname: two\n---\n", "not YAML"},
		{"a key that is a list", top + "? [a]\n: b\n---\n", "not plain text"},
		{"deep", top + "a: " + strings.Repeat("[", 20) + strings.Repeat("]", 20) + "\n---\n", "nests deeper"},
		{"long", top + "a: " + strings.Repeat("x", 65<<10) + "\n---\n", "over 65536 bytes"},
		{"many tokens", top + "allowed-tools: " + strings.Repeat("Read ", 300) + "\n---\n", "more than 256"},
		{"a long token", top + "allowed-tools: Bash(" + strings.Repeat("a ", 3<<10) + ")\n---\n", "over 4096 bytes"},
		{"old line breaks", "---\nname: one\ndescription: d\rallowed-tools: Bash\n---\n", "line breaks"},
		{"line breaks of YAML 1.1", top + "note: a\u2028allowed-tools: Bash\n---\n", "line breaks"},
		{"no text", top + "---\n\xff\n", "UTF-8"},
		{"a null", top + "---\n\x00\n", "UTF-8"},

		{"no name", "---\ndescription: d\n---\n", "is no name"},
		{"a path as name", "---\nname: ../one\ndescription: d\n---\n", "is no name"},
		{"dots as name", "---\nname: ..\ndescription: d\n---\n", "is no name"},
		{"another name", "---\nname: two\ndescription: d\n---\n", "does not end in the name"},
		{"a name in a list", "---\nname: [one]\ndescription: d\n---\n", "name is a list"},
		{"no description", "---\nname: one\n---\n", "no description"},
		{"no text as description", "---\nname: one\ndescription:\n---\n", "no description"},
		{"a blank description", "---\nname: one\ndescription: ' '\n---\n", "no description"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := skills.Parse("one", []byte(tt.text), skills.Options{})
			if tt.broken == "" && s.Broken != "" || !strings.Contains(s.Broken, tt.broken) {
				t.Errorf("broken: %q, want %q", s.Broken, tt.broken)
			}
			_, ok := s.Requires()
			if ok != (s.Broken == "") {
				t.Errorf("Requires says %v of a skill that is broken: %q", ok, s.Broken)
			}
			if !ok && len(s.Findings) == 0 {
				t.Error("nothing is said of it")
			}
		})
	}
}

// TestDeclaration: the forms of allowed-tools, and slips of the pen that count as it.
func TestDeclaration(t *testing.T) {
	for _, tt := range []struct{ yaml, want string }{
		{"allowed-tools: Read Bash(git:*)", "fs.read; proc.exec{cmds=[git]}"},
		{"allowed-tools: Read, Bash(git log *), Grep", "fs.read; proc.exec{patterns=[git log **]}; fs.read"},
		{"allowed-tools: [Read, 'Bash(git:*)']", "fs.read; proc.exec{cmds=[git]}"},
		{"allowed-tools:\n  - Read\n  - Bash(git:*)", "fs.read; proc.exec{cmds=[git]}"},
		{"allowed-tools: >-\n  Read\n  Bash", "fs.read; proc.eval"},
		{"allowed-tools: Read Read Read", "fs.read"},
		{"allowed-tools: []", ""},
		{"allowed-tools: ''", ""},
		{"license: MIT", ""},
		{"tools: Read, Bash", ""}, // not the key that counts
		{"Allowed-Tools: Bash", "proc.eval"},
		{"allowed_tools: Bash", "proc.eval"},
		{"allowedTools: [Bash]", "proc.eval"},
		{"allowed-tools: Read\nallowed_tools: Bash", "fs.read; proc.eval"},
		{"hooks: {PreToolUse: []}", "proc.eval"},
		{"Hooks: x", "proc.eval"},
		{"mcpServers: {x: {command: sh}}", "proc.eval"},
		{"mcp: {x: {command: sh}}", "proc.eval"},
		{"mcp_tools: [x]", "proc.eval"},
		{"mcp:", ""},
		{"lsp-servers: x\nmonitors: []", "proc.eval"},
		{"\u00a0allowed-tools: Bash", "proc.eval"},
		{"\u200bhooks: x", "proc.eval"},
		{"hooks:", ""},
		{"context: fork", "agent.create"},
		{"Context: 'fork '", "agent.create"},
		{"context:\nagent: ''", ""},
		{"context: inline", ""},
		{"context: 'inline'", ""},
		{"context: inline\n  fork", "agent.create"},
		{"allowed-tools: Read\ncontext: fork\nagent: reviewer", "fs.read; agent.create; agent.create{id=[reviewer]}"},
		{"agent: reviewer", "agent.create{id=[reviewer]}"},
		{"agent: my-plugin:reviewer", "agent.create{id=[*]}"},
		{"agent: \"code reviewer\"", "agent.create{id=[*]}"},
		{"agent: 'no such)'", "agent.create{id=[*]}"},
		{"allowed-tools: Bash(a: b) Read", "proc.exec{patterns=[a: b]}; fs.read"}, // no YAML as it stands
	} {
		s := skills.Parse("one", []byte(top+tt.yaml+"\n---\n"), skills.Options{})
		if got := strings.Join(needs(s), "; "); s.Broken != "" || got != tt.want {
			t.Errorf("%s: %q %s, want %q", tt.yaml, got, s.Broken, tt.want)
		}
	}
}

// TestInjection: what a client runs by itself needs a shell.
func TestInjection(t *testing.T) {
	for body, want := range map[string]bool{
		"!`date`\n":                            true,
		"Today is !`date`.\n":                  true,
		"(!`date`)\n":                          true,
		"KEY=!`date`\n":                        true,
		"a\n!`date\n-u`\n":                     true,
		"```!\ndate\n```\n":                    true,
		"  ````! \ndate\n````\n":               true,
		"~~~!\ndate\n~~~\n":                    true,
		"``` !sh\ndate\n```\n":                 true,
		"1. ```!\n   date\n   ```\n":           true,
		"Today is ```! date ``` it.\n":         true,
		"!$ARGUMENTS`date`\n":                  true,
		"!$who[0]`date`\n":                     true,
		"!${CLAUDE_SESSION_ID}`date`\n":        true,
		"$1!`date`\n":                          true,
		"!$1`$2date`\n":                        true, // of which opencode takes $2 for all of the name
		"!$ARGUMENTS`$ARGUMENTSdate`\n":        true, // as Claude Code does
		"!$1`$name`\n":                         true,
		"``$0`!\ndate\n```\n":                  true,
		"x$ARGUMENTS!`date`\n":                 true,
		"Use `println!` and `vec!` here.\n":    true, // opencode runs " and "
		"_!`date`\n":                           true,
		"Use `!`date`` now\n":                  true,
		"Use `println!` here.\n":               true, // to whom types `go test`, which stands behind it then
		"Tidy up. !`touch RAN # ":              true,
		"Look into !$1;touch RAN #` $2":        true,
		"!$ARGUMENTS":                          true,
		"!$ARGUMENTS[12]":                      true,
		"$ARGUMENTS``!\ndate\n```\n":           true,
		"$1`!\ndate\n```":                      true,
		"Fix $1$2!\ndate\n```":                 true,
		"Fix $1!\ndate\n$2":                    true,
		"$ARGUMENTS`date`":                     true,
		"`$0` date `":                          true,
		"Fix $1! Now `a`.":                     false,
		"Look at $3$1;touch RAN;$2 with care":  true,
		"About $ARGUMENTS`$ARGUMENTS":          true,
		"Replace it by $1$2.":                  true, // it could be !`, and end anywhere
		"Use `$HOME` and `$PATH` here!":        false,
		"Costs !$x and `a`":                    false,
		"Fix `$1`.":                            false,
		"The `!` operator negates, as in `a`.": true, // as above
		"Wow!\n```sh\ndate\n```\n":             false,
		"!``\n":                                false,
		"`!date`":                              false,
		"":                                     false,
	} {
		s := skills.Parse("one", []byte(top+"---\n"+body), skills.Options{})
		if got := len(s.Needs) == 1 && s.Needs[0].Spec.Verb == "proc.eval"; s.Broken != "" || got != want {
			t.Errorf("%q: needs %v, want a shell: %v", body, s.Needs, want)
		}
	}
	hidden := skills.Parse("one", []byte("---\nname: one\ndescription: 'x !`date` y'\n---\n"), skills.Options{})
	if got := needs(hidden); len(got) != 1 {
		t.Errorf("a command in the frontmatter needs %v", got)
	}
}

// TestMention: what a client reads by itself needs fs.read.
func TestMention(t *testing.T) {
	for body, want := range map[string]string{
		"See @/etc/passwd now.\n":               "@/etc/passwd",
		"@~/.ssh/id_ed25519":                    "@~/.ssh/id_ed25519",
		"a\n\t@../x y\n":                        "@../x",
		"a\u00a0@./x\n":                         "@./x",
		"Help @\" /abs/key\" please":            "@\"",
		"@\"\n~/.ssh/id_rsa\"":                  "@\"",
		"@\"\ufeff/etc/x\"":                     "@\"",
		"@\" my docs/x":                         "@\"", // what is typed may end it
		"Help with @root, and more":             "@root,",
		"See @etc":                              "@etc",
		"(@home#3)":                             "@home#3)",
		"@media and @app, @data @rooted":        "",
		"Review $ARGUMENTS/../../key now":       "$ARGUMENTS/../../key",
		"$1/a/b\\..\\..\\c":                     "$1/a/b\\..\\..\\c",
		"$0../x":                                "$0../x",
		"$ARGUMENTS[0]/..":                      "$ARGUMENTS[0]/..",
		"Fix $1... or $2/... at /../x":          "",
		"$HOME/../x":                            "",
		"Look at $ARGUMENTS./x and $1.":         "$ARGUMENTS./x",
		"Look at $ARGUMENTS.$9/x":               "$ARGUMENTS.$9/x",
		"Look at $ARGUMENTS[3].$9#L1 x":         "$ARGUMENTS[3].$9#L1",
		"for \"$@\"; $3.00/$15.00 or $1...$2/x": "",
		"a$1@\" /x\"":                           "@\"",
		"看@\" /x\"":                             "@\"",
		"$1/$2.$3./x":                           "$1/$2.$3./x",
		"$1/.$ARGUMENTS[2]./x":                  "$1/.$ARGUMENTS[2]./x",
		"$1.\\x":                                "$1.\\x",
		"Look at $0.#L1 and at $0.":             "$0.#L1",
		"@\"/a b\"\n":                           "@\"/a",
		"@$HOME/x\n":                            "@$HOME/x",
		"a (@/etc/hosts, b)":                    "@/etc/hosts,",
		"看。@/etc/hosts":                         "@/etc/hosts",
		"See:@/etc/hosts":                       "@/etc/hosts",
		"@docs/../../x":                         "@docs/../../x",
		"@docs/$1/x":                            "@docs/$1/x",
		"$ARGUMENTS@/etc/hosts":                 "@/etc/hosts",
		"a$1 @/x":                               "@/x",
		"see x$ARGUMENTS @etc/hosts":            "@etc/hosts",
		"@C:/x":                                 "@C:/x",
		"@C:\\x":                                "@C:\\x",
		"@docs\\..\\..\\x":                      "@docs\\..\\..\\x",
		"@\"my docs/../../etc/x\"":              "@\"my",
		"@\"my docs/$1\"":                       "@\"my",
		"@my\\ docs/../../etc/x":                "@my\\ docs/../../etc/x",
		"é@/etc/hosts":                          "@/etc/hosts",
		"@a\u0085/../../x":                      "@a\u0085/../../x",
		"@app/.env":                             "@app/.env",
		"@ETC/hosts":                            "@ETC/hosts",
		"x$ARGUMENTS@$2/etc/hosts":              "@$2/etc/hosts",
		"x${X}@/etc/hosts":                      "@/etc/hosts",
		"@\"my docs\" and /../x":                "",
		"me@/x and a@b.c, @acme/tool@/x":        "",
		"`@/x`, `a@/b` and @Override":           "",
		"@":                                     "",
		"x @\n/y":                               "",
	} {
		s := skills.Parse("one", []byte(top+"---\n"+body), skills.Options{})
		got := ""
		if len(s.Needs) == 1 && s.Needs[0].Spec.Verb == "fs.read" {
			got = s.Needs[0].Token
		}
		if s.Broken != "" || got != want || (want == "") != (len(s.Needs) == 0) {
			t.Errorf("%q: needs %v, want %q", body, s.Needs, want)
		}
	}
}

// TestVeiledMention: what a skill calls by a name of its own may hide where a word begins.
func TestVeiledMention(t *testing.T) {
	for body, want := range map[string]int{"$x+y@/etc/passwd": 3, "$x+y@agent-x do": 3, "@agent$x y-x": 3, "Greet $x+y!": 1, "me@example.com": 0} {
		if s := skills.Parse("one", []byte(top+"arguments: ['x+y', 'x y']\n---\n"+body), skills.Options{}); len(s.Needs) != want || s.Broken != "" {
			t.Errorf("%q: needs %v", body, s.Needs)
		}
	}
}

// TestMentionedAgent: who mentions an agent has agents started without asking.
func TestMentionedAgent(t *testing.T) {
	for _, body := range []string{"@gen$1eral", "@$ARGUMENTSgeneral", "@general$X", "x$1@gen$1eral", "ask @ag$ARGUMENTSent-Plan now", "@\"x (ag$1ent)\"", "@\"general (agent)$ARGUMENTS", "@" + strings.Repeat("$1", 200)} { // and what is read
		if s := skills.Parse("one", []byte(top+"---\n"+body), skills.Options{}); len(s.Needs) < 2 || s.Needs[len(s.Needs)-1].Spec.Verb != "agent.create" {
			t.Errorf("%q: needs %v", body, s.Needs)
		}
	}
	for body, want := range map[string]bool{
		"Say hello, @general.\n": true, "@explore": true, "(@plan, then)": true, "@build..x": true,
		"@agent-general-purpose do": true, "ask @\"reviewer (agent)\"": true, "x\u00a0@title`": true,
		"me@general.com": false, "@general.com": false, "@generally": false, "`@general`": false, "@General": false, "@acme/agent-x": false,
	} {
		s := skills.Parse("one", []byte(top+"---\n"+body), skills.Options{})
		if got := len(s.Needs) == 1 && s.Needs[0].Spec.Verb == "agent.create"; s.Broken != "" || got != want || !want && len(s.Needs) > 0 {
			t.Errorf("%q: needs %v", body, s.Needs)
		}
	}
}

// TestVeiledInjection: a client takes $ and the name of an argument out of a text, and the
// skill chooses the name.
func TestVeiledInjection(t *testing.T) {
	for _, tt := range []struct {
		key, body string
		want      bool
	}{
		{"arguments: ['@@']", "!$@@`date`\n", true},
		{"arguments: '@@ who'", "!$@@`date`\n", true},
		{"arguments: [x y]", "!$x y`date`\n", true},
		{"Arguments: ['{a']", "!${a`date`\n", true},
		{"arguments: ['#a']", "``$#a`!\ndate\n```\n", true},
		{"arguments: ['#a']", "~~~$#a!\ndate\n~~~\n", true},
		{"arguments: ['#a']", "x$#a!`date`\n", true},
		{"arguments: \"a\\x85b\"", "``$a\u0085b`!\ndate\n```\n", true},
		{"arguments: a # b", "Now !$#`touch RAN`\n", true},
		{"arguments: [x, y] # the z", "``$#`!\ndate\n```\n", true},
		{"arguments: [-]", "Now !$[-]`date` is it\n", true},
		{"arguments: [env: ]", "!$]`date`\n", true},
		{"arguments: [when] ", "Now: !$[when]`date`\n", true},
		{"arguments: [when]\t", "Now: !$[when]`date`\n", true},
		{"arguments: [{name: when}] ", "Now: !$[{name:`date`\n", true},
		{"arguments: [when,\n  why]", "Now: !$[when,`date`\n", true},
		{"arguments: [ab,-]", "!$-]`date`\n", true},
		{"arguments:\n  - issue\n  - why", "Use `a!` on $issues\n", true}, // of `a!`
		{"arguments:\n  - issue\n  - why", "Use it! On $HOME, `a`\n", false},
		{"arguments: {a: b}", "!$}`date`\n", true},
		{"arguments: |\n  a", "!$|`date`\n", true},
		{"arguments: issue", "!$issue now\n", true},
		{"arguments: [issue, why]", "$why`date`\n", true},
		{"arguments: [issue]", "!$issues and `$else` it`\n", true}, // some take $issue out of it
		{"", "!$issue now and `$why` it\n", false},
		{"arguments: \"a\\x85b\"", "!$a\u0085b`date`\n", true},
		{"arguments: [who, 2]", "Greet $who!\n", false},
		{"arguments: who when", "Use `$HOME` for $who!\n", false},
		{"arguments: ['<who>']", "Greet $<who>!\n", true},
		{"arguments: [{name: who, required: true}]", "Use `$HOME`!\n", false},
		{"arguments:\n  - name: who\n    description: Who it is for, and why.\n  - when", "Use `$HOME`!\n", false},
		{"arguments: [ \"who\", 'when' ]\r", "Use `$HOME`!\n", false},
	} {
		s := skills.Parse("one", []byte(top+tt.key+"\n---\n"+tt.body), skills.Options{})
		if got := len(s.Needs) > 0 && s.Needs[0].Spec.Verb == "proc.eval"; s.Broken != "" || got != tt.want || !got && len(s.Needs) > 0 {
			t.Errorf("%s %q: needs %v, want a shell: %v %s", tt.key, tt.body, s.Needs, tt.want, s.Broken)
		}
	}
}

// TestOptions: what is made of skills that say little.
func TestOptions(t *testing.T) {
	undeclared, unknown := []byte(top+"---\n"), []byte(top+"allowed-tools: Frobnicate Read\n---\n")
	files := skills.Options{Upstreams: []string{"files"}, IgnoreUnknown: true}
	for _, tt := range []struct {
		name string
		text []byte
		opts skills.Options
		ok   bool
		want string
	}{
		{"shown", undeclared, skills.Options{}, true, ""},
		{"hidden", undeclared, skills.Options{HideUndeclared: true}, false, "? the skill does not say which tools it uses"},
		{"declared", []byte(top + "allowed-tools: []\n---\n"), skills.Options{HideUndeclared: true}, true, ""},
		{"unknown", unknown, skills.Options{}, false, "? no such tool is known; fs.read"},
		{"ignored", unknown, skills.Options{IgnoreUnknown: true}, true, "fs.read"},
		{"several in one entry", []byte(top + "allowed-tools: [\"Azure, Bash(rm:*)\"]\n---\n"), skills.Options{IgnoreUnknown: true}, false, "? no such tool is known"},
		{"one behind a comma", []byte(top + "allowed-tools: [\",mcp__files__write\"]\n---\n"), files, false, "? no such tool is known"},
		{"several behind each other", []byte(top + "allowed-tools: Azure;mcp__x__y\n---\n"), skills.Options{IgnoreUnknown: true}, false, "? no such tool is known"},
		{"in another case", []byte(top + "allowed-tools: BASH(rm:*)\n---\n"), skills.Options{IgnoreUnknown: true}, false, "? no such tool is known"},
		{"the words of another", []byte(top + "allowed-tools: Terraform(list, read)\n---\n"), skills.Options{IgnoreUnknown: true}, true, ""},
		{"what some take for its end", []byte(top + "allowed-tools: Bash...\n---\n"), skills.Options{IgnoreUnknown: true}, false, "? no such tool is known"},
		{"all", []byte(top + "allowed-tools: '*'\n---\n"), skills.Options{IgnoreUnknown: true}, false, "? no such tool is known"},
		{"all of all servers", []byte(top + "allowed-tools: mcp__*\n---\n"), skills.Options{IgnoreUnknown: true}, false, "? no upstream has that name"},
		{"another server", []byte(top + "allowed-tools: [mcp__else__x, Azure MCP/x]\n---\n"), skills.Options{IgnoreUnknown: true}, true, ""},
		{"a tool of a server, narrowed", []byte(top + "allowed-tools: mcp__files__x(y)\n---\n"), files, false, "? it takes nothing in parentheses"},
		{"all of capgate's", []byte(top + "allowed-tools: mcp__capgate mcp__plugin_p_capgate\n---\n"), files, true, "tool.invoke{tools=[*]}; tool.invoke{tools=[*]}"},
		{"all of capgate's, with a star", []byte(top + "allowed-tools: mcp__capgate__*\n---\n"), files, true, "tool.invoke{tools=[*]}"},
		{"a tool that begins with a line", []byte(top + "allowed-tools: mcp__files___x\n---\n"), files, true, "tool.invoke{tools=[files._x]}"},
		{"a server without a name", []byte(top + "allowed-tools: Mcp Mcp(:x)\n---\n"), files, false, "? it does not say which server; ? it does not say which server"},
		{"wrong", []byte(top + "allowed-tools: Bash(git\n---\n"), skills.Options{IgnoreUnknown: true}, false, "? its parentheses do not match"},
	} {
		s := skills.Parse("one", tt.text, tt.opts)
		if _, ok := s.Requires(); ok != tt.ok || strings.Join(needs(s), "; ") != tt.want {
			t.Errorf("%s: %v %v", tt.name, ok, needs(s))
		}
	}
}

// TestFrontmatterJSON: values stand in the JSON as they were written.
func TestFrontmatterJSON(t *testing.T) {
	s := skills.Parse("one", []byte(top+"b: [1, 1.5, true, null, 0x10, 1.0.0, 2026-01-02, <a&b>]\na: {z: x, y: \"1\"}\ne: {}\nf: []\n---\n"), skills.Options{})
	want := `{"name":"one","description":"one skill","b":[1,1.5,true,null,16,"1.0.0","2026-01-02","<a&b>"],"a":{"z":"x","y":"1"},"e":{},"f":[]}`
	if string(s.Frontmatter) != want {
		t.Errorf("%s\nwant %s", s.Frontmatter, want)
	}
}

// TestZero: a skill that nobody made is satisfied by nobody.
func TestZero(t *testing.T) {
	for _, s := range []*skills.Skill{nil, {}, {Path: "a", Needs: []skills.Need{{Unknown: "x"}}}, {Path: "a", Broken: "x"}} {
		if _, ok := s.Requires(); ok {
			t.Errorf("%+v could be satisfied", s)
		}
	}
}

// TestGolden is what is made of 58 real frontmatters. UPDATE_GOLDEN=1 writes it anew.
func TestGolden(t *testing.T) {
	data, err := os.ReadFile("testdata/frontmatter.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	count := 0
	for line := range strings.Lines(string(data)) {
		var one struct {
			Repo, Path, Note string
			Raw              string `json:"frontmatter_raw"`
		}
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err)
		}
		count++
		name := "x"
		for text := range strings.Lines(one.Raw) {
			if rest, ok := strings.CutPrefix(text, "name:"); ok {
				name = strings.TrimSpace(rest)
			}
		}
		s := skills.Parse(name, []byte(one.Raw), skills.Options{Upstreams: []string{"serena", "chrome-devtools"}})
		b.WriteString(one.Repo + " " + filepath.Dir(one.Path) + " (" + one.Note + ")\n")
		if s.Broken != "" {
			b.WriteString("    hidden: " + s.Broken + "\n")
		}
		for _, n := range s.Needs {
			b.WriteString("    " + n.Token + " => " + n.String() + "\n")
		}
		for _, f := range s.Findings {
			b.WriteString("    ! " + f.Code + "\n")
		}
	}
	const golden = "testdata/frontmatter.golden"
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(golden, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" || count != 58 {
		t.Errorf("%d frontmatters:\n%s", count, diff)
	}
}
