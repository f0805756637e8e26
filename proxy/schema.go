package proxy

import (
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"capgate/wire"
)

// What the references of a schema may cost. A validator that follows them, or a
// client that writes them out for a model, does not get further than this.
const (
	maxRefs     = 256     // that lead to different places
	maxBases    = 16      // schemas with an id of their own
	maxChecks   = 1 << 14 // schemas that one value is held against
	maxExpanded = 1 << 17 // values once every reference is written out
)

// schema is a schema and where its references lead.
type schema struct {
	bases   []wire.Value // itself, and what has an id: what pointers start from
	named   []wire.Value // what has an id as before draft 6, which data has as well
	anchors map[string][]wire.Value
	objects []wire.Value
	targets map[string][]wire.Value // of references
	weights map[int]int             // of objects, by where they stand
	passed  int                     // entries of lists, on the way of references
	why     string
}

// beingWeighed is the weight of an object whose parts are not weighed yet.
const beingWeighed = -1

// unsafeSchema says why nobody should compile a schema. It may refer to itself
// where a value gets smaller on the way, as trees do, but not where the same
// value is held against the same schema again.
//
// Every object counts as a schema, whether it stands where one is expected or in
// an example: programs that write references out do not tell them apart either.
func unsafeSchema(root wire.Value) string {
	s := schema{bases: []wire.Value{root}, anchors: map[string][]wire.Value{}, targets: map[string][]wire.Value{}}
	s.collect(root)
	if s.why != "" || len(s.targets) == 0 {
		return s.why
	}
	s.addNamed()
	if len(s.targets) > maxRefs || len(s.bases) > maxBases {
		return fmt.Sprintf("has more than %d references or more than %d schemas with an id", maxRefs, maxBases)
	}
	for ref := range s.targets {
		s.targets[ref] = s.resolve(ref)
	}
	s.weights = make(map[int]int, len(s.objects))
	for _, v := range s.objects {
		s.weigh(v)
	}
	if s.why == "" {
		clear(s.weights)
		s.expand(root)
	}
	return s.why
}

func isReference(key wire.Value) bool {
	return key.Equal("$ref") || key.Equal("$dynamicRef") || key.Equal("$recursiveRef")
}

// collect finds the references, and what they can lead to.
func (s *schema) collect(v wire.Value) {
	for e := range v.Elems() {
		s.collect(e)
	}
	if v.Kind() != wire.Object {
		return
	}
	s.objects = append(s.objects, v)
	for key, member := range v.Members() {
		s.collect(member)
		text, ok := member.Str()
		if !ok || s.why != "" {
			continue
		}
		switch {
		case isReference(key):
			if !strings.HasPrefix(text, "#") {
				s.why = "refers to a schema somewhere else"
			}
			s.targets[text] = nil
		case key.Equal("$id"):
			s.bases = append(s.bases, v)
			s.anchorID(text, v)
		case key.Equal("id"):
			s.anchorID(text, v)
			if !strings.HasPrefix(text, "#") && holdsSchemas(v) {
				s.named = append(s.named, v)
			}
		case key.Equal("$anchor") || key.Equal("$dynamicAnchor"):
			s.anchor(text, v)
		}
	}
}

// holdsSchemas reports whether there is a reference in an object, or could be one beneath.
func holdsSchemas(v wire.Value) bool {
	for key, member := range v.Members() {
		if isReference(key) || member.Kind() == wire.Object || member.Kind() == wire.Array {
			return true
		}
	}
	return false
}

// addNamed takes for schemas, of what has an id and may be data, what pointers could lead into.
func (s *schema) addNamed() {
	first := map[string]bool{}
	whole := false
	for ref := range s.targets {
		for _, steps := range pointerWays(ref) {
			if whole = whole || len(steps) == 0; len(steps) > 0 {
				first[memberName(steps[0])] = true
			}
		}
	}
	for _, v := range s.named {
		goesOn := whole
		for key := range v.Members() {
			name, _ := key.Str()
			goesOn = goesOn || first[name]
		}
		if goesOn {
			s.bases = append(s.bases, v)
		}
	}
}

// anchorID enters what stands behind the # of an id, which was an anchor before draft 2019-09.
func (s *schema) anchorID(id string, v wire.Value) {
	if _, fragment, _ := strings.Cut(id, "#"); fragment != "" {
		s.anchor(unescapeStep(fragment), v)
	}
}

func (s *schema) anchor(name string, v wire.Value) {
	if s.anchors[name] = append(s.anchors[name], v); len(s.anchors[name]) > maxBases {
		s.why = fmt.Sprintf("has more than %d anchors of one name", maxBases)
	}
}

// pointerWays are the ways to read a reference as a pointer, none if it is the name of an
// anchor. A pointer may be unescaped before it is cut into steps, as is written, or each step
// of it, as some do, or not at all.
func pointerWays(ref string) [][]string {
	raw := ref[1:]
	fragment := unescapeStep(raw)
	if fragment != "" && fragment[0] != '/' {
		return nil
	}
	ways := [][]string{pointerSteps(fragment)}
	if fragment != raw {
		each := pointerSteps(raw)
		ways = append(ways, slices.Clone(each))
		for i, step := range each {
			each[i] = unescapeStep(step)
		}
		if !slices.Equal(each, ways[0]) {
			ways = append(ways, each)
		}
	}
	return ways
}

// resolve returns everything that a reference can mean.
func (s *schema) resolve(ref string) []wire.Value {
	found := slices.Clone(s.anchors[unescapeStep(ref[1:])])
	ways := pointerWays(ref)
	for _, base := range s.bases {
		for _, steps := range ways {
			if v := s.follow(base, steps); v.Kind() != wire.Invalid {
				found = append(found, v)
			}
		}
	}
	return places(found)
}

// places are values that stand in different places, each of them once.
func places(all []wire.Value) []wire.Value {
	where := func(v wire.Value) int { start, _ := v.Span(); return start }
	slices.SortFunc(all, func(a, b wire.Value) int { return where(a) - where(b) })
	return slices.CompactFunc(all, func(a, b wire.Value) bool { return where(a) == where(b) })
}

// unescapeStep is a text unescaped, or as it is if it cannot be.
func unescapeStep(text string) string {
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}

func pointerSteps(pointer string) []string {
	if pointer == "" {
		return nil
	}
	return strings.Split(strings.TrimPrefix(pointer, "/"), "/")
}

// follow goes where the steps of a JSON pointer lead.
func (s *schema) follow(v wire.Value, steps []string) wire.Value {
	for _, step := range steps {
		if v.Kind() == wire.Invalid || s.why != "" {
			break
		}
		if v.Kind() == wire.Array {
			v = s.element(v, step)
			continue
		}
		v, _ = v.Get(memberName(step))
	}
	return v
}

// memberName is what a step of a pointer names.
func memberName(step string) string {
	if !strings.Contains(step, "~") {
		return step
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
}

// maxPassed is how many entries of lists are passed on the way of all references.
const maxPassed = 1 << 20

func (s *schema) element(v wire.Value, step string) wire.Value {
	n, err := strconv.Atoi(step)
	for e := range v.Elems() {
		if s.passed++; s.passed > maxPassed {
			s.why = "has references that take too long to follow"
			break
		}
		if n == 0 && err == nil {
			return e
		}
		n--
	}
	return wire.Value{}
}

// weigh counts how many schemas a value is held against when it is held against
// this one.
func (s *schema) weigh(v wire.Value) int {
	if v.Kind() != wire.Object || s.why != "" {
		return 1
	}
	start, _ := v.Span()
	switch w := s.weights[start]; {
	case w == beingWeighed:
		s.why = "refers to itself without an end"
		return 1
	case w > 0:
		return w
	}
	s.weights[start] = beingWeighed
	w := 1
	for part := range s.inPlace(v) {
		if w += s.weigh(part); w > maxChecks {
			s.why = fmt.Sprintf("holds a value against more than %d schemas", maxChecks)
		}
		if s.why != "" {
			break
		}
	}
	s.weights[start] = w
	return w
}

// inPlace ranges over the schemas that a value is held against, as a whole,
// because it is held against v.
func (s *schema) inPlace(v wire.Value) iter.Seq[wire.Value] {
	return func(yield func(wire.Value) bool) {
		for key, member := range v.Members() {
			for _, part := range s.parts(key, member) {
				if !yield(part) {
					return
				}
			}
		}
	}
}

func (s *schema) parts(key, member wire.Value) (parts []wire.Value) {
	switch name, _ := key.Str(); name {
	case "not", "if", "then", "else":
		return []wire.Value{member}
	case "allOf", "anyOf", "oneOf":
		for e := range member.Elems() {
			parts = append(parts, e)
		}
	case "extends", "disallow", "type": // of draft 3
		parts = append(parts, member)
		for e := range member.Elems() {
			parts = append(parts, e)
		}
		return slices.DeleteFunc(parts, func(v wire.Value) bool { return v.Kind() != wire.Object })
	case "dependentSchemas", "dependencies":
		for _, m := range member.Members() {
			parts = append(parts, m)
		}
	case "$ref", "$dynamicRef", "$recursiveRef":
		ref, _ := member.Str()
		return s.targets[ref]
	}
	return parts
}

// expand counts the values there are once every reference is written out, but for
// those that lead back to where they stand.
func (s *schema) expand(v wire.Value) int {
	start, _ := v.Span()
	switch w := s.weights[start]; {
	case w == beingWeighed || s.why != "":
		return 1
	case w > 0:
		return w
	}
	s.weights[start] = beingWeighed
	w := 1
	for e := range v.Elems() {
		w += s.expand(e)
	}
	for key, member := range v.Members() {
		w += s.expand(member)
		if ref, ok := member.Str(); ok && isReference(key) {
			for _, target := range s.targets[ref] {
				w += s.expand(target)
			}
		}
		if w > maxExpanded && s.why == "" {
			s.why = fmt.Sprintf("has more than %d values once its references are written out", maxExpanded)
		}
	}
	s.weights[start] = min(w, maxExpanded)
	return s.weights[start]
}
