package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"capgate/agents"
	"capgate/capability"
	"capgate/gate"
)

// explanation is the answer to "may this agent do that, and why".
type explanation struct {
	Agent    string   `json:"agent"`
	Tool     string   `json:"tool,omitempty"` // of a call, by its name among capabilities
	Decision string   `json:"decision"`
	Code     string   `json:"code,omitempty"`
	Argument string   `json:"argument,omitempty"` // of a call: the one that gave offence
	Also     []string `json:"also,omitempty"`     // where a path that is denied leads, or how else it is read
	Need     string   `json:"need"`               // the one that decided
	Needs    []asked  `json:"needs,omitempty"`    // all that a call needs
	Grant    string   `json:"grant,omitempty"`    // what allowed it
	Source   string   `json:"source,omitempty"`   // where that stands
	Why      string   `json:"why,omitempty"`      // what decided a denial, also what the agent is not told
	Nearest  string   `json:"nearest,omitempty"`  // what comes closest
	NearAt   string   `json:"nearest_source,omitempty"`
	Held     []string `json:"held,omitempty"`
	Allow    []edit   `json:"to_allow,omitempty"` // the smallest edits that would allow it, all of them needed
	Blocked  string   `json:"blocked,omitempty"`  // why no edit of records would
	Note     string   `json:"note,omitempty"`
	Unseen   bool     `json:"unseen,omitempty"` // the server has other tools, as far as was seen
}

// unapproved is why no edit but one would allow what somebody has to say yes to first.
const unapproved = "no grant changes that: there is no way to say yes yet, but to take it out of approve:"

// mostAlso is how many of the places are shown that links lead to.
const mostAlso = 16

// edit is one change of a record.
type edit struct {
	Agent string `json:"agent"`
	Grant string `json:"grant"`
}

// command writes the edit as a line that can be pasted into a shell: agents choose
// words of what is in it.
func (e edit) command() string {
	return fmt.Sprintf("capgate agents grant %s %s", e.Agent, inQuotes(e.Grant))
}

// here is a command that is about the configuration of this one: pasted as it is, it must not
// change another that is found by itself.
func (a *app) here(command string) string {
	if a.settings.Config == "" {
		return command
	}
	return "capgate -c " + strings.TrimPrefix(word(a.settings.Config), "-- ") + strings.TrimPrefix(command, "capgate")
}

// inQuotes is a text as one word to every shell.
func inQuotes(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// word is the same of a name, which a server may have chosen: without quotes where it needs none, and
// behind what ends the flags where it reads as one.
func word(name string) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/"
	written := name
	if name == "" || strings.Trim(name, letters) != "" {
		written = inQuotes(name)
	}
	if strings.HasPrefix(name, "-") {
		return "-- " + written
	}
	return written
}

func (a *app) explain() *cobra.Command {
	var q question
	cmd := &cobra.Command{
		Use:   "explain --agent AGENT (--requirement REQUIREMENT | --tool TOOL [--args JSON])",
		Short: "Say whether an agent may do something, why, and what would change it",
		Long: "explain asks the gate what it asks at a call. With --tool it decides a whole call:\n" +
			"what the arguments mean is what the mapping of the upstream says. No server is\n" +
			"started: which tools it has, and whether their definitions wait for approval, is what\n" +
			"was seen of them last.",
		Example: "  capgate explain --agent scout --requirement 'fs.read{path=/etc/passwd}'\n  capgate explain --agent scout --requirement 'net.get{url=https://api.github.com/}'\n" +
			"  capgate explain --agent scout --tool files.read --args '{\"path\": \"notes/todo.md\"}'",
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if q.agent == "" || (q.requirement == "") == (q.tool == "") || q.tool == "" && cmd.Flags().Changed("args") {
				return usage(fmt.Errorf("explain needs --agent and --requirement, or --agent, --tool and --args"), "capgate explain --help shows an example")
			}
			q.open = !cmd.Flags().Changed("args")
			return a.answer(q)
		},
	}
	cmd.Flags().StringVar(&q.agent, "agent", "", "the agent's `id`")
	cmd.Flags().StringVar(&q.requirement, "requirement", "", "a verb and the thing it touches, such as fs.read{path=notes/todo.md}")
	cmd.Flags().StringVar(&q.tool, "tool", "", "the `name` of a tool, as grants have it or as the agent sees it: files.read, files__read")
	cmd.Flags().StringVar(&q.args, "args", "{}", "the arguments of the call, a `JSON` object")
	return cmd
}

// question is what explain is asked.
type question struct {
	agent, requirement, tool, args string

	open bool // nothing is said of the arguments
}

func (a *app) answer(q question) error {
	w, err := a.load()
	if err != nil {
		return err
	}
	ag, err := w.agent(q.agent)
	if err != nil {
		return err
	}
	var x explanation
	if q.tool != "" {
		x = w.explainCall(ag, q)
	} else if x, err = w.explain(ag, q.requirement); err != nil {
		return err
	}
	if x.Decision != capability.Allow.String() {
		a.code = exitRed
	}
	if a.ui.json {
		return a.ui.emit(x)
	}
	a.printExplanation(x)
	return nil
}

func (w *world) explain(ag *agents.Agent, text string) (explanation, error) {
	need, err := capability.ParseRequirement(text, w.asked())
	x := explanation{Agent: ag.ID, Decision: capability.Deny.String()}
	if m, ok := malformed(err); ok {
		x.Need, x.Code, x.Why = text, string(capability.MalformedArguments), m
		return x, nil
	}
	if err != nil {
		return x, usage(err, "")
	}
	v := w.gate.Require(ag.ID, need)
	d := v.Decision
	x.Need, x.Decision, x.Code, x.Why = need.String(), d.Effect.String(), string(d.Code), v.Why
	if g := d.Grant(); g != nil {
		x.Grant, x.Source = g.String(), g.Spec().Pos.String()
		return x, nil
	}
	if v.Approve != "" {
		x.Why, x.Blocked = "approve: lists "+v.Approve, unapproved
		return x, nil
	}
	x.Also = need.Also()
	x.Held, x.Why = d.Held(), cmp.Or(d.Reason(), v.Why)
	if g := d.Nearest(); g != nil {
		x.Nearest, x.NearAt = g.String(), g.Spec().Pos.String()
		if g.Inert() != "" {
			x.Nearest += " (inert: " + g.Inert() + ")"
		}
	}
	if o := need.Opaque(); o != "" {
		x.Why, x.Blocked = o, "no grant can cover this"
		return x, nil
	}
	x.Allow, x.Blocked = w.smallest(ag, need)
	return x, nil
}

// smallest finds the edits that would allow a requirement, and tries them: each
// link of the chain that denies needs a grant of its own.
func (w *world) smallest(ag *agents.Agent, need *capability.Requirement) ([]edit, string) {
	ceiling := w.gate.Ceiled(ag.ID, need)
	switch {
	case ag.Err != nil:
		return nil, "the record cannot be loaded; mend it first"
	case w.gate.Fence.Touches(need):
		return nil, gate.Fenced
	case ceiling != "":
		return nil, "toolset: names the tools that may be called at all, and this is none of them: " + ceiling
	}
	if why := w.stranded(ag); why != "" {
		return nil, why
	}
	var edits []edit
	for _, up := range w.above(ag) {
		if up.Giveable().Decide(need).Allowed() && (up != ag || up.Set.Decide(need).Allowed()) {
			continue
		}
		spec, ok := w.narrowest(up, need)
		if !ok {
			return nil, "no grant is known that covers this and no more"
		}
		set, _ := w.roster.Compile(up, spec)
		held := up.Giveable()
		if up == ag {
			held = up.Set
		}
		if d := set.Decide(need); !d.Allowed() && !w.gate.Besides(up, held, spec).Decide(need).Allowed() {
			return nil, fmt.Sprintf("%s in the record of %s would not do: %s", spec, up.ID, inertness(set, d))
		}
		if d := up.Record.Dialect; d != capability.Egghead {
			return nil, fmt.Sprintf("%s would allow it in the record of %s, which is written in the dialect %s and edited by hand", spec, up.ID, d)
		}
		edits = append(edits, edit{up.ID, spec.String()})
	}
	return edits, ""
}

// narrowest is the grant for an edit: absolute, as it means the same after it, unless only one that
// hangs from the agent's root does, as of a program that reaches above where it runs, or of that root itself.
func (w *world) narrowest(ag *agents.Agent, need *capability.Requirement) (spec capability.Spec, ok bool) {
	spec, ok = need.Smallest(capability.Root{})
	if ok {
		if set, findings := w.roster.Compile(ag, spec); len(findings) == 0 && set.Decide(need).Allowed() {
			return spec, true
		}
	}
	if hung, is := need.Smallest(w.roster.Root(ag)); is {
		return hung, true
	}
	return spec, ok
}

func inertness(set *capability.Set, d capability.Decision) string {
	for g := range set.All() {
		if g.Inert() != "" {
			return g.Inert()
		}
		if g.Note() != "" {
			return g.Note()
		}
	}
	return d.String()
}

func (a *app) printExplanation(x explanation) {
	u := a.ui
	color := red
	if x.Decision == capability.Allow.String() {
		color = green
	}
	u.printf("%s", u.paint(color, x.Decision))
	if x.Code != "" {
		u.printf("  %s", x.Code)
	}
	u.printf("\n")
	held := x.Held
	if len(held) > 1 || len(held) == 1 && held[0] == x.Nearest {
		held = nil // the nearest says it
	}
	u.row("agent", x.Agent, "")
	u.row("tool", x.Tool, "")
	u.row("argument", x.Argument, "")
	a.printNeeds(x)
	u.row("grant", x.Grant, u.short(x.Source))
	for _, place := range x.Also[:min(len(x.Also), mostAlso)] {
		u.row("also", place, "")
	}
	if more := len(x.Also) - mostAlso; more > 0 {
		u.row("also", fmt.Sprintf("%d more, which --json shows", more), "")
	}
	if x.Why != x.Blocked { // else it is said below
		u.row("because", u.short(x.Why), "")
	}
	u.row("nearest", x.Nearest, u.short(x.NearAt))
	for _, h := range held {
		u.row("held", h, "")
	}
	u.row("blocked", x.Blocked, "")
	u.row("note", x.Note, "")
	if x.Unseen {
		u.row("note", "no tool of this name was seen at the server, which others were", "")
	}
	for _, e := range x.Allow {
		u.rowOf("to allow", plain(a.here(e.command())), "")
	}
}

// row writes one line of what is known of something, its place faint behind it.
func (u *ui) row(name, text, at string) {
	if text != "" {
		u.rowOf(name, cell(text), at)
	}
}

// rowOf does so for a text that is ready to be printed: of a command, to be typed as it stands,
// not even the blanks are touched.
func (u *ui) rowOf(name, shown, at string) {
	if at != "" {
		at = "  " + u.paint(faint, cell(at))
	}
	u.printf("  %-8s %s%s\n", name, shown, at)
}
