package main

import (
	"fmt"

	"capgate/capability"
	"capgate/skills"
)

// skill finds a skill by its path, or by its name where only one has it.
func (w *world) skill(name string) (*skills.Skill, error) {
	if s, ok := w.policy.Skills.Skill(name); ok {
		return s, nil
	}
	var found []*skills.Skill
	var known []string
	for s := range w.policy.Skills.All() {
		if known = append(known, s.Path); s.Name == name {
			found = append(found, s)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		hint := "capgate skills check --all shows those there are"
		if near := capability.Closest(name, known); near != "" {
			hint = "did you mean " + near + "?"
		}
		return nil, broken(fmt.Errorf("there is no skill %q", name), hint)
	}
	return nil, broken(fmt.Errorf("several skills are called %q", name), "write the path of one: "+found[0].Path)
}
