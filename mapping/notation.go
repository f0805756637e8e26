package mapping

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"capgate/capability"
	"capgate/wire"
)

const maxRoles = 8 // of one argument

// The roles that are no verbs.
const (
	roleFree   = "free"
	roleSecret = "secret"
)

// roles reads one role, or a list of roles that all apply.
func (b *builder) roles(n *yaml.Node) ([]role, error) {
	if n.Kind != yaml.SequenceNode {
		r, err := b.role(n)
		return []role{r}, err
	}
	if len(n.Content) == 0 || len(n.Content) > maxRoles {
		return nil, b.wrong(n, "", "a list of roles has 1 to %d of them", maxRoles)
	}
	var roles []role
	for _, c := range n.Content {
		r, err := b.role(c)
		if err != nil {
			return nil, err
		}
		if _, ok := r.reads.(free); ok && len(n.Content) > 1 {
			return nil, b.wrong(c, "", "what is free has no other role")
		}
		if _, ok := r.reads.(secret); ok && len(n.Content) > 1 {
			return nil, b.wrong(c, "", "what holds secrets has no other role: that would be decided on the handle, not on what is filled in")
		}
		roles = append(roles, r)
	}
	return roles, nil
}

func (b *builder) role(n *yaml.Node) (role, error) {
	switch {
	case n.Kind == yaml.MappingNode:
		return b.long(n)
	case !isText(n):
		return role{}, b.wrong(n, "", "a role is a verb, free, secret, or a map, not %s", nounOf(n))
	case n.Value == roleFree:
		return role{reads: free{}, optional: true}, nil
	case n.Value == roleSecret:
		return role{reads: secret{}, optional: true}, nil
	}
	l := long{builder: b, node: n, head: "verb", value: n}
	return l.role()
}

// long is a role in its long form, while it is read. A verb alone is one without
// modifiers.
type long struct {
	*builder
	node      *yaml.Node // the role
	head      string     // the key that says what it is
	value     *yaml.Node // of that key
	modifiers map[string]*yaml.Node
}

// heads are the keys that say what a role is; one of them must stand.
var heads = [...]string{"verb", partDir, partName, partArgv, partEnv, "headers"}

// The keys that say more about a role.
const (
	modTree     = "tree"
	modGlob     = "glob"
	modAs       = "as"
	modMethod   = "method"
	modDim      = "dim"
	modDefault  = "default"
	modOptional = "optional"
)

// What as: can say.
const (
	asURL  = "url"
	asHost = "host"
)

func (b *builder) long(n *yaml.Node) (role, error) {
	l := long{builder: b, node: n, modifiers: map[string]*yaml.Node{}}
	known := slices.Concat(heads[:], []string{modTree, modGlob, modAs, modMethod, modDim, modDefault, modOptional})
	for key, value := range pairs(n) {
		switch {
		case !slices.Contains(known, key.Value):
			return role{}, b.unknown(key, "key of a role", known)
		case !slices.Contains(heads[:], key.Value):
			l.modifiers[key.Value] = value
		case l.head != "":
			return role{}, b.wrong(key, "write a list for several roles", "a role is %s: or %s:, not both", l.head, key.Value)
		default:
			l.head, l.value = key.Value, value
		}
	}
	if l.head == "" {
		return role{}, b.wrong(n, "begin with one of "+strings.Join(heads[:], ", "), "the role does not say what the argument is")
	}
	return l.role()
}

func (l long) role() (r role, err error) {
	switch l.head {
	case "verb":
		r, err = l.verb()
	case "headers":
		r, err = l.headers()
	default:
		r, err = l.part()
	}
	if err != nil {
		return role{}, err
	}
	if n := l.take(modOptional); n != nil {
		if err := l.yes(n, "optional:"); err != nil {
			return role{}, err
		}
		r.optional = true
	}
	if n := l.take(modDefault); n != nil {
		if r.fallback, err = l.fallback(n, r); err != nil {
			return role{}, err
		}
		r.optional = false
	}
	for _, key := range slices.Sorted(maps.Keys(l.modifiers)) {
		return role{}, l.wrong(l.modifiers[key], "", "%s: says nothing about %s", key, l.what())
	}
	return r, nil
}

// take returns a modifier, nil if it does not stand there. What nobody takes is
// out of place.
func (l long) take(key string) *yaml.Node {
	n := l.modifiers[key]
	delete(l.modifiers, key)
	return n
}

// what says which role it is, as it stands in a sentence.
func (l long) what() string {
	if l.head == "verb" {
		return l.value.Value
	}
	return l.head + ":"
}

// verbNames returns the words that may stand for a role, for suggestions.
func verbNames(more ...string) []string {
	for _, e := range capability.Catalogue() {
		more = append(more, string(e.Verb))
	}
	return more
}

// verb reads a role that is a verb; its resource decides how the value is read.
func (l long) verb() (role, error) {
	name, err := l.text(l.value, "verb:")
	if err != nil {
		return role{}, err
	}
	if method := l.take(modMethod); name == "net" || method != nil {
		return l.request(name, method)
	}
	entry, ok := capability.Lookup(capability.Verb(name))
	if !ok {
		known := verbNames()
		if l.modifiers == nil {
			known = verbNames(roleFree, roleSecret)
		}
		return role{}, l.unknown(l.value, "role", known)
	}
	switch v := entry.Verb; v.Resource() {
	case "fs":
		return l.path(v)
	case "net":
		return l.host(v)
	case "proc":
		return role{reads: command{v}}, nil
	default:
		return l.word(entry)
	}
}

func (l long) path(v capability.Verb) (role, error) {
	tree, glob := l.take(modTree), l.take(modGlob)
	switch {
	case tree != nil && glob != nil:
		return role{}, l.wrong(glob, "", "an argument is a tree or a glob, not both")
	case tree != nil:
		return role{reads: path{v, modTree}}, l.yes(tree, "tree:")
	case glob != nil:
		return role{reads: path{v, modGlob}}, l.yes(glob, "glob:")
	}
	return role{reads: path{v, "path"}}, nil
}

// host reads a role under a net verb: a URL, and for raw connections a host with
// its port, unless it says otherwise.
func (l long) host(v capability.Verb) (role, error) {
	switch as := l.take(modAs); {
	case as == nil && v == "net.connect" || as != nil && isText(as) && as.Value == asHost:
		return role{reads: host{v, asHost}}, nil
	case as == nil || isText(as) && as.Value == asURL:
		return role{reads: host{v, asURL}}, nil
	default:
		return role{}, l.wrong(as, "", "as: takes url or host")
	}
}

// request reads { verb: net, method: argument }. Its default: is the method that
// the tool uses when that argument is absent.
func (l long) request(verb string, n *yaml.Node) (role, error) {
	switch {
	case n == nil:
		return role{}, l.wrong(l.value, "write net.get, or method: with the argument that names the method", "net is no verb")
	case verb != "net":
		return role{}, l.wrong(n, fmt.Sprintf("write verb: net, or leave out method: where it is always %s", verb), "method: belongs to verb: net")
	}
	name, err := l.text(n, "method:")
	if err != nil {
		return role{}, err
	}
	beside, err := parseArgument(name)
	if err != nil || len(beside) != 1 {
		return role{}, l.wrong(n, "", "method: names an argument beside this one, without steps")
	}
	q := request{method: beside[0].name}
	if d := l.take(modDefault); d != nil {
		if _, ok := methodVerb(d.Value); !ok || !isText(d) {
			return role{}, l.wrong(d, "", "default: beside method: is the method meant when there is none: GET, HEAD, POST, PUT or DELETE")
		}
		q.fallback = d.Value
	}
	return role{reads: q}, nil
}

// word reads a role under a keyed verb: its first dimension, unless it says
// otherwise.
func (l long) word(e capability.Entry) (role, error) {
	dims := wordDims(e)
	n := l.take(modDim)
	switch {
	case n == nil && len(dims) == 0:
		return role{reads: word{verb: e.Verb}}, nil
	case n == nil:
		return role{reads: word{e.Verb, dims[0]}}, nil
	case !isText(n) || !slices.Contains(dims, n.Value):
		return role{}, l.unknown(n, fmt.Sprintf("dimension of %s", e.Verb), dims)
	}
	return role{reads: word{e.Verb, n.Value}}, nil
}

// wordDims returns the dimensions that one argument can be. Records have a class
// and a path whether or not a verb can be limited to them.
func wordDims(e capability.Entry) []string {
	var dims []string
	for _, k := range e.Keys {
		if k.Type != capability.ArgsKey && !slices.Contains(dims, k.Dim) {
			dims = append(dims, k.Dim)
		}
	}
	if e.Verb.Resource() == "records" {
		for _, dim := range []string{"class", "path"} {
			if !slices.Contains(dims, dim) {
				dims = append(dims, dim)
			}
		}
	}
	return dims
}

// part reads a role that describes a program together with others. The directory
// that nobody names is the upstream's own, which its view knows.
func (l long) part() (role, error) {
	name, err := l.text(l.value, l.head+":")
	if err != nil {
		return role{}, err
	}
	p := part{capability.Verb(name), l.head}
	ofExec := p.what == partName || p.what == partArgv
	switch {
	case p.verb == exec || p.verb == eval && !ofExec:
		return role{reads: p, optional: p.what != partName}, nil
	case ofExec:
		return role{}, l.wrong(l.value, "", "%s: belongs to proc.exec", l.head)
	}
	return role{}, l.wrong(l.value, "", "%s: belongs to proc.exec or proc.eval", l.head)
}

func (l long) headers() (role, error) {
	if l.value.Kind != yaml.SequenceNode {
		return role{}, l.wrong(l.value, "", "headers: takes a list of the names that may be set")
	}
	var h headers
	for _, n := range l.value.Content {
		switch {
		case !isText(n) || !isHeader(n.Value):
			return role{}, l.wrong(n, "", "a header has a name of letters, digits and dashes")
		case fixedHeader(n.Value):
			return role{}, l.wrong(n, "", "the header %s cannot be passed on: it chooses the host, carries a credential or frames the message", n.Value)
		}
		h.names = append(h.names, strings.ToLower(n.Value))
	}
	return role{reads: h, optional: true}, nil
}

// fallback reads what the tool takes when the argument is absent, as the value
// that a call would carry, and tries the role on it.
func (l long) fallback(n *yaml.Node, r role) (wire.Value, error) {
	if r.optional && l.head != partDir && l.head != partArgv {
		return wire.Value{}, l.wrong(n, "", "what is optional has no default")
	}
	var texts any
	switch list := []string{}; {
	case isText(n):
		texts = n.Value
	case n.Kind == yaml.SequenceNode && !slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return !isText(c) }):
		for _, c := range n.Content {
			list = append(list, c.Value)
		}
		texts = list
	default:
		return wire.Value{}, l.wrong(n, "", "default: takes text or a list of it")
	}
	data, err := json.Marshal(texts)
	if err != nil {
		return wire.Value{}, l.wrong(n, "", "default: %v", err)
	}
	doc, err := wire.Parse(data)
	if err != nil {
		return wire.Value{}, l.wrong(n, "", "default: %v", err)
	}
	probe := reading{Call: Call{View: probeView()}, tool: l.tool}
	err = r.reads.read(&probe, place{value: doc.Root(), name: modDefault + ":"})
	for _, need := range probe.needs {
		if why := need.Requirement.Opaque(); why != "" {
			err = fmt.Errorf("no grant could cover it: %s", why)
		}
	}
	if err != nil {
		return wire.Value{}, l.wrong(n, "", "the default cannot be read: %v", err)
	}
	return doc.Root(), nil
}
