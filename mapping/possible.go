package mapping

import (
	"slices"

	"capgate/capability"
	"capgate/wire"
)

// Possible reports whether some arguments exist with which a call of the tool
// would be allowed: by every link of the chain and, as to its name, within every
// ceiling. The arguments of c are not looked at.
//
// The text is such arguments, in JSON. It is empty where no more is known than that
// nothing speaks against them: where the work was capped, or one value is read in
// ways that have little in common, such as a path that is the name of a secret too.
// Paths are compared as text: where links lead, and what is fenced off, only a call
// shows.
func (t *Tool) Possible(c Call, chain, ceilings capability.Chain) (args string, ok bool) {
	c.Args, c.View.FS, c.Limits = wire.Value{}, nil, chain.Limits
	w := wish{tool: t, call: c, chain: chain, ceilings: ceilings, given: map[*node]*gift{}}
	name, err := capability.Keyed(invoke, capability.Word{Dim: "tool", Value: c.Name})
	if t.isPrompt() {
		name, err = nil, nil
	}
	switch {
	case err != nil || !w.within(name) || slices.ContainsFunc(t.Verbs(), w.lacks) || !w.fulfil():
		return "", false
	case w.allowed(w.text()):
		return w.text(), true
	}
	return "", true
}

// wish is the search for arguments with which a call would be allowed.
type wish struct {
	tool            *Tool
	call            Call
	chain, ceilings capability.Chain

	given map[*node]*gift // what is given, and where
	loose []inner         // what is given under names that are no argument's
}

// within reports whether the name of a tool is within every ceiling; that of a
// prompt is no tool's.
func (w *wish) within(name *capability.Requirement) bool {
	return name == nil || !slices.ContainsFunc(w.ceilings, func(l capability.Link) bool { return !l.Set.Decide(name).Allowed() })
}

// lacks reports whether none of some verbs is held.
func (w *wish) lacks(choice []capability.Verb) bool {
	return !slices.ContainsFunc(choice, w.chain.Holds)
}

// allowed reports whether a call with the arguments would be allowed.
func (w *wish) allowed(args string) bool {
	doc, err := wire.Parse([]byte(args))
	if err != nil {
		return false
	}
	w.call.Args = doc.Root()
	needs, err := w.tool.Require(w.call)
	return err == nil && len(needs) > 0 && w.known(needs)
}

// fulfil looks for what every part of the arguments could be. A tool of which
// nothing that is given says what it does is called by name as well.
func (w *wish) fulfil() bool {
	derived := w.tool.isPrompt()
	var parts []circle
	if w.tool != nil {
		derived = derived || len(w.tool.fixed) > 0
		if !w.fixed() {
			return false
		}
		parts = w.circles()
	}
	for _, c := range parts {
		found, derives := w.settle(c, false)
		if !found {
			return false
		}
		derived = derived || derives
	}
	if derived || slices.ContainsFunc(parts, func(c circle) bool { found, _ := w.settle(c, true); return found }) {
		return true
	}
	return w.byName()
}

// fixed reports whether what every call needs is allowed.
func (w *wish) fixed() bool {
	r := reading{Call: w.call, tool: w.tool}
	if w.tool.prompt && r.prompt() != nil {
		return false
	}
	for _, f := range w.tool.fixed {
		if r.fixed(f) != nil {
			return false
		}
	}
	return w.known(r.needs)
}

func (w *wish) known(needs []Need) bool {
	for _, need := range needs {
		if _, ok := w.chain.Possible(w.ceilings, capability.Possibility{Known: need.Requirement}); !ok {
			return false
		}
	}
	return true
}

// byName asks for the tool itself, with every argument that a grant may limit and
// the call can give.
func (w *wish) byName() bool {
	parts := []capability.Part{{Name: "tool", Text: w.call.Name}}
	var names []string
	for _, name := range w.chain.Limited() {
		if w.takes(name) {
			names = append(names, name)
			parts = append(parts, capability.Part{Name: "args." + name, Blank: len(names)})
		}
	}
	witness, ok := w.chain.Possible(w.ceilings, capability.Possibility{Verb: invoke, Parts: parts})
	for i, name := range names {
		if ok && witness[i] != nil {
			w.give(name, witness[i][0])
		}
	}
	return ok
}
