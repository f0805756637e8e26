package mapping

import (
	"strings"
	"unicode"

	"capgate/capability"
	"capgate/wire"
)

// getPrompt is the verb that every prompt needs, for its own name.
const getPrompt = capability.Verb("prompt.get")

// Prompt finds a prompt by the name its server gives it, exactly. One that the
// mapping does not cover needs prompt.get and takes any texts. One that it covers
// needs what its arguments need besides, and takes no others. The name of a
// prompt's [Call] is upstream.prompt.
func (m *Mapping) Prompt(name string) *Tool {
	if m != nil && m.prompts[name] != nil {
		return m.prompts[name]
	}
	t := &Tool{name: name, args: &node{}, prompt: true, texts: true}
	t.settle()
	return t
}

func (t *Tool) isPrompt() bool { return t != nil && t.prompt }

// prompt adds what the prompt itself needs. Its arguments are texts, whatever they
// are for.
func (r *reading) prompt() error {
	if r.Name == "" || strings.ContainsFunc(r.Name, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return refuse(capability.UnknownTool, "", "names a prompt that no server should have")
	}
	if size := r.Args.Len(); r.Args.Kind() == wire.Object && size > most {
		return tooMany("", "members")
	}
	for key, value := range r.Args.Members() {
		if kind := value.Kind(); kind != wire.String && kind != wire.Null {
			name, _ := key.Str()
			return place{value: value, name: printable(name)}.wrong("text")
		}
	}
	q, err := capability.Keyed(getPrompt, capability.Word{Dim: "name", Value: r.Name})
	if err := r.need(place{}, q, err); err != nil || !r.tool.texts {
		return err
	}
	return r.strayHandles()
}

// noun says what a tool is, as it stands in a sentence.
func (t *Tool) noun() string {
	if t.prompt {
		return "prompt"
	}
	return "tool"
}
