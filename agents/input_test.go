package agents_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"capgate/agents"
	"capgate/capability"
)

// record wraps keys into a record.
func record(keys string) string { return "---\nclass: agent\n" + keys + "\n---\n" }

// TestBadInput: whatever cannot be read strictly is an error with its place, and
// no record comes of it.
func TestBadInput(t *testing.T) {
	const limit = 1 << 20
	tests := []struct {
		name, file, data string
		at, says         string
	}{
		{"extension", "a.txt", record(""), "1:1", "a record is a .md"},
		{"byte order mark", "a.md", "\uFEFF" + record(""), "1:1", "byte order mark"},
		{"byte order mark inside", "a.md", record("name: \uFEFFx"), "3:7", "U+FEFF"},
		{"invalid UTF-8", "a.md", record("name: \xff"), "3:7", "not valid UTF-8"},
		{"invalid UTF-8 in the prose", "a.md", record("") + "\xc3\x28", "5:1", "not valid UTF-8"},
		{"NUL", "a.md", record("name: é\x00"), "3:8", "U+0000"},
		{"escape", "a.md", record("") + "\x1b[2J", "5:1", "U+001B"},
		{"DEL", "a.yaml", "class: \x7fagent", "1:8", "U+007F"},
		{"next line", "a.md", record("name: x\u0085capabilities: []"), "3:8", "U+0085"},
		{"line separator", "a.md", record("name: x\u2028capabilities: []"), "3:8", "U+2028"},
		{"right to left", "a.md", record("parent: \u202Edael"), "3:9", "U+202E"},
		{"isolate in XML", "a.xml", "<permissions>\u2066</permissions>", "1:14", "U+2066"},
		{"lone carriage return", "a.md", "---\nclass: agent\r", "2:13", "carriage return"},
		{"carriage return for a line", "a.md", "---\rclass: agent\r---\r", "1:4", "carriage return"},
		{"too large", "a.md", record("") + strings.Repeat("x", limit), "1:1", "over 1048576 bytes"},
		{"never closed", "a.md", "---\nclass: agent\n----\n --- x\n", "1:1", "never closed"},
		{"below a title", "a.md", "# Scout\n\n" + record("access: r") + "text", "3:1", "begins behind other text"},
		{"below a comment", "a.md", "<!-- ours -->\n---\nname: x\nclass: \"agent\" # yes\ncapabilities:\n\n- obs.append\n---", "2:1", "begins behind other text"},
		{"in a code fence", "a.md", "```markdown\n" + record("") + "text\n```\n", "2:1", "begins behind other text"},
		{"a zero-width space", "a.md", "\u200B" + record(""), "1:1", "begins behind other text"},
		{"four dashes", "a.md", "-" + record("access: r"), "1:1", "begins behind other text"},
		{"below a rule", "a.md", "# Scout\n---\nWho looks.\n" + record(""), "4:1", "begins behind other text"},
		{"empty YAML list", "a.yaml", "[]", "1:1", "a map of keys"},
		{"scalar", "a.yaml", "agent", "1:1", "a map of keys"},
		{"deep", "a.yaml", "class: agent\nx: " + strings.Repeat("[", 40) + strings.Repeat("]", 40), "2:35", "deeper than 32"},
		{"very deep", "a.yaml", "class: agent\nx: " + strings.Repeat("[", 20000), "2:1", "cannot be read"},
		{"alias bomb", "a.yaml", "class: agent\na: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]", "2:4", "anchors and aliases"},
		{"unknown alias", "a.yaml", "class: agent\na: *b", "1:1", "needs quotes"},
		{"alias as key", "a.yaml", "class: agent\na: &a x\n*a : b", "3:1", "anchors"},
		{"second document", "a.yaml", "class: agent\n---\n", "2:1", "second YAML document"},
		{"broken second document", "a.yaml", "class: agent\n---\n[", "3:1", "cannot be read"},
		{"document end", "a.yaml", "class: agent\n...\nx", "3:1", "cannot be read"},
		{"tag", "a.yaml", "class: !!str agent\ncapabilities: []", "1:8", "tags"},
		{"tag directive", "a.yaml", "%TAG ! x\n---\nclass: agent\nid: !y z", "4:5", "tags"},
		{"many grants", "a.md", record("capabilities: [" + strings.Repeat("obs.append,", 5000) + "]"), "3:15", "more than 4096"},
		{"many names", "a.md", record("toolset: [" + strings.Repeat("x,", 2000) + "]"), "3:10", "more than 1024"},
		{"control characters in a name", "a.md", record(`toolset: ["a\u0000"]`), "3:11", "control characters"},
		{"control characters in a root", "a.md", record(`sandbox: "a\u001b"`), "3:10", "control characters"},
		{"control characters in an id", "a.md", record(`id: "a\u001b"`), "3:5", "no agent id"},
		{"control characters in a parent", "a.md", record(`parent: "a b"`), "3:9", "no agent id"},
		{"empty sandbox", "a.md", record(`sandbox: ""`), "3:10", "takes a directory"},
		{"deep XML", "a.xml", strings.Repeat("<a>", 100) + "<permissions/>" + strings.Repeat("</a>", 100), "1:193", "deeper than 64"},
		{"deep XML in prose", "a.md", "<directive>" + strings.Repeat("<a>", 100) + "<permissions/>" + strings.Repeat("</a>", 100) + "</directive>", "1:1", "deeper than 64"},
		{"large block", "a.xml", "<permissions>" + strings.Repeat(" ", 300<<10) + "</permissions>", "1:1", "over 262144 bytes"},
		{"entity", "a.xml", "<a>&nbsp;</a><permissions/>", "1:4", "not well-formed"},
		{"encoding", "a.xml", `<?xml version="1.0" encoding="latin1"?><permissions/>`, "1:1", "not well-formed"},
		{"an id without letters", "-.md", "---\nclass: agent\nid: \"\"\n---\n", "3:5", "no agent id"},
		{"name that is no id", "a b.xml", "<permissions/>", "1:1", "no id:"},
		{"foreign key in a directive", "a.md", "---\ntoolset: [a]\nspec: {}\n---\n<permissions/>", "3:1", "no meaning"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rec, findings, err := agents.Parse(tt.file, []byte(tt.data))
			invalid := (*agents.Invalid)(nil)
			if !errors.As(err, &invalid) {
				t.Fatalf("got %+v, %v", rec, err)
			}
			if rec != nil || findings != nil {
				t.Errorf("a broken record came with %+v, %v", rec, findings)
			}
			if want := tt.file + ":" + tt.at; invalid.Pos.String() != want || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %s at %s", err, tt.says, want)
			}
			if f := invalid.Finding(); f.Code != "invalid_config" || f.Severity != capability.Error || f.Pos != invalid.Pos {
				t.Errorf("finding %+v", f)
			}
		})
	}
}

// TestGoodInput: what only looks odd is read.
func TestGoodInput(t *testing.T) {
	for name, data := range map[string]string{
		"line feeds":       "---\nclass: agent\ncapabilities: [obs.append]\n---\nA\tB\n",
		"carriage returns": "---\r\nclass: agent\r\ncapabilities: [obs.append]\r\n---\r\nA\tB\r\n",
		"spaces":           "--- \nclass: agent\ncapabilities: [obs.append]\n---  \nA\tB\n",
		"tab as space":     "---\nclass:\tagent\ncapabilities: [obs.append]\n---\nA\tB\n",
		"json":             "---\n{\"class\": \"agent\", \"capabilities\": [\"obs.append\"]}\n---\nA\tB\n",
	} {
		t.Run(name, func(t *testing.T) {
			rec, findings, err := agents.Parse("scout.md", []byte(data))
			if err != nil || len(findings) > 0 {
				t.Fatal(err, findings)
			}
			if fmt.Sprint(rec.Grants) != "[obs.append]" || rec.Body != "A\tB\n" || rec.ID != "agents/scout" {
				t.Errorf("got %+v", rec)
			}
		})
	}
}

// TestNoAgent: a file without the signs of an agent is none.
func TestNoAgent(t *testing.T) {
	for name, file := range map[string]string{
		"empty.md":     "",
		"prose.md":     "# Title\n",
		"front.md":     "---\ntitle: x\n---\n",
		"README.md":    "# Records\n\n```markdown\n" + record("access: r") + "text\n```\n\n---\nmore\n---\n",
		"put-away.md":  "<!--\n" + record("access: r") + "-->\n---\nx\n---\n",
		"rules.md":     "# Title\n---\nHow to write one:\nclass: agent\nand no more than that.\n---\nclass: agent\n",
		"other.md":     "# Title\n---\nclass: note\n---\n---\n\n    class: agent\n\n---\n",
		"bare.md":      "---\n---\n",
		"note.md":      "---\nclass: note\ncapabilities: [records.delete]\n---\n",
		"empty.yaml":   "",
		"remark.yaml":  "# only\n",
		"null.yaml":    "~\n",
		"compose.yaml": "services: { web: {} }\n",
		"tool.yaml":    "model: x\n",
		"named.md":     "---\nid: agents/a\ntitle: capabilities\n---\n",
		"named.yaml":   "id: agents/a\nnotes: capabilties\naccent: blue\n",
		"other-id.md":  "---\nid: notes/a\ncapabilties: [fs.read]\n---\n",
	} {
		if rec, _, err := agents.Parse(name, []byte(file)); !errors.Is(err, agents.ErrNoAgent) {
			t.Errorf("%s: got %+v, %v", name, rec, err)
		}
	}
}

// TestParseMisspelt: a file with the id of an agent that is none for a slip of the pen is not passed over.
func TestParseMisspelt(t *testing.T) {
	for name, want := range map[string]string{
		"a.md\n---\nid: agents/a\ncapabilties: [fs.read]\n---\n": `a.md:3:1: "capabilties" is no key of an agent record; did you mean capabilities?`,
		"a.yaml\nid: agents/a\nCapability: [fs.read]\n":          `a.yaml:2:1: "Capability" is no key of an agent record; did you mean capabilities?`,
	} {
		name, file, _ := strings.Cut(name, "\n")
		var invalid *agents.Invalid
		if _, _, err := agents.Parse(name, []byte(file)); !errors.As(err, &invalid) || invalid.Error() != want {
			t.Errorf("%q: %v, want %s", file, err, want)
		}
	}
}

// TestDoubt: of a file among the records that holds no agent it is said, unless it is prose or says that it is something else.
func TestDoubt(t *testing.T) {
	const note = "note: the file holds no agent [no_agent]; an agent's has class: agent, or capabilities:"
	for file, want := range map[string]string{
		"a.md\n---\nid: s\ncapabilites:\n  - fs.read: { paths: [docs] }\n---\n": "a.md:3:1: warning: the file holds no agent [no_agent]; did you mean capabilities:?",
		"a.md\n---\nid: s\nCapabilities: [fs.read]\n---\n":                      "a.md:3:1: warning: the file holds no agent [no_agent]; did you mean capabilities:?",
		"a.yml\nid: s\ncapability: [fs.read]\n":                                 "a.yml:2:1: warning: the file holds no agent [no_agent]; did you mean capabilities:?",
		"a.md\n---\nid: s\nclass: agnet\ncapabilities: [fs.read]\n---\n":        "a.md:3:8: warning: the file holds no agent [no_agent]; did you mean class: agent?",
		"a.md\n---\nid: s\npermissions: [fs.read]\n---\n":                       "a.md:3:1: warning: the file holds no agent [no_agent]; write capabilities: with what it may do",
		"a.md\n---\nname: s\ntools: [Read]\n---\nYou are the scout.\n":          "a.md:1:1: " + note,
		"a.yml\nservices: { web: {} }\n":                                        "a.yml:1:1: " + note,
		"a.md\n":                                                                "a.md:1:1: note: the file is empty, and holds no agent [no_agent]; write a record, or delete it",
		"a.md\n \n\n":                                                           "a.md:1:1: note: the file is empty, and holds no agent [no_agent]; write a record, or delete it",
		"a.md\n# How to write records\n":                                        "",
		"a.md\n---\n---\ntext\n":                                                "",
		"a.md\n---\nclass: event\ncapabilites: [x]\n---\n":                      "",
		"a.yml\nkind: Deployment\nspec: {}\n":                                   "",
		"a.md\n---\nclass: agent\ncapabilities: [records.read]\n---\n":          "",
	} {
		name, text, _ := strings.Cut(file, "\n")
		dir := t.TempDir()
		write(t, dir, name, text)
		var got []string
		for _, f := range mustLoad(t, dir).Findings() {
			got = append(got, strings.TrimPrefix(f.String(), dir+"/"))
		}
		if strings.Join(got, "\n") != want {
			t.Errorf("%q: %q, want %q", file, got, want)
		}
	}
}

// TestParseTime: no text of the size that is allowed takes long to refuse.
func TestParseTime(t *testing.T) {
	const size, most = 1<<20 - 100, 20 * time.Second // a race detector on a busy machine; unhindered it is a tenth
	fill := func(head, unit string) string { return head + strings.Repeat(unit, (size-len(head))/len(unit)) }
	for name, data := range map[string]string{
		"brackets":   fill("class: agent\nx: ", "["),
		"braces":     fill("class: agent\nx: ", "{a: "),
		"dashes":     fill("class: agent\nx:\n", "- "),
		"keys":       fill("class: agent\n", "? "),
		"quotes":     fill("class: agent\nx: ", `"a" `),
		"rules":      fill("```x", "\n---\nclass: agent\n<!--\n"),
		"entries":    fill("class: agent\ncapabilities:\n", "- a.b\n"),
		"indents":    fill("class: agent\nx:\n", " a:\n "),
		"directives": fill("---\nparent: a\n---\n", "<directive>"),
		"tags":       fill("---\nparent: a\n---\n", "<permissions>"),
		"fences":     fill("---\nparent: a\n---\n", "```\n"),
		"comments":   fill("---\nparent: a\n---\n<permissions/>", "<!--"),
	} {
		t.Run(name, func(t *testing.T) {
			file := "a.md"
			if strings.HasPrefix(data, "class") {
				file = "a.yaml"
			}
			start := time.Now()
			agents.Parse(file, []byte(data))
			if took := time.Since(start); took > most {
				t.Errorf("took %s", took)
			}
			t.Log(time.Since(start))
		})
	}
}
