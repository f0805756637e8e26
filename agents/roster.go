package agents

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"capgate/capability"
)

// ErrUnknown is returned for an agent that no record stands for.
var ErrUnknown = errors.New("no such agent")

// Roster is every agent that the folders hold, at one moment. It is immutable.
type Roster struct {
	agents   map[string]*Agent
	ids      []string // sorted
	findings []capability.Finding
	claims   map[string][]string // file: the ids that it stands for
	opts     Options
	resting  bool  // a file has changed a moment ago
	marks    marks // of the files that it was loaded from
}

// Agent finds an agent by its id; "scout" and "agents/scout" are the same one.
// An agent whose record is broken is found, with its Err.
func (r *Roster) Agent(id string) (*Agent, bool) {
	if a, ok := r.agents[id]; ok {
		return a, true
	}
	a, ok := r.agents[capability.AgentID(id)]
	return a, ok
}

// All visits the agents by id, broken ones included.
func (r *Roster) All() iter.Seq[*Agent] {
	return func(yield func(*Agent) bool) {
		for _, id := range r.ids {
			if !yield(r.agents[id]) {
				return
			}
		}
	}
}

// Resting reports whether a file has changed a moment ago, so that agents are kept within what they had.
func (r *Roster) Resting() bool { return r.resting }

// Findings returns what load has to say, agent by agent, each thing once.
func (r *Roster) Findings() []capability.Finding {
	all := slices.Clone(r.findings)
	for a := range r.All() {
		if invalid := (*Invalid)(nil); errors.As(a.Err, &invalid) {
			all = append(all, invalid.Finding())
		}
		all = append(all, a.Findings...)
	}
	said := make(map[capability.Finding]bool, len(all))
	return slices.DeleteFunc(all, func(f capability.Finding) bool {
		before := said[f]
		said[f] = true
		return before
	})
}

// Lineage returns what must agree before an agent's call is allowed. An agent
// without a record is [ErrUnknown], one with a broken record an [*Invalid].
func (r *Roster) Lineage(id string) (Lineage, error) {
	a, ok := r.Agent(id)
	switch {
	case !ok:
		return Lineage{}, fmt.Errorf("%w: %q", ErrUnknown, id)
	case a.Err != nil:
		return Lineage{}, a.Err
	}
	return a.lineage, nil
}

// Compile reads grants as if they stood in an agent's record.
func (r *Roster) Compile(a *Agent, specs ...capability.Spec) (*capability.Set, []capability.Finding) {
	return capability.Compile(specs, r.Options(a))
}

// Options says how the grants of an agent's record are read.
func (r *Roster) Options(a *Agent) capability.Options {
	o := capability.Options{Config: r.opts.Config, Agent: a.Root, View: r.opts.View, Unconfined: true}
	if a.Record != nil {
		o.Dialect = a.Record.Dialect
	}
	return o
}

// Root is the directory that the grants of an agent's record hang from, zero if
// there is none.
func (r *Roster) Root(a *Agent) capability.Root {
	if a.Root.IsZero() {
		return r.opts.Config
	}
	return a.Root
}

// Base is the directory that relative paths in an agent's skills hang from: its root, or
// where its record names none, the one directory that all its grants name in in:, as they
// do once sandbox: is written out. It gives no authority. It was found at load, as what the
// grants hang from was: it is asked for once for each skill.
func (r *Roster) Base(a *Agent) capability.Root {
	if a.base.IsZero() {
		return r.Root(a)
	}
	return a.base
}

// base finds what Base returns.
func (r *Roster) base(a *Agent) capability.Root {
	root := r.Root(a)
	if !a.Root.IsZero() {
		return root
	}
	var shared capability.Root
	for _, s := range a.own {
		entry, _ := capability.Lookup(capability.Verb(s.Verb))
		if _, rooted := entry.Key("in"); !rooted || len(s.Scope) == 0 {
			continue
		}
		in, ok := s.Get("in")
		if !ok || len(in.Values) != 1 {
			return root
		}
		dir, err := capability.ParseRoot(in.Values[0], root.Dir, r.opts.View)
		if err != nil || !dir.Within(root) || !shared.IsZero() && dir != shared {
			return root
		}
		shared = dir
	}
	if shared.IsZero() {
		return root
	}
	return shared
}

// Chain returns the sets that a requirement of an agent must be in: its own, and
// what each of its ancestors may pass on.
func (r *Roster) Chain(id string) (capability.Chain, error) {
	l, err := r.Lineage(id)
	return l.Chain, err
}

// Load reads every record below the folders.
func Load(opts Options, dirs ...string) (*Roster, error) {
	found := walk(dirs)
	if len(found.failed) > 0 {
		return nil, found.failed[0].err
	}
	files := read(opts, found.files)
	r := assemble(opts, found, files, nil, nil)
	r.bound(nil, nil)
	r.marks = rested(files)
	return r, nil
}

// loaded is what one file came to.
type loaded struct {
	file  string
	agent *Agent   // nil if it holds none, or is broken
	ids   []string // the agents it stands for
	err   error
	stamp stamp
	blank bool                // there is nothing in it
	doubt *capability.Finding // it may have been meant to hold one
}

// read reads files.
func read(opts Options, found []string) []loaded {
	files := make([]loaded, len(found))
	parallel(len(files), func(i int) { files[i] = load(found[i], opts) })
	return files
}

// assemble makes a roster of the files that were found. A file that is broken
// stands also for the agents it held in the roster before.
func assemble(opts Options, found folders, files []loaded, before *Roster, seen marks) *Roster {
	r := &Roster{agents: map[string]*Agent{}, claims: map[string][]string{}, findings: found.findings, opts: opts}
	var lost []loaded
	for _, f := range found.failed {
		lost = append(lost, f.lost(before)...)
	}
	for _, f := range slices.Concat(files, lost) {
		if before != nil && len(before.claims[f.file]) > 0 {
			f.keep(seen)
		}
		r.enter(f, before)
	}
	r.ids = slices.Sorted(maps.Keys(r.agents))
	r.relate(opts)
	return r
}

// load reads one file.
func load(file string, opts Options) loaded {
	info, gone := os.Lstat(file) // before it is read, so that what is written meanwhile shows later
	data, err := readFile(file)
	f := loaded{file: file, stamp: stamp{info, sha256.Sum256(data)}, blank: len(bytes.TrimSpace(data)) == 0}
	switch {
	case gone != nil || errors.Is(err, fs.ErrNotExist): // it was deleted since the folder was read
		return loaded{file: file}
	case err != nil:
		f.ids, f.err = claimed(file, data), f.invalid(fmt.Sprintf("the file cannot be read: %v", err), "")
		return f
	}
	rec, findings, err := Parse(file, data)
	switch {
	case errors.Is(err, ErrNoAgent):
		f.doubt = doubt(file, data)
		return f
	case err != nil:
		f.ids, f.err = claimed(file, data), err
		return f
	}
	f.agent = compile(rec, findings, opts)
	f.ids, f.err = []string{f.agent.ID}, f.agent.Err
	return f
}

// invalid is an error of the file as a whole.
func (f *loaded) invalid(text, hint string) *Invalid {
	return &Invalid{Pos: capability.Pos{File: f.file, Line: 1, Col: 1}, Text: text, Hint: hint}
}

// keep has a file that held an agent stand for it, as a broken one does, while there is nothing in
// it or it may be on its way to another text: who saves it in place empties it first.
func (f *loaded) keep(seen marks) {
	switch {
	case f.err != nil || f.agent != nil || f.stamp.info == nil:
	case f.blank:
		f.err = f.invalid("the file is empty", "delete it to take the agent away")
	case seen.resting(f.file):
		f.err = f.invalid("the file holds no agent any more", "")
	}
}

// enter adds what one file came to. An id that two files claim belongs to
// neither.
func (r *Roster) enter(f loaded, before *Roster) {
	if f.err != nil && before != nil {
		for _, id := range before.claims[f.file] {
			if !slices.Contains(f.ids, id) {
				f.ids = append(f.ids, id)
			}
		}
	}
	switch {
	case len(f.ids) > 0:
		r.claims[f.file] = f.ids
	case f.err == nil && f.doubt != nil:
		r.findings = append(r.findings, *f.doubt)
	default:
		r.note(f.err)
	}
	for _, id := range f.ids {
		a := f.agent
		if f.err != nil {
			a = broken(id, f.file, f.err)
		}
		if first, ok := r.agents[id]; ok {
			r.note(first.Err)
			r.note(f.err)
			a = broken(id, first.File, &Invalid{
				Pos:  capability.Pos{File: f.file, Line: 1, Col: 1},
				Text: fmt.Sprintf("%s is claimed by %s too", id, first.File),
				Hint: "give each record its own id:",
			})
		}
		r.agents[id] = a
	}
}

// note keeps an error that no agent will carry.
func (r *Roster) note(err error) {
	if invalid := (*Invalid)(nil); errors.As(err, &invalid) {
		r.findings = append(r.findings, invalid.Finding())
	}
}

// relate works out what the agents mean for each other.
func (r *Roster) relate(opts Options) {
	f := family{agents: r.agents, opts: opts}
	lines := make(map[string][]*Agent, len(r.ids))
	wrong := map[string]error{}
	for a := range r.All() {
		if line, err := f.ancestors(a); err != nil {
			wrong[a.ID] = err
		} else {
			lines[a.ID] = line
		}
	}
	for id, err := range wrong {
		r.agents[id] = broken(id, r.agents[id].File, err)
	}
	for id, line := range lines {
		for i, up := range line {
			if up != nil {
				line[i] = r.agents[up.ID]
			}
		}
		if r.agents[id].Err == nil {
			f.inherit(r.agents[id], line)
		}
	}
	parallel(len(r.ids), func(i int) {
		a := r.agents[r.ids[i]]
		if a.Err != nil {
			return
		}
		f.lineage(a, lines[a.ID])
		a.base = r.base(a)
		if a.Record.Parent != "" {
			f.compare(a)
		}
	})
}

// parallel runs a function for each of n numbers, on all processors.
func parallel(n int, each func(i int)) {
	var wg sync.WaitGroup
	workers := min(n, runtime.GOMAXPROCS(0))
	for w := range workers {
		wg.Go(func() {
			for i := w; i < n; i += workers {
				each(i)
			}
		})
	}
	wg.Wait()
}

// within reports whether a file lies in a folder.
func within(file, dir string) bool {
	rel, err := filepath.Rel(dir, file)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
