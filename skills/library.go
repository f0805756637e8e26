package skills

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"path"
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
	own := make(map[*Skill][]Need, len(found)) // of those that are left out as well: who holds one holds its files
	for _, s := range found {
		own[s] = s.Needs
	}
	l.enter(found)
	link(l.skills, own)
	alike(l.skills)
	for _, name := range slices.Sorted(maps.Keys(o.Vouched)) {
		if _, ok := l.byPath[name]; !ok {
			l.findings = append(l.findings, capability.Finding{
				Code: "skill_vouched", Severity: capability.Warning, Text: fmt.Sprintf("somebody vouches for the skill %q, and there is none at that path", clip(name)),
			})
		}
	}
	for _, s := range l.skills {
		for _, f := range s.Findings {
			f.Pos.File = s.at()
			l.findings = append(l.findings, f)
		}
	}
	l.digest = l.sum()
	return l
}

// enter sorts the skills by path. Where two have one path, or one the path of another's
// file, neither is shown: which of them is meant depends on who asks. Copies are one skill.
func (l *Library) enter(found []*Skill) {
	found = once(found)
	slices.SortStableFunc(found, func(a, b *Skill) int { return strings.Compare(a.Path, b.Path) })
	claims := map[string][]*Skill{}
	for _, s := range found {
		key := oneCase(s.Path)
		claims[key] = append(claims[key], s)
	}
	for _, s := range found {
		if rivals := claims[oneCase(s.Path)]; len(rivals) > 1 {
			other := rivals[0]
			if other == s {
				other = rivals[1]
			}
			s.fail(fmt.Sprintf("%s is also in %s", s.Path, other.at()))
		}
		for up := path.Dir(s.Path); up != "."; up = path.Dir(up) {
			for _, above := range claims[oneCase(up)] {
				s.apart(above)
			}
		}
		l.skills = append(l.skills, s)
		l.byPath[s.Path] = s
	}
}

// once leaves out copies of skills, of which those that stand first stay. Each client looks in
// folders of its own, so that a skill for several often lies in several.
func once(found []*Skill) []*Skill {
	first := map[string]*Skill{}
	return slices.DeleteFunc(found, func(s *Skill) bool {
		other, again := first[s.Path]
		if !again {
			first[s.Path] = s
		}
		return again && s.isCopy(other)
	})
}

// isCopy reports whether a skill is the same as another in every byte, and in what it requires,
// which may depend on where it lies.
func (s *Skill) isCopy(of *Skill) bool {
	return s.Digest != "" && s.Digest == of.Digest && s.Broken == of.Broken && slices.Equal(s.names, of.names) &&
		slices.EqualFunc(s.Needs, of.Needs, func(a, b Need) bool {
			return a.Token == b.Token && a.Spec.Equal(b.Spec) && a.Unknown == b.Unknown && a.Untold == b.Untold
		})
}

// apart hides two skills of which one would have files in the other's place, although it
// does not lie in its folder: its name leads there. So does that of one which lies elsewhere
// in that folder, where the other has files of its own.
func (s *Skill) apart(above *Skill) {
	in := path.Join(strings.Split(s.Path, "/")[1+strings.Count(above.Path, "/"):]...)
	isThere := func(f File) bool { return strings.HasPrefix(oneCase(f.Path), oneCase(in)+"/") }
	if s.dir == filepath.Join(above.dir, in) || strings.HasPrefix(s.dir, above.dir+string(filepath.Separator)) && !slices.ContainsFunc(above.Files, isThere) {
		return
	}
	s.fail(fmt.Sprintf("%s lies in the place of %s", s.Path, above.at()))
	if above.Broken == "" {
		above.fail(fmt.Sprintf("%s in %s lies in its place", s.Path, s.at()))
	}
}

// alike says of skills that have one name what that costs: prompts go by it.
func alike(all []*Skill) {
	first := map[string]*Skill{}
	for _, s := range all {
		other, again := first[s.Name]
		switch {
		case s.Broken != "":
		case again:
			s.say(capability.Note, "prompt", fmt.Sprintf("%s is called %s too: who sees both has neither as a prompt", other.Path, s.Name), "")
		default:
			first[s.Name] = s
		}
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

// Within returns what of a library is still as it was: what has another digest by now, or is gone, is
// not in it, and what is there requires what it did and what it does.
func (l *Library) Within(now *Library) *Library {
	kept := &Library{byPath: map[string]*Skill{}, findings: l.findings, opts: l.opts, folders: l.folders}
	for s := range l.All() {
		if again, ok := now.Skill(s.Path); ok && again.Digest == s.Digest && again.Broken == "" {
			both := *s
			both.Needs = slices.Concat(s.Needs, again.Needs)
			kept.skills, kept.byPath[s.Path] = append(kept.skills, &both), &both
		}
	}
	kept.digest = kept.sum()
	return kept
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
		fmt.Fprintf(h, "%q %q %q %s\n", s.Path, s.Frontmatter, s.Broken, s.Digest)
		for _, n := range s.Needs {
			fmt.Fprintf(h, " %q %q %q\n", n.Token, n.Spec.String(), n.Unknown)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// at is the file of a skill, for findings.
func (s *Skill) at() string { return filepath.Join(s.dir, documentName) }

// link adds to each skill what the skills need that it uses by name, and those that
// lie in its own folder: whoever sees it can read them. Own is what each requires by itself.
func link(all []*Skill, own map[*Skill][]Need) {
	byName := map[string][]*Skill{}
	for _, s := range all {
		byName[s.Name] = append(byName[s.Name], s)
		byName[s.Path] = append(slices.DeleteFunc(byName[s.Path], func(o *Skill) bool { return o == s }), s)
	}
	borrowed := 0
	for _, s := range all {
		b := borrowing{byName: byName, own: own, seen: map[*Skill]bool{s: true}}
		if borrowed > maxLent && len(s.names)+len(s.inner) > 0 {
			b.end()
		}
		b.from(s, "")
		borrowed += len(b.needs)
		for _, n := range b.needs {
			if n.Unknown != "" {
				s.warn("unsatisfied", fmt.Sprintf("nobody satisfies the skill: %s: %s", clip(n.Token), n.Unknown), "")
			}
		}
		s.Needs = append(own[s][:len(own[s]):len(own[s])], b.needs...)
	}
}

// What one skill may borrow: how many skills it uses, and what they need together.
// Whoever uses more requires what nobody has, and so does whoever borrows after all
// together have borrowed maxLent.
const (
	maxUsed     = 128
	maxBorrowed = 512
	maxLent     = 4096
)

// borrowing gathers what a skill requires because it uses others, and because others
// lie in its folder.
type borrowing struct {
	byName map[string][]*Skill
	own    map[*Skill][]Need // what each requires by itself
	seen   map[*Skill]bool
	needs  []Need
	over   bool
}

// from gathers what a skill borrows, which is itself used as a token says.
func (b *borrowing) from(s *Skill, above string) {
	for _, name := range s.names {
		token := above + skillTool + "(" + name + ")"
		used := b.byName[name]
		switch {
		case b.over:
			return
		case len(used) == 0:
			b.add(Need{Token: token, Unknown: "there is no such skill"})
		case len(used) > 1:
			b.add(Need{Token: token, Unknown: "several skills have that name"})
		default:
			b.lend(used[0], token)
		}
	}
	for _, inner := range s.inner {
		if b.over {
			return
		}
		b.lend(inner, above+inner.Path)
	}
}

// lend adds what a skill requires of whoever uses another that needs it.
func (b *borrowing) lend(s *Skill, token string) {
	if b.seen[s] || b.over {
		return
	}
	b.seen[s] = true
	if len(b.seen) > maxUsed {
		b.end()
		return
	}
	if s.Broken != "" {
		b.add(Need{Token: token, Unknown: "the skill " + s.Path + " is hidden: " + s.Broken})
		return
	}
	for _, n := range b.own[s] {
		n.Token, n.Untold = token+": "+n.Token, false
		b.add(n)
	}
	b.from(s, clip(token)+": ")
}

// add takes over one need.
func (b *borrowing) add(n Need) {
	n.Token = clip(n.Token)
	if len(b.needs) == maxBorrowed {
		b.end()
	}
	if !b.over {
		b.needs = append(b.needs, n)
	}
}

// end is where it is too much.
func (b *borrowing) end() {
	b.over = true
	b.needs = []Need{{Token: skillTool, Unknown: fmt.Sprintf("it uses more than %d skills, or they need more than %d things, or those that all skills use need more than %d", maxUsed, maxBorrowed, maxLent)}}
}
