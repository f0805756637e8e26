package guardrail

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// begin starts a file that carries the chain on. A cause says why the one
// before it broke off, and becomes the first event of the new one.
func (l *Log) begin(cause error) error {
	now := l.o.Clock()
	name, err := fileName(now, l.o.Rand)
	if err != nil {
		return err
	}
	seen, err := sightings(l.o.Dir)
	if err != nil {
		return err
	}
	d := newDraft(nil, nil)
	d.appendSeal(lineBegin, &seal{File: name, Key: l.key.public(), Prior: l.prior, Broken: cause != nil, Seen: seen})
	lines, tail := l.signed(nil, l.safe, d.buf)
	unsigned := 0
	if cause != nil {
		lines, tail = l.lossNotice(lines, tail, cause)
		unsigned = 1
	}
	file, err := createSegment(l.o.Dir, name, lines)
	if err == nil && l.o.Sync == SyncAlways {
		err = file.sync()
	}
	if err != nil {
		return err
	}
	l.file, l.prior, l.rotateAt = file, name, l.o.Rotate
	l.tail, l.safe, l.unsigned = tail, tail, unsigned
	if l.o.Sync == SyncInterval {
		l.disk.set()
	}
	return nil
}

// lossNotice appends the event that says what was not recorded.
func (l *Log) lossNotice(lines []byte, after link, cause error) ([]byte, link) {
	d := newDraft(l.o.Scrub, nil)
	text := fmt.Sprintf("%d events were not recorded: %v", l.lost, cause)
	if err := d.appendEvent(&Event{Kind: Notice, Code: "not_available", Text: text}); err != nil {
		return lines, after // the kind is one of ours
	}
	start := len(lines)
	lines = after.begin(lines, l.now())
	return after.seal(append(lines, d.buf...), start, nil)
}

// rotate carries the chain on in a new file. Without one, the old file goes on
// for a while: a large file loses nothing.
func (l *Log) rotate() {
	if len(l.pending) > 0 { // these lines follow those of the old file
		err := l.file.write(l.pending)
		if err == nil && l.o.Sync == SyncAlways {
			err = l.file.sync()
		}
		if err != nil {
			l.fail(err)
			return
		}
		l.pending, l.safe, l.written = l.pending[:0], l.tail, l.appended
	}
	old, last := l.file, l.tail
	if err := l.begin(nil); err != nil {
		l.rotateAt = old.size + l.o.Rotate
		return
	}
	defer old.f.Close()
	// The old file's last line says where the chain goes on. All that stands
	// before it is vouched for by the first line of the new file, so nothing is
	// lost when it cannot be written.
	d := newDraft(nil, nil)
	d.appendSeal(lineEnd, &seal{File: old.name, Key: l.key.public(), Next: l.file.name})
	line, _ := l.signed(nil, last, d.buf)
	_ = old.write(line)
	if l.o.Sync == SyncNone {
		return
	}
	if err := old.sync(); err != nil {
		l.fail(notOnDisk(err))
	}
}

func notOnDisk(err error) error {
	return fmt.Errorf("what was written may not be on the disk: %w", err)
}

// end writes the last line of the last file.
func (l *Log) end() {
	l.checkpoint(lineEnd, "")
	err := l.file.write(l.pending)
	if err == nil && l.o.Sync != SyncNone {
		err = l.file.sync()
	}
	if err != nil {
		l.fail(err)
		return
	}
	l.safe, l.written, l.pending = l.tail, l.appended, nil
	err = l.file.f.Close()
	l.file = nil
	if err != nil {
		l.err = err
	}
}

// fail gives up a file. What was not written is lost, and whoever waits for it
// learns so; the chain goes on from the last line that was written.
func (l *Log) fail(err error) {
	l.err = err
	l.lost += l.appended - l.written
	l.pending = l.pending[:0]
	l.file.f.Close()
	l.file = nil
}

// reopen starts a new file after an error, at most once in a while.
func (l *Log) reopen() error {
	now := l.o.Clock()
	if l.waiting > 0 || now.Before(l.retryAt) {
		return l.err
	}
	l.retryAt = now.Add(retryDelay)
	if err := ownFolder(l.o.Dir); err != nil { // somebody may have removed it
		return err
	}
	if err := l.key.restore(l.o.KeyFile); err != nil {
		return err
	}
	if err := l.begin(l.err); err != nil {
		return err
	}
	l.err, l.lost = nil, 0
	l.written = l.appended // what is lost is no longer waited for
	l.sign.set()
	return nil
}

// alarm makes an alarm that finds the log locked, and nobody writing.
func (l *Log) alarm(a *alarm, after time.Duration, ring func()) {
	a.after = after
	a.timer = time.AfterFunc(after, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		a.isSet = false
		for l.writing {
			l.wait()
		}
		if !l.closed && l.err == nil {
			ring()
		}
	})
	a.timer.Stop()
}

// writeLate writes the outcomes that found no company.
func (l *Log) writeLate() {
	if len(l.pending) > 0 {
		l.flush()
	}
}

// signLate signs what was not signed in a while.
func (l *Log) signLate() {
	if l.unsigned > 0 {
		l.checkpoint(lineCheckpoint, "")
		l.flush()
	}
}

// syncLate brings what was written to the disk, while others write on.
func (l *Log) syncLate() {
	file := l.file
	l.mu.Unlock()
	err := file.sync()
	l.mu.Lock()
	if err == nil || errors.Is(err, os.ErrClosed) || l.file != file {
		return
	}
	for l.writing {
		l.wait()
	}
	if l.file == file {
		l.fail(notOnDisk(err))
	}
}
