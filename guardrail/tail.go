package guardrail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"
	"time"
)

// pollEvery is how often Tail looks for new lines.
const pollEvery = 200 * time.Millisecond

// Tail returns the entries that are written from now on, by any process, until
// the context ends. Entries that are found at the same time come in the order
// of their times.
func Tail(ctx context.Context, dir string, f Filter) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		t := &tail{dir: dir, sieve: f.sieve(), places: map[string]*place{}}
		if err := t.start(); err != nil {
			yield(Entry{}, fmt.Errorf("follow event log: %w", err))
			return
		}
		ticker := time.NewTicker(pollEvery)
		defer ticker.Stop()
		for n := 0; ; {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			entries, err := t.poll()
			if err != nil && !yield(Entry{}, err) {
				return
			}
			for _, e := range entries {
				if n++; !yield(e, nil) || n == f.Limit {
					return
				}
			}
		}
	}
}

// tail remembers how far each file was read.
type tail struct {
	dir    string
	sieve  *sieve
	places map[string]*place
}

type place struct {
	size int64
	line int
	bad  bool // its trouble was reported
}

// start takes everything that is there as read, but for a line that is being
// written.
func (t *tail) start() error {
	entries, err := list(t.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		size, err := wholeLines(t.dir, e.Name())
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		t.places[e.Name()] = &place{size: size}
	}
	return nil
}

// wholeLines is the size of a file up to its last line feed.
func wholeLines(dir, name string) (int64, error) {
	last, size, err := ending(dir, name, maxLine)
	if err != nil {
		return 0, err
	}
	return size - int64(len(last)) + int64(bytes.LastIndexByte(last, '\n')) + 1, nil
}

// poll reads what was written since the last time.
func (t *tail) poll() ([]Entry, error) {
	files, err := list(t.dir)
	if err != nil {
		return nil, fmt.Errorf("follow event log: %w", err)
	}
	var found []Entry
	var errs []error
	for _, e := range files {
		p := t.places[e.Name()]
		if p == nil {
			p = &place{}
			t.places[e.Name()] = p
		}
		info, err := e.Info()
		if err != nil || p.bad || info.Size() <= p.size {
			continue // removed, or nothing new
		}
		entries, err := t.read(e.Name(), p)
		if found = append(found, entries...); err != nil {
			errs = append(errs, err)
		}
	}
	slices.SortStableFunc(found, func(a, b Entry) int { return a.Time.Compare(b.Time) })
	return found, errors.Join(errs...)
}

func (t *tail) read(name string, p *place) (found []Entry, err error) {
	l, err := readLines(t.dir, name)
	if err != nil {
		return nil, nil // removed since it was listed
	}
	defer l.close()
	if _, err := l.f.Seek(p.size, io.SeekStart); err != nil {
		return nil, placed(name, 0, err)
	}
	l.size, l.n = p.size, p.line
	var errs []error
	for {
		line, err := l.next()
		p.size, p.line = l.size, l.n
		var torn *tornError
		switch {
		case errors.Is(err, io.EOF) || errors.As(err, &torn):
			return found, errors.Join(errs...) // the rest is being written
		case err != nil:
			p.bad = true
			return found, errors.Join(append(errs, placed(name, l.n+1, err))...)
		}
		e, err := t.sieve.entry(name, l.n, line)
		switch {
		case err != nil && len(errs) < maxErrors:
			errs = append(errs, err)
		case e != nil:
			found = append(found, *e)
		}
	}
}
