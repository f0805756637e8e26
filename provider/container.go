package provider

import (
	"cmp"
	"slices"

	"capgate/capability"
	"capgate/wire"
)

// The names that a container may reach.
const (
	maxNetwork = 100
	maxRouted  = 50 // at OpenRouter
)

// runs decides a tool that runs code: in a new container whose network is written
// here, or at the agent. A container that is there already has a network that
// somebody else wrote.
func (r *request) runs(v wire.Value) (capability.Code, string) {
	where, odd := r.whereabouts(v)
	if odd != "" {
		return capability.NotAvailable, odd + " is not known in a tool of this type"
	}
	kind, _ := typeOf(where)
	if kind == "local" && textOf(v, "type") == "shell" && stranger(where, "type skills") == "" {
		return "", ""
	}
	if code, why := r.needs(codeExecution); why != "" {
		return code, why
	}
	if code, why := r.anew(where, kind, textOf(v, "type") == "shell"); why != "" {
		return code, why
	}
	if name := stranger(where, "type file_ids memory_limit network_policy skills"); name != "" {
		return capability.NotAvailable, name + " is not known in a container"
	}
	for _, need := range []struct{ member, verb string }{{"file_ids", files}, {"skills", "skills"}} {
		if member, _ := where.Get(need.member); !isEmpty(member) {
			if code, why := r.needs(need.verb); why != "" {
				return code, need.member + ": " + why
			}
		}
	}
	return r.network(where)
}

// whereabouts returns where a tool says that its code runs, and the first member beside
// that which is not known, "" for none.
func (r *request) whereabouts(v wire.Value) (where wire.Value, odd string) {
	member := "container"
	switch {
	case r.kit == routerKit:
		in, _ := v.Get("parameters")
		where, _ = in.Get("environment")
		return where, cmp.Or(stranger(v, "type parameters"), stranger(in, "engine environment"))
	case textOf(v, "type") == "shell":
		member = "environment"
	}
	where, _ = v.Get(member)
	return where, stranger(v, "type allowed_callers "+member)
}

// isEmpty reports whether a list that may be left out names nothing.
func isEmpty(v wire.Value) bool {
	switch v.Kind() {
	case wire.Invalid, wire.Null:
		return true
	case wire.Array:
		return v.Len() == 0
	}
	return false
}

// anew returns why a container is none that is made for this request.
func (r *request) anew(where wire.Value, kind string, shell bool) (capability.Code, string) {
	switch {
	case where.Kind() == wire.Invalid || where.Kind() == wire.Null:
		return capability.NotAvailable, "it does not say where it runs: what it may reach there could not be written"
	case where.Kind() != wire.Object || kind != "auto" && kind != "container_auto":
		return capability.ScopeViolation, "what a container that exists already may reach is not known here"
	case r.kit != routerKit && shell != (kind == "container_auto"):
		return capability.NotAvailable, `"` + kind + `" is not known in a tool of this type`
	case r.kit == routerKit && r.resumes:
		return capability.ScopeViolation, "it would go on in the container of session_id, prompt_cache_key or a call that came before, and nobody knows here whose that is"
	case kind == "auto" && r.resumes:
		return capability.ScopeViolation, "it would go on in the container of a code_interpreter_call in the input, and what that may reach is not known here"
	}
	return "", ""
}

// resume finds out whether code would go on running in a container that is there
// already. OpenRouter has one for each session, that all who have the key can name.
func (r *request) resume(root wire.Value) {
	input, _ := root.Get("input")
	for item := range input.Elems() {
		r.resumes = r.resumes || says(item, "container_id") || r.kit == routerKit && (goesOn(item) || isRun(textOf(item, "type")))
	}
	messages, _ := root.Get("messages")
	for message := range messages.Elems() {
		r.resumes = r.resumes || r.kit == routerKit && ran(message)
	}
	r.resumes = r.resumes || r.kit == routerKit && (says(root, "session_id") || says(root, "prompt_cache_key"))
}

// ran reports whether a message of OpenRouter's says that a tool of its ran before: what
// that left may name its container, in a text as well.
func ran(message wire.Value) bool {
	details, _ := message.Get("reasoning_details")
	for detail := range details.Elems() {
		switch textOf(detail, "type") {
		case "reasoning.text", "reasoning.summary", "reasoning.encrypted":
		default:
			return true
		}
	}
	return details.Kind() == wire.Object
}

// goesOn reports whether a call names its container further inside: where it ran, or
// beside a file that it left there.
func goesOn(item wire.Value) bool {
	where, _ := item.Get("environment")
	left, _ := item.Get("files")
	for file := range left.Elems() {
		if says(file, "container_id") {
			return true
		}
	}
	return says(where, "container_id")
}

// says reports whether an object has a member that is not null.
func says(v wire.Value, name string) bool {
	member, _ := v.Get(name)
	return member.Kind() != wire.Invalid && member.Kind() != wire.Null
}

// network narrows what a container may reach to the names that the agent holds every net
// verb for, as a connection can carry any of them. One that names nothing reaches nothing.
func (r *request) network(where wire.Value) (capability.Code, string) {
	policy, _ := where.Get("network_policy")
	switch kind, ok := typeOf(policy); {
	case policy.Kind() == wire.Invalid || policy.Kind() == wire.Null || kind == "disabled" && policy.Len() == 1:
		return "", ""
	case !ok || policy.Kind() != wire.Object:
		return capability.MalformedArguments, "network_policy should be an object"
	}
	allowed, _ := policy.Get("allowed_domains")
	wants, ok := textsOf(allowed)
	if !ok {
		return capability.MalformedArguments, "allowed_domains should be a list of names"
	}
	if r.lists++; r.lists > maxScoped {
		r.exceeds("containers")
		return "", ""
	}
	names, wider := r.open(wants)
	if len(names) > 0 && policy.Len() == 2 && textOf(policy, "type") == "allowlist" && same(allowed, names) {
		return r.reached(names, wider)
	}
	text := []byte(`{"type":"disabled"}`)
	if len(names) > 0 {
		text = append(appendList([]byte(`{"type":"allowlist","allowed_domains":`), names), '}')
	}
	r.set(where, "network_policy", text)
	r.note(Change{Tool: "container", Did: Narrowed, Code: capability.ScopeViolation, Why: "it reaches what net.get, net.post, net.put and net.delete all cover", Hosts: names})
	return r.reached(names, wider)
}

func (r *request) reached(names, wider []string) (capability.Code, string) {
	for _, v := range everyWay() {
		r.rests(v, names...)
	}
	if len(wider) > 0 {
		r.note(Change{Tool: "container", Did: Wider, Why: "the provider may include everything beneath these names; subdomains: strict leaves them out", Hosts: wider})
	}
	return "", ""
}

// open returns the names that every net verb covers, of those that are asked for. A
// name that one verb holds alone is no leave for what another holds beneath it.
func (r *request) open(asks []string) (names, wider []string) {
	wants := asked{allowed: asks, limited: true}
	named, all := list{most: maxNetwork, apart: true}, []*domains(nil)
	if r.kit == routerKit {
		named.most = maxRouted
	}
	for _, v := range everyWay() {
		d := r.domains(v)
		if d.all {
			d = anywhere(wants.allowed)
		}
		wants.allowed = d.meet(wants, named).names
		all = append(all, d)
	}
	names = slices.DeleteFunc(wants.allowed, func(name string) bool {
		return slices.ContainsFunc(all, func(d *domains) bool { return !d.covers(name) })
	})
	for _, name := range names {
		if slices.ContainsFunc(all, func(d *domains) bool { return !d.inTree(name) }) {
			wider = append(wider, name)
		}
	}
	return names, wider
}

// domains returns the hosts of a verb as a provider takes them. They are read once for a
// request, however many containers stand in it.
func (r *request) domains(v capability.Verb) *domains {
	d, ok := r.hosts[v]
	if !ok {
		d = domainsOf(r.policy.hosts(v), r.policy.Strict)
		r.hosts[v] = d
	}
	return d
}

// web is what web search and fetch may reach.
func (r *request) web() *domains { return r.domains(get) }

// everyWay lists what a connection may be used for, whatever it is called.
func everyWay() []capability.Verb { return []capability.Verb{get, "net.post", "net.put", "net.delete"} }

// anywhere holds whatever public names are asked for.
func anywhere(names []string) *domains {
	d := &domains{at: map[string]*spot{}}
	seen := map[entry]bool{}
	for _, name := range names {
		if e, ok := readEntry(name, false); ok && !seen[e] {
			seen[e] = true
			d.hold(domain{e.name, true})
		}
	}
	return d
}
