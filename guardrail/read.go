package guardrail

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
)

// Read returns the entries of all files in a folder, in the order of their
// times. What cannot be read is an error in the place where it stands, and the
// entries go on behind it.
//
// It shows what is written, and proves nothing about it: see Verify.
func Read(dir string, f Filter) iter.Seq2[Entry, error] {
	all := func(yield func(Entry, error) bool) {
		m := &merge{dir: dir, sieve: f.sieve()}
		defer m.close()
		entries, err := list(dir)
		if err != nil {
			yield(Entry{}, fmt.Errorf("read event log: %w", err))
			return
		}
		m.unread = entries
		m.run(yield)
	}
	if f.Limit > 0 {
		return newest(all, f.Limit)
	}
	return all
}

// newest keeps the last entries of a sequence. Errors come first.
func newest(all iter.Seq2[Entry, error], limit int) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		var ring []Entry
		next := 0
		for e, err := range all {
			switch {
			case err != nil:
				if !yield(Entry{}, err) {
					return
				}
			case len(ring) < limit:
				ring = append(ring, e)
			default:
				ring[next] = e
				next = (next + 1) % limit
			}
		}
		for i := range ring {
			if !yield(ring[(next+i)%len(ring)], nil) {
				return
			}
		}
	}
}

// merge reads files side by side. A file is opened when the entries come to the
// time at which it began.
type merge struct {
	dir    string
	sieve  *sieve
	unread []fs.DirEntry
	open   []*source
}

// source is an open file and its next entry.
type source struct {
	*lines
	name string
	head *Entry
}

func (m *merge) run(yield func(Entry, error) bool) {
	for {
		first := m.first()
		if first == nil && len(m.unread) == 0 {
			return
		}
		if first == nil || m.due(first.head) {
			if err := m.start(); err != nil && !yield(Entry{}, err) {
				return
			}
			continue
		}
		e := *first.head
		if !yield(e, nil) {
			return
		}
		if err := m.advance(first); err != nil && !yield(Entry{}, err) {
			return
		}
	}
}

// first is the source with the oldest entry. A source that had an error shows
// it and is then asked again.
func (m *merge) first() (best *source) {
	for _, s := range m.open {
		if best == nil || s.head.Time.Before(best.head.Time) {
			best = s
		}
	}
	return best
}

// due reports whether a file that is not open yet began before an entry.
func (m *merge) due(e *Entry) bool {
	if len(m.unread) == 0 {
		return false
	}
	at, _ := began(m.unread[0].Name())
	return at <= e.Time.UTC().Format(timeForm)
}

func (m *merge) start() error {
	name := m.unread[0].Name()
	m.unread = m.unread[1:]
	l, err := readLines(m.dir, name)
	if err != nil {
		return fmt.Errorf("read event log: %w", err)
	}
	s := &source{lines: l, name: name}
	m.open = append(m.open, s)
	return m.advance(s)
}

// advance reads the next entry that is wanted. It gathers the errors on the way
// and takes the file away at its end.
func (m *merge) advance(s *source) error {
	var errs []error
	for {
		line, err := s.next()
		if err != nil {
			errs = append(errs, s.ending(err))
			m.drop(s)
			return errors.Join(errs...)
		}
		e, err := m.sieve.entry(s.name, s.n, line)
		if err != nil && len(errs) < maxErrors {
			errs = append(errs, err)
		}
		if e != nil {
			s.head = e
			return errors.Join(errs...)
		}
	}
}

// maxErrors is how many unreadable lines in a row are named.
const maxErrors = 20

// ending is what is wrong with the end of a file: nothing if it just ends, or if
// the line there is still being written.
func (s *source) ending(err error) error {
	var torn *tornError
	if errors.Is(err, io.EOF) || errors.As(err, &torn) && held(s.f) {
		return nil
	}
	return placed(s.name, s.n+1, err)
}

func (m *merge) drop(s *source) {
	s.close()
	for i, other := range m.open {
		if other == s {
			m.open = append(m.open[:i], m.open[i+1:]...)
			return
		}
	}
}

func (m *merge) close() {
	for _, s := range m.open {
		s.close()
	}
}
