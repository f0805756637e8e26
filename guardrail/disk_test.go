package guardrail_test

import (
	"io"
	"os"
	"testing"
	"time"

	"capgate/guardrail"
)

// undying is a file that takes what is written and cannot be brought to a disk.
func undying(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	t.Cleanup(func() { r.Close() })
	if w.Sync() == nil {
		lacking(t, "no-undying-file: this system brings a pipe to the disk")
	}
	return w
}

// TestDisk: when lines are brought to the disk, seen by what becomes of a file that
// cannot be.
func TestDisk(t *testing.T) {
	t.Run("always", func(t *testing.T) {
		l, _ := start(t, guardrail.Options{Sync: guardrail.SyncAlways})
		guardrail.Break(l, undying(t))
		e := decision(1)
		if ref, err := l.Record(&e); err == nil {
			t.Errorf("%s is recorded, and not on the disk", ref)
		}
	})
	t.Run("a moment later", func(t *testing.T) {
		l, _ := start(t, guardrail.Options{})
		time.Sleep(400 * time.Millisecond) // the first line is on the disk by now
		guardrail.Break(l, undying(t))
		record(t, l, decision(1))
		for end := time.Now().Add(10 * time.Second); l.Err() == nil; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the line was never brought to the disk")
			}
		}
	})
	t.Run("none", func(t *testing.T) {
		l, _ := start(t, guardrail.Options{Sync: guardrail.SyncNone})
		guardrail.Break(l, undying(t))
		record(t, l, decision(1))
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("at the end", func(t *testing.T) {
		l, _ := start(t, guardrail.Options{})
		guardrail.Break(l, undying(t))
		record(t, l, decision(1))
		if err := l.Close(); err == nil {
			t.Error("the file is closed, and not on the disk")
		}
	})
	t.Run("what is left behind by a rotation", func(t *testing.T) {
		l, _ := start(t, guardrail.Options{Rotate: 1})
		guardrail.Break(l, undying(t))
		record(t, l, decision(1))
		if l.Err() == nil {
			t.Error("the file before is left, and not on the disk")
		}
	})
}
