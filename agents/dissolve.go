package agents

import (
	"slices"

	"capgate/capability"
)

// lost compares what hung from a sandbox: that the configuration clamped with what
// it says once the directory is written out. Some of it may say nothing any more;
// what would say more is refused.
func (e *edit) lost() ([]capability.Spec, error) {
	o := e.change.Options
	if e.rec.Sandbox == "" || o.Config.IsZero() {
		return nil, nil // nothing is written out, or nothing clamps
	}
	root, err := capability.ParseRoot(e.rec.Sandbox, o.Config.Dir, o.View)
	if err != nil {
		return nil, e.refuse("", "sandbox: %v", err)
	}
	clamped, changed := root.Clamp(o.Config)
	if !changed {
		return nil, nil
	}
	was := capability.Options{Config: o.Config, Agent: clamped, View: o.View}
	if err := e.meansTheSame(was); err != nil {
		return nil, err
	}
	var lost []capability.Spec
	for _, i := range slices.Concat(e.items, e.passed) {
		if i.dropped || !i.moved && i.spec.Origin != originSandbox {
			continue
		}
		before := capability.Spec{Verb: i.spec.Verb}.With("in", clamped.Dir) // of the shorthand
		if i.entry != nil {
			before = i.entry.spec
		}
		held, _ := capability.Compile([]capability.Spec{before}, was)
		holds := e.compiled(i.spec)
		switch {
		case holdsAny(held) && !holdsAny(holds):
			lost = append(lost, i.spec)
		case len(held.Covers(holds)) > 0:
			return nil, e.refuse("write in: with the directory that is meant, and remove sandbox:",
				"%s would mean more than it did while sandbox: was clamped to %s", i.spec, clamped.Dir)
		}
	}
	return lost, nil
}

// meansTheSame refuses new grants that would mean something else than they do in the
// record as it stands, which is what whoever asked for them was shown.
func (e *edit) meansTheSame(was capability.Options) error {
	for _, s := range e.change.Grant {
		hung, err := e.hang(s)
		if err != nil {
			return err
		}
		shown, _ := capability.Compile([]capability.Spec{s}, was)
		if written := e.compiled(hung); len(shown.Covers(written)) > 0 || len(written.Covers(shown)) > 0 {
			return e.refuse("grant it with the whole path of the directory in in:",
				"%s would mean something else once sandbox: is written out, which was clamped to %s", s, was.Agent.Dir)
		}
	}
	return nil
}
