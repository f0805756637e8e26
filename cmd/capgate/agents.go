package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"capgate/agents"
	"capgate/capability"
)

func (a *app) agents() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agents",
		Short: "See and change what agents may do",
	}
	cmd.AddCommand(a.agentsList(), a.agentsTree(), a.agentsCapabilities(), a.agentsGrant(), a.agentsRevoke(), a.agentsCreate(), a.agentsToken())
	return cmd
}

// agentRow is one line of agents list.
type agentRow struct {
	ID      string `json:"id"`
	File    string `json:"file"`
	Dialect string `json:"dialect"`
	Parent  string `json:"parent,omitempty"`
	Grants  int    `json:"grants"`
	Inert   int    `json:"inert"`
	Risk    string `json:"risk,omitempty"` // the highest of its grants in effect
	Error   string `json:"error,omitempty"`

	risk capability.Risk
}

func rowOf(ag *agents.Agent) agentRow {
	row := agentRow{ID: ag.ID, File: ag.File}
	if ag.Err != nil {
		row.Error = ag.Err.Error()
		return row
	}
	row.Dialect, row.Parent = ag.Record.Dialect.String(), ag.Record.Parent
	for g := range ag.Set.All() {
		if g.Inert() != "" {
			row.Inert++
			continue
		}
		row.Grants++
		row.risk = max(row.risk, g.Risk())
		row.Risk = row.risk.String()
	}
	return row
}

func (a *app) agentsList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the agents",
		Args:  takes(0, 0),
		RunE: func(*cobra.Command, []string) error {
			w, err := a.load()
			if err != nil {
				return err
			}
			rows := []agentRow{}
			for ag := range w.roster.All() {
				rows = append(rows, rowOf(ag))
			}
			if a.ui.json {
				return a.ui.emit(rows)
			}
			for _, r := range rows {
				a.printRow(r)
			}
			if len(rows) == 0 {
				a.ui.note("there are no agents; %s makes one", a.here("capgate agents create AGENT"))
			}
			return nil
		},
	}
}

func (a *app) printRow(r agentRow) {
	if r.Error != "" {
		a.ui.printf("%-24s %s %s\n", r.ID, a.ui.paint(red, "invalid"), plain(a.ui.short(r.Error)))
		return
	}
	text := fmt.Sprintf("%d grants", r.Grants)
	if r.Grants == 1 {
		text = "1 grant"
	}
	if r.Inert > 0 {
		text += fmt.Sprintf(", %d inert", r.Inert)
	}
	if r.Risk != "" {
		text += ", up to " + a.ui.paint(riskColor(r.risk), r.Risk)
	}
	if r.Parent != "" {
		text += ", under " + r.Parent
	}
	a.ui.printf("%-24s %s\n", r.ID, text)
}

func (a *app) agentsTree() *cobra.Command {
	return &cobra.Command{
		Use:   "tree",
		Short: "Show which agent hangs from which",
		Args:  takes(0, 0),
		RunE: func(*cobra.Command, []string) error {
			w, err := a.load()
			if err != nil {
				return err
			}
			children, roots := family(w.roster)
			if a.ui.json {
				return a.ui.emit(struct {
					Roots    []string            `json:"roots"`
					Children map[string][]string `json:"children"`
				}{roots, children})
			}
			for _, id := range roots {
				a.printTree(children, id, 0)
			}
			return nil
		},
	}
}

// family returns the children of each agent, and those that hang from none that
// is there.
func family(r *agents.Roster) (children map[string][]string, roots []string) {
	children = map[string][]string{}
	for ag := range r.All() {
		parent := ""
		if ag.Err == nil {
			parent = ag.Record.Parent
		}
		if _, ok := r.Agent(parent); ok && parent != ag.ID {
			children[parent] = append(children[parent], ag.ID)
		} else {
			roots = append(roots, ag.ID)
		}
	}
	return children, roots
}

func (a *app) printTree(children map[string][]string, id string, depth int) {
	const deepest = 32
	a.ui.printf("%s%s\n", strings.Repeat("  ", depth), id)
	if depth >= deepest {
		return
	}
	for _, c := range children[id] {
		a.printTree(children, c, depth+1)
	}
}
