package main

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// TestTune: a heap that is large is collected more often, and less again once it is small.
func TestTune(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	becomes := func(want int) {
		t.Helper()
		got := 0
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); runtime.Gosched() {
			runtime.GC()
			if got = debug.SetGCPercent(want); got == want { // it says what it was
				return
			}
			debug.SetGCPercent(got)
		}
		t.Errorf("the heap may grow by %d %%, not %d", got, want)
	}
	tune()
	becomes(mostPercent)
	large := make([]byte, 2*growth)
	becomes(leastPercent)
	runtime.KeepAlive(large)
	becomes(mostPercent)
}

func TestPercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 400, 1 << 20: 400, 64 << 20: 400, 80 << 20: 300, 128 << 20: 200, 256 << 20: 100, 1 << 40: 100, 1<<64 - 1: 100} {
		if got := percent(live); got != want {
			t.Errorf("%d MiB may grow by %d %%, not %d", live>>20, got, want)
		}
	}
}
