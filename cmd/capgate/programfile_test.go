package main

import (
	"os"
	"testing"

	"capgate/capability"
	"capgate/capability/hostfs"
	"capgate/config"
)

// TestOwnProgram: the program that runs as the gateway may be read and not changed, also
// through a link to it (R-SEC-09).
func TestOwnProgram(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := t.TempDir() + "/capgate"
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	view := capability.View{Cwd: t.TempDir(), FS: hostfs.FS{}}
	sealed, err := sealing(&config.Config{}, view)
	if err != nil {
		t.Fatal(err)
	}
	around := fence(nil, sealed, view)
	for text, want := range map[string]bool{
		"fs.write{path=" + self + "}":       true,
		"fs.delete{path=" + link + "}":      true,
		"fs.read{path=" + self + "}":        false,
		"fs.write{path=" + self + ".other}": false,
	} {
		need, err := capability.ParseRequirement(text, view)
		if err != nil {
			t.Fatal(err)
		}
		if got := around.Touches(need); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}
