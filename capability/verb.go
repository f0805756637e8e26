package capability

import (
	"slices"
	"strings"
)

// Verb is a resource and what is done to it, such as "net.get".
type Verb string

// Resource returns the part before the first dot: "net" of "net.get".
func (v Verb) Resource() string {
	r, _, _ := strings.Cut(string(v), ".")
	return r
}

// Risk says how much an unscoped grant of a verb could cost.
type Risk uint8

// The risks, lowest first.
const (
	Low Risk = iota
	Medium
	High
)

// String returns low, medium or high.
func (r Risk) String() string { return [...]string{"low", "medium", "high"}[r] }

// MarshalText writes the risk as its word.
func (r Risk) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// KeyType says how the values of a scope key are read.
type KeyType uint8

// The types of scope keys.
const (
	RootKey   KeyType = iota // one absolute directory
	PathKey                  // paths below the root: plain = with all beneath, or a glob
	HostKey                  // hosts, with optional ports
	CmdKey                   // program names, exact
	ArgvKey                  // argv patterns, word by word
	NameKey                  // names and keys: globs without a separator
	IDKey                    // agent ids: globs without a separator, "scout" is "agents/scout"
	RecordKey                // paths of records: globs with "/"
	DottedKey                // Rye ids: globs with ".", a final ".*" covers the subtree
	URIKey                   // URIs: globs in which only a star at the end stands for a query
	ArgsKey                  // a map from argument name to patterns
)

// String returns what a user would call such a value.
func (t KeyType) String() string {
	return [...]string{
		"a directory", "a list of paths", "a list of hosts", "a list of programs", "a list of argv patterns",
		"a list of names", "a list of agent ids", "a list of record paths", "a list of ids", "a list of URIs", "a map of arguments",
	}[t]
}

// Key is one scope key of a verb. Keys that share a dimension add up; keys of
// different dimensions must all hold.
type Key struct {
	Name string
	Type KeyType
	Dim  string // the dimension of a requirement it limits
}

// bareForm says what a verb without a scope grants.
type bareForm uint8

const (
	bareNothing bareForm = iota // external verbs, and those that must name what they mean
	bareAll                     // internal verbs: the universe
	bareSelf                    // obs.query: the agent's own log
)

// Entry is one line of the catalogue.
type Entry struct {
	Verb Verb
	Risk Risk
	Keys []Key
	Help string

	bare  bareForm
	token string // the scope key that "verb:scope" fills, "" if none
}

// External reports whether the verb reaches outside the gateway (fs, net, proc):
// written without a scope it grants nothing.
func (e Entry) External() bool {
	r := e.Verb.Resource()
	return r == "fs" || r == "net" || r == "proc"
}

// Bare reports whether the verb written without a scope grants something.
func (e Entry) Bare() bool { return e.bare != bareNothing }

// Key finds a scope key by name.
func (e Entry) Key(name string) (Key, bool) {
	i := slices.IndexFunc(e.Keys, func(k Key) bool { return k.Name == name })
	if i < 0 {
		return Key{}, false
	}
	return e.Keys[i], true
}

// dims returns the dimensions of a keyed verb, in the order of its keys, and behind
// them those that no key of it limits.
func (e Entry) dims() []string {
	var dims []string
	for _, k := range e.Keys {
		if !slices.Contains(dims, k.Dim) {
			dims = append(dims, k.Dim)
		}
	}
	if e.Verb == readResource {
		dims = append(dims, serverDim, itemDim)
	}
	return dims
}

// limits returns the first key that limits a dimension, if one does.
func (e Entry) limits(dim string) (Key, bool) {
	i := slices.IndexFunc(e.Keys, func(k Key) bool { return k.Dim == dim })
	if i < 0 {
		return Key{}, false
	}
	return e.Keys[i], true
}

// providerPrefix begins the verbs of tools that run at a model's provider. Beside
// those in the catalogue they are as many as the providers think of.
const providerPrefix = "provider."

// Lookup finds a verb in the catalogue. Provider verbs that are not in it are found
// by their form.
func Lookup(v Verb) (Entry, bool) {
	for i := range catalogue {
		if catalogue[i].Verb == v {
			return catalogue[i], true
		}
	}
	if name, ok := strings.CutPrefix(string(v), providerPrefix); ok && isProviderTool(name) {
		e := providerEntry
		e.Verb = v
		return e, true
	}
	return Entry{}, false
}

func isProviderTool(name string) bool {
	const maxName = 64
	if name == "" || len(name) > maxName {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// Catalogue returns every verb, by risk and then by name; of the provider verbs,
// whose number is open, those that are known.
func Catalogue() []Entry {
	list := slices.Clone(catalogue[:])
	slices.SortStableFunc(list, func(a, b Entry) int {
		if a.Risk != b.Risk {
			return int(a.Risk) - int(b.Risk)
		}
		return strings.Compare(string(a.Verb), string(b.Verb))
	})
	return list
}
