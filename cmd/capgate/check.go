package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"capgate/capability"
	"capgate/config"
	"capgate/wire"
)

// report is what check found.
type report struct {
	Agents   int                  `json:"agents"`
	Findings []capability.Finding `json:"findings"`
	Tests    []outcome            `json:"tests"`
	Red      bool                 `json:"red"`
}

// outcome is one policy test after it ran.
type outcome struct {
	Pos   capability.Pos `json:"pos"`
	Agent string         `json:"agent"`
	Test  string         `json:"test"`
	Want  string         `json:"want"`
	Got   string         `json:"got"`
	Pass  bool           `json:"pass"`
}

func (a *app) check() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Load everything strictly and run the policy tests",
		Long:  "check loads the configuration and every record strictly, runs the tests: of the\nconfiguration, prints what it finds and exits 1 if any of it is an error.",
		Args:  takes(0, 0),
		RunE: func(*cobra.Command, []string) error {
			w, err := a.load()
			if err != nil {
				return err
			}
			r := w.check()
			if r.Red {
				a.code = exitRed
			}
			if a.ui.json {
				return a.ui.emit(r)
			}
			a.printReport(r)
			return nil
		},
	}
}

func (w *world) check() report {
	r := report{Findings: append([]capability.Finding{}, w.findings...), Tests: []outcome{}}
	for range w.roster.All() {
		r.Agents++
	}
	for _, f := range r.Findings {
		r.Red = r.Red || f.Severity == capability.Error
	}
	for _, t := range w.cfg.Tests {
		o := w.runTest(t)
		r.Red = r.Red || !o.Pass
		r.Tests = append(r.Tests, o)
	}
	return r
}

// wider returns the policy test that finds more allowed than it says, if one does, as an
// error, and else those that fail.
func wider(w *world) (red []outcome, err error) {
	for _, o := range w.check().Tests {
		switch {
		case o.Pass:
		case o.Got == capability.Allow.String():
			return nil, &config.Error{
				Pos: o.Pos, Text: fmt.Sprintf("the policy test %s of %s wants %s and gets %s", o.Test, o.Agent, o.Want, o.Got),
				Hint: "capgate check runs them all",
			}
		default:
			red = append(red, o)
		}
	}
	return red, nil
}

// runTest asks the gate what a policy test expects of it.
func (w *world) runTest(t config.Test) outcome {
	o := outcome{Pos: t.Pos, Agent: t.Agent, Test: t.Text(), Want: t.Want()}
	got, code, err := w.ask(t)
	if err != nil {
		o.Got = err.Error()
		return o
	}
	o.Got, o.Pass = strings.TrimSpace(got.String()+" "+string(code)), t.Met(got, code)
	if o.Pass && t.Code == "" && isBlind(code) {
		o.Got, o.Pass = o.Got+", as with any other grant", false
	}
	return o
}

// isBlind reports whether a denial does not depend on what is granted: a test that is met by it
// would be met whatever somebody grants, and means another call.
func isBlind(code capability.Code) bool {
	return code == capability.UnknownTool || code == capability.MalformedArguments || code == capability.MalformedRequest
}

// ask has the gate answer a policy test.
func (w *world) ask(t config.Test) (capability.Effect, capability.Code, error) {
	if t.Covers != nil {
		return w.askCovers(t)
	}
	if t.Tool != "" {
		return w.askCall(t)
	}
	if t.Skill != "" {
		return w.askSkill(t)
	}
	ag, err := w.agent(t.Agent)
	if err != nil {
		return capability.Deny, "", err
	}
	x, err := w.explain(ag, t.Requirement)
	if err != nil || x.Decision != capability.Allow.String() {
		return capability.Deny, capability.Code(x.Code), err
	}
	return capability.Allow, "", nil
}

// askCovers answers whether an agent's authority includes a whole grant.
func (w *world) askCovers(t config.Test) (capability.Effect, capability.Code, error) {
	ag, err := w.sound(t.Agent)
	if err != nil {
		return capability.Deny, "", err
	}
	as := w.roster.Options(ag)
	as.Unconfined = false // any program is more than what is held, not nothing
	set, _ := capability.Compile([]capability.Spec{*t.Covers}, as)
	for g := range set.All() {
		if g.Inert() != "" {
			return capability.Deny, "", fmt.Errorf("the grant is inert: %s", g.Inert())
		}
	}
	_, v := w.gate.Covers(ag.ID, set)
	return v.Decision.Effect, v.Decision.Code, nil
}

// askCall answers whether a whole call would be forwarded. Whether the server has
// the tool is not asked: nothing is started for a test.
func (w *world) askCall(t config.Test) (capability.Effect, capability.Code, error) {
	ag, err := w.agent(t.Agent)
	if err != nil {
		return capability.Deny, "", err
	}
	args, err := wire.Parse(t.Args)
	if err != nil {
		return capability.Deny, "", err
	}
	switch denied, own := w.policy.Own(ag.ID, t.Tool, args.Root()); {
	case denied != nil:
		return capability.Deny, denied.Decision.Code, nil
	case own:
		return capability.Allow, "", nil
	}
	tool, _, _ := w.toolNamed(t.Tool)
	if tool == nil {
		return capability.Deny, capability.UnknownTool, nil
	}
	d := w.gate.Call(ag.ID, tool, args.Root()).Decision
	return d.Effect, d.Code, nil
}

// askSkill answers whether an agent is shown a skill.
func (w *world) askSkill(t config.Test) (capability.Effect, capability.Code, error) {
	ag, err := w.agent(t.Agent)
	if err != nil {
		return capability.Deny, "", err
	}
	s, err := w.skill(t.Skill)
	if err != nil {
		return capability.Deny, "", err
	}
	if got := w.gate.Skill(ag.ID, s); !got.Satisfied {
		return capability.Deny, got.Code, nil
	}
	return capability.Allow, "", nil
}

func malformed(err error) (string, bool) {
	m, ok := errors.AsType[*capability.Malformed](err)
	if !ok {
		return "", false
	}
	return m.Error(), true
}

// failed writes one policy test that failed.
func (u *ui) failed(o outcome) string {
	return fmt.Sprintf("%s: %s %s %s: want %s, got %s", plain(u.place(o.Pos)), u.paint(red, "failed"), o.Agent, plain(o.Test), o.Want, plain(o.Got))
}

func (a *app) printReport(r report) {
	u := a.ui
	for _, f := range r.Findings {
		u.finding(u.std.out, f)
	}
	failed := 0
	for _, o := range r.Tests {
		if o.Pass {
			continue
		}
		failed++
		u.printf("%s\n", u.failed(o))
	}
	color, word := green, "ok"
	if r.Red {
		color, word = red, "red"
	}
	u.printf("%s: %d agents, %d findings, %d tests, %d failed\n", u.paint(color, word), r.Agents, len(r.Findings), len(r.Tests), failed)
}
