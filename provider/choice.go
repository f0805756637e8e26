package provider

import (
	"slices"
	"strings"

	"capgate/wire"
)

// lost reports whether a reference is to a tool that was left out, and to none that
// stays.
func (r *request) lost(is func(reference) bool) bool {
	return slices.ContainsFunc(r.gone, is) && !slices.ContainsFunc(r.kept, is)
}

// choice judges the member that says which tool the model has to use, once it is
// known which stay. A choice of what is gone goes too.
func (r *request) choice(v wire.Value) bool {
	r.named(v)
	if r.unoffered(v) {
		return r.unchosen("the tool that it names is not offered")
	}
	switch {
	case v.Equal("none") || v.Kind() == wire.Null:
		return true
	case len(r.gone) > 0 && len(r.kept) == 0:
		return r.unchosen("no tool stays")
	case v.Kind() != wire.Object:
		return true
	}
	if allowed, ok := v.Get("allowed_tools"); ok && !r.allowedTools(allowed) { // chat: an object of its own
		return false
	}
	if textOf(v, "type") == "allowed_tools" {
		return r.allowedTools(v)
	}
	if r.lost(chosen(v)) {
		return r.unchosen("the tool that it names is left out")
	}
	return true
}

// unoffered reports whether a choice names a tool of the provider that is not among
// the tools that stay: a provider could offer what it is told to use.
func (r *request) unoffered(v wire.Value) bool {
	if text, ok := v.Str(); ok {
		return !isListed(text, "auto any none required")
	}
	kind := textOf(v, "type")
	switch kind {
	case "", "auto", "any", "none", "required", "tool", "function", "custom", "allowed_tools", "computer_use":
		return false
	}
	return r.known(kind, v).use != local && !slices.ContainsFunc(r.kept, chosen(v))
}

// named refuses a choice that says more of a tool than which one it is.
func (r *request) named(v wire.Value) {
	for key, member := range v.Members() {
		switch name, _ := key.Str(); name {
		case "type", "name", "function", "custom", "allowed_tools", "mode", "tools", "server_label", "disable_parallel_tool_use":
			r.named(member)
		default:
			r.unknown(name)(member)
		}
	}
	for element := range v.Elems() {
		r.named(element)
	}
}

func (r *request) unchosen(why string) bool {
	r.note(Change{Tool: "tool_choice", Did: Repaired, Why: why})
	return false
}

// allowedTools takes references to what is gone out of a list.
func (r *request) allowedTools(v wire.Value) bool {
	listed, ok := v.Get("tools")
	if v.Kind() == wire.Array {
		listed, ok = v, true
	}
	if !ok {
		return true
	}
	if listed.Len() > maxTools { // each is looked for among the tools
		r.exceeds("tools in its choice")
		return true
	}
	before := len(r.edits)
	if !r.elements(listed, func(t wire.Value) bool { return !r.lost(chosen(t)) && !r.unoffered(t) }) {
		return r.unchosen("no tool that it names stays")
	}
	if len(r.edits) > before {
		r.note(Change{Tool: "tool_choice", Did: Repaired, Why: "some tools that it names are left out"})
	}
	return true
}

// chosen returns what a reference in a choice means.
func chosen(v wire.Value) func(reference) bool {
	kind, name := textOf(v, "type"), textOf(v, "name")
	if f, ok := v.Get(kind); ok && name == "" {
		name = textOf(f, "name") // chat: {"type":"function","function":{"name":…}}
	}
	label := textOf(v, "server_label")
	return func(ref reference) bool {
		switch kind {
		case "tool": // Anthropic knows tools by name
			return ref.name == name
		case "function", "custom":
			return (ref.kind == kind || ref.kind == "") && ref.name == name
		case "mcp":
			return ref.kind == kind && (label == "" || ref.name == label)
		}
		return family(ref.kind) == family(kind)
	}
}

// family is a type without the date of its version.
func family(kind string) string {
	const longest = 128 // that any is
	if len(kind) > longest {
		return kind
	}
	return strings.TrimRight(kind, "_0123456789")
}

// sources repairs references, within a fetch, to tools that are left out.
func (r *request) sources(tools wire.Value) {
	if len(r.gone) == 0 {
		return
	}
	lost := map[string]bool{} // by name
	for _, ref := range r.gone {
		lost[ref.name] = true
	}
	for _, ref := range r.kept {
		delete(lost, ref.name)
	}
	for t := range tools.Elems() {
		from, ok := t.Get("url_sources")
		if kind, _ := typeOf(t); !ok || !slices.Contains(r.kept, reference{kind, textOf(t, "name")}) {
			continue
		}
		for _, source := range from.Members() {
			r.source(source, lost)
		}
	}
}

// source repairs one list of tools whose results may be fetched from. A list that
// nothing is left of means none, or all if it names exceptions.
func (r *request) source(v wire.Value, lost map[string]bool) {
	listed, ok := v.Get("tools")
	if !ok {
		return
	}
	mark := len(r.edits)
	stays := r.elements(listed, func(t wire.Value) bool { return !lost[textOf(t, "name")] })
	if len(r.edits) > mark {
		r.noteOnce(Change{Tool: "url_sources", Did: Repaired, Why: "some tools that it names are left out"})
	}
	if stays {
		return
	}
	r.edits = r.edits[:mark]
	text := `{"type":"none"}`
	if textOf(v, "type") == "except" {
		text = `{"type":"all"}`
	}
	r.replace(v, []byte(text))
}
