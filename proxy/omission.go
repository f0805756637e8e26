package proxy

import (
	"crypto/sha256"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"time"

	"capgate/capability"
	"capgate/guardrail"
)

const (
	maxOmitted = 16 << 10 // how much is known to have been said to be hidden
	maxSaid    = 256      // bytes of a name that is kept as it is for that
	maxReasons = 16       // of one of them that are known to have been said
	newReasons = 2        // a minute that are said of one
)

// omission is something that a server lists, and why nobody is shown it, if that is so.
type omission struct {
	up         *Upstream
	kind, name string // what it is, and how the server calls it
	raw        []byte // its definition, as the server wrote it
	ruling
}

// reason is the hash of why it is hidden, and of the definition that is: another one is another matter.
func (o omission) reason() [sha256.Size]byte {
	if o.code == capability.NameCollision { // whatever they do
		o.raw = nil
	}
	return sha256.Sum256(append([]byte(string(o.code)+"\x00"+o.why+"\x00"), o.raw...))
}

// reasons are why something was said to be hidden, the last ones. A server may list something in turn as
// it was before and as it waits, or as ever another, as often as it likes.
type reasons struct {
	known  [][sha256.Size]byte
	bucket bucket
}

// add reports whether something is to be said that was not.
func (r *reasons) add(why [sha256.Size]byte, now time.Time) bool {
	if slices.Contains(r.known, why) || !r.bucket.take(now, newReasons) {
		return false
	}
	if r.known = append(r.known, why); len(r.known) > maxReasons {
		r.known = slices.Delete(r.known, 0, 1)
	}
	return true
}

// called is what events call it: a tool as it is called among capabilities, all else as pins are.
func (o omission) called() string {
	if o.kind == "tool" {
		return o.up.called(o.name)
	}
	return o.kind + ":" + o.name
}

// nameOf is what it is called where that is recorded: without secrets, and only then no longer than a pin's.
func (s *Server) nameOf(o omission) string {
	name := o.called()
	if scrub := s.scrubberOf(o.up); scrub != nil {
		name = string(scrub([]byte(name)))
	}
	return strings.Clone(name[:min(len(name), maxPinName)])
}

// several is the ruling on what nobody has, as there are several of it.
func several(of string) ruling { return ruling{capability.NameCollision, "several " + of} }

// listed is what servers list.
func (a *assembly) listed() iter.Seq[omission] {
	return func(yield func(omission) bool) {
		more := true
		say := func(up *Upstream, kind, name string, raw []byte, is ruling) {
			more = more && yield(omission{up, kind, name, raw, is})
		}
		for _, t := range a.order {
			say(t.up, "tool", t.name, t.raw, ruling{t.blocked, t.why})
		}
		for _, p := range a.prompted {
			if p.skill == nil {
				say(p.up, "prompt", p.name, p.raw, p.held)
			}
		}
		for _, r := range a.resources {
			say(r.up, "resource", r.uri, r.raw, r.held)
		}
		claimed := disputed(a.templates)
		for _, r := range a.templates {
			is := r.held
			if claimed[r.uri] {
				is = several("servers have the template")
			}
			say(r.up, "template", r.uri, r.raw, is)
		}
		for _, one := range a.skilled {
			if one.line != nil {
				say(one.line.up(), "skill", one.from.uri(), nil, one.held)
			}
		}
	}
}

// omit records what nobody is shown until a person does something about it, each once for the same
// reason: who does not see it does not look for what hides it.
func (s *Server) omit(p *Policy, all iter.Seq[omission]) {
	for _, o := range s.fresh(all) {
		e := &guardrail.Event{
			Kind: guardrail.Notice, Upstream: o.up.Name, Tool: s.nameOf(o), Code: string(o.code), Policy: p.Hash, Text: "the " + o.kind + " is hidden: " + o.why,
		}
		missed, fits := s.loud("upstream " + o.up.Name)
		if !fits {
			continue
		}
		if missed > 0 {
			e.Text = fmt.Sprintf("%s (%d before it were not recorded)", e.Text, missed)
		}
		s.inform(
			s.ctx, "a "+o.kind+" is hidden", slog.String("event", s.record(e)), slog.String("upstream", e.Upstream),
			slog.String("tool", e.Tool), slog.String("code", e.Code), slog.String("why", o.why),
		)
	}
}

// fresh is what of it is hidden for a reason that was not said.
func (s *Server) fresh(all iter.Seq[omission]) (fresh []omission) {
	s.omitting.Lock()
	defer s.omitting.Unlock()
	for o := range all {
		switch o.code {
		case capability.NameCollision, capability.ToolQuarantined, capability.ToolRejected:
		default:
			continue
		}
		key := [3]string{o.up.Name, o.kind, short(o.name)}
		said := s.omitted[key]
		if said == nil {
			if len(s.omitted) >= maxOmitted {
				clear(s.omitted)
			}
			said = new(reasons)
			s.omitted[key] = said
		}
		if said.add(o.reason(), s.now()) {
			fresh = append(fresh, o)
		}
	}
	return fresh
}

// short is a text, or what stands for it where it is long: a server may give itself names of any length.
func short(text string) string {
	if len(text) <= maxSaid {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return string(sum[:])
}
