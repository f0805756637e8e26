package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"capgate/capability"
	"capgate/config"
	"capgate/proxy"
	"capgate/skills"
)

// shown returns the skills that an agent is shown.
func shown(p *proxy.Policy, agent string) []*skills.Skill {
	var list []*skills.Skill
	for s := range p.Skills.All() {
		if p.Gate.Skill(agent, s).Satisfied {
			list = append(list, s)
		}
	}
	return list
}

// mirror brings the copies of the skills in step with a policy. One that the
// configuration does not name any more is emptied.
func (g *gateway) mirror(p *proxy.Policy) {
	if !g.mirrors {
		return
	}
	named := map[config.Mirror]bool{}
	for _, m := range g.world.cfg.Skills.Mirrors {
		m.Pos = capability.Pos{}
		named[m] = true
		g.mirrorOne(m, shown(p, capability.AgentID(m.Agent)))
	}
	for m := range g.mirrored {
		if !named[m] {
			g.mirrorOne(m, nil)
		}
	}
	g.mirrored = named
}

func (g *gateway) mirrorOne(m config.Mirror, list []*skills.Skill) {
	done, err := skills.Mirror{Dir: m.Dir, Agent: capability.AgentID(m.Agent)}.Update(list)
	if err != nil {
		g.log.Error("a mirror of skills is not in step", "agent", m.Agent, "folder", m.Dir, "error", err)
	}
	if len(done.InTheWay) > 0 {
		g.log.Warn("something is in the way of skills in their mirror", "folder", m.Dir, "skills", done.InTheWay)
	}
}

func (a *app) skillsMirror() *cobra.Command {
	var agent, dir string
	cmd := &cobra.Command{
		Use:   "mirror --agent AGENT --to DIR",
		Short: "Copy the skills that an agent is shown into a folder",
		Long: "mirror makes a folder hold a copy of the skills that an agent is shown, for clients\nthat read the disk. It removes what is not shown any more, and leaves alone what it\n" +
			"did not write. capgate serve keeps the folders in step that skills.mirror names.",
		Example: "  capgate skills mirror --agent scout --to ./scout/.claude/skills",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			w, err := a.load()
			if err != nil {
				return err
			}
			ag, err := w.sound(agent)
			if err != nil {
				return err
			}
			return a.mirrorTo(w, ag.ID, dir)
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "", "the `id` of the agent")
	cmd.Flags().StringVar(&dir, "to", "", "the `folder` that the copy goes into")
	_ = cmd.MarkFlagRequired("agent") // the flags are there
	_ = cmd.MarkFlagRequired("to")
	return cmd
}

// mirrorTo writes a copy into a folder that holds nothing of the gateway's own.
func (a *app) mirrorTo(w *world, agent, dir string) error {
	root, err := capability.ParseRoot(dir, w.view.Cwd, w.view)
	if err != nil {
		return usage(err, "name a folder")
	}
	folders, err := roots(w.cfg.Skills.Folders, w.view)
	if err != nil {
		return broken(err, "")
	}
	for _, own := range append(folders, w.own...) {
		if root.Within(own) || own.Within(root) {
			return usage(fmt.Errorf("%s is where the gateway has files of its own", dir), "name a folder that holds nothing else")
		}
	}
	done, err := skills.Mirror{Dir: root.Dir, Agent: agent}.Update(shown(w.policy, agent))
	if err != nil {
		return broken(err, "")
	}
	if len(done.InTheWay) > 0 {
		a.code = exitRed
	}
	if a.ui.json {
		return a.ui.emit(done)
	}
	for _, name := range done.InTheWay {
		a.ui.line(a.ui.std.err, yellow, "warning", fmt.Sprintf("something else is where %s belongs, and was left as it is", name))
	}
	a.ui.printf("%d written, %d removed, %d kept\n", len(done.Written), len(done.Removed), len(done.Kept))
	return nil
}

// roots finds out where folders are.
func roots(dirs []string, v capability.View) ([]capability.Root, error) {
	var list []capability.Root
	for _, dir := range dirs {
		root, err := capability.ParseRoot(dir, "", v)
		if err != nil {
			return nil, fmt.Errorf("find %s: %w", dir, err)
		}
		list = append(list, root)
	}
	return list, nil
}
