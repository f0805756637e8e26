package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"capgate/agents"
	"capgate/capability"
)

// grantView is one grant as agents capabilities shows it.
type grantView struct {
	Verb    string `json:"verb"`
	Risk    string `json:"risk"`
	Grant   string `json:"grant"`             // in effect, in compact form
	Source  string `json:"source"`            // file:line:col
	Origin  string `json:"origin,omitempty"`  // the shorthand it came from
	Inert   string `json:"inert,omitempty"`   // why it allows nothing
	Clamped string `json:"clamped,omitempty"` // what load narrowed
	Wide    string `json:"wide,omitempty"`    // in what way it is wider than it looks
	Beyond  string `json:"beyond,omitempty"`  // what an agent above, or a toolset, does not allow of it
	Unasked string `json:"unasked,omitempty"` // why nothing asks for it

	risk capability.Risk
	pos  capability.Pos
}

// authority is what an agent may do, on one screen.
type authority struct {
	ID        string               `json:"id"`
	File      string               `json:"file"`
	Dialect   string               `json:"dialect"`
	Parent    string               `json:"parent,omitempty"`
	Root      string               `json:"root,omitempty"`
	Toolset   []string             `json:"toolset,omitempty"`
	Forbids   []forbidden          `json:"forbids,omitempty"` // what toolsets take away, those of agents above too
	Approve   []string             `json:"approve,omitempty"`
	Grants    []grantView          `json:"grants"`
	Delegable []grantView          `json:"delegable,omitempty"`
	Findings  []capability.Finding `json:"findings,omitempty"`
}

func (a *app) agentsCapabilities() *cobra.Command {
	return &cobra.Command{
		Use:     "capabilities AGENT",
		Aliases: []string{"caps"},
		Short:   "Show what an agent may do, by risk, with where it is written",
		Args:    oneAgent,
		RunE: func(_ *cobra.Command, args []string) error {
			w, err := a.load()
			if err != nil {
				return err
			}
			ag, err := w.sound(args[0])
			if err != nil {
				return err
			}
			v := w.authority(ag)
			if a.ui.json {
				return a.ui.emit(v)
			}
			a.printAuthority(v)
			return nil
		},
	}
}

func (w *world) authority(ag *agents.Agent) authority {
	line, _ := w.roster.Lineage(ag.ID) // a broken one has been reported
	v := authority{
		ID: ag.ID, File: ag.File, Dialect: ag.Record.Dialect.String(), Parent: ag.Record.Parent,
		Root: ag.Root.Dir, Toolset: ag.Record.Toolset, Approve: line.Approve,
		Forbids: w.forbids(ag.ID, line),
		Grants:  w.grantViews(ag, ag.Set), Findings: ag.Findings,
	}
	held := map[string]bool{}
	for _, g := range v.Grants {
		held[g.Grant] = true
	}
	for _, g := range w.grantViews(ag, ag.Giveable()) {
		if !held[g.Grant] {
			v.Delegable = append(v.Delegable, g)
		}
	}
	return v
}

func (w *world) grantViews(ag *agents.Agent, set *capability.Set) []grantView {
	beyond := map[*capability.Grant]string{}
	line, _ := w.roster.Lineage(ag.ID) // empty for a broken one
	for _, link := range line.Chain[min(1, len(line.Chain)):] {
		for _, gap := range link.Set.Covers(set) {
			beyond[gap.Grant] = fmt.Sprintf("%s does not allow %s", link.Name, gapText(gap))
		}
	}
	views := []grantView{}
	for _, g := range set.ByRisk() {
		views = append(views, grantView{
			Verb: string(g.Verb()), Risk: g.Risk().String(), Grant: g.String(), risk: g.Risk(),
			Source: g.Spec().Pos.String(), pos: g.Spec().Pos, Origin: g.Spec().Origin,
			Inert: g.Inert(), Clamped: g.Note(), Wide: g.Wide(), Beyond: cmp.Or(beyond[g], outside(g, line.Ceilings)),
			Unasked: g.Unasked(),
		})
	}
	return views
}

func gapText(gap capability.Gap) string {
	if gap.Witness == "" {
		return "all of it"
	}
	return gap.Witness
}

func (a *app) printAuthority(v authority) {
	u := a.ui
	u.printf("%s  %s\n", u.paint(bold, v.ID), u.paint(faint, cell(u.short(v.File)+", "+v.Dialect)))
	for _, line := range []struct{ name, text string }{
		{"parent", v.Parent},
		{"root", v.Root},
		{"toolset", strings.Join(v.Toolset, ", ")},
		{"approve", strings.Join(v.Approve, ", ")},
	} {
		if line.text != "" {
			u.printf("%-8s %s\n", line.name, plain(line.text))
		}
	}
	for _, f := range v.Forbids {
		u.printf("%-8s %s\n", "forbids", plain(f.text(v.ID)))
	}
	u.printf("\n")
	a.printGrants(v.Grants)
	for _, f := range v.Findings {
		if f.Severity == capability.Error { // an entry that was left out
			u.finding(u.std.err, f)
		}
	}
	if len(v.Delegable) > 0 {
		u.printf("\nmay pass on, but not use\n")
		a.printGrants(v.Delegable)
	}
}

func (a *app) printGrants(grants []grantView) {
	u := a.ui
	width, shown := 0, 0
	for _, g := range grants {
		if g.Inert == "" {
			width, shown = max(width, min(len(g.Grant), 60)), shown+1
		}
	}
	if shown == 0 {
		u.printf("  nothing\n")
	}
	for _, g := range grants {
		if g.Inert != "" {
			continue
		}
		u.printf("  %s %-*s  %s\n", u.paint(riskColor(g.risk), fmt.Sprintf("%-6s", g.Risk)), width, cell(g.Grant), u.paint(faint, u.source(g)))
		for _, note := range []struct{ word, text string }{{"wide", g.Wide}, {"clamped", g.Clamped}, {"narrowed", g.Beyond}, {"unasked", g.Unasked}} {
			if note.text != "" {
				u.printf("         %s %s\n", u.paint(yellow, note.word+":"), plain(note.text))
			}
		}
	}
	for _, g := range grants {
		if g.Inert != "" {
			u.printf("  %s %s  %s\n         %s\n", u.paint(faint, "inert "), cell(g.Grant), u.paint(faint, u.source(g)), plain(g.Inert))
		}
	}
}

// source says where a grant stands, or what it came from.
func (u *ui) source(g grantView) string {
	return cell(strings.TrimSpace(u.place(g.pos) + " " + g.Origin))
}
