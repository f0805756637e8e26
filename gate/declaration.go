package gate

import (
	"slices"

	"capgate/capability"
)

// Declaration is what an operator declares that a server or tool touches of the
// outside. Nil is none, which narrows nothing.
type Declaration struct {
	says    *capability.Set // what is declared
	ceiling *capability.Set // that, and everything that no declaration speaks of
	server  *Declaration    // what it is within, nil for nothing
}

// Declare compiles a declaration: network, secrets, storage, files and programs.
func Declare(specs []capability.Spec, o capability.Options) *Declaration {
	d := new(Declaration)
	d.says, _ = capability.Compile(specs, o)
	all := slices.Clone(specs)
	for _, spec := range specs {
		if spec.Verb == "fs.write" { // who may write there may remove there, as far as declarations tell
			spec.Verb = "fs.delete"
			all = append(all, spec)
		}
	}
	for _, e := range capability.Catalogue() {
		if declarable(e.Verb) {
			continue
		}
		spec := capability.Spec{Verb: string(e.Verb)}
		if !e.Bare() && len(e.Keys) > 0 {
			spec = spec.With(e.Keys[0].Name, "**")
		} else {
			spec.Bare = true
		}
		all = append(all, spec)
	}
	d.ceiling, _ = capability.Compile(all, o)
	return d
}

// Inert returns what is declared and stands for nothing as it is written.
func (d *Declaration) Inert() []*capability.Grant {
	var inert []*capability.Grant
	for g := range d.says.All() {
		if g.Inert() != "" {
			inert = append(inert, g)
		}
	}
	return inert
}

// Within returns the declaration of one tool, held to that of its server as well.
func (d *Declaration) Within(server *Declaration) *Declaration {
	return &Declaration{says: d.says, ceiling: d.ceiling, server: server}
}

// declarable reports whether a verb is one that declarations speak of.
func declarable(v capability.Verb) bool {
	switch v.Resource() {
	case "net", "secret", "memory", "fs", "proc":
		return true
	}
	return false
}

// link is the declaration, and that of the server before it, as part of a chain.
func (d *Declaration) link(chain capability.Chain, name string) capability.Chain {
	if d == nil {
		return chain
	}
	return append(slices.Clip(d.server.link(chain, name)), capability.Link{Name: "declaration of " + name, Set: d.ceiling})
}

// Allows reports whether a requirement is within the declaration.
func (d *Declaration) Allows(need *capability.Requirement) bool {
	return d == nil || d.ceiling.Decide(need).Allowed() && d.server.Allows(need)
}
