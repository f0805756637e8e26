package provider

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	"capgate/capability"
	"capgate/wire"
)

// inOrder judges the members of a body, some before all others: what is said of
// tools has to be known before what refers to them.
func (r *request) inOrder(root wire.Value, rules func(string) rule, first ...string) {
	done := map[string]bool{}
	for _, name := range first {
		if v, ok := root.Get(name); ok {
			done[name] = r.judge(rules(name), v)
		}
	}
	r.members(root, func(name string) rule {
		if stays, ok := done[name]; ok {
			return func(wire.Value) bool { return stays }
		}
		return rules(name)
	})
}

// messages judges a request in the form of Anthropic.
func (r *request) messages(root wire.Value) {
	r.inOrder(root, r.messagesMember, "mcp_servers", "tools", "messages")
	r.paused(root)
}

func (r *request) messagesMember(name string) rule {
	switch name {
	case "metadata", "output_config", "output_format":
		return r.metadata
	case "max_tokens", "stop_sequences", "stream", "temperature", "top_k", "top_p", "service_tier",
		"inference_geo", "speed", "cache_control", "thinking":
		return keep
	case "context_management", "compaction":
		return r.compacts
	case "diagnostics":
		return r.diagnostics
	case "model":
		return r.modelMember
	case "system":
		return r.blocks
	case "messages":
		return func(v wire.Value) bool { return r.elements(v, r.message) || true }
	case "tools":
		return r.anthropicTools
	case "tool_choice":
		return r.choice
	case "mcp_servers":
		return r.mcpServers
	case "container":
		return r.container
	case "thread":
		return r.thread
	case "fallbacks", "fallback_credit_token", "billing_policy", "user_profile_id", "workspace_id":
		return r.refusedUnlessNull(`"` + name + `" is not open to agents`)
	}
	return nil
}

// diagnostics leaves out a comparison with a message that is kept, of whoever has the
// key.
func (r *request) diagnostics(v wire.Value) bool {
	r.sniff(v)
	if earlier, _ := v.Get("previous_message_id"); earlier.Kind() == wire.Invalid || earlier.Kind() == wire.Null {
		return true
	}
	r.note(Change{Tool: "diagnostics", Did: Omitted, Code: capability.Forbidden, Why: "whose the message is that it compares with cannot be told"})
	return false
}

// thread refuses a conversation that the provider keeps, by the word for which the
// vendor's clients send all of its messages instead.
func (r *request) thread(v wire.Value) bool {
	if v.Kind() != wire.Null && r.refused == nil {
		r.refused = &Refused{
			Status: http.StatusBadRequest, Code: capability.Forbidden, Detail: "thread_unsupported_request",
			Why: "a conversation that the provider keeps cannot be judged: send the messages",
		}
	}
	return true
}

func (r *request) anthropicTools(v wire.Value) bool {
	if !r.tools(v) {
		return false
	}
	r.sources(v)
	return true
}

// container judges the container that code runs in, and the skills put into it.
func (r *request) container(v wire.Value) bool {
	if v.Kind() == wire.Null {
		return true
	}
	code, why := r.needs(codeExecution)
	if skills, _ := v.Get("skills"); why == "" && !isEmpty(skills) {
		code, why = r.needs("skills")
	}
	if name := stranger(v, "id skills"); why == "" && name != "" {
		code, why = capability.NotAvailable, name+" is not known in a container"
	}
	if why != "" {
		r.note(Change{Tool: "container", Did: Omitted, Code: code, Why: why})
	}
	return why == ""
}

// message judges one message. One that nothing is left of is left out.
func (r *request) message(v wire.Value) bool {
	stays := true
	r.members(v, func(name string) rule {
		switch name {
		case "role":
			return r.role
		case "clear_at", "output_config":
			return keep
		case "content":
			return func(v wire.Value) bool {
				stays = r.blocks(v)
				return true
			}
		}
		return nil
	})
	return stays
}

// role judges who speaks: what is said of turns goes by it.
func (r *request) role(v wire.Value) bool {
	name, ok := v.Str()
	switch {
	case !ok:
		r.refuse("a role should be text")
	case name != "user" && name != "assistant" && name != "system":
		return r.unknown(name)(v)
	}
	return true
}

// compacts judges how a conversation is kept short. What a summary is to say is text, whatever
// it begins with.
func (r *request) compacts(v wire.Value) bool {
	if v.Kind() != wire.Object {
		return r.sniffed(v)
	}
	for key, member := range v.Members() {
		switch name, _ := key.Str(); {
		case name == "instructions" && member.Kind() == wire.String:
			r.opaque(member)
		case name == "edits" && member.Kind() == wire.Array:
			for edit := range member.Elems() {
				r.compacts(edit)
			}
		default:
			r.sniffMember(name, member)
		}
	}
	return true
}

// blocks judges content: text, or a list of blocks.
func (r *request) blocks(v wire.Value) bool {
	if v.Kind() == wire.String || v.Kind() == wire.Null {
		return r.opaque(v)
	}
	return r.elements(v, r.block)
}

// block judges one block of content by its type.
func (r *request) block(v wire.Value) bool {
	kind, ok := typeOf(v)
	if v.Kind() != wire.Object || !ok {
		r.refuse("content should be objects with a type that is text")
		return true
	}
	r.spelled(v)
	r.opaqueIn(v, ofBlock(kind))
	inside := func(name string) wire.Value {
		member, _ := v.Get(name)
		return member
	}
	switch kind {
	case "text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_use", "mcp_tool_result",
		"web_search_tool_result", "code_execution_tool_result", "bash_code_execution_tool_result",
		"text_editor_code_execution_tool_result", "advisor_tool_result", "fallback", "browser_state":
		return true
	case "tool_result", "search_result":
		if content := inside("content"); content.Kind() != wire.Invalid && !r.judge(r.blocks, content) {
			r.replace(content, []byte(`[{"type":"text","text":"what stood here is left out"}]`))
		}
	case "web_fetch_tool_result":
		r.fetched(inside("content"))
	case "image", "document":
		r.origin(inside("source"))
	case "container_upload":
		r.stored(inside("file_id"))
	case "compaction":
		if added := inside("tool_changes"); added.Kind() != wire.Invalid && added.Kind() != wire.Null {
			r.elements(added, r.block)
		}
	default:
		return r.aboutTools(kind, v)
	}
	return true
}

// aboutTools judges a block that says which tools there are.
func (r *request) aboutTools(kind string, v wire.Value) bool {
	tool, _ := v.Get("tool")
	if named, _ := typeOf(tool); strings.HasSuffix(named, "_reference") { // what defines one would stand there unlooked at
		for key := range tool.Members() {
			name, _ := key.Str()
			r.notATool(name)
		}
	}
	switch kind {
	case "tool_addition":
		return r.addition(tool)
	case "tool_removal":
		return r.removal(tool)
	case "tool_reference":
		return !r.dangling(kind, textOf(v, "tool_name"))
	case "tool_search_tool_result":
		content, _ := v.Get("content")
		if found, _ := content.Get("tool_references"); found.Kind() == wire.Array {
			r.elements(found, func(v wire.Value) bool { return !r.dangling("tool_reference", textOf(v, "tool_name")) })
		}
		return true
	case "mcp_tool_listing":
		return r.listing(v)
	}
	return r.unknown(kind)(v)
}

// fetched judges what a fetch has returned: a document, or an error.
func (r *request) fetched(v wire.Value) {
	if v.Kind() != wire.Object {
		r.refuse("what was fetched should be an object")
		return
	}
	r.spelled(v)
	if document, ok := v.Get("content"); ok {
		if kind, _ := typeOf(document); kind != "document" && document.Kind() == wire.Object {
			r.refuse("what was fetched should be a document")
			return
		}
		r.block(document)
	}
}

// origin judges where an image or a document comes from.
func (r *request) origin(v wire.Value) bool {
	kind, _ := typeOf(v)
	switch kind {
	case "base64":
		data, _ := v.Get("data")
		return r.fileData(data)
	case "text":
		r.opaqueIn(v, "data")
		return true
	case "content":
		content, _ := v.Get("content")
		return r.blocks(content)
	case "url":
		url, _ := v.Get("url")
		return r.address(url)
	case "file":
		id, _ := v.Get("file_id")
		return r.stored(id)
	}
	return r.unknown(kind)(v)
}

// addition judges a tool that is added in the middle of a conversation.
func (r *request) addition(v wire.Value) bool {
	kind, _ := typeOf(v)
	name := textOf(v, "name")
	switch kind {
	case "tool_definition":
		definition, _ := v.Get("definition")
		return r.tool(definition)
	case "tool_reference":
		return !r.dangling("tool_addition", name)
	case "mcp_tool_reference", "mcp_toolset_reference":
		server := textOf(v, "server_name")
		whole := kind == "mcp_toolset_reference" && slices.Contains(r.toolsets, server) // as far as the toolset goes
		if slices.ContainsFunc(r.connected, func(c Connector) bool { return c.Name == server && (whole || slices.Contains(c.Tools, name)) }) {
			return true
		}
		r.note(Change{Tool: clip(kind), Did: Omitted, Code: capability.ScopeViolation, Why: foreign})
		return false
	}
	return r.unknown(kind)(v)
}

// removal judges a tool that is taken away in the middle of a conversation.
func (r *request) removal(v wire.Value) bool {
	const block = "tool_removal"
	switch kind, _ := typeOf(v); kind {
	case "tool_reference":
		return !r.dangling(block, textOf(v, "name"))
	case "mcp_tool_reference", "mcp_toolset_reference":
		server := textOf(v, "server_name")
		stays := slices.ContainsFunc(r.connected, func(c Connector) bool { return c.Name == server })
		if !stays {
			r.noteOnce(Change{Tool: block, Did: Repaired, Why: "the server that it names is left out"})
		}
		return stays
	default:
		return r.unknown(kind)(v)
	}
}

// dangling reports whether a block names a tool that is left out of the request: the
// provider refuses a conversation with a reference to what is not there.
func (r *request) dangling(block, name string) bool {
	lost := r.lost(func(ref reference) bool { return ref.name == name })
	if lost {
		r.noteOnce(Change{Tool: block, Did: Repaired, Why: "a tool that it names is left out"})
	}
	return lost
}

// twoCalls is why a request is refused in which one answer would do for two calls.
const twoCalls = "two calls of tools have one id, and nothing has answered the first"

// paused refuses to continue a turn in the middle of a tool that is not offered:
// the provider would run what the agent wrote into it, or want the tool again.
func (r *request) paused(root wire.Value) {
	messages, _ := root.Get("messages")
	waiting := map[pending]bool{}
	for m := range messages.Elems() {
		content, _ := m.Get("content")
		if textOf(m, "role") != "assistant" { // all of those in a row are one turn
			continue
		}
		for block := range content.Elems() {
			if p := (pending{textOf(block, "id"), ranBy(block)}); !r.mayContinue(block) {
				if waiting[p] {
					r.refuse(twoCalls)
				}
				waiting[p] = true
			}
			if kind, ends := strings.CutSuffix(textOf(block, "type"), "_tool_result"); ends { // anything else may name it
				delete(waiting, pending{textOf(block, "tool_use_id"), ranAs(kind)})
			}
		}
	}
	for _, p := range inOrderOf(waiting) {
		r.deny(http.StatusForbidden, capability.ScopeViolation, "the turn stands in the middle of "+clip(p.tool)+", which is left out: begin another one")
	}
}

// pending is what the provider is to run.
type pending struct{ id, tool string }

// ranBy is what runs a block, as the type of its result begins.
func ranBy(block wire.Value) string {
	if textOf(block, "type") == "mcp_tool_use" {
		return "mcp"
	}
	return ranAs(textOf(block, "name"))
}

// ranAs is one name for tools whose results may be of one type.
func ranAs(tool string) string {
	switch {
	case strings.HasSuffix(tool, codeExecution):
		return codeExecution
	case strings.HasPrefix(tool, "tool_search_tool"):
		return "tool_search"
	}
	return tool
}

// inOrderOf lists what waits in an order that is always the same.
func inOrderOf(waiting map[pending]bool) []pending {
	return slices.SortedFunc(maps.Keys(waiting), func(a, b pending) int { return cmp.Or(strings.Compare(a.id, b.id), strings.Compare(a.tool, b.tool)) })
}

// mayContinue reports whether a block begins nothing that runs at the provider, or
// something that is offered.
func (r *request) mayContinue(block wire.Value) bool {
	name := textOf(block, "name")
	switch textOf(block, "type") {
	case "mcp_tool_use":
		return r.offers(textOf(block, "server_name"), name)
	case "server_tool_use":
		if strings.HasSuffix(name, codeExecution) {
			_, why := r.needs(codeExecution)
			return why == ""
		}
		return name != "" && slices.ContainsFunc(r.kept, func(ref reference) bool { return strings.HasPrefix(ref.kind, name) })
	}
	return true
}
