package mapping

import (
	"slices"
	"strings"

	"capgate/capability"
	"capgate/wire"
)

// role is what a mapping says an argument is.
type role struct {
	reads    reader
	optional bool       // when it is absent, the tool touches nothing through it
	fallback wire.Value // what the tool takes when it is absent; Invalid if that is not known
}

// reader turns the value of an argument into what the call needs for it.
type reader interface {
	read(r *reading, at place) error

	// verbs lists the verbs of which a value needs one.
	verbs() []capability.Verb

	// derives reports whether what a value needs is what the tool does. A tool
	// for which nothing says that is called by name.
	derives() bool
}

// free is a value that is not looked at.
type free struct{}

func (free) read(*reading, place) error { return nil }
func (free) verbs() []capability.Verb   { return nil }
func (free) derives() bool              { return false }

// path is a file or directory, with what is beneath it or as a glob.
type path struct {
	verb capability.Verb
	what string // path, tree or glob, as a requirement calls it
}

func (p path) read(r *reading, at place) error {
	text, err := at.text()
	if err != nil {
		return err
	}
	as := r.View.Path
	switch p.what {
	case modTree:
		as = r.View.Tree
	case modGlob:
		as = r.View.Glob
	}
	where, err := as(text)
	return r.need(at, capability.File(p.verb, where), err)
}

func (p path) verbs() []capability.Verb { return []capability.Verb{p.verb} }
func (path) derives() bool              { return true }

// host is a URL, or a host with an optional port.
type host struct {
	verb capability.Verb
	what string // url or host, as a requirement calls it
}

func (h host) read(r *reading, at place) error {
	text, err := at.text()
	if err != nil {
		return err
	}
	as := capability.ParseURL
	if h.what == asHost {
		as = capability.ParseTarget
	}
	target, err := as(text)
	return r.need(at, capability.Net(h.verb, target), err)
}

func (h host) verbs() []capability.Verb { return []capability.Verb{h.verb} }
func (host) derives() bool              { return true }

// request is a URL under the verb that the argument beside it names.
type request struct {
	method   string // the name of that argument
	fallback string // the method when it is absent, "" if that is not known
}

func (q request) read(r *reading, at place) error {
	verb, err := q.verb(at)
	if err != nil {
		return err
	}
	return host{verb, asURL}.read(r, at)
}

// verb reads the method. One that stands for no verb is denied as what no grant
// can allow, not as unreadable: the call is in order, and asks for too much.
func (q request) verb(at place) (capability.Verb, error) {
	text, value := q.fallback, place{}
	if v, ok := at.object.Get(q.method); ok && v.Kind() != wire.Null {
		value = place{value: v, name: q.method}
		var err error
		if text, err = value.text(); err != nil {
			return "", err
		}
	} else if text == "" {
		return "", malformed(q.method, "is missing, and the method that the tool uses instead is not known")
	}
	verb, ok := methodVerb(text)
	if !ok {
		return "", refuse(capability.ScopeViolation, q.method, "names the method %s, which no verb allows", printable(text))
	}
	return verb, nil
}

func (request) verbs() []capability.Verb {
	return []capability.Verb{"net.get", "net.post", "net.put", "net.delete"}
}
func (request) derives() bool { return true }

// methodVerb returns the verb of an HTTP method, in either case of its letters.
func methodVerb(method string) (capability.Verb, bool) {
	switch strings.ToLower(method) {
	case "get", "head":
		return "net.get", true
	case "post":
		return "net.post", true
	case "put":
		return "net.put", true
	case "delete":
		return "net.delete", true
	}
	return "", false
}

// method is the argument that names the verb of the URL beside it.
type method struct{}

func (method) read(_ *reading, at place) error {
	_, err := at.text()
	return err
}
func (method) verbs() []capability.Verb { return nil }
func (method) derives() bool            { return false }

// word is one dimension of a keyed verb; a verb without any is needed as it is.
type word struct {
	verb capability.Verb
	dim  string // "" when the verb has none
}

// keyed collects the words that the arguments of a call give one keyed verb.
type keyed struct {
	verb capability.Verb
	dims []dimension
}

type dimension struct {
	name   string
	values []given
	open   bool // some argument that would give it is absent
}

// given is one word, and where it stands.
type given struct {
	at   place
	text string
}

func (w word) read(r *reading, at place) error {
	text, err := at.text()
	if err != nil {
		return err
	}
	if w.dim == "" {
		q, err := capability.Keyed(w.verb)
		return r.need(at, q, err)
	}
	if isResource(w) {
		if strings.Contains(text, ":") || len(text) > MaxURI {
			return r.uri(r.tool.of, at, text)
		}
		as := capability.ReadURI(text)
		return r.resources(r.tool.of.resource(text, as), at, text, as)
	}
	r.word(w, at, text)
	return nil
}

// isResource reports whether a role is that of the URI of a resource.
func isResource(r reader) bool { return r == reader(word{readResource, "uri"}) }

func (r *reading) word(w word, at place, text string) {
	d := r.wordsOf(w.verb).of(w.dim)
	d.values = append(d.values, given{at, text})
}

func (w word) verbs() []capability.Verb {
	if w.verb.Resource() == "records" && w.verb != "records.read" {
		// The record of an agent is changed under the verb for agents.
		return []capability.Verb{capability.Verb("agent" + strings.TrimPrefix(string(w.verb), "records")), w.verb}
	}
	return []capability.Verb{w.verb}
}
func (word) derives() bool { return true }

func (r *reading) wordsOf(v capability.Verb) *keyed {
	for i := range r.words {
		if r.words[i].verb == v {
			return &r.words[i]
		}
	}
	r.words = append(r.words, keyed{verb: v})
	return &r.words[len(r.words)-1]
}

func (k *keyed) of(dim string) *dimension {
	for i := range k.dims {
		if k.dims[i].name == dim {
			return &k.dims[i]
		}
	}
	k.dims = append(k.dims, dimension{name: dim})
	return &k.dims[len(k.dims)-1]
}

// named returns the dimensions that the call names. Where several are named and
// one is left out in some place, what stands there may be meant without it, which
// the empty word says.
func (k *keyed) named() []dimension {
	dims := slices.DeleteFunc(k.dims, func(d dimension) bool { return len(d.values) == 0 })
	for i := range dims {
		if d := &dims[i]; d.open && len(dims) > 1 {
			d.values = append(d.values, given{at: d.values[0].at})
		}
	}
	return dims
}

// keyedNeeds adds one requirement for each combination of the words: where the
// arguments do not say which belong together, all of them may.
func (r *reading) keyedNeeds(k keyed) error {
	dims := k.named()
	if len(dims) == 0 {
		return nil
	}
	combinations := 1
	for _, d := range dims {
		if combinations *= len(d.values); combinations > most {
			return tooMany(d.values[0].at.name, "combinations with other arguments")
		}
	}
	words := make([]capability.Word, len(dims))
	for n := range combinations {
		rest := n
		for i, d := range dims {
			words[i] = capability.Word{Dim: d.name, Value: d.values[rest%len(d.values)].text}
			rest /= len(d.values)
		}
		q, err := capability.Keyed(k.verb, words...)
		if err := r.need(dims[0].values[n%len(dims[0].values)].at, q, err); err != nil {
			return err
		}
	}
	return nil
}
