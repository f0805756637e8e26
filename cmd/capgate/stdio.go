package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"capgate/guardrail"
)

func (a *app) stdio() *cobra.Command {
	var agent string
	cmd := &cobra.Command{
		Use:   "stdio --agent AGENT",
		Short: "Run the gateway over standard input and output, for one agent",
		Long: "stdio is what a client launches as an MCP server. Whoever wrote the client's\n" +
			"configuration says which agent it is for; no token is needed.",
		Example: "  claude mcp add capgate -- capgate stdio --agent scout -c ~/capgate.yml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			go guardrail.Prepare()
			w, err := a.load()
			if err != nil {
				return err
			}
			ag, err := w.sound(agent)
			if err != nil {
				return err
			}
			ctx, stop := untilEnded(cmd.Context())
			defer stop()
			return a.runStdio(ctx, w, ag.ID, func(g *gateway) (source, error) { return g.watched(w, a.at) })
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "", "the `id` of the agent that it is for")
	_ = cmd.MarkFlagRequired("agent") // the flag is there
	return cmd
}

// runStdio serves one agent over standard input and output until its input ends, and
// keeps in step with what it was made of.
func (a *app) runStdio(ctx context.Context, w *world, agent string, watched func(*gateway) (source, error)) error {
	tune()
	g, err := openGateway(ctx, w, a.logger(w, quiet))
	if err != nil {
		return broken(err, "")
	}
	from, err := watched(g)
	if err != nil {
		return errors.Join(broken(err, ""), g.close())
	}
	ctx, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		defer stop() // a gateway that no longer sees what is revoked must not go on
		done <- g.watch(ctx, from)
	}()
	served := make(chan error, 1)
	go func() { served <- g.server.Stdio(ctx, agent, a.ui.std.in, a.ui.std.out) }()
	select {
	case err = <-served:
	case <-ctx.Done(): // what is read meanwhile is not answered
	}
	stop()
	return errors.Join(err, <-done, g.close())
}
