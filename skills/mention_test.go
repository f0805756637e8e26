package skills_test

import (
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
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%q: %s", piece, took)
		}
	}
}
