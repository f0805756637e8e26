package skills_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"capgate/skills"
)

// TestReferences: Claude Code takes a reference for blank before it looks for mentions, so
// that a path in quotes goes on behind it, and a word ends there.
func TestReferences(t *testing.T) {
	for body, reads := range map[string]bool{
		"@\"docs @[a](claude-ref:x \"y\")/../../outside.txt\" now": true,
		"@\"docs @[a](claude-ref:x \"/../../outside.txt\"":         true,
		"@\"docs\n@[a] x \")/../../x\"":                            true,
		"@\"docs @[a\" b":                                          true,
		"@etc@[a](claude-ref:x \"y\")":                             true,
		"@root)":                                                   true, "@Usr-!": true, "(@home#3/)": true, "@srv`/": true, "@opté": true,
		"@docs@[a](claude-ref:x \"y\")/x": false, "@[a](claude-ref:x \"y\") @\"docs\"": false, "@\"docs\" @[a](x)": false,
		"@root-cause, @etcetera and @home_page/x": false,
	} {
		s := skills.Parse("one", []byte(top+"---\n"+body), skills.Options{})
		if got := len(s.Needs) == 1 && s.Needs[0].Spec.Verb == "fs.read"; got != reads || !reads && len(s.Needs) > 0 {
			t.Errorf("%q: needs %v", body, s.Needs)
		}
	}
}

// TestMentionCost: a text of nothing but what may begin one is looked through once.
func TestMentionCost(t *testing.T) {
	for _, piece := range []string{"@", `@"`, "@a", "@$ ", "@/.", "\"@'", "@$", "@é", "@é ", "@é/", "$@", "!$`$", "$1`", "$1!", "$abab", "$abab`!", "$1$1`", "$1/", "$1..", "$1/.", "$1 /../a ", "$ARGUMENTS", "$ARGUMENTS[0"} {
		start := time.Now()
		skills.Parse("one", []byte(top+"arguments: "+strings.Repeat("aba abab baba ", 40)+"\n---\n"+strings.Repeat(piece, (900<<10)/len(piece))), skills.Options{})
		if took := time.Since(start); took > time.Minute {
			t.Errorf("%q: %s", piece, took)
		}
	}
}

// TestMentionedFiles: a mention is of every file that it may be: to some it ends at a comma or at the first letter
// of another script, and what a client fills in may be nothing.
func TestMentionedFiles(t *testing.T) {
	for body, runs := range map[string]bool{
		"see @no$1tes.md": true, "see @more/no$issuetes.md": true, "see @\"no $1 tes.md\"": true, "see @no$1des.md": false,
		"see @notes.md,too": true, "@more/notes.md,or/others": true, "@notes.md\u7684\u5185\u5bb9": true, "@./notes.md`x": true, "@more\\notes.md:": true, "@my-notes.md, x@notes.md": false,
		strings.Repeat("@no$1des ", 1<<10): false,
	} {
		got := outline(skills.Load(options(), tree(t, map[string]string{
			"a/SKILL.md": md("a", "arguments: issue", "allowed-tools: Read") + body, "a/more/notes.md": "now: !`date`", "a/x/y.md": "`x`!",
		})))
		if strings.HasSuffix(got["a"], "proc.eval") != runs {
			t.Errorf("%.80q: %v", body, got)
		}
	}
}

// TestMentionedFilesCost: mentions are held against the files of a skill
// only so often. In what has more of them there may be commands.
func TestMentionedFilesCost(t *testing.T) {
	for _, test := range []struct {
		text string
		most int // files beside it
	}{
		{strings.Repeat("@no$1des ", 100<<10), 500},
		{strings.Repeat(strings.Repeat("@", 60)+strings.Repeat("é", 110)+" ", 3<<10), 1},
	} {
		files := map[string]string{"a/SKILL.md": md("a", "allowed-tools: Read") + test.text}
		for i := range test.most {
			files[fmt.Sprintf("a/%d.md", i)] = "x"
		}
		start := time.Now()
		got := outline(skills.Load(options(), tree(t, files)))
		if took := time.Since(start); !strings.HasSuffix(got["a"], "proc.eval") || took > time.Minute {
			t.Errorf("%v after %s", got, took)
		}
	}
}
