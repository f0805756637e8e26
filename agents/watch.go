package agents

import (
	"context"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	settle   = 50 * time.Millisecond  // how long the folders must be quiet before they are read
	patience = 500 * time.Millisecond // how long they may be busy before they are read anyway
	sweep    = 5 * time.Second        // how often they are looked at without any event
	glance   = rest / 2               // how often it is looked whether they are the same folders still
)

// Watch reloads the registry whenever a file or folder changes, and once to
// begin with, until the context ends. The folders are also looked at every few
// seconds, which catches what some file systems never announce; where they
// cannot be watched at all, which is logged, that is all there is. It returns
// the context's error.
func (r *Registry) Watch(ctx context.Context) error {
	w := watcher{Registry: r, sweep: sweep}
	return w.run(ctx)
}

// watcher waits for changes.
type watcher struct {
	*Registry
	sweep time.Duration

	notify *fsnotify.Watcher // nil where folders cannot be watched
	at     []fs.FileInfo     // the folders when they were last read, nil where there was none
	seen   uint64            // the signature of the folders when they were last read
	since  time.Time         // when the first change came that has not been read
	read   time.Time         // when the folders were last read

	quiet *time.Timer            // until the folders have settled
	rest  *time.Timer            // until what was read has rested
	gone  map[string]bool        // the records that were taken away, until there is another
	deaf  bool                   // something was not announced since the last look
	whole map[string]fs.FileInfo // those that took the place of others since the last look
}

func (w *watcher) run(ctx context.Context) error {
	if err := w.open(); err != nil {
		w.log.Warn("agent folders cannot be watched and are looked at every few seconds", "error", err)
		return w.loop(ctx, nil, nil)
	}
	defer w.notify.Close()
	return w.loop(ctx, w.notify.Events, w.notify.Errors)
}

// loop looks on events, once the folders are quiet, when what it saw has rested, and on what the
// sweep finds.
func (w *watcher) loop(ctx context.Context, events <-chan fsnotify.Event, errs <-chan error) error {
	w.gone, w.whole = map[string]bool{}, map[string]fs.FileInfo{}
	w.quiet, w.rest = time.NewTimer(w.sweep), time.NewTimer(w.sweep)
	w.quiet.Stop()
	w.reload() // what changed between the load and the first watch
	ticker := time.NewTicker(w.sweep)
	defer ticker.Stop()
	glances := time.NewTicker(glance)
	defer glances.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-events:
			if w.concerns(e) {
				w.heard(e)
			}
		case <-errs: //nolint:errcheck // such as a queue that ran over: anything may have changed
			clear(w.whole)
			w.deaf = true
			w.changed()
		case <-w.quiet.C:
			w.reload()
		case <-w.rest.C:
			w.reload()
		case <-ticker.C:
			if signature(w.dirs) != w.seen || w.altered() {
				w.reload()
			}
		case <-glances.C:
			if w.elsewhere() {
				w.reload()
			}
		}
	}
}

// open begins to watch the folders.
func (w *watcher) open() error {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch the agent folders: %w", err)
	}
	w.notify = notify
	return nil
}

// heard looks at once where a whole record took the place of another, as capgate and many editors
// write them: there is nothing to wait for, unless that happens all the time.
func (w *watcher) heard(e fsnotify.Event) {
	if w.replaced(e) && time.Since(w.read) >= settle {
		w.reload()
		return
	}
	w.changed()
}

// replaced reports whether a record took the place of another one that was there until then, and
// remembers it. One that was taken away first, or that is new, may yet grow.
func (w *watcher) replaced(e fsnotify.Event) bool {
	if kindOf(e.Name) == otherFile || e.Op == fsnotify.Chmod {
		return false
	}
	gone := w.gone[e.Name]
	delete(w.whole, e.Name)
	delete(w.gone, e.Name)
	if !e.Has(fsnotify.Create) {
		if gone || e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
			w.gone[e.Name] = true
		}
		return false
	}
	was := w.Registry.seen(e.Name)
	info, err := os.Lstat(e.Name)
	if gone || w.deaf || was == nil || err != nil || os.SameFile(was, info) || !info.Mode().IsRegular() {
		return false
	}
	w.whole[e.Name] = info
	return true
}

// changed puts the look off until the folders have settled, but not for ever:
// a revocation must not wait for a file that is written all the time.
func (w *watcher) changed() {
	now := time.Now()
	if w.since.IsZero() {
		w.since = now
	}
	w.quiet.Reset(min(settle, max(0, patience-now.Sub(w.since))))
}

// reload reads the folders, watching them first, so that whatever changes from
// then on is an event.
func (w *watcher) reload() {
	w.since = time.Time{}
	if w.elsewhere() {
		w.anew()
	}
	w.watch()
	w.seen = signature(w.dirs)
	if due := w.look(w.whole); due > 0 {
		w.rest.Reset(due)
	} else {
		w.rest.Stop()
	}
	clear(w.whole)
	w.deaf = false
	for file := range w.gone { // what is new may yet grow in any case
		if w.Registry.seen(file) == nil {
			delete(w.gone, file)
		}
	}
	w.read = time.Now()
}

// elsewhere reports whether a path leads to another folder than it did: a link on the way was turned, or
// a folder above was moved, of which nobody who watches the folder is told.
func (w *watcher) elsewhere() bool { return !slices.EqualFunc(w.at, stats(w.dirs), sameFolder) }

func stats(dirs []string) []fs.FileInfo {
	at := make([]fs.FileInfo, len(dirs))
	for i, dir := range dirs {
		at[i], _ = os.Stat(dir) // nil where there is none
	}
	return at
}

func sameFolder(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return os.SameFile(a, b)
}

// anew forgets the folders that paths have led to, which would be watched for ever, and what came there.
func (w *watcher) anew() {
	w.at = stats(w.dirs)
	clear(w.whole)
	if w.notify == nil {
		return
	}
	for _, path := range w.notify.WatchList() {
		_ = w.notify.Remove(path) // it may be gone
	}
}

// watch adds every folder, and the parents of the top ones, which tell when
// those come back after a deletion. Watching what is watched already is free.
func (w *watcher) watch() {
	if w.notify == nil {
		return
	}
	dirs := walk(w.dirs).dirs
	for _, dir := range w.dirs {
		dirs = append(dirs, filepath.Dir(filepath.Clean(dir)))
	}
	for _, dir := range dirs {
		if err := w.notify.Add(dir); err != nil && !os.IsNotExist(err) {
			w.log.Warn("an agent folder cannot be watched and is looked at every few seconds", "folder", dir, "error", err)
		}
	}
}

// concerns reports whether an event can change a record: one within the folders
// or of a folder itself, not of its neighbours.
func (w *watcher) concerns(e fsnotify.Event) bool {
	for _, dir := range w.dirs {
		if within(e.Name, filepath.Clean(dir)) {
			return true
		}
	}
	return false
}

// signature sums up the names, inodes, sizes and times of everything in the folders.
func signature(dirs []string) uint64 {
	sum := fnv.New64a()
	found := walk(dirs)
	for _, f := range found.failed {
		fmt.Fprintln(sum, f.dir, f.err)
	}
	for _, file := range found.files {
		info, err := os.Lstat(file)
		if err != nil {
			fmt.Fprintln(sum, file, err)
			continue
		}
		fmt.Fprintln(sum, file, inode(info), info.Size(), info.ModTime().UnixNano(), changedAt(info).UnixNano(), info.Mode())
	}
	return sum.Sum64()
}
