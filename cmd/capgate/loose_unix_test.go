//go:build unix

package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"capgate/doctor"
)

// TestLogLoose: what others may write is logged once, and again where more of it is.
func TestLogLoose(t *testing.T) {
	p := newPlace(t)
	record, config := filepath.Join(p.dir, "agents/scout.md"), filepath.Join(p.dir, "capgate.yml")
	var before *world
	for _, step := range []struct {
		file string
		mode os.FileMode
		want string
	}{
		{record, 0o600, ""},
		{record, 0o666, "scout.md"},
		{record, 0o666, ""},
		{config, 0o602, "capgate.yml"},
		{record, 0o600, ""},
		{record, 0o602, "scout.md"},
	} {
		if err := os.Chmod(step.file, step.mode); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		w := p.world()
		w.logLoose(before, slog.New(slog.NewTextHandler(&log, nil)))
		if got := log.String(); (got == "") != (step.want == "") || !strings.Contains(got, step.want) || strings.Count(got, "\n") > 1 {
			t.Errorf("%s %o: %s", step.file, step.mode, got)
		}
		before = w
	}
}

// TestForeignRecord: a record is its owner's to change, whatever its mode.
func TestForeignRecord(t *testing.T) {
	p := newPlace(t)
	record, owner := filepath.Join(p.dir, "agents/scout.md"), os.Geteuid()
	if owner == 0 { // nobody else gives a file away
		owner = 12345
		if err := os.Chown(record, owner, 0); err != nil {
			t.Fatal(err)
		}
	}
	places := p.world().places()
	i := slices.IndexFunc(places, func(at doctor.Place) bool { return at.File == record })
	if i < 0 || places[i].Owner != owner || places[i].Mode != 0o600 {
		t.Fatal(places)
	}
	found := doctor.Loose(places[i:i+1], owner+1)
	if len(found) != 1 || !strings.Contains(found[0].Text, fmt.Sprintf("the user %d, to whom it belongs,", owner)) {
		t.Error(found)
	}
}

// world is what the configuration says now.
func (p place) world() *world {
	p.t.Helper()
	a := &app{ui: newUI(stdio{out: io.Discard, err: io.Discard})}
	a.settings.Config = filepath.Join(p.dir, "capgate.yml")
	w, err := a.load()
	if err != nil {
		p.t.Fatal(err)
	}
	return w
}
