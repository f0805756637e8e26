package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"capgate/guardrail"
	"capgate/proxy"
)

func (a *app) stdio() *cobra.Command {
	var agent string
	cmd := &cobra.Command{
		Use:   "stdio --agent AGENT",
		Short: "Run the gateway over standard input and output, for one agent",
		Long: "stdio is what a client launches as an MCP server. Whoever wrote the client's\n" +
			"configuration says which agent it is for; no token is needed.",
		Example: "  claude mcp add capgate -- capgate stdio --agent scout -c ~/capgate.yml",
		Args:    takes(0, 0),
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
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	g, err := openGateway(ctx, w, a.logger(w, quiet))
	if err != nil {
		return broken(err, "")
	}
	from, err := watched(g)
	if err != nil {
		return errors.Join(broken(err, ""), g.close())
	}
	done := make(chan error, 1)
	go func() {
		defer stop() // a gateway that no longer sees what is revoked must not go on
		done <- g.watch(ctx, from)
	}()
	err = a.serveStdio(ctx, g.server, agent)
	stop()
	return errors.Join(err, <-done, g.close())
}

// serveStdio answers until the input or the context ends, and lets requests end after that. Who
// tells the gateway once more to end waits for none.
func (a *app) serveStdio(ctx context.Context, front *proxy.Server, agent string) error {
	requests, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	served := make(chan error, 1)
	go func() { served <- front.Stdio(requests, agent, a.ui.std.in, a.ui.std.out) }()
	select {
	case err := <-served:
		return failed(err)
	case <-ctx.Done():
	}
	again, stop := untilEnded(requests)
	defer stop()
	select {
	case err := <-served:
		return failed(err)
	case <-again.Done():
	case <-time.After(endTime - lastTime):
	}
	cut()
	select {
	case err := <-served:
		return failed(err)
	case <-time.After(2 * lastTime): // who reads nothing is told nothing
		return nil
	}
}

// failed is what ends a gateway that was begun well: nothing is wrong with its command line.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return &exit{exitRed, err, ""}
}
