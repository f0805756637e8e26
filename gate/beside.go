package gate

import (
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"
)

// neighbour is a folder in which a server may look for what begins as the folder is called that it should look in. Many
// servers leave the last slash of a path out of account.
type neighbour struct {
	name          string // of the folder that it should look in, in small letters and nothing escaped
	before, after string // what stands around a name in the folder above that
}

// seems reports whether a name may be one that is found there.
func (n neighbour) seems(name string) bool { return strings.HasPrefix(oneSpelling(name), n.name) }

// with is the URI of what is called so there.
func (n neighbour) with(name string) string { return n.before + encoded(name) + n.after }

// oneSpelling is a text in small letters and with nothing escaped, for what no server takes for another.
func oneSpelling(text string) string {
	for range maxEscapes {
		plain, err := url.PathUnescape(text)
		if err != nil || plain == text {
			break
		}
		text = plain
	}
	return strings.ToLower(text)
}

// neighbours are those of the folder that a variable stands in, as far as it is given. What is given behind the last slash
// and is no part of a name is left out, as servers leave it out; a variable that is not given may be nothing, or some
// text. Of a file they are also those of where links lead.
func (r *Resources) neighbours(c Completing, isPath bool) (all []neighbour) {
	head, expression, _, _ := c.place(c.Name)
	_, tail, _ := strings.Cut(c.Template[len(head):], "}")
	if isPath {
		all = r.linked(c)
	}
	if expression != "" && strings.Contains("?#&;", expression[:1]) { // it is no name in a folder
		return all
	}
	value := c.Value
	if folder := value[:strings.LastIndexByte(value, '/')+1]; !strings.ContainsFunc(value[len(folder):], isOfName) {
		value = folder
	}
	for _, open := range []string{whatever, ""} {
		f := filling{plain: open, deep: open, given: c.given()}
		at := f.of(head)
		if strings.HasPrefix(expression, "/") {
			at += "/"
		}
		if n, ok := besideOf(at+encoded(value), f.of(tail)); ok {
			all = append(all, n)
		}
	}
	return all
}

// isOfName reports whether a character makes a name one that servers look for.
func isOfName(r rune) bool { return r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsNumber(r) }

// besideOf is the folder above one whose URI ends in a slash.
func besideOf(uri, after string) (n neighbour, ok bool) {
	scheme, rest, _ := strings.Cut(uri, ":")
	if !strings.HasSuffix(rest, "/") {
		return n, false
	}
	slashes := rest[:len(rest)-len(strings.TrimLeft(rest, "/"))]
	segments := slices.DeleteFunc(strings.Split(rest, "/"), func(s string) bool { return s == "" || s == "." })
	if len(segments) == 0 {
		return n, false
	}
	last := len(segments) - 1
	above := scheme + ":" + slashes + strings.Join(segments[:last], "/")
	if last > 0 {
		above += "/"
	}
	is := segments[last]
	begin := strings.LastIndexAny(is, "?#&=;") + 1 // of a path in a query, which may be the root of all
	return neighbour{oneSpelling(is[begin:]), above + is[:begin], after}, begin < len(is)
}

// linked are the folders above those that links lead to, on the way that is given.
func (r *Resources) linked(c Completing) (all []neighbour) {
	needs, err := r.Mapping.Resource(r.Item, strings.TrimSuffix(c.filled(strings.TrimSuffix(c.Value, "/"), ""), "/"), r.View)
	if err != nil {
		return nil // and denied
	}
	for _, n := range needs {
		for _, place := range n.Requirement.Also() {
			if place = strings.TrimSuffix(place, "/"); strings.HasPrefix(place, "/") && place != "" {
				dir, name := path.Split(place)
				all = append(all, neighbour{oneSpelling(name), "file://" + encoded(dir), ""})
			}
		}
	}
	return all
}

// beside returns what reports of a name whether it may be read beside the folder that is given as well, where a server that
// leaves out slashes, or follows links, would have found it there.
func (g *Gate) beside(agent string, r *Resources, c Completing, isPath bool) func(name string) bool {
	all := r.neighbours(c, isPath)
	return func(name string) bool {
		return !slices.ContainsFunc(all, func(n neighbour) bool {
			return n.seems(name) && !g.Resource(agent, r, n.with(name)).Decision.Allowed()
		})
	}
}
