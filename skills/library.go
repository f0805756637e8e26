package skills

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"capgate/capability"
)

// Library is every skill that some folders hold, at one moment. It is immutable.
type Library struct {
	skills   []*Skill // by path
	byPath   map[string]*Skill
	findings []capability.Finding
	digest   string
	opts     Options
	folders  int
}

// Load reads every skill below the folders. It never fails: what cannot be read is
// hidden, and a finding says so.
func Load(o Options, dirs ...string) *Library {
	l := &Library{byPath: map[string]*Skill{}, opts: o, folders: len(dirs)}
	var found []*Skill
	for _, dir := range dirs {
		w := walk{opts: o}
		w.search(dir)
		l.findings = append(l.findings, w.findings...)
		found = append(found, w.skills...)
	}
	l.enter(found)
	link(l.skills)
	for _, s := range l.skills {
		for _, f := range s.Findings {
			f.Pos.File = s.at()
			l.findings = append(l.findings, f)
		}
	}
	l.digest = l.sum()
	return l
}

// enter sorts the skills by path. Where two have one path neither is shown: which
// of them is meant depends on who asks.
func (l *Library) enter(found []*Skill) {
	slices.SortStableFunc(found, func(a, b *Skill) int { return strings.Compare(a.Path, b.Path) })
	claims := map[string][]*Skill{}
	for _, s := range found {
		key := strings.ToLower(s.Path)
		claims[key] = append(claims[key], s)
	}
	for _, s := range found {
		if rivals := claims[strings.ToLower(s.Path)]; len(rivals) > 1 {
			other := rivals[0]
			if other == s {
				other = rivals[1]
			}
			s.fail(fmt.Sprintf("%s is also in %s", s.Path, other.at()))
		}
		l.skills = append(l.skills, s)
		l.byPath[s.Path] = s
	}
}

// All visits the skills by path, hidden ones included.
func (l *Library) All() iter.Seq[*Skill] {
	return func(yield func(*Skill) bool) {
		if l == nil {
			return
		}
		for _, s := range l.skills {
			if !yield(s) {
				return
			}
		}
	}
}

// Skill finds a skill by its path. Of several with one path it finds one, and that
// one is hidden.
func (l *Library) Skill(path string) (*Skill, bool) {
	if l == nil {
		return nil, false
	}
	s, ok := l.byPath[path]
	return s, ok
}

// Findings returns what is to be said of the folders and of their skills.
func (l *Library) Findings() []capability.Finding {
	if l == nil {
		return nil
	}
	return slices.Clone(l.findings)
}

// Digest names the state that the skills are in: it changes with every file, every
// requirement and everything that is hidden.
func (l *Library) Digest() string {
	if l == nil {
		return ""
	}
	return l.digest
}

func (l *Library) sum() string {
	h := sha256.New()
	for _, s := range l.skills {
		fmt.Fprintf(h, "%q %q %q\n", s.Path, s.Frontmatter, s.Broken)
		for _, n := range s.Needs {
			fmt.Fprintf(h, " %q %q %q\n", n.Token, n.Spec.String(), n.Unknown)
		}
		for _, f := range s.Files {
			fmt.Fprintf(h, " %q %s %d\n", f.Path, f.Digest, f.Size)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// at is the file of a skill, for findings.
func (s *Skill) at() string { return filepath.Join(s.dir, documentName) }

// link adds to each skill what the skills need that it uses by name, and those that
// lie in its own folder: whoever sees it can read them.
func link(all []*Skill) {
	own := make(map[*Skill][]Need, len(all))
	for _, s := range all {
		own[s] = s.Needs
	}
	byName := map[string][]*Skill{}
	for _, s := range all {
		byName[s.Name] = append(byName[s.Name], s)
		byName[s.Path] = append(slices.DeleteFunc(byName[s.Path], func(o *Skill) bool { return o == s }), s)
	}
	for _, s := range all {
		seen := map[*Skill]bool{s: true}
		more := borrowed(s, byName, own, seen)
		for _, n := range more {
			if n.Unknown != "" {
				s.warn("unsatisfied", fmt.Sprintf("nobody satisfies the skill: %s: %s", clip(n.Token), n.Unknown), "")
			}
		}
		s.Needs = append(own[s][:len(own[s]):len(own[s])], more...)
	}
}

// borrowed returns what the skills require that a skill uses, and those that they use.
func borrowed(s *Skill, byName map[string][]*Skill, own map[*Skill][]Need, seen map[*Skill]bool) []Need {
	var needs []Need
	for _, name := range s.names {
		token := skillTool + "(" + name + ")"
		used := byName[name]
		switch {
		case len(used) == 0:
			needs = append(needs, Need{Token: token, Unknown: "there is no such skill"})
			continue
		case len(used) > 1:
			needs = append(needs, Need{Token: token, Unknown: "several skills have that name"})
			continue
		case seen[used[0]]:
			continue
		}
		needs = append(needs, lent(used[0], token, byName, own, seen)...)
	}
	for _, inner := range s.inner {
		if !seen[inner] {
			needs = append(needs, lent(inner, inner.Path, byName, own, seen)...)
		}
	}
	return needs
}

// lent returns what one skill requires of whoever uses another that needs it.
func lent(s *Skill, token string, byName map[string][]*Skill, own map[*Skill][]Need, seen map[*Skill]bool) []Need {
	seen[s] = true
	if s.Broken != "" {
		return []Need{{Token: token, Unknown: "the skill " + s.Path + " is hidden: " + s.Broken}}
	}
	var needs []Need
	for _, n := range own[s] {
		n.Token = token + ": " + n.Token
		needs = append(needs, n)
	}
	return append(needs, borrowed(s, byName, own, seen)...)
}
