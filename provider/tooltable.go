package provider

import (
	"strings"

	"capgate/wire"
)

// known says what is known of a tool, by its type. What is not in a table is
// [strange].
func (r *request) known(kind string, v wire.Value) tool {
	switch r.kit {
	case anthropicKit:
		return anthropicTool(kind, v)
	case openKit:
		return openTool(kind)
	case xaiKit:
		return xaiTool(kind)
	case routerKit:
		if t := routerLocal(kind); r.form == formResponses && t.use != strange {
			return t
		}
		return routerTool(kind)
	case mistralKit:
		return mistralTool(kind)
	}
	return functionsOnly(kind)
}

// functionsOnly is the table of who runs no tools, or no typed ones.
func functionsOnly(kind string) tool {
	if kind == "" || kind == "function" || kind == "custom" {
		return tool{use: local}
	}
	return tool{}
}

// anthropicTool knows tools by family: a type is that and the date of a version.
func anthropicTool(kind string, v wire.Value) tool {
	family, date := kind, ""
	if i := strings.LastIndexByte(kind, '_'); i >= 0 && len(kind)-i-1 == len("20250305") && strings.Trim(kind[i+1:], "0123456789") == "" {
		family, date = kind[:i], kind[i+1:]
	}
	switch family {
	case "", "custom", "tool_search_tool_regex", "tool_search_tool_bm25":
		return tool{use: local}
	case "bash", "text_editor", "computer", "computer_toolset", "browser_toolset", "memory":
		if date != "" {
			return tool{use: local}
		}
	case webSearch, webFetch:
		return anthropicWeb(family, date, v)
	case codeExecution:
		return tool{use: unscoped, verb: codeExecution}
	case "advisor":
		return tool{use: unscoped, verb: "advisor"}
	case "mcp_toolset":
		return tool{use: toolset}
	}
	return tool{}
}

// anthropicWeb is web search and fetch. Of a version that is not known yet only that
// much is sure: it takes a list of domains if it is given one.
func anthropicWeb(family, date string, v wire.Value) tool {
	const plainly = "20250910" // the last version that runs no code unless it is told to
	s := scope{
		verb: family, allowed: "allowed_domains", blocked: "blocked_domains", callers: date > plainly,
		members: "type name allowed_callers allowed_domains blocked_domains cache_control defer_loading max_uses response_inclusion strict",
	}
	versions := "20250305 20260209 20260318"
	if family == webSearch {
		s.paths = true
		s.members += " user_location"
	} else {
		versions = "20250910 20260209 20260309 20260318"
		s.members += " citations max_content_tokens use_cache url_sources"
	}
	allowed, _ := v.Get("allowed_domains")
	if known := strings.Contains(versions, date); date == "" || !known && allowed.Kind() != wire.Array {
		return tool{}
	} else if !known {
		s.callers = true
	}
	return tool{use: scoped, scope: s}
}

func openTool(kind string) tool {
	switch kind {
	case "function", "custom", "tool_search", "local_shell", "apply_patch", "computer", "computer_use_preview":
		return tool{use: local}
	case webSearch, "web_search_2025_08_26":
		const most = 100
		return tool{use: scoped, scope: scope{
			list: list{most: most}, verb: webSearch, under: "filters", allowed: "allowed_domains", blocked: "blocked_domains",
			members: "type filters external_web_access image_settings " + contentTypes + " search_context_size user_location",
			inner:   "allowed_domains blocked_domains",
			wide:    contentTypes, // where pictures are from is not said
		}}
	case "web_search_preview", "web_search_preview_2025_03_11":
		return tool{use: reading, verb: webSearch}
	case "code_interpreter", "shell":
		return tool{use: runner}
	case "programmatic_tool_calling":
		return tool{use: unscoped, verb: codeExecution}
	case "file_search", "image_generation":
		return tool{use: unscoped, verb: kind}
	case "mcp":
		return tool{use: connector}
	case "namespace":
		return tool{use: group}
	}
	return tool{}
}

func xaiTool(kind string) tool {
	switch kind {
	case webSearch:
		const most = 5
		return tool{use: scoped, scope: scope{
			list: list{most: most}, verb: webSearch, under: "filters", allowed: "allowed_domains", blocked: "excluded_domains",
			members: "type filters enable_image_search enable_image_understanding user_location",
			inner:   "allowed_domains excluded_domains",
			wide:    "enable_image_search enable_image_understanding", flat: true,
		}}
	case "x_search", "view_image", "image_generation":
		return tool{use: unscoped, verb: kind}
	case "view_x_video":
		return tool{use: unscoped, verb: "x_search"}
	case "code_interpreter", "code_execution":
		return tool{use: unscoped, verb: codeExecution}
	case "file_search", "collections_search":
		return tool{use: unscoped, verb: "file_search"}
	case "mcp":
		return tool{use: connector}
	}
	return functionsOnly(kind)
}

// routerTool knows the tools of OpenRouter. The short forms of web search take
// their domains in ways that differ by engine, so that only the long one is scoped.
func routerTool(kind string) tool {
	short, isServer := strings.CutPrefix(kind, "openrouter:")
	switch {
	case !isServer && strings.HasPrefix(kind, webSearch):
		return tool{use: reading, verb: webSearch}
	case !isServer:
		return functionsOnly(kind)
	}
	switch short {
	case webSearch:
		return tool{use: scoped, scope: scope{
			verb: webSearch, under: "parameters", allowed: "allowed_domains", blocked: "excluded_domains", engines: "exa firecrawl parallel perplexity",
			members: "type parameters", wide: "x_search", flat: true,
			inner: "allowed_domains excluded_domains engine max_characters max_results max_total_results max_uses mode search_context_size user_location x_search",
		}}
	case webFetch:
		return tool{use: scoped, scope: scope{
			verb: webFetch, under: "parameters", allowed: "allowed_domains", blocked: "blocked_domains", engines: "openrouter",
			members: "type parameters", inner: "allowed_domains blocked_domains engine max_content_tokens max_uses",
		}}
	case "bash", "shell", "code_interpreter":
		return tool{use: runner}
	case "browser_use", "computer_use", "subagent", "files", "file_search", "image_generation":
		return tool{use: unscoped, verb: short}
	case "advisor":
		return tool{use: adviser, verb: "advisor"}
	case "datetime":
		return tool{use: local}
	}
	return tool{}
}

// routerLocal knows the tools of OpenAI that OpenRouter passes on for the agent to run. Its
// shell is none of them: without a place, that runs at a provider.
func routerLocal(kind string) tool {
	switch kind {
	case "local_shell", "apply_patch":
		return tool{use: local}
	case "namespace":
		return tool{use: group}
	}
	return tool{}
}

func mistralTool(kind string) tool {
	switch kind {
	case webSearch, "web_search_premium":
		return tool{use: reading, verb: webSearch}
	case "code_interpreter":
		return tool{use: unscoped, verb: codeExecution}
	case "image_generation", "document_library":
		return tool{use: unscoped, verb: kind}
	}
	return functionsOnly(kind)
}
