package main

import (
	"fmt"
	"slices"
	"time"

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

// mirrorLook is how often serve looks whether a copy has fallen behind.
const mirrorLook = 5 * time.Second

// mirrors are the copies of the skills that a gateway keeps in step.
type mirrors struct {
	policy *proxy.Policy // they are of
	held   map[config.Mirror][]*skills.Skill
	behind bool      // one of them could not be brought in step
	next   time.Time // when they are looked at again
}

// mirror brings the copies of the skills in step with a policy. One that the
// configuration does not name any more is emptied.
func (g *gateway) mirror(p *proxy.Policy) {
	if g.mirrors == nil {
		return
	}
	before := g.mirrors.held
	g.mirrors.policy, g.mirrors.held, g.mirrors.behind = p, map[config.Mirror][]*skills.Skill{}, false
	for _, m := range g.world.cfg.Skills.Mirrors {
		m.Pos = capability.Pos{}
		g.mirrors.held[m] = shown(p, capability.AgentID(m.Agent))
		g.mirrorOne(m, g.mirrors.held[m])
	}
	for m := range before {
		if _, named := g.mirrors.held[m]; !named && !g.mirrorOne(m, nil) {
			g.mirrors.held[m] = nil
		}
	}
	g.mirrors.next = time.Now().Add(mirrorLook)
}

// keepUp mirrors again when a copy could not be brought in step, as while another
// process held it, and when time has changed what an agent is shown.
func (g *gateway) keepUp(now time.Time) {
	if g.mirrors == nil || g.mirrors.policy == nil || now.Before(g.mirrors.next) {
		return
	}
	g.mirrors.next = now.Add(mirrorLook)
	again := g.mirrors.behind
	for m, list := range g.mirrors.held {
		again = again || !slices.Equal(list, shown(g.mirrors.policy, capability.AgentID(m.Agent)))
	}
	if again {
		g.mirror(g.mirrors.policy)
	}
}

func (g *gateway) mirrorOne(m config.Mirror, list []*skills.Skill) bool {
	done, err := skills.Mirror{Dir: m.Dir, Agent: capability.AgentID(m.Agent)}.Update(list)
	if err != nil {
		g.mirrors.behind = true
		g.log.Error("a mirror of skills is not in step", "agent", m.Agent, "folder", m.Dir, "error", err)
	}
	if len(done.InTheWay) > 0 {
		g.log.Warn("something is in the way of skills in their mirror", "folder", m.Dir, "skills", done.InTheWay)
	}
	return err == nil
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
	sealed, err := w.cfg.Sealed(w.view)
	if err != nil {
		return broken(err, "")
	}
	kept := slices.ContainsFunc(w.cfg.Skills.Mirrors, func(m config.Mirror) bool {
		return m.Dir == root.Real && capability.AgentID(m.Agent) == agent
	})
	for _, own := range append(sealed, w.own...) {
		if kept && own.Real == root.Real {
			continue
		}
		if root.Within(own) || own.Within(root) {
			return usage(fmt.Errorf("%s is where the gateway has files of its own", dir), "name a folder that holds nothing else")
		}
	}
	done, err := skills.Mirror{Dir: root.Real, Agent: agent}.Update(shown(w.policy, agent))
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
