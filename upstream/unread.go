package upstream

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"capgate/wire"
)

// unread are the places of an answer, by the method that is answered, in which a NUL,
// half of a surrogate pair and keys that differ only in case do not matter: programs
// print them, and the gateway reads nothing there. A * is each entry of a list; one of a
// list of definitions is judged by whoever reads it, with [Flaw].
var unread = map[string][]string{
	"tools/call": {
		"result/structuredContent", "result/content/*/text", "result/content/*/resource/text",
		"error/message", "error/data",
	},
	"tools/list":               {"result/tools/*"},
	"prompts/list":             {"result/prompts/*"},
	"resources/list":           {"result/resources/*"},
	"resources/templates/list": {"result/resourceTemplates/*"},
	"skills/list":              {"result/skills/*"},
}

// codePages is the code of an error whose data says which pages a client is to open:
// that is read.
const codePages = -32042

// misread returns what a message, which was read loosely, is to be refused for. The
// method is that of the request that it answers, "" for any other message.
func misread(doc *wire.Doc, method string) error {
	if doc.Sound() {
		return nil
	}
	places := unread[method]
	failure, _ := doc.Root().Get("error")
	code, _ := failure.Get("code")
	if number, _ := code.Int64(); number == codePages {
		places = nil
	}
	var spans []span
	for _, place := range places {
		spans = appendPlaces(spans, doc.Root(), strings.Split(place, "/"))
	}
	return outside(doc, spans)
}

// Flaw returns what an entry of a list, which was read loosely, is to be refused for. In
// the schemas of a tool, the names of properties may differ in case only.
func Flaw(entry *wire.Doc) error {
	if entry.Sound() {
		return nil
	}
	var spans []span
	for _, name := range [...]string{"inputSchema", "outputSchema"} {
		schema, _ := entry.Root().Get(name)
		spans = appendNames(spans, schema, false)
	}
	return outside(entry, spans)
}

// span is a part of a document.
type span struct{ start, end int }

// outside returns a fault of a document that is in none of the parts, nil for none. The
// parts do not overlap.
func outside(doc *wire.Doc, parts []span) error {
	slices.SortFunc(parts, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	for fault := range doc.Faults() {
		i := sort.Search(len(parts), func(i int) bool { return parts[i].end > fault.Offset })
		if i == len(parts) || parts[i].start > fault.Offset {
			return fault
		}
	}
	return nil
}

// appendPlaces appends the parts that a path leads to.
func appendPlaces(dst []span, v wire.Value, path []string) []span {
	switch {
	case v.Kind() == wire.Invalid:
	case len(path) == 0:
		start, end := v.Span()
		dst = append(dst, span{start, end})
	case path[0] == "*":
		for one := range v.Elems() {
			dst = appendPlaces(dst, one, path[1:])
		}
	default:
		one, _ := v.Get(path[0])
		dst = appendPlaces(dst, one, path[1:])
	}
	return dst
}

// appendNames appends where the names of properties begin in a schema, which is what a
// name in different case is told by. What is data is none.
func appendNames(dst []span, schema wire.Value, named bool) []span {
	for one := range schema.Elems() {
		dst = appendNames(dst, one, false)
	}
	for key, one := range schema.Members() {
		keyword, _ := key.Str()
		if named {
			keyword = ""
			start, _ := key.Span()
			dst = append(dst, span{start, start + 1})
		}
		switch keyword {
		case "const", "default", "enum", "examples":
		default:
			dst = appendNames(dst, one, isSchemaMap(keyword))
		}
	}
	return dst
}
