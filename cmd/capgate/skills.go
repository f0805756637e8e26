package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"capgate/agents"
	"capgate/capability"
	"capgate/gate"
	"capgate/skills"
)

func (a *app) skills() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "skills",
		Short: "Which skills an agent is shown, and what the others lack",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.skillsList(), a.skillsCheck(), a.skillsMirror())
	return cmd
}

// skill finds a skill by its path, or by its name where only one has it.
func (w *world) skill(name string) (*skills.Skill, error) {
	if s, ok := w.policy.Skills.Skill(name); ok {
		return s, nil
	}
	var found []*skills.Skill
	var known []string
	for s := range w.policy.Skills.All() {
		if known = append(known, s.Path); s.Name == name {
			found = append(found, s)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		hint := "capgate skills list --all shows those there are"
		if near := capability.Closest(name, known); near != "" {
			hint = "did you mean " + near + "?"
		}
		return nil, broken(fmt.Errorf("there is no skill %q", name), hint)
	}
	return nil, broken(fmt.Errorf("several skills are called %q", name), "write the path of one: "+found[0].Path)
}

// skillRow is one skill, as an agent is shown it or not.
type skillRow struct {
	Skill       string      `json:"skill"`
	Description string      `json:"description,omitempty"`
	Requires    []string    `json:"requires"`
	Files       int         `json:"files"`
	Hidden      string      `json:"hidden,omitempty"` // why nobody is shown it
	Missing     []shortfall `json:"missing,omitempty"`

	ok bool
}

// shortfall is one thing that a skill needs and an agent does not have.
type shortfall struct {
	Token   string `json:"token"`
	Need    string `json:"need"`
	Code    string `json:"code"`
	Beyond  string `json:"beyond,omitempty"` // what it would allow besides
	Why     string `json:"why,omitempty"`
	Allow   []edit `json:"allow,omitempty"` // the edits that would satisfy it, all of them needed
	Blocked string `json:"blocked,omitempty"`
}

// skillRows asks the gate about every skill.
func (w *world) skillRows(ag *agents.Agent) []skillRow {
	rows := []skillRow{}
	for s := range w.policy.Skills.All() {
		rows = append(rows, w.skillRow(ag, s))
	}
	return rows
}

func (w *world) skillRow(ag *agents.Agent, s *skills.Skill) skillRow {
	row := skillRow{Skill: s.Path, Description: s.Description, Requires: []string{}, Files: len(s.Files), Hidden: s.Broken}
	for _, n := range s.Needs {
		row.Requires = append(row.Requires, n.String())
	}
	got := w.gate.Skill(ag.ID, s)
	row.ok = got.Satisfied
	if _, could := s.Requires(); row.Hidden == "" && !could {
		row.Hidden = unsatisfiable(s)
	}
	for _, m := range got.Missing {
		row.Missing = append(row.Missing, w.shortfall(ag, s, m))
	}
	return row
}

// unsatisfiable says what of a skill nobody can satisfy.
func unsatisfiable(s *skills.Skill) string {
	var list []string
	for _, n := range s.Needs {
		if n.Unknown != "" {
			list = append(list, n.Token+": "+n.Unknown)
		}
	}
	return strings.Join(list, "; ")
}

// shortfall says what is missing of one need, and what would mend it.
func (w *world) shortfall(ag *agents.Agent, s *skills.Skill, m gate.Missing) shortfall {
	f := shortfall{Need: m.Need.String(), Code: string(m.Code), Why: m.Why}
	if i := slices.IndexFunc(s.Needs, func(n skills.Need) bool { return n.Spec.Equal(m.Need) }); i >= 0 {
		f.Token = s.Needs[i].Token
	}
	if len(m.Gaps) > 0 {
		f.Beyond = m.Gaps[0].Witness
	}
	f.Allow, f.Blocked = w.satisfying(ag, m)
	return f
}

// satisfying finds the edits of records that would satisfy a need.
func (w *world) satisfying(ag *agents.Agent, m gate.Missing) (edits []edit, blocked string) {
	switch {
	case ag.Err != nil:
		return nil, "the record cannot be loaded; mend it first"
	case m.Tool != "":
		return nil, "capgate explain --agent " + ag.ID + " --tool " + m.Tool + " says what a call of it needs"
	case strings.HasPrefix(m.Why, "toolset of "):
		return nil, "toolset: names the tools that may be called at all, and these are not all among them: " + m.Why
	}
	spec, ok := w.written(ag, m.Need)
	if !ok {
		return nil, "the agent has no root, so that nothing says where it would use this: write sandbox: into its record"
	}
	for _, up := range w.above(ag) {
		if up.Err != nil || up.Record == nil {
			return nil, up.ID + " cannot be loaded; mend it first"
		}
		set, _ := w.roster.Compile(up, spec)
		held := up.Set
		if up != ag {
			held = up.Giveable
		}
		switch {
		case !allOf(set, spec):
			return nil, fmt.Sprintf("%s in the record of %s would not do, since the sandbox root cuts it off", spec, up.ID)
		case len(held.Covers(set)) == 0:
			continue
		case up.Record.Dialect != capability.Egghead:
			return nil, fmt.Sprintf("%s would do in the record of %s, which is written in the dialect %s and edited by hand", spec, up.ID, up.Record.Dialect)
		}
		edits = append(edits, edit{up.ID, spec.String()})
	}
	if len(edits) == 0 { // every record has it, and still it does not count
		return nil, "no grant changes that: it lies behind the gateway's fence, or an agent above has no record"
	}
	return edits, ""
}

// written is a need as a grant that means the same in every record: some use of a verb
// as all of it below the agent's root, what hangs from that root with the root.
func (w *world) written(ag *agents.Agent, need capability.Spec) (capability.Spec, bool) {
	opts := capability.Options{Agent: ag.Root}
	if ag.Root.IsZero() {
		opts.Agent = w.cfg.Sandbox
	}
	resource := capability.Verb(need.Verb).Resource()
	if opts.Agent.IsZero() && (resource == "fs" || resource == "proc") {
		return capability.Spec{}, false
	}
	if need.Bare {
		opts.Dialect = capability.Scarab
	}
	if _, own := need.Get("in"); own {
		opts = capability.Options{}
	}
	set, _ := capability.Compile([]capability.Spec{need}, opts)
	for g := range set.All() {
		if spec := g.Spec(); g.Inert() == "" {
			spec.Bare = len(spec.Scope) == 0
			return spec, true
		}
	}
	return capability.Spec{}, false
}

// allOf reports whether a set holds all of a grant as it was written.
func allOf(set *capability.Set, spec capability.Spec) bool {
	whole, _ := capability.Compile([]capability.Spec{spec}, capability.Options{})
	return len(set.Covers(whole)) == 0
}

// matrixRow is one skill, and which agents are shown it.
type matrixRow struct {
	Skill  string          `json:"skill"`
	Hidden string          `json:"hidden,omitempty"`
	Agents map[string]bool `json:"agents"`
}

func (w *world) matrix() (ids []string, rows []matrixRow) {
	for ag := range w.roster.All() {
		ids = append(ids, ag.ID)
	}
	rows = []matrixRow{}
	for s := range w.policy.Skills.All() {
		row := matrixRow{Skill: s.Path, Hidden: s.Broken, Agents: map[string]bool{}}
		if _, could := s.Requires(); row.Hidden == "" && !could {
			row.Hidden = unsatisfiable(s)
		}
		for _, id := range ids {
			row.Agents[id] = w.gate.Skill(id, s).Satisfied
		}
		rows = append(rows, row)
	}
	return ids, rows
}

// skillsAsked runs a command about the skills of one agent, or of all.
func (a *app) skillsAsked(use, short, example string, show func(w *world, ag *agents.Agent) error) *cobra.Command {
	var agent string
	var all bool
	cmd := &cobra.Command{
		Use: use, Short: short, Example: example, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if (agent == "") != all {
				return usage(fmt.Errorf("name one agent, or all of them"), "--agent scout, or --all")
			}
			w, err := a.load()
			if err != nil {
				return err
			}
			if all {
				return a.printMatrix(w)
			}
			ag, err := w.agent(agent)
			if err != nil {
				return err
			}
			return show(w, ag)
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "", "the `id` of the agent")
	cmd.Flags().BoolVar(&all, "all", false, "every agent: who is shown what")
	return cmd
}

func (a *app) skillsList() *cobra.Command {
	const example = "  capgate skills list --agent scout\n  capgate skills list --all"
	return a.skillsAsked("list --agent AGENT", "List the skills that an agent is shown", example, func(w *world, ag *agents.Agent) error {
		rows := slices.DeleteFunc(w.skillRows(ag), func(r skillRow) bool { return !r.ok })
		if a.ui.json {
			return a.ui.emit(rows)
		}
		for _, r := range rows {
			a.ui.printf("%-24s %s\n", plain(r.Skill), a.ui.paint(faint, short(r.Description)))
		}
		return nil
	})
}

func (a *app) skillsCheck() *cobra.Command {
	const example = "  capgate skills check --agent scout\n  capgate skills check --all"
	return a.skillsAsked("check --agent AGENT", "Say of each hidden skill what the agent lacks", example, func(w *world, ag *agents.Agent) error {
		rows := slices.DeleteFunc(w.skillRows(ag), func(r skillRow) bool { return r.ok })
		if len(rows) > 0 {
			a.code = exitRed
		}
		if a.ui.json {
			return a.ui.emit(rows)
		}
		for _, r := range rows {
			a.printHidden(ag, r)
		}
		return nil
	})
}

func (a *app) printHidden(ag *agents.Agent, r skillRow) {
	u := a.ui
	u.printf("%s  %s\n", u.paint(bold, plain(r.Skill)), u.paint(red, "hidden"))
	switch {
	case r.Hidden != "":
		u.row("because", r.Hidden, "")
	case ag.Err != nil:
		u.row("because", "the record of the agent cannot be loaded", "")
	}
	for _, m := range r.Missing {
		u.row("needs", m.Need, m.Token)
		if m.Beyond != "" {
			u.row("lacks", m.Beyond, "")
		}
		for _, e := range m.Allow {
			u.row("to show", e.command(), "")
		}
		if m.Blocked != "" {
			u.row("blocked", m.Blocked, "")
		}
	}
}

func (a *app) printMatrix(w *world) error {
	ids, rows := w.matrix()
	if a.ui.json {
		return a.ui.emit(rows)
	}
	u := a.ui
	width := len("skill")
	for _, r := range rows {
		width = max(width, len(r.Skill))
	}
	u.printf("%-*s", width, "skill")
	for _, id := range ids {
		u.printf("  %s", id)
	}
	u.printf("\n")
	for _, r := range rows {
		u.printf("%-*s", width, plain(r.Skill))
		for _, id := range ids {
			mark, color := "-", faint
			if r.Agents[id] {
				mark, color = "shown", green
			}
			u.printf("  %s", u.paint(color, fmt.Sprintf("%-*s", len(id), mark)))
		}
		u.printf("  %s\n", u.paint(faint, plain(r.Hidden)))
	}
	return nil
}

// short is the beginning of a text, in one line.
func short(text string) string {
	const most = 100
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return plain(text)
}
