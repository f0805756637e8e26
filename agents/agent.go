package agents

import (
	"fmt"
	"slices"
	"sync"

	"capgate/capability"
)

// Options says what records are compiled against.
type Options struct {
	Config capability.Root // the configuration's sandbox root, if any
	View   capability.View // Home for ~, FS for links
}

// Agent is a record, compiled. It is immutable. An agent whose record is broken
// is known all the same, with an Err, and holds nothing.
type Agent struct {
	ID       string
	File     string          // where it is written
	Record   *Record         // nil when it could not be read
	Root     capability.Root // its sandbox root, within the configuration's; zero if it has none
	Set      *capability.Set // what it may do
	Findings []capability.Finding
	Err      error // why it is denied everything, an [*Invalid]; nil for a sound agent

	own     []capability.Spec // what Set is compiled from; nil until an heir has it
	passes  func() *capability.Set
	lineage Lineage
	kept    Lineage         // what it is kept within while its files have not rested; zero is nothing
	base    capability.Root // what relative paths in its skills hang from; zero: its root
}

// Code is what a call of the agent is denied with before anything is decided:
// [capability.InvalidConfig] for a broken record, "" for a sound one.
func (a *Agent) Code() capability.Code {
	if a.Err != nil {
		return capability.InvalidConfig
	}
	return ""
}

// Giveable returns what the agent may do, and what it may pass on besides. It is compiled when
// somebody asks, which is of an agent that others hang from.
func (a *Agent) Giveable() *capability.Set { return a.passes() }

// nothing is the set without any grant.
func nothing() *capability.Set {
	s, _ := capability.Compile(nil, capability.Options{})
	return s
}

// broken is an agent whose record cannot be trusted.
func broken(id, file string, err error) *Agent {
	return &Agent{ID: id, File: file, Set: nothing(), passes: nothing, Err: err}
}

// compile resolves the root of a record and compiles its grants. Those of a
// record that inherits follow later, when its parent is known.
func compile(rec *Record, findings []capability.Finding, opts Options) *Agent {
	a := &Agent{ID: rec.ID, File: rec.File, Record: rec, Findings: findings}
	if err := a.resolveRoot(opts); err != nil {
		return broken(rec.ID, rec.File, err)
	}
	if !rec.Inherit {
		a.own = a.rooted(rec.Grants)
		a.compileSets(opts)
	}
	return a
}

// resolveRoot finds the directory of sandbox: and clamps it to the
// configuration's.
func (a *Agent) resolveRoot(opts Options) error {
	if a.Record.Sandbox == "" {
		return nil
	}
	pos := a.Record.sandboxPos
	root, err := capability.ParseRoot(a.Record.Sandbox, opts.Config.Dir, opts.View)
	if err != nil {
		// Without a root of its own the agent would get the configuration's,
		// which is wider than whatever was meant.
		return &Invalid{Pos: pos, Text: fmt.Sprintf("sandbox: %v", err)}
	}
	clamped, changed := root.Clamp(opts.Config)
	if root.Escapes(opts.Config) {
		return &Invalid{Pos: pos, Text: fmt.Sprintf("sandbox: %s leads out of the configuration's root through a link", root.Dir)}
	}
	if a.Root = clamped; changed {
		a.Findings = append(a.Findings, capability.Finding{
			Code: "clamped", Severity: capability.Warning, Pos: pos,
			Text: fmt.Sprintf("sandbox: %s is not within the configuration's root and was clamped to %s", root.Dir, clamped.Dir),
		})
	}
	return nil
}

// rooted writes the root in effect into what the shorthand granted: as written
// it is relative to the configuration, where in: is relative to the agent's root.
func (a *Agent) rooted(specs []capability.Spec) []capability.Spec {
	out := make([]capability.Spec, len(specs))
	for i, s := range specs {
		if s.Origin == originSandbox {
			s.Scope = []capability.Param{{Key: "in", Values: []string{a.Root.Dir}, Single: true, Pos: s.Pos}}
		}
		out[i] = s
	}
	return out
}

func (a *Agent) compileSets(opts Options) {
	options := capability.Options{Dialect: a.Record.Dialect, Config: opts.Config, Agent: a.Root, View: opts.View, Unconfined: true}
	var findings []capability.Finding
	a.Set, findings = capability.Compile(a.own, options)
	a.Findings = append(a.Findings, findings...)
	a.passes = func() *capability.Set { return a.Set }
	if len(a.Record.Delegable) == 0 && !a.Set.Holds("proc.exec") {
		return
	}
	options.Unconfined = false // who holds any program, which is inert, may pass on some
	_, findings = capability.Compile(a.Record.Delegable, options)
	a.Findings = append(a.Findings, findings...)
	all := slices.Concat(a.own, a.Record.Delegable)
	a.passes = sync.OnceValue(func() *capability.Set {
		set, _ := capability.Compile(all, options)
		return set
	})
}
