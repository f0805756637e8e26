package provider

import (
	"net/http"
	"strings"

	"capgate/wire"
)

// ownItem lists what stands in an item of one vendor, "" for no such item: most of them are what a
// tool of its own has answered, as clients send it back.
func ownItem(k kit, kind string) string {
	switch {
	case k == routerKit:
		return routerItem(kind)
	case k == openKit && kind == "configuration_update":
		return "reasoning text"
	case k == xaiKit && isListed(kind, "x_search_call view_image_call view_x_video_call code_execution_call"):
		return "name arguments input action"
	}
	return ""
}

func routerItem(kind string) string {
	switch strings.TrimPrefix(kind, "openrouter:") {
	case kind: // of OpenAI
		return ""
	case webSearch:
		return "action"
	case webFetch:
		return "content httpStatus title url"
	case "datetime":
		return "datetime timezone"
	case "file_search":
		return "queries"
	case "files":
		return "arguments file_id filename operation result"
	case "image_generation":
		return "imageB64 imageUrl prompt result revisedPrompt"
	case "bash":
		return "arguments command container_id exitCode files stderr stdout"
	case "shell":
		return "action arguments container_id files output"
	case "code_interpreter":
		return "code exitCode language stderr stdout"
	case "advisor":
		return "advice instance_name model prompt"
	case "subagent":
		return "instance_name model name outcome task_description task_name"
	case "browser_use":
		return "action screenshotB64"
	case "apply_patch":
		return "operation"
	}
	return ""
}

// isRun reports whether code ran at the vendor in an item of its own.
func isRun(kind string) bool {
	return isListed(kind, "openrouter:bash openrouter:shell openrouter:code_interpreter code_execution_call")
}

// otherItem judges an item that not all vendors of this form have.
func (r *request) otherItem(kind string, v wire.Value) bool {
	if members := ownItem(r.kit, kind); members != "" {
		r.own(kind, members, v)
		return true
	}
	r.spelled(v)
	return r.unknown(kind)(v)
}

// own judges an item of a vendor's own by what may stand in it. Code may go on, files are
// stored, and pictures are looked at again; nothing else is more than what was said.
func (r *request) own(kind, members string, v wire.Value) {
	r.knownOnly(v, "type id status call_id error "+members)
	for key, member := range v.Members() {
		switch name, _ := key.Str(); {
		case name == "file_id":
			r.stored(member)
		case name == "imageUrl":
			r.address(member)
		case name == "reasoning":
			r.sniff(member)
		case isListed(name, "imageB64 screenshotB64") || name == "result" && kind == "openrouter:image_generation":
			r.fileData(member)
		case isListed(name, members):
			r.opaque(member)
		}
	}
	if !isRun(kind) {
		return
	}
	if code, why := r.needs(codeExecution); why != "" {
		r.deny(http.StatusForbidden, code, kind+": "+why)
	}
}
