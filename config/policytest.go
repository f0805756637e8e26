package config

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"capgate/capability"
)

// Test is one policy test: what must come of asking an agent for one thing. It
// was read once, so that it is known to have a meaning; which one depends on the
// root of the agent that it asks.
type Test struct {
	Agent       string            // as written; see [capability.AgentID]
	Requirement string            // for [capability.ParseRequirement], "" when another of these is set
	Covers      *capability.Spec  // a grant that is compared with all that the agent holds
	Tool        string            // a tool that is called, by its name among capabilities: upstream.tool
	Args        []byte            // the arguments of Tool, a JSON object
	Skill       string            // the path of a skill that is shown
	Effect      capability.Effect // what must come of it
	Code        capability.Code   // what a denial must say, "" for anything
	Pos         capability.Pos
}

// Text writes what the test asks for.
func (t Test) Text() string {
	switch {
	case t.Covers != nil:
		return "covers " + t.Covers.String()
	case t.Tool != "":
		return t.Tool + " " + string(t.Args)
	case t.Skill != "":
		return "skill " + t.Skill
	}
	return t.Requirement
}

// Want writes what must come of it: allow, deny, or deny with a code.
func (t Test) Want() string {
	if t.Code != "" {
		return t.Effect.String() + " " + string(t.Code)
	}
	return t.Effect.String()
}

// Met reports whether an answer is the one that the test wants.
func (t Test) Met(effect capability.Effect, code capability.Code) bool {
	return effect == t.Effect && (t.Code == "" || t.Code == code)
}

// block is one entry of tests:, several tests of one agent.
type block struct {
	agent string
	tests []Test
}

// tests reads tests:.
func (r *reader) tests(n *yaml.Node, c *Config) {
	r.each(n, "tests", "a list of policy tests", func(entry *yaml.Node) {
		var b block
		ok := fill(r, entry, "a test", testKeys(), &b)
		switch {
		case !ok: // already said
		case lacks(entry, "agent"):
			r.at(entry, "add agent: with its id", "the test names no agent")
		case lacks(entry, "allow", "deny"):
			r.at(entry, "add allow: or deny:", "the test expects nothing")
		}
		for _, t := range b.tests {
			t.Agent = b.agent
			c.Tests = append(c.Tests, t)
		}
	})
}

func (r *reader) testAgent(n *yaml.Node, b *block) {
	text, ok := r.text(n, "agent", "an agent's id")
	if ok && capability.AgentID(text) == "" {
		r.at(n, "an id is letters, digits, - _ . and / between names", "%q is no agent id", clip(text))
	}
	b.agent = text
}

func (r *reader) testAllow(n *yaml.Node, b *block) {
	r.each(n, "allow", "a list of requirements", func(entry *yaml.Node) {
		t := r.test(entry, capability.Allow)
		if t.Code != "" {
			r.at(value(entry, "code"), "move the entry to deny:, or remove the code", "only a denial has a code")
		}
		b.tests = append(b.tests, t)
	})
}

func (r *reader) testDeny(n *yaml.Node, b *block) {
	r.each(n, "deny", "a list of requirements", func(entry *yaml.Node) {
		t := r.test(entry, capability.Deny)
		if t.Covers != nil && t.Code != "" {
			r.at(value(entry, "code"), "remove it", "a comparison of grants has no code")
		}
		b.tests = append(b.tests, t)
	})
}

// test reads one entry of allow: or deny:, a requirement as text or a map.
func (r *reader) test(n *yaml.Node, effect capability.Effect) Test {
	t := Test{Effect: effect, Pos: r.pos(n)}
	if n.Kind != yaml.MappingNode {
		r.requirement(n, &t)
		return t
	}
	ok := fill(r, n, "an entry", entryKeys(), &t)
	var asks []*yaml.Node
	for _, name := range []string{"requirement", "covers", "tool", "skill"} {
		if what := value(n, name); what != nil {
			asks = append(asks, what)
		}
	}
	args := value(n, "args")
	switch {
	case len(asks) > 1:
		last := slices.MaxFunc(asks, func(a, b *yaml.Node) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
		})
		r.at(last, "make them two entries", "an entry is a requirement, a grant, a tool call or a skill, not two of them")
	case ok && len(asks) == 0:
		r.at(n, "add requirement:, covers:, tool: or skill:", "the entry names neither a requirement nor a grant nor a tool nor a skill")
	case args != nil && ok && t.Tool == "":
		r.at(args, "add tool:", "there are arguments, and no tool that takes them")
	case args == nil && t.Tool != "":
		t.Args = []byte("{}")
	}
	return t
}

// requirement reads the text of a requirement. One that a call could carry and
// that would be denied as malformed is fine: a test may want to see just that.
func (r *reader) requirement(n *yaml.Node, t *Test) {
	if _, ok := r.spec(n, "a requirement"); !ok {
		return
	}
	// The root of an agent is not known here, and the form does not depend on it.
	_, err := capability.ParseRequirement(n.Value, capability.View{Cwd: "/", Home: "/"})
	if _, denied := errors.AsType[*capability.Malformed](err); err != nil && !denied {
		r.at(n, "", "%v", err)
	}
	t.Requirement = n.Value
}

// covers reads the text of a grant. One that would be inert is contained in
// everything, so that a test of it would prove nothing.
func (r *reader) covers(n *yaml.Node, t *Test) {
	spec, ok := r.spec(n, "a grant")
	if !ok {
		return
	}
	_, findings := capability.Compile([]capability.Spec{spec}, capability.Options{
		Config: capability.Root{Dir: "/", Real: "/"}, View: capability.View{Home: "/"},
	})
	for _, f := range findings {
		r.at(n, f.Hint, "%s", f.Text)
	}
	t.Covers = &spec
}

// spec reads the compact form that requirements and grants share.
func (r *reader) spec(n *yaml.Node, takes string) (capability.Spec, bool) {
	text, ok := r.text(n, "an entry", takes)
	if !ok {
		return capability.Spec{}, false
	}
	spec, err := capability.ParseSpec(text)
	if err != nil {
		r.at(n, "", "%v", err)
		return capability.Spec{}, false
	}
	spec.Pos = r.pos(n)
	return spec, r.verb(n, spec.Verb)
}

// verb refuses what no verb is called. The wildcards of a dialect are no verbs
// themselves and are left to whoever expands them.
func (r *reader) verb(n *yaml.Node, verb string) bool {
	var all []string
	for _, e := range capability.Catalogue() {
		all = append(all, string(e.Verb))
	}
	if slices.Contains(all, verb) || strings.HasSuffix(verb, ".*") { // what nothing asks for proves nothing
		return true
	}
	r.at(n, meant(verb, all, ""), "%q is no verb", clip(verb))
	return false
}

func (r *reader) code(n *yaml.Node, t *Test) {
	text, ok := r.text(n, "code", "a code of a denial")
	if !ok {
		return
	}
	var all []string
	for _, c := range capability.Codes() {
		if t.Code == "" && string(c) == text {
			t.Code = c
		}
		all = append(all, string(c))
	}
	if t.Code == "" {
		r.at(n, meant(text, all, "it is one of "+strings.Join(all, ", ")), "code takes a code of a denial, which %q is not", clip(text))
	}
}
