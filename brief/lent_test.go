//go:build unix

package brief_test

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"capgate/brief"
)

// lender counts what it has lent. Nobody finds in it what was there before.
type lender struct {
	mu   sync.Mutex
	lent int
	most int
}

func (l *lender) Lend() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lent++
	l.most = max(l.most, l.lent)
	return make([]byte, 16)
}

func (l *lender) Return(p []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lent--
	clear(p[:cap(p)])
}

func (l *lender) is() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lent
}

func TestSocketReceives(t *testing.T) {
	networks(t, func(t *testing.T, here, there net.Conn) {
		var m lender
		s := brief.NewSocket(here)
		for _, piece := range []string{"a", "0123456789abcdef", "end"} {
			time.AfterFunc(20*time.Millisecond, func() {
				if n := m.is(); n > 0 {
					t.Error("a connection on which nothing came has memory")
				}
				_, _ = there.Write([]byte(piece))
			})
			p, err := s.Receive(&m)
			if err != nil || string(p) != piece || m.is() != 1 {
				t.Fatalf("%q came in %d lent, and %v", p, m.is(), err)
			}
			m.Return(p)
		}
		_, _ = there.Write([]byte("more than it takes at once"))
		for _, piece := range []string{"more than it tak", "es at once"} {
			p, err := s.Receive(&m)
			if err != nil || string(p) != piece {
				t.Errorf("%q came, and %v", p, err)
			}
			m.Return(p)
		}
		if m.most > 1 {
			t.Errorf("%d were lent at once", m.most)
		}
	})
}

// TestSocketReceivesNothing: with an error no memory is lent.
func TestSocketReceivesNothing(t *testing.T) {
	networks(t, func(t *testing.T, here, there net.Conn) {
		var m lender
		s := brief.NewSocket(here)
		for _, tt := range []struct {
			name    string
			prepare func() error
			is      error
		}{
			{"too late", func() error { return here.SetReadDeadline(time.Now().Add(20 * time.Millisecond)) }, os.ErrDeadlineExceeded},
			{"the end", func() error { return errors.Join(here.SetReadDeadline(time.Time{}), there.Close()) }, io.EOF},
			{"closed", func() error { return here.Close() }, net.ErrClosed},
		} {
			if err := tt.prepare(); err != nil {
				t.Fatal(err)
			}
			if p, err := s.Receive(&m); p != nil || !errors.Is(err, tt.is) || m.is() != 0 {
				t.Errorf("%s: %q came with %d lent, and %v", tt.name, p, m.is(), err)
			}
		}
	})
}

// TestSocketReceivesWithoutFile goes by the connection itself.
func TestSocketReceivesWithoutFile(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	go func() {
		_, _ = there.Write([]byte("whole"))
		_ = there.Close()
	}()
	var m lender
	s := brief.NewSocket(here)
	if p, err := s.Receive(&m); string(p) != "whole" || err != nil {
		t.Errorf("%q came, and %v", p, err)
	}
	if p, err := s.Receive(&m); p != nil || !errors.Is(err, io.EOF) || m.is() != 1 {
		t.Errorf("at the end %q came with %d lent, and %v", p, m.is(), err)
	}
}
