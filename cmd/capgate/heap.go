package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// A heap is let grow by several times of what is live before it is collected, as that
// saves time, but not by more memory than growth: a large one only by as much as is live.
const (
	mostPercent  = 400
	leastPercent = 100
	growth       = 256 << 20 // bytes
)

// tune has memory collected by how much of it is live, unless whoever runs the gateway
// says how it is to be collected.
func tune() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(mostPercent)
	watchHeap(mostPercent)
}

// watchHeap looks at the heap each time that it was collected, which is when a finalizer
// of what nothing holds runs.
func watchHeap(now int) {
	runtime.SetFinalizer(new(turn), func(*turn) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		next := mostPercent
		if v := live[0].Value; v.Kind() == metrics.KindUint64 {
			next = percent(v.Uint64())
		}
		if next != now {
			debug.SetGCPercent(next)
		}
		watchHeap(next)
	})
}

// percent is how much a heap may grow, in steps, so that it is seldom another.
func percent(live uint64) int {
	const step = 25
	p := int(growth * 100 / max(live, 1))
	return max(leastPercent, min(mostPercent, p/step*step))
}

// turn is held by nothing. It has a pointer, so that it has memory of its own.
type turn struct{ _ *turn }
