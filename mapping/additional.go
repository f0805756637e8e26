package mapping

import (
	"strconv"
	"strings"
	"unicode"

	"capgate/capability"
)

// additional is what an argument without a role needs, when the tool passes such
// arguments on and the argument is a URL.
const additional = capability.Verb("net.get")

// additional reads an argument that the mapping does not know, in a tool that
// passes those on: whatever is a URL in it, or its key, must be one that may be
// fetched.
func (r *reading) additional(key string, at place) error {
	if r.values++; r.values > most {
		return tooMany("", "values to decide on")
	}
	text, _ := at.value.Str()
	for _, s := range [...]string{key, text} {
		written, ok := r.findURL(s)
		if !ok {
			continue
		}
		target, err := readURL(written)
		if err := r.need(at, capability.Net(additional, target), err); err != nil {
			return err
		}
	}
	for key, member := range at.value.Members() {
		name, _ := key.Str()
		if err := r.additional(name, place{value: member, name: inside(at.name, printable(name))}); err != nil {
			return err
		}
	}
	i := 0
	for elem := range at.value.Elems() {
		if err := r.additional("", place{value: elem, name: at.name + "[" + strconv.Itoa(i) + "]"}); err != nil {
			return err
		}
		i++
	}
	return nil
}

// findURL returns what some reader may take for a URL that names a host: a text, or what it stands for, as in
// <URL:https://a.com>. Readers leave out the breaks within.
func (r *reading) findURL(text string) (written string, ok bool) {
	plain := breaks.Replace(text)
	for written, ok = plain, true; ok; written, ok = r.View.Unwrapped(written) {
		switch {
		case !isURL(written) && authority(written) == "":
		case plain != text:
			return text, true // which is refused for its breaks
		default:
			return written, true
		}
	}
	return "", false
}

var breaks = strings.NewReplacer("\t", "", "\n", "", "\r", "")

// readURL reads the host of a URL. Without a scheme its port is not known.
func readURL(written string) (capability.Target, error) {
	host := authority(written)
	if host == "" {
		return capability.ParseURL(written)
	}
	target, err := capability.ParseURL("https:" + written)
	if err != nil || target.Opaque() != "" {
		return target, err
	}
	return capability.ParseTarget(host)
}

// isURL reports whether some reader may take a text for a URL with a scheme that names a host: a scheme and a slash of
// either kind, or the scheme of the web alone. Readers skip what they cannot see in front.
func isURL(text string) bool {
	text = strings.TrimLeftFunc(text, isUnseen)
	const longest = 64 // bytes in which a scheme must end
	scheme, rest, ok := strings.Cut(text[:min(len(text), longest)], ":")
	if !ok || !isScheme(scheme) {
		return false
	}
	switch strings.ToLower(scheme) {
	case "http", "https":
		return true
	case "ftp", "ws", "wss": // to browsers they need no slash either; a note has a blank
		return rest != "" && !strings.HasPrefix(rest, " ")
	}
	return strings.HasPrefix(rest, "/") || strings.HasPrefix(rest, `\`)
}

func isUnseen(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }

// isScheme reports whether a text can be the scheme of a URL. One letter is the
// name of a drive.
func isScheme(text string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return len(text) > 1 && strings.IndexByte(letters, text[0]) >= 0 && strings.Trim(text, letters+"0123456789+-.") == ""
}
