package upstream_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"capgate/upstream"
)

// BenchmarkPipe calls a server that answers as fast as it can. The time of the
// CPU is that of the gateway, without the server.
func BenchmarkPipe(b *testing.B) {
	for _, size := range []int{100, 64 << 10, 1 << 20} {
		for _, callers := range []int{1, 32} {
			b.Run(fmt.Sprintf("%dB/c=%d", size, callers), func(b *testing.B) {
				conn := started(b, program(b, "echo"), upstream.Options{Client: upstream.Client{Protocol: "2025-11-25"}})
				r := upstream.Request{Method: "tools/call", Params: fmt.Appendf(nil, `{"text":%q}`, strings.Repeat("x", size))}
				call := func() {
					answer, err := conn.Call(b.Context(), r, nil)
					if err != nil || len(answer.Result) != len(r.Params) {
						b.Errorf("%d bytes, %v", len(answer.Result), err)
					}
				}
				call()
				b.SetBytes(int64(size))
				b.ReportAllocs()
				before := cpuTime(b)
				if callers == 1 {
					for b.Loop() {
						call()
					}
				} else {
					spread(b, callers, call)
				}
				b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

// spread has the calls of a benchmark made by several callers.
func spread(b *testing.B, callers int, call func()) {
	work := make(chan struct{}, callers)
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for range work {
				call()
			}
		})
	}
	for b.Loop() {
		work <- struct{}{}
	}
	close(work)
	group.Wait()
}

func cpuTime(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// TestManyCalls: each of many calls at once gets its own answer, whatever becomes
// of the others.
func TestManyCalls(t *testing.T) {
	conn := started(t, program(t, "echo"), upstream.Options{Client: upstream.Client{Protocol: "2025-11-25"}})
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for j := range 60 {
				ctx, cancel := context.WithCancel(t.Context())
				if random.IntN(4) == 0 {
					time.AfterFunc(time.Duration(random.IntN(300))*time.Microsecond, cancel)
				}
				size := random.IntN(200)
				if random.IntN(8) == 0 {
					size = random.IntN(300 << 10)
				}
				params := fmt.Appendf(nil, `{"who":"%d/%d","text":%q}`, i, j, strings.Repeat("x", size))
				answer, err := conn.Call(ctx, upstream.Request{Method: "tools/call", Params: params}, nil)
				if err == nil && string(answer.Result) != string(params) {
					t.Errorf("call %d/%d of %d bytes got %.50q of %d bytes", i, j, len(params), answer.Result, len(answer.Result))
				}
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	group.Wait()
}
