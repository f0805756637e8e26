package gate

import (
	"iter"
	"slices"
	"strings"

	"capgate/agents"
	"capgate/capability"
	"capgate/mapping"
	"capgate/wire"
)

// Visible reports whether some call of a tool could be allowed: by the rules that
// calls are decided by, all that one needs taken together.
func (g *Gate) Visible(agent string, t *Tool) bool {
	line, denied := g.available(agent, t)
	return denied == nil && g.possible(agent, t, line)
}

func (g *Gate) possible(agent string, t *Tool, line agents.Lineage) bool {
	_, ok := t.Mapping.Possible(mapping.Call{Name: t.Name, View: g.view(agent, t.View, t.Roots)}, line.Chain, line.Ceilings)
	return ok
}

// PromptVisible reports whether a prompt could be had with some arguments.
func (g *Gate) PromptVisible(agent string, t *Tool) bool {
	line, denied := g.prompts(agent, t)
	if denied != nil {
		return false
	}
	_, ok := t.Mapping.Possible(mapping.Call{Name: t.Name, View: g.view(agent, t.View, t.Roots)}, line.Chain, nil)
	return ok
}

// Prompt decides a prompts/get with its arguments.
func (g *Gate) Prompt(agent string, t *Tool, args wire.Value) Verdict {
	line, denied := g.prompts(agent, t)
	if denied != nil {
		return *denied
	}
	needs, err := t.Mapping.Require(mapping.Call{Name: t.Name, Args: args, View: g.view(agent, t.View, t.Roots), Limits: line.Chain.Limits})
	if err != nil {
		return refused(err)
	}
	v := t.revealing(line, g.all(line, "", needs))
	if !v.differs(t.View) {
		return v
	}
	return v.wanting(g.view(agent, t.View, t.Roots), func(view capability.View) ([]mapping.Need, error) {
		return t.Mapping.Require(mapping.Call{Name: t.Name, Args: args, View: view, Limits: line.Chain.Limits})
	})
}

// PromptName decides what concerns a prompt whose arguments are not known yet, such
// as their completion: that is only for prompts whose arguments are plain texts.
func (g *Gate) PromptName(agent string, t *Tool) Verdict {
	line, denied := g.prompts(agent, t)
	if denied != nil {
		return *denied
	}
	need, err := capability.Keyed(getPrompt, capability.Word{Dim: "name", Value: t.Name})
	if err != nil {
		return refused(err)
	}
	for _, v := range t.Mapping.Surface() {
		if v != getPrompt {
			return Verdict{Decision: capability.Denial(capability.NotAvailable, need), Why: "completion would tell of " + string(v)}
		}
	}
	return g.all(line, "", []mapping.Need{{Requirement: need}})
}

const getPrompt = capability.Verb("prompt.get")

// prompts is the chain that prompts are decided by.
func (g *Gate) prompts(agent string, t *Tool) (agents.Lineage, *Verdict) {
	line, denied := g.lineage(agent, nil)
	if denied == nil {
		line.Chain = t.Declared.link(line.Chain, t.Name)
	}
	return line, denied
}

// Resources is what is known of the resources of one server.
type Resources struct {
	Name     string // of the server
	Item     string // the same among capabilities, where Rye ids of its resources begin with it
	Mapping  *mapping.Mapping
	View     capability.View
	Declared *Declaration
}

// Resource decides whether a resource may be read, or watched.
func (g *Gate) Resource(agent string, r *Resources, uri string) Verdict {
	line, denied := g.lineage(agent, nil)
	if denied != nil {
		return *denied
	}
	line.Chain = r.Declared.link(line.Chain, r.Name)
	needs, err := r.Mapping.Resource(r.Item, uri, r.View)
	if err != nil {
		return refused(err)
	}
	v := g.all(line, "", needs)
	if !v.differs(r.View) {
		return v
	}
	return v.wanting(r.View, func(view capability.View) ([]mapping.Need, error) { return r.Mapping.Resource(r.Item, uri, view) })
}

// Readable reports whether a resource may be read at all, if only once somebody approves.
func (g *Gate) Readable(agent string, r *Resources, uri string) bool {
	v := g.Resource(agent, r, uri)
	return v.Decision.Allowed() || v.Approve != ""
}

// Template reports whether some resource of a template could be read, as far as
// the text of the template and of the grants tells: a template may be shown that
// no resource of is allowed in the end.
func (g *Gate) Template(agent string, r *Resources, template string) bool {
	line, denied := g.lineage(agent, nil)
	if denied != nil || len(template) > mapping.MaxURI {
		return false
	}
	begin, _, _ := strings.Cut(template, "{")
	for uri := range others(begin, r.Mapping.Among(begin, some), fill(template, some, some)) {
		if g.Readable(agent, r, uri) || r.seems(line.Chain, uri, template) {
			return true
		}
	}
	return false
}

// seems reports whether all is held that a resource of a template needs, of whatever scope.
func (r *Resources) seems(chain capability.Chain, uri, template string) bool {
	needs, err := r.Mapping.Resource(r.Item, uri, r.View)
	if err != nil {
		return false
	}
	for _, need := range needs {
		if v := need.Requirement.Verb(); !chain.Holds(v) || v == readResource && !r.meets(chain, template) {
			return false
		}
	}
	return len(needs) > 0
}

// meets reports whether some grant to read resources and a template begin alike.
func (r *Resources) meets(chain capability.Chain, template string) bool {
	uri, _, _ := strings.Cut(template, "{")
	uri = schemed(uri)
	id := r.Item + "." + strings.NewReplacer("://", ".", "/", ".").Replace(uri)
	for g := range chain[0].Set.All() {
		begin, key := uri, "uris"
		if slices.Contains(capability.Implying(readResource), g.Verb()) {
			begin, key = id, "ids"
		} else if g.Verb() != readResource {
			continue
		}
		names, _ := g.Spec().Get(key)
		for _, name := range names.Values {
			if i := strings.IndexAny(name, "*?[{\\"); i >= 0 {
				name = name[:i]
			}
			name = schemed(name)
			if g.Inert() == "" && (strings.HasPrefix(name, begin) || strings.HasPrefix(begin, name)) {
				return true
			}
		}
	}
	return false
}

const readResource = capability.Verb("resource.read")

// schemed is what a URI begins with, with its scheme in small letters.
func schemed(begin string) string {
	if scheme, rest, ok := strings.Cut(begin, ":"); ok {
		return strings.ToLower(scheme) + ":" + rest
	}
	return begin
}

// TemplateVerdict decides what concerns a template as a whole, such as completion:
// that is for agents that may read whatever it may become. What the mapping says of some of it by itself
// is decided as well. A denial is about the template, of which no one grant would do, unless another
// verb is what reads some of it.
func (g *Gate) TemplateVerdict(agent string, r *Resources, template string) Verdict {
	v := r.about(g.whole(agent, r, template), template)
	v.Argument, v.Whole = "", true
	need, err := capability.Keyed(readResource, capability.Word{Dim: "uri", Value: template})
	if err != nil || v.Decision.Allowed() || v.Decision.Need() == nil || v.Decision.Need().Verb() != readResource || v.Approve != "" {
		return v
	}
	why := "completion tells of all that a template may become"
	if v.Why != "" {
		why += ": " + v.Why
	}
	return Verdict{Decision: v.Decision.About(need), Why: why, Whole: true}
}

// about is a denial of what a template or a path may become, as one of the folder that all of it is in: nobody has asked
// for what stands for that.
func (r *Resources) about(v Verdict, text string) Verdict {
	text, _, _ = strings.Cut(text, "{")
	uri := text[:strings.LastIndexByte(text, '/')+1]
	needs, err := r.Mapping.Resource(r.Item, uri, r.View)
	denied := v.Decision.Need()
	if v.Decision.Allowed() || denied == nil || denied.Verb() == readResource || err != nil {
		return v
	}
	for _, need := range needs {
		if need.Requirement.Verb() == denied.Verb() {
			v.Decision, v.Needs = v.Decision.About(need.Requirement), nil
		}
	}
	return v
}

// reads reports whether something of that kind is needed to read what a template may become, or any of the URIs.
func (r *Resources) reads(kind, template string, uris ...string) bool {
	begin, _, _ := strings.Cut(template, "{")
	is := func(v capability.Verb) bool { return v.Resource() == kind }
	for uri := range others(begin, slices.Values(append(uris, fill(template, whatever, below)))) {
		needs, _ := r.Mapping.Resource(r.Item, uri, r.View) // what cannot be read is denied
		if slices.ContainsFunc(needs, func(n mapping.Need) bool { return is(n.Requirement.Verb()) }) {
			return true
		}
	}
	return slices.ContainsFunc(r.Mapping.VerbsAmong(begin), is)
}

func (g *Gate) whole(agent string, r *Resources, template string) (v Verdict) {
	begin, _, _ := strings.Cut(template, "{")
	for uri := range others(begin, r.Mapping.Among(begin, below), fill(template, whatever, below)) {
		if v = g.every(agent, r, uri); !v.Decision.Allowed() {
			break
		}
	}
	return v
}

// every decides on all resources that a URI stands for which has marks for any text: on itself, as links are followed, and
// then exactly, by what grants say. What lies behind the fence is not among what is completed.
func (g *Gate) every(agent string, r *Resources, uri string) Verdict {
	v := g.Resource(agent, r, uri)
	line, denied := g.lineage(agent, nil)
	needs, err := r.Mapping.Resource(r.Item, uri, r.View)
	if !v.Decision.Allowed() || denied != nil || err != nil || anyText.Replace(uri) == uri {
		return v
	}
	line.Chain = r.Declared.link(line.Chain, r.Name)
	for _, need := range needs {
		spec, ok := need.Requirement.Smallest(capability.Root{})
		for i, p := range spec.Scope {
			spec.Scope[i].Values = slices.Clone(p.Values)
			for j, text := range p.Values {
				spec.Scope[i].Values[j] = anyText.Replace(text)
			}
		}
		if ok {
			_, _, ok = question{gate: g, agent: agent, line: line}.granted(spec, capability.Options{})
		}
		if !ok {
			v.Decision = v.Decision.Narrowed("")
			return v
		}
	}
	return v
}

// anyText makes patterns of marks, and of what is left of them in a key without the two letters that a disk has.
var anyText = strings.NewReplacer(below, "**", whatever, "*", below[1:], "**", whatever[1:], "*", below[2:], "**", whatever[2:], "*")

const (
	some     = "xx"                              // stands for a text, or a scheme
	whatever = "whatever-it-may-be-0123456789"   // stands for any text
	below    = "whatever-it-may-be-below-012345" // for one that may hold slashes
	port     = "01234"                           // stands for one, behind the colon of a host
)

// others adds to entries of a mapping what else a template may become that begins so: where it leaves
// its scheme open, what needs something else by its scheme.
func others(begin string, entries iter.Seq[string], more ...string) iter.Seq[string] {
	if !strings.Contains(begin, ":") {
		more = append(more, "file:///"+whatever, "https://"+whatever+".com/")
	}
	return func(yield func(string) bool) {
		for _, uri := range slices.AppendSeq(more, entries) {
			if !yield(uri) {
				return
			}
		}
	}
}

// fill puts a text in the place of each expression of a template, and another one
// where it may hold slashes: with the operators of RFC 6570 that keep them or make
// them, and with the star by which some servers mean the rest of a path.
func fill(template, plain, deep string) string {
	return filling{plain: plain, deep: deep}.of(template)
}

// filling is what is put in the places of expressions.
type filling struct {
	plain, deep string
	given       map[string]string // for variables by their names
}

// leavesOut reports whether variables that are not given are nothing.
func (f filling) leavesOut() bool { return f.plain == "" }

func (f filling) of(template string) string {
	var b strings.Builder
	for rest := template; ; {
		literal, after, ok := strings.Cut(rest, "{")
		b.WriteString(literal)
		if !ok {
			return b.String()
		}
		expression, more, closed := strings.Cut(after, "}")
		text := f.expand(expression)
		if before, ok := strings.CutSuffix(b.String(), ":"); ok && text == f.plain && strings.Contains(before, "://") && strings.Count(before, "/") == 2 {
			text = port
		}
		b.WriteString(text)
		if rest = more; !closed {
			return b.String()
		}
	}
}

// expand writes one expression as it is with a text for each of its variables.
func (f filling) expand(expression string) string {
	text := f.plain
	if strings.ContainsAny(expression, "+#/*") {
		text = f.deep
	}
	if expression == "" {
		return text
	}
	names, texts, given := f.values(variables(expression), text)
	switch {
	case given:
		text = strings.Join(texts, ",")
	case f.leavesOut():
		return ""
	}
	switch operator := expression[:1]; operator {
	case "#", "/", ".":
		if operator == "/" && given {
			text = strings.Join(texts, operator)
		}
		return operator + text
	case "?", "&", ";":
		for i, name := range names {
			value, ok := f.given[name]
			if !ok {
				value = f.plain
			}
			texts[i] = name + "=" + value
		}
		return operator + strings.Join(texts, strings.ReplaceAll(operator, "?", "&"))
	}
	return text
}

// values are what stands for variables, another text for those that are not given, unless those are nothing.
func (f filling) values(all []string, open string) (names, texts []string, given bool) {
	for _, name := range all {
		value, ok := f.given[name]
		switch {
		case ok:
			given = true
		case f.leavesOut():
			continue
		default:
			value = open
		}
		names, texts = append(names, name), append(texts, value)
	}
	return names, texts, given
}
