package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// A small heap is let grow further before it is collected, which costs little memory and
// saves time. A large one is not: it would take that many times more of it.
const (
	smallHeap    = 64 << 20 // bytes that are live
	percentSmall = 400
	percentLarge = 100
)

// tune has memory collected by how much of it is live, unless whoever runs the gateway
// says how it is to be collected.
func tune() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(percentSmall)
	watchHeap(percentSmall)
}

// watchHeap looks at the heap each time that it was collected, which is when a finalizer
// of what nothing holds runs.
func watchHeap(now int) {
	runtime.SetFinalizer(new(turn), func(*turn) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		next := percentSmall
		if v := live[0].Value; v.Kind() == metrics.KindUint64 && v.Uint64() > smallHeap {
			next = percentLarge
		}
		if next != now {
			debug.SetGCPercent(next)
		}
		watchHeap(next)
	})
}

// turn is held by nothing. It has a pointer, so that it has memory of its own.
type turn struct{ _ *turn }
