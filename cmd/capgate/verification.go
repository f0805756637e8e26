package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"capgate/guardrail"
)

func (a *app) eventsVerify() *cobra.Command {
	var anchor, since string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Look for events that were changed, removed or exchanged",
		Long: "verify checks every file of the log: its chain of hashes, its signatures, and what\n" +
			"the files say of each other. It exits 1 when something is wrong, and says what\n" +
			"nobody can know from the folder alone. With an anchor, a checkpoint that was kept\n" +
			"elsewhere, it knows more.",
		Example: "  capgate events verify --anchor /mnt/elsewhere/capgate.checkpoint",
		Args:    cobra.MatchAll(takes(0, 0), noEmptyFlag),
		RunE: func(*cobra.Command, []string) error {
			o, err := a.measure(anchor, since)
			if err != nil {
				return err
			}
			dir, err := a.eventLog()
			if err != nil {
				return err
			}
			r, err := guardrail.Verify(dir, o)
			if err != nil {
				return broken(err, "")
			}
			if !r.OK() {
				a.code = exitRed
			}
			if a.ui.json {
				return a.ui.emit(verifiedView(r))
			}
			a.printVerified(r)
			return nil
		},
	}
	cmd.Flags().StringVar(&anchor, "anchor", "", "a `file` of checkpoints that was kept elsewhere")
	cmd.Flags().StringVar(&since, "since", "", "a `time` before which files were removed on purpose")
	return cmd
}

// measure is what the log is measured by.
func (a *app) measure(anchor, since string) (o guardrail.VerifyOptions, err error) {
	if since != "" {
		if o.Since, err = parseMoment(since, time.Now()); err != nil {
			return o, usage(fmt.Errorf("--since: %w", err), momentHint)
		}
	}
	if anchor != "" {
		if o.Anchors, err = readAnchor(anchor); err != nil {
			return o, usage(fmt.Errorf("--anchor: %w", err), "capgate events checkpoint > FILE writes one; keep it where the gateway's user cannot write")
		}
	}
	return o, nil
}

const maxAnchor = 16 << 20 // bytes of a file of checkpoints

// readAnchor reads checkpoints, one a line, or as --json prints them. A file without any
// would quietly prove nothing.
func readAnchor(file string) ([]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxAnchor+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxAnchor:
		return nil, fmt.Errorf("%s is over %d bytes", file, maxAnchor)
	}
	var lines []string
	if json.Unmarshal(data, &lines) != nil {
		lines = strings.Split(string(data), "\n")
	}
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	lines = slices.DeleteFunc(lines, func(line string) bool { return line == "" })
	if len(lines) == 0 {
		return nil, errors.New(file + " holds no checkpoint")
	}
	return lines, nil
}

// verified is what verify found, for programs.
type verified struct {
	OK      bool           `json:"ok"`
	Files   []verifiedFile `json:"files"`
	Faults  []string       `json:"faults"`
	Unknown []string       `json:"unknown"` // what cannot be known
}

type verifiedFile struct {
	Name   string `json:"name"`
	Lines  int    `json:"lines"`
	Signed int    `json:"signed"` // lines that a signature vouches for
	State  string `json:"state"`  // closed, live, or open: its process ended without closing it
}

func verifiedView(r *guardrail.Report) verified {
	v := verified{OK: r.OK(), Files: []verifiedFile{}, Faults: []string{}, Unknown: append([]string{}, r.Unknown...)}
	for _, f := range r.Files {
		state := "open"
		switch {
		case f.Closed:
			state = "closed"
		case f.Live:
			state = "live"
		}
		v.Files = append(v.Files, verifiedFile{f.Name, f.Lines, f.Signed, state})
	}
	for _, f := range r.Faults {
		v.Faults = append(v.Faults, f.String())
	}
	return v
}

func (a *app) printVerified(r *guardrail.Report) {
	u, v := a.ui, verifiedView(r)
	lines := 0
	for _, f := range v.Files {
		lines += f.Lines
		u.printf("%s  %s\n", cell(f.Name), u.paint(faint, fmt.Sprintf("%d lines, %d signed, %s", f.Lines, f.Signed, f.State)))
	}
	for _, fault := range v.Faults {
		u.printf("%s: %s\n", u.paint(red, "fault"), plain(fault))
	}
	for _, unknown := range v.Unknown {
		u.printf("%s: %s\n", u.paint(yellow, "unknown"), plain(unknown))
	}
	color, word := green, "ok"
	if !v.OK {
		color, word = red, "red"
	}
	u.printf("%s: %d files, %d lines, %d faults\n", u.paint(color, word), len(v.Files), lines, len(v.Faults))
}

func (a *app) eventsCheckpoint() *cobra.Command {
	return &cobra.Command{
		Use:     "checkpoint",
		Short:   "Print the last signed line of each file, to be kept elsewhere",
		Long:    "checkpoint prints what verify --anchor takes. Kept where nobody who can write to the\nlog can reach it, it shows when the log was cut or written anew.",
		Example: "  capgate events checkpoint | ssh elsewhere 'cat > capgate.checkpoint'",
		Args:    takes(0, 0),
		RunE: func(*cobra.Command, []string) error {
			dir, err := a.eventLog()
			if err != nil {
				return err
			}
			lines, err := guardrail.Checkpoints(dir)
			if err != nil {
				return broken(err, "capgate events verify says what is wrong with the log")
			}
			if a.ui.json {
				return a.ui.emit(append([]string{}, lines...))
			}
			for _, line := range lines {
				a.ui.printf("%s\n", line)
			}
			return nil
		},
	}
}
