package mapping

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"capgate/capability"
	"capgate/wire"
)

// MaxURI is how many bytes the URI of a resource may have.
const MaxURI = 8192

const (
	maxResources = 512 // entries of resources:
	mostEmpty    = 4   // segments of a URI that are empty
)

// readResource is the verb for a resource that nothing else is known of.
const readResource = capability.Verb("resource.read")

// resource is what a mapping says of some of a server's resources.
type resource struct {
	uri    string // a whole URI, what URIs begin with, or a scheme and a colon
	prefix bool
	plain  spelt // the URI; empty for a scheme, which is spelt in one way
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
		if !strings.HasSuffix(res.uri, ":") {
			res.plain = spellings(res.uri)[0]
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
	case len(roots(shown(decoded(rest)))) > mostEmpty:
		return tooEmpty(at)
	}
	scheme = strings.ToLower(scheme)
	uri = scheme + ":" + rest
	res := m.resource(uri)
	for _, f := range res.fixed {
		if err := r.fixed(f); err != nil {
			return err
		}
	}
	for _, role := range res.roles {
		if err := r.resource(m, role, at, rest, uri); err != nil {
			return err
		}
	}
	return nil
}

func tooEmpty(at place) error {
	return refuse(capability.LimitExceeded, at.name, "has more than %d empty segments", mostEmpty)
}

// resource returns what is known of the resource with a URI. A server may take it for another
// spelling of one that an entry is of, so that what that needs is needed as well.
func (m *Mapping) resource(uri string) resource {
	var all resource
	if m != nil {
		scheme, rest, _ := strings.Cut(uri, ":")
		alike, as := ambiguous(scheme+":", rest, true) == "", spellings(uri)
		for _, res := range m.resources {
			written := res.uri == uri || res.prefix && strings.HasPrefix(uri, res.uri)
			if written && (res.isWhole() || alike && !slices.ContainsFunc(as, res.misses)) {
				return all.and(res)
			}
			if written || slices.ContainsFunc(as, res.meets) {
				all = all.and(res)
			}
		}
	}
	return all.and(unmapped(uri))
}

// and is a resource that needs what either does.
func (res *resource) and(other resource) resource {
	if len(res.roles)+len(res.fixed) == 0 {
		return other
	}
	sum := resource{roles: slices.Clone(res.roles), fixed: slices.Concat(res.fixed, other.fixed)}
	for _, o := range other.roles {
		if !slices.ContainsFunc(sum.roles, func(r role) bool { return r.reads == o.reads }) {
			sum.roles = append(sum.roles, o)
		}
	}
	return sum
}

// unmapped returns what is known of a resource that no entry is of.
func unmapped(uri string) resource {
	switch scheme, _, _ := strings.Cut(uri, ":"); scheme {
	case "file":
		return resource{roles: []role{{reads: path{"fs.read", "path"}}}}
	case "http", "https":
		return resource{roles: []role{{reads: host{"net.get", asURL}}}}
	}
	return resource{roles: []role{{reads: word{readResource, "uri"}}}}
}

// resource reads a URI by one role.
func (r *reading) resource(m *Mapping, role role, at place, rest, uri string) error {
	text, why := uri, ""
	switch reads := role.reads.(type) {
	case path:
		text, why = uriPath(rest)
	case word:
		scheme := uri[:len(uri)-len(rest)]
		if why = ambiguous(scheme, rest, reads.verb != readResource || m.has(scheme)); why != "" {
			break
		}
		for _, rest := range readings(rest) {
			names := []string{scheme + rest}
			if reads.verb != readResource {
				names = keysOf(rest)
			}
			for _, name := range names {
				r.word(reads, at, name)
			}
		}
		return nil
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

// keysOf returns what servers may take for the key that a URI names. They may look at nothing from where a
// query or fragment begins, or where another :// is, nor at a user before a host; patterns of URIs see to
// that themselves.
func keysOf(rest string) []string {
	key, hosted := strings.CutPrefix(rest, "//")
	keys := []string{key}
	if i := strings.IndexAny(key, "?#"); i >= 0 {
		key = key[:i]
		keys = append(keys, key)
	}
	if between, ok := betweenMarks(rest); ok {
		keys = append(keys, between)
	}
	host, _, _ := strings.Cut(key, "/")
	if i := strings.LastIndexByte(host, '@'); hosted && i >= 0 {
		keys = append(keys, key[i+1:])
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

// ambiguous says why readers may take a URI for another one: they resolve dots, or
// decode what stands for a separator, or leave out what stands behind one. The scheme has its colon. Where
// something depends on the host, one with a colon in it is another to some; patterns of URIs see to that.
func ambiguous(scheme, rest string, hosted bool) string {
	plain, _, _ := strings.Cut(rest, "?")
	plain, _, _ = strings.Cut(plain, "#")
	if why := moving(scheme, rest); why != "" {
		return why
	}
	if why := misleading(scheme, plain, hosted); why != "" {
		return why
	}
	if strings.Contains(plain[strings.LastIndexByte(plain, '/')+1:], ";") && hasParameters(scheme) {
		return "the URI holds parameters, which some readers leave out"
	}
	return ""
}

// moving says why a URI, decoded as often as readers do, may lead elsewhere. A query may hold what stands for
// a separator, unless a segment becomes empty by it.
func moving(scheme, rest string) string {
	plain, _, _ := strings.Cut(rest, "?")
	empty := len(roots(rest))
	for range decodings + 1 {
		rest, plain = strings.ToLower(rest), strings.ToLower(plain)
		for _, hidden := range []string{`\`, "%2e", "%2f", "%5c", "%00"} {
			if strings.Contains(plain, hidden) || len(roots(rest)) > empty {
				return "the URI hides a separator or a dot"
			}
		}
		if scheme != "" && strings.Contains(rest, scheme+"//") {
			return "the URI holds its own scheme once more, which some servers take out wherever it stands"
		}
		if hasDots(rest) {
			return "the URI holds . or .. as a segment"
		}
		decoded := unescape(rest)
		if decoded == rest {
			return ""
		}
		rest, plain = decoded, unescape(plain)
	}
	return "the URI is escaped too often"
}

// hasDots reports whether some segment moves, of a query as well, as some take all of it for a path.
func hasDots(rest string) bool {
	for seg := range strings.SplitSeq(strings.ReplaceAll(shown(rest), `\`, "/"), "/") {
		if i := strings.IndexAny(seg, "?#;:"); i >= 0 {
			seg = seg[:i]
		}
		if seg = strings.TrimSpace(seg); seg == "." || seg == ".." {
			return true
		}
	}
	return false
}

// misleading says why readers may find different hosts in a URI without its query.
func misleading(scheme, plain string, hosted bool) string {
	authority, ok := strings.CutPrefix(plain, "//")
	host, _, _ := strings.Cut(authority, "/")
	name := host[strings.LastIndexByte(host, '@')+1:]
	switch {
	case hosted && isMapped(scheme) && (!ok || host == "" || strings.ContainsFunc(name, func(c rune) bool { return c == '%' || c >= utf8.RuneSelf })):
		return "the URI has a host that some readers write in another way"
	case !ok:
		return ""
	case strings.Count(host, "@") > 1:
		return "the URI holds more than one @ before its path, and readers differ on behind which the host is"
	case !isHost(name) && (hosted || strings.ContainsAny(name, "[]")):
		return "the URI holds brackets or a colon where not all readers find the same host"
	}
	return ""
}

// isMapped reports whether browsers and their like, to which wide letters are narrow ones and any number of slashes is two, know
// hosts of a scheme.
func isMapped(scheme string) bool { return scheme == "ws:" || scheme == "wss:" || scheme == "ftp:" }

// has reports whether some entry is of a scheme.
func (m *Mapping) has(scheme string) bool {
	return m != nil && slices.ContainsFunc(m.resources, func(res resource) bool { return strings.HasPrefix(res.uri, scheme) })
}

// isHost reports whether a text is one host, with a port or without, to every reader. What else stands
// behind a colon, or outside of brackets, some take for no part of it, and brackets around a name as well.
func isHost(text string) bool {
	name := text
	if before, ok := strings.CutSuffix(strings.TrimRight(text, "0123456789"), ":"); ok {
		name = before
	}
	if inner, ok := strings.CutPrefix(name, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		return ok && strings.Contains(inner, ":") && !strings.ContainsAny(inner, "[]")
	}
	return !strings.ContainsAny(name, ":[]")
}

// hasParameters reports whether urllib takes what stands behind a semicolon for no part of the path.
func hasParameters(scheme string) bool {
	switch scheme {
	case "", "ftp:", "hdl:", "http:", "https:", "imap:", "mms:", "prospero:", "rtsp:", "rtsps:", "rtspu:", "sftp:", "shttp:", "sip:", "sips:", "tel:":
		return true
	}
	return false
}
