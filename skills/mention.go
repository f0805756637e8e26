package skills

import (
	"iter"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

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

// maxMention is as long as what is looked for may be: a name of an agent, or of a file.
const maxMention = 512

// mentions yields what stands behind each @ of a text that begins something: the word, or
// what is within quotes, and the last name of the path that it may be.
func mentions(text string) iter.Seq2[string, string] {
	short := func(word string) string { return word[:min(len(word), maxMention)] }
	return func(yield func(word, last string) bool) {
		at, end, slash := 0, 0, 0 // of the word
		for {
			i := strings.IndexByte(text[at:], '@')
			if i < 0 {
				return
			}
			if at += i + 1; at > end {
				end = wordEnd(text, at)
				slash = at + strings.LastIndexAny(text[at:end], `/\`)
			}
			if at > 1 && strings.IndexByte(wordBytes, text[at-2]) >= 0 {
				continue
			}
			word, last := text[at:end], text[max(at, slash+1):end]
			if quoted, ok := strings.CutPrefix(text[at:], `"`); ok {
				word, _, _ = strings.Cut(quoted, `"`)
				last = word[strings.LastIndexAny(word, `/\`)+1:]
			}
			if !yield(short(word), short(last)) {
				return
			}
		}
	}
}

// agentNames are the agents that opencode comes with. Whoever mentions one there has
// subagents started without asking.
var agentNames = strings.Fields("build compaction explore general plan summary title")

// agentIn finds the first agent that a text mentions, as far as its name can be known.
func agentIn(text string) string {
	for word := range mentions(text) {
		if names(word) {
			return clip("@" + word)
		}
	}
	return ""
}

// names reports whether a word is the name of an agent, or may be once something is filled in.
func names(word string) bool {
	if word == "" || strings.IndexByte("abcdefghijklmnopqrstuvwxyz0123456789$-", word[0]) < 0 {
		return strings.HasSuffix(word, " (agent)")
	}
	name := word
	if i := strings.IndexAny(word, "`,"); i >= 0 {
		name = word[:i]
	}
	name, _, _ = strings.Cut(name, "..")
	name = strings.TrimSuffix(name, ".")
	return slices.Contains(agentNames, name) || strings.HasPrefix(word, "agent-") || strings.HasSuffix(word, " (agent)") ||
		strings.Contains(word, "$") && slices.ContainsFunc(agentNames, func(agent string) bool { return isWithin(agent, word) })
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

// maxChained is how many bytes of a file are searched that is mentioned. In a longer one
// there may be commands.
const maxChained = 256 << 10

// chained finds the file whose commands are run by a client that puts in what a text
// mentions, and what that mentions in turn.
func chained(text []byte, beside map[string][]byte) string {
	called := map[string][]string{} // by the last name of their paths
	for name := range beside {
		last := oneCase(path.Base(name))
		called[last] = append(called[last], name)
	}
	for next := [][]byte{text}; len(next) > 0; next = next[1:] {
		for _, last := range mentions(string(next[0])) {
			for _, last := range lastNames(last) {
				for _, name := range called[last] {
					if len(beside[name]) > maxChained || injection(string(beside[name])) != "" {
						return name
					}
					next = append(next, beside[name])
				}
				delete(called, last)
			}
		}
	}
	return ""
}

// lastNames are what the file may be called that is mentioned: with or without what follows
// it in a sentence, or the line that is meant.
func lastNames(text string) [3]string {
	last := oneCase(text)
	file, _, _ := strings.Cut(last, "#")
	return [...]string{last, file, strings.TrimRightFunc(last, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })}
}
