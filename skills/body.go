package skills

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"capgate/capability"
)

// injected returns what a client runs by itself when it loads the skill: commands of
// hooks, and those that its text holds as !`date` or in a block that begins with
// ```!. Both need a shell.
func injected(h *head, text []byte) []Need {
	var needs []Need
	if h.hooks {
		needs = append(needs, Need{Token: "hooks", Spec: capability.Spec{Verb: "proc.eval", Bare: true}})
	}
	if found := injection(string(text)); found != "" {
		needs = append(needs, Need{Token: found, Spec: capability.Spec{Verb: "proc.eval", Bare: true}})
	}
	return needs
}

// injection finds the first command that a text has run for it. The whole file is
// searched, since readers do not agree on where the frontmatter ends. A ! behind a
// letter or a quote is taken for text, as in println!.
func injection(text string) string {
	for at := 0; ; {
		i := strings.Index(text[at:], "!`")
		if i < 0 {
			break
		}
		at += i
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		rest := text[at+len("!`"):]
		if end := strings.IndexByte(rest, '`'); end > 0 && !unicode.IsLetter(before) && !unicode.IsDigit(before) && before != '`' && before != '_' {
			return clip("!`" + rest[:end+1])
		}
		at += len("!`")
	}
	for line := range strings.Lines(text) {
		line = strings.TrimLeft(line, " \t>")
		fence := strings.TrimLeft(line, "`~")
		if len(line)-len(fence) >= 3 && strings.HasPrefix(strings.TrimLeft(fence, " \t"), "!") {
			return "```!"
		}
	}
	return ""
}
