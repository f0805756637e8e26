package capability

import "strings"

// Attenuate decides whether one agent may write a set of grants into the record
// of another. Held is what the giver's calls are decided by; it must allow
// agent.grant on the target. Giveable is what may be passed on: what the giver
// may use or delegate first, then the same of each of its ancestors; the set must
// be inside all of it. The gaps of a denial show what is not.
//
// Nobody writes their own record, not even to narrow it: an agent that could
// would take away what holds it as well.
func Attenuate(giver, target string, held, giveable Chain, set *Set) (Decision, []Gap) {
	const grant Verb = "agent.grant"
	if !held.Holds(grant) {
		return Denial(CapabilityAbsent, &Requirement{verb: grant}), nil
	}
	need, err := Keyed(grant, Word{idKey.Dim, target})
	if err != nil || target == "" || AgentID(giver) == "" {
		return Denial(MalformedArguments, &Requirement{verb: grant}), nil
	}
	d := held.Decide(need)
	switch {
	case !d.Allowed():
		return d, nil
	case strings.EqualFold(AgentID(giver), AgentID(target)): // one file, where names ignore case
		return Denial(SelfModification, need), nil
	}
	if passes, gaps := giveable.Covers(set); !passes.Allowed() {
		passes.need = need
		return passes, gaps
	}
	return d, nil
}

// Covers decides whether everything in a set is inside every link, so that it may
// be passed on to a child. The gaps of a denial are those of the first link that
// does not cover the set. The empty Chain covers nothing.
func (c Chain) Covers(set *Set) (Decision, []Gap) {
	if len(c) == 0 {
		return Denial(ExceedsGrantorAuthority, nil), nil
	}
	for i, link := range c {
		gaps := link.Set.Covers(set)
		if len(gaps) == 0 {
			continue
		}
		d := Denial(ExceedsGrantorAuthority, nil)
		if i > 0 {
			d.link = link.Name
		}
		return d, gaps
	}
	return Decision{Effect: Allow}, nil
}
