package agents

import (
	"crypto/sha256"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"capgate/capability"
)

// Registry holds the roster that is in force and replaces it, whole, when the
// folders change.
type Registry struct {
	opts Options
	dirs []string
	log  *slog.Logger

	mu    sync.Mutex                  // one reload at a time
	rest  time.Duration               // what has changed must stay as it is for as long
	told  uint64                      // the signature of the folders when they were reported on last
	said  map[capability.Finding]bool // what the log was told of them
	marks marks                       // since when the files have been as they are
	state atomic.Pointer[state]
}

// state is one roster and the signal that another one has taken its place.
type state struct {
	roster  *Roster
	changed chan struct{}
}

// Open loads the folders.
func Open(opts Options, dirs []string, log *slog.Logger) (*Registry, error) {
	return (&Registry{opts: opts, dirs: dirs, log: log, rest: rest}).load(nil, nil)
}

// Follow opens a registry that goes on from a roster that was loaded, and is in force: what has changed
// since counts as it would if that had been of a registry.
func (r *Roster) Follow(opts Options, dirs []string, log *slog.Logger) (*Registry, error) {
	return (&Registry{opts: opts, dirs: dirs, log: log, rest: rest}).load(r, r.marks)
}

// Again opens a registry in the place of another, whose records are in force: what has changed
// since that one looked counts as it would there.
func (r *Registry) Again(opts Options, dirs []string) (*Registry, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return (&Registry{opts: opts, dirs: dirs, log: r.log, rest: r.rest}).load(r.Current(), r.marks)
}

// load puts in force what the folders say, within what was in force before, if anything was.
func (r *Registry) load(before *Roster, seen marks) (*Registry, error) {
	begun := time.Now()
	now := signature(r.dirs)
	found := walk(r.dirs)
	if len(found.failed) > 0 {
		return nil, found.failed[0].err
	}
	files := read(r.opts, found.files)
	r.marks = rested(files)
	if before != nil {
		r.marks = seen.next(files, before, nil, begun, r.rest)
	}
	roster := assemble(r.opts, found, files, before, r.marks)
	roster.bound(before, r.marks.moved())
	r.state.Store(&state{roster, make(chan struct{})})
	r.report(roster, now)
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
	r.reload(func(files []loaded) marks { return rested(files) })
}

// look is [Registry.Reload] while somebody may be writing: what has changed takes away at once, and
// gives when it has rested, or is whole. It says for how long that is to be waited for.
func (r *Registry) look(whole map[string]fs.FileInfo) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	begun, before := time.Now(), r.Current()
	r.reload(func(files []loaded) marks { return r.marks.next(files, before, whole, begun, r.rest) })
	return r.marks.due(r.rest)
}

func (r *Registry) reload(judge func([]loaded) marks) {
	now := signature(r.dirs)
	before := r.state.Load()
	found := walk(r.dirs)
	for _, f := range found.failed {
		found.findings = append(found.findings, capability.Finding{
			Code: string(capability.InvalidConfig), Severity: capability.Error,
			Pos: capability.Pos{File: f.dir}, Text: f.err.Error() + "; its agents are denied everything",
		})
	}
	files := read(r.opts, found.files)
	r.marks = judge(files)
	roster := assemble(r.opts, found, files, before.roster, r.marks)
	roster.bound(before.roster, r.marks.moved())
	r.report(roster, now)
	r.state.Store(&state{roster, make(chan struct{})})
	close(before.changed)
}

// seen returns what the file of a record has been for a while, nil where it has not.
func (r *Registry) seen(file string) fs.FileInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	if is := r.marks[file]; is.rested {
		return is.stamp.info
	}
	return nil
}

// altered reports whether a record says something else than was read. Who has mapped a file into
// memory writes to it, and nothing else of it changes.
func (r *Registry) altered() bool {
	r.mu.Lock()
	seen := r.marks // which are made anew and not written to
	r.mu.Unlock()
	for file, is := range seen {
		if is.stamp.info == nil {
			continue
		}
		if data, _ := readFile(file); sha256.Sum256(data) != is.stamp.sum { // what cannot be read was read as far
			return true
		}
	}
	return false
}

// report logs how many agents there are, and what is wrong with them: the same is not told twice.
func (r *Registry) report(roster *Roster, now uint64) {
	if now != r.told {
		r.told = now
		r.log.Info("agents loaded", "agents", len(roster.ids))
	}
	before := r.said
	r.said = map[capability.Finding]bool{}
	for _, f := range roster.Findings() {
		if f.Severity < capability.Warning {
			continue
		}
		if r.said[f] = true; !before[f] {
			r.log.Warn("agent record", "finding", f.String(), "code", f.Code)
		}
	}
}
