package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	lineDelay = 10 * time.Millisecond // that a line may wait for company
	lineRoom  = 32 << 10              // bytes of lines that may wait
)

// lines writes what is logged a moment later, many lines at once. Who logs when there is no
// room waits until there is, and none is left out.
type lines struct {
	to io.Writer

	writing sync.Mutex // held by who writes, so that lines stay in order
	spare   []byte     // the room of what was written last

	mu    sync.Mutex
	held  []byte
	timer *time.Timer
	isSet bool
}

func newLines(to io.Writer) *lines {
	l := &lines{to: to}
	l.timer = time.AfterFunc(time.Hour, func() { _ = l.flush() }) // as of any log, nobody hears that it cannot be written
	l.timer.Stop()
	return l
}

// Write takes a line in.
func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	l.held = append(l.held, line...)
	full := len(l.held) >= lineRoom
	if !l.isSet {
		l.isSet = true
		l.timer.Reset(lineDelay)
	}
	l.mu.Unlock()
	if full {
		return len(line), l.flush()
	}
	return len(line), nil
}

// flush writes what has been taken in.
func (l *lines) flush() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	held := l.held
	l.held, l.isSet = l.spare[:0], false
	l.mu.Unlock()
	if len(held) == 0 {
		return nil
	}
	_, err := l.to.Write(held)
	l.spare = held
	return err
}

// prompt has lines written at once that somebody must know of, and those before them.
type prompt struct {
	slog.Handler
	lines *lines
}

// Handle writes a line.
func (p prompt) Handle(ctx context.Context, r slog.Record) error {
	err := p.Handler.Handle(ctx, r)
	if r.Level > slog.LevelInfo {
		err = errors.Join(err, p.lines.flush())
	}
	return err
}

// WithAttrs is the same with attributes.
func (p prompt) WithAttrs(attrs []slog.Attr) slog.Handler {
	return prompt{p.Handler.WithAttrs(attrs), p.lines}
}

// WithGroup is the same within a group.
func (p prompt) WithGroup(name string) slog.Handler {
	return prompt{p.Handler.WithGroup(name), p.lines}
}
