package gate

import (
	"slices"

	"capgate/agents"
	"capgate/capability"
	"capgate/mapping"
)

// Scope is what an agent may name in arguments of a tool under one verb: at most
// that. Nothing outside of it is ever allowed; something inside may still be denied,
// for what a call needs besides, at the fence, or until somebody approves it.
type Scope struct {
	Arguments []string // as a mapping writes them
	Verb      capability.Verb
	Whole     []*capability.Grant // the agent's own, all of which is left
	Part      []*capability.Grant // likewise, some of which something above keeps from it
	Text      string              // the same in words
}

// Nothing reports whether no value of the arguments could be allowed.
func (s Scope) Nothing() bool { return len(s.Whole)+len(s.Part) == 0 }

// Survey says of many tools what one agent may name in their arguments. It remembers
// what it has found of a verb, and is for one goroutine.
type Survey struct {
	gate  *Gate
	agent string
	say   func(Scope) string
	known map[subject]remains
}

// subject is what decides how much of a verb is left for the agent.
type subject struct {
	verb     capability.Verb
	declared *Declaration
}

// remains is the scope that is left of a verb, without arguments.
type remains struct {
	Scope
	unlimited bool
}

// Survey begins one for an agent. Say words a scope but for its arguments, which is done
// once for all arguments that it is of.
func (g *Gate) Survey(agent string, say func(Scope) string) *Survey {
	return &Survey{gate: g, agent: agent, say: say, known: map[subject]remains{}}
}

// Scopes returns what limits the arguments of a tool, in the order of its mapping. Of
// arguments that nothing limits it says nothing, nor of those whose roles are no verbs.
func (s *Survey) Scopes(t *Tool) []Scope {
	line, denied := s.gate.available(s.agent, t)
	if denied != nil {
		return nil
	}
	var all []Scope
	for _, role := range t.Mapping.Roles() {
		if role.Fixed == "" && !(role.Handle && t.Declared == nil) { // no secret is filled in where none is declared
			all = append(all, s.role(line, t, role)...)
		}
	}
	if slices.Contains(t.Mapping.Surface(), invoke) {
		all = append(all, s.byName(line, t)...)
	}
	return all
}

// role says what limits one argument. A value needs one of the verbs, so that those
// that are not held are only worth a word when none is.
func (s *Survey) role(line agents.Lineage, t *Tool, role mapping.Role) []Scope {
	arguments := []string{role.Argument}
	var all []Scope
	some := false
	for _, v := range role.Verbs {
		left := s.remains(line, t, v)
		some = some || !left.Nothing()
		if !left.Nothing() && !left.unlimited {
			left.Arguments = arguments
			all = append(all, left.Scope)
		}
	}
	if !some && !role.Handle {
		nothing := s.remains(line, t, role.Verbs[0]).Scope
		nothing.Arguments = arguments
		all = append(all, nothing)
	}
	return all
}

// byName says what limits the arguments of a tool that is called by its name: grants of
// tool.invoke, where every one of its name limits some.
func (s *Survey) byName(line agents.Lineage, t *Tool) []Scope {
	left := s.remains(line, t, invoke)
	scope := Scope{Verb: invoke}
	limited := func(from []*capability.Grant) (of []*capability.Grant, ok bool) {
		for _, g := range from {
			names, covers := g.Limited(t.Name)
			switch {
			case !covers && g.Verb() == invoke:
			case len(names) == 0: // no limit, or the grant of another dialect
				return nil, false
			default:
				of = append(of, g)
				scope.Arguments = append(scope.Arguments, names...)
			}
		}
		return of, true
	}
	var whole, part bool
	scope.Whole, whole = limited(left.Whole)
	scope.Part, part = limited(left.Part)
	if !whole || !part || scope.Nothing() {
		return nil
	}
	slices.Sort(scope.Arguments)
	scope.Arguments = slices.Compact(scope.Arguments)
	scope.Text = s.say(scope)
	return []Scope{scope}
}

func (s *Survey) remains(line agents.Lineage, t *Tool, v capability.Verb) remains {
	at := subject{verb: v, declared: t.Declared}
	left, ok := s.known[at]
	if !ok {
		left.Verb = v
		left.Whole, left.Part = line.Chain.Remaining(v)
		left.unlimited = slices.ContainsFunc(left.Whole, (*capability.Grant).Unlimited)
		left.Text = s.say(left.Scope)
		s.known[at] = left
	}
	return left
}
