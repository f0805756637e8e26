package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"capgate/agents"
	"capgate/capability"
)

func (a *app) agentsCreate() *cobra.Command {
	var draft agents.Draft
	var grants []string
	var yes bool
	cmd := &cobra.Command{
		Use:   "create AGENT",
		Short: "Write the record of a new agent",
		Long: `create writes a record into the first folder of agents:. On a terminal, and without
flags, it asks for what they would say; in scripts the flags say it all.

What the agent may do is what was asked for, and no more:
  no flags     read records (records.read), as any record that says nothing
  --access     what it says of records, instead of that
  --grant      these, instead of that
  --sandbox    in the folder and beneath it, besides: read and write files (fs.read,
               fs.write), and run programs, once they are named (proc.exec); a
               --grant of one of these verbs takes its place
  --parent     of all this, what the agent above may pass on`,
		Example: "  capgate agents create scout --sandbox ~/projects/foo --access r --grant 'net.get{hosts=[*.github.com]}' --yes",
		Args:    oneAgent,

		ValidArgsFunction: cobra.NoFileCompletions, // not an agent that is there

		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := a.load()
			if err != nil {
				return err
			}
			if draft.ID, err = agentID(args[0]); err != nil {
				return err
			}
			if cmd.Flags().NFlag() == 0 && a.ui.std.terminal {
				if err := a.wizard(&draft, &grants); err != nil {
					return err
				}
			}
			return a.create(w, draft, grants, yes)
		},
	}
	f := cmd.Flags()
	f.StringVar(&draft.Sandbox, "sandbox", "", "the `folder` it works in: read and write there; below sandbox: of the configuration, unless it is a whole path")
	f.StringVar(&draft.Access, "access", "", "access to records: r, w or rw")
	f.StringVar(&draft.Parent, "parent", "", "the `agent` it hangs from")
	f.StringVar(&draft.Body, "text", "", "the prose below the frontmatter")
	f.StringArrayVar(&grants, "grant", nil, "a `grant` in compact form; may be repeated")
	f.BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// wizard asks for what a record needs.
func (a *app) wizard(d *agents.Draft, grants *[]string) error {
	for _, q := range []struct {
		text string
		into *string
	}{
		{"folder it works in, to read and write there (empty for none): ", &d.Sandbox},
		{"access to records: r, w, rw (empty for r, or none beside a grant): ", &d.Access},
		{"agent it hangs from (empty for none): ", &d.Parent},
		{"what it is, in a sentence: ", &d.Body},
	} {
		answer, err := a.ui.prompt(q.text)
		if err != nil {
			return usage(err, "")
		}
		*q.into = answer
	}
	for {
		answer, err := a.ui.prompt("a grant, such as net.get{hosts=[*.github.com]} (empty when done): ")
		if err != nil {
			return usage(err, "")
		}
		if answer == "" {
			return nil
		}
		if _, err := capability.ParseSpec(answer); err != nil {
			a.ui.line(a.ui.std.err, red, "error", err.Error())
			continue
		}
		*grants = append(*grants, answer)
	}
}

func (a *app) create(w *world, d agents.Draft, grants []string, yes bool) error {
	if err := w.unclaimed(d.ID); err != nil {
		return err
	}
	if len(w.cfg.Agents) == 0 {
		return broken(fmt.Errorf("the configuration names no folder of agents"), "add agents: ./agents to it")
	}
	if len(grants) > 0 {
		specs, err := a.specs(grants)
		if err != nil {
			return err
		}
		d.Grants = specs
	}
	if err := a.weigh(w, d); err != nil {
		return err
	}
	data, err := agents.New(d)
	if err != nil {
		return usage(err, "")
	}
	switch {
	case !a.ui.json:
		a.ui.printf("%s", data)
	case !yes: // somebody is asked about it
		fmt.Fprintf(a.ui.std.err, "%s", data)
	}
	file := filepath.Join(w.cfg.Agents[0], filepath.FromSlash(strings.TrimPrefix(d.ID, "agents/"))+".md")
	if err := a.confirm(fmt.Sprintf("write %s?", a.ui.short(file)), yes); err != nil {
		return err
	}
	err = w.write(d.ID, file, data)
	if err == nil && a.ui.json {
		return a.ui.emit(created{d.ID, file, string(data)})
	}
	return err
}

// write makes the file of a record, and records before that it does.
func (w *world) write(id, file string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return broken(fmt.Errorf("make a folder for the record: %w", err), "")
	}
	there := usage(fmt.Errorf("%s is there already", file), "")
	if _, err := os.Lstat(file); err == nil {
		return there
	}
	rec, _, err := agents.Parse(file, data)
	if err != nil {
		return err
	}
	if err := w.kept().note(id, "created with: "+specTexts(rec.Grants)); err != nil {
		return unchangedFor(err)
	}
	if err = agents.CreateFile(file, data); errors.Is(err, fs.ErrExist) {
		return there
	}
	return err
}

// weigh refuses a record that would keep its agent from everything, and grants in it that would mean
// nothing, as those of an agent that is there are refused. It says what else of it is odd.
func (a *app) weigh(w *world, d agents.Draft) error {
	var above capability.Chain
	if d.Parent != "" {
		// Below an agent that is not there, the new one could do nothing.
		parent, err := w.agent(d.Parent)
		if err != nil {
			return err
		}
		above = w.below(parent)
	}
	ag := &agents.Agent{ID: d.ID}
	if d.Sandbox != "" {
		root, err := capability.ParseRoot(d.Sandbox, w.cfg.Sandbox.Dir, w.view)
		if err != nil || root.Escapes(w.cfg.Sandbox) {
			return usage(cmp.Or(err, fmt.Errorf("a link on the way to %s leads out of %s", root.Dir, w.cfg.Sandbox.Dir)), "--sandbox takes a whole path, or one below sandbox: of the configuration")
		}
		var narrowed bool
		if ag.Root, narrowed = root.Clamp(w.cfg.Sandbox); narrowed {
			a.ui.line(a.ui.std.err, yellow, "warning", fmt.Sprintf("%s is not within sandbox: of the configuration, so that it is %s", root.Dir, ag.Root.Dir))
		} else if _, err := os.Stat(root.Dir); err != nil {
			a.ui.line(a.ui.std.err, yellow, "warning", fmt.Sprintf("there is no folder %s yet", root.Dir))
		}
	}
	if len(d.Grants) == 0 {
		return nil
	}
	set, findings := w.roster.Compile(ag, d.Grants...)
	for _, f := range findings {
		a.ui.finding(a.ui.std.err, f)
	}
	if err := effective(set, d.Grants); err != nil {
		return err
	}
	a.ui.warnWide(set)
	a.ui.warnBeyond(above, set)
	return nil
}

// below is what an agent, and those above it, let an agent have that hangs from it.
func (w *world) below(parent *agents.Agent) capability.Chain {
	chain, err := w.roster.Chain(parent.ID)
	if err != nil {
		return nil // its record is broken, as is said elsewhere
	}
	return append(capability.Chain{{Name: "parent " + parent.ID, Set: parent.Giveable()}}, chain[1:]...)
}

// unclaimed refuses the id of an agent, also of one that is gone and has left tokens: whoever has one of
// them would be the new agent.
func (w *world) unclaimed(id string) error {
	if _, ok := w.roster.Agent(id); ok {
		return usage(fmt.Errorf("there is an agent %s already", id), "")
	}
	if _, err := os.Stat(w.store()); errors.Is(err, fs.ErrNotExist) {
		return nil // and it need not be
	}
	st, err := w.kept().store()
	if err != nil {
		return err
	}
	creds, _, err := credentials(st)
	if err != nil {
		return broken(err, "")
	}
	for c := range creds.Of(id) {
		if !c.Expired(time.Now()) {
			return &exit{
				exitRed, fmt.Errorf("%s has tokens from before, which would be those of the new agent", id),
				"capgate agents token revoke --agent " + strings.TrimPrefix(id, "agents/") + " ends them",
			}
		}
	}
	return nil
}

// created is a record that was made.
type created struct {
	Agent  string `json:"agent"`
	File   string `json:"file"`
	Record string `json:"record"` // the text of it
}
