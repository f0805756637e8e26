package skills

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"capgate/capability"
)

// maxFilled is how many $ of a text are looked at, and how many names at all of them together.
// In what has more there may be anything.
const maxFilled = 1 << 17

// injected returns what a client does by itself when it loads the skill. It runs commands
// of hooks, and those that its text holds as !`date` or behind ```!, which need not begin
// a line: all of them need a shell. It reads the files that are mentioned as @/etc/hosts, and
// lets agents be started that are mentioned as @general.
func injected(h *head, text string) []Need {
	var needs []Need
	need := func(token, verb string) {
		if token != "" {
			needs = append(needs, Need{Token: token, Spec: capability.Spec{Verb: verb, Bare: true}, Untold: true})
		}
	}
	if h.hooks {
		needs = evaluated("hooks")
	}
	if strings.Count(text, "$")*(1+len(h.names)) > maxFilled || isSplit(text, h.names) {
		for _, verb := range []string{"proc.eval", "fs.read", "agent.create"} {
			need("$", verb)
		}
		return needs
	}
	// A name of the skill's own choice may stand between these, and be taken out.
	veiled := func(marks ...string) string {
		if h.veils && strings.Contains(text, "$") && !slices.ContainsFunc(marks, func(mark string) bool { return !strings.Contains(text, mark) }) {
			return argumentsKey
		}
		return ""
	}
	need(cmp.Or(commandIn(text), typedIn(text, h.names), h.unnamed(text), veiled("!", "`"), veiled("!", "~")), "proc.eval")
	need(cmp.Or(pathIn(text), ledOut(text, h.names), veiled("@"), veiled(".", "/"), veiled(".", `\`)), "fs.read")
	need(cmp.Or(agentIn(text), veiled("@")), "agent.create")
	return needs
}

// unnamed reports what a client may fill in by names that nobody knows here. Where that is
// what is typed, which may end in ! and `, it may be part of a command.
func (h *head) unnamed(text string) string {
	if h.odd && strings.Contains(text, "$") {
		return argumentsKey
	}
	return ""
}

// isSplit reports whether more may be filled in once something was. Clients do one kind after
// the other, and what nothing was typed for is nothing: without $9, $ARG$9UMENTS is all that
// is typed, and $$ARGUMENTS[9]9 is $9. Names come first, so that what is typed for one may be
// the rest: $$issue is $1 where that is 1.
func isSplit(text string, names []string) bool {
	others := strings.Join(names, "")
	inName := func(r rune) bool {
		return r != '$' && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_[]", r) || strings.ContainsRune(others, r))
	}
	for at := 0; ; at++ {
		next := strings.IndexByte(text[at:], '$')
		if next < 0 {
			return false
		}
		at += next
		if !strings.HasSuffix(strings.TrimRightFunc(text[:at], inName), "$") {
			continue
		}
		if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(text[at+1:], name) }) {
			return true
		}
		for size := range places(text[at:], nil) {
			if behind, _ := utf8.DecodeRuneInString(text[at+size:]); behind == '$' || inName(behind) {
				return true
			}
		}
	}
}

// Prompt is what clients do by themselves with the text of a prompt, which they run like
// that of a skill.
func Prompt(text string) *Skill {
	return &Skill{Path: "prompt", Needs: injected(new(head), text)}
}

// injection finds the first command that a text has run for it. The whole file is
// searched, since readers do not agree on where the frontmatter ends; nor do they on what
// may stand before the !, so that `println!` is where a command begins to some, which ends at
// the next ` that is there, or in what a user has typed, as clients put that behind it all.
func injection(text string) string {
	for rest := text; ; {
		_, behind, found := strings.Cut(rest, "!`")
		if !found {
			break
		}
		if end := strings.IndexByte(behind, '`'); end != 0 {
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

// commandIn finds a command in a text, also once what a client fills in is nothing, or a
// blank. Clients do not agree on how long a name is behind a $: all that may be one is taken
// out, so that the command may be what is left of it.
func commandIn(text string) string {
	found := injection(text)
	if found != "" || !strings.Contains(text, "$") || !strings.Contains(text, "!") {
		return found
	}
	for _, fill := range []string{"", " "} {
		short := replaced(text, fill)
		if found = injection(short); found != "" {
			return found
		}
		if found = injection(strings.ReplaceAll(short, "!``", "!`$`")); found != "" {
			return found
		}
	}
	return ""
}

// typedIn finds a command in a text that only what its user types makes one, which may begin
// or end in ` and ```, or end in !: with `go test`, a !$1 of the skill's begins one, and with
// "why does it fail!" a $1` does. Names are what the skill calls what is typed.
func typedIn(text string, names []string) string {
	last := strings.LastIndexByte(text, '$')
	for last >= 0 && !isPlace(text[last:], names) {
		last = strings.LastIndexByte(text[:last], '$')
	}
	quote, fence := strings.LastIndexByte(text, '`'), strings.LastIndex(text, "```")
	for at := 0; at <= last; at++ {
		next := strings.IndexByte(text[at:last+1], '$')
		at += next
		for size := range places(text[at:], names) {
			end := at + size
			behind := strings.TrimPrefix(strings.TrimPrefix(text[end:], "`"), "`")
			switch ticks := len(text) - len(behind) - end; {
			case end <= last && text[end] == '$' && isPlace(text[end:], names): // where what is typed may be ! and `
				return clip(text[at:])
			case at > 0 && text[at-1] == '!':
				return clip(text[at-1 : end])
			case ticks == 1 && (quote > end+1 || last > end), strings.HasPrefix(behind, "!") && max(fence, last) > end+ticks:
				return clip(text[at:])
			}
		}
	}
	return ""
}

// ledOut finds where a text leads out of a folder that its user may mention: of @src, in the
// place of $1, is made @src/../../x.
func ledOut(text string, names []string) string {
	up, blank, hidden := -1, -1, false // the last: a .. once something else is filled in
	for at := 0; ; at++ {
		next := strings.IndexByte(text[at:], '$')
		if next < 0 {
			return ""
		}
		at += next
		for size := range places(text[at:], names) {
			end := at + size
			if up < end {
				up = end + untilUp(text[end:])
			}
			if blank < end {
				blank = wordEnd(text, end)
				word := text[end:blank]
				hidden = strings.Contains(word, "$") && strings.Count(word, ".") > 1 && strings.ContainsAny(word, `/\`) && (len(names) > 0 || leavesUp(word))
			}
			if up < blank || hidden || isUp(text[end:], names) {
				return clip(text[at:blank])
			}
		}
	}
}

// leavesUp reports whether there is a .. in a word once all that is filled in is nothing.
func leavesUp(word string) bool {
	notADot := func(r rune) bool { return r != '.' }
	return slices.ContainsFunc([]string{emptied(word, false), emptied(word, true)}, func(short string) bool {
		return slices.Contains(strings.FieldsFunc(short, notADot), "..")
	})
}

// emptied is a word without what is filled in, of which clients take the shortest or the
// longest there may be.
func emptied(word string, longest bool) string {
	var b strings.Builder
	for {
		at := strings.IndexByte(word, '$')
		if at < 0 {
			b.WriteString(word)
			return b.String()
		}
		size := 0
		for n := range places(word[at:], nil) {
			if size == 0 || longest {
				size = n
			}
		}
		if size == 0 { // it is no place
			at++
		}
		b.WriteString(word[:at])
		word = word[at+size:]
	}
}

// untilUp is how far it is to the next .. behind a slash.
func untilUp(text string) int {
	for at := 0; ; at++ {
		next := strings.IndexAny(text[at:], `/\`)
		if next < 0 {
			return len(text)
		}
		at += next
		if behind, ok := strings.CutPrefix(text[at+1:], ".."); ok && (behind == "" || strings.IndexByte(wordBytes+".-", behind[0]) < 0) {
			return at
		}
	}
}

// isUp reports whether a path leads up behind what a user may have typed, which may end in a
// dot, as @. does. What else is filled in may be nothing, so that it counts for none.
func isUp(path string, names []string) bool {
	const most = 64 // bytes that are looked at
	var dots [most + 1][3]bool
	dots[0][0] = true
	for at := range min(len(path), most) {
		for n, ok := range dots[at] {
			switch c := path[at]; {
			case !ok:
			case c == '.' && n < 2:
				dots[at+1][n+1] = true
			case c == '$':
				for size := range places(path[at:], names) {
					dots[min(at+size, most)][n] = true
				}
			case n > 0 && strings.IndexByte(`/\#`, c) >= 0:
				return true
			}
		}
	}
	return dots[most] != [3]bool{} // what is filled in that far may be anything
}

// isPlace reports whether a text begins with what is filled in.
func isPlace(text string, names []string) bool {
	for range places(text, names) {
		return true
	}
	return false
}

// places yields how long what is filled in may be that a text begins with.
func places(text string, names []string) iter.Seq[int] {
	const digits, all = "0123456789", "ARGUMENTS"
	return func(yield func(int) bool) {
		rest := text[1:]
		if number := strings.TrimLeft(rest, digits); number != rest && !yield(len(text)-len(number)) {
			return
		}
		if behind, ok := strings.CutPrefix(rest, all); ok {
			index, opened := strings.CutPrefix(behind, "[")
			after, closed := strings.CutPrefix(strings.TrimLeft(index, digits), "]")
			if !yield(1+len(all)) || opened && closed && !yield(len(text)-len(after)) {
				return
			}
		}
		for _, name := range names {
			if strings.HasPrefix(rest, name) && !yield(1+len(name)) {
				return
			}
		}
	}
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

// Where clients find what to start, in the folder that they work in. Whatever lies in one of
// the folders may say so.
var (
	startFolders = strings.Fields(".amazonq .amp .augment .claude .codebuddy .codex .continue .cursor .factory .gemini .kiro .opencode .pi .qwen .roo .vscode .windsurf .zed")
	startFiles   = strings.Fields(`.mcp.json mcp.json managed-mcp.json mcp-config.json mcp_config.json mcp_settings.json cline_mcp_settings.json
		.claude.json .claude.json.backup tui.json tui.jsonc claude_desktop_config.json gemini-extension.json .crush.json crush.json opencode.json opencode.jsonc .opencode.json
		zed/settings.json amp/settings.json goose/config.yaml mcporter.json mcporter.jsonc capgate.yml`)
)

// laid returns what the files of a skill require by their names: those that make clients
// load a folder as a plugin, and those that tell them what to run where they work in it,
// have programs, servers and hooks start by themselves. Skills in a folder of an agent's
// are read as such.
func laid(files []string) []Need {
	for _, name := range files {
		segments := strings.Split(oneCase(name), "/")
		for i, seg := range segments[:len(segments)-1] {
			of := slices.Contains(startFolders, seg) && segments[i+1] != "skills" || seg == ".github" && (segments[i+1] == "hooks" || segments[i+1] == "copilot")
			if of || seg == ".plugin" || strings.HasPrefix(seg, ".") && strings.HasSuffix(seg, "-plugin") {
				return evaluated(name)
			}
		}
		whole := "/" + strings.Join(segments, "/")
		if slices.ContainsFunc(startFiles, func(file string) bool { return strings.HasSuffix(whole, "/"+file) }) {
			return evaluated(name)
		}
	}
	return nil
}

// evaluated is the need of a file that a client runs something for.
func evaluated(name string) []Need {
	return []Need{{Token: clip(name), Spec: capability.Spec{Verb: "proc.eval", Bare: true}}}
}
