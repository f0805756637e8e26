package capability

import (
	"slices"
	"strings"
)

// Spec is a grant as written: a verb, with its scope still in the writer's
// words. It has one shape for every place a grant can be written in: a YAML
// list, the command line, a token of another dialect.
type Spec struct {
	Verb  string
	Scope []Param // in the order written; nil for the bare form
	Bare  bool    // no scope was written at all, which is not an empty one
	Token bool    // the scope carries its own root, which only the configuration clamps
	Pos   Pos

	// Origin names the shorthand a grant came from, "" for one that was written out.
	Origin string
}

// Param is one scope key of a [Spec] with its values.
type Param struct {
	Key    string
	Values []string
	Args   []Param // the members of a map value, for keys such as args
	IsMap  bool    // a map was written, perhaps an empty one
	Single bool    // one value was written, not a list
	Wrong  string  // what was written instead of text, such as "a number"; "" if nothing
	Pos    Pos
}

// Get finds a scope key.
func (s Spec) Get(key string) (Param, bool) {
	i := slices.IndexFunc(s.Scope, func(p Param) bool { return p.Key == key })
	if i < 0 {
		return Param{}, false
	}
	return s.Scope[i], true
}

// With returns the spec with one more key, which it must not have yet. The
// receiver is left as it was.
func (s Spec) With(key string, values ...string) Spec {
	s.Scope = append(slices.Clone(s.Scope), Param{Key: key, Values: values, Pos: s.Pos})
	s.Bare = false
	return s
}

// Equal reports whether two specs say the same in the same order, wherever they
// are written.
func (s Spec) Equal(o Spec) bool { return s.String() == o.String() }

// String writes the compact form, which [ParseSpec] reads back:
// net.get{hosts=[*.github.com,api.anthropic.com]}.
func (s Spec) String() string {
	if s.Bare {
		return s.Verb
	}
	var b strings.Builder
	b.Grow(64) // most are not longer
	b.WriteString(s.Verb)
	writeScope(&b, s.Scope)
	return b.String()
}

func writeScope(b *strings.Builder, scope []Param) {
	b.WriteByte('{')
	for i, p := range scope {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(p.Key)
		b.WriteByte('=')
		if p.IsMap {
			writeScope(b, p.Args)
			continue
		}
		writeValues(b, p)
	}
	b.WriteByte('}')
}

// writeValues writes one value plainly where the key takes only one, and a list
// in brackets everywhere else.
func writeValues(b *strings.Builder, p Param) {
	if len(p.Values) == 1 && (p.Single || p.Key == inKey.Name) {
		b.WriteString(quoted(p.Values[0]))
		return
	}
	b.WriteByte('[')
	for i, v := range p.Values {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quoted(v))
	}
	b.WriteByte(']')
}

// quoted returns a value as the compact form can read it back: plain when its
// brackets balance and nothing in it would end it early, else in double quotes.
func quoted(v string) string {
	if v == "" || strings.ContainsAny(v, "\"\\=") || strings.TrimSpace(v) != v || !balanced(v) {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(v) + `"`
	}
	return v
}

// balanced reports whether a plain value survives the compact form: its
// brackets nest, and no comma stands outside of them. A value that begins with
// a bracket as a whole would read as a list, so that one is quoted as well.
func balanced(v string) bool {
	var open []byte
	for i := range len(v) {
		switch c := v[i]; c {
		case '[', '{':
			if i == 0 {
				return false
			}
			open = append(open, c+2) // the closing bracket stands two further in ASCII
		case ']', '}':
			if len(open) == 0 || open[len(open)-1] != c {
				return false
			}
			open = open[:len(open)-1]
		case ',':
			if len(open) == 0 {
				return false
			}
		}
	}
	return len(open) == 0
}
