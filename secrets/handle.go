package secrets

import (
	"fmt"
	"strings"
)

// What stands around the name of a secret in a text.
const (
	handleOpen  = "{{secret:"
	handleClose = "}}"
)

// maxName is the most bytes of the name of a secret.
const maxName = 128

// handle is what a secret is replaced by.
func handle(name string) string { return handleOpen + name + handleClose }

// Handle is one place in a text where the value of a secret belongs.
type Handle struct {
	Name       string
	Start, End int // of the handle, in bytes of the text
}

// Handles returns the handles in a text, as they stand in it. What begins like one
// and is none is an error.
func Handles(text string) ([]Handle, error) {
	var all []Handle
	for at := 0; ; {
		before, name, after, err := cutHandle(text[at:])
		if err != nil {
			return nil, err
		}
		if name == "" {
			return all, nil
		}
		end := len(text) - len(after)
		all = append(all, Handle{Name: name, Start: at + len(before), End: end})
		at = end
	}
}

// cutHandle finds the first handle in a text. Without one the name is "" and
// before is all of it.
func cutHandle(text string) (before, name, after string, err error) {
	for i := 0; ; i++ {
		next := strings.Index(text[i:], "{{")
		if next < 0 {
			return text, "", "", nil
		}
		i += next
		rest, ok := strings.CutPrefix(text[i:], handleOpen)
		if !ok {
			if isNearMiss(text[i+2:]) {
				return "", "", "", errNoHandle(text[i:])
			}
			continue
		}
		name, after, ok = strings.Cut(rest, handleClose)
		if !ok || !isName(name) {
			return "", "", "", errNoHandle(text[i:])
		}
		return text[:i], name, after, nil
	}
}

func errNoHandle(text string) error {
	return fmt.Errorf("%.40q is not a handle such as %s", text, handle("name"))
}

// isNearMiss reports whether braces hold what was meant as a handle: sent as it
// is, it would be a puzzle to whoever gets it.
func isNearMiss(inside string) bool {
	const word = "secret"
	inside = strings.TrimLeft(inside, " \t")
	if len(inside) < len(word) || !strings.EqualFold(inside[:len(word)], word) {
		return false
	}
	return strings.HasPrefix(strings.TrimLeft(inside[len(word):], " \tsS"), ":")
}

func isName(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
	return name != "" && len(name) <= maxName && strings.Trim(name, letters) == ""
}
