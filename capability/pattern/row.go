package pattern

import (
	"slices"
	"strings"
)

// A Row is a product: one pattern for each dimension, such as cwd and argv. It
// matches what matches in every dimension.
type Row []*Pattern

// empty reports whether the row matches nothing for want of a pattern that does.
func (r Row) empty() bool { return slices.ContainsFunc(r, (*Pattern).empty) }

// holds reports whether everything in a, of as many dimensions, is plainly in r.
func (r Row) holds(a Row) bool {
	for i, p := range r {
		if !p.holds(a[i]) {
			return false
		}
	}
	return true
}

// apart reports whether nothing can be in both r and a, as far as can be seen
// from what their patterns begin with.
func (r Row) apart(a Row) bool {
	for i, p := range r {
		if p.apart(a[i]) {
			return true
		}
	}
	return false
}

// holds reports whether everything that q matches p plainly matches too. Neither
// is empty.
func (p *Pattern) holds(q *Pattern) bool {
	switch {
	case q.form == exact:
		return p.Match(q.lead)
	case p.text == q.text && p.sep == q.sep:
		return true
	case p.form == open:
		return strings.HasPrefix(q.lead, p.lead)
	case p.form == subtree:
		return strings.HasPrefix(q.lead, p.lead+"/")
	}
	return false
}

// apart reports whether nothing can match both p and q.
func (p *Pattern) apart(q *Pattern) bool {
	switch {
	case p.empty() || q.empty():
		return true
	case p.form == exact:
		return !q.Match(p.lead)
	case q.form == exact:
		return !p.Match(q.lead)
	}
	return !strings.HasPrefix(p.lead, q.lead) && !strings.HasPrefix(q.lead, p.lead)
}
