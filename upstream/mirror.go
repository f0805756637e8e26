package upstream

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"capgate/wire"
)

const (
	maxMirrored   = 64 // arguments of a tool that travel as headers
	maxHeaderPart = 64 // bytes of the name that such a header gets
	maxWhole      = 1<<53 - 1
)

// Mirror says which arguments of a tool travel as headers too. The zero Mirror
// is of a tool that has none.
type Mirror struct {
	params []mirrored
}

// mirrored is one argument that travels as a header.
type mirrored struct {
	path   []string
	header string
	kind   wire.Kind
}

// ParamHeaders reads the x-mcp-header annotations of a tool's inputSchema. A tool
// with one that is not valid must not be offered: it is an error.
func ParamHeaders(schema wire.Value) (Mirror, error) {
	var m mirroring
	if err := m.schema(schema, nil); err != nil {
		return Mirror{}, err
	}
	return Mirror{m}, nil
}

// mirroring are the arguments found so far.
type mirroring []mirrored

// schema reads a schema that is reached by "properties" alone. All other schemas
// within it must have no annotation.
func (m *mirroring) schema(schema wire.Value, path []string) error {
	for key, value := range schema.Members() {
		switch name, _ := key.Str(); name {
		case "x-mcp-header":
			if err := m.add(schema, value, path); err != nil {
				return err
			}
		case "properties":
			for name, property := range value.Members() {
				text, _ := name.Str()
				if err := m.schema(property, append(slices.Clip(path), text)); err != nil {
					return err
				}
			}
		default:
			if err := unannotated(name, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// add reads one annotation of the property at path.
func (m *mirroring) add(schema, annotation wire.Value, path []string) error {
	name, _ := annotation.Str()
	where := strings.Join(path, ".")
	switch {
	case len(path) == 0:
		return fmt.Errorf("x-mcp-header stands on the schema itself, not on a property of it")
	case !isToken(name) || len(name) > maxHeaderPart:
		return fmt.Errorf("property %q: x-mcp-header is not a name for a header", where)
	case len(*m) == maxMirrored:
		return fmt.Errorf("there are more than %d x-mcp-header", maxMirrored)
	}
	for _, p := range *m {
		if strings.EqualFold(p.header, headerParam+name) {
			return fmt.Errorf("property %q: x-mcp-header %q is taken by %q", where, name, strings.Join(p.path, "."))
		}
	}
	kind, ok := kindOf(schema)
	if !ok {
		return fmt.Errorf("property %q: x-mcp-header is for a string, an integer or a boolean", where)
	}
	*m = append(*m, mirrored{path: path, header: headerParam + name, kind: kind})
	return nil
}

// kindOf returns what a schema wants its value to be, when a header can hold it.
// A number cannot, and neither can one of several types.
func kindOf(schema wire.Value) (wire.Kind, bool) {
	declared, _ := schema.Get("type")
	name, _ := declared.Str()
	switch name {
	case "string":
		return wire.String, true
	case "integer":
		return wire.Number, true
	case "boolean":
		return wire.Bool, true
	}
	return wire.Invalid, false
}

// unannotated refuses an annotation anywhere within a value of the keyword. What
// is data, and not a schema, may hold the word.
func unannotated(keyword string, value wire.Value) error {
	switch keyword {
	case "const", "default", "enum", "examples":
		return nil
	}
	for element := range value.Elems() {
		if err := unannotated("", element); err != nil {
			return err
		}
	}
	named := isSchemaMap(keyword)
	for key, member := range value.Members() {
		name, _ := key.Str()
		if named {
			name = ""
		}
		if name == "x-mcp-header" {
			return fmt.Errorf("x-mcp-header stands where it is not reached by properties alone")
		}
		if err := unannotated(name, member); err != nil {
			return err
		}
	}
	return nil
}

// isSchemaMap reports whether the keys below a keyword are names, not keywords.
func isSchemaMap(keyword string) bool {
	switch keyword {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		return true
	}
	return false
}

// Fields returns the headers for the arguments of a call. An argument that is
// absent, or null, has none; unfit is one that a header cannot hold.
func (m Mirror) Fields(arguments wire.Value) (fields []Field, unfit string) {
	for _, p := range m.params {
		value := p.of(arguments)
		if k := value.Kind(); k == wire.Invalid || k == wire.Null {
			continue
		}
		text, ok := p.text(value)
		if !ok {
			return nil, strings.Join(p.path, ".")
		}
		fields = append(fields, Field{p.header, text})
	}
	return fields, ""
}

// Shows reports whether a value of the arguments of a call travels as a header too.
func (m Mirror) Shows(value, arguments wire.Value) bool {
	for _, p := range m.params {
		if at := p.of(arguments); at == value && at.Kind() != wire.Invalid {
			return true
		}
	}
	return false
}

// of is the argument among those of a call, nothing where there is none.
func (p mirrored) of(arguments wire.Value) wire.Value {
	for _, name := range p.path {
		arguments, _ = arguments.Get(name)
	}
	return arguments
}

// text writes a value for a header.
func (p mirrored) text(value wire.Value) (string, bool) {
	if value.Kind() != p.kind {
		return "", false
	}
	text, ok := string(value.Raw()), true
	switch p.kind {
	case wire.String:
		text, _ = value.Str()
		text = EncodeHeader(text)
	case wire.Number:
		text, ok = whole(text)
	}
	return text, ok && len(text) <= maxHeaderValue
}

// whole writes a number as an integer that every receiver reads exactly.
func whole(number string) (string, bool) {
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > maxWhole {
		return "", false
	}
	return strconv.FormatInt(int64(f), 10), true
}

// Headers returns the names of the headers, in canonical form.
func (m Mirror) Headers() []string {
	names := make([]string, len(m.params))
	for i, p := range m.params {
		names[i] = http.CanonicalHeaderKey(p.header)
	}
	return names
}

// Agrees reports whether what a header shows is what the argument says that it
// stands for: a header that is not there stands for one that is absent or null.
func (m Mirror) Agrees(header, shown string, present bool, arguments wire.Value) bool {
	for _, p := range m.params {
		if !strings.EqualFold(p.header, header) {
			continue
		}
		value := p.of(arguments)
		if k := value.Kind(); k == wire.Invalid || k == wire.Null {
			return !present
		}
		want, ok := p.text(value)
		got, decoded := DecodeHeader(shown)
		if !present || !ok || !decoded {
			return false
		}
		if p.kind == wire.Number {
			number, err := wire.Parse([]byte(got))
			if err != nil || number.Root().Kind() != wire.Number {
				return false
			}
			got, ok = whole(got)
			return ok && got == want
		}
		plain, _ := DecodeHeader(want)
		return got == plain
	}
	return false
}
