package provider

import (
	"cmp"
	"strings"

	"capgate/wire"
)

// ran returns the type of an object. What shows a tool of the provider in another way
// has that of a call.
func (w *Watch) ran(v wire.Value) string {
	kind, _ := typeOf(v)
	switch kind {
	case "server_tool_use":
		kind = textOf(v, "name")
	case citation:
		page, _ := v.Get(citation) // of a chat
		return cmp.Or(w.ownSearch(cmp.Or(textOf(v, "url"), textOf(page, "url"))), citation)
	case "reasoning.server_tool_call": // of OpenRouter
		kind = textOf(v, "tool_name")
	case "tool_reference", "tool_file": // of Mistral, in the midst of an answer
		return callOf(textOf(v, "tool"))
	case "tool.execution", "tool.execution.started", "tool.execution.delta", "tool.execution.done": // the same, by themselves
		return callOf(textOf(v, "name"))
	case "fetch_url_content": // of Perplexity
		return webFetch
	case "execute_python":
		return codeExecution
	case "collections_search_call": // of xAI
		return "file_search_call"
	case "custom_tool_call":
		if part := partOf(textOf(v, "name")); w.kit == xaiKit && part != "" {
			return part
		}
	case "shell_call":
		if where, _ := v.Get("environment"); strings.HasPrefix(textOf(where, "type"), "container") {
			return codeExecution
		}
	}
	if own, ok := strings.CutPrefix(kind, "openrouter:"); ok {
		return callOf(own)
	}
	return kind
}

// partOf knows a part of a tool of xAI, which shows them as tools of an agent, by its name.
func partOf(name string) string {
	switch name {
	case "web_search", "web_search_with_snippets", "browse_page", "open_page":
		return "web_search_call"
	case "code_execution":
		return "code_interpreter_call"
	case "view_image", "view_x_video":
		return name + "_call"
	case "x_user_search", "x_keyword_search", "x_semantic_search", "x_thread_fetch":
		return "x_search_call"
	}
	return ""
}

// counted is the tool whose uses are counted under a name.
func counted(folded string) string {
	switch folded {
	case "webfetchrequests":
		return webFetch
	case "xsearchcalls":
		return "x_search_call"
	case "codeinterpretercalls":
		return codeExecution
	case "filesearchcalls", "documentsearchcalls":
		return "file_search_call"
	}
	return webSearch
}

// cited is a search when a list names pages. Some vendors cite documents as well, and say
// otherwise that something was read.
func (w *Watch) cited(v wire.Value) string {
	if v.Kind() != wire.Array || w.kit == anthropicKit || w.kit == geminiKit {
		return ""
	}
	for element := range v.Elems() {
		_, has := element.Get("url")
		_, shows := element.Get("image_url") // of Perplexity's, which draws none
		text, isText := element.Str()
		if !has && !isText && !(shows && w.kit == perplexityKit) {
			continue
		}
		own := w.ownSearch(cmp.Or(text, textOf(element, "url")))
		if own == "" {
			return webSearch
		}
		w.enter(own, "")
	}
	return ""
}

// ownSearch is the tool of xAI's that has found what an answer cites where others cite pages,
// "" for a page of the web. A post is one unless posts may be searched.
func (w *Watch) ownSearch(cited string) string {
	if w.kit != xaiKit && w.kit != routerKit {
		return ""
	}
	cited = strings.ToLower(cited)
	if strings.HasPrefix(cited, "collections://") {
		return "file_search_call"
	}
	rest, ok := strings.CutPrefix(cited, "https://")
	host, _, _ := strings.Cut(rest, "/")
	if ok && (host == "x.com" || host == "twitter.com") && w.policy.holds("x_search").Allowed() {
		return "x_search_call"
	}
	return ""
}

// callOf writes the name that a vendor has for one of its tools as the type of a call.
func callOf(tool string) string {
	tool = strings.ToLower(tool)
	switch {
	case strings.HasPrefix(tool, "google_search"), tool == "fusion": // of models that search
		return webSearch
	case tool == "url_context", tool == "urlcontextmetadata":
		return webFetch
	case isListed(tool, "code_interpreter shell bash executablecode"):
		return codeExecution
	case isListed(tool, "google_maps file_search image_generation document_library browser_use computer_use subagent files mcp"):
		return tool + "_call"
	}
	return tool
}
