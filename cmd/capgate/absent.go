package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"

	"capgate/capability"
)

// absent is what the configuration names and is not there, secrets too, as far as can be seen from here. It need
// not be before somebody asks for it.
func (w *world) absent() []capability.Finding {
	all := w.missing()
	if l := w.cfg.Listen; l.Cert != "" {
		if _, err := tls.LoadX509KeyPair(l.Cert, l.Key); err != nil {
			all = append(all, capability.Finding{
				Code: "absent", Severity: capability.Warning, Pos: capability.Pos{File: w.cfg.File},
				Text: fmt.Sprintf("serve does not start: the certificate of listen: %s", err), Hint: "name a certificate and its key, which whoever starts serve may read",
			})
		}
	}
	for _, name := range w.servers.keeper.Names() {
		if err := w.servers.keeper.Check(name); err != nil {
			all = append(all, capability.Finding{
				Code: "unset_secret", Severity: capability.Note, Pos: capability.Pos{File: w.cfg.File}, Text: err.Error(),
				Hint: "set it where the gateway is started: what needs it fails",
			})
		}
	}
	return all
}

// logMissing logs what is not there when the gateway starts: agents are told that a server cannot be reached, and no more.
func (w *world) logMissing(log *slog.Logger) {
	for _, f := range w.missing() {
		log.Warn("something that the configuration names is not there", "finding", f.String(), "code", f.Code)
	}
}

// missing is what is absent of directories and programs.
func (w *world) missing() (all []capability.Finding) {
	say := func(at capability.Pos, hint, text string, a ...any) {
		all = append(all, capability.Finding{Code: "absent", Severity: capability.Warning, Pos: at, Text: fmt.Sprintf(text, a...), Hint: hint})
	}
	isThere := func(dir string) bool {
		info, err := os.Stat(dir)
		return err == nil && info.IsDir()
	}
	file := capability.Pos{File: w.cfg.File}
	if root := w.cfg.Sandbox; !root.IsZero() && !isThere(root.Dir) {
		say(file, "make it, or name another under sandbox:", "there is no directory %s, which sandbox: names", root.Dir)
	}
	for i := range w.cfg.Upstreams {
		u := &w.cfg.Upstreams[i]
		if u.Command == nil {
			continue
		}
		if dir := w.servers.cwd(u); dir != w.cfg.Sandbox.Dir && !isThere(dir) {
			say(u.Pos, "make it, or name another under cwd:", "there is no directory %s, in which the upstream %s is started", dir, u.Name)
		}
		program := u.Command[0]
		if filepath.Base(program) != program && !filepath.IsAbs(program) {
			continue // it is looked for in that directory
		}
		if _, err := exec.LookPath(program); err != nil {
			say(u.Pos, "name a program that PATH leads to, or one by its whole path", "the upstream %s does not start: %s", u.Name, err)
		}
	}
	return all
}
