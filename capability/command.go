package capability

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"capgate/capability/pattern"
)

// What one call may hand to a program.
const (
	maxArgvWords = 4096
	maxArgvBytes = 128 << 10 // what Linux takes as one argument, MAX_ARG_STRLEN
	maxProgram   = 200       // bytes of a program's name or path in a grant
)

// parseArgv checks the words of a call and joins them for matching. No word can
// hold what stands between them, so that two different argvs never read the
// same. An error is always a [*Malformed].
func parseArgv(argv []string) (joined string, err error) {
	if len(argv) > maxArgvWords {
		return "", &Malformed{Text: fmt.Sprintf("has more than %d words", maxArgvWords)}
	}
	size := 0
	for _, word := range argv {
		if size += len(word) + len(unit); size > maxArgvBytes {
			return "", &Malformed{Text: fmt.Sprintf("is longer than %d bytes", maxArgvBytes)}
		}
		if !utf8.ValidString(word) || strings.ContainsFunc(word, isUnprintable) {
			return "", &Malformed{Text: "holds control characters or is not UTF-8"}
		}
	}
	if len(argv) == 0 || strings.TrimSpace(argv[0]) == "" {
		return "", &Malformed{Text: "names no program"}
	}
	if strings.ContainsFunc(argv[0], unicode.IsControl) {
		return "", &Malformed{Text: "holds control characters in the name of the program"}
	}
	return strings.Join(argv, unit), nil
}

// isUnprintable reports whether a rune has no place in an argument. Tabs and
// line ends do: they are text, as in a commit message.
func isUnprintable(r rune) bool {
	return unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r'
}

// plainWords splits a command line that every shell splits at its spaces and
// changes in no other way. ok is false for any other: then only a shell knows
// the words. An error is always a [*Malformed].
func plainWords(line string) (argv []string, ok bool, err error) {
	switch {
	case len(line) > maxArgvBytes:
		return nil, false, &Malformed{Text: fmt.Sprintf("is longer than %d bytes", maxArgvBytes)}
	case !utf8.ValidString(line) || strings.ContainsFunc(line, unicode.IsControl):
		return nil, false, &Malformed{Text: "holds line breaks or other control characters"}
	case strings.ContainsFunc(line, isShell):
		return nil, false, nil
	}
	for word := range strings.SplitSeq(line, " ") {
		switch {
		case word == "":
			continue
		case isExpanded(word) || len(argv) == 0 && isAssignment(word):
			return nil, false, nil
		}
		argv = append(argv, word)
	}
	if len(argv) == 0 {
		return nil, false, &Malformed{Text: "names no program"}
	}
	return argv, true, nil
}

// isShell reports whether a rune could mean something to a shell.
func isShell(r rune) bool {
	alnum := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	return !alnum && !strings.ContainsRune(" _./:=@%+,-", r)
}

// isExpanded reports whether some shell replaces a word for how it begins: zsh
// looks up =git in its PATH, %1 is a job.
func isExpanded(word string) bool { return word[0] == '=' || word[0] == '%' }

// isAssignment reports whether a shell takes a leading word for a variable, as
// in GIT_PAGER=id or PATH+=:/tmp.
func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && !strings.ContainsAny(strings.TrimSuffix(name, "+"), "./:@%+,-")
}

// parseCmd reads one program of cmds: a name, to be found where the system
// keeps its programs, or an absolute path. What a call names must be the same.
func parseCmd(text string) (string, error) {
	switch {
	case text == "" || len(text) > maxProgram:
		return "", fmt.Errorf("a program has a name of 1 to %d bytes", maxProgram)
	case strings.ContainsFunc(text, isNotProgram) || !utf8.ValidString(text):
		return "", fmt.Errorf("%q is not one exact word: cmds holds programs, without arguments and globs; arguments go to patterns", clip(text))
	case strings.Contains(text, "/") && (!strings.HasPrefix(text, "/") || path.Clean(text) != text):
		return "", fmt.Errorf("%q is not a canonical absolute path: whoever chooses the directory would choose the program", clip(text))
	case strings.Trim(path.Base(text), "./") == "" || text[0] == '-':
		return "", fmt.Errorf("%q is no program", clip(text))
	}
	return text, nil
}

// isNotProgram reports whether a rune has no place in the name of a program.
func isNotProgram(r rune) bool {
	return !unicode.IsGraphic(r) || unicode.IsSpace(r) || strings.ContainsRune("*?[]{}()\\\"'`$~!#&|;<>=", r)
}

// parseArgvPattern reads one of patterns: words, each a glob that stays inside
// its word, the last perhaps ** for any words or none. A space behind a
// backslash belongs to its word.
func parseArgvPattern(text string) (*pattern.Pattern, error) {
	words := splitPattern(text)
	if len(words) == 0 || strings.ContainsFunc(text, unicode.IsControl) {
		return nil, fmt.Errorf("%q is no pattern: it needs the name of a program, and no control characters", clip(text))
	}
	// A wildcard there would let a call choose the program: a * in a path even
	// matches a/../b.
	if strings.ContainsAny(words[0], "*?[") {
		return nil, fmt.Errorf("%q does not say which program it means", clip(text))
	}
	if strings.Contains(words[0], "/") {
		if _, err := parseCmd(words[0]); err != nil {
			return nil, err
		}
	}
	last := len(words) - 1
	open := words[last] == "**"
	if open {
		words = words[:last]
	}
	for _, word := range words {
		if strings.Contains(word, "**") {
			return nil, fmt.Errorf("%q: ** stands for all further words, so that only the last word can be it", clip(text))
		}
		if word[0] == '!' {
			word = `\` + word // refused at the beginning of a pattern only
		}
		// By itself, so that no brace that opens in one word closes in another.
		if _, err := pattern.Parse(word, pattern.Unit); err != nil {
			return nil, err
		}
	}
	joined := strings.Join(words, unit)
	if open {
		joined += "{," + unit + "**}"
	}
	return pattern.Parse(joined, pattern.Unit)
}

// splitPattern splits at spaces that no backslash precedes.
func splitPattern(text string) (words []string) {
	start, quoted := 0, false
	for i := range len(text) + 1 {
		switch {
		case i < len(text) && (quoted || text[i] != ' '):
			quoted = !quoted && text[i] == '\\'
			continue
		case start < i:
			words = append(words, text[start:i])
		}
		start = i + 1
	}
	return words
}
