package agents

import "strings"

// fenced is a code fence in Markdown.
type fenced struct {
	info       string // the first word after the fence: its language
	start, end int    // of what stands in it
	closed     bool
}

// fences finds the code fences of a Markdown text.
func fences(text string) []fenced {
	var out []fenced
	open, mark := false, ""
	for at := 0; at < len(text); {
		line, _, _ := strings.Cut(text[at:], "\n")
		next := min(at+len(line)+1, len(text))
		run, rest := fenceOf(line)
		switch {
		case !open && run != "":
			info, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
			out = append(out, fenced{info: info, start: next, end: len(text)})
			open, mark = true, run
		case open && strings.HasPrefix(run, mark) && strings.TrimSpace(rest) == "":
			out[len(out)-1].end, out[len(out)-1].closed = at, true
			open = false
		}
		at = next
	}
	return out
}

// fenceOf returns the run of backticks or tildes that a line begins with, if it
// is long enough to be a fence, and what follows.
func fenceOf(line string) (run, rest string) {
	const shortest, deepest = 3, 3
	text := strings.TrimLeft(line, " ")
	if text == "" || len(line)-len(text) > deepest || text[0] != '`' && text[0] != '~' {
		return "", ""
	}
	rest = strings.TrimLeft(text, text[:1])
	if run = text[:len(text)-len(rest)]; len(run) < shortest || text[0] == '`' && strings.Contains(rest, "`") {
		return "", ""
	}
	return run, rest
}

// tagsOf finds the start tags of a name in a text, in any case and however the
// text is marked up.
func tagsOf(text, name string) []int {
	var found []int
	for at := range len(text) {
		if text[at] == '<' && strings.EqualFold(tagName(text[at+1:]), name) {
			found = append(found, at)
		}
	}
	return found
}

func holdsTag(text, name string) bool { return len(tagsOf(text, name)) > 0 }

// tagName returns the name that a start tag begins with, without its prefix.
func tagName(text string) string {
	end := 0
	for end < len(text) && (isNameByte(text[end]) || text[end] == ':') {
		end++
	}
	return text[strings.LastIndexByte(text[:end], ':')+1 : end]
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
}
