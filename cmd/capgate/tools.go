package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"capgate/capability"
	"capgate/proxy"
)

const lookTime = 60 * time.Second // for all servers to start and to say what they have

func (a *app) tools() *cobra.Command {
	cmd := &cobra.Command{Use: "tools", Short: "What an agent sees of the servers behind the gateway"}
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
		Args:    takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			w, err := a.load()
			if err != nil {
				return err
			}
			ag, err := w.sound(agent)
			if err != nil {
				return err
			}
			var shown []proxy.Shown
			var missing []string
			err = a.behind(cmd.Context(), w, func(ctx context.Context, s *proxy.Server) (err error) {
				shown, missing, err = s.Look(ctx, ag.ID)
				return err
			})
			if err != nil {
				return broken(err, "")
			}
			a.warnMissing(missing)
			if a.ui.json {
				return a.ui.emit(map[string]any{"agent": ag.ID, "tools": append([]proxy.Shown{}, shown...), "missing": append([]string{}, missing...)})
			}
			a.printTools(shown, all)
			return nil
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "", "the `id` of the agent")
	cmd.Flags().BoolVar(&all, "all", false, "hidden tools too, and why they are hidden")
	_ = cmd.MarkFlagRequired("agent") // the flag is there
	return cmd
}

// behind runs the gateway for as long as it takes to see what is behind it.
func (a *app) behind(ctx context.Context, w *world, see func(context.Context, *proxy.Server) error) (err error) {
	g, err := newGateway(ctx, w, a.logger(w, quiet), unrecorded{})
	if err != nil {
		return err
	}
	defer func() {
		if end := g.close(); err == nil {
			err = end
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	return see(ctx, g.server)
}

// warnMissing names servers of which nothing is known.
func (a *app) warnMissing(names []string) {
	for _, name := range names {
		a.ui.line(a.ui.std.err, yellow, "warning", fmt.Sprintf("upstream %s did not say what it has", name))
	}
}

// printTools writes a line for each tool, and what does not fit into it below.
func (a *app) printTools(shown []proxy.Shown, all bool) {
	u := a.ui
	width, hidden := 0, 0
	for _, t := range shown {
		if !t.Visible {
			hidden++
		}
		if n := len(cell(t.Name)); (t.Visible || all) && n <= mostName {
			width = max(width, n)
		}
	}
	for _, t := range shown {
		if !t.Visible && !all {
			continue
		}
		name := cell(t.Name)
		if len(name) > width {
			u.printf("%s\n", name)
			name = ""
		}
		risk := t.Risk.String()
		if len(t.Verbs) == 0 {
			risk = "-"
		}
		lines := brokenLines(required(t), columns-width-len("  medium  ~99999 tokens  "))
		u.printf("%-*s  %s  %6s tokens  %s\n", width, name, u.paint(riskColor(t.Risk), fmt.Sprintf("%-6s", risk)), fmt.Sprint("~", t.Tokens), lines[0])
		for _, more := range lines[1:] {
			u.printf("%*s%s\n", width+len("  medium  ~99999 tokens  "), "", more)
		}
	}
	if hidden > 0 && !all {
		u.note("%d more are hidden from this agent; --all shows them", hidden)
	}
}

const (
	columns  = 100 // of a table
	mostName = 40  // columns of it for the names of tools; a longer one has a line of its own
)

// required says what calls of a tool need, or why it is hidden.
func required(t proxy.Shown) string {
	if !t.Visible {
		return fmt.Sprintf("hidden: %s: %s", t.Code, cell(t.Why))
	}
	var parts []string
	for i := 0; i < len(t.Requires); i++ {
		r := t.Requires[i]
		if r.Fixed != "" {
			parts = append(parts, cell(r.Fixed))
			continue
		}
		verbs := alternatives(r.Verbs)
		for ; i+1 < len(t.Requires) && t.Requires[i+1].Argument == r.Argument; i++ {
			verbs += ", " + alternatives(t.Requires[i+1].Verbs)
		}
		parts = append(parts, cell(r.Argument)+": "+verbs)
	}
	if len(parts) == 0 {
		return "no grant"
	}
	return strings.Join(parts, "; ")
}

// alternatives writes verbs of which one is needed.
func alternatives(verbs []capability.Verb) string {
	texts := make([]string, len(verbs))
	for i, v := range verbs {
		texts[i] = string(v)
	}
	return strings.Join(texts, " or ")
}

// brokenLines breaks a text between words, into lines of a width where the words allow it.
func brokenLines(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}
