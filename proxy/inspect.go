package proxy

import (
	"crypto/sha256"

	"capgate/capability"
	"capgate/upstream"
)

// exam is what can be said of a definition by itself. It is done once, when the
// list is fetched, whoever is shown it then.
type exam struct {
	code   capability.Code // why it may not be shown, "" if it may
	why    string
	digest [sha256.Size]byte
	mirror upstream.Mirror
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
	x.mirror = mirror
	return x
}

// inspect makes tools of a server's list: under the names that agents see, and
// blocked where a definition is not one that may be shown.
func (s *Server) inspect(l *line, items []item) []*tool {
	tools := make([]*tool, len(items))
	var seen []sighting
	var pinned []*tool
	for i, it := range items {
		x := it.exam
		t := &tool{line: l, name: it.text("name"), raw: it.raw, mirror: x.mirror, blocked: x.code, why: x.why}
		t.up = l.up()
		t.exposed, t.gate = exposedName(t.up, t.name), t.up.Tool(t.name)
		if why := validName(t.exposed); why != "" {
			t.blocked, t.why = capability.ToolRejected, why
		}
		if tools[i] = t; t.blocked != capability.ToolRejected {
			seen = append(seen, sighting{tool: t.name, definition: it.doc.Root(), digest: x.digest, suspicion: t.why})
			pinned = append(pinned, t)
		}
	}
	rulings, err := s.pins.judge(l.up().Name, l.up().Pins, seen, s.now())
	if err != nil {
		s.log.Error("tools are hidden because of their pins", "error", err)
	}
	for i, r := range rulings {
		pinned[i].blocked, pinned[i].why = r.code, r.why
	}
	return tools
}
