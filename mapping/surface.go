package mapping

import (
	"slices"

	"capgate/capability"
)

// Role is what calls of a tool need, as far as it is known before there is one.
type Role struct {
	Argument string            `json:"argument,omitempty"` // as a mapping writes it, "" for what does not depend on the arguments
	Verbs    []capability.Verb `json:"verbs"`              // a value needs one of them
	Fixed    string            `json:"fixed,omitempty"`    // what every call needs, in compact form, in place of an argument
	Optional bool              `json:"optional,omitempty"` // the argument may be left out
	Handle   bool              `json:"handle,omitempty"`   // any text may stand there; what is needed is for the secrets that are filled in
}

// Roles returns what the tool needs, in the order of its mapping. Arguments that are
// not looked at are left out, and so is an environment, which no grant allows to set.
// That a tool is called by name is not among them; Surface knows.
func (t *Tool) Roles() []Role {
	if t == nil {
		return nil
	}
	var all []Role
	t.args.each("", func(at string, r *role) {
		p, isPart := r.reads.(part)
		if verbs := r.reads.verbs(); len(verbs) > 0 && (!isPart || p.what != partEnv) {
			_, handle := r.reads.(secret)
			all = append(all, Role{Argument: at, Verbs: slices.Clone(verbs), Optional: r.optional, Handle: handle})
		}
	})
	for _, f := range t.fixed {
		all = append(all, Role{Verbs: []capability.Verb{f.verb}, Fixed: f.text})
	}
	return all
}
