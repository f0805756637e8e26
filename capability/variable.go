package capability

import (
	"slices"
	"strings"
)

// isVariable reports whether a shell or a library that expands variables would
// find one: $HOME, ${HOME}, $(pwd), $1, %USERPROFILE%. An escape is none.
func isVariable(text string) bool {
	for {
		i := strings.IndexAny(text, "$%")
		if i < 0 || i+1 == len(text) {
			return false
		}
		sign, rest := text[i], text[i+1:]
		if sign == '$' && !isNobodys(rest) && (isWord(rune(rest[0])) || strings.IndexByte("{(*#$@!?-", rest[0]) >= 0) {
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

// unset leaves out variables that are nobody's, as who expands them does.
func unset(text string) []string {
	front, rest, ok := strings.Cut(text, "$")
	made := front
	for ok {
		if isNobodys(rest) {
			rest = strings.TrimLeftFunc(rest, isWord)
		} else {
			made += "$"
		}
		front, rest, ok = strings.Cut(rest, "$")
		made += front
	}
	if made == text {
		return nil
	}
	return []string{made}
}

// parameters are the words by which routes are called for what stands in their place, and no shell has a variable.
var parameters = []string{"id", "slug", "lang", "locale"}

// isNobodys reports whether a text begins with the name of a parameter of a route, as in posts.$postId.tsx, that no
// program has a variable of: those of the environment are all of capitals, or have a _, those of shells of small
// letters, and PowerShell's are known.
func isNobodys(text string) bool {
	name := text[:len(text)-len(strings.TrimLeftFunc(text, isWord))]
	lower := strings.ToLower(name)
	if slices.Contains(parameters, name) {
		return true
	}
	mixed := name != "" && name[0] >= 'a' && name[0] <= 'z' && lower != name && !strings.Contains(name, "_")
	return mixed && !strings.HasPrefix(lower, "ps") && !slices.Contains(powerShell, lower)
}

// powerShell are its variables that hold what may be part of a path, but for those that begin with ps.
var powerShell = []string{
	"args", "consolefilename", "env", "error", "foreach", "home", "host", "input", "matches", "myinvocation", "ofs",
	"profile", "pwd", "shellid", "stacktrace", "this",
}
