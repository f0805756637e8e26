package provider

import (
	"cmp"
	"slices"

	"capgate/wire"
)

// A request is mostly what people, programs and pages have said. Nothing is decided
// by that, so that it may hold what two readers could take for different things: an
// escaped NUL, as in what a program has printed, and names that differ only in case,
// as in a schema. Where such places are stands in the tables here and in the rules
// that name [request.opaque]. Everywhere else a body is read strictly.

// opaque is the rule of what no decision depends on, whatever is inside.
func (r *request) opaque(v wire.Value) bool {
	if r.unsound {
		r.dark = append(r.dark, elementSpan(v))
	}
	return true
}

// words is opaque for what is text and has no parts.
func (r *request) words(v wire.Value) {
	if v.Kind() == wire.String {
		r.opaque(v)
	}
}

// opaqueIn is opaque for members of an object, whose names have spaces between.
func (r *request) opaqueIn(v wire.Value, names string) {
	if !r.unsound {
		return
	}
	for key, member := range v.Members() {
		if name, _ := key.Str(); isListed(name, names) {
			r.opaque(member)
		}
	}
}

// misread returns the first fault of a body that is in no opaque place, nil for none.
func (r *request) misread(doc *wire.Doc) *wire.SyntaxError {
	faults := slices.SortedFunc(doc.Faults(), func(a, b *wire.SyntaxError) int { return cmp.Compare(a.Offset, b.Offset) })
	slices.SortFunc(r.dark, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	end, next := 0, 0 // of the opaque places that begin before a fault
	for _, f := range faults {
		for ; next < len(r.dark) && r.dark[next].start <= f.Offset; next++ {
			end = max(end, r.dark[next].end)
		}
		if f.Offset >= end {
			return f
		}
	}
	return nil
}

// ofFunction is what is opaque in a function, however a vendor writes it.
const ofFunction = "description input_schema parameters output_schema input_examples format response " +
	"parametersJsonSchema parameters_json_schema responseJsonSchema response_json_schema"

// ofPart is what says something in a part of content that is text.
const ofPart = "text refusal thinking"

// ofBlock is what is opaque in a block of Anthropic's.
func ofBlock(kind string) string {
	switch kind {
	case "text":
		return "text citations"
	case "thinking":
		return "thinking"
	case "tool_use", "server_tool_use", "mcp_tool_use":
		return "input"
	case "mcp_tool_result", "web_search_tool_result", "advisor_tool_result", "code_execution_tool_result",
		"bash_code_execution_tool_result", "text_editor_code_execution_tool_result", "compaction":
		return "content"
	case "document":
		return "title context"
	case "search_result":
		return "title source"
	}
	return ""
}

// ofItem is what is opaque in an item of an input.
func ofItem(kind string) string {
	switch kind {
	case "function_call":
		return "arguments encrypted_function_args"
	case "tool_search_call", "mcp_approval_request":
		return "arguments"
	case "mcp_call":
		return "arguments output error"
	case "custom_tool_call":
		return "input"
	case "reasoning":
		return "summary content"
	case "computer_call":
		return "action actions"
	case "local_shell_call", "shell_call", "web_search_call":
		return "action"
	case "local_shell_call_output", "shell_call_output", "apply_patch_call_output":
		return "output"
	case "apply_patch_call":
		return "operation"
	case "file_search_call":
		return "queries results"
	case "code_interpreter_call", "program":
		return "code"
	case "program_output":
		return "result"
	}
	return ""
}
