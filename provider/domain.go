package provider

import (
	"iter"
	"slices"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"

	"capgate/capability"
)

// domains are the hosts of a verb as providers take them: by name, where a name
// stands for itself and everything beneath.
type domains struct {
	all  bool     // every public host
	held []domain // by name
	left []string // what is held and cannot be said so, each with the reason

	at map[string]*spot // what is held, by every name that is held or that something is beneath
}

// domain is one held name.
type domain struct {
	name string
	tree bool // also what is beneath
}

// spot is what is held of one name, so that a list costs by its own length and not by
// that of the grants each time.
type spot struct {
	held, tree bool
	suffix     bool     // of a name that is held: anyone can have a name beneath it
	below      []string // names that are held beneath it
}

// hold adds a name to what is held.
func (d *domains) hold(h domain) {
	d.held = append(d.held, h)
	for top := range tops(h.name) {
		s := d.at[top]
		if s == nil {
			s = &spot{}
			d.at[top] = s
		}
		if top != h.name {
			s.below = append(s.below, h.name)
			continue
		}
		s.held, s.tree, s.suffix = true, s.tree || h.tree, isSuffix(h.name)
	}
}

// spot returns what is held of a name.
func (d *domains) spot(name string) spot {
	if s := d.at[name]; s != nil {
		return *s
	}
	return spot{}
}

// domainsOf reads the hosts of a verb. Strictly, a name without what is beneath it
// cannot be said.
func domainsOf(hosts []capability.Host, strict bool) *domains {
	d := &domains{at: map[string]*spot{}}
	var held []domain
	for _, h := range hosts {
		name, tree := h.Name()
		why := ""
		switch {
		case h.Port() != 0:
			why = "a provider takes no port"
		case h.Any():
			d.all = true
			continue
		case name == "":
			why = "a provider takes no address"
		case !h.Public():
			why = "a provider would reach it in its own network"
		case strict && !tree:
			why = "the provider would include the names beneath it"
		}
		if why != "" {
			d.left = append(d.left, h.String()+": "+why)
			continue
		}
		if isSuffix(name) {
			d.left = append(d.left, h.String()+": anyone can have a name beneath it")
		}
		held = append(held, domain{name, tree})
	}
	slices.SortFunc(held, func(a, b domain) int { return strings.Compare(a.name, b.name) })
	for _, h := range held {
		d.hold(h)
	}
	return d
}

// covers reports whether a name is held.
func (d *domains) covers(name string) bool {
	return d.spot(name).held || d.inTree(name)
}

// inTree reports whether a name is held with all that is beneath it.
func (d *domains) inTree(name string) bool {
	for top := range tops(name) {
		if d.spot(top).tree {
			return true
		}
	}
	return false
}

// isSuffix is the function of that name, which is asked once for each name that is held.
func (d *domains) isSuffix(name string) bool {
	if s := d.spot(name); s.held {
		return s.suffix
	}
	return isSuffix(name)
}

// isSuffix reports whether names beneath a name are given out to anybody: directly, or
// beneath whatever stands there, as in "*.kawasaki.jp" of the list.
func isSuffix(name string) bool {
	suffix, _ := publicsuffix.PublicSuffix(name)
	below, _ := publicsuffix.PublicSuffix("any." + name)
	return suffix == name || below == "any."+name
}

// entry is one entry of a list of domains, as an agent wrote it.
type entry struct{ name, path string }

func (e entry) String() string { return e.name + e.path }

// maxDomain is over what any name of a host takes, in any script. To write one in ASCII
// takes time that grows with the square of its length.
const maxDomain = 4 * 253

// readEntry reads a domain: lower case, in ASCII, without a dot at its end. What
// is no plain name, with a path where the list takes one, is not read.
func readEntry(text string, paths bool) (entry, bool) {
	name, path, hasPath := strings.Cut(text, "/")
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if len(name) > maxDomain {
		return entry{name: name}, false
	}
	if ascii, err := idna.Lookup.ToASCII(name); err == nil {
		name = ascii
	}
	e := entry{name: name}
	if hasPath {
		e.path = "/" + path
	}
	host, err := capability.ParseHost(name)
	plainName, tree := host.Name()
	ok := err == nil && !tree && plainName == name && host.Port() == 0 && host.Public() && !strings.Contains(name, "_")
	return e, ok && (!hasPath || paths && strings.Trim(path, plain+"~/*") == "")
}

// asked is what an agent asked for: the list of what it wants, nil for everything,
// and the list of what it does not want.
type asked struct {
	allowed, blocked []string
	limited          bool // there is a list of what it wants
}

// list is how a provider takes a list of domains.
type list struct {
	most  int  // entries; 0 is no limit
	paths bool // an entry may carry a path
	apart bool // an entry may be that one name and no more, so that none stands for another
}

// answer is the list that may go up.
type answer struct {
	names []string
	wider []string // those that reach further than what is held
	notes []string // what did not get in, and why
}

// meet returns what is both held and asked for, never more than either. In case
// of doubt an entry is left out.
func (d *domains) meet(a asked, l list) answer {
	var out answer
	var entries []entry
	if a.limited {
		entries = d.within(a.allowed, l, &out)
	} else {
		for _, h := range d.held {
			entries = append(entries, entry{name: h.name})
		}
		out.notes = append(out.notes, d.left...)
	}
	entries = slices.DeleteFunc(entries, func(e entry) bool { return d.isSuffix(e.name) })
	entries = unblocked(entries, a.blocked)
	entries = collapse(entries, l.apart)
	if l.most > 0 && len(entries) > l.most {
		for _, e := range entries[l.most:] {
			out.notes = append(out.notes, e.String()+": the list is full")
		}
		entries = entries[:l.most]
	}
	for _, e := range entries {
		out.names = append(out.names, e.String())
		if !d.inTree(e.name) {
			out.wider = append(out.wider, e.String())
		}
	}
	return out
}

// within returns the entries of an agent's list as far as they are held: the more
// specific of two that nest. A name that is held alone holds nothing beneath it.
func (d *domains) within(texts []string, l list, out *answer) []entry {
	var entries []entry
	seen := map[entry]bool{} // a name again, however written, would bring in all that is beneath it again
	for _, text := range texts {
		e, ok := readEntry(text, l.paths)
		if seen[e] {
			continue
		}
		seen[e] = true
		n := len(entries)
		if ok && d.covers(e.name) {
			entries = append(entries, e)
		}
		if ok && e.path == "" {
			for _, name := range d.spot(e.name).below {
				entries = append(entries, entry{name: name})
			}
		}
		if len(entries) == n {
			out.notes = append(out.notes, clip(text)+": is outside of what is held")
		}
	}
	return entries
}

// unblocked leaves out what is blocked, and what holds something that is blocked.
// A blocked entry that cannot be read blocks everything.
func unblocked(entries []entry, blocked []string) []entry {
	below, above := map[string]bool{}, map[string]bool{}
	for _, text := range blocked {
		b, ok := readEntry(text, true)
		if !ok {
			return nil
		}
		below[b.name] = true
		for top := range tops(b.name) {
			above[top] = true
		}
	}
	return slices.DeleteFunc(entries, func(e entry) bool {
		for top := range tops(e.name) {
			if below[top] {
				return true
			}
		}
		return above[e.name]
	})
}

// collapse leaves out entries that another one holds.
func collapse(entries []entry, apart bool) []entry {
	whole, seen := map[string]bool{}, map[entry]bool{}
	for _, e := range entries {
		whole[e.name] = whole[e.name] || e.path == ""
	}
	held := func(e entry) bool {
		for top := range tops(e.name) {
			if whole[top] && (top != e.name || e.path != "") {
				return true
			}
		}
		return false
	}
	return slices.DeleteFunc(entries, func(e entry) bool {
		again := seen[e]
		seen[e] = true
		return again || !apart && held(e)
	})
}

// tops iterates over a name and all that it is beneath.
func tops(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for more := true; more && yield(name); {
			_, name, more = strings.Cut(name, ".")
		}
	}
}
