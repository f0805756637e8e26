package config

import (
	"bytes"
	"context"
	"crypto/sha256"
	"log/slog"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"

	"capgate/capability"
)

const (
	settle   = 50 * time.Millisecond  // how long the folder must be quiet before the file is read
	patience = 500 * time.Millisecond // how long it may be busy before the file is read anyway
	sweep    = 5 * time.Second        // how often the file is looked at without any event
)

// Live holds the configuration in force. A file that changes for the worse does
// not take its place: the last good one stays, and the log says why.
type Live struct {
	file   string
	view   capability.View
	accept func(*Config) error
	log    *slog.Logger

	mu    sync.Mutex // one reload at a time
	data  []byte     // the file as it was last read, good or not
	state atomic.Pointer[inForce]
}

// inForce is one configuration and the signal that another one took its place.
type inForce struct {
	config  *Config
	err     error // why the file as it stands is not this one, nil if it is
	changed chan struct{}
}

// Open loads the configuration. Accept has the last word on it, such as policy
// tests that are red; nil accepts all.
func Open(file string, v capability.View, accept func(*Config) error, log *slog.Logger) (*Live, error) {
	if accept == nil {
		accept = func(*Config) error { return nil }
	}
	l := &Live{file: absolute(file, v), view: v, accept: accept, log: log}
	data, err := read(l.file)
	if err != nil {
		return nil, &Error{Pos: capability.Pos{File: file}, Text: err.Error()}
	}
	c, err := l.load(data)
	if err != nil {
		return nil, err
	}
	return l.begin(c, data), nil
}

// Follow is [Open] for a configuration that was loaded a moment ago, with these findings,
// and that accept would accept. The file is loaded only if it says something else by now.
func Follow(c *Config, findings []capability.Finding, v capability.View, accept func(*Config) error, log *slog.Logger) (*Live, error) {
	data, err := read(c.File)
	if err != nil || sha256.Sum256(data) != c.Hash {
		return Open(c.File, v, accept, log)
	}
	l := &Live{file: c.File, view: v, accept: accept, log: log}
	l.report(findings)
	return l.begin(c, data), nil
}

// begin puts the first configuration in force.
func (l *Live) begin(c *Config, data []byte) *Live {
	l.data = data
	l.state.Store(&inForce{config: c, changed: make(chan struct{})})
	return l
}

func (l *Live) load(data []byte) (*Config, error) {
	c, findings, err := Parse(l.file, data, l.view)
	if err != nil {
		return nil, err
	}
	if err := l.accept(c); err != nil {
		return nil, err
	}
	l.report(findings)
	return c, nil
}

func (l *Live) report(findings []capability.Finding) {
	for _, f := range findings {
		l.log.Warn("configuration", "finding", f.String(), "code", f.Code)
	}
}

// Current returns the configuration in force.
func (l *Live) Current() *Config { return l.state.Load().config }

// Err says why the file as it stands is not in force, nil if it is.
func (l *Live) Err() error { return l.state.Load().err }

// Changed returns a channel that is closed at the next reload. Take it before
// [Live.Current], so that no change falls between.
func (l *Live) Changed() <-chan struct{} { return l.state.Load().changed }

// Reload reads the file again if it changed. What cannot be loaded leaves the
// last good configuration in force, and is returned and logged.
func (l *Live) Reload() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.state.Load()
	data, err := read(l.file)
	if err == nil && bytes.Equal(data, l.data) {
		return before.err
	}
	if err != nil && before.err != nil && l.data == nil {
		return before.err // still not to be read
	}
	next := &inForce{config: before.config, changed: make(chan struct{})}
	if l.data = data; err != nil {
		l.data, next.err = nil, &Error{Pos: capability.Pos{File: l.file}, Text: err.Error()}
	} else if c, err := l.load(data); err != nil {
		next.err = err
	} else {
		next.config = c
	}
	if next.err != nil {
		l.log.Error("configuration refused; the last good one stays in force", "error", hinted(next.err))
	} else {
		l.log.Info("configuration loaded", "file", l.file)
	}
	l.state.Store(next)
	close(before.changed)
	return next.err
}

// Watch reloads whenever the file changes, until the context ends, whose error it
// returns. Where the folder cannot be watched the file is looked at every few
// seconds, which also catches what some file systems never announce.
func (l *Live) Watch(ctx context.Context) error {
	var events <-chan fsnotify.Event
	w, err := fsnotify.NewWatcher()
	if err == nil {
		defer w.Close()
		err = w.Add(path.Dir(l.file))
		events = w.Events
	}
	if err != nil {
		l.log.Warn("the configuration cannot be watched and is looked at every few seconds", "error", err)
		events = nil
	}
	ticker := time.NewTicker(sweep)
	defer ticker.Stop()
	quiet := time.NewTimer(0) // what changed between the load and the watch
	var since time.Time       // when the first change came that has not been read
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-events:
			if since.IsZero() {
				since = time.Now()
			}
			quiet.Reset(min(settle, max(0, patience-time.Since(since))))
		case <-ticker.C:
			since = time.Time{}
			_ = l.Reload() // it is logged, and Err says it
		case <-quiet.C:
			since = time.Time{}
			_ = l.Reload()
		}
	}
}
