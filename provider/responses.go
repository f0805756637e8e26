package provider

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"capgate/capability"
	"capgate/wire"
)

// responses judges a request in the form of OpenAI's responses.
func (r *request) responses(root wire.Value) {
	r.resume(root)
	r.unnamed(root)
	r.inOrder(root, r.responsesMember, "tools", "input")
	if r.form == formResponses {
		r.shown(root)
	}
}

func (r *request) responsesMember(name string) rule {
	switch name {
	case "instructions":
		return r.text
	case "text":
		return r.opaque
	case "metadata", "client_metadata":
		return r.metadata
	case "include", "max_output_tokens", "max_tool_calls",
		"prompt_cache_key", "prompt_cache_retention", "safety_identifier", "service_tier", "store", "stream",
		"stream_options", "temperature", "top_logprobs", "top_p", "truncation", "user":
		return keep
	case "access_programs", "context_management", "image", "moderation", "prompt_cache_options", "reasoning":
		return r.sniffed
	case "personality":
		if r.form == formInputTokens {
			return keep
		}
	case "model":
		return r.modelMember
	case "input":
		return r.input
	case "tools":
		return r.tools
	case "tool_choice":
		return r.choice
	case "parallel_tool_calls":
		return r.parallel
	case "background":
		return r.refusedIfTrue("a response is read as it is made, not later")
	case "previous_response_id", "conversation", "prompt", "multi_agent":
		return r.refusedUnlessNull("what the provider keeps cannot be judged: send the input itself")
	}
	return r.extra(name)
}

// parallel goes with the tools.
func (r *request) parallel(wire.Value) bool {
	stays := len(r.gone) == 0 || len(r.kept) > 0
	if !stays {
		r.note(Change{Tool: "parallel_tool_calls", Did: Repaired, Why: "no tool stays"})
	}
	return stays
}

// input judges what a response is made from: text, or a list of items.
func (r *request) input(v wire.Value) bool {
	if v.Kind() == wire.String || v.Kind() == wire.Null {
		return r.opaque(v)
	}
	r.elements(v, r.item)
	return true
}

// item judges one item by its type.
func (r *request) item(v wire.Value) bool {
	kind, ok := typeOf(v)
	if v.Kind() != wire.Object || !ok {
		r.refuse("an item of the input should be an object with a type that is text")
		return true
	}
	if !isListed(cmp.Or(kind, "message"), plainItems+otherItems) {
		return r.otherItem(kind, v)
	}
	r.spelled(v)
	r.opaqueIn(v, ofItem(kind))
	r.nothingElse(kind, v)
	switch kind {
	case "", "message":
		if kind == "" && !isMessage(v) {
			r.forbid(elsewhere)
		}
		r.turn(v)
	case "web_search_call", "image_generation_call", "code_interpreter_call", "shell_call", "program", "program_output":
		r.made(kind, v)
	case "function_call_output", "custom_tool_call_output", "computer_call_output":
		r.partsOf(v, "output")
	case "agent_message":
		r.partsOf(v, "content")
	case "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "mcp_call":
		if !r.foreignItem(kind, v) {
			r.deny(http.StatusForbidden, capability.ScopeViolation, kind+": "+foreign)
		}
	case "additional_tools":
		added, _ := v.Get("tools")
		return r.elements(added, r.tool)
	case "tool_search_output":
		found, _ := v.Get("tools")
		r.elements(found, r.tool)
	case "item_reference":
		r.forbid(elsewhere)
	}
	return true
}

// The items of an input that are known: those that nothing is to be judged of but that there is
// nothing else in them, and those that have rules.
const (
	plainItems = "function_call custom_tool_call reasoning computer_call file_search_call local_shell_call " +
		"local_shell_call_output shell_call_output apply_patch_call apply_patch_call_output tool_search_call compaction compaction_trigger context_compaction"
	otherItems = " message web_search_call image_generation_call code_interpreter_call shell_call program program_output function_call_output " +
		"custom_tool_call_output computer_call_output agent_message mcp_list_tools mcp_approval_request mcp_approval_response mcp_call " +
		"additional_tools tool_search_output item_reference"
)

// nothingElse refuses what has no rule in an item: a list could be of items that are judged
// nowhere, and a text name what the provider keeps.
func (r *request) nothingElse(kind string, v wire.Value) {
	if kind == "" || kind == "message" { // whose members all have rules
		return
	}
	const anywhere, words = " caller error ", "output result prompt revised_prompt reason"
	known := ofItem(kind) + anywhere + alsoIn(kind)
	for key, member := range v.Members() {
		switch name, _ := key.Str(); {
		case isListed(name, known) || member.Kind() == wire.Null:
		case name == noted:
			r.members(member, r.notedMember)
		case member.Kind() == wire.Object || member.Kind() == wire.Array:
			r.unknown(name)(member)
		case name == "subagent_id":
			r.forbid(elsewhere)
		case !isListed(name, words):
			r.notATool(name)
			r.sniff(member)
		}
	}
}

// alsoIn is what has a rule in an item of an input, or lists that nobody reads again,
// beside what is opaque there.
func alsoIn(kind string) string {
	switch kind {
	case "function_call_output", "custom_tool_call_output":
		return "output"
	case "agent_message":
		return "content"
	case "web_search_call":
		return "results"
	case "computer_call":
		return "pending_safety_checks"
	case "computer_call_output":
		return "output acknowledged_safety_checks"
	case "shell_call":
		return "arguments environment"
	case "shell_call_output":
		return "container_id files"
	case "code_interpreter_call":
		return "container_id outputs"
	case "image_generation_call":
		return "svg_usage"
	case "mcp_list_tools", "additional_tools", "tool_search_output":
		return "tools"
	}
	return ""
}

// turn judges an item that is a message.
func (r *request) turn(v wire.Value) {
	r.members(v, func(name string) rule {
		switch name {
		case "type", "role", "id", "status", "phase", "name":
			return keep
		case "content":
			return func(wire.Value) bool {
				r.partsOf(v, "content")
				return true
			}
		case noted:
			return func(note wire.Value) bool { return note.Kind() == wire.Null || r.members(note, r.notedMember) || true }
		}
		return nil
	})
}

// noted is what Codex says of every item to its vendor's logs, beside what the model is told:
// from whom it is, and which tools ran for it.
const noted = "internal_chat_message_metadata_passthrough"

func (r *request) notedMember(name string) rule {
	if isListed(name, "content_item_metadata executed_tool_calls") {
		return r.opaque
	}
	return r.sniffed
}

// why an item that the provider keeps does not go up
const elsewhere = "an item that refers to what the provider keeps cannot be judged: send the input itself, as clients do with store: false"

// isMessage reports whether an item without a type is a message. It is taken for a
// reference to an item that is stored when anything of a message is missing.
func isMessage(v wire.Value) bool {
	_, typed := v.Get("type")
	return !typed && says(v, "content") && isListed(textOf(v, "role"), "user assistant system developer")
}

// found judges what a search has found, which is results and no items.
func (r *request) found(v wire.Value) {
	const tail = "_result"
	results, has := v.Get("results")
	if has && results.Kind() != wire.Array {
		r.unknown("results")(results)
	}
	for result := range results.Elems() {
		if kind := textOf(result, "type"); result.Kind() != wire.Object || kind != "" && !strings.HasSuffix(kind, tail) {
			r.unknown(cmp.Or(kind, "results"))(result)
		}
		for key := range result.Members() {
			name, _ := key.Str()
			r.notATool(name)
		}
	}
}

// made judges what a tool of the provider has made: code and commands that stand in
// a container there, and a picture that only its id is there of.
func (r *request) made(kind string, v wire.Value) {
	where, _ := v.Get("environment")
	id, _ := v.Get("id")
	picture, _ := v.Get("result")
	outputs, _ := v.Get("outputs")
	switch {
	case kind == "web_search_call":
		r.found(v)
	case kind == "code_interpreter_call":
		for output := range outputs.Elems() {
			r.opaqueIn(output, "logs")
			if picture, ok := output.Get("url"); ok {
				r.address(picture)
			}
		}
	case kind == "image_generation_call" && (picture.Kind() != wire.String || picture.Equal("")):
		r.stored(id)
	case kind == "image_generation_call":
		r.fileData(picture)
	case kind == "shell_call" && (where.Kind() == wire.Invalid || where.Kind() == wire.Null || textOf(where, "type") == "local"):
	default:
		if code, why := r.needs(codeExecution); why != "" {
			r.deny(http.StatusForbidden, code, kind+": "+why)
		}
	}
}

// partsOf judges content that is text, one part or a list of parts.
func (r *request) partsOf(v wire.Value, member string) {
	switch content, _ := v.Get(member); content.Kind() {
	case wire.Array:
		r.elements(content, r.part)
	case wire.Object:
		r.part(content)
	default:
		r.words(content)
	}
}

// part judges one part of content, of responses and of chats.
func (r *request) part(v wire.Value) bool {
	kind, ok := typeOf(v)
	if v.Kind() != wire.Object || !ok {
		r.refuse("content should be objects with a type that is text")
		return true
	}
	switch kind {
	case "tool_reference": // a page that an answer of Mistral's cites, which nobody reads again
		if r.kit == mistralKit {
			return r.opaque(v)
		}
	case "text", "input_text", "output_text", "refusal", "summary_text", "reasoning_text", "output_audio", "thinking", "reference", "encrypted_content":
		r.opaqueIn(v, "annotations")
		for text := range strings.FieldsSeq(ofPart) { // one of Mistral's has parts itself
			r.partsOf(v, text)
		}
		return true
	case "input_image", "input_file", "input_audio", "input_video", "computer_screenshot", "image_url", "file", "file_url", "video_url", "document_url", "pdf_url":
		r.media(v)
		return true
	}
	return r.unknown(kind)(v)
}

// media judges where the image, video, sound or file of a part comes from.
func (r *request) media(v wire.Value) {
	for key, member := range v.Members() {
		name, _ := key.Str()
		switch {
		case slices.Contains([]string{"type", "index", "detail", "filename", "file_name", "prompt_cache_breakpoint", "cache_control", "document_name", "format", "processing"}, name):
		case name == "file_id":
			r.stored(member)
			r.inputs(member) // where another gateway takes an address as well
		case name == "file_url" && r.kit == perplexityKit && isBare(member):
		case member.Kind() == wire.Object:
			r.media(member)
		case slices.Contains([]string{"file_data", "data", "input_audio"}, name):
			r.fileData(member)
		case slices.Contains([]string{"image_url", "file_url", "video_url", "audio_url", "document_url", "pdf_url", "url"}, name):
			r.address(member)
		default:
			r.unknown(name)(member)
		}
	}
}

// shown asks the provider to say which pages a search has read.
func (r *request) shown(root wire.Value) {
	const sources = `"web_search_call.action.sources"`
	search := func(ref reference) bool { return family(ref.kind) == webSearch }
	if r.kit != openKit || !slices.ContainsFunc(r.kept, search) {
		return
	}
	include, ok := root.Get("include")
	var last wire.Value
	for element := range include.Elems() {
		if last = element; string(element.Raw()) == sources {
			return
		}
	}
	switch _, end := last.Span(); {
	case !ok || include.Len() == 0:
		r.set(root, "include", []byte("["+sources+"]"))
	default:
		r.edits = append(r.edits, edit{end, end, []byte("," + sources)})
	}
	r.note(Change{Tool: "include", Did: Repaired, Why: "what a search reads would not be seen"})
}
