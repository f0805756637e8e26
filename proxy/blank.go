package proxy

import (
	"cmp"
	"fmt"
	"slices"

	"capgate/capability"
	"capgate/gate"
	"capgate/mapping"
	"capgate/secrets"
	"capgate/upstream"
	"capgate/wire"
)

// maxFilled is how many bytes all the values together may have that are filled in for
// one call: a short text can ask for one value very often.
const maxFilled = 1 << 20

// blanks are the arguments of a call in which values of secrets are to be filled in.
// It holds none of them: each time the arguments are written they are read anew, into
// what goes up and nowhere else.
type blanks struct {
	args  wire.Value
	texts []blank // in the order in which they stand
	needs []mapping.Need
	from  Secrets
}

// blank is one text of the arguments that has handles in it.
type blank struct {
	value   wire.Value
	needs   []mapping.Need   // one for each handle
	handles []secrets.Handle // where they stand in the text
}

// blanks finds where a call that is allowed has handles to be filled in; nil if it has
// none. What cannot be filled in denies it before anything has gone up.
func (p *Policy) blanks(args wire.Value, v gate.Verdict, m upstream.Mirror) (*blanks, *gate.Verdict) {
	if !v.Decision.Allowed() || !slices.ContainsFunc(v.Needs, func(n mapping.Need) bool { return n.Handle }) {
		return nil, nil
	}
	b := &blanks{args: args, needs: v.Needs, from: p.Secrets}
	for _, n := range v.Needs {
		if !n.Handle {
			continue
		}
		last := len(b.texts) - 1
		if last < 0 || b.texts[last].value != n.Value {
			b.texts = append(b.texts, blank{value: n.Value})
			last++
		}
		b.texts[last].needs = append(b.texts[last].needs, n)
	}
	slices.SortFunc(b.texts, func(p, q blank) int { return cmp.Compare(p.start(), q.start()) })
	for i := range b.texts {
		if denied := b.texts[i].read(b, m); denied != nil {
			return nil, denied
		}
	}
	if _, denied := b.write(nil); denied != nil {
		return nil, denied
	}
	return b, nil
}

// Unfilled is why a call that is allowed is denied all the same: secrets in its arguments cannot be
// filled in. Nil is that they can, as far as the definition of the tool has no say in it.
func (p *Policy) Unfilled(args wire.Value, v gate.Verdict) *gate.Verdict {
	_, denied := p.blanks(args, v, upstream.Mirror{})
	return denied
}

func (t *blank) start() int {
	start, _ := t.value.Span()
	return start
}

// read finds the handles in the text. They must be those that were decided on, one by
// one, and nobody else on the way to the server may see them: what travels as a header
// too would have to say the value there, and headers are logged.
func (t *blank) read(b *blanks, m upstream.Mirror) *gate.Verdict {
	text, _ := t.value.Str()
	argument := t.needs[0].Argument
	var err error
	if t.handles, err = secrets.Handles(text); err != nil {
		return b.refuse(capability.MalformedArguments, argument, "cannot be filled in: "+err.Error())
	}
	decided := func(h secrets.Handle, n mapping.Need) bool { return h.Name == n.Requirement.Object() }
	if !slices.EqualFunc(t.handles, t.needs, decided) {
		return b.refuse(capability.MalformedArguments, argument, "has handles that are not the ones that were decided on")
	}
	if m.Shows(t.value, b.args) {
		return b.refuse(capability.ScopeViolation, argument, "holds the handle of a secret, and travels as a header too, where no secret is filled in")
	}
	return nil
}

// write appends the arguments as the server is to get them. Apart from the handles
// they are what the agent wrote, byte for byte.
func (b *blanks) write(dst []byte) ([]byte, *gate.Verdict) {
	raw := b.args.Raw()
	first, _ := b.args.Span()
	done, room := 0, maxFilled
	known := map[string]string{} // one call gets one value of a secret
	for _, t := range b.texts {
		start, end := t.value.Span()
		dst = append(dst, raw[done:start-first]...)
		edits := make([]wire.Edit, len(t.handles))
		for i, h := range t.handles {
			if known[h.Name] == "" {
				value, err := b.value(h.Name)
				if err != nil {
					return nil, b.missing(t.needs[i], err)
				}
				known[h.Name] = value
			}
			if room -= len(known[h.Name]); room < 0 {
				return nil, b.refuse(capability.LimitExceeded, t.needs[i].Argument, fmt.Sprintf("asks for more than %d bytes of secrets", maxFilled))
			}
			edits[i] = wire.Edit{Start: h.Start, End: h.End, Text: known[h.Name]}
		}
		dst = t.value.AppendEdited(dst, edits...)
		done = end - first
	}
	return append(dst, raw[done:]...), nil
}

// value reads one value. An empty one would leave no trace of what was asked for.
func (b *blanks) value(name string) (string, error) {
	if b.from == nil {
		return "", fmt.Errorf("there are no secrets")
	}
	value, err := b.from.Value(name)
	if err == nil && value == "" {
		err = fmt.Errorf("the secret %q is empty", name)
	}
	return value, err
}

// missing is the verdict on a call with a secret that cannot be had. Why that is stays
// with the operator.
func (b *blanks) missing(n mapping.Need, err error) *gate.Verdict {
	return &gate.Verdict{
		Decision: capability.Denial(capability.NotAvailable, n.Requirement), Needs: b.needs, Argument: n.Argument, Why: err.Error(),
	}
}

// refuse is the verdict on a call with handles in a place or a number that no grant
// allows.
func (b *blanks) refuse(code capability.Code, argument, text string) *gate.Verdict {
	r := &mapping.Refused{Code: code, Argument: argument, Text: text}
	return &gate.Verdict{Decision: capability.Denial(code, nil), Needs: b.needs, Argument: argument, Refused: r, Why: r.Error()}
}
