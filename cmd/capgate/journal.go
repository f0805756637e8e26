package main

import (
	"io"
	"log/slog"
	"sync/atomic"

	"capgate/guardrail"
)

// journal is where a gateway records.
type journal interface {
	guardrail.Recorder
	io.Closer
}

// telling is a journal that says in the log when nothing is recorded any more, and when it is
// again: with on_error: continue, whoever records is told of no error.
type telling struct {
	*guardrail.Log
	log  *slog.Logger
	lost atomic.Bool
}

// Record records an event.
func (t *telling) Record(e *guardrail.Event) (string, error) {
	ref, err := t.Log.Record(e)
	switch lost := ref == "" && err == nil; {
	case lost && !t.lost.Swap(true):
		t.log.Error("what is done is not recorded", "error", t.Err())
	case ref != "" && t.lost.Load() && t.lost.Swap(false):
		t.log.Warn("what is done is recorded again")
	}
	return ref, err
}

// unrecorded is the journal of a gateway that no agent calls: nothing happens there.
type unrecorded struct{}

func (unrecorded) Record(*guardrail.Event) (string, error) { return "", nil }
func (unrecorded) Close() error                            { return nil }
