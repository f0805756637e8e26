package mapping_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"capgate/capability"
	"capgate/capability/hostfs"
	"capgate/mapping"
	"capgate/wire"
)

const allow = "allow"

// decide answers one case as the gateway would.
func (s *site) decide(a attack) (string, error) {
	switch a.Hint.Scenario {
	case "call":
		return s.call(a)
	case "load":
		return s.load(a)
	case "egress":
		return s.egress(a)
	case "grant":
		return s.grant(a)
	case "rye":
		return s.rye(a)
	case "scarab":
		return s.scarab(a)
	case "prompt_get":
		return s.prompt(a)
	case "resource_read":
		return s.resource(a)
	}
	return "", fmt.Errorf("there is no scenario %q", a.Hint.Scenario)
}

func (s *site) view(cwd string) capability.View {
	return capability.View{Cwd: cwd, Home: s.home, FS: hostfs.FS{}}
}

// call decides a tools/call: known tool, verb, arguments, scope.
func (s *site) call(a attack) (string, error) {
	tool, err := s.tool(a)
	if err != nil {
		return "", err
	}
	if tool == nil {
		return string(capability.UnknownTool), nil
	}
	set, _, err := s.set(a)
	if err != nil {
		return "", err
	}
	args, err := s.arguments(a.Args)
	if err != nil {
		return "", err
	}
	return s.ask(set, tool, mapping.Call{Name: "server." + a.Hint.Tool, View: s.view(a.Hint.Cwd)}, args), nil
}

// ask decides a call of one agent.
func (s *site) ask(set *capability.Set, tool *mapping.Tool, c mapping.Call, args []byte) string {
	for _, choice := range tool.Verbs() {
		if !slices.ContainsFunc(choice, set.Holds) {
			return string(capability.CapabilityAbsent)
		}
	}
	doc, err := wire.Parse(args)
	if err != nil {
		return string(capability.MalformedArguments)
	}
	c.Args = doc.Root()
	needs, err := tool.Require(c)
	if refused := (*mapping.Refused)(nil); errors.As(err, &refused) {
		return string(refused.Code)
	}
	return s.answer(set, needs)
}

// answer decides the needs of a call together.
func (s *site) answer(set *capability.Set, needs []mapping.Need) string {
	if len(needs) == 0 {
		return "nothing is needed"
	}
	fence := capability.NewFence(capability.Root{Dir: s.config, Real: s.config}, capability.Root{Dir: s.state, Real: s.state})
	for _, need := range needs {
		if d := set.Decide(need.Requirement); !d.Allowed() {
			return string(d.Code)
		}
		if fence.Touches(need.Requirement) {
			return string(capability.ScopeViolation)
		}
	}
	return allow
}

// tool writes the binding of a case as a mapping, and reads it. It returns nil
// for a tool that the server does not have.
func (s *site) tool(a attack) (*mapping.Tool, error) {
	if a.Hint.Missing {
		return nil, nil
	}
	args := map[string]any{}
	if a.Hint.Additional || a.Hint.Strict {
		args["additional"] = "free"
	}
	if !a.Hint.Strict {
		for name, p := range a.Hint.Properties {
			p.free(name, args)
		}
	}
	for name, kind := range a.Hint.Bind {
		delete(args, strings.TrimSuffix(name, "[]"))
		delete(args, strings.ReplaceAll(name, "[]", "[*]"))
		args[name] = roleOf(kind, a.Hint.Requires)
	}
	// JSON is YAML.
	text, err := json.Marshal(map[string]any{"server": "server", "tools": map[string]any{a.Hint.Tool: args}})
	if err != nil {
		return nil, err
	}
	m, _, err := mapping.Parse(a.ID, text)
	if err != nil {
		return nil, err
	}
	return m.Tool(a.Hint.Tool), nil
}

// free gives every leaf of a schema the role free.
func (p property) free(name string, args map[string]any) {
	switch {
	case len(p.Properties) > 0:
		for member, q := range p.Properties {
			q.free(name+"."+member, args)
		}
	case p.Items != nil:
		p.Items.free(name+"[*]", args)
	default:
		args[name] = "free"
	}
}

// roleOf writes the kind of a bound argument as a role.
func roleOf(kind, verb string) any {
	switch kind {
	case "path", "url", "shell":
		return verb
	case "glob":
		return map[string]any{"verb": verb, "glob": true}
	case "host":
		return map[string]any{"verb": verb, "as": "host"}
	case "cwd":
		return map[string]any{"in": verb}
	case "argv0", "argv", "env":
		return map[string]any{kind: verb}
	}
	name, _ := strings.CutPrefix(kind, "key:")
	if e, ok := capability.Lookup(capability.Verb(verb)); ok {
		if k, ok := e.Key(name); ok {
			return map[string]any{"verb": verb, "dim": k.Dim}
		}
	}
	return verb
}

// set compiles the grants of a case.
func (s *site) set(a attack) (*capability.Set, []capability.Finding, error) {
	opts := capability.Options{View: s.view(a.Hint.Cwd)}
	if a.Hint.Dialect == "scarab" {
		opts.Dialect = capability.Scarab
	}
	specs, err := specsOf(a.Grant)
	if err != nil {
		return nil, nil, err
	}
	if dir := a.Hint.ConfigSandbox; dir != "" {
		opts.Config = capability.Root{Dir: dir, Real: dir}
	}
	if dir := a.Hint.AgentSandbox; dir != "" {
		opts.Agent = capability.Root{Dir: dir, Real: dir}
		specs = append(specs, shorthand(specs, dir)...)
	}
	set, findings := capability.Compile(specs, opts)
	return set, findings, nil
}

// shorthand is what sandbox: in a record stands for: the verbs that the record
// does not scope itself.
func shorthand(specs []capability.Spec, dir string) []capability.Spec {
	var more []capability.Spec
	for _, verb := range []string{"fs.read", "fs.write", "proc.exec"} {
		if !slices.ContainsFunc(specs, func(s capability.Spec) bool { return s.Verb == verb && !s.Bare }) {
			more = append(more, capability.Spec{Verb: verb}.With("in", dir))
		}
	}
	return more
}

// specsOf reads grants: text in any dialect, or a map with one verb.
func specsOf(list []json.RawMessage) ([]capability.Spec, error) {
	var specs []capability.Spec
	for _, raw := range list {
		var text string
		var entry map[string]json.RawMessage
		switch {
		case json.Unmarshal(raw, &text) == nil:
			more, err := specOf(text)
			if err != nil {
				return nil, err
			}
			specs = append(specs, more...)
		case json.Unmarshal(raw, &entry) != nil || len(entry) != 1:
			return nil, fmt.Errorf("%s is no grant", raw)
		default:
			for verb, scope := range entry {
				more, err := scoped(verb, scope)
				if err != nil {
					return nil, err
				}
				specs = append(specs, more...)
			}
		}
	}
	return specs, nil
}

func specOf(text string) ([]capability.Spec, error) {
	if text == "*" { // all of Rye, which only a permissions block can say
		return capability.ParsePermissions("<permissions>*</permissions>")
	}
	spec, err := capability.ParseSpec(text)
	return []capability.Spec{spec}, err
}

// scoped reads verb: {key: values}, or the shorthand access:.
func scoped(verb string, scope json.RawMessage) ([]capability.Spec, error) {
	var access string
	if verb == "access" && json.Unmarshal(scope, &access) == nil {
		return accessOf(access), nil
	}
	var keys map[string]any
	if err := json.Unmarshal(scope, &keys); err != nil {
		return nil, fmt.Errorf("%s: %w", verb, err)
	}
	spec := capability.Spec{Verb: verb, Scope: []capability.Param{}}
	for key, value := range keys {
		switch v := value.(type) {
		case string:
			spec = spec.With(key, v)
		case []any:
			values := []string{}
			for _, item := range v {
				values = append(values, fmt.Sprint(item))
			}
			spec = spec.With(key, values...)
		default:
			return nil, fmt.Errorf("%s: %s is neither text nor a list", verb, key)
		}
	}
	return []capability.Spec{spec}, nil
}

// accessOf expands access: r, w, rw as a record does.
func accessOf(access string) []capability.Spec {
	verbs := map[rune][]string{'r': {"records.read"}, 'w': {"records.create", "records.update"}}
	var specs []capability.Spec
	for _, letter := range access {
		for _, verb := range verbs[letter] {
			specs = append(specs, capability.Spec{Verb: verb, Bare: true})
		}
	}
	return specs
}

// load asks whether a list of grants is taken as it is written.
func (s *site) load(a attack) (string, error) {
	set, findings, err := s.set(a)
	if err != nil {
		return "", err
	}
	for g := range set.All() {
		if g.Inert() != "" {
			return string(capability.InvalidGrant), nil
		}
	}
	if len(findings) > 0 {
		return string(capability.InvalidGrant), nil
	}
	return allow, nil
}

// egress decides what a request of the gateway's own meets on its way: the next
// hop, and the address behind a name.
func (s *site) egress(a attack) (string, error) {
	if got, err := s.call(a); err != nil || got != allow {
		return got, err
	}
	if a.Hint.RedirectTo != "" {
		a.Args, _ = json.Marshal(map[string]string{"url": a.Hint.RedirectTo})
		return s.call(a)
	}
	set, _, err := s.set(a)
	if err != nil {
		return "", err
	}
	var args struct{ URL string }
	if err := json.Unmarshal(a.Args, &args); err != nil {
		return "", err
	}
	target, err := capability.ParseURL(args.URL)
	if err != nil {
		return "", err
	}
	for _, answers := range a.Hint.DNS {
		for _, answer := range answers {
			q := capability.Net(capability.Verb(a.Hint.Requires), target.Resolved(netip.MustParseAddr(answer)))
			if d := set.Decide(q); !d.Allowed() {
				return string(d.Code), nil
			}
		}
	}
	return allow, nil
}

// grant decides what one agent may write into the record of another.
func (s *site) grant(a attack) (string, error) {
	set, _, err := s.set(a)
	if err != nil {
		return "", err
	}
	chain := capability.Chain{{Name: a.Hint.Granter, Set: set}}
	giveable := slices.Clone(chain)
	for _, grants := range a.Hint.Ancestors {
		up, _, err := s.set(attack{Grant: grants})
		if err != nil {
			return "", err
		}
		giveable = append(giveable, capability.Link{Name: "parent", Set: up})
	}
	var args struct{ Capabilities []json.RawMessage }
	if err := json.Unmarshal(a.Args, &args); err != nil {
		return "", err
	}
	passed, _, err := s.set(attack{Grant: args.Capabilities})
	if err != nil {
		return "", err
	}
	d, gaps := capability.Attenuate(a.Hint.Granter, a.Hint.Target, chain, giveable, passed)
	if d.Code == capability.ExceedsGrantorAuthority && len(gaps) == 0 {
		return "", fmt.Errorf("the denial does not say what exceeds")
	}
	return answerOf(d), nil
}

func answerOf(d capability.Decision) string {
	if d.Allowed() {
		return allow
	}
	return string(d.Code)
}

// answerTo decides a requirement, which may be one that cannot be read.
func answerTo(set *capability.Set, need *capability.Requirement, err error) string {
	if err != nil {
		return string(capability.MalformedArguments)
	}
	return answerOf(set.Decide(need))
}

// rye decides an action on an item, or what a child may be given.
func (s *site) rye(a attack) (string, error) {
	set, _, err := s.set(a)
	if err != nil {
		return "", err
	}
	var args struct {
		Item  string `json:"item_id"`
		Child []json.RawMessage
	}
	if err := json.Unmarshal(a.Args, &args); err != nil {
		return "", err
	}
	if a.Hint.Op == "spawn" {
		giveable, _, err := s.set(attack{Grant: append(a.Grant, a.Hint.Delegable...)})
		if err != nil {
			return "", err
		}
		child, _, err := s.set(attack{Grant: args.Child})
		if err != nil {
			return "", err
		}
		d, _ := capability.Chain{{Set: giveable}}.Covers(child)
		return answerOf(d), nil
	}
	verb := capability.Verb("rye." + a.Hint.Primary + "." + a.Hint.ItemType)
	if !set.Holds(verb) {
		return string(capability.CapabilityAbsent), nil
	}
	var words []capability.Word
	if args.Item != "" {
		words = append(words, capability.Word{Dim: "id", Value: args.Item})
	}
	need, err := capability.Keyed(verb, words...)
	return answerTo(set, need, err), nil
}

// scarab decides a request domain.action:scope.
func (s *site) scarab(a attack) (string, error) {
	set, _, err := s.set(a)
	if err != nil {
		return "", err
	}
	var args struct{ Request string }
	if err := json.Unmarshal(a.Args, &args); err != nil {
		return "", err
	}
	if a.Hint.InArgument {
		return s.handle(set, args.Request)
	}
	verb, scope, _ := strings.Cut(args.Request, ":")
	if !set.Holds(capability.Verb(verb)) {
		return string(capability.CapabilityAbsent), nil
	}
	key := map[string]string{"fs": "path", "net": "host", "tool": "tool", "memory": "key", "secret": "name"}[capability.Verb(verb).Resource()]
	need, err := capability.ParseRequirement(capability.Spec{Verb: verb}.With(key, scope).String(), s.view("/"))
	got := answerTo(set, need, err)
	if got == allow && slices.Contains(a.Hint.Approval, scope) {
		return string(capability.RequiresApproval), nil
	}
	return got, nil
}

// handle decides a call of a tool with the handle of a secret in an argument.
func (s *site) handle(set *capability.Set, value string) (string, error) {
	m, _, err := mapping.Parse("http.yml", []byte("server: s\ntools: {http: {token: secret}}"))
	if err != nil {
		return "", err
	}
	args, err := json.Marshal(map[string]string{"token": value})
	if err != nil {
		return "", err
	}
	return s.ask(set, m.Tool("http"), mapping.Call{Name: "http", View: s.view("/")}, args), nil
}
