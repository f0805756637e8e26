package agents

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"capgate/capability"
)

// Registry holds the roster that is in force and replaces it, whole, when the
// folders change.
type Registry struct {
	opts Options
	dirs []string
	log  *slog.Logger

	mu    sync.Mutex // one reload at a time
	told  uint64     // the signature of the folders when they were reported on last
	state atomic.Pointer[state]
}

// state is one roster and the signal that another one has taken its place.
type state struct {
	roster  *Roster
	changed chan struct{}
}

// Open loads the folders.
func Open(opts Options, dirs []string, log *slog.Logger) (*Registry, error) {
	before := signature(dirs)
	roster, err := Load(opts, dirs...)
	if err != nil {
		return nil, err
	}
	r := &Registry{opts: opts, dirs: dirs, log: log, told: before}
	r.state.Store(&state{roster, make(chan struct{})})
	r.report(roster)
	return r, nil
}

// Current returns the roster in force.
func (r *Registry) Current() *Roster { return r.state.Load().roster }

// Changed returns a channel that is closed when the roster in force is replaced.
// Take it before [Registry.Current], so that no change falls between.
func (r *Registry) Changed() <-chan struct{} { return r.state.Load().changed }

// Reload reads the folders again and puts what they say in force at once. A
// broken file denies its agent until it is mended; so does a folder that cannot
// be read, for all of its agents. What was deleted is revoked.
func (r *Registry) Reload() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := signature(r.dirs)
	before := r.state.Load()
	found := walk(r.dirs)
	for _, f := range found.failed {
		found.findings = append(found.findings, capability.Finding{
			Code: string(capability.InvalidConfig), Severity: capability.Error,
			Pos: capability.Pos{File: f.dir}, Text: f.err.Error() + "; its agents are denied everything",
		})
	}
	roster := assemble(r.opts, found, before.roster)
	if now != r.told { // the same is not told twice
		r.told = now
		r.report(roster)
	}
	r.state.Store(&state{roster, make(chan struct{})})
	close(before.changed)
}

// report logs how many agents there are, and what is wrong with them.
func (r *Registry) report(roster *Roster) {
	r.log.Info("agents loaded", "agents", len(roster.ids))
	for _, f := range roster.Findings() {
		if f.Severity >= capability.Warning {
			r.log.Warn("agent record", "finding", f.String(), "code", f.Code)
		}
	}
}
