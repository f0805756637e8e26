package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
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

// mirrors are the copies of the skills that a gateway keeps in step. They are written
// beside what else it does: that takes long where there are many skills, and nobody who
// loses authority may wait for it.
type mirrors struct {
	log   *slog.Logger
	clean func(data []byte) bool // that no secret stands in it
	next  chan mirrored          // what they should be of, if that is another

	secrets func() int // how many are known by now, which may stand in no mirror; nil for none
	known   int        // how many were when the mirrors were written last

	held map[config.Mirror]*heldMirror

	mu   sync.Mutex
	stop context.CancelFunc // has what is being written end, nil before there was any
}

// heldMirror is one of the copies.
type heldMirror struct {
	list   []*skills.Skill // what should be in it
	gone   bool            // the configuration does not name it any more
	behind bool            // it is not known to be in step
	left   time.Time       // when something came into its folder, or went, as it was written last

	said map[string]string // which skills were said to be left out, by why
}

// touched is when something came into a folder, or went.
func touched(dir string) time.Time {
	info, err := os.Lstat(dir)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// mirrored is a policy, and the mirrors that its configuration names.
type mirrored struct {
	policy *proxy.Policy
	names  []config.Mirror
}

// follow keeps the mirrors in step until the context ends.
func (m *mirrors) follow(ctx context.Context) {
	look := time.NewTicker(mirrorLook)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case as := <-m.next:
			m.adopt(as)
			m.write(ctx)
		case <-look.C:
			m.keepUp(ctx)
		}
	}
}

// mirror has the copies of the skills brought in step with a policy, in place of any
// that waits.
func (g *gateway) mirror(p *proxy.Policy) {
	if g.mirrors == nil {
		return
	}
	g.mirrors.renew(mirrored{p, g.world.cfg.Skills.Mirrors})
}

// renew has the mirrors be of something else. What is being written of them ends, since it
// may be what nobody is shown any more.
func (m *mirrors) renew(as mirrored) {
	m.mu.Lock() // until both are done, or what is newer would be ended
	defer m.mu.Unlock()
	if m.stop != nil {
		m.stop()
	}
	select {
	case <-m.next:
	default:
	}
	m.next <- as
}

// write brings the mirrors in step, unless there is something newer.
func (m *mirrors) write(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	m.mu.Lock()
	m.stop = stop
	m.mu.Unlock()
	if len(m.next) == 0 {
		m.update(ctx)
	}
}

// adopt takes what the mirrors should be of. One that the configuration does not name any
// more is emptied.
func (m *mirrors) adopt(as mirrored) {
	before := m.held
	m.held = map[config.Mirror]*heldMirror{}
	for one := range before {
		m.held[one] = &heldMirror{gone: true, behind: true}
	}
	for _, one := range as.names {
		one.Pos = capability.Pos{}
		m.held[one] = &heldMirror{list: shown(as.policy, capability.AgentID(one.Agent)), behind: true}
	}
}

// update brings every mirror in step that has fallen behind. What is not shown any more
// is taken out of all of them before anything is put into one, which takes long where
// there are many skills; what goes wrong with that is said afterwards.
func (m *mirrors) update(ctx context.Context) {
	m.known = m.learned()
	ended, end := context.WithCancel(ctx)
	end()
	for one, h := range m.held {
		if h.behind {
			_, _ = m.of(one).Update(ended, h.list)
		}
	}
	for _, gone := range [...]bool{true, false} { // a folder may be another agent's by now
		for one, h := range m.held {
			if h.behind && h.gone == gone {
				h.behind = !m.updateOne(ctx, one, h.list)
				h.left = touched(one.Dir)
			}
			if h.gone && !h.behind {
				delete(m.held, one)
			}
		}
	}
}

func (m *mirrors) learned() int {
	if m.secrets == nil {
		return 0
	}
	return m.secrets()
}

func (m *mirrors) of(one config.Mirror) skills.Mirror {
	return skills.Mirror{Dir: one.Dir, Agent: capability.AgentID(one.Agent), Clean: m.clean}
}

// keepUp mirrors again where a copy could not be brought in step, as while another
// process held it, where somebody has cleared the way or taken a skill out, and where a
// secret has become known since. What an agent is shown is the same until the next policy.
func (m *mirrors) keepUp(ctx context.Context) {
	again, learned := false, m.learned() != m.known
	for one, h := range m.held {
		h.behind = h.behind || learned || !h.gone && !touched(one.Dir).Equal(h.left)
		again = again || h.behind
	}
	if again {
		m.write(ctx)
	}
}

// updateOne reports whether a mirror is in step.
func (m *mirrors) updateOne(ctx context.Context, one config.Mirror, list []*skills.Skill) bool {
	done, err := m.of(one).Update(ctx, list)
	if err != nil && ctx.Err() == nil {
		m.log.Error("a mirror of skills is not in step", "agent", one.Agent, "folder", one.Dir, "error", err)
	}
	m.leftOut(one, "something is in the way", done.InTheWay)
	m.leftOut(one, "there are too many files", done.Over)
	m.leftOut(one, "a secret stands in a file", done.Withheld)
	return err == nil
}

// maxLeftOut is how many skills that are left out the log names.
const maxLeftOut = 16

// leftOut logs which skills a mirror does not hold, once as long as they are the same.
func (m *mirrors) leftOut(one config.Mirror, why string, names []string) {
	h, now := m.held[one], strings.Join(names, " ")
	if h.said[why] == now {
		return
	}
	if h.said == nil {
		h.said = map[string]string{}
	}
	if h.said[why] = now; len(names) > 0 {
		m.log.Warn("a mirror does not hold all skills", "why", why, "folder", one.Dir, "skills", names[:min(len(names), maxLeftOut)], "number", len(names))
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
		Args:    takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			w, err := a.load()
			if err != nil {
				return err
			}
			ag, err := w.sound(agent)
			if err != nil {
				return err
			}
			return a.mirrorTo(cmd.Context(), w, ag.ID, dir)
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "", "the `id` of the agent")
	cmd.Flags().StringVar(&dir, "to", "", "the `folder` that the copy goes into")
	_ = cmd.MarkFlagRequired("agent") // the flags are there
	_ = cmd.MarkFlagRequired("to")
	return cmd
}

// mirrorTo writes a copy into a folder that holds nothing of the gateway's own.
func (a *app) mirrorTo(ctx context.Context, w *world, agent, dir string) error {
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
	_ = learn(w.servers.keeper) // what cannot be had stands in no file
	done, err := skills.Mirror{Dir: root.Real, Agent: agent, Clean: w.isClean}.Update(ctx, shown(w.policy, agent))
	if err != nil {
		return broken(err, "")
	}
	if len(done.InTheWay)+len(done.Over)+len(done.Withheld) > 0 {
		a.code = exitRed
	}
	if a.ui.json {
		return a.ui.emit(done)
	}
	for _, name := range done.InTheWay {
		a.ui.line(a.ui.std.err, yellow, "warning", fmt.Sprintf("something else is where %s belongs, and was left as it is", name))
	}
	for _, name := range done.Over {
		a.ui.line(a.ui.std.err, yellow, "warning", fmt.Sprintf("%s was left out, since there are too many files", name))
	}
	for _, name := range done.Withheld {
		a.ui.line(a.ui.std.err, yellow, "warning", fmt.Sprintf("%s was left out, since a secret stands in a file of it", name))
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
