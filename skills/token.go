package skills

import "strings"

// Tokens splits the text of allowed-tools: at spaces and commas, except inside
// parentheses and the quotes in them. Nothing but separators is left out: what is
// never closed is part of the last token.
func Tokens(text string) []string {
	var tokens []string
	for text = strings.TrimLeft(text, separators); text != ""; text = strings.TrimLeft(text, separators) {
		end := tokenEnd(text)
		tokens = append(tokens, text[:end])
		text = text[end:]
	}
	return tokens
}

const separators = " \t\r\n,"

// tokenEnd returns where the token that a text begins with ends.
func tokenEnd(text string) int {
	var n nesting
	for i := range len(text) {
		if n.depth == 0 && strings.IndexByte(separators, text[i]) >= 0 {
			return i
		}
		n.step(text, i)
	}
	return len(text)
}

// divides reports whether readers split a text at different places: some count
// parentheses and heed quotes, some count only, and some end at the first parenthesis
// that closes.
func divides(text string) bool {
	var n nesting
	depth, open := 0, false
	for i := range len(text) {
		if inside := n.depth > 0; strings.IndexByte(separators, text[i]) >= 0 && (inside != (depth > 0) || inside != open) {
			return true
		}
		n.step(text, i)
		switch text[i] {
		case '(':
			depth, open = depth+1, true
		case ')':
			depth, open = max(depth-1, 0), false
		}
	}
	return false
}

// nesting is how deep in parentheses a place in a text is, and in which quotes. A
// quote that is never closed is an apostrophe.
type nesting struct {
	depth int
	quote byte
}

func (n *nesting) step(text string, i int) {
	switch c := text[i]; {
	case n.quote != 0:
		if c == n.quote {
			n.quote = 0
		}
	case n.depth > 0 && (c == '"' || c == '\'') && strings.IndexByte(text[i+1:], c) >= 0:
		n.quote = c
	case c == '(':
		n.depth++
	case c == ')':
		n.depth = max(n.depth-1, 0)
	}
}

// tool is a token taken apart: a name and what stands in the parentheses after it.
type tool struct {
	name   string
	spec   string
	scoped bool // there are parentheses
}

// parseTool takes a token apart. ok is false for one whose parentheses do not
// close, or close before its end.
func parseTool(token string) (t tool, ok bool) {
	name, rest, scoped := strings.Cut(token, "(")
	if !scoped {
		return tool{name: token}, !strings.Contains(token, ")")
	}
	spec, ok := strings.CutSuffix(rest, ")")
	return tool{name: name, spec: strings.TrimSpace(spec), scoped: true}, ok && name != "" && closes(token)
}

// closes reports whether a token has one pair of outer parentheses, which closes at
// its end.
func closes(token string) bool {
	var n nesting
	for i := range len(token) {
		before := n.depth
		n.step(token, i)
		if ended := n.depth == 0 && token[i] == ')'; ended && (before == 0 || i < len(token)-1) {
			return false
		}
	}
	return n.depth == 0
}
