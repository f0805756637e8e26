package agents

import (
	"fmt"
	"slices"
	"strings"

	"capgate/capability"
)

// Where grants come from that were not written out.
const (
	originDefault = "default"
	originAccess  = "access: "
	originSandbox = "sandbox:"
	originToolset = "toolset:"
)

// shorthandVerbs are what sandbox: grants besides being the root. Running shell
// lines and the network are riskier and have to be written out.
func shorthandVerbs() []string { return []string{"fs.read", "fs.write", "proc.exec"} }

// accessVerbs is the table of access:, which never deletes.
func accessVerbs(access string) []string {
	switch access {
	case "r":
		return []string{"records.read"}
	case "w":
		return []string{"records.create", "records.update"}
	case "rw":
		return []string{"records.read", "records.create", "records.update"}
	}
	return nil
}

// egghead reads capabilities:, access: and the shorthand of sandbox:.
func (p *parser) egghead() error {
	if err := p.idFromFile(); err != nil {
		return err
	}
	list, listed := child(p.root, "capabilities")
	if listed {
		var err error
		if p.entries, err = p.list("capabilities", list); err != nil {
			return err
		}
	}
	access, err := p.access()
	if err != nil {
		return err
	}
	shorthand := p.shorthand(listed && len(list.Content) == 0)
	for _, s := range specsOf(p.entries) {
		supplied := slices.ContainsFunc(shorthand, func(o capability.Spec) bool { return o.Verb == s.Verb })
		if !s.Bare || !supplied {
			p.add(s)
		}
	}
	p.add(access...)
	if !listed && access == nil {
		p.add(capability.Spec{Verb: "records.read", Bare: true, Origin: originDefault, Pos: capability.Pos{File: p.file}})
	}
	p.add(shorthand...)
	return nil
}

// access expands access: r, w or rw.
func (p *parser) access() ([]capability.Spec, error) {
	text, at, err := p.text("access")
	if err != nil || at == nil {
		return nil, err
	}
	verbs := accessVerbs(text)
	if verbs == nil {
		return nil, p.wrong(at, "it is r, w or rw", "access: %q is no access", text)
	}
	var specs []capability.Spec
	for _, v := range verbs {
		specs = append(specs, capability.Spec{Verb: v, Bare: true, Origin: originAccess + text, Pos: p.pos(at)})
	}
	return specs, nil
}

// shorthand expands sandbox: to the verbs that the record does not limit itself.
// An entry that could not be read may have been to limit one, so that the
// shorthand stays away from what such an entry could have meant.
func (p *parser) shorthand(suppressed bool) []capability.Spec {
	if p.rec.Sandbox == "" || suppressed {
		return nil
	}
	var specs []capability.Spec
	for _, verb := range shorthandVerbs() {
		i := slices.IndexFunc(p.entries, func(e entry) bool { return e.limits(verb) })
		if i < 0 {
			s := capability.Spec{Verb: verb, Origin: originSandbox, Pos: p.rec.sandboxPos}.With("in", p.rec.Sandbox)
			s.Scope[0].Single = true
			specs = append(specs, s)
		} else if e := p.entries[i]; e.bad || e.spec.Verb != verb {
			p.say(capability.Warning, "shorthand_withheld", p.rec.sandboxPos, fmt.Sprintf("sandbox: does not grant %s while the entry in line %d may have been to limit it", verb, p.pos(e.node).Line), "mend the entry")
		}
	}
	return specs
}

// limits reports whether an entry limits a verb of the shorthand itself, or
// cannot be understood and might have been meant to.
func (e entry) limits(verb string) bool {
	if _, known := capability.Lookup(capability.Verb(e.verb)); known || strings.HasPrefix(e.verb, "rye.") {
		return e.verb == verb && (e.bad || !e.spec.Bare)
	}
	resource := capability.Verb(e.verb).Resource()
	if slices.Contains(resources(), resource) {
		return resource == capability.Verb(verb).Resource()
	}
	return true
}
