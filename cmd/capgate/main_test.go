package main

import (
	"context"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets the test binary be capgate, so that the scripts run it as its
// users do.
func TestMain(m *testing.M) {
	usualMask()
	testscript.Main(m, map[string]func(){
		"capgate":     func() { os.Exit(run(context.Background(), os.Args[1:], process())) },
		"skillserver": skillServer,
		"toolserver":  toolServer,
	})
}

// TestScripts runs the command line as it is used. Each script of testdata is a
// story; -testscript-update is not offered: what is printed is reviewed. This is R-EGG-30.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("XDG_CONFIG_HOME", e.WorkDir+"/xdg")
			e.Setenv("GORACE", "atexit_sleep_ms=0") // under the race detector each command would wait a second before it ends
			return nil
		},
	})
}
