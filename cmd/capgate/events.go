package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"capgate/capability"
	"capgate/guardrail"
)

func (a *app) events() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Read and verify what the gateway recorded",
	}
	cmd.AddCommand(a.eventsTail(), a.eventsQuery(), a.eventsVerify(), a.eventsCheckpoint())
	return cmd
}

// eventLog is the folder of the log. Without one there is nothing to look at,
// which must not look like a log in which nothing stands.
func (a *app) eventLog() (string, error) {
	k, err := a.kept()
	if err != nil {
		return "", err
	}
	dir := k.guardrail.Log
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return "", broken(fmt.Errorf("there is no log of events at %s", a.ui.short(dir)), "the gateway makes it when it starts; guardrail: log: says where")
	}
	return dir, nil
}

const usualTail = 20 // events that tail shows unless told otherwise

func (a *app) eventsTail() *cobra.Command {
	var follow bool
	want := eventFilter{limit: usualTail}
	cmd := &cobra.Command{
		Use:     "tail",
		Short:   "Show the last events, and those to come",
		Example: "  capgate events tail -f\n  capgate events tail -f --agent scout --decision deny",
		Args:    cobra.MatchAll(takes(0, 0), noEmptyFlag),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.tail(cmd.Context(), want, follow)
		},
	}
	want.flags(cmd)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what is recorded from now on")
	cmd.Flags().IntVarP(&want.limit, "limit", "n", usualTail, "how `many` of those there are to show, the newest")
	return cmd
}

func (a *app) tail(ctx context.Context, want eventFilter, follow bool) error {
	f, err := want.filter(time.Now())
	if err != nil {
		return err
	}
	dir, err := a.eventLog()
	if err != nil {
		return err
	}
	if f.Limit > 0 {
		a.printEvents(guardrail.Read(dir, f))
	}
	if follow {
		f.Limit = 0
		a.printEvents(guardrail.Tail(ctx, dir, f))
	}
	return nil
}

func (a *app) eventsQuery() *cobra.Command {
	var want eventFilter
	cmd := &cobra.Command{
		Use:   "query",
		Short: "Show the events that match",
		Long: "query shows the events that match all of what is asked for, the oldest first. With\n" +
			"--ref it explains a single one: a denial names it. With --json it prints the events\n" +
			"as they are written, one a line.",
		Example: "  capgate events query --agent scout --decision deny --since 24h\n  capgate events query --ref 1f0c9ab25d3e4f67",
		Args:    cobra.MatchAll(takes(0, 0), noEmptyFlag),
		RunE: func(*cobra.Command, []string) error {
			f, err := want.filter(time.Now())
			if err != nil {
				return err
			}
			dir, err := a.eventLog()
			if err != nil {
				return err
			}
			if want.ref != "" {
				return a.explainEvent(dir, f)
			}
			if !a.printEvents(guardrail.Read(dir, f)) && a.code == exitOK {
				a.ui.note("no event matches")
			}
			return nil
		},
	}
	want.flags(cmd)
	cmd.Flags().StringVar(&want.since, "since", "", "how long ago the oldest was, such as 24h, or a `time`")
	cmd.Flags().StringVar(&want.ref, "ref", "", "the `reference` of one event, or the beginning of it")
	cmd.Flags().IntVar(&want.limit, "limit", 0, "how `many` to show, the newest; 0 for all")
	return cmd
}

// noEmptyFlag refuses a flag that is given and says nothing, as where a variable of a script is empty:
// without it, more would match, or less be checked, than was asked for.
func noEmptyFlag(cmd *cobra.Command, _ []string) error {
	for _, name := range []string{"agent", "session", "code", "decision", "tool", "kind", "since", "ref", "anchor"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed && f.Value.String() == "" {
			return fmt.Errorf("--%s is given, and says nothing", name)
		}
	}
	return nil
}

// eventFilter is what a person asks for.
type eventFilter struct {
	agent, session, code, decision, tool, kind, since, ref string
	limit                                                  int
}

func (e *eventFilter) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&e.agent, "agent", "", "the `id` of an agent")
	f.StringVar(&e.session, "session", "", "the `name` of a session, as events have it")
	f.StringVar(&e.code, "code", "", "the `code` of a denial, such as scope_violation")
	f.StringVar(&e.decision, "decision", "", "`allow` or deny")
	f.StringVar(&e.tool, "tool", "", "the `name` of a tool among capabilities, such as files.read")
	f.StringVar(&e.kind, "kind", "", "`decision`, outcome, refusal or notice")
}

// filter reads what was asked for. What no event could match is a mistake, and
// not an answer of none.
func (e *eventFilter) filter(now time.Time) (guardrail.Filter, error) {
	f := guardrail.Filter{Kind: e.kind, Session: e.session, Tool: e.tool, Decision: e.decision, Code: e.code, Ref: strings.ToLower(e.ref), Limit: e.limit}
	var codes []string
	for _, c := range capability.Codes() {
		codes = append(codes, string(c))
	}
	for _, m := range []struct {
		flag, text string
		known      []string
	}{
		{"kind", e.kind, []string{guardrail.Decision, guardrail.Outcome, guardrail.Refusal, guardrail.Notice}},
		{"decision", e.decision, []string{capability.Allow.String(), capability.Deny.String()}},
		{"code", e.code, codes},
	} {
		if m.text != "" && !slices.Contains(m.known, m.text) {
			return f, usage(fmt.Errorf("--%s cannot be %q", m.flag, m.text), "it is one of "+strings.Join(m.known, ", "))
		}
	}
	if e.agent != "" {
		var err error
		if f.Agent, err = agentID(e.agent); err != nil {
			return f, err
		}
	}
	switch {
	case strings.Trim(f.Ref, "0123456789abcdef") != "":
		return f, usage(fmt.Errorf("%q is no reference of an event", e.ref), "a denial names it behind the word event")
	case e.limit < 0:
		return f, usage(fmt.Errorf("--limit cannot be %d", e.limit), "")
	case e.since != "":
		since, err := parseMoment(e.since, now)
		if err != nil {
			return f, usage(fmt.Errorf("--since: %w", err), momentHint)
		}
		f.Since = since
	}
	return f, nil
}

// printEvents shows events as they come. What cannot be read is said in its
// place, and makes the command red: something that should be there was not shown. It
// reports whether there was one.
func (a *app) printEvents(events iter.Seq2[guardrail.Entry, error]) (found bool) {
	for e, err := range events {
		found = found || err == nil
		switch {
		case err != nil:
			a.unread(err)
		case a.ui.json:
			a.ui.printf("%s\n", e.Line)
		default:
			a.printEvent(&e)
		}
	}
	return found
}

func (a *app) unread(err error) {
	a.code = exitRed
	for _, text := range strings.Split(err.Error(), "\n") {
		a.ui.line(a.ui.std.err, yellow, "warning", text)
	}
}

// explainEvent tells all that is known of one event.
func (a *app) explainEvent(dir string, f guardrail.Filter) error {
	const few = 2 // one, and whether there is another
	f.Limit = few
	var found []guardrail.Entry
	for e, err := range guardrail.Read(dir, f) {
		if err != nil {
			a.unread(err)
			continue
		}
		found = append(found, e)
	}
	switch len(found) {
	case 0:
		return &exit{exitRed, fmt.Errorf("there is no event %s", f.Ref), "capgate events tail shows the last ones"}
	case few:
		return usage(fmt.Errorf("several events begin with %s", f.Ref), "write more of the reference")
	}
	e := &found[0]
	if a.ui.json {
		a.ui.printf("%s\n", e.Line)
		return nil
	}
	a.printWhole(e)
	if e.Call == "" || e.Kind != guardrail.Decision {
		return nil
	}
	for o, err := range guardrail.Read(dir, guardrail.Filter{Call: e.Call, Kind: guardrail.Outcome, Since: e.Time}) {
		if err == nil { // said above
			a.ui.row("outcome", outcomeText(&o.Event), o.Ref)
		}
	}
	return nil
}
