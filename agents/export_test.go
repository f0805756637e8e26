package agents

import (
	"context"
	"io/fs"
	"time"

	"github.com/fsnotify/fsnotify"
)

// WatchOnlySweeping is Watch where no event is ever announced.
func (r *Registry) WatchOnlySweeping(ctx context.Context, every time.Duration) error {
	w := watcher{Registry: r, sweep: every}
	return w.loop(ctx, nil, nil)
}

// Settle is how long what is being written is waited for.
const Settle = settle

// IsCalm is whether a file has rested, for commands.
var IsCalm = isCalm

// Rest sets for how long what has changed must stay as it is from now on.
func (r *Registry) Rest(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rest = d
}

// Heard is a watcher that is told of events and looks when it is told to.
type Heard struct{ w watcher }

// Listen begins to be told.
func (r *Registry) Listen() *Heard {
	return &Heard{watcher{
		Registry: r, gone: map[string]bool{}, whole: map[string]fs.FileInfo{}, rest: time.NewTimer(time.Hour), at: stats(r.dirs),
	}}
}

// Tell says what happened to a file, and whether it is whole by it.
func (h *Heard) Tell(file string, op fsnotify.Op) bool {
	return h.w.replaced(fsnotify.Event{Name: file, Op: op})
}

// Look reads the folders, and Lose says that something was not announced.
func (h *Heard) Look() { h.w.reload() }
func (h *Heard) Lose() { h.w.deaf = true }

// Open begins to watch, which Close ends.
func (h *Heard) Open() error  { return h.w.open() }
func (h *Heard) Close() error { return h.w.notify.Close() }

// Signature sums up folders.
func Signature(dirs ...string) uint64 { return signature(dirs) }
