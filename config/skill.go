package config

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"capgate/capability"
	"capgate/skills"
)

// Skills is where the skills are, and what is made of those that say little.
type Skills struct {
	Folders        []string          // absolute, in the order written
	HideUndeclared bool              // a skill that declares no tools is shown to nobody
	IgnoreUnknown  bool              // tools that nobody knows are left out of what a skill requires
	Wide           bool              // a tool without a scope needs all that its verb allows
	Vouched        map[string]string // the digest of each skill that somebody has read, by its path
	Mirrors        []Mirror          // in the order written
}

// Mirror is a folder that holds a copy of the skills which one agent is shown.
type Mirror struct {
	Agent string // as written
	Dir   string // absolute, without links
	Pos   capability.Pos
}

// SkillOptions returns what skills are read against: the names of the upstreams, and the
// home of a view.
func (c *Config) SkillOptions(v capability.View) skills.Options {
	o := skills.Options{Home: v.Home, HideUndeclared: c.Skills.HideUndeclared, IgnoreUnknown: c.Skills.IgnoreUnknown, Vouched: c.Skills.Vouched}
	for _, u := range c.Upstreams {
		o.Upstreams = append(o.Upstreams, u.Prefix)
	}
	return o
}

// skillKeys is the table of skills: written as a map.
func skillKeys() []key[Skills] {
	return []key[Skills]{
		{
			name: "folders", takes: "a list of folders", help: "the same as skills: with a list",
			read: func(r *reader, n *yaml.Node, s *Skills) { s.Folders = r.folders(n, "skills") },
		},
		{
			name: "undeclared", takes: "show or hide", help: "a skill that declares no tools: shown to all unless written, or to nobody",
			read: func(r *reader, n *yaml.Node, s *Skills) {
				s.HideUndeclared = r.word(n, "skills.undeclared", "show", "hide") == "hide"
			},
		},
		{
			name: "unknown", takes: "hide or ignore", help: "a tool that nobody knows: hides the skill unless written, or counts for nothing",
			read: func(r *reader, n *yaml.Node, s *Skills) {
				s.IgnoreUnknown = r.word(n, "skills.unknown", "hide", "ignore") == "ignore"
			},
		},
		{
			name: "bare", takes: "any or wide", help: "a tool without a scope: some use of its verb unless written, or all of it below the agent's root",
			read: func(r *reader, n *yaml.Node, s *Skills) {
				s.Wide = r.word(n, "skills.bare", "any", "wide") == "wide"
			},
		},
		{
			name: "vouched", takes: "a map of digests by skill", help: "skills that somebody has read: what clients do by themselves with the text is not required",
			read: (*reader).vouched,
		},
		{
			name: "mirror", takes: "a map of folders by agent", help: "where serve keeps a copy of what an agent is shown, for clients that read the disk",
			read: (*reader).mirrors,
		},
	}
}

// skills reads skills:, a list of folders or a map with one.
func (r *reader) skills(n *yaml.Node, c *Config) {
	if n.Kind != yaml.MappingNode {
		c.Skills.Folders = r.folders(n, "skills")
		return
	}
	if fill(r, n, "skills", skillKeys(), &c.Skills) && value(n, "folders") == nil {
		r.at(n, "write skills: { folders: [./skills] }", "skills names no folder")
	}
}

// vouched reads skills.vouched.
func (r *reader) vouched(n *yaml.Node, s *Skills) {
	s.Vouched = map[string]string{}
	r.entries(n, "skills.vouched", "a map of digests by skill", func(name, value *yaml.Node) {
		digest, ok := r.text(value, "skills.vouched", "a digest")
		sum, is := strings.CutPrefix(digest, "sha256:")
		if _, err := hex.DecodeString(sum); ok && (!is || err != nil || len(sum) != hex.EncodedLen(sha256.Size) || sum != strings.ToLower(sum)) {
			r.at(value, "capgate skills check prints the digest of a skill that it would show", "%q is no digest of a skill", clip(digest))
			return
		}
		s.Vouched[name.Value] = digest
	})
}

// mirrors reads skills.mirror. A mirror is written over: it may not be where anything
// else of the gateway is.
func (r *reader) mirrors(n *yaml.Node, s *Skills) {
	seen := map[string]bool{}
	r.entries(n, "skills.mirror", "a map of folders by agent", func(name, value *yaml.Node) {
		if capability.AgentID(name.Value) == "" {
			r.at(name, "an id is letters, digits, - _ . and / between names", "%q is no agent id", clip(name.Value))
			return
		}
		dir, ok := r.folder(value, "skills.mirror", aFolder)
		if !ok {
			return
		}
		if seen[dir.Real] {
			r.at(value, "give each agent a folder of its own", "the folder %q stands twice", clip(value.Value))
		}
		seen[dir.Real] = true
		m := Mirror{Agent: name.Value, Dir: dir.Real, Pos: r.pos(name)}
		s.Mirrors = append(s.Mirrors, m)
		r.later = append(r.later, func(c *Config) { r.apart(value, dir, c) })
	})
}

// apart refuses a mirror that lies in, or holds, a place of the gateway itself, the
// skills or another mirror.
func (r *reader) apart(n *yaml.Node, dir capability.Root, c *Config) {
	own, err := c.Own(r.view)
	sealed, errSealed := c.Sealed(r.view)
	if err != nil || errSealed != nil {
		return // said where it is written
	}
	for i, other := range slices.Concat(own, sealed) {
		mirror := i >= len(own)+len(c.Skills.Folders)
		if mirror && other == dir { // itself, or one that is said to stand twice
			continue
		}
		if dir.Within(other) || other.Within(dir) {
			r.at(n, "name a folder that holds nothing else", "a mirror is written over, and %q is where the gateway has files of its own", clip(n.Value))
			return
		}
	}
}

// Sealed returns the folders that agents may read and never change: the skills, and
// the copies of them.
func (c *Config) Sealed(v capability.View) ([]capability.Root, error) {
	places := append([]string{}, c.Skills.Folders...)
	for _, m := range c.Skills.Mirrors {
		places = append(places, m.Dir)
	}
	sealed, err := roots(places, v)
	if err != nil || c.Above == nil {
		return sealed, err
	}
	above, err := c.Above.Sealed(v)
	return append(sealed, above...), err
}

// skillPath reads the path of a skill in a policy test.
func (r *reader) skillPath(n *yaml.Node, t *Test) {
	t.Skill, _ = r.text(n, "skill", "the path of a skill")
}
