package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"capgate/config"
	"capgate/guardrail"
	"capgate/proxy"
)

func (a *app) pins() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pins",
		Short: "See and approve the definitions of tools",
		Long: "The gateway remembers what the definition of a tool was when it first saw it. One\n" +
			"that has changed since, or that somebody should look at, is hidden from agents\n" +
			"until it is approved.",
	}
	cmd.AddCommand(a.pinsList(), a.pinsDiff(), a.pinsApprove())
	return cmd
}

// pinRow is one tool that is pinned.
type pinRow struct {
	Upstream string     `json:"upstream"`
	Tool     string     `json:"tool"`
	Hidden   string     `json:"hidden,omitempty"` // why it is
	Pinned   *pinnedDef `json:"pinned,omitempty"`
	Offered  *pinnedDef `json:"offered,omitempty"` // what waits for approval

	Definition json.RawMessage `json:"definition,omitempty"` // of diff: what an approval would be of
	Difference []string        `json:"difference,omitempty"` // of diff

	pin proxy.Pin
}

type pinnedDef struct {
	Hash     string `json:"hash"`
	Seen     string `json:"seen"`
	Approved string `json:"approved,omitempty"`
}

func defOf(d *proxy.Definition, approved time.Time) *pinnedDef {
	if d == nil {
		return nil
	}
	v := &pinnedDef{Hash: d.Hash, Seen: d.Seen.UTC().Format(time.RFC3339)}
	if !approved.IsZero() {
		v.Approved = approved.UTC().Format(time.RFC3339)
	}
	return v
}

// pinned reads the pins of all servers, or of those and that which are named.
func (k kept) pinned(named []string) ([]pinRow, error) {
	st, err := k.store()
	if err != nil {
		return nil, err
	}
	servers, err := st.Keys(pinBucket)
	if err != nil {
		return nil, broken(err, "")
	}
	rows := []pinRow{}
	for _, upstream := range servers {
		if len(named) > 0 && upstream != named[0] {
			continue
		}
		data, _, err := st.Get(pinBucket, upstream)
		if err != nil {
			return nil, broken(fmt.Errorf("the pins of upstream %q: %w", upstream, err), "")
		}
		list, err := proxy.Pinned(data)
		if err != nil {
			return nil, broken(fmt.Errorf("the pins of upstream %q: %w", upstream, err), "")
		}
		for _, pin := range list {
			if len(named) < 2 || pin.Tool == named[1] {
				rows = append(rows, pinRow{
					Upstream: upstream, Tool: pin.Tool, Hidden: pin.Hidden(k.mode(upstream, pin.Tool)),
					Pinned: defOf(pin.Current, pin.Approved), Offered: defOf(pin.Waiting, time.Time{}), pin: pin,
				})
			}
		}
	}
	if len(rows) == 0 && len(named) > 0 {
		return nil, &exit{exitRed, fmt.Errorf("nothing is pinned of %s", strings.Join(named, " ")), "capgate pins list shows what is; a server is seen when the first agent asks for its tools"}
	}
	return rows, nil
}

// mode is what the configuration says of the pins of a tool.
func (k kept) mode(upstream, tool string) proxy.Pins {
	i := slices.IndexFunc(k.upstreams, func(u config.Upstream) bool { return u.Name == upstream })
	if i < 0 {
		return proxy.Tofu
	}
	u := &k.upstreams[i]
	if of := u.Tools[tool].Pins; of != "" {
		return pins(of)
	}
	return pins(u.Pins)
}

func (a *app) pinsList() *cobra.Command {
	return &cobra.Command{
		Use:     "list [UPSTREAM [TOOL]]",
		Short:   "List the definitions that are pinned, and those that wait for approval",
		Example: "  capgate pins list\n  capgate pins list files",
		Args:    takes(0, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			rows, err := a.pinRows(args)
			if err != nil {
				return err
			}
			if a.ui.json {
				return a.ui.emit(rows)
			}
			for _, r := range rows {
				a.printPin(r)
			}
			if len(rows) == 0 {
				a.ui.note("nothing is pinned yet; a server is seen when the first agent asks for its tools")
			}
			return nil
		},
	}
}

// pinsDiff is the command that shows a definition which waits.
func pinsDiff(upstream, tool string) string {
	return "capgate pins diff " + upstream + " " + word(tool)
}

// pinRows reads what is pinned, of one server or tool where they are named.
func (a *app) pinRows(args []string) ([]pinRow, error) {
	k, err := a.kept()
	if err != nil {
		return nil, err
	}
	return k.pinned(args)
}

func (a *app) printPin(r pinRow) {
	u := a.ui
	state := u.paint(green, "pinned") + "  seen first"
	switch {
	case r.Hidden != "":
		state = u.paint(red, "hidden") + "  " + cell(r.Hidden)
	case r.Pinned.Approved != "":
		state = u.paint(green, "pinned") + "  approved " + r.Pinned.Approved
	}
	d := r.pin.Offered()
	u.printf("%-11s  %-27s  %s  %s\n", cell(r.Upstream), cell(r.Tool), d.Hash[:12], state)
}

func (a *app) pinsDiff() *cobra.Command {
	return &cobra.Command{
		Use:   "diff [UPSTREAM [TOOL]]",
		Short: "Show how what waits for approval differs from what is pinned",
		Long: "diff shows the definitions that agents do not see, against those that they saw, and\n" +
			"the command that approves each. Characters that would not be seen are written out; all\n" +
			"else is as the server wrote it, a secret that it was given included.",
		Example: "  capgate pins diff\n  capgate pins diff files write_file",
		Args:    takes(0, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			rows, err := a.pinRows(args)
			if err != nil {
				return err
			}
			if len(args) < 2 {
				rows = slices.DeleteFunc(rows, func(r pinRow) bool { return r.Hidden == "" })
			}
			if a.ui.json {
				for i := range rows {
					rows[i].compare()
				}
				return a.ui.emit(rows)
			}
			for _, r := range rows {
				a.printDifference(r)
			}
			if len(rows) == 0 {
				a.ui.note("nothing waits for approval")
			}
			return nil
		},
	}
}

// compare fills in what the definitions say.
func (r *pinRow) compare() {
	if text := r.pin.Offered().Text; text != "" {
		r.Definition = json.RawMessage(text)
	}
	for _, line := range r.pin.Difference() {
		r.Difference = append(r.Difference, string(line.Sign)+" "+line.Text)
	}
}

const around = 3 // lines that are shown before and behind each that differs

func (a *app) printDifference(r pinRow) {
	u := a.ui
	u.printf("%s  %s\n", u.paint(bold, cell(r.Upstream)+" "+cell(r.Tool)), u.paint(red, plain(r.Hidden)))
	if r.Pinned != nil {
		u.row("pinned", r.Pinned.Hash, "seen "+r.Pinned.Seen)
	}
	if r.Offered != nil {
		u.row("offered", r.Offered.Hash, "seen "+r.Offered.Seen)
	}
	lines := r.pin.Difference()
	if lines == nil {
		u.note("the definition was too long to be kept; only its hash is known")
	}
	for i, line := range lines {
		if !near(lines, i) {
			continue
		}
		if i > 0 && !near(lines, i-1) {
			u.printf("    %s\n", u.paint(faint, "..."))
		}
		color := map[byte]string{'-': red, '+': green, ' ': faint}[line.Sign]
		u.printf("  %s\n", u.paint(color, string(line.Sign)+" "+line.Text)) // what would not be seen is written out in it
	}
	if r.Hidden != "" {
		u.note("to approve it: %s", a.here(fmt.Sprintf("capgate pins approve %s %s %s", r.Upstream, word(r.Tool), r.pin.Offered().Hash)))
	}
}

// near reports whether a line differs, or is close to one that does.
func near(lines []proxy.Line, i int) bool {
	return slices.ContainsFunc(lines[max(0, i-around):min(len(lines), i+around+1)], func(l proxy.Line) bool { return l.Sign != ' ' })
}

func (a *app) pinsApprove() *cobra.Command {
	return &cobra.Command{
		Use:   "approve UPSTREAM TOOL [HASH]",
		Short: "Show a tool to agents by exactly the definition that has the hash",
		Long: "approve takes the whole hash that diff shows, so that a definition which the server\n" +
			"has put in its place meanwhile is not approved. Without one it shows the difference\n" +
			"and asks. Running gateways follow at once.",
		Example: "  capgate pins approve files write_file 3f1c…",
		Args:    takes(2, 3),
		RunE: func(_ *cobra.Command, args []string) error {
			k, err := a.kept()
			if err != nil {
				return err
			}
			rows, err := k.pinned(args[:2])
			if err != nil {
				return err
			}
			hash := rows[0].pin.Offered().Hash
			if len(args) == 3 {
				hash = args[2]
			} else if err := a.consent(rows[0]); err != nil {
				return err
			}
			if err := k.approve(args[0], args[1], hash); err != nil {
				return err
			}
			if !a.ui.json {
				a.ui.note("the definition %s of %s %s is approved", hash, args[0], args[1])
				return nil
			}
			if rows, err = k.pinned(args[:2]); err != nil {
				return err
			}
			return a.ui.emit(rows[0])
		},
	}
}

// consent asks the person who is there about what is shown.
func (a *app) consent(r pinRow) error {
	if !a.ui.std.terminal || a.ui.json {
		return usage(errors.New("approve takes the hash that was looked at"), pinsDiff(r.Upstream, r.Tool)+" shows it")
	}
	a.printDifference(r)
	return a.agreed("approve it?")
}

// approve records an approval and puts it in force.
func (k kept) approve(upstream, tool, hash string) error {
	return k.edit(entry{
		bucket: pinBucket, key: upstream,
		change: func(data []byte) ([]byte, []guardrail.Event, error) {
			next, err := proxy.Approve(data, tool, hash, time.Now())
			if err != nil {
				return nil, nil, &exit{exitRed, err, pinsDiff(upstream, tool) + " shows what waits"}
			}
			return next, []guardrail.Event{{
				Kind: guardrail.Notice, Upstream: upstream, Tool: tool, Text: "the definition " + hash + " is approved",
			}}, nil
		},
	})
}
