package provider

import (
	"cmp"
	"slices"

	"capgate/capability"
	"capgate/wire"
)

// why a connection to an MCP server is not made by the provider
const foreign = "a provider connects to no MCP server, but to those that the operator lists, for tools that tool.invoke covers"

// connectorAt finds the connector of an address.
func (r *request) connectorAt(url string) (Connector, bool) {
	i := slices.IndexFunc(r.policy.Connectors, func(c Connector) bool { return c.URL == url })
	if url == "" || i < 0 {
		return Connector{}, false
	}
	return r.policy.Connectors[i], true
}

// granted returns the tools of a connector that the agent may invoke, of those that
// it asks for, and why it may not invoke any of the others, "" for none that it may not.
func (r *request) granted(c Connector, wanted func(tool string) bool) (tools []string, code capability.Code) {
	for _, t := range c.Tools {
		if !wanted(t) {
			continue
		}
		d := r.invokes(c, t)
		if d.Allowed() {
			tools = append(tools, t)
		}
		code = cmp.Or(code, d.Code)
	}
	return tools, code
}

// invokes is the method of the policy, which is asked once for a tool, however often a
// request names its server.
func (r *request) invokes(c Connector, tool string) capability.Decision {
	name := c.granted(tool)
	d, ok := r.invoked[name]
	if !ok {
		if r.invoked == nil {
			r.invoked = map[string]capability.Decision{}
		}
		d = r.policy.invokes(c, tool)
		r.invoked[name] = d
	}
	return d
}

// withheld says why none of a connector's tools is offered.
func (c Connector) withheld(code capability.Code) string {
	switch code {
	case capability.RequiresApproval:
		return "nobody can approve a tool of " + clip(c.Name) + " in the middle of a request"
	case capability.NotAvailable:
		return "nothing declares what a tool of " + clip(c.Name) + " touches"
	}
	return "no tool of " + clip(c.Name) + " is covered by tool.invoke"
}

// named returns what tool.invoke calls tools of the connector.
func (c Connector) named(tools []string) []string {
	all := make([]string, 0, len(tools))
	for _, t := range tools {
		all = append(all, c.granted(t))
	}
	return all
}

func anyTool(string) bool { return true }

// listed reads a list of tools, or a filter of the members that are known, and returns what
// it asks for.
func listed(v wire.Value, filter string) (wanted func(string) bool, ok bool) {
	if v.Kind() == wire.Object {
		if stranger(v, filter) != "" {
			return anyTool, false
		}
		v, _ = v.Get("tool_names")
	}
	switch v.Kind() {
	case wire.Invalid, wire.Null:
		return anyTool, true
	}
	names, ok := textsOf(v)
	return func(t string) bool { return slices.Contains(names, t) }, ok
}

// connects decides a connector in the form of OpenAI.
func (r *request) connects(v wire.Value) (capability.Code, string) {
	const members = "type server_label server_url server_description allowed_tools authorization headers require_approval defer_loading allowed_callers"
	c, ok := r.connectorAt(textOf(v, "server_url"))
	label := textOf(v, "server_label")
	if !ok || !r.unconnected(label) || stranger(v, members) != "" {
		return capability.ScopeViolation, foreign
	}
	allowed, _ := v.Get("allowed_tools")
	filter := "tool_names"
	if r.filters() { // which lets nothing run before somebody says yes
		filter += " read_only"
	}
	wanted, ok := listed(allowed, filter)
	if !ok {
		return capability.NotAvailable, "what it asks for in allowed_tools is not known here"
	}
	tools, code := r.granted(c, wanted)
	if len(tools) == 0 {
		return cmp.Or(code, capability.ScopeViolation), c.withheld(code)
	}
	r.rests(invoke, c.named(tools)...)
	r.connected = append(r.connected, Connector{Name: label, URL: c.URL, Tools: tools})
	changed := r.allows(v, allowed, tools)
	if r.kit == openKit && r.set(v, "require_approval", []byte(`"always"`)) {
		changed = true
	}
	if len(r.without(v, "authorization", "headers")) > 0 || changed {
		r.note(Change{Tool: "mcp " + clip(c.Name), Did: Narrowed, Code: capability.ScopeViolation, Why: "it offers no more than tool.invoke covers, and carries no credential of the agent", Tools: c.named(tools)})
	}
	return "", ""
}

// filters reports whether who gets the request takes a filter of a connector's tools. Elsewhere only
// a list is documented, so that a filter could be taken for no limit.
func (r *request) filters() bool { return r.kit == openKit && !r.policy.Relayed }

// allows writes which tools a connector offers, where that is said, and reports whether it says
// something new. What else a filter says stays: a tool that only reads.
func (r *request) allows(v, allowed wire.Value, tools []string) bool {
	member := "allowed_tools"
	if allowed.Kind() == wire.Object && r.filters() {
		v, member = allowed, "tool_names"
		allowed, _ = v.Get(member)
	}
	return !same(allowed, tools) && r.set(v, member, appendList(nil, tools))
}

// maxConnected caps the MCP servers of one request.
const maxConnected = 64

// unconnected reports whether a server can still be given a name in the request.
func (r *request) unconnected(name string) bool {
	return len(r.connected) < maxConnected && !slices.ContainsFunc(r.connected, func(c Connector) bool { return c.Name == name })
}

// offers reports whether a server that stays offers a tool.
func (r *request) offers(server, tool string) bool {
	return slices.ContainsFunc(r.connected, func(c Connector) bool { return c.Name == server && slices.Contains(c.Tools, tool) })
}

// foreignItem judges what an input says of foreign tools, which an agent can make
// up: a list of them, a call, a request to consent to one, or the consent to a
// request that stands before it. A call that is over is no more than history.
func (r *request) foreignItem(kind string, v wire.Value) bool {
	server, name := textOf(v, "server_label"), textOf(v, "name")
	switch kind {
	case "mcp_list_tools":
		tools, _ := v.Get("tools")
		for t := range tools.Elems() {
			r.opaqueIn(t, ofFunction)
			if !r.offers(server, textOf(t, "name")) {
				return false
			}
		}
		return tools.Kind() == wire.Array
	case "mcp_call":
		output, _ := v.Get("output")
		return output.Kind() == wire.String && len(r.policy.Connectors) > 0 || r.offers(server, name)
	case "mcp_approval_request":
		if r.asked == nil {
			r.asked = map[string]bool{}
		}
		r.asked[textOf(v, "id")] = true
		return r.offers(server, name)
	}
	return r.asked[textOf(v, "approval_request_id")]
}

// mcpServers judges the MCP servers of a request in the form of Anthropic.
func (r *request) mcpServers(v wire.Value) bool {
	if v.Kind() == wire.Null {
		return true
	}
	return r.elements(v, r.server)
}

func (r *request) server(v wire.Value) bool {
	if r.servers++; r.servers > maxConnected {
		r.exceeds("MCP servers")
		return true
	}
	name := textOf(v, "name")
	c, ok := r.connectorAt(textOf(v, "url"))
	configuration, _ := v.Get("tool_configuration")
	allowed, _ := configuration.Get("allowed_tools")
	wanted, readable := listed(allowed, "tool_names")
	tools, code := r.granted(c, wanted)
	if !ok || !readable || !r.unconnected(name) || len(tools) == 0 || stranger(v, "type name url authorization_token tool_configuration") != "" || stranger(configuration, "enabled allowed_tools") != "" {
		why := foreign
		if len(tools) == 0 && code != "" {
			why = c.withheld(code)
		} else {
			code = capability.ScopeViolation
		}
		r.note(Change{Tool: "mcp_servers " + clip(name), Did: Omitted, Code: code, Why: why})
		return false
	}
	r.rests(invoke, c.named(tools)...)
	r.connected = append(r.connected, Connector{Name: name, URL: c.URL, Tools: tools})
	begin, size := `{"allowed_tools":`, 1
	if !enabled(configuration, true) {
		begin, size = `{"enabled":false,"allowed_tools":`, 2
	}
	changed := !same(allowed, tools) || configuration.Len() != size
	if changed {
		r.set(v, "tool_configuration", append(appendList([]byte(begin), tools), '}'))
	}
	if len(r.without(v, "authorization_token")) > 0 || changed {
		r.note(Change{Tool: "mcp_servers " + clip(name), Did: Narrowed, Code: capability.ScopeViolation, Why: "it offers no more than tool.invoke covers, and carries no credential of the agent", Tools: c.named(tools)})
	}
	return true
}

// toolset decides which tools of one of mcp_servers are offered.
func (r *request) toolset(v wire.Value) (capability.Code, string) {
	i := slices.IndexFunc(r.connected, func(c Connector) bool { return c.Name == textOf(v, "mcp_server_name") })
	if i < 0 {
		return capability.ScopeViolation, "no server of its name is left in mcp_servers"
	}
	r.knownOnly(v, "type mcp_server_name cache_control configs default_config tools") // without it the provider would not take its server
	if pinned, _ := v.Get("tools"); pinned.Kind() != wire.Invalid && pinned.Kind() != wire.Null && !r.stated(r.connected[i].Name, pinned) {
		r.without(v, "tools")
		r.note(unlisted("mcp_toolset " + clip(r.connected[i].Name)))
	}
	configs, _ := v.Get("configs")
	general, _ := v.Get("default_config")
	var tools []string
	text := []byte{'{'}
	for _, t := range r.connected[i].Tools {
		one, _ := configs.Get(t)
		if !enabled(one, enabled(general, true)) {
			continue
		}
		if len(tools) > 0 {
			text = append(text, ',')
		}
		text, tools = append(append(wire.AppendString(text, t), ':'), setting("true", one)...), append(tools, t)
	}
	text = append(text, '}') // where none is left the toolset still stays: the provider refuses a server without one
	r.toolsets = append(r.toolsets, r.connected[i].Name)
	changed := r.set(v, "configs", text)
	if r.set(v, "default_config", setting("false", general)) || changed {
		c, _ := r.connectorAt(r.connected[i].URL)
		r.note(Change{Tool: "mcp_toolset " + clip(r.connected[i].Name), Did: Narrowed, Code: capability.ScopeViolation, Why: "it offers no more than tool.invoke covers", Tools: c.named(tools)})
	}
	return "", ""
}

// setting switches a tool on or off. Whether it is loaded later stays.
func setting(enabled string, config wire.Value) []byte {
	text := `{"enabled":` + enabled
	if later, _ := config.Get("defer_loading"); later.Kind() == wire.Bool {
		text += `,"defer_loading":` + string(later.Raw())
	}
	return []byte(text + "}")
}

// listing keeps what a server has listed earlier where it stays and offers all of that. Without,
// the provider asks it again.
func (r *request) listing(v wire.Value) bool {
	server := textOf(v, "mcp_server_name")
	tools, _ := v.Get("tools")
	if stranger(v, "type mcp_server_name tools") == "" && r.stated(server, tools) {
		return true
	}
	r.noteOnce(unlisted("mcp_tool_listing " + clip(server)))
	return false
}

func unlisted(what string) Change {
	return Change{Tool: what, Did: Omitted, Code: capability.ScopeViolation, Why: "it lists tools that no server in mcp_servers offers: the provider asks again"}
}

// stated reports whether a list names only tools that a server which stays offers.
func (r *request) stated(server string, tools wire.Value) bool {
	known := tools.Kind() == wire.Array && tools.Len() > 0
	for t := range tools.Elems() {
		r.opaqueIn(t, ofFunction)
		known = known && r.offers(server, textOf(t, "name")) && stranger(t, "name description input_schema") == ""
	}
	return known
}

// enabled reads the switch of one tool.
func enabled(config wire.Value, otherwise bool) bool {
	if on, _ := config.Get("enabled"); on.Kind() == wire.Bool {
		value, _ := on.Bool()
		return value
	}
	return otherwise
}
