package builtin

import (
	"context"
	"strconv"

	"capgate/wire"
)

// tool is one tool of a server: what its definition says and what it does.
type tool struct {
	name, title, help string
	parameters        []parameter
	hints             hints
	run               func(context.Context, arguments, *memory) (result, error)
}

// hints are the annotations of a tool. Each is said outright, because what a
// definition leaves out a client takes for the worse.
type hints struct {
	reads      bool // it changes nothing
	destroys   bool // it may undo what was there
	idempotent bool // a second identical call changes nothing more
	open       bool // it reaches beyond this machine
}

// kind is what an argument takes.
type kind uint8

const (
	text kind = iota
	number
	flag
	fields // an object of texts, with the names that choices lists
)

// parameter is one argument of a tool. The schema that agents see and the check
// of what they send are both made from it.
type parameter struct {
	name     string
	kind     kind
	required bool
	help     string
	choices  []string // the only texts it takes, or the only names of its fields
	anyCase  bool     // of a text among choices
	most     int64    // the largest number it takes, or bytes of a text
}

// definition appends what tools/list says of the tool.
func (t *tool) definition(dst []byte) []byte {
	dst = wire.AppendString(append(dst, `{"name":`...), t.name)
	dst = wire.AppendString(append(dst, `,"title":`...), t.title)
	dst = wire.AppendString(append(dst, `,"description":`...), t.help)
	dst = append(dst, `,"inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{`...)
	var required []string
	for i, p := range t.parameters {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = p.schema(append(wire.AppendString(dst, p.name), ':'))
		if p.required {
			required = append(required, p.name)
		}
	}
	dst = appendTexts(append(dst, `},"required":`...), required)
	dst = append(dst, `,"additionalProperties":false},"annotations":`...)
	return append(t.hints.append(dst), '}')
}

// schema appends the schema of the argument.
func (p parameter) schema(dst []byte) []byte {
	switch p.kind {
	case text:
		dst = append(dst, `{"type":"string"`...)
		if p.choices != nil {
			dst = appendTexts(append(dst, `,"enum":`...), p.choices)
		} else {
			dst = strconv.AppendInt(append(dst, `,"maxLength":`...), p.most, 10)
		}
	case number:
		dst = append(dst, `{"type":"integer","minimum":1,"maximum":`...)
		dst = strconv.AppendInt(dst, p.most, 10)
	case flag:
		dst = append(dst, `{"type":"boolean"`...)
	case fields:
		dst = append(dst, `{"type":"object","properties":{`...)
		for i, name := range p.choices {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(wire.AppendString(dst, name), `:{"type":"string"}`...)
		}
		dst = append(dst, `},"additionalProperties":false`...)
	}
	return append(wire.AppendString(append(dst, `,"description":`...), p.help), '}')
}

func (h hints) append(dst []byte) []byte {
	dst = strconv.AppendBool(append(dst, `{"readOnlyHint":`...), h.reads)
	dst = strconv.AppendBool(append(dst, `,"destructiveHint":`...), h.destroys)
	dst = strconv.AppendBool(append(dst, `,"idempotentHint":`...), h.idempotent)
	dst = strconv.AppendBool(append(dst, `,"openWorldHint":`...), h.open)
	return append(dst, '}')
}

func appendTexts(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = wire.AppendString(dst, s)
	}
	return append(dst, ']')
}
