package skills_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"capgate/skills"
)

// md writes a SKILL.md.
func md(name string, lines ...string) string {
	return "---\nname: " + name + "\ndescription: what it is for\n" + strings.Join(append(lines, "---", "Do it."), "\n") + "\n"
}

// tree writes files below a new folder: a text that begins with -> is a link.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		put(t, filepath.Join(dir, name), text)
	}
	return dir
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	target, link := strings.CutPrefix(text, "->")
	var err error
	if link {
		err = os.Symlink(target, file)
	} else {
		err = os.WriteFile(file, []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// outline writes what a library holds: each path, with why it is hidden or what it
// requires.
func outline(l *skills.Library) map[string]string {
	out := map[string]string{}
	for s := range l.All() {
		text := strings.Join(needs(s), "; ")
		if s.Broken != "" {
			text = "hidden: " + s.Broken
		}
		if _, twice := out[s.Path]; twice {
			text = "twice: " + text
		}
		out[s.Path] = text
	}
	return out
}

func TestLoad(t *testing.T) {
	many := map[string]string{"big/SKILL.md": md("big")}
	for i := range 513 {
		many[fmt.Sprintf("big/%d.txt", i)] = "x"
	}
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  map[string]string
	}{
		{"a skill and one in a folder", map[string]string{
			"one/SKILL.md": md("one", "allowed-tools: Read"), "one/more/ref.md": "x", "web/two/SKILL.md": md("two"), "readme.md": "x",
		}, map[string]string{"one": "fs.read", "web/two": ""}},
		{"the folder itself", map[string]string{"SKILL.md": md("one"), "x.md": "x"}, map[string]string{"one": ""}},
		{"another name than its folder", map[string]string{"a/SKILL.md": md("one")}, map[string]string{"one": ""}},
		{"two of one name", map[string]string{"a/x/SKILL.md": md("x"), "b/x/SKILL.md": md("x")}, map[string]string{"a/x": "", "b/x": ""}},
		{"two of one path", map[string]string{"a/SKILL.md": md("x"), "b/SKILL.md": md("x", "allowed-tools: Read")}, map[string]string{
			"x": "twice: hidden: x is also in TOP/a/SKILL.md",
		}},
		{"two of one path but for case", map[string]string{"a/SKILL.md": md("x"), "b/SKILL.md": md("X")}, map[string]string{
			"x": "hidden: x is also in TOP/b/SKILL.md", "X": "hidden: X is also in TOP/a/SKILL.md",
		}},
		{"two of one path but for accents, or by way of the upper case", map[string]string{
			"a/SKILL.md": md("caf\u00e9"), "b/SKILL.md": md("cafe\u0301"), "c/SKILL.md": md("see"), "d/SKILL.md": md("\u017fee"), "e/\ufe0f/SKILL.md": md("\ufe0f"), "\ufe0f/e/SKILL.md": md("e"),
		}, map[string]string{
			"caf\u00e9": "hidden: caf\u00e9 is also in TOP/b/SKILL.md", "cafe\u0301": "hidden: cafe\u0301 is also in TOP/a/SKILL.md",
			"see": "hidden: see is also in TOP/d/SKILL.md", "\u017fee": "hidden: \u017fee is also in TOP/c/SKILL.md", "e/\ufe0f": "", "\ufe0f/e": "",
		}},
		{"one in the place of another", map[string]string{"a/SKILL.md": md("B"), "a/x/y.md": "x", "b/x/SKILL.md": md("x"), "b/z/SKILL.md": md("z"), "c/SKILL.md": md("c"), "c/d/SKILL.md": md("d")}, map[string]string{
			"B": "hidden: b/x in TOP/b/x/SKILL.md lies in its place", "b/x": "hidden: b/x lies in the place of TOP/a/SKILL.md", "b/z": "hidden: b/z lies in the place of TOP/a/SKILL.md",
			"c": "", "c/d": "",
		}},
		{"one in the place of a file", map[string]string{"SKILL.md": md("one"), "x/SKILL.md": md("x"), "one/x/SKILL.md": md("x"), "one/y/SKILL.md": md("y")}, map[string]string{
			"one": "hidden: one/x in TOP/one/x/SKILL.md lies in its place", "one/x": "hidden: one/x lies in the place of TOP/SKILL.md", "one/y": "", "x": "",
		}},
		{"one in the place of another, in more bytes", map[string]string{"a/SKILL.md": md("\u212a\u212a\u212a"), "kkk/x/SKILL.md": md("x")}, map[string]string{
			"\u212a\u212a\u212a": "hidden: kkk/x in TOP/kkk/x/SKILL.md lies in its place", "kkk/x": "hidden: kkk/x lies in the place of TOP/a/SKILL.md",
		}},
		{"one in a folder of its name", map[string]string{"SKILL.md": md("one"), "one/y/SKILL.md": md("y"), "z/SKILL.md": md("y")}, map[string]string{"one": "", "one/y": "", "y": ""}},
		{"one without a sound name", map[string]string{"a/SKILL.md": md("../b")}, map[string]string{
			"a": `hidden: "../b" is no name: it takes 1 to 64 letters, digits, spaces and - _ .`,
		}},
		{"another case of the name", map[string]string{"a/skill.md": md("a"), "b/Skill.md": md("b"), "c/SKILL.md": md("c")}, map[string]string{
			"a": "hidden: its file must be called SKILL.md, in capitals", "b": "hidden: its file must be called SKILL.md, in capitals", "c": "",
		}},
		{"a folder of that name", map[string]string{"a/SKILL.md/x": "x"}, map[string]string{"a": "hidden: its file must be called SKILL.md, in capitals"}},

		{"a skill in a skill", map[string]string{
			"a/SKILL.md": md("a", "allowed-tools: Read"), "a/in/b/SKILL.md": md("b", "allowed-tools: Bash"),
		}, map[string]string{"a": "fs.read; proc.eval", "a/in/b": "proc.eval"}},
		{"a hidden skill in a skill", map[string]string{
			"a/SKILL.md": md("a"), "a/b/SKILL.md": "no frontmatter",
		}, map[string]string{
			"a":   "? the skill a/b is hidden: it does not begin with frontmatter between lines of ---",
			"a/b": "hidden: it does not begin with frontmatter between lines of ---",
		}},
		{"a skill deep in a skill", map[string]string{
			"a/SKILL.md": md("a"), "a/1/2/3/4/5/6/7/8/b/SKILL.md": md("b", "allowed-tools: Bash"),
		}, map[string]string{"a": "proc.eval", "a/1/2/3/4/5/6/7/8/b": "proc.eval"}},
		{"deep in folders", map[string]string{
			"1/2/3/4/5/6/7/8/9/10/11/a/SKILL.md": md("a"), "1/2/3/4/5/6/7/8/9/10/11/12/b/SKILL.md": md("b"),
		}, map[string]string{"1/2/3/4/5/6/7/8/9/10/11/a": ""}},
		{"bookkeeping", map[string]string{".git/a/SKILL.md": md("a"), "node_modules/b/SKILL.md": md("b"), "c/SKILL.md": md("c"), "c/.git/config": "token"}, map[string]string{"c": ""}},

		{"uses another", map[string]string{
			"a/SKILL.md": md("a", "allowed-tools: Skill(b) Read"), "b/SKILL.md": md("b", "allowed-tools: Skill(c) Bash"), "c/SKILL.md": md("c", "allowed-tools: WebFetch"),
		}, map[string]string{"a": "fs.read; proc.eval; net.get", "b": "proc.eval; net.get", "c": "net.get"}},
		{"use each other", map[string]string{
			"a/SKILL.md": md("a", "allowed-tools: Skill(b) Read"), "b/SKILL.md": md("b", "allowed-tools: Skill(a) Bash"),
		}, map[string]string{"a": "fs.read; proc.eval", "b": "proc.eval; fs.read"}},
		{"uses itself", map[string]string{"a/SKILL.md": md("a", "allowed-tools: Skill(a) Read")}, map[string]string{"a": "fs.read"}},
		{"uses a hidden one", map[string]string{"a/SKILL.md": md("a", "allowed-tools: Skill(b)"), "b/SKILL.md": "x"}, map[string]string{
			"a": "? the skill b is hidden: it does not begin with frontmatter between lines of ---",
			"b": "hidden: it does not begin with frontmatter between lines of ---",
		}},
		{"uses one that is not there", map[string]string{"a/SKILL.md": md("a", "allowed-tools: Skill(b)")}, map[string]string{"a": "? there is no such skill"}},
		{"uses one of two", map[string]string{
			"a/SKILL.md": md("a", "allowed-tools: Skill(b)"), "x/b/SKILL.md": md("b"), "y/b/SKILL.md": md("b"),
		}, map[string]string{"a": "? several skills have that name", "x/b": "", "y/b": ""}},

		{"a manifest", map[string]string{
			"a/SKILL.md": md("a"), "a/agents/openai.yaml": "dependencies:\n  tools:\n    - {type: mcp, value: files}\n    - {type: mcp, value: else}\n    - {type: cli, value: gh}\n",
			"b/SKILL.md": md("b"), "b/agents/openai.yaml": "interface: {display_name: B}\n",
			"c/SKILL.md": md("c"), "c/agents/openai.yaml": "dependencies: [",
			"d/SKILL.md": md("d"), "d/agents/openai.yaml": "dependencies: {tools: {type: mcp}}",
			"e/SKILL.md": md("e"), "e/agents/openai.yaml": "dependencies: {tools: [{type: mcp, value: files, transport: stdio, command: sh}]}",
			"f/SKILL.md": md("f"), "f/agents/openai.yaml": "dependencies: {tools: [{type: mcp, value: files, url: 'http://evil.example/mcp'}]}",
		}, map[string]string{
			"a": "tool.invoke{tools=[files.*]}; ? no upstream has that name; ? it depends on something that is no MCP server",
			"b": "",
			"c": "hidden: agents/openai.yaml: it is not YAML: line 1: did not find expected node content",
			"d": "hidden: agents/openai.yaml: dependencies.tools is a map, not a list",
			"e": "tool.invoke{tools=[files.*]}; proc.eval", // which a client runs that lacks it
			"f": "? a client that lacks the server connects to its url, beside this gateway",
		}},

		{"a plugin", map[string]string{
			"a/SKILL.md": md("a"), "a/.claude-plugin/plugin.json": "{}", "b/SKILL.md": md("b"), "b/more/.codex-plugin/x": "{}", "c/SKILL.md": md("c"), "c/my-plugin/x": "{}",
			"d/SKILL.md": md("d"), "d/.plugin/plugin.json": "{}", "e/SKILL.md": md("e"), "e/x/MCP.json": "{}",
			"f/SKILL.md": md("f"), "f/opencode.jsonc": "{}",
		}, map[string]string{"a": "proc.eval", "b": "proc.eval", "c": "", "d": "proc.eval", "e": "proc.eval", "f": "proc.eval"}},
		{"what an agent runs by itself", map[string]string{
			"a/SKILL.md": md("a"), "a/.claude/settings.json": "{}", "b/SKILL.md": md("b"), "b/x/.Claude/commands/y.md": "y", "c/SKILL.md": md("c"), "c/x/.MCP.json": "{}",
			"d/SKILL.md": md("d"), "d/.codex/config.toml": "", "e/SKILL.md": md("e"), "e/claude/settings.json": "{}", "e/mcp.json": "{}", "e/.claude.md": "x",
			"f/SKILL.md": md("f"), "f/.claude/skills/in/SKILL.md": strings.Replace(md("in"), "---\n", "---\nallowed-tools: Read\n", 1),
		}, map[string]string{"a": "proc.eval", "b": "proc.eval", "c": "proc.eval", "d": "proc.eval", "e": "proc.eval", "f": "fs.read", "f/.claude/skills/in": "fs.read"}},
		{"what a file beside it runs that is mentioned", map[string]string{
			"a/SKILL.md": md("a", "note: 'see @notes.md for more'"), "a/notes.md": "now: !`date`",
			"b/SKILL.md": md("b", "note: 'see @more/Notes.md.'"), "b/more/notes.md": "see @\"last one.md\"", "b/x/last one.md": "```!\ndate\n```",
			"c/SKILL.md": md("c", "note: '@acme/tool, me@notes.md, notes.md'"), "c/notes.md": "now: !`date`",
			"d/SKILL.md": md("d", "note: '@notes.md'"), "d/notes.md": "see @notes.md and @SKILL.md", "d/other.js": "`Hello!` and `x`",
			"e/SKILL.md": md("e", "note: '@x/"+strings.Repeat("./", 600)+"notes.md#L3'"), "e/notes.md": "now: !`date`",
			"f/SKILL.md": md("f", "note: '@notes.md'"), "f/notes.md": strings.Repeat("@é", 400<<10),
		}, map[string]string{"a": "proc.eval", "b": "proc.eval", "c": "", "d": "", "e": "proc.eval", "f": "proc.eval"}},
		{"mentions behind what some file systems take for letters, or leave out", map[string]string{
			"a/SKILL.md": md("a") + "x\u200b@notes.md", "a/notes.md": "now: !`date`", "b/SKILL.md": md("b") + "see \u017f@notes.md", "b/notes.md": "now: !`date`",
			"c/SKILL.md": md("c") + "\u1fef@caf\u00e9.", "c/cafe\u0301": "now: !`date`", "d/SKILL.md": md("d") + "@cafe\u0301.", "d/caf\u00e9": "now: !`date`",
		}, map[string]string{"a": "proc.eval", "b": "proc.eval", "c": "proc.eval", "d": "proc.eval"}},
		{"names that some file systems take for others", map[string]string{
			"a/SKILL.md": md("a"), "a/.vſcode/tasks.json": "{}", "b/SKILL.md": md("b"), "b/.cla\u200cude/settings.json": "{}",
			"c/SKILL.md": md("c"), "c/agents/openai\u200d.yaml": "dependencies: {tools: [{type: mcp, value: files}]}", "d/SKILL\u200d.md": md("d"),
			"e/SKILL.md": md("e"), "e/x/sub.md": "", "e/x/ſub.md": "",
		}, map[string]string{
			"a": "proc.eval", "b": "proc.eval", "c": "hidden: its file agents/openai\u200d.yaml is agents/openai.yaml where case does not count",
			"d": "hidden: its file must be called SKILL.md, in capitals", "e": "hidden: two of its files are called x/ſub.md but for their case",
		}},
		{"servers in other case", map[string]string{"a/SKILL.md": md("a"), "a/Agents/openai.yaml": "dependencies: {tools: [{type: mcp, value: files}]}"}, map[string]string{
			"a": "hidden: its file Agents/openai.yaml is agents/openai.yaml where case does not count",
		}},

		{"a link inside", map[string]string{"a/SKILL.md": md("a"), "a/x.md": "x", "a/y.md": "->x.md"}, map[string]string{"a": ""}},
		{"a link that leads out", map[string]string{"a/SKILL.md": md("a"), "a/y.md": "->../secret", "secret": "s"}, map[string]string{
			"a": "hidden: y.md cannot be read, or is a link that leads out",
		}},
		{"an absolute link", map[string]string{"a/SKILL.md": md("a"), "a/y.md": "->/etc/hostname"}, map[string]string{
			"a": "hidden: y.md cannot be read, or is a link that leads out",
		}},
		{"a link to a folder", map[string]string{"a/SKILL.md": md("a"), "a/y": "->/etc"}, map[string]string{
			"a": "hidden: y cannot be read, or is a link that leads out",
		}},
		{"a link to a folder inside", map[string]string{"a/SKILL.md": md("a"), "a/x/x.md": "x", "a/y": "->x"}, map[string]string{"a": "hidden: y is not a regular file"}},
		{"a link that leads nowhere", map[string]string{"a/SKILL.md": md("a"), "a/y": "->z"}, map[string]string{
			"a": "hidden: y cannot be read, or is a link that leads out",
		}},
		{"SKILL.md leads out", map[string]string{"a/SKILL.md": "->../b.md", "b.md": md("a")}, map[string]string{
			"a": "hidden: SKILL.md cannot be read, or is a link that leads out",
		}},
		{"a link beside .git", map[string]string{"a/SKILL.md": md("a"), "a/.git/config": "token", "a/y": "->.git/config"}, map[string]string{
			"a": "hidden: it holds links, which could lead into the .git beside them",
		}},
		{"a skill behind a link", map[string]string{"a": "->b/c", "b/c/SKILL.md": md("c")}, map[string]string{"b/c": ""}},

		{"too many files", many, map[string]string{"big": "hidden: it holds more than 512 files"}},
		{"too many bytes", map[string]string{"a/SKILL.md": md("a"), "a/x": strings.Repeat("x", 9<<20), "a/y": strings.Repeat("x", 9<<20)}, map[string]string{
			"a": "hidden: y is too large, or the files of the skill are together",
		}},
		{"too deep", map[string]string{"a/SKILL.md": md("a"), "a/" + strings.Repeat("d/", 18) + "x": "x"}, map[string]string{"a": "hidden: its folders nest deeper than 16"}},
		{"two files but for case", map[string]string{"a/SKILL.md": md("a"), "a/x.md": "x", "a/X.md": "x"}, map[string]string{
			"a": "hidden: two of its files are called x.md but for their case",
		}},
		{"a control character in a name", map[string]string{"a/SKILL.md": md("a"), "a/x\ny": "x"}, map[string]string{
			"a": "hidden: a file has a name that is not plain text",
		}},
		{"a folder that is no segment", map[string]string{"x:y/a/SKILL.md": md("a")}, map[string]string{
			"x:y/a": "hidden: a folder above it has a name that cannot stand in a URI",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := tree(t, tt.files)
			got := outline(skills.Load(options(), dir))
			for path, text := range got {
				got[path] = strings.ReplaceAll(text, dir, "TOP")
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestFolders: several folders make one library; one that cannot be read, or is over
// a limit, shows nothing and says so.
func TestFolders(t *testing.T) {
	a, b := tree(t, map[string]string{"x/SKILL.md": md("x"), "y/SKILL.md": md("y")}), tree(t, map[string]string{"x/SKILL.md": md("x", "allowed-tools: Read")})
	l := skills.Load(options(), a, b, filepath.Join(a, "none"))
	want := map[string]string{"x": "twice: hidden: x is also in A/x/SKILL.md", "y": ""}
	got := outline(l)
	for path, text := range got {
		got[path] = strings.ReplaceAll(text, a, "A")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var codes []string
	for _, f := range l.Findings() {
		codes = append(codes, f.Code)
	}
	if want := []string{"skill_folder", "skill_hidden", "skill_hidden"}; !slices.Equal(codes, want) {
		t.Errorf("the findings are %v, want %v", codes, want)
	}
	for s := range l.All() {
		if found, ok := l.Skill(s.Path); !ok || found.Path != s.Path || s.Path == "x" && found.Broken == "" {
			t.Errorf("Skill(%s) is %v %v", s.Path, found, ok)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	put(t, link, "->"+a)
	if got := outline(skills.Load(options(), link)); len(got) != 2 {
		t.Errorf("a folder that is a link holds %v", got)
	}
}

// TestManyFolders: as many skills as there may be have the folders that skills come with.
func TestManyFolders(t *testing.T) {
	files := map[string]string{}
	for i := range 1024 {
		name := fmt.Sprintf("s%d", i)
		files[name+"/SKILL.md"] = md(name)
		for _, below := range []string{"assets", "references", "scripts"} {
			files[name+"/"+below+"/x"] = ""
		}
	}
	if l := skills.Load(options(), tree(t, files)); len(outline(l)) != 1024 {
		t.Errorf("%d are found: %v", len(outline(l)), l.Findings())
	}
}

// TestNeedsAreBounded: each need is held against what each agent holds, and so what the
// skills of a folder need together is bounded, and what they borrow of each other.
func TestNeedsAreBounded(t *testing.T) {
	tokens := func(n int) string {
		all := ""
		for i := range n {
			all += fmt.Sprintf(" Read(d/f%d)", i)
		}
		return "allowed-tools:" + all
	}
	for _, tt := range []struct{ count, each, borrowers, shown int }{
		{33, 248, 0, 33}, {34, 248, 0, 0}, {2, 250, 5, 7}, {2, 250, 20, 11},
	} {
		files := map[string]string{}
		for i := range tt.count {
			files[fmt.Sprintf("s%d/SKILL.md", i)] = md(fmt.Sprintf("s%d", i), tokens(tt.each))
		}
		for i := range tt.borrowers {
			files[fmt.Sprintf("u%d/SKILL.md", i)] = md(fmt.Sprintf("u%d", i), "allowed-tools: Skill(s0) Skill(s1)")
		}
		l, shown := skills.Load(options(), tree(t, files)), 0
		for s := range l.All() {
			if _, ok := s.Requires(); ok {
				shown++
			}
		}
		if shown != tt.shown {
			t.Errorf("%+v: %d can be shown: %v", tt, shown, l.Findings())
		}
	}
}

// TestManySkillsThatUseEachOther: what skills require of each other is bounded, and
// whoever needs more than that is satisfied by nobody.
func TestManySkillsThatUseEachOther(t *testing.T) {
	for _, tt := range []struct{ count, tokens int }{{150, 1}, {20, 40}} {
		files := map[string]string{}
		for i := range tt.count {
			uses := fmt.Sprintf("Skill(s%d)", (i+1)%tt.count)
			for j := range tt.tokens {
				uses += fmt.Sprintf(" Read(d%d/f%d)", i, j)
			}
			files[fmt.Sprintf("s%d/SKILL.md", i)] = md(fmt.Sprintf("s%d", i), "allowed-tools: "+uses)
		}
		for s := range skills.Load(options(), tree(t, files)).All() {
			if _, ok := s.Requires(); ok || !strings.Contains(strings.Join(needs(s), "; "), "more than") {
				t.Fatalf("%s of %d needs %d things: %v", s.Path, tt.count, len(s.Needs), ok)
			}
			for _, n := range s.Needs {
				if len(n.Token) > 200 {
					t.Fatalf("a token is %d bytes long", len(n.Token))
				}
			}
		}
	}
}

// TestHiddenSkillsCount: what is read of skills that are hidden then is bounded as well.
func TestHiddenSkillsCount(t *testing.T) {
	const size = 15 << 20
	files := map[string]string{}
	for i := range 18 {
		files[fmt.Sprintf("s%d/SKILL.md", i)] = md(fmt.Sprintf("s%d", i))
		files[fmt.Sprintf("s%d/z", i)] = "->/nowhere"
	}
	dir := tree(t, files)
	for i := range 18 {
		big := filepath.Join(dir, fmt.Sprintf("s%d", i), "big")
		put(t, big, "")
		if err := os.Truncate(big, size); err != nil {
			t.Fatal(err)
		}
	}
	if l := skills.Load(options(), dir); len(outline(l)) != 0 || len(l.Findings()) != 1 || l.Findings()[0].Code != "skill_limit" {
		t.Errorf("over the limit it holds %v and says %v", outline(l), l.Findings())
	}
}

// TestNoLibrary: what nobody loaded holds nothing.
func TestNoLibrary(t *testing.T) {
	var none *skills.Library
	if _, ok := none.Skill("x"); ok || none.Digest() != "" || none.Findings() != nil || len(outline(none)) != 0 {
		t.Error("no library holds something")
	}
}

// TestRead: what is read is what was decided on, or nothing.
func TestRead(t *testing.T) {
	dir := tree(t, map[string]string{"a/SKILL.md": md("a"), "a/more/x.md": "one", "a/y.md": "->more/x.md", "secret": "s"})
	l := skills.Load(options(), dir)
	s, _ := l.Skill("a")
	if len(s.Files) != 3 {
		t.Fatalf("the files are %v", s.Files)
	}
	for _, f := range s.Files {
		data, err := s.Read(f.Path)
		if err != nil || skills.Digest(data) != f.Digest || int64(len(data)) != f.Size {
			t.Errorf("%s: %q %v", f.Path, data, err)
		}
	}
	for _, name := range []string{"", ".", "../secret", "more", "more/../SKILL.md", "/SKILL.md", "skill.md", "SKILL.md/", "x.md", filepath.Join(dir, "secret")} {
		if data, err := s.Read(name); !errors.Is(err, fs.ErrNotExist) || data != nil {
			t.Errorf("Read(%q) returns %q, %v", name, data, err)
		}
	}
	if data, err := skills.Parse("a", []byte(md("a")), options()).Read("SKILL.md"); err == nil {
		t.Errorf("a skill that lies nowhere returns %q", data)
	}
}

// TestReadChanged: what has changed since is not read, and the change is seen.
func TestReadChanged(t *testing.T) {
	dir := tree(t, map[string]string{"a/SKILL.md": md("a"), "a/more/x.md": "one", "a/y.md": "->more/x.md", "secret": "s"})
	l := skills.Load(options(), dir)
	s, _ := l.Skill("a")
	before := []string{l.Digest(), skills.Stamp(dir)}
	for _, change := range []func() error{
		func() error { return os.WriteFile(filepath.Join(dir, "a/more/x.md"), []byte("two"), 0o600) },
		func() error { return os.WriteFile(filepath.Join(dir, "a/more/x.md"), []byte("longer"), 0o600) },
		func() error { return os.Remove(filepath.Join(dir, "a/more/x.md")) },
		func() error { return os.Symlink(filepath.Join(dir, "secret"), filepath.Join(dir, "a/more/x.md")) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"more/x.md", "y.md"} {
			if data, err := s.Read(name); !errors.Is(err, skills.ErrChanged) || data != nil {
				t.Errorf("after a change Read(%s) returns %q, %v", name, data, err)
			}
		}
		after := []string{skills.Load(options(), dir).Digest(), skills.Stamp(dir)}
		if after[0] == before[0] || after[1] == before[1] {
			t.Errorf("the change is not seen: %v, %v", before, after)
		}
		before = after
	}
}

// TestPipeInPlaceOfFolder: whoever may write where a folder lies does not keep the reading
// of skills waiting, and with it every change of what agents may do.
func TestPipeInPlaceOfFolder(t *testing.T) {
	dir := tree(t, map[string]string{"all/a/SKILL.md": md("a")})
	all := filepath.Join(dir, "all")
	s, _ := skills.Load(options(), all).Skill("a")
	pipe := func(at string) {
		if err := errors.Join(os.RemoveAll(at), syscall.Mkfifo(at, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	within := func(what string, do func() error) {
		done := make(chan error, 1)
		go func() { done <- do() }()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s does not end", what)
		}
	}
	pipe(filepath.Join(all, "a"))
	within("reading a file", func() error {
		if _, err := s.Read("SKILL.md"); !errors.Is(err, skills.ErrChanged) {
			return fmt.Errorf("it is %w", err)
		}
		return nil
	})
	pipe(all)
	within("reading the skills", func() error {
		if l := skills.Load(options(), all); len(outline(l)) != 0 || len(l.Findings()) != 1 {
			return fmt.Errorf("there are %v, and said is %v", outline(l), l.Findings())
		}
		return nil
	})
	within("looking at them", func() error {
		skills.Stamp(all)
		return nil
	})
}

// TestPlace: a token can speak of the folder of the skill, its plugin, its project.
func TestPlace(t *testing.T) {
	dir := tree(t, map[string]string{
		"p/.claude/skills/a/SKILL.md": md("a", "allowed-tools: Read(/docs/**) Read(${CLAUDE_PROJECT_DIR}/x) Bash({baseDir}/run.sh:*)"),
		"q/skills/b/SKILL.md":         md("b", `allowed-tools: Bash("${CLAUDE_PLUGIN_ROOT}/s/run.sh" *) Read(${CLAUDE_SKILL_DIR}/ref/**)`),
		"r/c/SKILL.md":                md("c", "allowed-tools: Read(/docs)"),
	})
	top := strings.TrimPrefix(dir, "/")
	want := map[string]string{
		"p/.claude/skills/a": "fs.read{in=TOP/p,paths=[docs/**]}; fs.read{in=/,paths=[" + top + "/p/x]}; proc.exec{cmds=[TOP/p/.claude/skills/a/run.sh]}; fs.read{in=TOP/p/.claude/skills/a,paths=[run.sh]}",
		"q/skills/b":         "proc.exec{cmds=[TOP/q/s/run.sh]}; fs.read{in=TOP/q/s,paths=[run.sh]}; fs.read{in=/,paths=[" + top + "/q/skills/b/ref/**]}",
		"r/c":                "? nothing says where that path begins",
	}
	got := outline(skills.Load(options(), dir))
	for path, text := range got {
		got[path] = strings.ReplaceAll(text, dir, "TOP")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
