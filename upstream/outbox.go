package upstream

import (
	"errors"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"capgate/brief"
)

// The limits of what waits to be written.
const (
	maxQueued  = 1024     // lines
	maxWaiting = 64 << 20 // bytes, unless it is one line, or a short one: who sends long ones may be another

	// maxBatch is up to which length lines are written together.
	maxBatch = 64 << 10

	// writeTime is how long a server may read nothing of what it is sent.
	writeTime = 60 * time.Second
)

var (
	errFull   = errors.New("too much waits to be read by it")
	errUnread = errors.New("it does not read what it is sent")
	errEnded  = errors.New("the connection has ended")
)

// line is one message on its way out.
type line struct {
	data  []byte // with the line break
	state lineState

	// may is asked last, when the line is about to be written, with the outbox locked; nil: nobody
	// is. With its error the line is not written, and refused is told why.
	may     func() error
	refused func(error)
}

type lineState uint8

const (
	queued lineState = iota
	begun            // some of it may have been written
	written
	dropped // it might not go any more, and none of it was written
)

// outbox writes lines to a server that may not read them. Who has a line writes
// it, together with what others add meanwhile; only when the server does not
// keep up, a goroutine waits for it. So a call costs one write and no switch of
// goroutines, and still nobody waits for the server but with a context.
type outbox struct {
	file   *brief.Pipe
	raw    syscall.RawConn
	broken func(error) // told once, when writing fails

	patience time.Duration // how long nothing may be read

	// The callbacks of raw, made once.
	tryOnce, tryUntil func(fd uintptr) bool
	full              bool // what tryOnce found; belongs to who is busy

	mu      sync.Mutex
	queue   []*line
	offset  int // how much of the first line is written
	waiting int // bytes in the queue
	busy    bool
	err     error  // why nothing is written any more
	batch   []byte // lines side by side
}

func newOutbox(file *os.File, broken func(error)) (*outbox, error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, err
	}
	o := &outbox{file: brief.NewPipe(file), raw: raw, broken: broken, patience: writeTime}
	o.tryOnce = func(fd uintptr) bool {
		_, o.full = o.flush(fd)
		return true
	}
	o.tryUntil = func(fd uintptr) bool {
		moved, full := o.flush(fd)
		return moved || !full
	}
	return o, nil
}

// push takes a line, which is the outbox's until it is written or taken back.
func (o *outbox) push(l *line) error {
	o.mu.Lock()
	switch {
	case o.err != nil:
		o.mu.Unlock()
		return errEnded
	case len(o.queue) >= maxQueued, len(o.queue) > 0 && len(l.data) > maxBatch && o.waiting+len(l.data) > maxWaiting:
		o.mu.Unlock()
		return errFull
	}
	l.state = queued
	o.queue = append(o.queue, l)
	o.waiting += len(l.data)
	mine := !o.busy
	o.busy = true
	o.mu.Unlock()
	if mine {
		o.write()
	}
	return nil
}

// write empties the queue as far as the server reads at once.
func (o *outbox) write() {
	for {
		o.full = false
		if err := o.raw.Write(o.tryOnce); err != nil {
			o.end(err)
		}
		if o.full {
			go o.wait()
			return
		}
		if o.idle() {
			return
		}
	}
}

// wait empties the queue at the server's pace. Each time that it reads something
// it has its time again.
func (o *outbox) wait() {
	for {
		err := o.file.SetWriteDeadline(time.Now().Add(o.patience))
		if err == nil {
			err = o.raw.Write(o.tryUntil)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = errUnread
		}
		if err != nil {
			o.end(err)
		}
		_ = o.file.SetWriteDeadline(time.Time{}) // of a file that may be closed
		if o.idle() {
			return
		}
	}
}

// idle leaves off writing, unless there is more to write.
func (o *outbox) idle() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.busy = len(o.queue) > 0 && o.err == nil
	return !o.busy
}

// flush writes until the queue is empty, or full is what is between the server
// and us. It says whether anything was written.
func (o *outbox) flush(fd uintptr) (moved, full bool) {
	for {
		data := o.next()
		if data == nil {
			return moved, false
		}
		n, err := o.file.Once(fd, data)
		n = max(n, 0)
		moved = moved || n > 0
		o.wrote(n)
		switch {
		case errors.Is(err, syscall.EAGAIN):
			return moved, true
		case err != nil && !errors.Is(err, syscall.EINTR):
			o.end(err)
		}
	}
}

// next returns what is to be written now, nil for nothing.
func (o *outbox) next() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.err == nil && len(o.queue) > 0 && !o.goes(0) {
	}
	if len(o.queue) == 0 || o.err != nil {
		return nil
	}
	data := o.queue[0].data[o.offset:]
	o.queue[0].state = begun
	if len(o.queue) == 1 || len(data)+len(o.queue[1].data) > maxBatch {
		return data
	}
	o.batch = append(o.batch[:0], data...)
	for i := 1; i < len(o.queue) && len(o.batch)+len(o.queue[i].data) <= maxBatch; {
		if o.goes(i) {
			o.batch = append(o.batch, o.queue[i].data...)
			o.queue[i].state = begun
			i++
		}
	}
	return o.batch
}

// goes asks whether a line may go, unless some of it has, and drops it if not. It may have waited
// for long. The lock is held.
func (o *outbox) goes(i int) bool {
	l := o.queue[i]
	if l.may == nil || i == 0 && o.offset > 0 {
		return true
	}
	err := l.may()
	if err == nil {
		return true
	}
	o.remove(i)
	l.state = dropped
	l.refused(err)
	return false
}

// remove takes a line out of the queue. The lock is held.
func (o *outbox) remove(i int) {
	o.waiting -= len(o.queue[i].data)
	o.queue = slices.Delete(o.queue, i, i+1)
}

// wrote counts n bytes as written. Lines that were to go along and did not are
// as if they had not been touched.
func (o *outbox) wrote(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	done := 0
	for done < len(o.queue) && n >= len(o.queue[done].data)-o.offset {
		l := o.queue[done]
		n -= len(l.data) - o.offset
		o.waiting -= len(l.data)
		o.offset = 0
		l.state = written
		done++
	}
	o.offset += n
	o.queue = slices.Delete(o.queue, 0, done)
	for i, l := range o.queue {
		if l.state == queued {
			break
		}
		if i > 0 || o.offset == 0 {
			l.state = queued
		}
	}
}

// leave takes a line out of the queue, unless it has begun, and says how far it has come. Who has
// left is asked nothing any more: what turns out not to have begun after all is not written.
func (o *outbox) leave(l *line) lineState {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch l.state {
	case queued:
		if i := slices.Index(o.queue, l); i >= 0 {
			o.remove(i)
		}
	case begun:
		if l.may != nil {
			l.may = left
		}
	}
	return l.state
}

func left() error { return errEnded }

// end lets nothing more be written. The first error is told.
func (o *outbox) end(err error) {
	o.mu.Lock()
	first := o.err == nil
	if first {
		o.err = err
	}
	o.mu.Unlock()
	if first && !errors.Is(err, errEnded) {
		o.broken(err)
	}
}
