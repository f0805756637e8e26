package main

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// TestGatewayAlone: a command that runs a gateway is the same without the others.
func TestGatewayAlone(t *testing.T) {
	for _, name := range []string{"serve", "stdio", "wrap"} {
		var said []string
		for _, args := range [][]string{nil, {name, "--json"}} {
			root := (&app{ui: newUI(stdio{})}).command(args)
			cmd, rest, err := root.Find([]string{name, "--json"})
			if err != nil || cmd.Name() != name || len(rest) != 1 {
				t.Fatal(cmd.Name(), rest, err)
			}
			said = append(said, cmd.Long+"\n"+cmd.Example+"\n"+cmd.UsageString())
			if alone := len(root.Commands()) == 1; alone != (args != nil) {
				t.Errorf("%s comes with %d commands", name, len(root.Commands()))
			}
		}
		if diff := cmp.Diff(said[0], said[1]); diff != "" {
			t.Error(diff)
		}
	}
}

// TestGatewayThatFails: a gateway that ends for what comes to pass while it runs has a command line
// with nothing wrong.
func TestGatewayThatFails(t *testing.T) {
	p := newPlace(t)
	var errs bytes.Buffer
	args := []string{"stdio", "--agent", "scout", "-c", filepath.Join(p.dir, "capgate.yml")}
	code := run(t.Context(), args, stdio{in: iotest.ErrReader(errors.New("the pipe broke")), out: io.Discard, err: &errs})
	if code != exitRed || !strings.Contains(errs.String(), "the pipe broke") || strings.Contains(errs.String(), "hint: ") {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}
