package skills

import "strings"

// Parse reads the SKILL.md of a skill that a server has, against what the library was
// read against. A nil library knows nothing of all that.
func (l *Library) Parse(path string, skillMD []byte) *Skill {
	if l == nil {
		return Parse(path, skillMD, Options{})
	}
	return Parse(path, skillMD, l.opts)
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
