package skills

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"capgate/capability"
)

// injected returns what a client does by itself when it loads the skill. It runs commands
// of hooks, and those that its text holds as !`date` or behind ```!, which need not begin
// a line: all of them need a shell. And it reads the files that are mentioned as @/etc/hosts.
func injected(h *head, text []byte) []Need {
	var needs []Need
	if h.hooks {
		needs = append(needs, Need{Token: "hooks", Spec: capability.Spec{Verb: "proc.eval", Bare: true}})
	}
	found := injection(string(text))
	for _, fill := range []string{"", " "} {
		if found == "" {
			found = injection(filled(string(text), fill))
		}
	}
	if found == "" && h.veils && slices.ContainsFunc([]string{"!$", "`$", "!`"}, func(mark string) bool { return strings.Contains(string(text), mark) }) {
		found = argumentsKey
	}
	if found != "" {
		needs = append(needs, Need{Token: found, Spec: capability.Spec{Verb: "proc.eval", Bare: true}})
	}
	if found := mentioned(string(text)); found != "" {
		needs = append(needs, Need{Token: found, Spec: capability.Spec{Verb: "fs.read", Bare: true}})
	}
	return needs
}

// Prompt is what clients do by themselves with the text of a prompt, which they run like
// that of a skill.
func Prompt(text string) *Skill {
	return &Skill{Path: "prompt", Needs: injected(new(head), []byte(text))}
}

// mentioned finds the first file that a text has read for it, also once what a client
// fills in is nothing, or a blank.
func mentioned(text string) string {
	found := mention(text)
	for _, fill := range []string{"", " "} {
		if found == "" && strings.Contains(text, "$") {
			found = mention(replaced(text, fill))
		}
	}
	return found
}

// mention finds a path behind an @ that begins a word, or that stands there in quotes.
// Readers do not agree on what a word begins behind; it is no letter of ASCII.
func mention(text string) string {
	for at := 0; at < len(text); {
		end := wordEnd(text, at)
		if found := mentionIn(text, at, end); found != "" {
			return clip(found)
		}
		_, width := utf8.DecodeRuneInString(text[end:])
		at = end + width
	}
	return ""
}

// wordEnd is where the word that begins at a place ends. A blank behind a \ is part of it.
func wordEnd(text string, at int) int {
	for i, r := range text[at:] {
		if isBlank(r) && (i == 0 || text[at+i-1] != '\\') {
			return at + i
		}
	}
	return len(text)
}

// isBlank reports whether a character ends a word for clients, which are of JavaScript.
func isBlank(r rune) bool { return unicode.IsSpace(r) && r != '\u0085' || r == '\ufeff' }

// mentionIn finds the first one in a word.
func mentionIn(text string, at, end int) string {
	word := text[at:end]
	up := max(strings.LastIndex(word, "/.."), strings.LastIndex(word, `\..`), strings.LastIndexByte(word, '$'))
	for i := range len(word) {
		if word[i] != '@' || at+i > 0 && strings.IndexByte(wordBytes, text[at+i-1]) >= 0 {
			continue
		}
		rest := strings.TrimLeft(word[i+1:], `"'`)
		if up > i || leadsOut(rest) {
			return word[i:]
		}
		if quoted, ok := strings.CutPrefix(text[at+i+1:], `"`); ok {
			inner, _, closed := strings.Cut(quoted, `"`)
			if closed && (strings.Contains(inner, "$") || strings.Contains(strings.ReplaceAll(inner, `\`, "/"), "/..")) {
				return word[i:]
			}
		}
	}
	return ""
}

// wordBytes are the bytes behind which an @ begins nothing.
const wordBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_`"

// topFolders are where a path that begins with no slash leads, for a client that works at
// the top.
var topFolders = strings.Fields(`Applications Library System Users Volumes Windows app bin boot code data dev etc home lib lib64
	media mnt opt private proc root run sbin srv sys tmp usr var workspace workspaces`)

// leadsOut reports whether a path begins elsewhere than below the folder that a client works
// in. Others are not counted: @acme/tool is no file at all.
func leadsOut(path string) bool {
	if path == "" {
		return false
	}
	const longest = 16 // of what is at the top
	top, _, below := strings.Cut(strings.ReplaceAll(path[:min(len(path), longest)], `\`, "/"), "/")
	return strings.IndexByte(`/~.\$`, path[0]) >= 0 || below && (slices.Contains(topFolders, top) || strings.HasSuffix(top, ":"))
}

// injection finds the first command that a text has run for it. The whole file is
// searched, since readers do not agree on where the frontmatter ends; nor do they on what
// may stand before the !, so that `println!` and a ` behind it are a command to some.
func injection(text string) string {
	for rest := text; ; {
		_, behind, found := strings.Cut(rest, "!`")
		if !found {
			break
		}
		if end := strings.IndexByte(behind, '`'); end > 0 {
			return clip("!`" + behind[:end+1])
		}
		rest = behind
	}
	if strings.Contains(text, "```!") {
		return "```!"
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

// filled is a text in which there may be a command once something is filled in.
func filled(text, fill string) string {
	if !strings.Contains(text, "!") {
		return ""
	}
	return replaced(text, fill)
}

// replaced is a text with something in place of what a client fills in when it runs the
// skill, such as $ARGUMENTS, $1, $ARGUMENTS[0] and ${NAME}: each may stand for nothing or
// for a blank.
func replaced(text, fill string) string {
	var b strings.Builder
	for i, part := range strings.Split(text, "$") {
		if i > 0 {
			part = fill + behindName(part)
		}
		b.WriteString(part)
	}
	return b.String()
}

// isWordRune reports whether a character may be part of a name that is filled in.
func isWordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_.-", r)
}

// behindName is what follows the name that a text begins with.
func behindName(text string) string {
	inner, braced := strings.CutPrefix(text, "{")
	rest := strings.TrimLeftFunc(inner, isWordRune)
	if braced {
		if after, ok := strings.CutPrefix(rest, "}"); ok {
			return after
		}
		return text
	}
	index, after, ok := strings.Cut(rest, "]")
	if ok && strings.HasPrefix(index, "[") && strings.Trim(index[1:], "0123456789") == "" {
		return after
	}
	return rest
}

// laid returns what the files of a skill require by their names: those that make clients
// load a folder as a plugin, and those that tell them what to run where they work in it,
// have programs, servers and hooks start by themselves. Skills in a folder of an agent's
// are read as such.
func laid(files []string) []Need {
	for _, name := range files {
		segments := strings.Split(oneCase(name), "/")
		for i, seg := range segments[:len(segments)-1] {
			of := slices.Contains([]string{".claude", ".codex", ".cursor", ".gemini", ".opencode", ".vscode"}, seg) && segments[i+1] != "skills"
			if of || strings.HasPrefix(seg, ".") && strings.HasSuffix(seg, "-plugin") {
				return evaluated(name)
			}
		}
		if segments[len(segments)-1] == ".mcp.json" {
			return evaluated(name)
		}
	}
	return nil
}

// evaluated is the need of a file that a client runs something for.
func evaluated(name string) []Need {
	return []Need{{Token: clip(name), Spec: capability.Spec{Verb: "proc.eval", Bare: true}}}
}
