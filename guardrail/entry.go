package guardrail

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Entry is an event as it stands in a log.
type Entry struct {
	Event
	Ref  string // what Record returned
	Time time.Time
	Seq  uint64
	File string
	Line string // as it is written, without the line feed
}

// Filter says which entries are wanted. What is empty does not matter.
type Filter struct {
	Kind, Agent, Session, Tool, Decision, Code, Call string

	Ref   string    // or the beginning of one
	Since time.Time // the oldest
	Limit int       // how many: Read keeps the newest, Tail ends after the first
}

// sieve is a filter that looks at the text of a line before it is decoded. A
// member, with its quotes, stands in no string: there its quotes are escaped.
type sieve struct {
	needles [][]byte
	since   string
	ref     string
	want    Filter
}

func (f Filter) sieve() *sieve {
	s := &sieve{want: f, ref: strings.ToLower(f.Ref)}
	if !f.Since.IsZero() {
		s.since = f.Since.UTC().Format(timeForm)
	}
	for _, m := range []struct{ key, value string }{
		{"agent", f.Agent},
		{"session", f.Session},
		{"tool", f.Tool},
		{"decision", f.Decision},
		{"code", f.Code},
		{"call", f.Call},
	} {
		if m.value != "" {
			d := draft{}
			d.name(m.key, m.value)
			s.needles = append(s.needles, d.buf)
		}
	}
	return s
}

// entry decodes a line that is wanted; nil if it is not.
func (s *sieve) entry(file string, number int, line []byte) (*Entry, error) {
	f, err := unseal(line)
	if err != nil {
		return nil, placed(file, number, err)
	}
	if !s.passes(&f, line) {
		return nil, nil
	}
	e := &Entry{Ref: string(f.hash[:refLen]), Seq: f.seq, File: file, Line: string(line)}
	if e.Time, err = time.Parse(time.RFC3339Nano, f.time); err != nil {
		return nil, placed(file, number, errForm)
	}
	if err := json.Unmarshal(line, &e.Event); err != nil {
		return nil, placed(file, number, fmt.Errorf("the line cannot be read: %w", err))
	}
	return e, nil
}

func (s *sieve) passes(f *frame, line []byte) bool {
	switch {
	case f.kind == lineBegin || f.kind == lineCheckpoint || f.kind == lineEnd:
		return false
	case s.want.Kind != "" && f.kind != s.want.Kind:
		return false
	case f.time < s.since:
		return false
	case !strings.HasPrefix(string(f.hash[:]), s.ref):
		return false
	}
	for _, needle := range s.needles {
		if !bytes.Contains(line, needle) {
			return false
		}
	}
	return true
}

func placed(file string, line int, err error) error {
	return fmt.Errorf("%s:%d: %w", file, line, err)
}
