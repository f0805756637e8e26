package proxy

import (
	"fmt"
	"slices"
	"strings"

	"capgate/capability"
	"capgate/gate"
	"capgate/wire"
)

// scopeOpens begins what is written behind the description of a tool. No server's own
// text is shown unseen that has the name of the gateway in it.
const scopeOpens = "Within capgate, arguments may name at most: "

// What is said of one tool costs every conversation that it is offered in.
const (
	mostScope     = 1 << 10 // bytes of what is said of one tool; arguments beyond are counted
	mostOfVerb    = 512     // bytes of the grants of one verb; those beyond are counted
	mostValues    = 8       // of one list in a grant; those beyond are counted
	longestGrant  = 256     // bytes of one grant; a longer one is only named
	longestOfArgs = 128     // bytes of the names of arguments that are limited alike
)

// narrowing says what an agent may name in the arguments of a tool, "" when nothing
// limits them. It is made of the agent's own grants, and is never more than what they
// and everything above leave: an upper bound, as a call may be denied for more than
// one argument.
func narrowing(scopes []gate.Scope) string {
	var clauses []clause
	for i := 0; i < len(scopes); {
		names, limits := scopes[i].Arguments, []string(nil)
		for ; i < len(scopes) && slices.Equal(scopes[i].Arguments, names); i++ {
			limits = append(limits, scopes[i].Text)
		}
		says := strings.Join(limits, ", ")
		same := slices.IndexFunc(clauses, func(c clause) bool { return c.says == says })
		if same < 0 {
			same = len(clauses)
			clauses = append(clauses, clause{says: says})
		}
		clauses[same].names = append(clauses[same].names, names...)
	}
	var text strings.Builder
	for i, c := range clauses {
		said := c.String()
		if i > 0 && text.Len()+len(said) > mostScope {
			fmt.Fprintf(&text, "; %d more within what is held", len(clauses)-i)
			break
		}
		if i > 0 {
			text.WriteString("; ")
		}
		text.WriteString(said)
	}
	if text.Len() == 0 {
		return ""
	}
	return scopeOpens + text.String() + "."
}

// clause is what several arguments may name.
type clause struct {
	names []string
	says  string
}

func (c clause) String() string {
	names := strings.Join(c.names, ", ")
	if len(names) > longestOfArgs || !isLine(names) {
		names = fmt.Sprintf("%d arguments", len(c.names))
	}
	if len(names)+len(c.says) > mostScope {
		return names + ": no more than is held"
	}
	return names + ": " + c.says
}

// held says what of one verb may be named.
func held(s gate.Scope) string {
	if s.Nothing() {
		return fmt.Sprintf("nothing (no %s is held)", s.Verb)
	}
	var grants []string
	for _, g := range s.Whole {
		grants = append(grants, brief(g))
	}
	for _, g := range s.Part {
		grants = append(grants, "part of "+brief(g))
	}
	return strings.Join(quote(grants, mostOfVerb), ", ")
}

// brief is a grant with long lists cut: what is left of one is still held.
func brief(g *capability.Grant) string {
	spec := g.Spec()
	spec.Scope = slices.Clone(spec.Scope)
	for i := range spec.Scope {
		if p := &spec.Scope[i]; len(p.Values) > mostValues {
			p.Values = append(slices.Clone(p.Values[:mostValues]), fmt.Sprintf("and %d more", len(p.Values)-mostValues))
		}
	}
	text := spec.String()
	if len(text) > longestGrant || !isLine(text) {
		return "a grant of " + string(g.Verb()) + " that is not quoted here"
	}
	return text
}

// isLine reports whether a text is one line, all of which is seen.
func isLine(text string) bool {
	_, hidden := hiddenIn([]byte(text))
	return !hidden && !strings.ContainsAny(text, "\n\r\t")
}

// advertised is a definition as an agent sees it: under the name that it calls the tool
// by, with its scope behind the description. Nothing else of it changes.
func advertised(raw []byte, name, scope string) []byte {
	var doc wire.Doc
	if doc.ParseLoosely(raw, wire.Limits{Bytes: len(raw) + 1}) != nil {
		return raw
	}
	var all []edit
	v, _ := doc.Root().Get("name")
	start, end := v.Span()
	if v.Kind() == wire.String && !v.Equal(name) {
		all = append(all, edit{start, end, wire.AppendString(nil, name)})
	}
	if scope != "" {
		d, ok := doc.Root().Get("description")
		switch {
		case d.Kind() == wire.String:
			start, end := d.Span()
			all = append(all, edit{start, end, behind(d, scope)})
		case !ok && v.Kind() == wire.String:
			all = append(all, edit{end, end, wire.AppendString([]byte(`,"description":`), scope)})
		}
	}
	slices.SortStableFunc(all, func(a, b edit) int { return a.start - b.start })
	return edited(raw, all)
}

// behind writes a text behind another one, after an empty line.
func behind(v wire.Value, text string) []byte {
	before, _ := v.Str()
	if before != "" {
		text = "\n\n" + text
	}
	return v.AppendEdited(nil, wire.Edit{Start: len(before), End: len(before), Text: text})
}

// edit puts a text in place of some bytes.
type edit struct {
	start, end int
	text       []byte
}

// edited makes edits that are in order and apart.
func edited(raw []byte, all []edit) []byte {
	if len(all) == 0 {
		return raw
	}
	dst := make([]byte, 0, len(raw)+mostScope)
	at := 0
	for _, e := range all {
		dst = append(append(dst, raw[at:e.start]...), e.text...)
		at = e.end
	}
	return append(dst, raw[at:]...)
}
