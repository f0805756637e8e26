package provider

import (
	"cmp"
	"slices"
	"strings"

	"capgate/capability"
	"capgate/wire"
)

// use says what has to be held for a tool. Its zero value is a tool that nobody
// knows, which is left out.
type use uint8

const (
	strange   use = iota
	local         // the agent's side runs it, so that its calls are decided there
	scoped        // takes a list of domains
	reading       // reads the web and takes no list: provider.<verb>, or every public host
	unscoped      // provider.<verb>
	adviser       // the same, and it has to say which model it asks
	runner        // runs code in a container of the provider: provider.code_execution
	connector     // an MCP server that the provider connects to
	toolset       // the tools of one of mcp_servers
	group         // holds other tools
)

// tool is what is known of the tools of one type.
type tool struct {
	use   use
	verb  string // behind provider.
	scope scope  // of a scoped tool
}

// scope says how a scoped tool takes its domains, and what else may stand in it.
type scope struct {
	list
	verb             string // behind provider., for who lets it wait for an approval
	under            string // the member that the lists stand in, "" for the tool itself
	allowed, blocked string
	members          string // all that may stand in the tool, with spaces between
	inner            string // all that may stand under
	wide             string // members that reach past the list: none of them stays with one
	engines          string // search engines that keep to the list, the first in place of any other
	callers          bool   // runs in a container unless it says otherwise
	flat             bool   // some clients write what stands under into the tool itself
}

const (
	webSearch     = "web_search"
	webFetch      = "web_fetch"
	codeExecution = "code_execution"
	files         = "files"
)

// reference is how a request speaks of one of its tools.
type reference struct {
	kind string // its type
	name string // its name, or the label of its server
}

// tools judges a list of tools. Without any left the list goes as well.
func (r *request) tools(v wire.Value) bool {
	if v.Kind() == wire.Null {
		return true
	}
	if r.form == formGenerate || r.form == formCount {
		return r.elements(v, r.googleTools)
	}
	var stay []bool // of the tools one after another
	stays := r.elements(v, func(t wire.Value) bool {
		stay = append(stay, r.tool(t))
		return stay[len(stay)-1]
	})
	r.moveCache(v, stay)
	return stays
}

// tool judges one tool.
func (r *request) tool(v wire.Value) bool {
	kind, ok := typeOf(v)
	if v.Kind() != wire.Object || !ok {
		r.refuse("a tool should be an object with a type that is text")
		return true
	}
	if r.full() {
		return true
	}
	name := cmp.Or(textOf(v, "name"), textOf(v, "server_label"))
	ref := reference{kind, name}
	code, why := r.judgeTool(v, r.known(kind, v), kind)
	if why != "" {
		r.gone = append(r.gone, ref)
		r.note(Change{Tool: label(kind, name), Did: Omitted, Code: code, Why: why})
		return false
	}
	r.kept = append(r.kept, ref)
	return true
}

// full refuses a request that has as many tools already as there can be.
func (r *request) full() bool {
	if len(r.kept)+len(r.gone) < maxTools {
		return false
	}
	r.exceeds("tools")
	return true
}

// label is what a tool is called in a change.
func label(kind, name string) string {
	if kind == "" || kind == "custom" || kind == "function" {
		return clip(name)
	}
	return clip(kind)
}

// judgeTool returns why a tool is left out, "" when it stays.
func (r *request) judgeTool(v wire.Value, t tool, kind string) (code capability.Code, why string) {
	switch t.use {
	case local:
		r.judgeLocal(v, kind)
	case scoped:
		code, why = r.scoped(v, t.scope, kind)
	case reading:
		if code, why = r.reads(t.verb); why == "" {
			in, _ := v.Get("parameters")
			r.onX(kind, v, in)
			code, why = r.apart(v, in)
		}
	case unscoped:
		if code, why = r.needs(t.verb); why == "" {
			r.inputs(v)
		}
	case adviser:
		code, why = r.advises(v, t.verb)
	case runner:
		code, why = r.runs(v)
	case connector:
		code, why = r.connects(v)
	case toolset:
		code, why = r.toolset(v)
	case group:
		code, why = r.group(v)
	default:
		return capability.NotAvailable, "a tool of this type is not known here"
	}
	if why == "" {
		code, why = r.judgeNames(v, t)
	}
	if why == "" {
		r.directly(v, t.scope.callers, kind)
	}
	return code, why
}

// judgeLocal keeps what the agent runs itself, and says no more than that.
func (r *request) judgeLocal(v wire.Value, kind string) {
	r.knownOnly(v, localMembers(kind))
	r.opaqueIn(v, ofFunction)
	for _, member := range []string{"function", "custom"} {
		inside, _ := v.Get(member)
		r.opaqueIn(inside, ofFunction)
	}
}

// apart returns why a tool that takes no list of domains is left out: for a member that is
// about other tools, or that nothing has a name for. What else there may be is not known for
// all of them.
func (r *request) apart(v, in wire.Value) (capability.Code, string) {
	r.inputs(v)
	for _, v := range []wire.Value{v, in} {
		for key := range v.Members() {
			if name, _ := key.Str(); name == "" || carries(name) && fold(name) != "alloweddomains" {
				return capability.NotAvailable, `"` + clip(name) + `" is not known in a tool of this type`
			}
		}
	}
	return "", ""
}

// knownOnly refuses members of an object that are not in a list of names.
func (r *request) knownOnly(v wire.Value, names string) {
	for key, member := range v.Members() {
		if name, _ := key.Str(); !isListed(name, names) {
			r.unknown(name)(member)
		}
	}
}

// localMembers is all that may stand in a tool that the agent runs itself, with
// spaces between. Gateways know tools of a provider by a member with their name.
func localMembers(kind string) string {
	switch kind {
	case "", "function", "custom":
		return "type name description input_schema parameters output_schema strict function custom format " +
			"allowed_callers async cache_control defer_loading eager_input_streaming input_examples"
	case "local_shell", "apply_patch":
		return "type name description allowed_callers cache_control defer_loading"
	}
	return "type name description parameters execution strict configs max_characters enable_zoom environment " +
		"display_height display_width display_height_px display_width_px display_number " +
		"allowed_callers cache_control defer_loading input_examples"
}

// judgeNames leaves out a tool that another gateway may take for one that it runs, by any of
// its names, or by a member that is called so: some go by these whatever the type is, also of
// a tool that is held.
func (r *request) judgeNames(v wire.Value, t tool) (capability.Code, string) {
	if !r.policy.Relayed {
		return "", ""
	}
	names := namesIn(v)
	for key, member := range v.Members() {
		name, _ := key.Str()
		if names = append(names, name); isListed(fold(name), "function custom") {
			names = append(names, namesIn(member)...)
		}
	}
	for _, name := range names {
		name = fold(name)
		switch {
		case strings.HasPrefix(name, "litellm"), reserved(name) && name != fold(t.verb),
			name == "vectorstoreids" && t.verb != "file_search": // which LiteLLM searches for a tool of any type
			return capability.NotAvailable, "another gateway may take what has this name for a tool of the provider"
		case name == "websearch" && t.verb != webSearch && t.scope.verb != webSearch:
			if code, why := r.reads(webSearch); why != "" {
				return code, "another gateway may search the web for what has this name: " + why
			}
		}
	}
	return "", ""
}

// namesIn returns what an object is called, also to who reads members whatever their case is.
func namesIn(v wire.Value) (names []string) {
	for key, member := range v.Members() {
		if name, _ := key.Str(); fold(name) == "name" {
			text, _ := member.Str()
			names = append(names, text)
		}
	}
	return names
}

// reserved reports whether the folded name of a tool is that of a provider's.
func reserved(name string) bool {
	switch name {
	case "googlesearch", "googlesearchretrieval", "googlemaps", "urlcontext", "codeexecution", "computeruse", "enterprisewebsearch":
		return true
	}
	return false
}

// needs decides a tool that cannot be scoped.
func (r *request) needs(verb string) (capability.Code, string) {
	if d := r.policy.holds(verb); !d.Allowed() {
		return d.Code, "it takes no scope, and needs provider." + verb
	}
	r.rests(verbOf(verb), "")
	return "", ""
}

// advises decides a tool that asks another model. Where it does not say which, whoever
// asks says it in the call, and that may be one that searches the web, or a preset.
func (r *request) advises(v wire.Value, verb string) (capability.Code, string) {
	if code, why := r.needs(verb); why != "" {
		return code, why
	}
	in, _ := v.Get("parameters")
	if strings.TrimSpace(textOf(in, "model")) == "" {
		return capability.NotAvailable, "it does not say which model it asks: what that does could not be judged"
	}
	r.inputs(v)
	return "", ""
}

// reads decides a tool that reads the web and cannot be scoped: whoever holds every
// public host holds what it reads.
func (r *request) reads(verb string) (capability.Code, string) {
	if r.policy.waits(verb) {
		return capability.RequiresApproval, unapproved + verb
	}
	if r.web().all {
		r.rests(get, "*")
		return "", ""
	}
	if d := r.policy.holds(verb); !d.Allowed() {
		return d.Code, "it takes no list of domains, and needs provider." + verb + " or net.get for every public host"
	}
	r.rests(verbOf(verb), "")
	return "", ""
}

// why a tool is left out that somebody would have to say yes to
const unapproved = "nobody can approve in the middle of a request, and approve: lists provider."

// group keeps a named group with the tools in it that stay.
func (r *request) group(v wire.Value) (capability.Code, string) {
	r.knownOnly(v, "type name description tools")
	r.opaqueIn(v, "description")
	inside, ok := v.Get("tools")
	if !ok || r.elements(inside, r.tool) {
		return "", ""
	}
	return capability.NotAvailable, "none of the tools in it stays"
}

// directly takes away that a tool is called from code in a container of the
// provider, unless running code is held. Some tools run there by default.
func (r *request) directly(v wire.Value, byDefault bool, kind string) {
	callers, ok := v.Get("allowed_callers")
	if ok = ok && callers.Kind() != wire.Null; !ok && !byDefault {
		return
	}
	if ok && callers.Len() == 1 {
		for caller := range callers.Elems() {
			if caller.Equal("direct") {
				return
			}
		}
	}
	if _, why := r.needs(codeExecution); why == "" {
		return
	}
	if r.set(v, "allowed_callers", []byte(`["direct"]`)) {
		r.note(Change{Tool: label(kind, textOf(v, "name")), Did: Repaired, Why: "it would run code in a container of the provider, which needs provider." + codeExecution})
	}
}

// moveCache gives the mark that ends the cached part of a request to the last tool
// that stays, when the tool that had it is left out. What is loaded later is no part
// of it: the provider takes no such tool with a mark.
func (r *request) moveCache(v wire.Value, stay []bool) {
	if r.kit != anthropicKit || len(r.gone) == 0 || len(r.kept) == 0 || r.refused != nil {
		return
	}
	var last wire.Value
	var mark []byte
	i := 0
	for t := range v.Elems() {
		control, has := t.Get("cache_control")
		switch {
		case stay[i] && !isLater(t):
			last, mark = t, nil
		case !stay[i] && has && last != (wire.Value{}):
			mark = control.Raw()
		}
		i++
	}
	if _, has := last.Get("cache_control"); mark != nil && !has {
		r.set(last, "cache_control", mark)
		r.note(Change{Tool: "cache_control", Did: Repaired, Why: "the tool that it stood in is left out"})
	}
}

// isLater reports whether a tool, or what a toolset has of them, is loaded when it is searched for.
func isLater(tool wire.Value) bool {
	general, _ := tool.Get("default_config")
	return slices.ContainsFunc([]wire.Value{tool, general}, func(v wire.Value) bool {
		later, _ := v.Get("defer_loading")
		on, _ := later.Bool()
		return on
	})
}

// typeOf returns the type of an object, "" when it has none. It reports false for
// a type that is not text.
func typeOf(v wire.Value) (string, bool) {
	kind, ok := v.Get("type")
	if !ok || kind.Kind() == wire.Null {
		return "", true
	}
	return kind.Str()
}

func textOf(v wire.Value, key string) string {
	member, _ := v.Get(key)
	text, _ := member.Str()
	return text
}

// stranger returns the first member of an object that is not in a list of names, in
// quotes: the name of one may be empty. It is "" for none.
func stranger(v wire.Value, names string) string {
	for key := range v.Members() {
		if name, _ := key.Str(); !isListed(name, names) {
			return `"` + clip(name) + `"`
		}
	}
	return ""
}

// isListed reports whether a name is one of those in a list with spaces between.
func isListed(name, names string) bool {
	for one := range strings.FieldsSeq(names) {
		if one == name {
			return true
		}
	}
	return false
}
