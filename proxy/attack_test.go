package proxy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"capgate/capability"
	"capgate/mapping"
	"capgate/proxy"
	"capgate/upstream"
	"capgate/wire"
)

// drivers are how the scenarios of the corpus reach the front.
func drivers() map[string]func(*site, *attack, bool) string {
	return map[string]func(*site, *attack, bool) string{
		"call": (*site).call, "envelope": (*site).envelope, "register": (*site).register,
		"resource_read": (*site).resource, "prompt_get": (*site).prompt, "describe": (*site).describe,
		"scarab": (*site).scarab,
	}
}

func quoted(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// schema is a property of an input schema.
type schema struct {
	Properties map[string]schema
	Items      *schema
}

// leaves enters the values below a property as free arguments.
func (p schema) leaves(name string, args map[string]any) {
	for member, q := range p.Properties {
		q.leaves(name+"."+member, args)
	}
	if p.Items != nil {
		p.Items.leaves(name+"[*]", args)
	}
	if len(p.Properties) == 0 && p.Items == nil {
		args[name] = "free"
	}
}

// role writes the kind of a bound argument in the words of a mapping.
func role(kind, verb string) any {
	switch kind {
	case "glob":
		return map[string]any{"verb": verb, "glob": true}
	case "host":
		return map[string]any{"verb": verb, "as": "host"}
	case "cwd":
		return map[string]any{"in": verb}
	case "argv0", "argv", "env":
		return map[string]any{kind: verb}
	}
	if name, ok := strings.CutPrefix(kind, "key:"); ok {
		if e, known := capability.Lookup(capability.Verb(verb)); known {
			if k, ok := e.Key(name); ok {
				return map[string]any{"verb": verb, "dim": k.Dim}
			}
		}
	}
	return verb
}

// bound is the mapping that a case describes.
func (s *site) bound(a *attack) *mapping.Mapping {
	args := map[string]any{}
	if a.Hint.Additional || a.Hint.Strict {
		args["additional"] = "free"
	}
	if !a.Hint.Strict && a.Hint.Properties != nil {
		var props map[string]schema
		must(s.t, json.Unmarshal(a.Hint.Properties, &props))
		for name, p := range props {
			p.leaves(name, args)
		}
	}
	for name, kind := range a.Hint.Bind {
		delete(args, strings.TrimSuffix(name, "[]"))
		delete(args, strings.ReplaceAll(name, "[]", "[*]"))
		args[name] = role(kind, a.Hint.Requires)
	}
	return parsed(s.t, quoted(map[string]any{"server": "server", "tools": map[string]any{a.Hint.Tool: args}}))
}

// call is a tools/call.
func (s *site) call(a *attack, modern bool) string {
	properties := a.Hint.Properties
	if properties == nil {
		properties = json.RawMessage("{}")
	}
	server := &scripted{lists: map[string]string{"tools/list": `"tools":[]`}}
	if !a.Hint.Unregistered {
		server.lists["tools/list"] = `"tools":[{"name":` + quoted(a.Hint.Tool) + `,"inputSchema":{"type":"object","properties":` + string(properties) + `}}]`
	}
	up := &proxy.Upstream{Name: "server", Prefix: "server", Mapping: s.bound(a), View: s.view(a.Hint.Cwd), Open: server.open}
	w := s.serve(a, proxy.Options{}, up)
	name, args := "server__"+a.Hint.Tool, s.bytesOf(a.Args)
	answer := s.ask(w, modern, "tools/call", name, `"name":`+quoted(name)+`,"arguments":`+string(args))
	got := s.outcome(answer, server)
	if _, err := wire.Parse(args); err != nil && got == string(capability.MalformedRequest) && answer.Status == 400 {
		return string(capability.MalformedArguments) // what no strict reader takes is the message's fault
	}
	if got != "allow" {
		return got
	}
	return s.sameArguments(server, args)
}

// sameArguments compares the arguments that went up with those that came.
func (s *site) sameArguments(server *scripted, args []byte) string {
	sent, err := wire.Parse(server.calls()[0].Params)
	must(s.t, err)
	v, _ := sent.Root().Get("arguments")
	if !bytes.Equal(v.Raw(), bytes.TrimSpace(args)) {
		return "allow, but the arguments that went up are " + string(v.Raw())
	}
	return "allow"
}

const envelopeTools = "server: fs\ntools:\n  read_file: {path: fs.read}\n  delete_file: {path: fs.delete}\n"

// envelope is a whole message, with its headers.
func (s *site) envelope(a *attack, modern bool) string {
	server := &scripted{lists: map[string]string{"tools/list": `"tools":[` + tool("read_file", "path") + `,` + tool("delete_file", "path") + `]`}}
	up := &proxy.Upstream{Name: "fs", Prefix: "fs", Mapping: parsed(s.t, envelopeTools), View: s.view(s.root), Open: server.open}
	var args struct {
		Message string `json:"$raw_message"`
	}
	must(s.t, json.Unmarshal(a.Args, &args))
	if a.Hint.Direction != "" {
		return s.fromServer(a, modern, args.Message, up, server)
	}
	w := s.serve(a, proxy.Options{}, up)
	c := w.client("scout")
	if !modern {
		c.initialize("{}")
	}
	message, headers := dress(args.Message, modern || a.Hint.Headers["MCP-Protocol-Version"] != "")
	for name, value := range a.Hint.Headers {
		headers = append(headers, name, value)
	}
	answer := take(s.t, c.post(message, headers...))
	if strings.Contains(args.Message, "tools/list") {
		return s.listed(a, answer)
	}
	got := s.outcome(answer, server)
	if got == "allow" && a.Hint.MetaKeys != nil && strings.Contains(string(server.calls()[0].Params), "_meta") {
		return "allow, with _meta: " + string(server.calls()[0].Params)
	}
	return got
}

// dress gives a message what the modern era demands.
func dress(message string, modern bool) (string, []string) {
	if !modern {
		return message, nil
	}
	if at := strings.Index(message, `"_meta":{`); at >= 0 {
		at += len(`"_meta":{`)
		message = message[:at] + modernMeta + "," + message[at:]
	} else {
		message = strings.Replace(message, `"params":{}`, `"params":{"_meta":{`+modernMeta+`}}`, 1)
		message = strings.Replace(message, `"params":{"name"`, `"params":{"_meta":{`+modernMeta+`},"name"`, 1)
	}
	var m struct {
		Method string
		Params struct{ Name string }
	}
	_ = json.Unmarshal([]byte(message), &m) // what is malformed needs no headers
	headers := []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", m.Method}
	if m.Params.Name != "" {
		headers = append(headers, "Mcp-Name", m.Params.Name)
	}
	return message, headers
}

func (s *site) listed(a *attack, answer said) string {
	if a.Hint.Result == nil || answer.Error != nil {
		return answer.Raw
	}
	for _, name := range a.Hint.Result.Absent {
		if slices.Contains(toolNames(s.t, answer), name) {
			return "allow, and shows " + name
		}
	}
	var r struct{ CacheScope string }
	must(s.t, json.Unmarshal(answer.Result, &r))
	if r.CacheScope != "" && r.CacheScope != a.Hint.Result.CacheScope {
		return "allow, kept " + r.CacheScope
	}
	return "allow"
}

// fromServer is a request of the server during a call.
func (s *site) fromServer(a *attack, modern bool, message string, up *proxy.Upstream, server *scripted) string {
	doc, err := wire.Parse([]byte(message))
	must(s.t, err)
	method, _ := doc.Root().Get("method")
	params, _ := doc.Root().Get("params")
	name, _ := method.Str()
	heard := "the server did not ask"
	server.reply = func(ctx context.Context, _ upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
		heard = "allow"
		if _, err := sink.Ask(ctx, name, params.Raw()); err != nil {
			heard = "refused"
		}
		return upstream.Answer{Result: []byte(`{"content":[]}`)}, nil
	}
	w := s.serve(a, proxy.Options{}, up)
	s.ask(w, modern, "tools/call", "fs__read_file", `"name":"fs__read_file","arguments":{"path":"`+s.root+`/ok.txt"}`)
	for _, e := range w.events.of("refusal") {
		if heard == "refused" {
			heard = e.Code
		}
	}
	return heard
}

// register is a set of servers whose tools claim names.
func (s *site) register(a *attack, modern bool) string {
	var args struct {
		Expose, Call string
		Exposed      string `json:"exposed_name"`
		Plain        string `json:"expose_unprefixed"`
		Claims       []string
	}
	must(s.t, json.Unmarshal(a.Args, &args))
	var ups []*proxy.Upstream
	var servers []*scripted
	for name, tools := range a.Hint.Servers {
		var list []string
		for _, one := range tools {
			list = append(list, `{"name":`+quoted(one)+`,"inputSchema":{"type":"object"}}`)
		}
		server := &scripted{lists: map[string]string{"tools/list": `"tools":[` + strings.Join(list, ",") + `]`}}
		up := &proxy.Upstream{Name: name, Prefix: name, Open: server.open}
		if args.Plain != "" {
			up.Prefix = ""
		}
		ups, servers = append(ups, up), append(servers, server)
	}
	w := s.serve(a, proxy.Options{}, ups...)
	names := []string{args.Call, args.Exposed, args.Plain}
	if args.Exposed == "" && args.Plain == "" {
		for _, claim := range append(args.Claims, args.Expose) {
			names = append(names, strings.Replace(claim, "/", "__", 1))
		}
	}
	got := ""
	for _, name := range names {
		if name == "" {
			continue
		}
		for _, one := range servers {
			one.mu.Lock()
			one.got = nil
			one.mu.Unlock()
		}
		code := s.outcome(s.ask(w, modern, "tools/call", name, `"name":`+quoted(name)+`,"arguments":{}`), servers...)
		if shown := slices.Contains(toolNames(s.t, s.ask(w, modern, "tools/list", "", "")), name); shown != (code == "allow") {
			return code + ", and the list says otherwise of " + name
		}
		if got != "" && got != code {
			return got + " and " + code
		}
		got = code
	}
	return got
}

// resource is a resources/read, of a server that no mapping covers.
func (s *site) resource(a *attack, modern bool) string {
	var args struct{ URI string }
	must(s.t, json.Unmarshal(a.Args, &args))
	server := &scripted{}
	if a.Hint.Via == "resources/list" {
		server.lists = map[string]string{"resources/list": `"resources":[{"uri":` + quoted(args.URI) + `,"name":"x"}]`}
	}
	w := s.serve(a, proxy.Options{}, &proxy.Upstream{Name: a.Hint.Server, Prefix: a.Hint.Server, View: s.view(a.Hint.Cwd), Open: server.open})
	if list := s.ask(w, modern, "resources/list", "", ""); strings.Contains(list.Raw, args.URI) {
		return "listed"
	}
	return s.outcome(s.ask(w, modern, "resources/read", args.URI, `"uri":`+quoted(args.URI)), server)
}

// prompt is a prompts/get. One whose arguments are bound has a mapping.
func (s *site) prompt(a *attack, modern bool) string {
	var args struct {
		Name      string
		Arguments json.RawMessage
	}
	must(s.t, json.Unmarshal(a.Args, &args))
	if args.Arguments == nil {
		args.Arguments = json.RawMessage("{}")
	}
	roles := map[string]any{}
	for name, kind := range a.Hint.Bind {
		roles[strings.TrimPrefix(name, "arguments.")] = role(kind, a.Hint.Requires)
	}
	var m *mapping.Mapping
	if len(roles) > 0 {
		m = parsed(s.t, quoted(map[string]any{"server": a.Hint.Server, "tools": map[string]any{}, "prompts": map[string]any{args.Name: roles}}))
	}
	server := &scripted{lists: map[string]string{"prompts/list": `"prompts":[{"name":` + quoted(args.Name) + `}]`}}
	w := s.serve(a, proxy.Options{}, &proxy.Upstream{Name: a.Hint.Server, Prefix: a.Hint.Server, Mapping: m, View: s.view(s.root), Open: server.open})
	name := a.Hint.Server + "__" + args.Name
	return s.outcome(s.ask(w, modern, "prompts/get", name, `"name":`+quoted(name)+`,"arguments":`+string(args.Arguments)), server)
}

// describe is the definition of a tool: one that is new, or one that was another.
func (s *site) describe(a *attack, modern bool) string {
	var def struct{ Name string }
	must(s.t, json.Unmarshal(a.Args, &def))
	server := &scripted{lists: map[string]string{"tools/list": `"tools":[` + string(a.Args) + `]`}}
	up := &proxy.Upstream{Name: "up", Prefix: "up", Open: server.open}
	if a.Hint.Requires != "" {
		up.Mapping = parsed(s.t, quoted(map[string]any{"server": "up", "tools": map[string]any{def.Name: map[string]any{"path": a.Hint.Requires}}}))
	}
	if a.Hint.Pinned != nil {
		server.lists["tools/list"] = `"tools":[` + string(a.Hint.Pinned) + `]`
	}
	w := s.serve(a, proxy.Options{}, up)
	if a.Hint.Pinned != nil {
		s.ask(w, modern, "tools/list", "", "")
		server.relist("tools/list", `"tools":[`+string(a.Args)+`]`)
		server.first().Events.Notify("notifications/tools/list_changed", nil)
	}
	name := "up__" + def.Name
	got := s.outcome(s.ask(w, modern, "tools/call", name, `"name":`+quoted(name)+`,"arguments":{}`), server)
	if shown := slices.Contains(toolNames(s.t, s.ask(w, modern, "tools/list", "", "")), name); shown != (got == "allow") {
		return got + ", and the list says otherwise"
	}
	return got
}
