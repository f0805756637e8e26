package main

import (
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

// skillWatch watches the folders of skills.
type skillWatch struct {
	stamp string
	next  time.Time
}

// look remembers which state the folders are in.
func (s *skillWatch) look(cfg *config.Config, now time.Time) {
	begun := time.Now()
	s.stamp = skills.Stamp(cfg.Skills.Folders...)
	s.next = now.Add(max(skillLook, skillPause*time.Since(begun)))
}

// changed reports whether the folders are in another state than they were, when it is
// time to look.
func (s *skillWatch) changed(cfg *config.Config, now time.Time) bool {
	if len(cfg.Skills.Folders) == 0 || now.Before(s.next) {
		return false
	}
	before := s.stamp
	s.look(cfg, now)
	return s.stamp != before
}
