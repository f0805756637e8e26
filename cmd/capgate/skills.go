package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"capgate/agents"
	"capgate/capability"
	"capgate/gate"
	"capgate/proxy"
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
	Upstream    string      `json:"upstream,omitempty"` // whose it is, unless it is one of the gateway's own
	Description string      `json:"description,omitempty"`
	Requires    []string    `json:"requires"`
	Files       int         `json:"files"`
	Hidden      string      `json:"hidden,omitempty"` // why nobody is shown it
	Why         string      `json:"why,omitempty"`    // why the agent is shown none
	Missing     []shortfall `json:"missing,omitempty"`
	Vouch       string      `json:"vouch,omitempty"`   // the digest to write under skills.vouched: once somebody has read it
	Besides     []string    `json:"besides,omitempty"` // what is missing all the same then

	ok bool
}

// title names a skill and whose it is.
func title(skill, upstream string) string {
	if upstream != "" {
		skill += " (upstream " + upstream + ")"
	}
	return plain(skill)
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

// skillRow says of a skill how an agent sees it.
func (w *world) skillRow(ag *agents.Agent, s proxy.ShownSkill) skillRow {
	row := skillRow{
		Skill: s.About.Path, Upstream: s.Upstream, Description: s.About.Description, Requires: []string{}, Files: s.Files, Hidden: s.Why,
		ok: s.Visible,
	}
	if s.Upstream != "" || row.Skill == "" {
		row.Skill = cmp.Or(strings.TrimPrefix(s.URI, "skill://"), "?")
	}
	for _, n := range s.About.Needs {
		row.Requires = append(row.Requires, n.String())
	}
	_, could := s.About.Requires()
	switch {
	case row.ok:
	case row.Hidden == "" && !could:
		row.Hidden = unsatisfiable(s.About)
	case row.Hidden == "":
		row.Why = s.Lacks.Why
	}
	for _, m := range s.Lacks.Missing {
		row.Missing = append(row.Missing, w.shortfall(ag, s.About, m))
	}
	if s.Upstream == "" && row.Hidden == "" {
		row.vouch(s.About)
	}
	return row
}

// vouch says what vouching for a skill would mend, if it mends anything: what its text does
// may be what it also declares.
func (r *skillRow) vouch(s *skills.Skill) {
	var told []string
	for _, n := range s.Needs {
		if !n.Untold {
			told = append(told, n.String())
		}
	}
	var besides []string
	for _, m := range r.Missing {
		if slices.Contains(told, m.Need) {
			besides = append(besides, m.Need)
		}
	}
	if len(besides) < len(r.Missing) {
		r.Vouch, r.Besides = s.Digest, besides
	}
}

// skillsOf are all the skills there are, as one agent is shown them or not.
type skillsOf struct {
	agent   *agents.Agent
	rows    []skillRow
	missing []string // the servers that did not say what they have
}

// agentsAtOnce is for how many agents servers run at the same time.
const agentsAtOnce = 8

// lookSkills runs the gateway for as long as it takes to see the skills of agents.
func (a *app) lookSkills(ctx context.Context, w *world, all ...*agents.Agent) ([]skillsOf, error) {
	seen := make([]skillsOf, len(all))
	for i := 0; i < len(all); i += agentsAtOnce {
		some := seen[i:min(i+agentsAtOnce, len(all))]
		for j := range some {
			some[j].agent = all[i+j]
		}
		if err := a.behind(ctx, w, func(ctx context.Context, s *proxy.Server) error { return w.lookSkills(ctx, s, some) }); err != nil {
			return nil, err
		}
	}
	return seen, nil
}

// lookSkills asks a gateway for the skills of some agents.
func (w *world) lookSkills(ctx context.Context, s *proxy.Server, some []skillsOf) error {
	var looking sync.WaitGroup
	errs := make([]error, len(some))
	for i := range some {
		looking.Go(func() {
			var all []proxy.ShownSkill
			all, some[i].missing, errs[i] = s.LookSkills(ctx, some[i].agent.ID)
			for _, one := range all {
				some[i].rows = append(some[i].rows, w.skillRow(some[i].agent, one))
			}
		})
	}
	looking.Wait()
	return errors.Join(errs...)
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
	opts := capability.Options{Agent: w.roster.Base(ag)}
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
	Skill    string          `json:"skill"`
	Upstream string          `json:"upstream,omitempty"`
	Hidden   string          `json:"hidden,omitempty"` // why nobody is shown it
	Agents   map[string]bool `json:"agents"`           // without those for whom its server did not say what it has
}

// matrixOf puts together what several agents are shown.
func matrixOf(seen []skillsOf) (rows []matrixRow) {
	rows = []matrixRow{}
	at := map[string]int{}
	for _, of := range seen {
		for _, r := range of.rows {
			key := title(r.Skill, r.Upstream)
			i, known := at[key]
			if !known {
				i = len(rows)
				at[key], rows = i, append(rows, matrixRow{r.Skill, r.Upstream, r.Hidden, map[string]bool{}})
			}
			rows[i].Agents[of.agent.ID] = r.ok
			if r.Hidden == "" {
				rows[i].Hidden = ""
			}
		}
	}
	for _, of := range seen {
		for _, row := range rows {
			if _, said := row.Agents[of.agent.ID]; !said && !slices.Contains(of.missing, row.Upstream) {
				row.Agents[of.agent.ID] = false
			}
		}
	}
	slices.SortStableFunc(rows, func(x, y matrixRow) int {
		return cmp.Or(cmp.Compare(x.Skill, y.Skill), cmp.Compare(x.Upstream, y.Upstream))
	})
	return rows
}

// skillsAsked is a command about the skills of one agent, or of all.
func (a *app) skillsAsked(use, short, example string, show func(of skillsOf) error) *cobra.Command {
	var agent string
	var all bool
	cmd := &cobra.Command{
		Use: use, Short: short, Example: example, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (agent == "") != all {
				return usage(fmt.Errorf("name one agent, or all of them"), "--agent scout, or --all")
			}
			w, err := a.load()
			if err != nil {
				return err
			}
			whose := slices.Collect(w.roster.All())
			if !all {
				ag, err := w.agent(agent)
				if err != nil {
					return err
				}
				whose = []*agents.Agent{ag}
			}
			seen, err := a.lookSkills(cmd.Context(), w, whose...)
			if err != nil {
				return broken(err, "")
			}
			if all {
				return a.printMatrix(seen)
			}
			a.warnMissing(seen[0].missing)
			return show(seen[0])
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "", "the `id` of the agent")
	cmd.Flags().BoolVar(&all, "all", false, "every agent: who is shown what")
	return cmd
}

// emitSkills writes skills as data.
func (a *app) emitSkills(of skillsOf) error {
	return a.ui.emit(map[string]any{"agent": of.agent.ID, "skills": append([]skillRow{}, of.rows...), "missing": append([]string{}, of.missing...)})
}

func (a *app) skillsList() *cobra.Command {
	const example = "  capgate skills list --agent scout\n  capgate skills list --all"
	return a.skillsAsked("list --agent AGENT", "Start the servers and list the skills that an agent is shown", example, func(of skillsOf) error {
		of.rows = slices.DeleteFunc(of.rows, func(r skillRow) bool { return !r.ok })
		if a.ui.json {
			return a.emitSkills(of)
		}
		for _, r := range of.rows {
			a.ui.printf("%-24s %s\n", title(r.Skill, r.Upstream), a.ui.paint(faint, short(r.Description)))
		}
		return nil
	})
}

func (a *app) skillsCheck() *cobra.Command {
	const example = "  capgate skills check --agent scout\n  capgate skills check --all"
	return a.skillsAsked("check --agent AGENT", "Start the servers and say of each hidden skill what the agent lacks", example, func(of skillsOf) error {
		of.rows = slices.DeleteFunc(of.rows, func(r skillRow) bool { return r.ok })
		if len(of.rows) > 0 {
			a.code = exitRed
		}
		if a.ui.json {
			return a.emitSkills(of)
		}
		for _, r := range of.rows {
			a.printHidden(of.agent, r)
		}
		return nil
	})
}

func (a *app) printHidden(ag *agents.Agent, r skillRow) {
	u := a.ui
	u.printf("%s  %s\n", u.paint(bold, title(r.Skill, r.Upstream)), u.paint(red, "hidden"))
	switch {
	case r.Hidden != "":
		u.row("because", r.Hidden, "")
	case ag.Err != nil:
		u.row("because", "the record of the agent cannot be loaded", "")
	default:
		u.row("because", r.Why, "")
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
	if r.Vouch != "" {
		besides := ""
		if len(r.Besides) > 0 {
			besides = ", and with " + strings.Join(r.Besides, ", ") + ", which it needs besides"
		}
		u.row("or", fmt.Sprintf("once somebody has read it and what clients do with its text%s: skills: { vouched: { %q: %q } }", besides, r.Skill, r.Vouch), "")
	}
}

func (a *app) printMatrix(seen []skillsOf) error {
	rows := matrixOf(seen)
	missing := []string{}
	for _, of := range seen {
		missing = append(missing, of.missing...)
	}
	slices.Sort(missing)
	missing = slices.Compact(missing)
	a.warnMissing(missing)
	u := a.ui
	if u.json {
		return u.emit(map[string]any{"skills": rows, "missing": missing})
	}
	width := len("skill")
	for _, r := range rows {
		width = max(width, len(title(r.Skill, r.Upstream)))
	}
	u.printf("%-*s", width, "skill")
	for _, of := range seen {
		u.printf("  %s", of.agent.ID)
	}
	u.printf("\n")
	for _, r := range rows {
		u.printf("%-*s", width, title(r.Skill, r.Upstream))
		for _, of := range seen {
			id := of.agent.ID
			mark, color := "-", faint
			if shown, said := r.Agents[id]; shown {
				mark, color = "shown", green
			} else if !said {
				mark, color = "?", yellow
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
