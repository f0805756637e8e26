package proxy

import (
	"crypto/sha256"

	"capgate/capability"
	"capgate/upstream"
	"capgate/wire"
)

// exam is what can be said of a definition by itself. It is done once, when the
// list is fetched, whoever is shown it then.
type exam struct {
	code   capability.Code // why it may not be shown, "" if it may
	why    string
	digest [sha256.Size]byte
	mirror upstream.Mirror
}

// look looks at a definition.
func look(k listKind, it item) *exam {
	if k == toolList {
		return examine(it)
	}
	return skim(it)
}

// examine looks at the definition of a tool.
func examine(it item) *exam {
	def := it.doc.Root()
	x := &exam{digest: digest(def)}
	x.code, x.why = vet(def)
	schema, _ := def.Get("inputSchema")
	mirror, err := upstream.ParamHeaders(schema)
	if err != nil {
		x.code, x.why = capability.ToolRejected, err.Error()
	}
	if flaw := upstream.Flaw(it.doc); flaw != nil {
		x.code, x.why = capability.ToolRejected, "the definition can be read in different ways: "+flaw.Error()
	}
	x.mirror = mirror
	return x
}

// skim looks at the definition of anything else that agents are shown: a prompt, a
// resource, a template. Its texts reach the model as those of a tool do.
func skim(it item) *exam {
	def := it.doc.Root()
	x := &exam{why: suspicion(def)}
	if x.why != "" {
		x.code, x.digest = capability.ToolQuarantined, digest(def)
	}
	if flaw := upstream.Flaw(it.doc); flaw != nil {
		x.code, x.why = capability.ToolRejected, "it can be read in different ways: "+flaw.Error()
	}
	return x
}

// What is approved of other things than tools is kept under names that no tool has.
const (
	promptPin   = "prompt:"
	resourcePin = "resource:"
	templatePin = "template:"
	skillPin    = "skill:"
)

// withheld rules on the prompts, resources, templates or skills of a server that somebody
// must look at first, by their place in the list. All others are shown.
func (s *Server) withheld(u *Upstream, kind string, name func(i int) string, items []item) map[int]ruling {
	var seen []sighting
	var places []int
	held := map[int]ruling{}
	for i, it := range items {
		switch x := it.exam; {
		case x == nil || x.code == "":
		case x.code == capability.ToolRejected:
			held[i] = ruling{x.code, x.why}
		default:
			seen = append(seen, sighting{tool: kind + name(i), definition: it.doc.Root(), digest: x.digest, suspicion: x.why})
			places = append(places, i)
		}
	}
	if len(seen) == 0 {
		return held
	}
	rulings, err := s.pins.judge(u.Name, Off, seen, s.now())
	if err != nil {
		s.log.Error("definitions are hidden because of their pins", "error", err)
	}
	for i, r := range rulings {
		if r.code != "" {
			held[places[i]] = r
		}
	}
	return held
}

// named says what the entries of a list are called, by one of their keys.
func named(items []item, key string) func(i int) string {
	return func(i int) string { return items[i].text(key) }
}

// front is what lists say of a skill, if somebody must look at that first: its frontmatter, and with
// it what its folders and files are called, where that is not fit to be read. Folders are listed by
// names that have no escapes.
func (s *served) front(frontmatter []byte) item {
	if len(frontmatter) == 0 { // nobody is shown it
		return item{}
	}
	doc, err := wire.Parse(frontmatter)
	if err != nil { // as one with two keys that differ in case
		return item{exam: &exam{code: capability.ToolRejected, why: "its frontmatter may be read in two ways: " + err.Error()}}
	}
	said := item{doc: doc}
	names := wire.AppendString([]byte("["), segmentName(s.uri()))
	for _, f := range s.files {
		names = wire.AppendString(append(names, ','), segmentName(f.uri))
	}
	whole := append(append([]byte(`{"frontmatter":`), frontmatter...), `,"names":`...)
	if doc, err = wire.Parse(append(append(whole, names...), "]}"...)); err != nil {
		return item{exam: &exam{code: capability.ToolRejected, why: "its files have names that cannot be read"}}
	}
	all, _ := doc.Root().Get("names")
	for name := range all.Elems() {
		if suspicion(name) != "" {
			said.doc = doc // also where the frontmatter was approved before
			break
		}
	}
	if said.exam = skim(said); said.exam.code == "" {
		return item{}
	}
	return said
}

// withholdSkills hides the skills of a server of which somebody must look first at what lists say:
// that reaches a model as the definitions of prompts and resources do.
func (s *Server) withholdSkills(u *Upstream, all []*skill) {
	var found []item
	var whose []*skill
	for _, one := range all {
		if read := one.from.read.Load(); !one.isFlawed() && read != nil && read.front.exam != nil {
			found, whose = append(found, read.front), append(whose, one)
		}
	}
	name := func(i int) string { return whose[i].from.uri() }
	for i, r := range s.withheld(u, skillPin, name, found) {
		whose[i].held = r
	}
}

// inspect makes tools of a server's list: under the names that agents see, and
// blocked where a definition is not one that may be shown.
func (s *Server) inspect(from *source, items []item) []*tool {
	tools := make([]*tool, len(items))
	var cases [Off + 1]docket
	u := from.up
	for i, it := range items {
		x := it.exam
		t := &tool{line: from.line, up: u, name: it.text("name"), raw: it.raw, mirror: x.mirror, blocked: x.code, why: x.why}
		t.exposed, t.gate = exposedName(u, t.name), u.Tool(t.name)
		if why := validName(t.exposed); why != "" {
			t.blocked, t.why = capability.ToolRejected, why
		}
		if tools[i] = t; t.blocked != capability.ToolRejected {
			d := &cases[min(u.pins(t.name), Off)]
			d.seen = append(d.seen, sighting{tool: t.name, definition: it.doc.Root(), digest: x.digest, suspicion: t.why})
			d.tools = append(d.tools, t)
		}
	}
	for mode := range cases {
		d := &cases[mode]
		if len(d.seen) == 0 {
			continue
		}
		rulings, err := s.pins.judge(u.Name, Pins(mode), d.seen, s.now())
		if err != nil {
			s.log.Error("tools are hidden because of their pins", "error", err)
		}
		for i, r := range rulings {
			d.tools[i].blocked, d.tools[i].why = r.code, r.why
		}
	}
	return tools
}

// docket is the tools of a list that one mode of pins judges.
type docket struct {
	seen  []sighting
	tools []*tool
}
