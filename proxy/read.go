package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"capgate/capability"
	"capgate/gate"
	"capgate/mapping"
	"capgate/skills"
	"capgate/upstream"
	"capgate/wire"
)

// getPrompt answers prompts/get.
func (c *call) getPrompt() reply {
	if why := c.named(); why != "" {
		return c.malformed(why)
	}
	p, denied := c.findPrompt(c.exposed)
	if p == nil {
		return c.deny(denied)
	}
	if p.skill != nil {
		return c.promptSkill(p.skill)
	}
	c.behind, c.target, c.declared = p.up.Name, p.up.called(p.name), p.up.Declared
	v := c.policy.Gate.Prompt(c.agent, p.up.promptOf(p.name), c.args)
	v = c.withhold(v, p.held, promptPin+p.name)
	b, unfilled := c.policy.blanks(c.args, v, upstream.Mirror{})
	if unfilled != nil {
		return c.deny(*unfilled)
	}
	r := c.permitted(v, &order{line: p.line, method: c.method, name: p.name, body: c.nameAndArguments(p.name, b)})
	if r.result != nil && c.smuggles(p.line, p.name, r.result) {
		return c.deny(gate.Verdict{Decision: capability.Denial(capability.NotAvailable, nil), Why: smuggled})
	}
	return c.tame(r)
}

// tame withholds a prompt whose text has clients do something by themselves, without
// asking, that the agent may not: run commands, or read files.
func (c *call) tame(r reply) reply {
	if r.result == nil {
		return r
	}
	var doc wire.Doc
	if doc.Parse(r.result, wire.Limits{Bytes: len(r.result) + 1}) != nil {
		return fail(codeInternal, "what the server says to the prompt cannot be read")
	}
	texts := appendTexts(nil, doc.Root(), isSaid)
	all := []string{strings.Join(texts, ""), strings.Join(texts, "\n")} // clients put them together
	for _, text := range appendTexts(nil, doc.Root(), isShown) {
		if strings.ContainsAny(text, "@`$") { // nothing begins without
			all = append(all, text)
		}
	}
	if len(all) > maxTexts {
		return c.deny(gate.Verdict{Decision: capability.Denial(capability.LimitExceeded, nil), Why: "what the server says to the prompt has too many parts to be looked at"})
	}
	slices.Sort(all)
	for _, text := range slices.Compact(all) { // most have one text
		s := c.policy.Gate.Skill(c.agent, skills.Prompt(text))
		if s.Satisfied {
			continue
		}
		v := gate.Verdict{Decision: capability.Denial(s.Code, nil), Why: cmp.Or(s.Why, "some clients do by themselves what the text of the prompt says")}
		if len(s.Missing) > 0 {
			v.Verb = capability.Verb(s.Missing[0].Need.Verb)
		}
		return c.deny(v)
	}
	return r
}

// maxTexts is how many texts of one prompt are looked at.
const maxTexts = 4096

// isSaid reports whether a string of that name is a text of a message.
func isSaid(name string) bool {
	return strings.EqualFold(name, "text") || strings.EqualFold(name, "content")
}

// isShown reports whether some client puts a string of that name into a text, as several do
// with the names and types of what comes along.
func isShown(name string) bool {
	return !strings.EqualFold(name, "data") && !strings.EqualFold(name, "blob")
}

// appendTexts appends the strings of such names that a message has, in its order.
func appendTexts(texts []string, v wire.Value, is func(name string) bool) []string {
	if text, ok := v.Str(); ok {
		return append(texts, text)
	}
	for one := range v.Elems() {
		texts = appendTexts(texts, one, is)
	}
	for key, one := range v.Members() {
		if name, _ := key.Str(); one.Kind() != wire.String || is(name) {
			texts = appendTexts(texts, one, is)
		}
	}
	return texts
}

// withhold denies what would be allowed of a definition that somebody must look at
// first. The agent that could not use it in any case is told nothing about it.
func (c *call) withhold(v gate.Verdict, held ruling, pin string) gate.Verdict {
	if held.code == "" || !v.Decision.Allowed() {
		return v
	}
	c.pin = pin
	return gate.Verdict{Decision: capability.Denial(held.code, nil), Needs: v.Needs, Why: held.why}
}

// permitted forwards what a verdict allows.
func (c *call) permitted(v gate.Verdict, o *order) reply {
	if !v.Decision.Allowed() {
		return c.deny(v)
	}
	o.ups, o.renewed = c.ups, c.renewed
	if r, ok := c.allow(v); !ok {
		return r
	}
	r := c.forward(o)
	if c.modern && r.failure == nil && c.method == "resources/read" {
		r.result = private(r.result)
	}
	return r
}

// errOther says that the server has been started anew meanwhile.
var errOther = errors.New("the server was started anew")

// still refuses to send to a server that was started anew what was decided by the lists of the one
// before: it may be of a skill by now.
func (c *call) still(o *order) error {
	if o.ups == 0 || o.ups == o.line.ups.Load() {
		return nil
	}
	if o.up {
		c.paused = o
	}
	return errOther
}

// try has an order go up over one connection, and over another where that is gone. It is not decided once more for a server
// that is started anew by each: what it failed by counts then.
func (o *order) try(ctx context.Context, fn func(conn upstream.Conn) (upstream.Answer, error)) (upstream.Answer, error) {
	var failed error
	answer, err := o.line.link.Do(ctx, func(conn upstream.Conn) (upstream.Answer, error) {
		answer, err := fn(conn)
		if !errors.Is(err, errOther) {
			failed = err
		}
		return answer, err
	})
	if o.renewed && failed != nil && errors.Is(err, errOther) {
		err = failed
	}
	return answer, err
}

// private makes a result one that is kept for this agent only, and not for long.
func private(result []byte) []byte {
	var doc wire.Doc
	if doc.Parse(result, wire.Limits{Bytes: len(result) + 1}) != nil {
		return result
	}
	if v, ok := doc.Root().Get("resultType"); ok && !v.Equal("complete") {
		return result
	}
	missing := ""
	if _, ok := doc.Root().Get("ttlMs"); !ok {
		missing = `"ttlMs":0`
	}
	v, ok := doc.Root().Get("cacheScope")
	switch {
	case ok && !v.Equal("private"):
		start, end := v.Span()
		result = []byte(string(result[:start]) + `"private"` + string(result[end:]))
	case !ok && missing != "":
		missing += `,"cacheScope":"private"`
	case !ok:
		missing = `"cacheScope":"private"`
	}
	if missing == "" {
		return result
	}
	return withMembers(result, missing)
}

// findPrompt finds a prompt, which may have become a skill's.
func (c *call) findPrompt(name string) (*prompt, gate.Verdict) {
	var p *prompt
	var known bool
	down := c.seek(func(cat *catalogue) owner {
		switch p, known = cat.prompts[name]; {
		case p == nil:
			return owner{}
		case p.skill != nil:
			return p.skill.owner()
		}
		return owner{line: p.line, of: promptList}
	}, promptList, skillList)
	switch {
	case known && p == nil:
		return nil, gate.Verdict{Decision: capability.Denial(capability.NameCollision, nil), Why: "several prompts claim the name"}
	case down != nil:
		return nil, c.silence(down)
	}
	return p, gate.Verdict{Decision: capability.Denial(capability.UnknownTool, nil), Why: "no prompt has that name"}
}

// readResource answers resources/read.
func (c *call) readResource() reply {
	if _, ok := c.skillURI(); !ok {
		return c.malformed(c.method + " names no resource")
	}
	f, l, held, denied := c.holder(c.exposed)
	switch {
	case f != nil:
		return c.readFile(f)
	case l == nil:
		return c.deny(denied)
	}
	c.behind, c.target, c.declared = l.up().Name, l.up().Name, l.up().Declared
	v := c.policy.Gate.Resource(c.agent, l.up().resources(), c.exposed)
	r := c.permitted(c.withhold(v, held, resourcePin+c.exposed), &order{line: l, method: c.method, name: c.exposed, body: func(dst []byte) ([]byte, error) {
		uri, _ := c.params.Get("uri")
		return append(append(dst, `"uri":`...), uri.Raw()...), nil
	}})
	if r.result != nil && c.smuggles(l, "", r.result) {
		return c.deny(noSkill(smuggled))
	}
	return r
}

// holder finds the file of a skill that a resource is, or the server that it is read from: the only one
// that lists it, or the only one that could have it. What it lists may be held back.
func (c *call) holder(uri string) (f *bundled, l *line, held ruling, denied gate.Verdict) {
	switch {
	case len(uri) > mapping.MaxURI: // before all that takes long to look at
		return nil, nil, held, gate.Verdict{Decision: capability.Denial(capability.LimitExceeded, nil), Why: fmt.Sprintf("the URI is longer than %d bytes", mapping.MaxURI)}
	case isSkillURI(uri):
		f, denied = c.findFile(uri)
		return f, nil, held, denied
	}
	why := ""
	down := c.seek(func(cat *catalogue) owner {
		if f, why = cat.bundled[uri], cat.unseen[uri]; f != nil || why != "" {
			return f.owner()
		}
		if l, held, denied = cat.holder(uri); cat.shared[uri] != nil {
			return owner{line: l, of: skillList} // the skills of a server are known by its resources
		}
		return owner{line: l, of: templateList}
	}, resourceList, templateList, skillList)
	switch {
	case f != nil || why != "":
		f, denied = c.seen(f, why, down)
		return f, nil, held, denied
	case down != nil && denied.Decision.Code != capability.NameCollision:
		return nil, nil, held, c.silence(down)
	}
	return nil, l, held, denied
}

// holder is the same, as far as is known.
func (c *catalogue) holder(uri string) (l *line, held ruling, denied gate.Verdict) {
	if r, known := c.shared[uri]; known {
		if r == nil {
			return nil, held, collision("several servers claim the resource")
		}
		left := math.MaxInt
		if t := c.rival(r, &left); t != nil {
			return nil, held, collision(fmt.Sprintf("upstream %q lists the resource, and a template of upstream %q describes it", r.up.Name, t.up.Name))
		}
		return c.beside(r.line, uri, r.held)
	}
	found, other := describes(c.templates, uri)
	if found == nil {
		found, other = describes(c.veiled, uri)
	}
	switch {
	case other != nil:
		return nil, held, collision(fmt.Sprintf("templates of upstream %q and of upstream %q fit the resource", found.up.Name, other.up.Name))
	case found != nil:
		held, l = found.held, found.line
	case len(c.sources) == 1:
		l = c.sources[0].line // there is no other it could be
	default:
		return nil, held, unknownResource("no server lists the resource and no template fits it, so that it is not known which of them has it")
	}
	if c.leaves(l, uri) {
		return nil, held, unknownResource("its server has just listed it, or said something else of it, and does not say yet which skills it has")
	}
	if held.code == "" {
		held = c.alike(l, uri)
	}
	return c.beside(l, uri, held)
}

// leaves reports whether a resource is of what is left out while the skills of its server are not known.
func (c *catalogue) leaves(l *line, uri string) bool {
	return slices.ContainsFunc(c.sources, func(s source) bool {
		return s.line == l && slices.ContainsFunc(s.left, func(left string) bool { return left == uri || fits(left, uri) })
	})
}

// beside is the connection that a resource beside skills is read over, or why it may be one of a
// skill's files, which the operator is told.
func (c *catalogue) beside(l *line, uri string, is ruling) (over *line, held ruling, denied gate.Verdict) {
	if over = c.unless(l, uri); over != nil {
		return over, is, gate.Verdict{}
	}
	if slices.ContainsFunc(c.sources, func(s source) bool { return s.line == l && s.unknown }) {
		return nil, is, unknownResource("its server does not say which skills it has, and this may be of one")
	}
	return nil, is, unknownResource("it may be a file of a skill of its server, and is read as one or not at all")
}

// unknownResource is the verdict on what no server is known to have.
func unknownResource(why string) gate.Verdict {
	return gate.Verdict{Decision: capability.Denial(capability.UnknownTool, nil), Why: why}
}

// collision is the verdict on what nobody has, as several claim it.
func collision(why string) gate.Verdict {
	return gate.Verdict{Decision: capability.Denial(capability.NameCollision, nil), Why: why}
}

// disputed are the templates that several servers have: what one of them describes is nobody's.
func disputed(all []*resource) map[string]bool {
	owners, several := map[string]*line{}, map[string]bool{}
	for _, r := range all {
		if l, taken := owners[r.uri]; taken && l != r.line {
			several[r.uri] = true
		}
		owners[r.uri] = r.line
	}
	return several
}

// rival finds a template of another server that describes what one lists: neither has it then,
// and it is not shown. Who looks at many has only so much left for it.
func (c *catalogue) rival(r *resource, left *int) *resource {
	for i := range c.sources {
		l := c.sources[i].line
		if l == r.line {
			continue
		}
		for _, t := range c.claims[l] {
			if *left -= len(t.uri); *left < 0 {
				return nil
			}
			if fits(t.uri, r.uri) {
				return t
			}
		}
	}
	return nil
}

// mostHeld is how many bytes of templates are held against what a list shows. What is beyond is
// shown, and is not found by who reads it if a template describes it.
const mostHeld = 32 << 20

// isAnchored reports whether a template says of what scheme its resources are. One that could be
// anything takes nothing away from who lists it.
func isAnchored(template string) bool {
	literal, _, _ := strings.Cut(template, "{")
	return strings.Contains(literal, ":")
}

// describes finds the template that fits a resource, and one of another server that does too.
func describes(templates []*resource, uri string) (found, other *resource) {
	for _, t := range templates {
		switch {
		case !fits(t.uri, uri):
		case found == nil:
			found = t
		case t.line != found.line:
			return found, t
		}
	}
	return found, nil
}

// fits reports whether a URI could be one that a template describes: what stands
// between its expressions is there, in order. It chooses among servers; what may
// be read is decided on the URI itself.
func fits(template, uri string) bool {
	literal, rest, more := strings.Cut(template, "{")
	if !more {
		return template == uri
	}
	if !strings.HasPrefix(uri, literal) {
		return false
	}
	uri = uri[len(literal):]
	for {
		_, after, ok := strings.Cut(rest, "}")
		if !ok {
			return false
		}
		literal, rest, more = strings.Cut(after, "{")
		if !more {
			return strings.HasSuffix(uri, literal)
		}
		at := strings.Index(uri, literal)
		if at < 0 {
			return false
		}
		uri = uri[at+len(literal):]
	}
}
