package skills

import "strings"

// Served is a skill as a server has it.
type Served struct {
	Path     string // of its folder, which ends in its name
	SkillMD  []byte
	Manifest []byte   // its file of the name [Manifest], nil if it has none
	Files    []string // the paths of all its files below its folder
}

// Parse reads a skill that a server has, against what the library was read against. A
// nil library knows nothing of all that.
func (l *Library) Parse(from Served) *Skill {
	var o Options
	if l != nil {
		o = l.opts
	}
	s := Parse(from.Path, from.SkillMD, o)
	s.depend(place{}, from.Manifest, o)
	s.hold(from.Files)
	return s
}

// Body returns what follows the frontmatter of a SKILL.md. There is none without
// frontmatter.
func Body(skillMD []byte) (body []byte, ok bool) {
	text := string(skillMD)
	raw, ok := ours(text)
	if !ok {
		return nil, false
	}
	_, text, _ = strings.Cut(text, "\n")
	_, text, _ = strings.Cut(text[len(raw):], "\n")
	return []byte(text), true
}

// HasFolders reports whether there is a folder that skills are looked for in. A nil
// library has none.
func (l *Library) HasFolders() bool { return l != nil && l.folders > 0 }
