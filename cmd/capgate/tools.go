package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"capgate/proxy"
)

const lookTime = 60 * time.Second // for all servers to start and to say what they have

func (a *app) tools() *cobra.Command {
	cmd := &cobra.Command{Use: "tools", Short: "What an agent sees of the servers behind the gateway", Args: cobra.NoArgs}
	cmd.AddCommand(a.toolsList())
	return cmd
}

func (a *app) toolsList() *cobra.Command {
	var agent string
	var all bool
	cmd := &cobra.Command{
		Use:     "list --agent AGENT",
		Short:   "Start the servers and list the tools that an agent sees",
		Example: "  capgate tools list --agent scout\n  capgate tools list --agent scout --all",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w, err := a.load()
			if err != nil {
				return err
			}
			ag, err := w.sound(agent)
			if err != nil {
				return err
			}
			shown, missing, err := a.look(cmd.Context(), w, ag.ID)
			if err != nil {
				return broken(err, "")
			}
			if a.ui.json {
				return a.ui.emit(map[string]any{"agent": ag.ID, "tools": shown, "missing": append([]string{}, missing...)})
			}
			a.printTools(shown, all)
			for _, name := range missing {
				a.ui.line(a.ui.std.err, yellow, "warning", fmt.Sprintf("upstream %s did not say what it has", name))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "", "the `id` of the agent")
	cmd.Flags().BoolVar(&all, "all", false, "hidden tools too, and why they are hidden")
	_ = cmd.MarkFlagRequired("agent") // the flag is there
	return cmd
}

// look runs the gateway for as long as it takes to see what is behind it.
func (a *app) look(ctx context.Context, w *world, agent string) (shown []proxy.Shown, missing []string, err error) {
	g, err := newGateway(ctx, w, a.logger(w, quiet), unrecorded{})
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if end := g.close(); err == nil {
			err = end
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	return g.server.Look(ctx, agent)
}

func (a *app) printTools(shown []proxy.Shown, all bool) {
	u := a.ui
	width := 0
	for _, t := range shown {
		if t.Visible || all {
			width = max(width, len(t.Name))
		}
	}
	hidden := 0
	for _, t := range shown {
		if !t.Visible {
			if hidden++; !all {
				continue
			}
		}
		verbs := make([]string, len(t.Verbs))
		for i, v := range t.Verbs {
			verbs[i] = string(v)
		}
		line := fmt.Sprintf("%-*s  %s", width, plain(t.Name), u.paint(riskColor(t.Risk), strings.Join(verbs, " ")))
		if !t.Visible {
			line += u.paint(faint, fmt.Sprintf("  hidden: %s: %s", t.Code, plain(t.Why)))
		}
		u.printf("%s\n", strings.TrimRight(line, " "))
	}
	if hidden > 0 && !all {
		u.note("%d more are hidden from this agent; --all shows them", hidden)
	}
}
