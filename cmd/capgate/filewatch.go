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

// fileWatch watches the folders of mappings and of skills.
type fileWatch struct {
	mapped, skilled string
	next            time.Time // when the skills are looked at again
}

// look remembers which state the folders are in.
func (f *fileWatch) look(cfg *config.Config) {
	f.mapped = stamp(cfg.Mappings)
	begun := time.Now()
	f.skilled = skills.Stamp(cfg.Skills.Folders...)
	now := time.Now()
	f.next = now.Add(max(skillLook, skillPause*now.Sub(begun)))
}

// changed reports whether the folders are in another state than they were; of those
// of skills, when it is time to look.
func (f *fileWatch) changed(cfg *config.Config, now time.Time) bool {
	if stamp(cfg.Mappings) != f.mapped {
		return true
	}
	if len(cfg.Skills.Folders) == 0 || now.Before(f.next) {
		return false
	}
	before := f.skilled
	f.look(cfg)
	return f.skilled != before
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
