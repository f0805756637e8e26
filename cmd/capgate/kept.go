package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"capgate/config"
	"capgate/guardrail"
	"capgate/store"
)

// kept is where a gateway keeps what outlives it, and how it records.
type kept struct {
	state     string // the folder
	guardrail config.Guardrail
	upstreams []config.Upstream
}

func (w *world) kept() kept {
	return kept{state: w.cfg.State, guardrail: w.cfg.Guardrail, upstreams: w.cfg.Upstreams}
}

// kept finds what a gateway keeps by the configuration alone: neither records nor
// mappings are read. Where there is none, it is what wrap keeps.
func (a *app) kept() (kept, error) {
	view, err := hostView()
	if err != nil {
		return kept{}, broken(err, "")
	}
	file, err := config.Find(a.settings.Config, view.Cwd, os.Getenv("XDG_CONFIG_HOME"), view.Home)
	if err != nil {
		k := keptIn(stateOfWrap(view.Home))
		if _, missing := os.Stat(k.state); missing != nil || !errors.Is(err, config.ErrNone) {
			return kept{}, broken(err, "")
		}
		return k, nil
	}
	cfg, _, err := config.Load(file, view)
	if err != nil {
		return kept{}, broken(err, "")
	}
	return kept{state: cfg.State, guardrail: cfg.Guardrail, upstreams: cfg.Upstreams}, nil
}

// keptIn is a state folder of which nothing else is known.
func keptIn(state string) kept {
	return kept{state: state, guardrail: config.Guardrail{Log: filepath.Join(state, "events")}}
}

// stateOfWrap is where wrap keeps its state when there is no configuration, "" if nothing says
// where that is.
func stateOfWrap(home string) string {
	if x := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(x) {
		return filepath.Join(x, "capgate")
	}
	if home == "" {
		return ""
	}
	return filepath.Join(home, ".local", "state", "capgate")
}

// store opens what is kept.
func (k kept) store() (*store.Store, error) {
	st, err := store.Open(filepath.Join(k.state, "store"))
	if err != nil {
		return nil, broken(err, "")
	}
	return st, nil
}

// recorder opens the log of events.
func (k kept) recorder(scrub func(upstream, text string) string) (*guardrail.Log, error) {
	return guardrail.Open(k.logged(scrub))
}

// ledger opens it for what a command does. on_error: says what becomes of calls, and nothing of that.
func (k kept) ledger(scrub func(upstream, text string) string) (*guardrail.Log, error) {
	k.guardrail.Continue = false
	return k.recorder(scrub)
}

// logged is what guardrail: says of the log.
func (k kept) logged(scrub func(upstream, text string) string) guardrail.Options {
	g := k.guardrail
	o := guardrail.Options{Dir: g.Log, Continue: g.Continue, HashTargets: g.HMAC, Scrub: scrub}
	switch g.Fsync {
	case "none":
		o.Sync = guardrail.SyncNone
	case "always":
		o.Sync = guardrail.SyncAlways
	}
	return o
}

// entry is a change of one entry of the store.
type entry struct {
	bucket, key string
	hint        string // for when it cannot be done
	narrows     bool   // it takes authority away, and is done although it cannot be recorded
	change      func(data []byte) (next []byte, events []guardrail.Event, err error)
}

// edit changes an entry. What changes is recorded before it is in force, and not
// done when that is not possible, unless it narrows.
func (k kept) edit(e entry) error {
	st, err := k.store()
	if err != nil {
		return err
	}
	log, unrecorded := k.ledger(nil) // the texts are our own
	if unrecorded != nil && !e.narrows {
		return unchangedFor(unrecorded)
	}
	err = st.Update(e.bucket, e.key, func(data []byte) ([]byte, error) {
		next, events, err := e.change(data)
		if err != nil {
			return nil, err
		}
		for i := 0; i < len(events) && unrecorded == nil; i++ {
			_, unrecorded = log.Record(&events[i])
		}
		if unrecorded != nil && !e.narrows {
			return nil, unchangedFor(unrecorded)
		}
		return next, nil
	})
	if log != nil {
		unrecorded = errors.Join(unrecorded, log.Close())
	}
	if _, ok := errors.AsType[*exit](err); ok {
		return err
	}
	switch {
	case err != nil:
		return broken(err, e.hint)
	case unrecorded != nil:
		return broken(doneFor(unrecorded), "")
	}
	return nil
}

// note records what becomes of an agent's record, before it is written. Where nothing was ever
// recorded, no gateway has run by these records.
func (k kept) note(agent, text string) error {
	if _, err := os.Stat(k.guardrail.Log); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	log, err := k.ledger(nil) // the text is our own
	if err != nil {
		return err
	}
	_, err = log.Record(&guardrail.Event{Kind: guardrail.Notice, Agent: agent, Text: text})
	return errors.Join(err, log.Close())
}

func doneFor(err error) error { return fmt.Errorf("it was done, but could not be recorded: %w", err) }

func unchangedFor(err error) error {
	return broken(fmt.Errorf("nothing was changed, since it could not be recorded: %w", err), "")
}

// salvage finds what a gateway keeps although its configuration cannot be loaded,
// in a folder that is named or as far as the file can still be read. What takes
// authority away must not wait until it is mended.
func (a *app) salvage(state string) (kept, error) {
	view, err := hostView()
	if err != nil {
		return kept{}, broken(err, "")
	}
	if state != "" {
		if state, err = filepath.Abs(state); err != nil {
			return kept{}, usage(err, "")
		}
		if _, err := os.Stat(filepath.Join(state, "store")); err != nil {
			return kept{}, usage(fmt.Errorf("--state %s is not a folder that a gateway has kept anything in", a.ui.short(state)), "state: of the configuration names it")
		}
		return keptIn(state), nil
	}
	file, err := config.Find(a.settings.Config, view.Cwd, os.Getenv("XDG_CONFIG_HOME"), view.Home)
	if err != nil {
		return kept{}, broken(err, "") // what wrap keeps is not what is meant: it holds no tokens
	}
	k, err := a.kept()
	if err == nil {
		return k, nil
	}
	cfg, unread := config.Kept(file, view)
	if unread != nil {
		a.ui.fail(err)
		return kept{}, broken(errors.New("the configuration does not say which the state folder is"), "name it with --state")
	}
	a.ui.line(a.ui.std.err, yellow, "warning", "the configuration cannot be loaded; its state folder is "+a.ui.short(cfg.State))
	return kept{state: cfg.State, guardrail: cfg.Guardrail, upstreams: cfg.Upstreams}, nil
}
