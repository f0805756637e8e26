package proxy

import (
	"fmt"
	"net/url"
	"strings"

	"capgate/capability"
	"capgate/wire"
)

// What a definition may cost whoever reads it. The largest known ones have 85 KB,
// 3,200 values and a depth of 19.
const (
	maxDefinition = 256 << 10 // bytes
	maxValues     = 16 << 10  // values in it
	maxNested     = 48        // objects and arrays inside each other
)

// vet says why a definition may not be shown, "" if it may. One that is
// quarantined may be shown once somebody has looked at it; one that is rejected
// breaks the protocol, and clients drop the whole list for it.
func vet(def wire.Value) (code capability.Code, why string) {
	if def.Kind() != wire.Object {
		return capability.ToolRejected, "the definition is not an object"
	}
	if why := suspicion(def); why != "" {
		return capability.ToolQuarantined, why
	}
	if why := breach(def); why != "" {
		return capability.ToolRejected, why
	}
	return "", ""
}

// suspicion says what a person should look at before a model does.
func suspicion(def wire.Value) string {
	if len(def.Raw()) > maxDefinition {
		return fmt.Sprintf("the definition is longer than %d bytes", maxDefinition)
	}
	var r reading
	if r.read(def, 1); r.why != "" {
		return r.why
	}
	if why := r.lint.verdict(); why != "" {
		return why
	}
	if why := unsafeIcon(def); why != "" {
		return why
	}
	for _, name := range [...]string{"inputSchema", "outputSchema"} {
		if schema, ok := def.Get(name); ok {
			if why := unsafeSchema(schema); why != "" {
				return "the " + name + " " + why
			}
		}
	}
	return ""
}

// reading goes through every text of a definition, keys as well as values: all of
// it reaches the model.
type reading struct {
	values int
	lint   lint
	why    string
}

func (r *reading) read(v wire.Value, depth int) {
	r.values++
	switch {
	case r.why != "":
	case r.values > maxValues:
		r.why = fmt.Sprintf("the definition has more than %d values", maxValues)
	case depth > maxNested:
		r.why = fmt.Sprintf("the definition nests deeper than %d levels", maxNested)
	case v.Kind() == wire.String:
		r.text(v)
	case v.Kind() == wire.Array:
		for e := range v.Elems() {
			r.read(e, depth+1)
		}
	case v.Kind() == wire.Object:
		for key, member := range v.Members() {
			r.text(key)
			r.read(member, depth+1)
		}
	}
}

func (r *reading) text(v wire.Value) {
	text := said(v)
	if c, ok := hiddenIn(text); ok && r.why == "" {
		r.why = fmt.Sprintf("the definition holds a character that is not seen, %U", c)
	}
	if isImpostor(text) && r.why == "" {
		r.why = "the definition speaks of " + ownName + ", whose words it does not have"
	}
	r.lint.read(text)
}

// unsafeIcon says what is wrong with where icons are to be fetched from: a client
// that fetches a file or asks another program shows or does what it should not.
func unsafeIcon(def wire.Value) string {
	icons, _ := def.Get("icons")
	for icon := range icons.Elems() {
		src, _ := icon.Get("src")
		if text, ok := src.Str(); ok && !isIconAddress(text) {
			return "an icon is neither at an https address nor an image in itself"
		}
	}
	return ""
}

func isIconAddress(text string) bool {
	scheme, rest, _ := strings.Cut(text, ":")
	switch strings.ToLower(scheme) {
	case "https":
		u, err := url.Parse(text)
		return err == nil && u.Hostname() != "" && u.User == nil
	case "data":
		const image = "image/"
		return len(rest) > len(image) && strings.EqualFold(rest[:len(image)], image)
	}
	return false
}

// breach says where a definition is not what every revision of the protocol says
// that it is.
func breach(def wire.Value) string {
	type rule struct {
		name     string
		kind     wire.Kind
		required bool
	}
	for _, r := range [...]rule{
		{"name", wire.String, true},
		{"title", wire.String, false},
		{"description", wire.String, false},
		{"inputSchema", wire.Object, true},
		{"outputSchema", wire.Object, false},
		{"annotations", wire.Object, false},
		{"icons", wire.Array, false},
		{"execution", wire.Object, false},
		{"_meta", wire.Object, false},
	} {
		v, ok := def.Get(r.name)
		if ok && v.Kind() != r.kind || !ok && r.required {
			return fmt.Sprintf("the %s of the definition is not of the kind %s", r.name, r.kind)
		}
	}
	icons, _ := def.Get("icons")
	for icon := range icons.Elems() {
		if src, _ := icon.Get("src"); src.Kind() != wire.String {
			return "an icon of the definition has no address"
		}
	}
	annotations, _ := def.Get("annotations")
	for key, v := range annotations.Members() {
		if !fitsAnnotation(key, v) {
			return "an annotation of the definition is not of the kind it should be"
		}
	}
	schema, _ := def.Get("inputSchema")
	if kind, _ := schema.Get("type"); !kind.Equal("object") {
		return "the inputSchema is not one of an object"
	}
	return schemaBreach(schema)
}

func fitsAnnotation(key, v wire.Value) bool {
	switch name, _ := key.Str(); name {
	case "title":
		return v.Kind() == wire.String
	case "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint":
		return v.Kind() == wire.Bool
	}
	return true
}

func schemaBreach(schema wire.Value) string {
	if properties, ok := schema.Get("properties"); ok {
		if properties.Kind() != wire.Object {
			return "the properties of the inputSchema are not an object"
		}
		for _, p := range properties.Members() {
			if p.Kind() != wire.Object && p.Kind() != wire.Bool {
				return "a property of the inputSchema is not a schema"
			}
		}
	}
	if required, ok := schema.Get("required"); ok {
		if required.Kind() != wire.Array {
			return "what the inputSchema requires is not a list"
		}
		for name := range required.Elems() {
			if name.Kind() != wire.String {
				return "what the inputSchema requires is not a list of names"
			}
		}
	}
	return ""
}
