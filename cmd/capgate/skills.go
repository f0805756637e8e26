package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"capgate/agents"
	"capgate/capability"
	"capgate/proxy"
	"capgate/skills"
)

func (a *app) skills() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "skills",
		Short: "Which skills an agent is shown, and what the others lack",
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
	Waits       string      `json:"waits,omitempty"`  // the command that shows what of it waits for approval
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
	return cell(skill)
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
	if s.Waits != "" {
		row.Waits = pinsDiff(s.Upstream, s.Waits)
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

	folders []capability.Finding // what of the folders shows no skills
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
		Use: use, Short: short, Example: example, Args: takes(0, 0),
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
			seen[0].folders = w.unsearched()
			return show(seen[0])
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "", "the `id` of the agent")
	cmd.Flags().BoolVar(&all, "all", false, "every agent: who is shown what; that exits 0, whatever is hidden")
	return cmd
}

// unsearched is what was found of folders of skills, and of links in them, that show none.
func (w *world) unsearched() []capability.Finding {
	return slices.DeleteFunc(w.policy.Skills.Findings(), func(f capability.Finding) bool {
		return f.Code != "skill_link" && f.Code != "skill_folder" && f.Code != "skill_limit"
	})
}

// logUnsearched logs which folders of skills show none, unless that was so before: all their skills
// are gone, for every agent and out of every mirror.
func (w *world) logUnsearched(before *world, log *slog.Logger) {
	var known []capability.Finding
	if before != nil {
		known = before.unsearched()
	}
	for _, f := range w.unsearched() {
		if f.Code != "skill_link" && !slices.Contains(known, f) {
			log.Error("skills are missing", "finding", f.String(), "code", f.Code)
		}
	}
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
		if len(of.rows) == 0 {
			a.ui.note("no skill is shown to this agent; capgate skills check says what it lacks for those that there are")
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
		for _, f := range of.folders {
			a.ui.finding(a.ui.std.err, f)
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
	if r.Waits != "" {
		u.rowOf("look at", plain(a.here(r.Waits)), "what waits, and how it is approved")
	}
	for _, m := range r.Missing {
		u.row("needs", m.Need, m.Token)
		if m.Beyond != "" {
			u.row("lacks", m.Beyond, "")
		}
		for _, e := range m.Allow {
			u.rowOf("to show", plain(a.here(e.command())), "")
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
		u.rowOf("or", plain(fmt.Sprintf("once somebody has read it and what clients do with its text%s: skills: { vouched: { %q: %q } }", besides, r.Skill, r.Vouch)), "")
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
