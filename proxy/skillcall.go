package proxy

import (
	"context"
	"encoding/base64"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"capgate/capability"
	"capgate/gate"
	"capgate/skills"
	"capgate/upstream"
	"capgate/wire"
)

func (c *call) listSkills() reply { return c.list(skillList) }

// getSkill answers skills/get.
func (c *call) getSkill() reply {
	if _, ok := c.skillURI(); !ok {
		return c.malformed("skills/get names no skill")
	}
	f, denied := c.findFile(c.exposed)
	if f == nil {
		return c.deny(denied)
	}
	if f != f.skill.main() {
		return c.deny(noSkill(""))
	}
	return reply{result: append(c.fresh(append([]byte(`{"skill":`), f.skill.entry()...)), '}')}
}

// skillURI reads the URI that a request is about.
func (c *call) skillURI() (string, bool) {
	uri, _ := c.params.Get("uri")
	var ok bool
	c.exposed, ok = uri.Str()
	return c.exposed, ok && c.exposed != ""
}

// noSkill is the denial of a skill that there is not, and of one that the agent does
// not see: it cannot tell them apart. The operator is told why.
func noSkill(why string) gate.Verdict {
	if why == "" {
		why = "no skill has a file of that URI"
	}
	return gate.Verdict{Decision: capability.Denial(capability.UnknownTool, nil), Why: why}
}

// lacking says for the operator what an agent lacks for a skill.
func lacking(v gate.Satisfaction) string {
	if v.Satisfied {
		return ""
	}
	why := "the skill is hidden from the agent: " + v.Why
	for i, m := range v.Missing {
		if i == 0 {
			why = "the skill requires " + m.Need.String()
		} else {
			why += " and " + m.Need.String()
		}
	}
	return why
}

// findFile finds a file of a skill that the agent sees: by its URI exactly as it is
// written, and decided anew.
func (c *call) findFile(uri string) (f *bundled, denied gate.Verdict) {
	why := ""
	down := c.seek(func(cat *catalogue) owner {
		f, why = cat.bundled[uri], cat.unseen[uri]
		return f.owner()
	}, skillList)
	return c.seen(f, why, down)
}

// seen is a file that was found, or why the agent does not see it.
func (c *call) seen(f *bundled, why string, down *mute) (*bundled, gate.Verdict) {
	switch {
	case down != nil:
		return nil, c.silence(down)
	case f == nil:
		return nil, noSkill(why)
	}
	if v := c.policy.Gate.Skill(c.agent, f.skill.about); !v.Satisfied {
		return nil, noSkill(lacking(v))
	}
	return f, gate.Verdict{}
}

// owner is whose the file is.
func (f *bundled) owner() owner {
	if f == nil {
		return owner{}
	}
	return f.skill.owner()
}

func (s *skill) owner() owner { return owner{line: s.line, of: skillList, ours: s.line == nil} }

// readFile answers resources/read for a file of a skill.
func (c *call) readFile(f *bundled) reply {
	got, r, ok := c.open(f)
	switch {
	case !ok:
		return r
	case got.result != nil:
		return reply{result: private(got.result)}
	}
	dst := wire.AppendString([]byte(`{"contents":[{"uri":`), f.uri)
	if kind := f.mimeType(); kind != "" {
		dst = wire.AppendString(append(dst, `,"mimeType":`...), kind)
	}
	if isText(got.data) {
		dst = wire.AppendString(append(dst, `,"text":`...), string(got.data))
	} else {
		dst = append(dst, `,"blob":"`...)
		dst = append(base64.StdEncoding.AppendEncode(dst, got.data), '"')
	}
	return reply{result: append(c.kept(append(dst, `}]`...)), '}')}
}

// opened is a file that was read.
type opened struct {
	data   []byte
	result []byte // as its server answered, under the URI that agents know; nil for one of the gateway's own
}

// isText reports whether bytes can be a text in JSON that every reader takes for the
// same.
func isText(data []byte) bool {
	return utf8.Valid(data) && !slices.ContainsFunc(data, func(c byte) bool { return c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == 0x7f })
}

// open records that a file is read, and reads it: the bytes that were decided on, or
// none.
func (c *call) open(f *bundled) (opened, reply, bool) {
	c.target = f.uri
	if f.skill.line != nil {
		c.behind = f.skill.line.up().Name
	}
	if r, ok := c.allow(gate.Verdict{}); !ok {
		return opened{}, r, false
	}
	got, r, ok := c.bytesOf(f)
	switch {
	case !ok:
		return opened{}, r, false
	case !c.server.isClean(f.skill.server(), got.data) || !c.server.isClean(f.skill.server(), got.result): // changed, it would not be the file any more
		return opened{}, c.withheld("the file holds a secret"), false
	}
	c.outcome(len(got.data), "")
	return got, reply{}, true
}

// withheld is the answer when a file that may be read is not one that can be shown.
func (c *call) withheld(why string) reply {
	c.outcome(0, why)
	return c.deny(gate.Verdict{Decision: capability.Denial(capability.NotAvailable, nil), Why: why})
}

// server is the one that a skill is of, nil for one that the gateway has.
func (s *skill) server() *Upstream {
	if s.line == nil {
		return nil
	}
	return s.line.up()
}

// bytesOf fetches a file from where it lies.
func (c *call) bytesOf(f *bundled) (opened, reply, bool) {
	if f.skill.line != nil {
		return c.fetchFile(f)
	}
	data, err := f.skill.about.Read(f.name)
	if err != nil {
		return opened{}, c.withheld(err.Error()), false
	}
	return opened{data: data}, reply{}, true
}

// fetchFile reads a file of a server's skill. What the server serves must be what
// its skill was decided on.
func (c *call) fetchFile(f *bundled) (opened, reply, bool) {
	l := f.skill.line
	o := &order{line: l, ups: c.ups, renewed: c.renewed, method: "resources/read", name: f.name, body: func(dst []byte) ([]byte, error) {
		return wire.AppendString(append(dst, `"uri":`...), f.name), nil
	}}
	ctx, cancel := context.WithTimeout(c.ctx, c.timeLimit(l.up()))
	defer cancel()
	answer, err := c.known(c.send(ctx, o))
	if err != nil {
		return opened{}, c.failed(o, err), false
	}
	if answer.Error != nil {
		c.outcome(len(answer.Error), "the server answered with an error")
		return opened{}, c.translated(o, answer.Error), false
	}
	got, err := readContent(answer.Result, f.name)
	if err == nil && !f.skill.madeUp() {
		err = servedFile{digest: f.digest, size: f.size}.check(got.data)
	}
	if err != nil {
		l.renew(skillList)
		return opened{}, c.failed(o, &upstream.Failed{Upstream: l.up().Name, Text: "serves another file than it has listed", Err: err}), false
	}
	now, about := c.server.policy.Load(), f.skill.about // as another may have come while the server was waited for
	why := "the skill is hidden from the agent since"
	if f.skill.madeUp() {
		about, why = now.readSkill(f.skill.from, got.data), "what the server has made up is not the skill that was decided on"
	}
	if !now.Gate.Skill(c.agent, about).Satisfied {
		return opened{}, c.withheld(why), false
	}
	result := wire.AppendString(append([]byte(nil), answer.Result[:got.start]...), f.uri)
	result = append(result, answer.Result[got.end:]...)
	if answer.Type == "" {
		result = c.closing(result)
	}
	return opened{data: got.data, result: result}, reply{}, true
}

const smuggled = "what the server answered holds a file of a skill"

// smuggles reports whether the answer to the reading of some other resource, or to a prompt, holds
// what may be files of the server's skills, or is of what has become a skill's: it has an error's
// answer then. Which skills there are has to be known as of when it came, and those that were there
// when it was asked for count as well: one may have gone since it was answered.
func (c *call) smuggles(l *line, prompt string, result []byte) bool {
	before := c.looked
	var now *catalogue
	if c.sure(l, func(cat *catalogue) *line { now = cat; return l }) != nil {
		return true
	}
	return c.holdsSkills(now, l, prompt, result) || before != nil && before != now && c.holdsSkills(before, l, prompt, result)
}

// holdsSkills is the same by what is known in one catalogue.
func (c *call) holdsSkills(cat *catalogue, l *line, prompt string, result []byte) bool {
	i := slices.IndexFunc(cat.sources, func(s source) bool { return s.line == l })
	if i < 0 {
		return true
	}
	s := &cat.sources[i]
	if s.skills.isPrompt(prompt) || prompt == "" && s.secludes(c.exposed) {
		return true
	}
	var doc wire.Doc
	return doc.Parse(result, wire.Limits{Bytes: len(result) + 1}) != nil || contains(doc.Root(), s.secludes)
}

// contains reports whether a value has in it what is of such a URI, and not only where that is.
func contains(v wire.Value, is func(uri string) bool) bool {
	for one := range v.Elems() {
		if contains(one, is) {
			return true
		}
	}
	for key, one := range v.Members() {
		name, _ := key.Str()
		if uri, ok := one.Str(); ok && strings.EqualFold(name, "uri") && !isLink(v) && is(uri) || contains(one, is) {
			return true
		}
	}
	return false
}

// isLink reports whether an entry says where something is, and not what is there.
func isLink(v wire.Value) bool {
	for key := range v.Members() {
		if name, _ := key.Str(); strings.EqualFold(name, "text") || strings.EqualFold(name, "blob") {
			return false
		}
	}
	kind, _ := v.Get("type")
	return kind.Equal("resource_link")
}

// promptSkill answers prompts/get for a skill: its text without the frontmatter.
func (c *call) promptSkill(s *skill) reply {
	if c.args.Len() > 0 {
		return c.deny(gate.Verdict{Decision: capability.Denial(capability.MalformedArguments, nil), Why: "a skill takes no arguments"})
	}
	f, denied := c.findFile(s.main().uri)
	if f == nil {
		return c.deny(denied)
	}
	got, r, ok := c.open(f)
	if !ok {
		return r
	}
	body, ok := skills.Body(got.data)
	if !ok || !isText(body) {
		return c.deny(gate.Verdict{Decision: capability.Denial(capability.NotAvailable, nil), Why: "the skill is not a text"})
	}
	dst := append([]byte(nil), `{"messages":[{"role":"user","content":{"type":"text","text":`...)
	dst = append(wire.AppendString(dst, string(body)), `}}]}`...)
	return reply{result: c.closing(dst)}
}

// promptEntry is a skill as a prompt.
func (s *skill) promptEntry(name string) []byte {
	dst := wire.AppendString([]byte(`{"name":`), name)
	dst = wire.AppendString(append(dst, `,"description":`...), s.about.Description)
	return append(dst, '}')
}

// readFolder answers resources/directory/read: what lies in a folder of the skills
// that the agent sees.
func (c *call) readFolder() reply {
	uri, ok := c.skillURI()
	if cursor, has := c.params.Get("cursor"); !ok || has && cursor.Kind() != wire.Null {
		return c.malformed("resources/directory/read names no folder, or a page that it does not have")
	}
	var entries []byte
	why := ""
	down := c.seek(func(cat *catalogue) (at owner) {
		entries, at = cat.folder(uri)
		why = cat.unseen[uri+"/"+skillFile]
		return at
	}, skillList)
	switch {
	case down != nil:
		return c.deny(c.silence(down))
	case entries == nil:
		return c.deny(noSkill(why))
	}
	return reply{result: append(c.fresh(append(append([]byte(`{"resources":[`), entries...), ']')), '}')}
}

// folder is what lies in a folder, and where that is, nil when there is none of that URI. Where it is of several
// servers, it is a list as any: nobody waits for one that does not say what it has by now.
func (cat *catalogue) folder(uri string) (dst []byte, at owner) {
	if _, rest, ok := strings.Cut(uri, "://"); !ok || rest == "" {
		return nil, at
	}
	if len(uri) > longestPlace {
		return nil, at
	}
	inside, within, owners := map[string]*bundled{}, uri+"/", map[owner]bool{} // a folder has no file of its own
	for of, f := range cat.bundled {
		if rest, ok := strings.CutPrefix(of, within); ok {
			at = f.owner()
			owners[at] = true
			name, _, deeper := strings.Cut(rest, "/")
			if deeper {
				f = nil
			}
			inside[uri+"/"+name] = f
		}
	}
	for _, uri := range slices.Sorted(maps.Keys(inside)) {
		if len(dst) > 0 {
			dst = append(dst, ',')
		}
		if f := inside[uri]; f != nil {
			dst = append(dst, f.resource()...)
			continue
		}
		dst = wire.AppendString(append(dst, `{"uri":`...), uri)
		dst = wire.AppendString(append(dst, `,"name":`...), segmentName(path.Base(uri)))
		dst = append(dst, `,"mimeType":"inode/directory"}`...)
	}
	if len(owners) > 1 {
		at = owner{ours: true}
	}
	return dst, at
}
