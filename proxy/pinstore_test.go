package proxy_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"capgate/capability"
	"capgate/proxy"
	"capgate/store"

	"github.com/google/go-cmp/cmp"
)

// TestBrokenStore: pins that cannot be read or kept are not taken for none.
func TestBrokenStore(t *testing.T) {
	broken := errors.New("broken")
	known, news := toolNamed("known", "1"), toolNamed("new", "1")
	start := func(t *testing.T) (*drawer, *proxy.Board) {
		d := &drawer{}
		judgeList(t, proxy.NewBoard(d, "s"), proxy.Tofu, codeList{""}, known)
		return d, proxy.NewBoard(d, "s")
	}
	check := func(t *testing.T, b *proxy.Board, mode proxy.Pins, want codeList) {
		t.Helper()
		got, err := b.Judge(mode, pinDay, valuesOf(t, known, news)...)
		if diff := cmp.Diff(want, got); diff != "" || err == nil {
			t.Error(err, diff)
		}
	}
	blinded := func(t *testing.T) *proxy.Board { // for a moment, after it had judged
		d, b := start(t)
		judgeList(t, b, proxy.Tofu, codeList{"", ""}, known, news)
		d.read = broken
		check(t, b, proxy.Tofu, codeList{quarantine, quarantine})
		d.read = nil
		return b
	}
	t.Run("cannot be read", func(t *testing.T) {
		d, b := start(t)
		d.read = broken
		check(t, b, proxy.Tofu, codeList{quarantine, quarantine})
		check(t, b, proxy.Require, codeList{quarantine, quarantine})
		check(t, b, proxy.Off, codeList{"", ""})
		d.read = nil
		if !b.Stale(pinDay) {
			t.Error("not stale although the pins can be read again")
		}
		judgeList(t, b, proxy.Tofu, codeList{"", ""}, known, news)
	})
	t.Run("can no longer be read", func(t *testing.T) {
		b := blinded(t)
		if !b.Stale(pinDay) {
			t.Error("not stale although the pins can be read again")
		}
		judgeList(t, b, proxy.Tofu, codeList{"", ""}, known, news)
	})
	t.Run("could not be read for another", func(t *testing.T) {
		b := blinded(t)
		before := b.Loads()
		judgeList(t, b, proxy.Tofu, codeList{"", ""}, known, news)
		if b.Loads() == before {
			t.Error("who was refused without the pins is not looked at again")
		}
	})
	t.Run("cannot be written", func(t *testing.T) {
		d, b := start(t)
		d.write = broken
		check(t, b, proxy.Tofu, codeList{"", quarantine})
		before := b.Loads()
		check(t, b, proxy.Tofu, codeList{"", quarantine})
		if b.Loads() != before {
			t.Error("what was kept before counts as something else")
		}
		d.write = nil
		if b.Stale(pinDay.Add(10 * time.Second)) {
			t.Error("tried again at once: as long as they cannot be kept that is without end")
		}
		if !b.Stale(pinDay.Add(time.Minute)) {
			t.Error("not stale although the pins can be kept again")
		}
		judgeList(t, b, proxy.Tofu, codeList{"", ""}, known, news)
	})
	t.Run("others never stop", func(t *testing.T) {
		d, b := start(t)
		tries := 0
		d.meanwhile = func(d *drawer) { d.version++; tries++ }
		check(t, b, proxy.Tofu, codeList{"", quarantine})
		if tries != proxy.MaxTries {
			t.Errorf("%d tries", tries)
		}
	})
	for name, data := range map[string]string{
		"empty":           ``,
		"garbage":         `garbage`,
		"other version":   `{"version":2,"tools":[]}`,
		"unknown member":  `{"version":1,"tools":[],"x":1}`,
		"no list":         `{"version":1}`,
		"null":            `{"version":1,"tools":null}`,
		"not an object":   `null`,
		"twice":           `{"version":1,"version":1,"tools":[]}`,
		"empty pin":       `{"version":1,"tools":[{"tool":"known"}]}`,
		"no hash":         `{"version":1,"tools":[{"tool":"known","current":{"hash":"","seen":"2026-11-21T09:00:00Z"}}]}`,
		"other text":      `{"version":1,"tools":[{"tool":"known","current":{"hash":"` + strings.Repeat("0", 64) + `","seen":"2026-11-21T09:00:00Z","definition":"{}"}}]}`,
		"capital hash":    `{"version":1,"tools":[{"tool":"known","current":{"hash":"` + strings.Repeat("A", 64) + `","seen":"2026-11-21T09:00:00Z"}}]}`,
		"approved none":   `{"version":1,"tools":[{"tool":"known","approved":"2026-11-21T09:00:00Z","waiting":{"hash":"` + strings.Repeat("0", 64) + `","seen":"2026-11-21T09:00:00Z"}}]}`,
		"tool twice":      `{"version":1,"tools":[` + strings.Repeat(`,{"tool":"known","current":{"hash":"`+strings.Repeat("0", 64)+`","seen":"2026-11-21T09:00:00Z"}}`, 2)[1:] + `]}`,
		"something after": `{"version":1,"tools":[]} {}`,
	} {
		t.Run(name, func(t *testing.T) {
			d := &drawer{data: []byte(data)}
			check(t, proxy.NewBoard(d, "s"), proxy.Tofu, codeList{quarantine, quarantine})
			if string(d.data) != data {
				t.Error("written over")
			}
		})
	}
}

// TestConflict: who loses a race reads what the other has pinned.
func TestConflict(t *testing.T) {
	mine, theirs := toolNamed("read", "mine"), toolNamed("read", "theirs")
	for _, first := range []bool{true, false} {
		other := &drawer{}
		judgeList(t, proxy.NewBoard(other, "s"), proxy.Tofu, codeList{""}, theirs)
		d := &drawer{}
		d.meanwhile = func(d *drawer) {
			d.meanwhile, d.data = nil, other.data
			d.version++
		}
		if first {
			judgeList(t, proxy.NewBoard(d, "s"), proxy.Tofu, codeList{quarantine}, mine)
		} else {
			judgeList(t, proxy.NewBoard(d, "s"), proxy.Tofu, codeList{""}, theirs)
		}
	}
}

// shelf is the pins in a real store.
type shelf struct{ s *store.Store }

func (s shelf) Load(upstream string) ([]byte, string, error) { return s.s.Get("pins", upstream) }
func (s shelf) Changed(upstream, version string) (bool, error) {
	return s.s.Changed("pins", upstream, version)
}

func (s shelf) Save(upstream string, data []byte, version string) (string, error) {
	version, err := s.s.Put("pins", upstream, data, version)
	if errors.Is(err, store.ErrChanged) {
		err = proxy.ErrPinsChanged
	}
	return version, err
}

// TestProcesses: any number of gateways share the pins.
func TestProcesses(t *testing.T) {
	dir := t.TempDir()
	open := func() *proxy.Board {
		s, err := store.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		return proxy.NewBoard(shelf{s}, "s")
	}
	const processes = 8
	var wg sync.WaitGroup
	shown := make([]capability.Code, processes)
	for i := range processes {
		b, def := open(), valueOf(t, toolNamed("contested", fmt.Sprint("variant ", i)))
		wg.Go(func() {
			got, err := b.Judge(proxy.Tofu, pinDay, def)
			if err != nil {
				t.Error(err)
			}
			shown[i] = got[0]
		})
	}
	wg.Wait()
	winners := 0
	for _, code := range shown {
		if code == "" {
			winners++
		}
	}
	if winners != 1 {
		t.Errorf("%d processes show their own variant: %q", winners, shown)
	}
	judgeList(t, open(), proxy.Tofu, codeList{quarantine}, toolNamed("contested", "later"))
}
