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
	becomes(percentSmall)
	large := make([]byte, 2*smallHeap)
	becomes(percentLarge)
	runtime.KeepAlive(large)
	becomes(percentSmall)
}
