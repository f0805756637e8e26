package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"capgate/config"
	"capgate/secrets"
)

// page is what lines are written to.
type page struct {
	mu     sync.Mutex
	text   strings.Builder
	writes int
}

func (p *page) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes++
	return p.text.Write(b)
}

func (p *page) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

func logTo(w io.Writer) (*app, *slog.Logger) {
	a := &app{ui: &ui{std: stdio{err: w}}, settings: config.Settings{}}
	return a, a.logger(&world{servers: &servers{keeper: new(secrets.Keeper)}}, slog.LevelInfo)
}

// TestLinesLate: a line waits a moment for others, unless somebody must know of it, and
// none is written before one that came earlier.
func TestLinesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p page
		_, log := logTo(&p)
		log.Info("one")
		log.With("of", "a").WithGroup("group").Info("two", "b", 1)
		if got := p.String(); got != "" {
			t.Errorf("written at once: %s", got)
		}
		time.Sleep(lineDelay)
		synctest.Wait()
		if got := p.String(); p.writes != 1 || strings.Count(got, "\n") != 2 || !strings.Contains(got, "of=a group.b=1") {
			t.Errorf("%d writes: %s", p.writes, got)
		}
		log.Info("three")
		log.With("of", "a").WithGroup("group").Warn("four")
		if got := p.String(); p.writes != 2 || strings.Index(got, "three") > strings.Index(got, "four") {
			t.Errorf("%d writes: %s", p.writes, got)
		}
		list := []string{"early"}
		log.Info("five", "list", list)
		if list[0] = "late"; p.writes != 3 {
			t.Errorf("what may be another later is not written at once: %d writes", p.writes)
		}
		log.Info("six")
		time.Sleep(lineDelay)
		synctest.Wait()
		if got := p.String(); p.writes != 4 || !strings.Contains(got, "six") || !strings.Contains(got, "early") {
			t.Errorf("%d writes: %s", p.writes, got)
		}
	})
}

// shut takes nothing until it is opened.
type shut struct {
	page
	open chan struct{}
}

func (s *shut) Write(b []byte) (int, error) {
	<-s.open
	return s.page.Write(b)
}

// TestLinesFull: when nobody takes what is written, who logs waits, what waits is bounded,
// and nothing is lost or out of order.
func TestLinesFull(t *testing.T) {
	p := &shut{open: make(chan struct{})}
	a, log := logTo(p)
	const lines = 2000
	var logged atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range lines {
			log.Info("line", "n", i, "pad", strings.Repeat("x", 100))
			logged.Add(1)
		}
	}()
	time.Sleep(10 * lineDelay)
	if n := logged.Load(); n == lines || n > 2*lineRoom {
		t.Errorf("%d lines wait", n)
	}
	close(p.open)
	<-done
	if err := a.lines.flush(); err != nil {
		t.Fatal(err)
	}
	all := strings.Split(strings.TrimSuffix(p.String(), "\n"), "\n")
	if len(all) != lines {
		t.Fatalf("%d lines", len(all))
	}
	for i, line := range all {
		if !strings.Contains(line, fmt.Sprintf(" n=%d ", i)) {
			t.Fatalf("line %d is %s", i, line)
		}
	}
}

type broke struct{}

func (broke) Write([]byte) (int, error) { return 0, errors.New("nobody reads it") }

// TestLinesBroken: that nobody can be told stops nothing.
func TestLinesBroken(t *testing.T) {
	a, log := logTo(broke{})
	for range 1000 {
		log.Info("long", "text", strings.Repeat("x", 1000))
		log.Warn("more")
	}
	a.lines.writing.Lock()
	defer a.lines.writing.Unlock()
	a.lines.mu.Lock()
	defer a.lines.mu.Unlock()
	if n := len(a.lines.held) + a.lines.text.Len(); n != 0 {
		t.Errorf("%d are kept", n)
	}
}
