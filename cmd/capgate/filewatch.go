package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"capgate/config"
	"capgate/skills"
)

// How often the folders of skills are looked at. They can hold thousands of files, so
// that a look which takes long is followed by a longer pause.
const (
	skillLook  = time.Second
	skillPause = 50 // times what the last look took
)

// fileWatch watches the folders of mappings and of skills, and whether those that programs
// are told of come or go.
type fileWatch struct {
	mapped, skilled string
	next            time.Time // when the skills are looked at again
}

// look remembers which state the folders are in.
func (f *fileWatch) look(cfg *config.Config) {
	f.mapped = stamp(cfg.Mappings) + toldBy(cfg)
	begun := time.Now()
	f.skilled = skills.Stamp(cfg.Skills.Folders...)
	now := time.Now()
	f.next = now.Add(max(skillLook, skillPause*now.Sub(begun)))
}

// changed reports whether the folders are in another state than they were; of those
// of skills, when it is time to look.
func (f *fileWatch) changed(cfg *config.Config, now time.Time) bool {
	if stamp(cfg.Mappings)+toldBy(cfg) != f.mapped {
		return true
	}
	if len(cfg.Skills.Folders) == 0 || now.Before(f.next) {
		return false
	}
	before := f.skilled
	f.look(cfg)
	return f.skilled != before
}

// toldBy says which folders the arguments of programs lead to.
func toldBy(cfg *config.Config) string {
	var b strings.Builder
	s := &servers{cfg: cfg}
	s.view.Home, _ = os.UserHomeDir() // "" where there is none
	for i := range cfg.Upstreams {
		if u := &cfg.Upstreams[i]; u.Command != nil {
			fmt.Fprintf(&b, "%q\n", told(u, s.cwd(u), s.home(u)))
		}
	}
	return b.String()
}

// stamp says which state the files of some folders are in.
func stamp(dirs []string) string {
	var b strings.Builder
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		fmt.Fprintln(&b, dir, err)
		for _, e := range entries {
			if info, err := e.Info(); err == nil {
				fmt.Fprintln(&b, e.Name(), info.Size(), info.ModTime().UnixNano())
			}
		}
	}
	return b.String()
}
