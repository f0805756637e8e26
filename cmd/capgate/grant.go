package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"capgate/agents"
	"capgate/capability"
)

func (a *app) agentsGrant() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:     "grant AGENT [SPEC...]",
		Short:   "Widen what an agent may do",
		Long:    "grant adds to the record of an agent. Without a SPEC it opens a picker over the\ncatalogue, from low to high risk. It shows what will change and asks first.",
		Example: "  capgate agents grant scout 'net.get{hosts=[*.github.com,api.anthropic.com]}'\n  capgate agents grant scout 'proc.exec{in=~/Work,cmds=[rg,jq]}'",
		Args:    takes(1, math.MaxInt),
		RunE: func(_ *cobra.Command, args []string) error {
			w, ag, specs, err := a.change(args)
			if err != nil {
				return err
			}
			return a.grant(w, ag, specs, yes)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// change reads what grant and revoke are told: an agent with a sound record, and
// the grants it is about.
func (a *app) change(args []string) (*world, *agents.Agent, []capability.Spec, error) {
	w, err := a.load()
	if err != nil {
		return nil, nil, nil, err
	}
	ag, err := w.sound(args[0])
	if err != nil {
		return nil, nil, nil, err
	}
	specs, err := a.specs(args[1:])
	return w, ag, specs, err
}

// specs reads grants from the command line, or has one picked.
func (a *app) specs(texts []string) ([]capability.Spec, error) {
	if len(texts) == 0 {
		return a.pick()
	}
	var specs []capability.Spec
	for _, text := range texts {
		s, err := capability.ParseSpec(text)
		if err != nil {
			return nil, usage(err, "quote the grant: 'net.get{hosts=[*.github.com]}'")
		}
		specs = append(specs, s)
	}
	return specs, nil
}

func (a *app) grant(w *world, ag *agents.Agent, specs []capability.Spec, yes bool) error {
	set, findings := w.roster.Compile(ag, specs...)
	for _, f := range findings {
		a.ui.finding(a.ui.std.err, f)
	}
	if err := effective(set, specs); err != nil {
		return err
	}
	if len(ag.Set.Covers(set)) == 0 {
		a.ui.note("%s holds this already; nothing was changed", ag.ID)
		if a.ui.json {
			return a.ui.emit(editView(ag, &agents.Edited{Grants: ag.Record.Grants}))
		}
		return nil
	}
	shown := a.ui.std.out
	if a.ui.json {
		shown = a.ui.std.err
	}
	for g := range set.All() {
		fmt.Fprintf(shown, "%s %s  %s\n", a.ui.paint(green, "+"), plain(g.String()), a.ui.paint(riskColor(g.Risk()), g.Risk().String()))
	}
	a.ui.warnWide(set)
	if chain, err := w.roster.Chain(ag.ID); err == nil {
		a.ui.warnBeyond(chain[1:], set)
	}
	if err := a.confirm(fmt.Sprintf("widen %s in %s?", ag.ID, a.ui.short(ag.File)), yes); err != nil {
		return err
	}
	return a.edit(w, ag, agents.Change{Grant: specs})
}

// effective refuses grants that would mean nothing where they are to stand.
func effective(set *capability.Set, specs []capability.Spec) error {
	n := 0
	for g := range set.All() {
		if n++; g.Inert() != "" {
			return usage(fmt.Errorf("%s would be inert: %s", g, g.Inert()), "")
		}
	}
	if n == 0 {
		return usage(fmt.Errorf("%s grants nothing", specs[0]), "capgate catalogue shows the verbs and their keys")
	}
	return nil
}

// warnWide says which of new grants are wider than most.
func (u *ui) warnWide(set *capability.Set) {
	for g := range set.All() {
		if g.Wide() != "" {
			u.line(u.std.err, yellow, "warning", g.Wide())
		}
	}
}

// warnBeyond says what of new grants the agents above will not let through.
func (u *ui) warnBeyond(above capability.Chain, set *capability.Set) {
	for _, link := range above {
		for _, gap := range link.Set.Covers(set) {
			u.line(u.std.err, yellow, "warning", fmt.Sprintf("%s does not allow %s; until it does, that part stays denied", link.Name, gapText(gap)))
		}
	}
}

// confirm asks before authority is widened. Without a person there, only --yes will do.
func (a *app) confirm(question string, yes bool) error {
	if yes {
		return nil
	}
	if !a.ui.std.terminal {
		return usage(fmt.Errorf("this widens an agent, and nobody is here to be asked"), "add --yes")
	}
	return a.agreed(question)
}

// agreed asks a person, and is an error unless the answer is yes.
func (a *app) agreed(question string) error {
	ok, err := a.ui.ask(question)
	if err == nil && !ok {
		err = errors.New("nothing was changed")
	}
	if err != nil {
		return &exit{code: exitRed, err: err}
	}
	return nil
}

// edit rewrites the record and says what became of it.
func (a *app) edit(w *world, ag *agents.Agent, change agents.Change) error {
	change.Options = agents.Options{Config: w.cfg.Sandbox, View: w.view}
	result, err := w.rewrite(ag, change)
	if e, ok := errors.AsType[*agents.Refusal](err); ok {
		return usage(e, e.Hint)
	}
	if _, ok := errors.AsType[*exit](err); ok {
		return err
	}
	if err != nil {
		return broken(err, "")
	}
	switch {
	case !result.Changed:
		a.ui.note("nothing was changed")
	case shorthand(ag) != "":
		a.ui.note("%s written out as grants", shorthand(ag))
	}
	for _, s := range result.Still {
		a.ui.line(a.ui.std.err, yellow, "warning", fmt.Sprintf("%s still allows some of what was to be revoked", s))
	}
	for _, s := range result.Lost {
		a.ui.line(a.ui.std.err, yellow, "warning", fmt.Sprintf("%s is inert now: sandbox: was clamped to the configuration's root, and the directory that is written out lies outside of it", s))
	}
	if len(result.Lost) > 0 {
		a.ui.line(a.ui.std.err, faint, "hint", "grant it with an in: beneath "+w.cfg.Sandbox.Dir)
	}
	failing := a.failing(w, result)
	if len(result.Still) > 0 {
		a.code = exitRed
	}
	if a.ui.json {
		view := editView(ag, result)
		view.Failing = append(view.Failing, failing...)
		return a.ui.emit(view)
	}
	return nil
}

// rewrite changes a record. What widens it is recorded before, or not done; what narrows is done
// in any case.
func (w *world) rewrite(ag *agents.Agent, change agents.Change) (result *agents.Edited, err error) {
	var unrecorded error
	err = agents.WriteFile(ag.File, func(data []byte) ([]byte, error) {
		err := unchanged(ag, data)
		if err != nil {
			return nil, err
		}
		if result, err = agents.Edit(ag.File, data, change); err != nil {
			return nil, err
		}
		if result.Changed {
			unrecorded = w.kept().note(ag.ID, editText(change))
		}
		if unrecorded != nil && len(change.Grant) > 0 {
			return nil, unchangedFor(unrecorded)
		}
		return result.Data, nil
	})
	if err == nil && unrecorded != nil {
		err = doneFor(unrecorded)
	}
	return result, err
}

// editText is what an event says of an edit.
func editText(change agents.Change) string {
	if len(change.Grant) > 0 {
		return "granted: " + specTexts(change.Grant)
	}
	return "revoked: " + specTexts(change.Revoke)
}

func specTexts(specs []capability.Spec) string {
	var texts []string
	for _, s := range specs {
		texts = append(texts, s.String())
	}
	return strings.Join(texts, ", ")
}

// failing says which policy tests the edit has broken, as check does.
func (a *app) failing(before *world, result *agents.Edited) (broke []outcome) {
	if !result.Changed || len(before.cfg.Tests) == 0 {
		return nil
	}
	after, err := a.load()
	if err != nil {
		return nil // nothing is said of tests that cannot be run
	}
	passed := map[capability.Pos]bool{}
	for _, o := range before.check().Tests {
		passed[o.Pos] = o.Pass
	}
	for _, o := range after.check().Tests {
		if !o.Pass && passed[o.Pos] {
			broke = append(broke, o)
			a.ui.line(a.ui.std.err, yellow, "warning", "a policy test fails now: "+a.ui.failed(o))
		}
	}
	if len(broke) > 0 {
		a.ui.line(a.ui.std.err, faint, "hint", "a gateway that runs takes over only what narrows; capgate check runs all tests")
	}
	return broke
}

// unchanged refuses to edit a record that no longer says what was shown when it
// was asked about.
func unchanged(ag *agents.Agent, data []byte) error {
	now, _, err := agents.Parse(ag.File, data)
	if err != nil {
		return err
	}
	then := ag.Record
	same := now.ID == then.ID && now.Dialect == then.Dialect && now.Sandbox == then.Sandbox && now.Parent == then.Parent &&
		slices.EqualFunc(now.Grants, then.Grants, capability.Spec.Equal)
	if !same {
		return &agents.Refusal{Pos: capability.Pos{File: ag.File}, Text: "the record was changed meanwhile, and was left as it is", Hint: "look again, and repeat"}
	}
	return nil
}

// edited is what an edit came to.
type edited struct {
	Agent   string    `json:"agent"`
	File    string    `json:"file"`
	Changed bool      `json:"changed"`
	Grants  []string  `json:"grants"`
	Lost    []string  `json:"inert_now"`
	Still   []string  `json:"still_covered_by"`
	Failing []outcome `json:"tests_that_fail_now"`
}

func editView(ag *agents.Agent, e *agents.Edited) edited {
	texts := func(specs []capability.Spec) []string {
		out := []string{}
		for _, s := range specs {
			out = append(out, s.String())
		}
		return out
	}
	return edited{ag.ID, ag.File, e.Changed, texts(e.Grants), texts(e.Lost), texts(e.Still), []outcome{}}
}

// shorthand names what the first edit of a record writes out.
func shorthand(ag *agents.Agent) string {
	var names []string
	for _, s := range ag.Record.Grants {
		if s.Origin != "" && !slices.Contains(names, s.Origin) {
			names = append(names, s.Origin)
		}
	}
	return strings.Join(names, " and ")
}

func (a *app) agentsRevoke() *cobra.Command {
	return &cobra.Command{
		Use:     "revoke AGENT SPEC...",
		Short:   "Narrow what an agent may do",
		Example: "  capgate agents revoke scout records.update\n  capgate agents revoke scout 'proc.exec{in=~/Work,cmds=[rg,jq]}'",
		Args:    takes(2, math.MaxInt),
		RunE: func(_ *cobra.Command, args []string) error {
			w, ag, specs, err := a.change(args)
			if err != nil {
				return err
			}
			return a.edit(w, ag, agents.Change{Revoke: specs})
		},
	}
}
