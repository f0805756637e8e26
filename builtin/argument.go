package builtin

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"capgate/wire"
)

const maxField = 1024 // bytes of one field of an object of texts

// arguments are those of one call, each of the kind that its parameter takes.
type arguments struct{ values map[string]wire.Value }

// problem is why a call came to nothing, as a sentence for the agent. It says
// nothing that the agent did not ask for or send.
type problem string

func (p problem) Error() string { return string(p) }

func problemf(format string, args ...any) error { return problem(fmt.Sprintf(format, args...)) }

// read takes the arguments of a call apart. One that the tool does not have is
// refused, null is none at all, and nothing is coerced.
func (t *tool) read(v wire.Value) (arguments, error) {
	a := arguments{values: map[string]wire.Value{}}
	switch v.Kind() {
	case wire.Invalid, wire.Null:
	case wire.Object:
		for key, value := range v.Members() {
			name, _ := key.Str()
			i := slices.IndexFunc(t.parameters, func(p parameter) bool { return p.name == name })
			if i < 0 {
				return a, problemf("the tool %s has no argument %.40q", t.name, name)
			}
			if value.Kind() == wire.Null {
				continue
			}
			if err := t.parameters[i].check(value); err != nil {
				return a, err
			}
			a.values[name] = value
		}
	default:
		return a, problem("the arguments are not an object")
	}
	for _, p := range t.parameters {
		if p.required && !a.has(p.name) {
			return a, problemf("the argument %s is missing", p.name)
		}
	}
	return a, nil
}

// plain is a text as the choices have it.
func (p parameter) plain(s string) string {
	if p.anyCase {
		return strings.ToLower(s)
	}
	return s
}

// check refuses a value that the parameter does not take.
func (p parameter) check(v wire.Value) error {
	fault := ""
	switch p.kind {
	case text:
		s, ok := v.Str()
		switch {
		case !ok:
			fault = "is not text"
		case p.choices != nil && !slices.Contains(p.choices, p.plain(s)):
			fault = "is not one of " + strings.Join(p.choices, ", ")
		case p.choices == nil && int64(len(s)) > p.most:
			fault = fmt.Sprintf("is longer than %d bytes", p.most)
		}
	case number:
		if n, ok := v.Int64(); !ok || n < 1 || n > p.most {
			fault = fmt.Sprintf("is not a whole number from 1 to %d", p.most)
		}
	case flag:
		if _, ok := v.Bool(); !ok {
			fault = "is neither true nor false"
		}
	case fields:
		fault = p.fieldsFault(v)
	}
	if fault != "" {
		return problemf("the argument %s %s", p.name, fault)
	}
	return nil
}

func (p parameter) fieldsFault(v wire.Value) string {
	if v.Kind() != wire.Object {
		return "is not an object"
	}
	for key, value := range v.Members() {
		name, _ := key.Str()
		s, ok := value.Str()
		known := slices.ContainsFunc(p.choices, func(c string) bool { return strings.EqualFold(c, name) })
		switch {
		case !known:
			return "takes " + strings.Join(p.choices, ", ") + " and nothing else"
		case !ok || len(s) > maxField || strings.ContainsFunc(s, unicode.IsControl):
			return fmt.Sprintf("has a value that is not text of one line and at most %d bytes", maxField)
		}
	}
	return ""
}

func (a arguments) has(name string) bool {
	_, ok := a.values[name]
	return ok
}

// text returns a text, or what stands in for one that is not there.
func (a arguments) text(name, otherwise string) string {
	if s, ok := a.values[name].Str(); ok {
		return s
	}
	return otherwise
}

// number returns a number, or what stands in for one that is not there.
func (a arguments) number(name string, otherwise int) int {
	if n, ok := a.values[name].Int64(); ok {
		return int(n)
	}
	return otherwise
}

func (a arguments) flag(name string) bool {
	b, ok := a.values[name].Bool()
	return ok && b
}

// fields returns the names and texts of an object, in the order written.
func (a arguments) fields(name string) [][2]string {
	var list [][2]string
	for key, value := range a.values[name].Members() {
		k, _ := key.Str()
		v, _ := value.Str()
		list = append(list, [2]string{k, v})
	}
	return list
}
