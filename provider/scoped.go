package provider

import (
	"slices"
	"strings"

	"capgate/capability"
	"capgate/wire"
)

// scoped gives a tool the domains that are held, within those that it asks for. A
// tool that none is left for is left out: an empty list would be no list at all.
func (r *request) scoped(v wire.Value, s scope, kind string) (capability.Code, string) {
	if r.policy.waits(s.verb) {
		return capability.RequiresApproval, unapproved + s.verb
	}
	s.members = r.vouched(v, s.members)
	if inner, ok := v.Get(s.under); ok && s.under != "" {
		s.inner = r.vouched(inner, s.inner)
	}
	in, lists, code, why := placesOf(v, &s)
	if code != "" {
		return code, why
	}
	if r.web().all {
		r.rests(get, "*")
		r.whole(v, kind)
		r.onX(kind, v, in)
		return "", ""
	}
	if r.lists++; r.lists > maxScoped {
		r.exceeds("lists of domains")
		return "", ""
	}
	if len(r.web().held) == 0 && len(r.web().left) == 0 {
		return r.absent(), "it needs net.get for the hosts that it may reach"
	}
	wants, ok := wantsOf(lists, s)
	if !ok {
		return capability.MalformedArguments, "its lists of domains cannot be read"
	}
	got := r.web().meet(wants, s.list)
	if len(got.names) == 0 {
		return capability.ScopeViolation, "nothing that it asks for is held in a form that the provider takes" + because(got.notes)
	}
	r.rests(get, got.names...)
	r.whole(v, kind)
	r.restrict(v, in, s, kind)
	if s.flat {
		r.without(v, strings.Fields(s.inner)...) // what is held goes where the provider looks for it
	}
	if r.limit(v, in, s, got) {
		r.note(Change{Tool: clip(kind), Did: Narrowed, Code: capability.ScopeViolation, Why: "it reaches no more than net.get" + because(got.notes), Hosts: got.names})
	}
	r.wider(kind, got)
	return "", ""
}

// vouched adds to the names of members that are known those that the operator vouches
// for, and looks through what stands there.
func (r *request) vouched(v wire.Value, names string) string {
	for key, member := range v.Members() {
		if name, _ := key.Str(); slices.Contains(r.policy.Pass, name) && !isListed(name, names) {
			r.unknown(name)(member)
			names += " " + name
		}
	}
	return names
}

// placesOf finds what the lists of a tool belong in, and what they stand in.
func placesOf(v wire.Value, s *scope) (in, lists wire.Value, code capability.Code, why string) {
	in, lists = v, v
	if s.under != "" {
		in, _ = v.Get(s.under)
		lists = in
	}
	if s.flat = s.flat && in.Kind() == wire.Invalid; s.flat {
		lists = v
		s.members += " " + s.inner
	}
	name := stranger(v, s.members)
	if name == "" && s.under != "" {
		if in.Kind() != wire.Invalid && in.Kind() != wire.Null && in.Kind() != wire.Object {
			return in, lists, capability.MalformedArguments, s.under + " should be an object"
		}
		name = stranger(in, s.inner)
	}
	if name != "" {
		return in, lists, capability.NotAvailable, name + " is not known in a tool of this type"
	}
	return in, lists, "", ""
}

// wider says which names the provider takes for more than was granted.
func (r *request) wider(kind string, got answer) {
	if len(got.wider) > 0 {
		r.note(Change{Tool: clip(kind), Did: Wider, Why: "the provider includes everything beneath these names; subdomains: strict leaves them out", Hosts: got.wider})
	}
}

// because adds the first reasons to a sentence.
func because(notes []string) string {
	const most = 3
	if len(notes) == 0 {
		return ""
	}
	if len(notes) > most {
		notes = append(slices.Clone(notes[:most]), "and more")
	}
	return " (" + strings.Join(notes, "; ") + ")"
}

// absent is the code for an agent without any host. A grant that allows nothing as
// written is none.
func (r *request) absent() capability.Code {
	target, _ := capability.ParseTarget("example.com")
	switch d := r.policy.require(capability.Net(get, target)); {
	case d.Allowed():
		return capability.LimitExceeded
	case d.Code == capability.ScopeViolation && len(d.Held()) == 0:
		return capability.CapabilityAbsent
	case d.Code == capability.ScopeViolation && r.policy.Authority.Waits(get): // whatever is held
		return capability.RequiresApproval
	default:
		return d.Code
	}
}

// wantsOf reads the lists of a tool.
func wantsOf(in wire.Value, s scope) (a asked, ok bool) {
	allowed, ok := in.Get(s.allowed)
	if ok && allowed.Kind() != wire.Null {
		a.limited = true
		if a.allowed, ok = textsOf(allowed); !ok {
			return a, false
		}
	}
	blocked, ok := in.Get(s.blocked)
	if ok && blocked.Kind() != wire.Null {
		if a.blocked, ok = textsOf(blocked); !ok {
			return a, false
		}
	}
	return a, true
}

func textsOf(v wire.Value) ([]string, bool) {
	if v.Len() > maxList {
		return nil, false
	}
	texts := make([]string, 0, v.Len())
	for element := range v.Elems() {
		text, ok := element.Str()
		if !ok {
			return nil, false
		}
		texts = append(texts, text)
	}
	return texts, v.Kind() == wire.Array
}

// limit writes the list of what is allowed, and takes out the list of what is not:
// providers take one of the two. It reports whether that says something new.
func (r *request) limit(v, in wire.Value, s scope, got answer) bool {
	text := appendList(nil, got.names)
	allowed, has := in.Get(s.allowed)
	blocked, _ := in.Get(s.blocked)
	blocks := blocked.Kind() == wire.Array
	switch {
	case in.Len() == 0: // there is nothing yet that the list could stand in
		return r.set(v, s.under, s.object(v, text))
	case blocks && !has:
		r.rename(in, s.blocked, s.allowed)
		return r.replace(blocked, text) || true
	case blocks:
		r.without(in, s.blocked)
	}
	if has && same(allowed, got.names) {
		return blocks
	}
	return r.set(in, s.allowed, text)
}

// object writes what the list stands in, anew, with what a flat tool has of it.
func (s scope) object(v wire.Value, text []byte) []byte {
	object := append(append(wire.AppendString([]byte{'{'}, s.allowed), ':'), text...)
	for engine := range strings.FieldsSeq(s.engines) {
		object = append(append(object, `,"engine":`...), wire.AppendString(nil, engine)...)
		break
	}
	for key, member := range v.Members() {
		name, _ := key.Str()
		if s.flat && isListed(name, s.inner) && !isListed(name, s.allowed+" "+s.blocked+" engine "+s.wide) {
			object = append(append(wire.AppendString(append(object, ','), name), ':'), member.Raw()...)
		}
	}
	return append(object, '}')
}

// same reports whether a list says exactly these texts.
func same(v wire.Value, names []string) bool {
	texts, ok := textsOf(v)
	return ok && slices.Equal(texts, names)
}

// rename gives a member of an object another name.
func (r *request) rename(object wire.Value, from, to string) {
	for key := range object.Members() {
		if key.Equal(from) {
			r.replace(key, wire.AppendString(nil, to))
		}
	}
}

// restrict takes out what reaches past a list of domains, and chooses an engine
// that keeps to it.
func (r *request) restrict(v, in wire.Value, s scope, kind string) {
	for name := range strings.FieldsSeq(s.wide) {
		for _, object := range slices.Compact([]wire.Value{v, in}) {
			before := len(r.edits)
			if member, ok := object.Get(name); ok && r.turnOff(name, member) {
				r.note(Change{Tool: clip(kind), Did: Repaired, Code: capability.ScopeViolation, Why: name + " reaches past the list of domains"})
			}
			if s.flat && isListed(name, s.inner) { // it goes with all that stands there
				r.edits = r.edits[:before]
			}
		}
	}
	engines := strings.Fields(s.engines)
	if len(engines) == 0 || in.Len() == 0 {
		return
	}
	if !slices.Contains(engines, textOf(in, "engine")) && r.set(in, "engine", wire.AppendString(nil, engines[0])) {
		r.note(Change{Tool: clip(kind), Did: Repaired, Why: "not every engine keeps to a list of domains: " + engines[0] + " does"})
	}
}

// contentTypes is what a search of OpenAI's may find, where nothing is text alone.
const contentTypes = "search_content_types"

// turnOff takes the value of a setting back, and reports whether it had one.
func (r *request) turnOff(name string, v wire.Value) bool {
	switch {
	case v.Kind() == wire.Null:
		return false
	case v.Kind() == wire.Bool:
		return r.replace(v, []byte("false"))
	case name == contentTypes:
		return r.replace(v, []byte(`["text"]`))
	}
	return r.replace(v, []byte("null"))
}

// onX turns off what OpenRouter's search reads at X, which is held by its own name.
func (r *request) onX(kind string, places ...wire.Value) {
	const search = "x_search"
	for _, in := range slices.Compact(places) {
		member, ok := in.Get(search)
		if !ok || r.kit != routerKit {
			continue
		}
		if code, why := r.needs(search); why != "" && r.turnOff(search, member) {
			r.note(Change{Tool: clip(kind), Did: Repaired, Code: code, Why: search + ": " + why})
		}
	}
}

// whole makes the provider show everything that a tool did.
func (r *request) whole(v wire.Value, kind string) {
	shown, ok := v.Get("response_inclusion")
	if ok && !shown.Equal("full") && r.replace(shown, []byte(`"full"`)) {
		r.note(Change{Tool: clip(kind), Did: Repaired, Why: "what it does would not be seen"})
	}
}
