package proxy

import (
	"capgate/gate"
	"capgate/skills"
)

// outlook is what the gate says of tools before they are called: which of them
// some call of an agent could be allowed. Under one policy that depends on nothing
// but the server and the name, so that it is not asked again each time that a list changes.
// Of skills it is which are satisfied, which depends on nothing but what they are.
type outlook struct {
	policy        *Policy
	agent         string
	survey        *gate.Survey
	clean         func([]byte) bool
	before, after map[sight]view // by earlier catalogues, and by the one that is made
}

// view is how a tool or a skill is seen.
type view struct {
	shown bool
	scope string // what is said behind the description of a tool
	why   string // for the operator: what hides a skill
}

// sight is a tool or a skill by all that the gate's knowledge of it is made of.
type sight struct {
	up   *Upstream
	name string // the server's own

	own  *skills.Skill // of the gateway's folders
	from *served       // of a server
}

// outlook returns what is known under a policy. What is not in the next catalogue
// is forgotten, so that a server which makes up names fills no memory.
func (t *tenant) outlook(p *Policy) *outlook {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := &outlook{policy: p, agent: t.agent, survey: p.Gate.Survey(t.agent, held), clean: func(b []byte) bool { return t.server.isClean(nil, b) }, after: map[sight]view{}}
	if t.foreseen != nil && t.foreseen.policy == p {
		o.before = t.foreseen.after
	}
	return o
}

// remember keeps an outlook for the next catalogue.
func (t *tenant) remember(o *outlook) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.foreseen = o
	o.before, o.survey = nil, nil
}

// tool reports whether some call of a tool could be allowed, and within what scope.
func (o *outlook) tool(t *tool) view {
	return o.sees(sight{up: t.up, name: t.name}, func() (v view) {
		if v.shown = o.policy.Gate.Visible(o.agent, t.gate); v.shown {
			v.scope = narrowing(o.survey.Scopes(t.gate))
		}
		if !o.clean([]byte(v.scope)) { // a record has the text of a secret in it
			v.scope = ""
		}
		return v
	})
}

// skill reports whether a skill is satisfied, and by what not.
func (o *outlook) skill(s *skill) view {
	key := sight{from: s.from}
	if s.from == nil {
		key.own = s.about
	}
	return o.sees(key, func() view {
		v := o.policy.Gate.Skill(o.agent, s.about)
		return view{shown: v.Satisfied, why: lacking(v)}
	})
}

func (o *outlook) sees(key sight, ask func() view) view {
	seen, known := o.before[key]
	if !known {
		seen = ask()
	}
	o.after[key] = seen
	return seen
}
