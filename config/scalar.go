package config

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// What a limit may be: enough for anything to work at all, and no more than a
// machine can be expected to hold.
const (
	leastWait, mostWait   = 100 * time.Millisecond, 24 * time.Hour
	leastSize, mostSize   = 1 << 10, 256 << 20
	leastCount, mostCount = 1, 1_000_000
)

// text reads a value that must be text. What says which value it is, takes what
// belongs there.
func (r *reader) text(n *yaml.Node, what, takes string) (string, bool) {
	text, ok := r.line(n, what, takes)
	if ok && text == "" {
		r.at(n, "", "%s takes %s, not an empty text", what, takes)
		return "", false
	}
	return text, ok
}

// line is [reader.text] where an empty text will do.
func (r *reader) line(n *yaml.Node, what, takes string) (string, bool) {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!str":
		return n.Value, true
	case n.Value == "~":
		r.at(n, `write "~" in quotes for the home folder`, "%s takes %s, and ~ alone is YAML for nothing", what, takes)
	case n.Tag == "!!null":
		r.at(n, "", "%s takes %s, and nothing is written", what, takes)
	case n.Kind == yaml.ScalarNode:
		r.at(n, "quote it if it is meant as text", "%s takes %s, not %s", what, takes, describe(n))
	default:
		r.at(n, "", "%s takes %s, not %s", what, takes, describe(n))
	}
	return "", false
}

// word reads one of a few words, "" when it is none of them.
func (r *reader) word(n *yaml.Node, what string, words ...string) string {
	list := strings.Join(words, ", ")
	text, ok := r.text(n, what, "one of "+list)
	if !ok || slices.Contains(words, text) {
		return text
	}
	r.at(n, meant(text, words, "it is one of "+list), "%s cannot be %q", what, clip(text))
	return ""
}

// wordOrAuto reads a word, or auto, which is "": nothing is decided.
func (r *reader) wordOrAuto(n *yaml.Node, what string, words ...string) string {
	word := r.word(n, what, append([]string{auto}, words...)...)
	if word == auto {
		return ""
	}
	return word
}

// words reads a list of words, each once.
func (r *reader) words(n *yaml.Node, what, takes string, read func(n *yaml.Node) string) []string {
	list := []string{}
	r.each(n, what, takes, func(entry *yaml.Node) {
		text := read(entry)
		switch {
		case text == "": // already said
		case slices.Contains(list, text):
			r.at(entry, "remove one of them", "%q stands twice", clip(text))
		default:
			list = append(list, text)
		}
	})
	return list
}

func (r *reader) flag(n *yaml.Node, what string) bool {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
		r.at(n, "", "%s takes true or false, not %s", what, describe(n))
		return false
	}
	return strings.EqualFold(n.Value, "true")
}

// count reads a number as people write one: YAML has others, of which not every
// reader of the file would think the same.
func (r *reader) count(n *yaml.Node, what string, into *int) {
	number, err := strconv.Atoi(n.Value)
	switch {
	case n.Kind != yaml.ScalarNode || n.Tag != "!!int" && n.Tag != "!!float":
		r.at(n, "", "%s takes a number, not %s", what, describe(n))
	case err != nil || strconv.Itoa(number) != n.Value:
		r.at(n, "write a whole number in plain digits", "%s cannot be %s", what, clip(n.Value))
	case number < leastCount || number > mostCount:
		r.at(n, "", "%s is %d to %d, not %d", what, leastCount, mostCount, number)
	default:
		*into = number
	}
}

// wait reads a duration with its unit.
func (r *reader) wait(n *yaml.Node, what string, into *time.Duration) {
	const takes, hint = "a duration", "write it with its unit: 60s"
	if n.Tag == "!!int" || n.Tag == "!!float" {
		r.at(n, hint, "%s takes %s, not %s", what, takes, describe(n))
		return
	}
	text, ok := r.text(n, what, takes)
	if !ok {
		return
	}
	wait, err := time.ParseDuration(text)
	switch {
	case err != nil:
		r.at(n, hint, "%s takes %s, which %q is not", what, takes, clip(text))
	case wait < leastWait || wait > mostWait:
		r.at(n, "", "%s is %v to %v, not %s", what, leastWait, mostWait, clip(text))
	default:
		*into = wait
	}
}

// size reads a number of bytes in KiB or MiB.
func (r *reader) size(n *yaml.Node, what string, into *int) {
	const takes, hint = "a size", "write it in KiB or MiB: 32MiB"
	if n.Tag == "!!int" || n.Tag == "!!float" {
		r.at(n, hint, "%s takes %s, not %s", what, takes, describe(n))
		return
	}
	text, ok := r.text(n, what, takes)
	if !ok {
		return
	}
	digits, shift := strings.TrimSuffix(text, "KiB"), 10
	if digits == text {
		digits, shift = strings.TrimSuffix(text, "MiB"), 20
	}
	number, err := strconv.ParseUint(digits, 10, 32)
	switch {
	case digits == text || err != nil:
		r.at(n, hint, "%s takes %s, which %q is not", what, takes, clip(text))
	case number > mostSize>>shift || number<<shift < leastSize:
		r.at(n, "", "%s is %dKiB to %dMiB, not %s", what, leastSize>>10, mostSize>>20, clip(text))
	default:
		*into = int(number << shift)
	}
}
