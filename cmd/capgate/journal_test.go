package main

import (
	"bytes"
	"log/slog"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"capgate/config"
	"capgate/guardrail"
)

// TestUnrecordedIsSaid: who has written on_error: continue is told that events are lost, once.
func TestUnrecordedIsSaid(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	k := keptIn(t.TempDir())
	k.guardrail.Continue = true
	events, err := k.recorder(nil)
	must(err)
	var said bytes.Buffer
	j := &telling{Log: events, log: slog.New(slog.NewTextHandler(&said, nil))}
	record := func() string {
		t.Helper()
		ref, err := j.Record(&guardrail.Event{Kind: guardrail.Notice, Text: "a"})
		must(err)
		return ref
	}
	if record() == "" || said.Len() != 0 {
		t.Errorf("at first: %s", &said)
	}
	must(os.RemoveAll(k.guardrail.Log))
	must(os.WriteFile(k.guardrail.Log, nil, 0o600))
	time.Sleep(2 * time.Millisecond) // it has looked a moment ago
	if record()+record()+record() != "" {
		if os.Getenv("CAPGATE_REQUIRE") == "all" || runtime.GOOS == "linux" {
			t.Fatal("a file that was removed is written to")
		}
		t.Skip("no-links: this system does not say whether a file was removed")
	}
	if n := strings.Count(said.String(), "level=ERROR msg=\"what is done is not recorded\""); n != 1 {
		t.Errorf("said %d times: %s", n, &said)
	}
	must(os.Remove(k.guardrail.Log))
	for end := time.Now().Add(10 * time.Second); record() == "" && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
	}
	if n := strings.Count(said.String(), "recorded again"); n != 1 {
		t.Errorf("said %d times that it works: %s", n, &said)
	}
	must(j.Close())
}

// TestLogIsTheConfigured: a log does what guardrail: says of it.
func TestLogIsTheConfigured(t *testing.T) {
	for said, want := range map[config.Guardrail]guardrail.Options{
		{}:                  {},
		{Log: "/srv/log"}:   {Dir: "/srv/log"},
		{Continue: true}:    {Continue: true},
		{HMAC: true}:        {HashTargets: true},
		{Fsync: "none"}:     {Sync: guardrail.SyncNone},
		{Fsync: "interval"}: {Sync: guardrail.SyncInterval},
		{Fsync: "always"}:   {Sync: guardrail.SyncAlways},
	} {
		if got := (kept{guardrail: said}).logged(nil); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v: %+v", said, got)
		}
	}
	if (kept{}).logged(func(_, text string) string { return strings.ToUpper(text) }).Scrub == nil {
		t.Error("nothing takes secrets out")
	}
}
