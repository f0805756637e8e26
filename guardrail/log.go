package guardrail

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

// KeyFile is the name, in the folder of a log, of the key that signs it unless
// Options say another.
const KeyFile = "log.key"

// Sync says when lines are brought from the page cache, where a crash of the
// gateway leaves them, to the disk, where one of the machine does.
type Sync int

// When lines are brought to the disk.
const (
	SyncInterval Sync = iota // a moment after they are written
	SyncAlways               // before Record returns
	SyncNone                 // when the system likes
)

// Options say where and how a log is written.
type Options struct {
	Dir     string // any number of processes share it; made if it is not there
	KeyFile string // the key of the install; "": KeyFile in Dir; made if it is not there

	// Continue lets Record answer without an error and without a reference when
	// the event could not be recorded. The zero value denies.
	Continue bool

	HashTargets     bool          // objects are keyed hashes, the same one for the same object
	Rotate          int64         // bytes after which a new file carries the chain on; 0: 64 MiB
	CheckpointLines int           // lines after which they are signed; 0: 256
	CheckpointEvery time.Duration // after which lines are signed at the latest; 0: 5 s
	Sync            Sync

	// Scrub takes secrets out of a text of an event about an upstream, if it is about one, of
	// what the package comment names; nil: nothing does.
	Scrub func(upstream, text string) string

	Clock func() time.Time // nil: time.Now
	Rand  io.Reader        // nil: crypto/rand
}

const (
	defaultRotate = 64 << 20
	defaultLines  = 256
	defaultEvery  = 5 * time.Second
)

const (
	outcomeDelay = 100 * time.Millisecond // how long an outcome may wait for company
	syncDelay    = 200 * time.Millisecond // how long a line may wait for the disk
	lookDelay    = time.Millisecond       // between two looks whether a file has been removed, with what was written to it
	retryDelay   = time.Second            // between two files after writing ended in an error
	maxPending   = 64 << 10               // bytes of outcomes that may wait
	maxSpare     = 1 << 20                // a buffer beyond it is not kept
	longCompany  = 64                     // writes for which others are awaited once somebody has waited
)

var (
	errClosed  = errors.New("the event log is closed")
	errRemoved = errors.New("somebody has removed the file while it was written to")
)

// Log records events in a file of its own. It may be used by many goroutines.
type Log struct {
	o      Options
	key    *installKey
	drafts sync.Pool

	mu   sync.Mutex
	turn *sync.Cond // a write has ended

	file     *segment // nil: writing does not work, or the log is closed
	prior    string   // the last file there was
	rotateAt int64

	stamp          stamp
	pending, spare []byte // lines to be written; the buffer of those before
	tail           link   // the last line there is
	safe           link   // the last line that was written
	appended       uint64 // events that have a line
	written        uint64 // of these, the ones that were written or are lost
	unsigned       int    // lines since the last signed one

	looked  time.Time // whether the file has a name still
	writing bool      // somebody writes, without holding mu
	waiting int       // how many wait for that
	company int       // for how many writes more others are awaited, since somebody did
	closed  bool

	err     error     // why writing does not work
	lost    uint64    // events since then that were not recorded
	retryAt time.Time // when to try again

	late, disk, sign alarm
}

// alarm calls its function once, some time after it was set.
type alarm struct {
	timer *time.Timer
	after time.Duration
	isSet bool
}

func (a *alarm) set() {
	if !a.isSet {
		a.isSet = true
		a.timer.Reset(a.after)
	}
}

// Open starts a new file in the folder of a log. A file that is already there
// is never written to.
func Open(o Options) (*Log, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	if err := ownFolder(o.Dir); err != nil {
		return nil, fmt.Errorf("open event log: %w", err)
	}
	key, err := loadKey(o.KeyFile, o.Rand)
	if err != nil {
		return nil, fmt.Errorf("open event log: %w", err)
	}
	l := &Log{o: o, key: key, safe: link{hash: zero()}}
	var targets []byte
	if o.HashTargets {
		targets = key.targets
	}
	l.drafts.New = func() any { return newDraft(o.Scrub, targets) }
	l.turn = sync.NewCond(&l.mu)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.alarm(&l.late, outcomeDelay, l.writeLate)
	l.alarm(&l.disk, syncDelay, l.syncLate)
	l.alarm(&l.sign, o.CheckpointEvery, l.signLate)
	if err := l.begin(nil); err != nil {
		return nil, fmt.Errorf("open event log: %w", err)
	}
	return l, nil
}

func (o Options) complete() (Options, error) {
	switch {
	case o.Dir == "":
		return o, errors.New("open event log: no folder is named")
	case o.Rotate < 0 || o.CheckpointLines < 0 || o.CheckpointEvery < 0:
		return o, errors.New("open event log: a limit is negative")
	case o.Sync < SyncInterval || o.Sync > SyncNone:
		return o, fmt.Errorf("open event log: there is no Sync %d", o.Sync)
	}
	if o.KeyFile == "" {
		o.KeyFile = filepath.Join(o.Dir, KeyFile)
	}
	if o.Rotate == 0 {
		o.Rotate = defaultRotate
	}
	if o.CheckpointLines == 0 {
		o.CheckpointLines = defaultLines
	}
	if o.CheckpointEvery == 0 {
		o.CheckpointEvery = defaultEvery
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	return o, nil
}

// ownFolder makes a folder. One that is there must not be writable by others,
// who could remove what is recorded.
func ownFolder(dir string) error {
	if err := os.MkdirAll(dir, folderMode); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if shared(info, 0o022) {
		return fmt.Errorf("others may write to %s: its mode is %v", dir, info.Mode().Perm())
	}
	return nil
}

// Record gives an event its line. The line of anything but an outcome has left
// the process when Record returns; that of an outcome leaves with the next one,
// or a moment later.
func (l *Log) Record(e *Event) (ref string, err error) {
	d, _ := l.drafts.Get().(*draft)
	defer l.drafts.Put(d)
	d.buf = d.buf[:0]
	if err := d.appendEvent(e); err != nil {
		return "", err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	ref, err = l.record(d.buf, e.Kind == Outcome)
	switch {
	case err == nil:
		return ref, nil
	case l.o.Continue && !l.closed:
		return "", nil
	}
	return "", fmt.Errorf("record event: %w", err)
}

// record appends a line and sees it written. One of those who wait for it
// writes for all of them.
func (l *Log) record(body []byte, mayWait bool) (ref string, err error) {
	if l.closed {
		return "", errClosed
	}
	if l.err != nil {
		if err := l.reopen(); err != nil {
			l.lost++
			return "", err
		}
	}
	ref = l.append(body)
	mark := l.appended
	if mayWait && len(l.pending) < maxPending {
		l.late.set()
		return ref, nil
	}
	for l.written < mark && l.err == nil {
		if l.writing {
			l.wait()
		} else {
			l.flush()
		}
	}
	// Nobody opens a new file while others still have to learn what became of
	// theirs, so an error here is the one that this line met.
	if l.written < mark {
		return "", l.err
	}
	return ref, nil
}

// wait lets others go on until a write has ended.
func (l *Log) wait() {
	l.waiting++
	l.turn.Wait()
	l.waiting--
}

// append gives a body its place in the chain, and its name.
func (l *Log) append(body []byte) (ref string) {
	start := len(l.pending)
	l.pending = l.tail.begin(l.pending, l.now())
	l.pending = append(l.pending, body...)
	l.pending, l.tail = l.tail.seal(l.pending, start, nil)
	ref = string(l.tail.hash[:refLen])
	l.appended++
	if l.unsigned++; l.unsigned >= l.o.CheckpointLines {
		l.checkpoint(lineCheckpoint, "")
	} else {
		l.sign.set()
	}
	return ref
}

// checkpoint appends a line that signs all lines before it.
func (l *Log) checkpoint(kind, next string) {
	d := newDraft(nil, nil)
	d.appendSeal(kind, &seal{File: l.file.name, Key: l.key.public(), Next: next})
	l.pending, l.tail = l.signed(l.pending, l.tail, d.buf)
	l.unsigned = 0
}

// now is the time as a line shows it.
func (l *Log) now() []byte { return l.stamp.of(l.o.Clock()) }

// signed appends a signed line.
func (l *Log) signed(buf []byte, after link, body []byte) ([]byte, link) {
	start := len(buf)
	buf = after.begin(buf, l.now())
	return after.seal(append(buf, body...), start, l.key.sign)
}

// flush writes what is pending. It lets go of the lock meanwhile, so that the
// next lines gather, and before it, where somebody waited for one of the last writes,
// those that are about to be appended. Who is alone would only wake another thread.
func (l *Log) flush() {
	l.writing = true
	if l.company > 0 {
		l.company--
		l.mu.Unlock()
		runtime.Gosched()
		l.mu.Lock()
	}
	lines, tail, mark, file := l.pending, l.tail, l.appended, l.file
	now := time.Now()
	looks := now.Sub(l.looked) >= lookDelay
	if looks {
		l.looked = now
	}
	l.pending, l.spare = l.spare[:0], nil
	l.mu.Unlock()
	err := file.write(lines)
	if err == nil && looks && removed(file.f.File) {
		err = errRemoved
	}
	if err == nil && l.o.Sync == SyncAlways {
		err = file.sync()
	}
	l.mu.Lock()
	l.writing = false
	if cap(lines) <= maxSpare {
		l.spare = lines
	}
	if l.waiting > 0 {
		l.company = longCompany
		l.turn.Broadcast()
	}
	if err != nil {
		l.fail(err)
		return
	}
	l.safe, l.written = tail, mark
	if l.o.Sync == SyncInterval {
		l.disk.set()
	}
	if file.size >= l.rotateAt {
		l.rotate()
	}
}

// Err returns why events cannot be recorded, nil when they can.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Close writes what is pending and ends the file with a signed line.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.writing {
		l.wait()
	}
	if l.closed {
		return nil
	}
	if l.err != nil {
		l.retryAt = time.Time{}
		_ = l.reopen() // a last chance to say what was lost
	}
	l.closed = true
	for _, a := range []*alarm{&l.late, &l.disk, &l.sign} {
		a.timer.Stop()
	}
	if l.err == nil {
		l.end()
	}
	if l.err != nil {
		return fmt.Errorf("close event log: %w", l.err)
	}
	return nil
}
