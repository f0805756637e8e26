package skills

import (
	"iter"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// mention is what stands behind an @ that begins a word, or would once a client has filled
// something in.
type mention struct {
	word   string // to the next blank
	path   string // the same, or what is within quotes
	last   string // the last name of that path
	out    bool   // it goes up, or something is filled in
	filled bool   // something is
	quoted bool
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

// mentions yields the mentions of a text, each in about the time that its word takes.
func mentions(text string) iter.Seq[mention] {
	return func(yield func(mention) bool) {
		var at, end, slash, up, dollar int // the last three within the word
		for {
			i := strings.IndexByte(text[at:], '@')
			if i < 0 {
				return
			}
			before := text[at : at+i]
			begins, quotes := at+i == 0 || strings.IndexByte(wordBytes, text[at+i-1]) < 0 || endsFilled(before), at+i == 0 || opensQuote(before)
			if at += i + 1; at > end {
				end = wordEnd(text, at)
				word := text[at:end]
				slash, dollar = at+strings.LastIndexAny(word, `/\`), at+strings.LastIndexByte(word, '$')
				up = at + max(strings.LastIndex(word, "/.."), strings.LastIndex(word, `\..`))
			}
			if !begins {
				continue
			}
			m := mention{word: text[at:end], path: text[at:end], last: text[max(at, slash+1):end], filled: dollar >= at}
			m.out = m.filled || up >= at
			if quoted, ok := strings.CutPrefix(text[at:], `"`); ok && quotes {
				m = m.within(quoted)
			}
			if !yield(m) {
				return
			}
		}
	}
}

// reference is what begins one to something else. Claude Code takes what follows for blank,
// quotes as well, before it looks for the one that ends a path.
const reference = "@["

// within takes what follows a quote for the path, up to the next one, which what a user has
// typed may bring. Clients take the blanks around it for none of it.
func (m mention) within(text string) mention {
	inner, _, closed := strings.Cut(text, `"`)
	inner = strings.TrimFunc(inner, isBlank)
	m.quoted, m.path, m.last = true, inner, inner[strings.LastIndexAny(inner, `/\`)+1:]
	m.filled = m.filled || !closed || strings.Contains(inner, "$") || strings.Contains(inner, reference)
	m.out = m.out || m.filled || leadsOut(inner) || strings.Contains(strings.ReplaceAll(inner, `\`, "/"), "/..")
	return m
}

// endsFilled reports whether a text ends in what may be filled in: a $ and a name.
func endsFilled(text string) bool {
	i := strings.LastIndexByte(text, '$')
	return i >= 0 && strings.TrimLeftFunc(text[i+1:], func(r rune) bool { return isWordRune(r) || strings.ContainsRune("{}[]", r) }) == ""
}

// opensQuote reports whether a path in quotes may be mentioned behind a text: behind a blank,
// a mark of other scripts or what is filled in, and not behind the $ of a shell's "$@".
func opensQuote(text string) bool {
	last, _ := utf8.DecodeLastRuneInString(text)
	return isBlank(last) || last >= utf8.RuneSelf || endsFilled(text) && last != '$'
}

// pathIn finds the first path that a text mentions and that leads out of the folder that a
// client works in.
func pathIn(text string) string {
	for m := range mentions(text) {
		if m.out || leadsOut(strings.TrimLeft(m.word, "\"'`")) {
			return clip("@" + m.word)
		}
	}
	return ""
}

// wordBytes are the bytes behind which an @ begins nothing.
const wordBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_`"

// folderBytes are the bytes that the name of a folder goes on with. Clients take what else ends
// a word, and a - at the end, for none of it.
const folderBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

// topFolders are where a path that begins with no slash leads, for a client that works at
// the top.
var topFolders = strings.Fields(`applications library system users volumes windows app bin boot code data dev etc home lib lib64
	media mnt nix opt private proc root run sbin snap srv sys tmp usr var workspace workspaces`)

// bareFolders are those of them that are no ordinary words, as @media and @private are.
var bareFolders = strings.Fields("applications etc home mnt opt proc root srv tmp users usr volumes")

// leadsOut reports whether a path begins elsewhere than below the folder that a client works
// in. Others are not counted: @acme/tool is no file at all.
func leadsOut(path string) bool {
	if path == "" {
		return false
	}
	const longest = 16 // of what is at the top
	if strings.IndexByte(`/~.\$`, path[0]) >= 0 {
		return true
	}
	begin := path[:min(len(path), longest)]
	if end := strings.IndexAny(begin, `/\`); end > 0 && (path[end-1] == ':' || slices.Contains(topFolders, oneCase(path[:end]))) {
		return true
	}
	rest := strings.TrimLeft(begin, folderBytes)
	name := strings.TrimRight(begin[:len(begin)-len(rest)], "-") // a folder itself
	return slices.ContainsFunc(bareFolders, func(folder string) bool { return strings.EqualFold(folder, name) })
}

// agentNames are the agents that opencode comes with. Whoever mentions one there has
// subagents started without asking.
var agentNames = strings.Fields("build compaction explore general plan summary title")

// How Claude Code takes a word for the name of an agent.
const (
	agentMark = "agent-"
	agentTail = " (agent)"
)

// agentIn finds the first agent that a text mentions, as far as its name can be known.
func agentIn(text string) string {
	for m := range mentions(text) {
		if m.isAgent() {
			return clip("@" + m.path)
		}
	}
	return ""
}

func (m mention) isAgent() bool {
	const longest = 64 // of what is looked at where something is filled in
	switch {
	case strings.HasPrefix(m.path, agentMark) || m.quoted && strings.HasSuffix(m.path, agentTail) || m.filled && len(m.path) > longest:
		return true
	case m.filled:
		holds := func(name string) bool { return isWithin(name, m.path) }
		return slices.ContainsFunc(agentNames, holds) || holds(agentMark) || m.quoted && holds(agentTail) || !m.quoted && strings.Contains(m.word, `"`)
	}
	name := m.path[:min(len(m.path), longest)]
	if i := strings.IndexAny(name, "`,"); i >= 0 {
		name = name[:i]
	}
	name, _, _ = strings.Cut(name, "..")
	return slices.Contains(agentNames, strings.TrimSuffix(name, "."))
}

// isWithin reports whether a word would be left if something else were taken out of another.
func isWithin(word, other string) bool {
	for i := 0; i < len(other) && word != ""; i++ {
		if other[i] == word[0] {
			word = word[1:]
		}
	}
	return word == ""
}

// maxChained is how many bytes of the files are searched that are mentioned, and maxHeld what it may take
// to hold mentions against them. In what is longer there may be commands.
const (
	maxChained = 1 << 20
	maxHeld    = 4 << 20
)

// chained finds the file whose commands are run by a client that puts in what a text
// mentions, and what that mentions in turn.
func chained(text []byte, beside map[string][]byte) string {
	called, left, held := map[string][]string{}, maxChained, maxHeld // by the last name of their paths
	for name := range beside {
		last := oneCase(path.Base(name))
		called[last] = append(called[last], name)
	}
	for next := [][]byte{text}; len(next) > 0; next = next[1:] {
		for m := range mentions(string(next[0])) {
			if held -= len(called) + min(len(m.path), longestMention); held < 0 {
				return clip("@" + m.word)
			} else if len(called) == 0 {
				return "" // all that there is was put in
			}
			folded := m.folded()
			for name := range called {
				if !m.mayBe(name, folded) {
					continue
				}
				for _, file := range called[name] {
					if left -= len(beside[file]); left < 0 || commandIn(string(beside[file])) != "" {
						return file
					}
					next = append(next, beside[file])
				}
				delete(called, name) // it is put in once
			}
		}
	}
	return ""
}

// longestMention is how many bytes of one are looked at. A longer one may be anything.
const longestMention = 300

// folded is the path that is mentioned, as names are compared.
func (m mention) folded() string {
	return "/" + strings.ReplaceAll(oneCase(m.path[:min(len(m.path), longestMention)]), `\`, "/")
}

// mayBe reports whether a file of a name may be meant. Clients do not agree on where a mention
// ends: at a comma, at what is no letter in English. Of what is filled in nothing may be left.
func (m mention) mayBe(name, folded string) bool {
	return len(m.path) > longestMention || strings.Contains(folded, "/"+name) || m.filled && isWithin(name, folded)
}
