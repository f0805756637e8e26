package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	lineDelay = 10 * time.Millisecond // that a line may wait for company
	lineRoom  = 128                   // lines that may wait
)

// lines writes what is logged a moment later, many lines at once. Who logs when there is no
// room waits until there is, and none is left out.
type lines struct {
	to io.Writer

	writing sync.Mutex // held by who writes, so that lines stay in order
	text    bytes.Buffer

	mu    sync.Mutex
	held  []line
	spare []line // the room of those that were written last
	timer *time.Timer
	isSet bool
}

// line is what is logged, and who words it.
type line struct {
	by     slog.Handler
	record slog.Record
}

func newLines(to io.Writer) *lines {
	l := &lines{to: to}
	l.timer = time.AfterFunc(time.Hour, func() { _ = l.flush() }) // as of any log, nobody hears that it cannot be written
	l.timer.Stop()
	return l
}

// add takes a line in, and reports whether there is room for more.
func (l *lines) add(one line) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = append(l.held, one)
	if !l.isSet {
		l.isSet = true
		l.timer.Reset(lineDelay)
	}
	return len(l.held) < lineRoom
}

// flush writes what has been taken in.
func (l *lines) flush() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	held := l.held
	l.held, l.spare, l.isSet = l.spare, nil, false
	l.mu.Unlock()
	if len(held) == 0 {
		return nil
	}
	var err error
	for _, one := range held {
		err = errors.Join(err, one.by.Handle(context.Background(), one.record))
	}
	clear(held)
	l.mu.Lock()
	l.spare = held[:0]
	l.mu.Unlock()
	_, failed := l.text.WriteTo(l.to)
	l.text.Reset()
	return errors.Join(err, failed)
}

// late has the lines of a handler, which words them into their text, written later, but for
// those that somebody must know of, and those whose words may not be the same then.
type late struct {
	slog.Handler
	lines *lines
}

// Handle takes a line in.
func (h late) Handle(_ context.Context, r slog.Record) error {
	waits := r.Level <= slog.LevelInfo
	r.Attrs(func(a slog.Attr) bool {
		waits = waits && a.Value.Kind() != slog.KindAny && a.Value.Kind() != slog.KindLogValuer && a.Value.Kind() != slog.KindGroup
		return waits
	})
	if h.lines.add(line{h.Handler, r}) && waits {
		return nil
	}
	return h.lines.flush()
}

// WithAttrs is the same with attributes.
func (h late) WithAttrs(attrs []slog.Attr) slog.Handler {
	return late{h.Handler.WithAttrs(attrs), h.lines}
}

// WithGroup is the same within a group.
func (h late) WithGroup(name string) slog.Handler {
	return late{h.Handler.WithGroup(name), h.lines}
}
