package provider

import (
	"encoding/json"
	"errors"

	"capgate/capability"
	"capgate/wire"
)

// Tool is one of a vendor's own tools as an agent may ask for it.
type Tool struct {
	Name    string          `json:"name"`
	Entry   json.RawMessage `json:"entry,omitempty"` // what stands in a request; nothing when the tool is omitted
	Changes []Change        `json:"changes,omitempty"`
}

// Translate writes what an agent holds as a vendor's own tools: each of them as a
// request of the agent would carry it, and what was left out or narrowed and why.
// It is what [Vendor.Rewrite] makes of a request that asks for everything.
func (v Vendor) Translate(p Policy) []Tool {
	var tools []Tool
	for _, s := range append(samples(v.kit, p), connections(v.kit, p.Connectors)...) {
		tools = append(tools, v.sample(s, p))
	}
	return tools
}

// sample is a request for one tool, in its plainest form.
type sample struct {
	name   string
	member string // that the tool stands in
	body   string
}

func (v Vendor) sample(s sample, p Policy) Tool {
	var place Endpoint
	for _, r := range v.routes {
		if r.form == formMessages || r.form == formResponses || r.form == formChat || r.form == formGenerate {
			place = Endpoint{Method: r.method, Path: r.path, Body: true, form: r.form}
			break
		}
	}
	out, changes, err := v.Rewrite(place, []byte(s.body), p)
	t := Tool{Name: s.name, Changes: changes}
	if refused := (*Refused)(nil); errors.As(err, &refused) {
		t.Changes = []Change{{Tool: s.name, Did: Omitted, Code: refused.Code, Why: refused.Why}}
		return t
	}
	doc, err := wire.Parse(out)
	if err != nil {
		t.Changes = append(t.Changes, Change{Tool: s.name, Did: Omitted, Code: capability.NotAvailable, Why: err.Error()})
		return t
	}
	member, _ := doc.Root().Get(s.member)
	if s.member == "" {
		member = doc.Root()
	}
	for entry := range member.Elems() {
		member = entry
	}
	t.Entry = member.Raw()
	return t
}

// samples lists the tools of a vendor: the newest version of each.
func samples(k kit, p Policy) []sample {
	var all []sample
	network := `,"network_policy":` + everyNetwork(p)
	for _, tool := range ownTools(k) {
		switch k {
		case geminiKit:
			all = append(all, sample{tool, "tools", `{"tools":[{"` + tool + `":{}}]}`})
		case perplexityKit:
			all = append(all, sample{tool, "", `{"model":"sonar"}`})
		case anthropicKit:
			name := family(tool)
			all = append(all, sample{tool, "tools", `{"tools":[{"type":"` + tool + `","name":"` + name + `"}]}`})
		case openKit, routerKit:
			all = append(all, sample{tool, "tools", `{"model":"any","tools":[{"type":"` + tool + `"` + needed(tool, network) + `}]}`})
		default:
			all = append(all, sample{tool, "tools", `{"tools":[{"type":"` + tool + `"}]}`})
		}
	}
	if k == routerKit {
		all = append(
			all,
			sample{"plugin web", "plugins", `{"model":"any","plugins":[{"id":"web"}]}`},
			sample{"plugin web-fetch", "plugins", `{"model":"any","plugins":[{"id":"web-fetch"}]}`},
		)
	}
	return all
}

// connections asks for every tool of each connector, of a vendor that connects to some.
func connections(k kit, connectors []Connector) []sample {
	var all []sample
	for _, c := range connectors {
		name, url := string(wire.AppendString(nil, c.Name)), string(wire.AppendString(nil, c.URL))
		switch k {
		case anthropicKit:
			all = append(all, sample{"mcp " + c.Name, "tools", `{"mcp_servers":[{"type":"url","name":` + name + `,"url":` + url + `}],"tools":[{"type":"mcp_toolset","mcp_server_name":` + name + `}]}`})
		case openKit, xaiKit:
			all = append(all, sample{"mcp " + c.Name, "tools", `{"model":"any","tools":[{"type":"mcp","server_label":` + name + `,"server_url":` + url + `}]}`})
		}
	}
	return all
}

// everyNetwork asks for every name that a container may reach. There is no way to say that it
// may reach everything.
func everyNetwork(p Policy) string {
	for _, v := range everyWay() {
		if d := domainsOf(p.hosts(v), p.Strict); len(d.held) > 0 {
			names := d.meet(asked{}, list{most: maxList, apart: true}).names
			return string(append(appendList([]byte(`{"type":"allowlist","allowed_domains":`), names), '}'))
		}
	}
	return `{"type":"disabled"}`
}

// needed is what a tool cannot be asked for without: the container of one that
// runs code, the model of one that asks another.
func needed(tool, network string) string {
	switch tool {
	case "code_interpreter":
		return `,"container":{"type":"auto"` + network + `}`
	case "shell":
		return `,"environment":{"type":"container_auto"` + network + `}`
	case "openrouter:advisor":
		return `,"parameters":{"model":"any"}`
	case "openrouter:shell":
		return `,"parameters":{"environment":{"type":"container_auto"` + network + `}}`
	}
	return ""
}

// ownTools names the tools that run at a vendor.
func ownTools(k kit) []string {
	switch k {
	case anthropicKit:
		return []string{"web_search_20260318", "web_fetch_20260318", "code_execution_20260521", "advisor_20260301"}
	case geminiKit:
		return []string{"googleSearch", "urlContext", "codeExecution", "googleMaps", "fileSearch", "computerUse"}
	case mistralKit:
		return []string{"web_search", "web_search_premium", "code_interpreter", "image_generation", "document_library"}
	case openKit:
		return []string{"web_search", "web_search_preview", "code_interpreter", "shell", "file_search", "image_generation", "programmatic_tool_calling"}
	case routerKit:
		return []string{
			"openrouter:web_search", "openrouter:web_fetch", "openrouter:shell", "openrouter:browser_use", "openrouter:computer_use",
			"openrouter:subagent", "openrouter:advisor", "openrouter:files", "openrouter:file_search", "openrouter:image_generation",
		}
	case perplexityKit:
		return []string{"search"}
	case xaiKit:
		return []string{"web_search", "x_search", "view_image", "view_x_video", "code_interpreter", "file_search", "image_generation"}
	}
	return nil
}
