package skills

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"capgate/capability"
)

// Limits of one folder of skills. Where one is hit the folder shows no skill at all:
// which ones had been reached would be chance.
const (
	maxSkills  = 1024
	maxFolders = 8 * maxSkills
	maxEntries = 4096      // in one folder
	maxTotal   = 256 << 20 // bytes of all its skills
	maxHeads   = 2 << 20   // bytes of their frontmatter
	maxNeeds   = 8192      // of all its skills, each of which is held against what each agent holds
	perNeed    = 16        // bytes of its token: a longer one counts as several
)

// searchDepth is how deep below the folder skills are looked for.
const searchDepth = 12

// walk looks through one folder.
type walk struct {
	opts     Options
	top      string // absolute
	root     *os.Root
	skills   []*Skill
	findings []capability.Finding

	folders int
	bytes   int64
	heads   int
	needs   int
	over    string // the limit that was hit
}

func (w *walk) say(sev capability.Severity, code, file, text, hint string) {
	w.findings = append(w.findings, capability.Finding{
		Code: "skill_" + code, Severity: sev, Pos: capability.Pos{File: file}, Text: text, Hint: hint,
	})
}

// search finds the skills of a folder. The folder itself may be a link; nothing below
// it that is one is followed out of a skill.
func (w *walk) search(dir string) {
	top, err := filepath.Abs(dir)
	if err == nil {
		w.top = top
		w.root, err = os.OpenRoot(asFolder(top))
	}
	if err != nil {
		w.say(capability.Warning, "folder", dir, "the folder cannot be read, so that it shows no skills", "make it, or take it out of skills:")
		return
	}
	defer func() { _ = w.root.Close() }() // nothing was written
	w.folder(".", 0, nil)
	if w.over != "" {
		w.skills = nil
		w.say(capability.Error, "limit", dir, "the folder shows no skills, because "+w.over, "name smaller folders")
	}
}

// folder looks through one folder, which may lie in a skill.
func (w *walk) folder(rel string, depth int, outer *Skill) {
	if outer == nil && depth > searchDepth || w.over != "" {
		return
	}
	if w.folders++; w.folders > maxFolders {
		w.over = fmt.Sprintf("there are more than %d folders in it", maxFolders)
		return
	}
	entries, err := w.entries(rel)
	if err != nil {
		w.say(capability.Error, "folder", filepath.Join(w.top, rel), "the folder cannot be read: "+err.Error(), "")
		if outer != nil {
			outer.fail("one of its folders cannot be read")
		}
		return
	}
	if !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return isDocument(e.Name()) }) {
		w.names(rel, entries, depth, outer)
		return
	}
	s := w.skill(rel)
	if outer != nil {
		outer.inner = append(outer.inner, s)
	}
	before := len(w.skills)
	w.names(rel, entries, depth, s)
	if documents(s.Files) > 1+len(w.skills)-before {
		s.fail("it was changed while it was read") // a skill in it was not seen
	}
}

// isDocument reports whether a file makes its folder a skill for some client.
func isDocument(name string) bool { return oneCase(name) == oneCase(documentName) }

// documents counts the files that make their folders skills.
func documents(files []File) int {
	n := 0
	for _, f := range files {
		if isDocument(path.Base(f.Path)) {
			n++
		}
	}
	return n
}

// names goes on with the names that a folder holds.
func (w *walk) names(rel string, entries []os.DirEntry, depth int, outer *Skill) {
	for _, e := range entries {
		w.below(path.Join(rel, e.Name()), e, depth, outer)
	}
}

// below goes on with one name that a folder holds.
func (w *walk) below(rel string, e os.DirEntry, depth int, outer *Skill) {
	switch {
	case isBookkeeping(e.Name()) || outer == nil && e.Name() == modules:
	case e.IsDir():
		w.folder(rel, depth+1, outer)
	case e.Type()&os.ModeSymlink != 0 && outer == nil:
		w.link(rel)
	}
}

// entries reads a folder, by name.
func (w *walk) entries(rel string) ([]os.DirEntry, error) {
	f, err := w.root.Open(asFolder(rel))
	if err != nil {
		return nil, fmt.Errorf("%s cannot be opened", clip(rel))
	}
	defer func() { _ = f.Close() }() // nothing was written
	entries, err := f.ReadDir(maxEntries)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s cannot be listed", clip(rel))
	case len(entries) == maxEntries:
		w.over = fmt.Sprintf("a folder in it holds more than %d names", maxEntries-1)
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// link says of a link that what it leads to is not searched.
func (w *walk) link(rel string) {
	if info, err := os.Stat(filepath.Join(w.top, rel)); err == nil && info.IsDir() {
		w.say(capability.Warning, "link", filepath.Join(w.top, rel), "links are not followed, so that what this one leads to shows no skills",
			"name the folder that it leads to under skills:")
	}
}

// skill reads the skill that a folder is.
func (w *walk) skill(rel string) *Skill {
	at := placeOf(filepath.Join(w.top, rel), w.opts.Home)
	s := w.read(rel, at)
	s.Path = w.pathOf(rel, s)
	s.vouch(w.opts.Vouched)
	if w.skills = append(w.skills, s); len(w.skills) > maxSkills {
		w.over = fmt.Sprintf("there are more than %d skills in it", maxSkills)
	}
	if w.heads += s.HeadSize; w.heads > maxHeads {
		w.over = fmt.Sprintf("the skills in it have more than %d bytes of frontmatter", maxHeads)
	}
	for _, n := range s.Needs {
		w.needs += 1 + len(n.Token)/perNeed
	}
	if w.needs > maxNeeds {
		w.over = fmt.Sprintf("the skills in it require more than %d things", maxNeeds)
	}
	return s
}

// read reads the files of a skill, and what it requires.
func (w *walk) read(rel string, at place) *Skill {
	hidden := func(text string) *Skill {
		s := &Skill{dir: at.dir}
		s.fail(text)
		return s
	}
	root, err := w.root.OpenRoot(asFolder(rel))
	if err != nil {
		return hidden("its folder cannot be opened")
	}
	defer func() { _ = root.Close() }() // nothing was written
	b, err := readBundle(root)
	if w.bytes += maxBytes - b.left; w.bytes > maxTotal {
		w.over = fmt.Sprintf("the skills in it hold more than %d bytes", maxTotal)
	}
	if err != nil {
		return hidden(err.Error())
	}
	text, ok := b.texts[documentName]
	if !ok {
		return hidden("its file must be called SKILL.md, in capitals")
	}
	s := parse(at, text, w.opts)
	s.Files, s.Digest = b.files, digestOf(b.files)
	s.depend(at, b.texts[Manifest], w.opts)
	var names []string
	for _, f := range s.Files {
		names = append(names, f.Path)
	}
	s.hold(names)
	delete(b.texts, documentName)
	if name := chained(text, b.texts); name != "" {
		run := evaluated(name)
		run[0].Untold = true
		s.Needs = append(s.Needs, run...)
	}
	return s
}

// pathOf is the path of a skill: the folders above its own, and its name.
func (w *walk) pathOf(rel string, s *Skill) string {
	own := path.Base(filepath.ToSlash(s.dir))
	name := s.Name
	if !isName(name) {
		name = own
	} else if name != own {
		s.say(capability.Note, "name", fmt.Sprintf("the skill %s lies in a folder of another name", name), "rename the folder")
	}
	if !isPlainFolder(path.Dir(rel)) {
		s.fail("a folder above it has a name that cannot stand in a URI")
	}
	if rel == "." {
		return name
	}
	return path.Join(path.Dir(rel), name)
}

// placeOf says where a skill lies: the project is what holds the folder of an
// agent's skills, the plugin what holds a folder called skills.
func placeOf(dir, home string) place {
	at := place{dir: dir}
	slashed := filepath.ToSlash(dir)
	for _, mark := range []string{"/.claude/skills/", "/.agents/skills/", "/.codex/skills/", "/.gemini/skills/", "/.cursor/skills/"} {
		if project, _, ok := strings.Cut(slashed, mark); ok && project != home {
			at.project = project
		}
	}
	if above := path.Dir(slashed); path.Base(above) == "skills" {
		at.plugin = path.Dir(above)
	}
	return at
}

// Stamp says in which state the files below some folders are that [Load] looks at, without
// reading them: when it changes it is time for another.
func Stamp(dirs ...string) string {
	var b strings.Builder
	for _, dir := range dirs {
		left, top := maxFolders+maxSkills*maxFiles, filepath.Clean(dir)
		err := filepath.WalkDir(top+string(filepath.Separator), func(name string, e os.DirEntry, err error) error {
			if left--; left < 0 {
				return filepath.SkipAll
			}
			if err != nil {
				fmt.Fprintln(&b, name, "unreadable")
				return nil //nolint:nilerr // that it cannot be read is its state
			}
			if e.IsDir() && filepath.Clean(name) != top && (isBookkeeping(e.Name()) || e.Name() == modules && !isInSkill(top, name)) {
				return filepath.SkipDir
			}
			if info, err := e.Info(); err == nil {
				fmt.Fprintln(&b, name, info.Mode(), info.Size(), info.ModTime().UnixNano(), changeOf(info))
			}
			return nil
		})
		fmt.Fprintln(&b, dir, err)
	}
	return Digest([]byte(b.String()))
}

// modules is a folder in which no skills are looked for, as it may hold more than all others
// together, unless it lies in one.
const modules = "node_modules"

// isInSkill reports whether a folder above one, no further up than the top, is a skill for some client.
func isInSkill(top, name string) bool {
	for at := name; at != top; {
		at = filepath.Dir(at)
		entries, err := os.ReadDir(at)
		if err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return isDocument(e.Name()) }) {
			return true // as far as is known
		}
	}
	return false
}
