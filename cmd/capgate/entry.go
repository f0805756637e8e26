package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"capgate/guardrail"
)

// effect is what happened in one word, in its colour.
func (u *ui) effect(e *guardrail.Event) string {
	switch e.Kind {
	case guardrail.Decision:
		return u.paint(effectColor(e.Decision), e.Decision)
	case guardrail.Refusal:
		return u.paint(red, "refused")
	case guardrail.Outcome:
		if e.Error != "" || e.Code != "" {
			return u.paint(yellow, "failed")
		}
		return "done"
	}
	return u.paint(faint, cell(e.Kind))
}

// printEvent writes an event as one line: when, who, what became of it, which
// tool, what it needs, why, and its reference.
func (a *app) printEvent(e *guardrail.Entry) {
	line := []string{e.Time.Local().Format(time.DateTime), fmt.Sprintf("%-16s", cell(orDash(e.Agent))), a.ui.effect(&e.Event)}
	var words []string
	switch e.Kind {
	case guardrail.Outcome:
		words = append(words, subject(&e.Event), outcomeText(&e.Event))
	case guardrail.Decision:
		words = append(words, orDash(subject(&e.Event)))
	default:
		words = append(words, subject(&e.Event), e.Text, e.Error)
	}
	if e.Kind != guardrail.Outcome {
		for _, n := range e.Needs {
			words = append(words, strings.TrimSpace(n.Verb+" "+n.Object))
		}
		words = append(words, e.Code)
	}
	for _, w := range words {
		if w != "" {
			line = append(line, cell(w))
		}
	}
	a.ui.printf("%s\n", strings.Join(append(line, a.ui.paint(faint, e.Ref)), "  "))
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// subject is what an event is about: a tool, or else a method of the protocol, or else a server.
// Those of a model's provider do not say by themselves whose they are.
func subject(e *guardrail.Event) string {
	what := cmp.Or(e.Tool, e.Method)
	if what == "" {
		return e.Upstream
	}
	if strings.HasPrefix(e.Upstream, "provider/") {
		return e.Upstream + " " + what
	}
	return what
}

func outcomeText(e *guardrail.Event) string {
	took := e.Latency.Round(time.Microsecond)
	if e.Latency >= time.Second {
		took = e.Latency.Round(time.Millisecond)
	}
	text := fmt.Sprintf("after %s, %d bytes", took, e.Bytes)
	for _, more := range []string{e.Code, e.Error} {
		if more != "" {
			text += ", " + more
		}
	}
	return text
}

// printWhole writes everything that an event holds.
func (a *app) printWhole(e *guardrail.Entry) {
	u := a.ui
	u.printf("%s", u.effect(&e.Event))
	if e.Code != "" {
		u.printf("  %s", cell(e.Code))
	}
	u.printf("\n")
	u.row("event", e.Ref, fmt.Sprintf("%s, number %d", e.File, e.Seq))
	u.row("time", e.Time.UTC().Format(time.RFC3339Nano), "")
	u.row("agent", e.Agent, "")
	u.row("session", e.Session, "")
	u.row("upstream", e.Upstream, "")
	u.row("method", e.Method, "")
	u.row("tool", e.Tool, "")
	names := strings.Join(e.Names, ", ")
	if e.MoreNames > 0 {
		names += fmt.Sprintf(", and %d more", e.MoreNames)
	}
	u.row("names", names, "of its arguments")
	for _, n := range e.Needs {
		at := ""
		if n.Argument != "" {
			at = "argument " + n.Argument
		}
		u.row("needs", strings.TrimSpace(n.Verb+" "+n.Object), at)
		for _, other := range n.Also {
			u.row("and", other, "")
		}
		u.row("in", n.In, "")
	}
	u.row("argument", e.Argument, "")
	u.row("grant", e.Grant, "")
	u.row("because", e.Link, "")
	u.row("text", e.Text, "")
	if e.Kind == guardrail.Outcome {
		u.row("outcome", outcomeText(&e.Event), "")
	} else {
		u.row("error", e.Error, "")
	}
	u.row("call", e.Call, "")
	u.row("policy", e.Policy, "")
}
