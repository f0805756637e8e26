package capability

import (
	"slices"
	"strings"
)

// isVariable reports whether a shell or a library that expands variables would
// find one: $HOME, ${HOME}, $(pwd), $1, zsh's $^HOME, %USERPROFILE%. An escape is none.
func isVariable(text string) bool {
	for {
		i := strings.IndexAny(text, "$%")
		if i < 0 || i+1 == len(text) {
			return false
		}
		sign, rest := text[i], text[i+1:]
		if sign == '$' && !isNobodys(rest) && (isWord(rune(rest[0])) || strings.IndexByte("{(*#$@!?-^=~+:", rest[0]) >= 0) {
			return true
		}
		named := isLetter(rest[0]) || rest[0] == '_'
		if _, escape := hexDigits(text[i:], "%", 2); sign == '%' && named && !escape &&
			strings.HasPrefix(strings.TrimLeftFunc(rest, isWord), "%") {
			return true
		}
		text = rest
	}
}

// parameters are the words by which routes are called for what stands in their place, and no shell has a variable.
var parameters = []string{"id", "slug", "lang", "locale"}

// isNobodys reports whether a text begins with the name of a parameter of a route, as in posts.$postId.tsx, that nobody
// has a variable of, and with nothing behind it that belongs to a variable as well: $id[1], $id:t and $id->x are read
// by some as one, and letters beyond ASCII are part of a name to some.
func isNobodys(text string) bool {
	rest := strings.TrimLeftFunc(text, isWord)
	name := strings.TrimSuffix(text[:len(text)-len(rest)], "_")
	switch {
	case rest == "", rest[0] == '/', rest[0] == ')', rest[0] == '}':
	case len(rest) > 1 && (rest[0] == '.' || rest[0] == '-') && (isWord(rune(rest[1])) || rest[1] == '$' && isNobodys(rest[2:])):
	default:
		return false
	}
	if slices.Contains(parameters, name) {
		return true
	}
	what, is := strings.CutSuffix(name, "Id")
	if !is {
		what, is = strings.CutSuffix(name, "Slug")
	}
	return is && what != "" && strings.Trim(what, "abcdefghijklmnopqrstuvwxyz") == "" && !slices.Contains(powerShell, what)
}

// powerShell are the beginnings of names that it has variables of, with an Id behind.
var powerShell = []string{"p", "shell"}
