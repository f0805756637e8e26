package mapping

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"capgate/capability"
	"capgate/wire"
)

// most is how many there may be in one call: elements of arrays that are looked
// into, members of one object whose members have roles, texts of one array,
// requirements.
const most = 1024

// Call is one tools/call as a mapping reads it.
type Call struct {
	Name string          // the tool's name among capabilities: upstream.tool
	Args wire.Value      // the arguments as they will be forwarded; null and none are an empty object
	View capability.View // how the upstream reads a path

	// Limits reports whether some grant of tool.invoke limits an argument, so
	// that only those are written out. Nil: any may be.
	Limits func(argument string) bool
}

// Need is a requirement, and the argument it comes from.
type Need struct {
	Requirement *capability.Requirement
	Argument    string     // "edits[1].file.path", "" for what does not depend on the arguments
	Value       wire.Value // what stands there; Invalid for a default

	// Handle is set when a handle in the value asks for it: the value of the secret is
	// what the server is to get there. Each handle is a need of its own.
	Handle bool
}

// Refused says why a call cannot be decided, and so is denied: its arguments
// cannot be read, they ask for what no grant can give, or a limit was hit.
type Refused struct {
	Code     capability.Code
	Argument string // which one, "" for the arguments as a whole
	Text     string // finishes the sentence "the argument path …"
}

// Error returns the sentence, after the code of the denial.
func (r *Refused) Error() string {
	if r.Argument == "" {
		return fmt.Sprintf("%s: the call %s", r.Code, r.Text)
	}
	return fmt.Sprintf("%s: the argument %s %s", r.Code, r.Argument, r.Text)
}

func refuse(code capability.Code, argument, format string, a ...any) error {
	return &Refused{Code: code, Argument: argument, Text: fmt.Sprintf(format, a...)}
}

func malformed(argument, format string, a ...any) error {
	return refuse(capability.MalformedArguments, argument, format, a...)
}

func tooMany(argument, what string) error {
	return refuse(capability.LimitExceeded, argument, "has more than %d %s", most, what)
}

// printable writes a text of the call for a message: short, and in ASCII, since
// what it holds may be there to mislead whoever reads the message.
func printable(text string) string {
	const longest = 64
	plain := text != "" && len(text) <= longest
	for i := 0; i < len(text) && plain; i++ {
		plain = text[i] > ' ' && text[i] < 0x7f
	}
	if plain {
		return text
	}
	return quoted(text, longest)
}

// quoted writes the beginning of a text in quotes and ASCII.
func quoted(text string, longest int) string {
	if len(text) <= longest {
		return strconv.QuoteToASCII(text)
	}
	return strconv.QuoteToASCII(text[:longest]) + "…"
}

// Require says what a call needs. All of it must be allowed. An error is always
// a [*Refused], and the call is then denied.
func (t *Tool) Require(c Call) ([]Need, error) {
	r := reading{Call: c, tool: t}
	r.measure()
	if err := r.arguments(); err != nil {
		return nil, err
	}
	return r.needs, nil
}

// reading is one call while it is read.
type reading struct {
	Call
	tool     *Tool
	needs    []Need
	derived  bool // something the tool does is among the needs
	values   int
	programs programs
	words    []keyed
	secrets  []wire.Value // where handles are honoured
	lookups  lookups
}

func (r *reading) arguments() error {
	root := place{value: r.Args, object: r.Args}
	switch kind := r.Args.Kind(); {
	case kind != wire.Object && kind != wire.Null && kind != wire.Invalid:
		return malformed("", "has arguments that are %s, not an object", kindOf(r.Args))
	case r.tool.isPrompt():
		if err := r.prompt(); err != nil || r.tool.texts {
			return err
		}
	}
	if r.tool != nil {
		if err := r.object(r.tool.args, root); err != nil {
			return err
		}
		if err := r.conclude(); err != nil {
			return err
		}
	}
	if err := r.strayHandles(); err != nil {
		return err
	}
	if !r.derived && !r.tool.isPrompt() {
		return r.invocations()
	}
	return nil
}

// conclude adds what follows from several arguments together, and what does not
// follow from any.
func (r *reading) conclude() error {
	for _, f := range r.tool.fixed {
		if err := r.fixed(f); err != nil {
			return err
		}
	}
	if err := r.programNeeds(); err != nil {
		return err
	}
	for _, k := range r.words {
		if err := r.keyedNeeds(k); err != nil {
			return err
		}
	}
	return nil
}

// need adds a requirement. The error is that of making it.
func (r *reading) need(at place, q *capability.Requirement, err error) error {
	if err != nil {
		return unreadable(at, err)
	}
	if err := r.overlong(at); err != nil {
		return err
	}
	if len(r.needs) >= most {
		return tooMany("", "requirements")
	}
	if r.needs == nil {
		r.needs = make([]Need, 0, fewNeeds)
	}
	r.needs = append(r.needs, Need{Requirement: q, Argument: at.name, Value: at.value})
	return nil
}

// fewNeeds is as many as most calls have.
const fewNeeds = 4

// unreadable refuses a value that no requirement can be made of.
func unreadable(at place, err error) error {
	if bad := (*capability.Malformed)(nil); errors.As(err, &bad) {
		return malformed(at.name, "%s", bad.Text)
	}
	return malformed(at.name, "cannot be read: %v", err)
}

// object reads the members of an object, those that are missing too.
func (r *reading) object(n *node, at place) error {
	size := at.value.Len()
	if size > most {
		return tooMany(at.name, "members")
	}
	found := 0
	for _, m := range n.members {
		value, ok := at.value.Get(m.name)
		if ok {
			found++
		}
		member := place{value: value, object: at.value, name: inside(at.name, m.name)}
		if err := r.visit(m, member); err != nil {
			return err
		}
		if at.name != "" {
			continue
		}
		if err := r.asJSON(m, member); err != nil {
			return err
		}
	}
	if found == size {
		return nil
	}
	for key, value := range at.value.Members() {
		if err := r.undeclared(n, key, value, at); err != nil {
			return err
		}
	}
	return nil
}

// undeclared refuses a member that has no role, unless the tool passes on what
// its mapping does not know. Even then it is refused when a reader that ignores
// case, or one that looks in the prototype, would take it for one that has.
func (r *reading) undeclared(n *node, key, value wire.Value, at place) error {
	name, _ := key.Str()
	if n.member(name) != nil {
		return nil
	}
	here := place{value: value, object: at.value, name: inside(at.name, printable(name))}
	switch {
	case !r.tool.open || name == prototype:
		return malformed(here.name, "is not one that the tool is known to take")
	case n.folded(name):
		return malformed(here.name, "is another argument in different case")
	}
	return r.additional(name, here)
}

// prototype is the member that JavaScript may take for where all others come from.
const prototype = "__proto__"

func (n *node) folded(name string) bool {
	for _, m := range n.members {
		if strings.EqualFold(m.name, name) {
			return true
		}
	}
	return false
}

// visit reads what stands at a place.
func (r *reading) visit(n *node, at place) error {
	switch kind := at.value.Kind(); {
	case kind == wire.Invalid || kind == wire.Null || kind == wire.Array && n.elements != nil && at.value.Len() == 0:
		return r.absent(n, at)
	case kind == wire.Object && len(n.members) > 0:
		return r.object(n, at)
	case kind == wire.Array && n.elements != nil:
		return r.array(n.elements, at)
	case len(n.roles) == 0:
		return at.wrong(n.takes())
	}
	for i := range n.roles {
		if err := r.value(&n.roles[i], at); err != nil {
			return err
		}
	}
	return nil
}

// asJSON reads the text of an argument as servers do that take what is JSON for what it says, unless they ask for text
// alone: null for nothing, and a list where they take one.
func (r *reading) asJSON(n *node, at place) error {
	if r.View.Plain || !mayBeJSON(at.value) {
		return nil
	}
	text, _ := at.value.Str()
	switch text = strings.TrimSpace(text); {
	case text == "null":
		ofProgram := func(one role) bool { _, is := one.reads.(part); return is } // which has but one of each
		if slices.ContainsFunc(n.roles, ofProgram) || r.absent(n, at) != nil {
			return malformed(at.name, "is text that can be read as no argument at all, and what the tool takes then is not known")
		}
	case n.elements != nil && strings.HasPrefix(text, "[") && json.Valid([]byte(text)):
		return malformed(at.name, "is text that can be read as a list: give the list itself")
	}
	return nil
}

// mayBeJSON reports whether a text may say null or a list, which most of it need not be read for.
func mayBeJSON(v wire.Value) bool {
	if v.Kind() != wire.String {
		return false
	}
	rest := bytes.TrimLeft(v.Raw()[1:], " ")
	return strings.IndexByte(`n[\`, rest[0]) >= 0 || rest[0] >= utf8.RuneSelf // which a space may be as well
}

func (r *reading) array(n *node, at place) error {
	i := 0
	for elem := range at.value.Elems() {
		if r.values++; r.values > most {
			return tooMany("", "values to decide on")
		}
		if err := r.visit(n, place{value: elem, object: at.object, name: at.name + "[" + strconv.Itoa(i) + "]"}); err != nil {
			return err
		}
		i++
	}
	return nil
}

// absent reads a place where nothing stands: what the tool takes instead, if that
// is known. Nothing is taken for granted of a tool's own defaults.
func (r *reading) absent(n *node, at place) error {
	for i := range n.roles {
		switch role := &n.roles[i]; {
		case role.optional:
			r.leftOut(role)
		case role.fallback.Kind() == wire.Invalid:
			return malformed(at.name, "is missing, and what the tool does without it is not known")
		default:
			if err := r.value(role, place{value: role.fallback, object: at.object, name: at.name}); err != nil {
				return err
			}
		}
	}
	nothing := place{object: at.object, name: at.name}
	if n.elements != nil {
		nothing.name = at.name + "[*]"
		if err := r.absent(n.elements, nothing); err != nil {
			return err
		}
	}
	for _, m := range n.members {
		nothing.name = inside(at.name, m.name)
		if err := r.absent(m, nothing); err != nil {
			return err
		}
	}
	return nil
}

// leftOut notes that an argument which may be absent is.
func (r *reading) leftOut(role *role) {
	if w, ok := role.reads.(word); ok && w.dim != "" {
		r.wordsOf(w.verb).of(w.dim).open = true
	}
}

// value reads one value by one role.
func (r *reading) value(role *role, at place) error {
	r.derived = r.derived || role.reads.derives()
	return role.reads.read(r, at)
}
