package proxy

import "strings"

// withheld is a resource or template that is held back, by what servers may take for its URI, or for one of its own.
type withheld struct {
	*resource
	as       spelling
	template bool
}

// withhold notes what is held back.
func (a *assembly) withhold(r *resource, template bool) {
	if r.held.code == "" {
		return
	}
	w := withheld{r, spell(r.uri), template}
	if literal, _, _ := strings.Cut(r.uri, "{"); template {
		w.as = spellBegin(literal)
	}
	a.withheld = append(a.withheld, w)
}

// alike is why what a server may take another spelling of a URI for is held back.
func (c *catalogue) alike(l *line, uri string) ruling {
	if len(c.withheld) == 0 {
		return ruling{}
	}
	as := spell(uri)
	for _, w := range c.withheld {
		if w.line == l && (w.as.is(as) || w.template && w.as.begins(as)) {
			return w.held
		}
	}
	return ruling{}
}
