package proxy

// outlook is what the gate says of tools before they are called: which of them
// some call of an agent could be allowed. Under one policy that depends on nothing
// but the server and the name, so that it is not asked again each time that a list changes.
type outlook struct {
	policy        *Policy
	agent         string
	before, after map[sight]bool // by earlier catalogues, and by the one that is made
}

// sight is a tool by all that the gate's knowledge of it is made of.
type sight struct {
	up   *Upstream
	name string // the server's own
}

// outlook returns what is known under a policy. What is not in the next catalogue
// is forgotten, so that a server which makes up names fills no memory.
func (t *tenant) outlook(p *Policy) *outlook {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := &outlook{policy: p, agent: t.agent, after: map[sight]bool{}}
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
	o.before = nil
}

// tool reports whether some call of a tool could be allowed.
func (o *outlook) tool(t *tool) bool {
	key := sight{up: t.up, name: t.name}
	visible, known := o.before[key]
	if !known {
		visible = o.policy.Gate.Visible(o.agent, t.gate)
	}
	o.after[key] = visible
	return visible
}
