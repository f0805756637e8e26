package proxy

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"capgate/capability"
	"capgate/gate"
	"capgate/wire"
)

// complete answers completion/complete, which needs what the thing needs that is
// being completed.
func (c *call) complete() reply {
	ref, _ := c.params.Get("ref")
	what, _ := ref.Get("type")
	argument, ok := readCompletion(c.params)
	if !ok {
		return c.malformed("completion/complete completes no argument")
	}
	if r, ok := c.completeSkill(ref, argument); ok {
		return r
	}
	var l *line
	var v gate.Verdict
	var shown []byte
	var finds func(*catalogue) *line
	var tells func(*gate.Gate) func(text string) bool
	target := ""
	switch name, _ := ref.Get("name"); {
	case what.Equal("ref/prompt"):
		c.exposed, _ = name.Str()
		p, denied := c.findPrompt(c.exposed)
		if p == nil {
			return c.deny(denied)
		}
		if p.skill != nil { // which takes no arguments
			return reply{result: c.closing([]byte(`{"completion":{"values":[]}}`))}
		}
		target = p.up.called(p.name)
		l, v = p.line, c.withhold(c.policy.Gate.PromptName(c.agent, p.up.promptOf(p.name)), p.held, promptPin+p.name)
		shown = wire.AppendString([]byte(`{"type":"ref/prompt","name":`), p.name)
		finds = func(cat *catalogue) *line {
			if p = cat.prompts[c.exposed]; p == nil {
				return nil
			}
			return p.line
		}
		tells = func(g *gate.Gate) func(string) bool {
			may := g.PromptName(c.agent, p.up.promptOf(p.name)).Decision.Allowed()
			return func(string) bool { return may }
		}
	case what.Equal("ref/resource"):
		uri, _ := ref.Get("uri")
		c.exposed, _ = uri.Str()
		t, denied := c.template(c.exposed)
		if t == nil {
			return c.deny(denied)
		}
		of := gate.Completing{Template: t.uri, Name: argument.name, Value: argument.value, Others: argument.others}
		l, v = t.line, c.withhold(c.policy.Gate.Completion(c.agent, t.up.resources(), of), t.held, templatePin+t.uri)
		tells = func(g *gate.Gate) func(string) bool { return g.Completes(c.agent, t.up.resources(), of) }
		shown = wire.AppendString([]byte(`{"type":"ref/resource","uri":`), t.uri)
		finds = func(cat *catalogue) *line { return cat.template(c.exposed).of() }
	default:
		return c.malformed("completion/complete has no reference that is known")
	}
	c.behind, c.target = l.up().Name, cmp.Or(target, l.up().Name)
	r := c.permitted(v, &order{line: l, method: c.method, body: func(dst []byte) ([]byte, error) {
		return argument.append(append(append(append(dst, `"ref":`...), shown...), '}')), nil
	}})
	return c.completed(r, l, what.Equal("ref/resource"), finds, tells)
}

// completion is a variable that is completed, and what stands for others. What else stands in a request
// nobody decides on, and so it does not go up.
type completion struct {
	name, value string
	others      map[string]string // nil for none
}

// readCompletion reads it. What is given is text.
func readCompletion(params wire.Value) (c completion, ok bool) {
	argument, _ := params.Get("argument")
	name, _ := argument.Get("name")
	value, _ := argument.Get("value")
	var isName, isValue bool
	c.name, isName = name.Str()
	c.value, isValue = value.Str()
	if !isName || !isValue {
		return c, false
	}
	around, has := params.Get("context")
	if !has || around.Kind() == wire.Null {
		return c, true
	}
	others, some := around.Get("arguments")
	switch {
	case around.Kind() != wire.Object || some && others.Kind() != wire.Object && others.Kind() != wire.Null:
		return c, false
	case !some || others.Kind() == wire.Null:
		return c, true
	}
	c.others = map[string]string{}
	for name, value := range others.Members() {
		key, _ := name.Str()
		if c.others[key], ok = value.Str(); !ok {
			return c, false
		}
	}
	return c, true
}

func (c completion) append(dst []byte) []byte {
	dst = wire.AppendString(append(dst, `,"argument":{"name":`...), c.name)
	dst = append(wire.AppendString(append(dst, `,"value":`...), c.value), '}')
	if c.others == nil {
		return dst
	}
	dst = append(dst, `,"context":{"arguments":{`...)
	for i, name := range slices.Sorted(maps.Keys(c.others)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(wire.AppendString(dst, name), ':')
		dst = wire.AppendString(dst, c.others[name])
	}
	return append(dst, `}}`...)
}

// completed withholds an answer that may be of a skill, and what of it may not be told by now.
func (c *call) completed(r reply, l *line, template bool, finds func(*catalogue) *line, tells func(*gate.Gate) func(text string) bool) reply {
	why := "what is completed is there no more, or has become a skill's"
	switch {
	case r.result == nil:
		return r
	case !c.stays(l, finds):
	default: // by the policy of what was looked at now
		if r.result, why = c.looked.told(l, r.result, template, tells(c.policy.Gate)); why == "" {
			return r
		}
	}
	return c.deny(gate.Verdict{Decision: capability.Denial(capability.NotAvailable, nil), Why: why})
}

// told is what of an answer may be told: no text that may be a file of the server's skills, and none that may not be.
// What completes a template of which one is such a file is told of nothing.
func (c *catalogue) told(l *line, result []byte, template bool, tells func(text string) bool) (told []byte, why string) {
	const unread = "what completes it cannot be read"
	i := slices.IndexFunc(c.sources, func(s source) bool { return s.line == l })
	var doc wire.Doc
	if i < 0 || doc.Parse(result, wire.Limits{Bytes: len(result) + 1}) != nil {
		return nil, unread
	}
	completion, _ := doc.Root().Get("completion")
	values, ok := completion.Get("values")
	switch {
	case ok && values.Kind() == wire.Null:
		return result, ""
	case values.Kind() != wire.Array:
		return nil, unread
	}
	list, n, more, mayTell := c.sources[i].listed(values, template, tells)
	switch {
	case !mayTell:
		return nil, "what completes it names a skill"
	case n == values.Len():
		return result, ""
	}
	narrowed := append([]byte(`{"values":`), list...)
	if said, ok := completion.Get("hasMore"); ok && !more {
		more, _ = said.Bool()
	}
	narrowed = strconv.AppendBool(append(narrowed, `,"hasMore":`...), more)
	start, end := completion.Span()
	return slices.Concat(result[:start], append(narrowed, '}'), result[end:]), ""
}

// listed is the list of those texts that may be told, how many they are, and whether there are more than were looked
// at. None is told of a template where one may be a file of the server's skills. What completes a prompt is any text, so
// that only a whole URI is one there.
func (s *source) listed(values wire.Value, template bool, tells func(text string) bool) (list []byte, n int, more, mayTell bool) {
	list, looked, begun := []byte{'['}, 0, time.Now()
	for v := range values.Elems() {
		text, isText := v.Str()
		secluded := isText && (template || strings.Contains(text, "://")) && s.secludes(text)
		if secluded && template {
			return nil, 0, false, false
		}
		if more = n == maxCompleted || looked >= maxLooked || time.Since(begun) > lookTime; more {
			break
		}
		if looked += lookCost + len(text); !isText || secluded || !tells(text) {
			continue
		}
		if n++; n > 1 {
			list = append(list, ',')
		}
		list = append(list, v.Raw()...)
	}
	return append(list, ']'), n, more, true
}

// What is looked at of an answer: as many texts as may be told several times over, or fewer long ones.
const (
	maxLooked = 1 << 20
	lookCost  = 512 // of a text, besides its bytes
	lookTime  = time.Second
)

// stays reports whether what has been completed is a server's, and no skill's, also by what the server
// said before its answer came.
func (c *call) stays(l *line, finds func(*catalogue) *line) bool {
	var now *line
	return c.sure(l, func(cat *catalogue) *line { now = finds(cat); return now }) == nil && now == l
}

// template finds a template that may be completed by its text. What completes it may be of a skill
// that its server has added.
func (c *call) template(text string) (found *resource, denied gate.Verdict) {
	down := c.seek(func(cat *catalogue) owner {
		found = cat.template(text)
		return owner{line: found.of(), of: templateList}
	}, templateList, skillList)
	if down != nil {
		return nil, c.silence(down)
	}
	return found, gate.Verdict{Decision: capability.Denial(capability.UnknownTool, nil), Why: "no such template"}
}

// of is the connection to the server that has it, nil for none.
func (r *resource) of() *line {
	if r == nil {
		return nil
	}
	return r.line
}

// template is the same, as far as is known.
func (c *catalogue) template(text string) *resource {
	var found *resource
	for _, t := range c.templates {
		if t.uri != text {
			continue
		}
		if found != nil && found.line != t.line {
			return nil // several servers claim it
		}
		found = t
	}
	if found != nil && slices.ContainsFunc(c.sources, func(s source) bool { return s.line == found.line && s.tells(text) }) {
		return nil
	}
	return found
}

// maxCompleted is how many values one completion may have.
const maxCompleted = 100

// completeSkill answers completion/complete for the files of a skill, if it is about one
// that the agent sees.
func (c *call) completeSkill(ref wire.Value, argument completion) (reply, bool) {
	what, _ := ref.Get("type")
	uri, _ := ref.Get("uri")
	if c.exposed, _ = uri.Str(); c.exposed == "" || !what.Equal("ref/resource") {
		return reply{}, false
	}
	var s *skill
	down := c.seek(func(cat *catalogue) owner {
		i := slices.IndexFunc(cat.skills, func(s *skill) bool { return s.template() == c.exposed })
		if i < 0 {
			s = nil
			return owner{ours: cat.template(c.exposed) != nil} // which is a server's, and no skill's
		}
		s = cat.skills[i]
		return s.owner()
	}, templateList, skillList)
	switch {
	case down != nil:
		return c.deny(c.silence(down)), true
	case s == nil:
		return reply{}, false
	}
	return c.completeFile(s, argument), true
}

// completeFile completes the path of one of a skill's files.
func (c *call) completeFile(s *skill, argument completion) reply {
	if argument.name != fileVariable {
		return c.malformed("completion/complete completes no argument")
	}
	dst, n := []byte(`{"completion":{"values":[`), 0
	for _, f := range s.files {
		rest, _ := strings.CutPrefix(f.uri, s.root+"/")
		if !strings.HasPrefix(rest, argument.value) || n == maxCompleted {
			continue
		}
		if n++; n > 1 {
			dst = append(dst, ',')
		}
		dst = wire.AppendString(dst, rest)
	}
	return reply{result: c.closing(append(dst, `]}}`...))}
}
