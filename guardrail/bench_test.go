package guardrail_test

import (
	"os"
	"testing"

	"capgate/guardrail"
)

func TestAllocations(t *testing.T) {
	l, _ := start(t, guardrail.Options{Sync: guardrail.SyncNone, CheckpointLines: 1 << 30})
	d, o := decision(1), outcome(1)
	for name, e := range map[string]*guardrail.Event{"decision": &d, "outcome": &o} {
		n := testing.AllocsPerRun(200, func() {
			if _, err := l.Record(e); err != nil {
				t.Fatal(err)
			}
		})
		if n > 2 { // the reference, and the name that a system call has for what is open
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// BenchmarkRecord is one goroutine: a decision is one write.
func BenchmarkRecord(b *testing.B) {
	for name, sync := range map[string]guardrail.Sync{"interval": guardrail.SyncInterval, "none": guardrail.SyncNone} {
		b.Run(name, func(b *testing.B) {
			l, _ := start(b, guardrail.Options{Sync: sync})
			e := decision(1)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := l.Record(&e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCall is a decision and its outcome.
func BenchmarkCall(b *testing.B) {
	l, _ := start(b, guardrail.Options{})
	d, o := decision(1), outcome(1)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Record(&d); err != nil {
			b.Fatal(err)
		}
		if _, err := l.Record(&o); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRecordHashed has its targets hashed.
func BenchmarkRecordHashed(b *testing.B) {
	l, _ := start(b, guardrail.Options{HashTargets: true})
	e := decision(1)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Record(&e); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRecordParallel is 32 goroutines that write together.
func BenchmarkRecordParallel(b *testing.B) {
	for name, sync := range map[string]guardrail.Sync{"interval": guardrail.SyncInterval, "always": guardrail.SyncAlways} {
		b.Run(name, func(b *testing.B) {
			l, _ := start(b, guardrail.Options{Sync: sync})
			b.SetParallelism(16) // of two cores
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				e := decision(1)
				for pb.Next() {
					if _, err := l.Record(&e); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// BenchmarkOpen is what a gateway pays at its start, beside some earlier files.
func BenchmarkOpen(b *testing.B) {
	_, dir := start(b, guardrail.Options{Sync: guardrail.SyncNone})
	for range 15 {
		closed(b, dir, 1, guardrail.Options{Sync: guardrail.SyncNone})
	}
	before := files(b, dir)
	for b.Loop() {
		l, err := guardrail.Open(guardrail.Options{Dir: dir, Sync: guardrail.SyncNone})
		if err != nil {
			b.Fatal(err)
		}
		shut(b, l)
		for _, name := range files(b, dir)[len(before):] {
			os.Remove(name)
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	l, dir := start(b, guardrail.Options{Sync: guardrail.SyncNone})
	for n := range 10_000 {
		record(b, l, decision(n))
	}
	for b.Loop() {
		sound(b, dir)
	}
}

func BenchmarkReadOne(b *testing.B) {
	l, dir := start(b, guardrail.Options{Sync: guardrail.SyncNone})
	for n := range 10_000 {
		record(b, l, decision(n))
	}
	for b.Loop() {
		if n := len(events(b, dir, guardrail.Filter{Call: "c-5000"})); n != 1 {
			b.Fatal(n)
		}
	}
}
