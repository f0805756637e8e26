package provider

import (
	"net/http"
	"slices"
	"strings"

	"capgate/capability"
	"capgate/wire"
)

// The limits of one request. What is beyond them is refused.
const (
	maxBody   = wire.MaxBytes // bytes
	maxDepth  = wire.MaxDepth // objects and arrays inside each other
	maxTools  = 1024          // tools, wherever they stand
	maxScoped = 32            // of them, those that take a list of domains
	maxList   = 1024          // entries of such a list
	maxNotes  = 1024          // changes
)

// Rewrite returns a request as it may go up for an agent, and what was done to it.
// The body is returned as it is, the same bytes, when nothing had to be done. The
// error is a [*Refused]: then nothing goes up.
func (v Vendor) Rewrite(e Endpoint, body []byte, p Policy) (out []byte, changes []Change, err error) {
	if !e.Body {
		if len(body) > 0 {
			return nil, nil, &Refused{Status: http.StatusBadRequest, Code: capability.MalformedRequest, Why: "this endpoint takes no body"}
		}
		return body, nil, nil
	}
	var doc wire.Doc
	if err := doc.ParseLoosely(body, wire.Limits{Bytes: maxBody, Depth: maxDepth}); err != nil {
		return nil, nil, unreadable(err)
	}
	r := &request{kit: v.kit, form: e.form, policy: p, hosts: map[capability.Verb]*domains{}, unsound: !doc.Sound()}
	r.walk(doc.Root(), e.Path)
	if fault := r.misread(&doc); fault != nil {
		return nil, nil, unreadable(fault)
	}
	if r.refused != nil {
		return nil, nil, r.refused
	}
	if out = body; len(r.edits) > 0 {
		var ok bool
		if out, ok = apply(body, r.edits); !ok || doc.ParseLoosely(out, wire.Limits{Bytes: maxBody, Depth: maxDepth}) != nil {
			return nil, nil, &Refused{Status: http.StatusForbidden, Code: capability.NotAvailable, Why: "the request cannot be rewritten"}
		}
	}
	r.told()
	return out, r.changes, nil
}

// held is one thing that a request rests on.
type held struct {
	verb   capability.Verb
	object string
}

// rests keeps in mind what of an agent's authority something in the request rests on.
func (r *request) rests(v capability.Verb, objects ...string) {
	if r.policy.Uses == nil {
		return
	}
	for _, object := range objects {
		r.uses = append(r.uses, held{v, object})
	}
}

// told tells what the request rests on, each once.
func (r *request) told() {
	said := map[held]bool{}
	for _, u := range r.uses {
		if !said[u] {
			r.policy.Uses(u.verb, u.object)
		}
		said[u] = true
	}
}

// unreadable refuses a body that two readers could take for different ones.
func unreadable(err error) *Refused {
	return &Refused{Status: http.StatusBadRequest, Code: capability.MalformedRequest, Why: "the body cannot be read strictly: " + err.Error()}
}

const get = capability.Verb("net.get")

// request is one body while it is read and rewritten.
type request struct {
	kit    kit
	form   form
	policy Policy

	hosts map[capability.Verb]*domains

	edits   []edit
	uses    []held
	changes []Change
	refused *Refused // the first reason that nothing goes up

	unsound bool   // the body has faults, that only opaque places may have
	dark    []span // these places

	kept, gone []reference                    // tools that stay, and those that were left out
	lists      int                            // of domains
	servers    int                            // that the request names beside its tools
	connected  []Connector                    // MCP servers that stay, under the names that the request gives them
	invoked    map[string]capability.Decision // what is decided of tools of connectors, by the names that grants have for them
	toolsets   []string                       // those of them whose tools are listed one by one

	resumes bool            // the request names a container, in which code would go on running
	asked   map[string]bool // ids of requests to consent to a foreign tool

	waiting map[pending]bool // Google: calls that nothing has answered yet
}

// walk reads a whole body: every member has a rule, and what has none is refused.
func (r *request) walk(root wire.Value, path string) {
	if root.Kind() != wire.Object {
		r.refuse("the body is no object")
		return
	}
	switch r.form {
	case formMessages:
		r.messages(root)
	case formResponses, formInputTokens:
		r.responses(root)
	case formChat:
		r.chat(root)
	case formGenerate, formCount:
		r.model(path)
		r.google(root)
	case formEmbed:
		r.members(root, r.embedMember)
	case formEmbedParts:
		r.model(path)
		r.members(root, r.embedPartsMember)
	default:
		r.refuse("bodies of this form are not known")
	}
}

// rule judges a value, and reports whether it stays. A rule may edit what is
// inside, or refuse the whole request.
type rule func(v wire.Value) bool

// keep is the rule of what is no authority: texts, numbers, schemas.
func keep(wire.Value) bool { return true }

// refuse ends the request with the first thing that is wrong with it.
func (r *request) refuse(why string) {
	r.deny(http.StatusBadRequest, capability.MalformedRequest, why)
}

// forbid ends the request because of something that no grant opens.
func (r *request) forbid(why string) { r.deny(http.StatusForbidden, capability.Forbidden, why) }

func (r *request) deny(status int, code capability.Code, why string) {
	if r.refused == nil {
		r.refused = &Refused{Status: status, Code: code, Why: why}
	}
}

// members judges every member of an object by its name, and takes out those that do
// not stay. It reports whether any stays. A name without a rule is refused.
func (r *request) members(v wire.Value, rules func(name string) rule) bool {
	if v.Kind() != wire.Object {
		r.refuse("a value should be an object: " + clip(string(v.Raw())))
		return true
	}
	var spans []span
	var drop []bool
	for key, member := range v.Members() {
		name, _ := key.Str()
		judge := rules(name)
		if judge == nil {
			judge = r.unknown(name)
		}
		spans, drop = append(spans, memberSpan(key, member)), append(drop, !r.judge(judge, member))
	}
	return r.take(spans, drop)
}

// elements judges every element of an array, and takes out those that do not stay.
// It reports whether any stays; an array that is empty already does.
func (r *request) elements(v wire.Value, judge rule) bool {
	if v.Kind() != wire.Array {
		r.refuse("a value should be a list: " + clip(string(v.Raw())))
		return true
	}
	var spans []span
	var drop []bool
	for element := range v.Elems() {
		spans, drop = append(spans, elementSpan(element)), append(drop, !r.judge(judge, element))
	}
	return r.take(spans, drop)
}

// judge asks a rule. What does not stay keeps no edits inside, and rests on nothing.
func (r *request) judge(judge rule, v wire.Value) bool {
	edits, uses := len(r.edits), len(r.uses)
	if r.refused != nil && !r.unsound || judge(v) { // what is refused is not read any further
		return true
	}
	r.edits, r.uses = r.edits[:edits], r.uses[:uses]
	return false
}

func (r *request) take(spans []span, drop []bool) bool {
	if slices.Contains(drop, true) {
		r.prune(spans, drop)
	}
	return len(drop) == 0 || slices.Contains(drop, false)
}

// unknown is the rule of a member or type that no table has: it is refused, unless
// the operator vouches for it.
func (r *request) unknown(name string) rule {
	return func(v wire.Value) bool {
		switch {
		case v.Kind() == wire.Null: // says nothing
			return true
		case slices.Contains(r.policy.Pass, name):
			r.passed(name, v)
			return true
		}
		r.deny(http.StatusForbidden, capability.NotAvailable, `"`+clip(name)+`" is not known here, and what is not known could be a tool: pass: in the configuration vouches for it`)
		return true
	}
}

// passed looks through what the operator vouches for, which may be of that type itself.
func (r *request) passed(name string, v wire.Value) {
	if kind, ok := v.Get("type"); !ok || !kind.Equal(name) {
		r.sniff(v)
		return
	}
	for key, member := range v.Members() {
		if of, _ := key.Str(); of != "type" {
			r.sniffMember(of, member)
		}
	}
}

// spelled refuses members of a block or an item that are not spelled as a vendor
// spells them: gateways that read names whatever their case is would find there what
// no rule has judged.
func (r *request) spelled(v wire.Value) {
	for key, member := range v.Members() {
		if name, _ := key.Str(); strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
			r.unknown(name)(member)
		}
	}
}

// sniffed is the rule of settings that hold no tools as far as is known: what looks
// like one in them is refused.
func (r *request) sniffed(v wire.Value) bool {
	r.sniff(v)
	return true
}

func (r *request) sniff(v wire.Value) {
	switch v.Kind() {
	case wire.String:
		if text, _ := v.Str(); isWeb(text) {
			r.forbid(`"` + clip(text) + `" does not belong there`)
		}
	case wire.Array:
		for element := range v.Elems() {
			r.sniff(element)
		}
	case wire.Object:
		for key, member := range v.Members() {
			name, _ := key.Str()
			r.sniffMember(name, member)
		}
	}
}

func (r *request) sniffMember(name string, v wire.Value) {
	r.notATool(name)
	if text, ok := v.Str(); ok && name == "type" && isTool(text) {
		r.forbid(`"` + clip(text) + `" does not belong there`)
	}
	r.sniff(v)
}

// notATool refuses a member that is about tools or servers by its name.
func (r *request) notATool(name string) {
	if carries(name) {
		r.forbid(`"` + clip(name) + `" does not belong there`)
	}
}

// carries reports whether a member of this name is about tools or servers wherever
// it stands.
func carries(name string) bool {
	switch fold(name) {
	case "tools", "mcpservers", "serverurl", "definition", "connectorid", "tunnelid", "container", "containerid",
		"environment", "networkpolicy", "alloweddomains", "authorization", "headers", "plugins", "cachedcontent",
		"previousresponseid", "comparisonresponseid", "conversation", "googlesearch", "urlcontext", "codeexecution", "websearchoptions",
		"googlesearchretrieval", "enterprisewebsearch", "googlemaps", "searchparameters", "searchsettings", "compoundcustom":
		return true
	}
	return false
}

// isTool reports whether a type is one of a provider's tools, whoever's.
func isTool(text string) bool {
	for _, begin := range []string{"web_search", "web_fetch", "code_", "mcp", "shell", "openrouter:", "x_search", "file_search", "image_generation", "tool_addition", "additional_tools"} {
		if strings.HasPrefix(text, begin) {
			return true
		}
	}
	return false
}

// isWeb reports whether a text is an address that somebody would fetch.
func isWeb(text string) bool {
	text = strings.TrimSpace(text)
	begin := strings.ToLower(text[:min(len(text), len("https://"))])
	return strings.HasPrefix(begin, "http://") || strings.HasPrefix(begin, "https://") || strings.HasPrefix(begin, "gs://")
}

// fold writes a name as both spellings of it are: camelCase and snake_case.
func fold(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// exceeds refuses a request that is over a limit.
func (r *request) exceeds(what string) {
	r.deny(http.StatusForbidden, capability.LimitExceeded, "the request has too many "+what)
}

// text is the rule of what has to be text.
func (r *request) text(v wire.Value) bool {
	if v.Kind() != wire.String && v.Kind() != wire.Null {
		r.refuse("a value should be text: " + clip(string(v.Raw())))
	}
	return r.opaque(v)
}

// refusedUnlessNull is the rule of members that hold what a request cannot be
// judged without.
func (r *request) refusedUnlessNull(why string) rule {
	return func(v wire.Value) bool {
		if v.Kind() != wire.Null {
			r.forbid(why)
		}
		return true
	}
}

// refusedIfTrue is the rule of switches that must be off.
func (r *request) refusedIfTrue(why string) rule {
	return func(v wire.Value) bool {
		if on, ok := v.Bool(); v.Kind() != wire.Null && (!ok || on) {
			r.forbid(why)
		}
		return true
	}
}

// embedMember is the table of requests for embeddings.
func (r *request) embedMember(name string) rule {
	switch name {
	case "model":
		return r.placeless
	case "dimensions", "encoding_format", "user", "output_dimension", "output_dtype":
		return keep
	case "metadata":
		return r.metadata
	case "input":
		return func(v wire.Value) bool {
			return r.embedded(v)
		}
	}
	return nil
}

// embedded judges what is embedded: a text is one, whatever it says.
func (r *request) embedded(v wire.Value) bool {
	r.words(v)
	for element := range v.Elems() {
		if r.words(element); element.Kind() != wire.String {
			r.sniff(element)
		}
	}
	if v.Kind() == wire.Object {
		r.sniff(v)
	}
	return true
}

// note records a change. Nobody reads more of them than there are tools.
func (r *request) note(c Change) {
	if len(r.changes) == maxNotes {
		r.exceeds("things that would have to be changed")
		return
	}
	r.changes = append(r.changes, c)
}

// noteOnce records what may be done again and again in a conversation.
func (r *request) noteOnce(c Change) {
	if !slices.ContainsFunc(r.changes, func(o Change) bool { return o.Tool == c.Tool && o.Why == c.Why }) {
		r.note(c)
	}
}
