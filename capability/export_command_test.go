package capability

import (
	"slices"

	"capgate/capability/pattern"
)

// What the tests reach of commands and options.

func ParseArgv(argv []string) (string, error)                  { return parseArgv(argv) }
func PlainWords(line string) (argv []string, ok bool, e error) { return plainWords(line) }
func ParseArgvPattern(text string) (*pattern.Pattern, error)   { return parseArgvPattern(text) }
func ParseCmd(text string) (string, error)                     { return parseCmd(text) }
func NeedsPatterns(cmd string) bool                            { return needsPatterns(cmd) }
func Violation(argv []string) string                           { return violation(argv) }
func Ruled(cmd string) bool                                    { return ruleFor(cmd) != nil }
func Folder(argv []string) (dir string, ok bool)               { return folder(argv) }

// RuledNames returns every program that has a rule.
func RuledNames() (names []string) {
	for name := range optionRules {
		names = append(names, name)
	}
	return names
}

// BoundNames returns the programs that their names do not bound.
func BoundNames() (interpreter, project []string) {
	return slices.Clone(interpreters), slices.Clone(projectRunners)
}
