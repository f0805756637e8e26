package capability

import (
	"strings"

	"capgate/capability/pattern"
)

// What a requirement of resource.read says besides the URI, for grants that name
// resources by Rye ids: which server is asked, and what stands behind the server's
// name in the id.
const (
	uriDim    = "uri"
	serverDim = "server"
	itemDim   = "item"
)

// itemOf writes a URI as the end of a Rye id: scheme://a/b is scheme.a.b. A dot of
// the URI's own becomes a slash, which no id pattern can name, so that two URIs never
// share an id. A URI of any other form has none, and returns "": only a grant for all
// that the server has covers it.
func itemOf(uri string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	scheme, path, ok := strings.Cut(uri, "://")
	if !ok {
		return ""
	}
	id := scheme + "/" + path
	for seg := range strings.SplitSeq(id, "/") {
		if seg == "" || seg == "." || seg == ".." || strings.Trim(seg, plain) != "" {
			return ""
		}
	}
	return strings.NewReplacer("/", ".", ".", "/").Replace(id)
}

// as returns what a grant is among those of a verb that it carries with it. That is
// itself, but for knowledge: each id names a server, and behind that what
// [itemOf] makes of a URI.
func (g *Grant) as(v Verb) []*Grant {
	if v != readResource || g.entry.Verb == v {
		return []*Grant{g}
	}
	if g.dims[0].any {
		return []*Grant{g.reading(dimension{any: true}, dimension{any: true})}
	}
	var all []*Grant
	for _, id := range g.dims[0].patterns {
		server, item, _ := strings.Cut(id.word.String(), ".")
		of, err := newName(server, pattern.Dot)
		if err != nil {
			continue
		}
		if item == "**" {
			all = append(all, g.reading(dimension{patterns: []name{of}}, dimension{any: true}))
		} else if what, err := newName(item, pattern.Dot); err == nil {
			all = append(all, g.reading(dimension{patterns: []name{of}}, dimension{patterns: []name{what}}))
		}
	}
	return all
}

// Unasked says why the gateway's own rules never ask for what a grant allows, "" when
// they do: only a mapping, or a policy test, that names the verb does then.
func (g *Grant) Unasked() string {
	switch action, _, _ := strings.Cut(strings.TrimPrefix(string(g.entry.Verb), "rye."), "."); {
	case g.inert == "" && g.entry.Verb == readResource:
		return g.elsewhere()
	case g.inert != "" || g.entry.Verb.Resource() != "rye":
		return ""
	case action == "search":
		return "lists show what may be used, and nothing else"
	case action == "sign":
		return "pins are approved on the command line"
	case g.entry.Verb == "rye.load.tool":
		return "the definition of a tool is shown to whoever may call it"
	case g.entry.Verb == "rye.execute.knowledge":
		return "knowledge is read, for which the verb is rye.load.knowledge"
	case g.entry.Verb != "rye.load.knowledge":
		return ""
	}
	for _, id := range g.dims[0].patterns {
		if text := id.word.String(); strings.Count(text, ".") < 2 && !strings.HasSuffix(text, "**") {
			return text + " names no resource: it takes server.*, or server.scheme.path"
		}
	}
	return ""
}

// elsewhere says of which of its URIs another verb decides, and which no pattern is of.
func (g *Grant) elsewhere() string {
	for _, uri := range g.dims[0].patterns {
		text := uri.word.String()
		if i := strings.IndexAny(text, `*?[{\`); i >= 0 {
			if begin := ReadURI(text[:i] + "1"); begin.Odd() != "" {
				return text + " " + begin.Odd() + ": such URIs are written out one by one, or granted with all of " + begin.Scheme + ":"
			}
		}
		switch scheme, _, _ := strings.Cut(text, ":"); scheme {
		case "file":
			return text + " is of files, which are read under fs.read"
		case "http", "https":
			return text + " is of the web, which is read under net.get"
		}
	}
	return ""
}

// reading is the grant as one of resource.read, of any URI but from that server.
func (g *Grant) reading(server, item dimension) *Grant {
	one := *g
	one.dims = []dimension{{any: true}, server, item}
	return &one
}
