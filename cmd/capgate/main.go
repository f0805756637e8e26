package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

// version is set at link time: -ldflags "-X main.version=…".
var version = "devel"

func main() {
	log.SetOutput(io.Discard) // net/http writes there what servers send that nobody asked for
	// Signals end the process as they always do, unless a gateway runs: nothing else
	// runs on, and a person who is asked something must be able to leave.
	os.Exit(run(context.Background(), os.Args[1:], process()))
}

// stdio is what a run reads from and writes to.
type stdio struct {
	in       io.Reader
	out, err io.Writer
	terminal bool   // a person is there to be asked
	dir      string // the working directory, "" if there is none
}

// process is the terminal that the process has.
func process() stdio {
	dir, _ := os.Getwd() // without one, names are written whole
	return stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr, terminal: isTerminal(os.Stdin), dir: dir}
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// untilEnded is the context of a gateway, which ends in order once it is told to, or its
// terminal is gone. That nobody reads what it writes is an error of whoever writes.
func untilEnded(ctx context.Context) (context.Context, context.CancelFunc) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // programs would inherit that it is ignored
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signals = append(signals, syscall.SIGHUP)
	}
	return signal.NotifyContext(ctx, signals...)
}

// The exit codes, documented in every help text.
const (
	exitOK     = 0 // done, allowed
	exitRed    = 1 // denied, findings, a policy test failed
	exitUsage  = 2 // the command line makes no sense
	exitConfig = 3 // the configuration or a record cannot be loaded
)

// run is the whole program: it returns the exit code.
func run(ctx context.Context, args []string, std stdio) int {
	a := &app{ui: newUI(std)}
	root := a.command(args)
	root.SetArgs(args)
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	cmd, err := root.ExecuteContextC(ctx)
	if _, told := errors.AsType[*exit](err); err != nil && !told && !a.began {
		err = usage(err, cmd.CommandPath()+" --help shows what it takes")
	}
	err = cmp.Or(err, a.ui.lost)
	if a.lines != nil {
		_ = a.lines.flush() // nobody could be told
	}
	if err == nil {
		return a.code
	}
	a.ui.fail(err)
	if e, ok := errors.AsType[*exit](err); ok {
		return e.code
	}
	return exitUsage
}

// exit is an error that knows its exit code, and perhaps a hint.
type exit struct {
	code int
	err  error
	hint string
}

func (e *exit) Error() string { return e.err.Error() }
func (e *exit) Unwrap() error { return e.err }

func usage(err error, hint string) error  { return &exit{exitUsage, err, hint} }
func broken(err error, hint string) error { return &exit{exitConfig, err, hint} }
