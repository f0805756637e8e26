package proxy

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"capgate/skills"
	"capgate/wire"
)

// skill is a skill as agents see it: one of the gateway's own, or one of a server.
type skill struct {
	about *skills.Skill
	line  *line   // the connection to the server, nil for one of the gateway's own
	from  *served // what the server lists
	root  string  // the URI of its folder, as agents see it
	files []*bundled

	held   ruling // why somebody must look at it first
	hidden string // why the agent does not see it, "" if it does
}

// bundled is one file of a skill.
type bundled struct {
	skill  *skill
	name   string // within the folder, or the server's URI
	uri    string // as agents see it
	digest string
	size   int64
}

// main is the SKILL.md.
func (s *skill) main() *bundled {
	i := slices.IndexFunc(s.files, func(f *bundled) bool { return f.uri == s.root+"/"+skillFile })
	if i < 0 {
		return nil
	}
	return s.files[i]
}

// madeUp reports whether the server makes the skill up as it is read.
func (s *skill) madeUp() bool { return s.from != nil && s.from.files == nil }

// isFlawed reports whether what a server says of the skill is not as it must be.
func (s *skill) isFlawed() bool { return s.from != nil && s.from.flaw != "" }

// ownSkill is a skill of the gateway's own folders.
func ownSkill(about *skills.Skill) *skill {
	s := &skill{about: about, root: pathURI(about.Path)}
	for _, f := range about.Files {
		uri := pathURI(about.Path + "/" + f.Path)
		s.files = append(s.files, &bundled{skill: s, name: f.Path, uri: uri, digest: f.Digest, size: f.Size})
	}
	return s
}

// servedSkill is a skill of a server. What it requires is read out of its SKILL.md,
// as far as there is one that may be shown, and not once the server's are too many.
func servedSkill(p *Policy, u *Upstream, l *line, from *served, over bool) *skill {
	s := &skill{line: l, from: from, root: exposedURI(u, from.root), about: new(skills.Skill)}
	if over {
		s.about.Broken = "the skills of its server require too much together, or have too much frontmatter"
	}
	if from.flaw != "" || over {
		return s
	}
	s.about = from.understood(p)
	files := from.files
	if s.madeUp() {
		files = []servedFile{{uri: from.uri(), digest: skills.Digest(from.text), size: int64(len(from.text))}}
	}
	for _, f := range files {
		s.files = append(s.files, &bundled{skill: s, name: f.uri, uri: exposedURI(u, f.uri), digest: f.digest, size: f.size})
	}
	return s
}

// understanding is a skill as it was read against a library.
type understanding struct {
	library *skills.Library
	about   *skills.Skill
	front   item // what lists say of it, where there is something in that to be looked at first
}

// understood reads the SKILL.md that was fetched with the list, once for each library: what
// agents see is put together anew whenever a server says that anything has changed.
func (s *served) understood(p *Policy) *skills.Skill {
	if u := s.read.Load(); u != nil && u.library == p.Skills {
		return u.about
	}
	about := p.readSkill(s, s.text)
	s.read.Store(&understanding{p.Skills, about, s.front(about.Frontmatter)})
	return about
}

// readSkill reads the SKILL.md of a server's skill. One that says of itself something
// else than the list does requires what nobody has.
func (p *Policy) readSkill(from *served, text []byte) *skills.Skill {
	as := skills.Served{Path: segmentName(path.Base(from.root)), SkillMD: text, Manifest: from.manifest}
	for _, f := range from.files {
		as.Files = append(as.Files, segmentName(strings.TrimPrefix(f.uri, from.root+"/")))
	}
	about := p.Skills.Parse(as)
	if from.description != "" && from.description != about.Description {
		return &skills.Skill{HeadSize: about.HeadSize, Broken: cmp.Or(about.Broken, "the list of its server describes it otherwise than it does itself")}
	}
	return about
}

// maxServedNeeds is how many things the skills of one server may require together. To
// compare one with what an agent holds takes some thousandth of a second, for each agent.
const maxServedNeeds = 2048

// maxServedHeads is how many bytes of frontmatter the skills of one server may have together.
// To read them takes up to a second, and keeps the lists of all servers waiting.
const maxServedHeads = 1 << 20

// addServed enters the skills of one server. What is read of them ends where it is too
// much.
func (a *assembly) addServed(from *source, items []item) {
	from.unknown, from.spoke = items == nil, from.line.speaks.Load()
	from.skills = newClaimed()
	needs, heads, before := 0, 0, len(a.skilled)
	for _, it := range items {
		s := servedSkill(a.policy, from.up, from.line, it.skill, needs > maxServedNeeds || heads > maxServedHeads)
		if it.skill.root != "" {
			from.skills.enter(it.skill)
			from.skills.name(segmentName(path.Base(it.skill.root)), it.skill.name, s.about.Name)
		}
		needs, heads = needs+len(s.about.Needs), heads+s.about.HeadSize
		a.skilled = append(a.skilled, s)
	}
	a.tenant.server.withholdSkills(from.up, a.skilled[before:])
}

// secludes reports whether a resource of the server may be one of a skill's files,
// however its URI is written. Those are read as files of a skill or not at all.
func (s *source) secludes(uri string) bool {
	if s.unknown || !s.mayHaveSkills() {
		return s.unknown || isSkillURI(uri)
	}
	as := spell(uri)
	return isSkillURI(uri) || as.any && mayBeSkillFile(uri) || slices.ContainsFunc(as.Places, isSkillFile) || slices.ContainsFunc(as.Unmarked(), isUnmarkedSkillFile) || s.skills.has(as)
}

// mayHaveSkills reports whether the server has skills, or speaks the extension, by which it may have
// some that are in no list. One that is started anew may speak it no more.
func (s *source) mayHaveSkills() bool { return s.skills.any() || s.spoke || s.line.speaks.Load() }

// unless is the connection that a resource is read over, nil when the resource may be one of
// a skill's files, or nobody knows.
func (cat *catalogue) unless(l *line, uri string) *line {
	if slices.ContainsFunc(cat.sources, func(s source) bool { return s.line == l && !s.secludes(uri) }) {
		return l
	}
	return nil
}

// secludesTemplate reports whether a template may describe a skill's files.
func (s *source) secludesTemplate(template string) bool {
	literal, _, _ := strings.Cut(template, "{")
	return s.secludes(literal) || s.skills.fitting(template, literal)
}

// tells reports whether what completes a template may be the name of a skill, or of one
// of its files.
func (s *source) tells(template string) bool {
	literal, _, _ := strings.Cut(template, "{")
	return s.secludes(literal) || s.skills.areBehind(literal) || s.secludes(unfilled(template))
}

// unfilled is a template without what is filled in: one for the SKILL.md of any folder ends in that.
func unfilled(template string) string {
	var all strings.Builder
	for more := true; more; {
		var literal string
		literal, template, more = strings.Cut(template, "{")
		all.WriteString(literal)
		_, template, _ = strings.Cut(template, "}")
	}
	return all.String()
}

// finishSkills decides which skills the agent sees, and as what.
func (a *assembly) finishSkills(visible *outlook) {
	for own := range a.policy.Skills.All() {
		a.skilled = append(a.skilled, ownSkill(own))
	}
	slices.SortStableFunc(a.skilled, func(x, y *skill) int { return cmp.Compare(x.root, y.root) })
	for _, s := range a.skilled {
		a.judge(s, visible)
	}
	a.collide()
	a.contest()
	a.nest()
	a.bundled, a.unseen = map[string]*bundled{}, map[string]string{}
	for _, s := range a.skilled {
		if s.hidden != "" {
			a.unseen[s.root+"/"+skillFile] = s.hidden
			for _, f := range s.files {
				a.unseen[f.uri] = s.hidden
			}
			continue
		}
		a.skills = append(a.skills, s)
		for _, f := range s.files {
			a.bundled[f.uri] = f
		}
		a.addPrompt(s)
	}
}

// judge says why the agent does not see a skill by itself, if that is so.
func (a *assembly) judge(s *skill, visible *outlook) {
	switch v := visible.skill(s); {
	case s.isFlawed():
		s.hidden = s.from.flaw
	case s.about.Broken != "":
		s.hidden = s.about.Broken
	case s.main() == nil:
		s.hidden = "it has no " + skillFile
	case s.held.code != "":
		s.hidden = s.held.why
	case !v.shown:
		s.hidden = v.why
	case !a.tenant.server.isClean(s.server(), s.entry()):
		s.hidden = "what it says of itself holds a secret"
	}
}

// addPrompt makes a prompt of a skill that the agent sees, under its name.
func (a *assembly) addPrompt(s *skill) {
	p := &prompt{exposed: s.about.Name, skill: s, raw: s.promptEntry(s.about.Name)}
	if s.line != nil {
		p.exposed = exposedName(s.line.up(), s.about.Name)
	}
	if validName(p.exposed) != "" {
		a.prompts[p.exposed] = nil // nobody has it
	} else if a.namePrompt(p) == nil {
		a.prompted = append(a.prompted, p)
	}
}

// collide finds the skills that agents could not tell apart: of one place, or of one
// that lies in the place of somebody else's. Nobody has either. What has a flaw takes no
// place of others, or any server could hide all skills by URIs that it spells in its own way.
func (a *assembly) collide() {
	const several = "several skills claim its place"
	at, same := map[string]*skill{}, map[*line]map[string]*skill{} // the same of each server
	enter := func(places map[string]*skill, s *skill) {
		key := looseFolder(s.root)
		if other, taken := places[key]; taken {
			s.hidden, other.hidden = several, several
			return
		}
		places[key] = s
	}
	for _, s := range a.skilled {
		if same[s.line] == nil {
			same[s.line] = map[string]*skill{}
		}
		if enter(same[s.line], s); !s.isFlawed() {
			enter(at, s)
		}
	}
	for key, s := range at {
		for up := path.Dir(key); strings.Contains(up, "/"); up = path.Dir(up) {
			if above := at[up]; above != nil && above.line != s.line {
				s.hidden, above.hidden = several, several
			}
		}
	}
}

// contest finds the skills of a server that have the URI of another's resource among their
// files, or one that it describes. Whoever asks for that must not be answered by the wrong
// one, and nobody has either. Under the scheme of skills there are no other resources.
func (a *assembly) contest() {
	literals := make([]string, len(a.templates))
	for i, t := range a.templates {
		literals[i], _, _ = strings.Cut(t.uri, "{")
	}
	for _, s := range a.skilled {
		if s.line == nil || isSkillURI(s.root) {
			continue
		}
		const contested = "another server has resources in its place"
		folder := s.root + "/"
		for _, f := range s.files {
			if r, known := a.shared[f.uri]; known && (r == nil || r.line != s.line) {
				a.shared[f.uri], s.hidden = nil, contested
			}
		}
		for i, literal := range literals {
			if a.templates[i].line != s.line && (within(s.root, literal) || strings.HasPrefix(folder, literal)) {
				s.hidden = contested
				break
			}
		}
	}
}

// nest hides every skill that has, among its files, one which lies in a skill that the
// agent does not see, or the SKILL.md of none: it would be read there. Those that lie
// deepest come first. Those of the gateway's own require what the ones inside them do.
func (a *assembly) nest() {
	at := map[*line]map[string]*skill{} // by their folders
	var deepest []*skill
	for _, s := range a.skilled {
		if s.line == nil {
			continue
		}
		if at[s.line] == nil {
			at[s.line] = map[string]*skill{}
		}
		at[s.line][looseFolder(s.from.root)] = s
		deepest = append(deepest, s)
	}
	slices.SortStableFunc(deepest, func(x, y *skill) int { return cmp.Compare(len(y.root), len(x.root)) })
	for _, s := range deepest {
		if slices.ContainsFunc(s.files, func(f *bundled) bool { return f.liesHidden(at[s.line]) }) {
			s.hidden = "a skill inside it is hidden"
		}
	}
}

// liesHidden reports whether a file of a server's skill lies in a skill further in
// that is hidden, or is a SKILL.md and that of none. Skills are given by their folders.
func (f *bundled) liesHidden(at map[string]*skill) bool {
	uri, own := looseURI(f.name), looseURI(f.skill.from.root)
	if strings.EqualFold(path.Base(uri), skillFile) && f != f.skill.main() {
		if inner := at[path.Dir(uri)]; inner == nil || inner.main() == nil || inner.main().name != f.name {
			return true
		}
	}
	for up := path.Dir(uri); len(up) > len(own); up = path.Dir(up) {
		if inner := at[up]; inner != nil && inner.hidden != "" {
			return true
		}
	}
	return false
}

// entry is a skill as skills/list and skills/get show it.
func (s *skill) entry() []byte {
	dst := wire.AppendString([]byte(`{"uri":`), s.main().uri)
	dst = append(append(dst, `,"frontmatter":`...), s.about.Frontmatter...)
	if s.madeUp() {
		return append(dst, `,"resources":"dynamic"}`...)
	}
	dst = append(dst, `,"resources":[`...)
	for i, f := range s.files {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = wire.AppendString(append(dst, `{"uri":`...), f.uri)
		dst = append(append(dst, `,"digest":"`...), f.digest...)
		dst = strconv.AppendInt(append(dst, `","size":`...), f.size, 10)
		dst = append(dst, '}')
	}
	return append(dst, "]}"...)
}

// resource is a file as one of the resources, for clients that know of no skills.
func (f *bundled) resource() []byte {
	name, about := path.Base(f.uri), ""
	if f == f.skill.main() {
		name, about = f.skill.about.Name, f.skill.about.Description
	}
	dst := wire.AppendString([]byte(`{"uri":`), f.uri)
	dst = wire.AppendString(append(dst, `,"name":`...), segmentName(name))
	if about != "" {
		dst = wire.AppendString(append(dst, `,"description":`...), about)
	}
	if kind := f.mimeType(); kind != "" {
		dst = wire.AppendString(append(dst, `,"mimeType":`...), kind)
	}
	if !f.skill.madeUp() {
		dst = strconv.AppendInt(append(dst, `,"size":`...), f.size, 10)
	}
	return append(dst, '}')
}

// template is where the files are that belong to the SKILL.md, "" when there are none.
func (s *skill) template() string {
	if len(s.files) < 2 {
		return ""
	}
	return s.root + "/{+" + fileVariable + "}"
}

const fileVariable = "file" // of such a template

// templateEntry is the template as the list of templates shows it.
func (s *skill) templateEntry() []byte {
	dst := wire.AppendString([]byte(`{"uriTemplate":`), s.template())
	dst = wire.AppendString(append(dst, `,"name":`...), s.about.Name)
	return append(append(dst, `,"description":"The files that belong to the skill"`...), '}')
}

// mimeType is what the end of a file's name says that it is, "" for nothing that is
// told everywhere the same.
func (f *bundled) mimeType() string {
	switch strings.ToLower(path.Ext(f.uri)) {
	case ".md":
		return "text/markdown"
	case ".txt":
		return "text/plain"
	case ".html":
		return "text/html"
	case ".css":
		return "text/css"
	case ".csv":
		return "text/csv"
	case ".js", ".mjs":
		return "text/javascript"
	case ".json":
		return "application/json"
	case ".yaml", ".yml":
		return "application/yaml"
	case ".xml":
		return "application/xml"
	case ".pdf":
		return "application/pdf"
	case ".png":
		return "image/png"
	case ".jpg", ".jpeg":
		return "image/jpeg"
	case ".svg":
		return "image/svg+xml"
	}
	return ""
}

// listed finds the skill that a server lists of which a resource is a file, nil for none.
func (l *line) listed(uri string) *served {
	g := &l.lists[skillList]
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, it := range g.items {
		if !strings.HasPrefix(uri, it.skill.root) { // as of most
			continue
		}
		if _, ok := it.skill.file(uri); ok || uri == it.skill.uri() {
			return it.skill
		}
	}
	return nil
}

// tellReaders tells those who watch files of skills which of them have changed. Files
// that an agent does not see any more are gone from its lists, and it is told of that.
func (t *tenant) tellReaders(cat *catalogue) {
	t.mu.Lock()
	sessions, streams := t.listening()
	t.mu.Unlock()
	tell := func(changed []string, notify func(method string, params []byte, may func() bool)) {
		for _, uri := range changed {
			if body, ok := t.server.news(cat.bundled[uri].skill.server(), uri); ok {
				notify(resourceUpdated, body, t.shows(cat.bundled[uri].skill))
			}
		}
	}
	for _, s := range sessions {
		s.mu.Lock()
		changed := cat.changed(s.watched)
		s.mu.Unlock()
		tell(changed, s.notify)
	}
	for _, l := range streams {
		l.mu.Lock()
		changed := cat.changed(l.watched)
		l.mu.Unlock()
		tell(changed, l.notify)
	}
}

// shows says, whenever it is asked, whether the agent satisfies a skill that it was shown.
func (t *tenant) shows(s *skill) func() bool {
	return func() bool {
		return (s.line == nil || s.line.inUse()) && t.server.policy.Load().Gate.Skill(t.agent, s.about).Satisfied
	}
}

// changed returns the files that are not what their watchers know, who know it then.
func (cat *catalogue) changed(all map[string]*watched) []string {
	var uris []string
	for uri, w := range all {
		if f := cat.bundled[uri]; f != nil && w.digest != "" && w.digest != f.digest {
			w.digest = f.digest
			uris = append(uris, uri)
		}
	}
	slices.Sort(uris)
	return uris
}
