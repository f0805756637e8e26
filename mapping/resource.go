package mapping

import (
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"capgate/capability"
	"capgate/wire"
)

// MaxURI is how many bytes the URI of a resource may have.
const MaxURI = 8192

const maxResources = 512 // entries of resources:

// readResource is the verb for a resource that nothing else is known of.
const readResource = capability.Verb("resource.read")

// resource is what a mapping says of some of a server's resources.
type resource struct {
	uri    string // a whole URI, what URIs begin with, or a scheme and a colon
	prefix bool
	scheme string
	place  string // in one spelling, without a query
	roles  []role
	fixed  []fixed // what reading it needs, whatever its URI
}

// resources reads a map from the URIs of resources to their roles.
func (d *document) resources(m *Mapping, n *yaml.Node) error {
	if n.Kind != yaml.MappingNode || len(n.Content)/2 > maxResources {
		return d.wrong(n, "", "resources: takes a map of at most %d URIs and schemes", maxResources)
	}
	for key, value := range pairs(n) {
		res := resource{uri: strings.TrimSuffix(key.Value, "*"), prefix: strings.HasSuffix(key.Value, "*")}
		if isScheme(key.Value) {
			res = resource{uri: strings.ToLower(key.Value) + ":", prefix: true}
		}
		if scheme, _, ok := strings.Cut(res.uri, ":"); !ok || !isScheme(scheme) || scheme != strings.ToLower(scheme) || strings.ContainsAny(res.uri, "*?{}") {
			return d.wrong(key, "write notes, notes://all or notes://work/*", "%s is no scheme, no URI and not what URIs begin with", quoted(key.Value, maxArgument))
		}
		if why := res.spell(); why != "" {
			return d.wrong(key, "write "+res.scheme+", or what is read in one way", "the URI %s %s", quoted(key.Value, maxArgument), why)
		}
		if err := res.read(d, value); err != nil {
			return err
		}
		m.resources = append(m.resources, res)
	}
	return nil
}

// read reads what a mapping says of it: roles of its URI, or what it needs instead.
func (res *resource) read(d *document, n *yaml.Node) (err error) {
	b := builder{document: d, tool: &Tool{}}
	if n.Kind == yaml.MappingNode && len(n.Content) == 2 && n.Content[0].Value == keyRequires {
		err = b.requires(n.Content[1])
		res.fixed = b.tool.fixed
		return err
	}
	if res.roles, err = b.roles(n); err != nil {
		return err
	}
	for _, r := range res.roles {
		if !readsResource(r) {
			return d.wrong(n, "write resource.read for what is nothing else", "a resource is a file, a URL or a key, under a verb without more")
		}
	}
	return nil
}

// readsResource reports whether a role can be that of a resource: it is there or
// not, whole, and a URI is all there is to read.
func readsResource(r role) bool {
	if r.optional || r.fallback.Kind() != wire.Invalid {
		return false
	}
	switch reads := r.reads.(type) {
	case path:
		return reads.what != modGlob
	case host:
		return reads.what == asURL
	case word:
		return reads.dim != ""
	}
	return false
}

// Resource says what reading a resource requires, or subscribing to it. What no
// mapping covers is a file under fs.read for file: URIs, net.get for the web, and
// resource.read with its whole URI otherwise; where a mapping has a verb with other
// keys, such as memory.read, the key is what follows the scheme, and where it says what is
// required, that is. The mapping's first entry that fits decides; what the entries before it say of
// another spelling of the URI is needed as well. An error is always a [*Refused].
//
// The server, by its name among capabilities, is what Rye ids of resources begin with.
// A URI that readers take apart in different ways needs what no grant allows.
func (m *Mapping) Resource(server, uri string, v capability.View) ([]Need, error) {
	r := reading{Call: Call{View: v}}
	r.measure()
	if err := r.uri(m, place{name: "uri"}, uri); err != nil {
		return nil, err
	}
	for _, k := range r.words {
		if k.verb == readResource {
			from := k.of("server")
			from.values = append(from.values, given{place{name: "uri"}, server})
		}
		if err := r.keyedNeeds(k); err != nil {
			return nil, err
		}
	}
	return r.needs, nil
}

// uri reads a URI as that of a resource of a server.
func (r *reading) uri(m *Mapping, at place, uri string) error {
	scheme, rest, ok := strings.Cut(uri, ":")
	switch {
	case len(uri) > MaxURI:
		return refuse(capability.LimitExceeded, at.name, "is longer than %d bytes", MaxURI)
	case !ok || !isScheme(scheme) || strings.ContainsFunc(uri, func(c rune) bool { return !unicode.IsPrint(c) || c == ' ' || c == unicode.ReplacementChar }):
		return malformed(at.name, "is no URI")
	case strings.ContainsAny(uri, "{}"):
		return malformed(at.name, "is a template whose variables are not filled in")
	}
	uri = strings.ToLower(scheme) + ":" + rest
	as := capability.ReadURI(uri)
	return r.resources(m.resource(uri, as), at, uri, as)
}

// resources reads the name of a resource by all that is known of it.
func (r *reading) resources(res resource, at place, uri string, as *capability.URI) error {
	for _, f := range res.fixed {
		if err := r.fixed(f); err != nil {
			return err
		}
	}
	for _, role := range res.roles {
		if err := r.resource(role, at, uri, as); err != nil {
			return err
		}
	}
	return nil
}

// resource returns what is known of the resource with a URI. The first entry that it is of to every server decides;
// what those before it say that it is of to some is needed as well. Where servers may take it for anything, all is
// that any entry of its scheme says.
func (m *Mapping) resource(uri string, as *capability.URI) resource {
	var all resource
	whole := false
	if m != nil {
		for _, res := range m.resources {
			if res.scheme != as.Scheme && as.Scheme != "" {
				continue
			}
			written := res.uri == uri || res.prefix && strings.HasPrefix(uri, res.uri)
			switch {
			case !as.Plain():
				all, whole = all.and(res), whole || written && res.isWhole()
			case written && (res.isWhole() || !slices.ContainsFunc(as.Places, res.misses)):
				return all.and(res)
			case res.mayBe(as):
				all = all.and(res)
			}
		}
	}
	if whole {
		return all
	}
	return all.and(unmapped(as.Scheme))
}

// and is a resource that needs what either does.
func (res *resource) and(other resource) resource {
	if len(res.roles)+len(res.fixed) == 0 {
		return other
	}
	sum := resource{roles: slices.Clone(res.roles), fixed: slices.Clone(res.fixed)}
	for _, o := range other.fixed {
		if !slices.ContainsFunc(sum.fixed, func(f fixed) bool { return f.text == o.text && f.verb == o.verb }) {
			sum.fixed = append(sum.fixed, o)
		}
	}
	for _, o := range other.roles {
		if !slices.ContainsFunc(sum.roles, func(r role) bool { return r.reads == o.reads }) {
			sum.roles = append(sum.roles, o)
		}
	}
	return sum
}

// unmapped returns what is known of a resource that no entry is of.
func unmapped(scheme string) resource {
	switch scheme {
	case "file":
		return resource{roles: []role{{reads: path{"fs.read", "path"}}}}
	case "http", "https":
		return resource{roles: []role{{reads: host{"net.get", asURL}}}}
	}
	return resource{roles: []role{{reads: word{readResource, "uri"}}}}
}

// resource reads a URI by one role.
func (r *reading) resource(role role, at place, uri string, as *capability.URI) error {
	rest := strings.TrimPrefix(uri[len(as.Scheme):], ":")
	text, why := uri, ""
	switch reads := role.reads.(type) {
	case path:
		text, why = uriPath(rest)
	case word:
		if why = as.Astray(); why != "" {
			break
		}
		if reads.verb == readResource {
			r.word(reads, at, uri)
			return nil
		}
		for _, key := range keysOf(rest, as) {
			r.word(reads, at, key)
		}
		return nil
	}
	if as.Scheme == "" {
		why = "the name of the resource has no scheme"
	}
	if why != "" {
		return r.need(at, capability.Beyond(role.reads.verbs()[0], why), nil)
	}
	doc, err := wire.Parse(wire.AppendString(nil, text))
	if err != nil {
		return malformed(at.name, "cannot be read: %v", err)
	}
	return role.reads.read(r, place{value: doc.Root(), name: at.name})
}

// keysOf returns what servers may take for the key that a URI names: some look at nothing of it from where a query or
// fragment begins, and where it has no host, at two letters less or at nothing before or behind a colon. Where they
// may take it for anything, or some of it for a user or a port, it is any key, which the empty word says.
func keysOf(rest string, as *capability.URI) []string {
	key, hosted := strings.CutPrefix(rest, "//")
	if as.Odd() != "" || hosted && len(as.Places) > 1 {
		return []string{""}
	}
	keys, ends := []string{key}, "?#"
	if !hosted {
		keys, ends = append(keys, key[min(2, len(key)):]), "?#:%"
	}
	for _, key := range keys {
		if i := strings.IndexAny(key, ends); i >= 0 {
			keys = append(keys, key[:i])
		}
		if i := strings.LastIndexByte(key, ':'); i >= 0 && !hosted && !slices.Contains(keys, key[i+1:]) {
			keys = append(keys, key[i+1:])
		}
	}
	return keys
}

// uriPath returns the path of a file: URI, with what is escaped in it as it is: a
// path is read with and without its escapes. The one form on which all readers
// agree is file:///path; why says what keeps another from being read.
func uriPath(rest string) (path, why string) {
	authority, ok := strings.CutPrefix(rest, "//")
	host, _, _ := strings.Cut(authority, "/")
	path = strings.TrimPrefix(authority, host)
	switch {
	case !ok || path == "" || strings.HasPrefix(path, "//"):
		return "", "the URI is not of the form file:///path"
	case host != "" && !strings.EqualFold(host, "localhost"):
		return "", "the URI names another host"
	case strings.ContainsAny(path, `?#\`):
		return "", "the URI has more than a path"
	}
	return path, ""
}
