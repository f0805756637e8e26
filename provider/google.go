package provider

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"capgate/capability"
	"capgate/wire"
)

// google judges a request in the form of Google, whose members have two spellings
// each: camelCase and snake_case.
func (r *request) google(root wire.Value) {
	r.inOrder(root, r.googleMember, "tools", "systemInstruction", "system_instruction") // which answer no call in the contents
	r.predicted()
}

// predicted refuses what would go on with a tool that is not offered: its call stands
// there without an answer, as the model predicts one, or as an agent makes it up.
func (r *request) predicted() {
	offered := map[string]bool{} // a tool may stand there often
	for _, ref := range r.kept {
		offered[fold(ref.kind)] = true
	}
	tools := slices.Collect(maps.Keys(offered))
	for _, p := range inOrderOf(r.waiting) {
		kind := fold(p.tool) // such as GOOGLE_SEARCH_WEB, of googleSearch
		if !slices.ContainsFunc(tools, func(tool string) bool { return strings.HasPrefix(kind, tool) }) {
			r.deny(http.StatusForbidden, capability.ScopeViolation, "the contents stand in the middle of "+clip(p.tool)+", which is left out: begin another turn")
			return
		}
	}
}

// calls judges the call of a tool of the provider, or the answer to one, and keeps in
// mind which of them wait.
func (r *request) calls(v wire.Value, waits bool) bool {
	r.opaqueIn(v, "args response")
	if says(v, "toolType") && says(v, "tool_type") {
		r.refuse("the type of a tool stands in both spellings")
	}
	for _, name := range []string{"id", "toolType", "tool_type"} {
		if member, _ := v.Get(name); says(v, name) && member.Kind() != wire.String {
			r.refuse(name + " should be text")
		}
	}
	p := pending{textOf(v, "id"), cmp.Or(textOf(v, "toolType"), textOf(v, "tool_type"))}
	if !waits {
		delete(r.waiting, p)
		return true
	}
	if r.waiting == nil {
		r.waiting = map[pending]bool{}
	}
	if r.waiting[p] {
		r.refuse(twoCalls)
	}
	r.waiting[p] = true
	return true
}

func (r *request) googleMember(name string) rule {
	switch fold(name) {
	case "safetysettings", "store", "servicetier":
		return keep
	case "labels":
		return r.opaque
	case "generationconfig":
		return r.generation
	case "model":
		return r.modelMember
	case "contents":
		return r.contents
	case "systeminstruction":
		return r.content
	case "tools":
		return r.tools
	case "toolconfig":
		return r.toolConfig
	case "generatecontentrequest":
		if r.form == formCount {
			return func(v wire.Value) bool {
				r.form = formGenerate // it does not nest any further
				r.google(v)
				return true
			}
		}
	case "cachedcontent", "continuationtoken":
		return r.refusedUnlessNull("what the provider keeps cannot be judged: send the contents")
	}
	return nil
}

// embedPartsMember is the table of requests for embeddings, one or several at once.
func (r *request) embedPartsMember(name string) rule {
	switch fold(name) {
	case "tasktype", "outputdimensionality":
		return keep
	case "title":
		return r.text
	case "model":
		return r.modelMember
	case "content":
		return r.content
	case "requests":
		return func(v wire.Value) bool {
			return r.elements(v, func(v wire.Value) bool {
				return r.members(v, func(name string) rule {
					if fold(name) == "requests" { // it does not nest
						return nil
					}
					return r.embedPartsMember(name)
				})
			})
		}
	}
	return nil
}

// generation judges the settings of an answer: schemas are not looked at, the rest
// may name models and places.
func (r *request) generation(v wire.Value) bool {
	if v.Kind() == wire.Null {
		return true
	}
	r.members(v, func(name string) rule {
		switch fold(name) {
		case "responseschema", "responsejsonschema":
			return r.opaque
		case "stopsequences":
			return keep
		case "enableenhancedcivicanswers":
			return r.civic
		}
		return func(v wire.Value) bool {
			if fold(name) == "speechconfig" && v.Kind() == wire.String {
				r.speaker(v)
			}
			r.inputs(v)
			return true
		}
	})
	return true
}

// civic judges a switch of which nobody says where its answers are from: it may have the
// web searched.
func (r *request) civic(v wire.Value) bool {
	if on, ok := v.Bool(); v.Kind() == wire.Null || ok && !on {
		return true
	}
	code, why := r.reads(webSearch)
	if why != "" {
		r.note(Change{Tool: "enableEnhancedCivicAnswers", Did: Omitted, Code: code, Why: "it may search the web: " + why})
	}
	return why == ""
}

// speaker judges the name of a voice. One that the provider keeps for whoever has the key
// is called voice_abc, those that everybody may use by a plain name.
func (r *request) speaker(v wire.Value) {
	if name, _ := v.Str(); strings.ContainsAny(name, "_/") && !strings.HasPrefix(name, "voicekey_") {
		r.stored(v)
	}
}

func (r *request) contents(v wire.Value) bool {
	if v.Kind() == wire.Array {
		r.elements(v, r.content)
		return true
	}
	return r.content(v)
}

// content judges one turn.
func (r *request) content(v wire.Value) bool {
	if v.Kind() == wire.Null {
		return true
	}
	r.members(v, func(name string) rule {
		switch fold(name) {
		case "role":
			return keep
		case "parts":
			return func(v wire.Value) bool {
				if v.Kind() != wire.Array {
					return r.googlePart(v)
				}
				r.elements(v, r.googlePart)
				return true
			}
		}
		return nil
	})
	return true
}

func (r *request) googlePart(v wire.Value) bool {
	r.members(v, func(name string) rule {
		switch fold(name) {
		case "text", "functioncall", "executablecode", "codeexecutionresult":
			return r.opaque
		case "toolcall", "toolresponse":
			return func(v wire.Value) bool { return r.calls(v, fold(name) == "toolcall") }
		case "thought", "thoughtsignature", "videometadata", "mediaresolution", "partmetadata", "speechmetadata",
			"audiotranscription":
			return keep
		case "mediaprocessing":
			return r.sniffed
		case "inlinedata":
			return r.googleBytes
		case "filedata":
			return r.googleFile
		case "functionresponse":
			return r.functionResponse
		}
		return nil
	})
	return true
}

// googleBytes judges a file that stands in the request itself.
func (r *request) googleBytes(v wire.Value) bool {
	r.members(v, func(name string) rule {
		switch fold(name) {
		case "mimetype", "displayname", "data":
			return keep
		}
		return nil
	})
	return true
}

// googleFile judges a file that is named by its address: one of Google's own
// stores, or one that Google would fetch.
func (r *request) googleFile(v wire.Value) bool {
	r.members(v, func(name string) rule {
		switch fold(name) {
		case "mimetype", "displayname":
			return keep
		case "fileuri":
			return func(v wire.Value) bool {
				text, _ := v.Str()
				at, err := url.Parse(strings.TrimSpace(text))
				if err == nil && isStore(at) {
					r.stored(v)
				}
				if err == nil && isStoreOnly(at) {
					return true
				}
				return r.address(v)
			}
		}
		return nil
	})
	return true
}

// isStore reports whether an address could be of a file that Google keeps for
// whoever has the key, however it is written.
func isStore(at *url.URL) bool {
	return strings.HasPrefix(at.Path, "files/") || strings.HasPrefix(strings.ToLower(at.Hostname()), "generativelanguage.")
}

// isStoreOnly reports whether it is of nothing else, so that nobody is asked for it.
func isStoreOnly(at *url.URL) bool {
	if at.Host == "" {
		return at.Scheme == "" && strings.HasPrefix(at.Path, "files/")
	}
	return at.Scheme == "https" && at.User == nil && strings.EqualFold(at.Host, "generativelanguage.googleapis.com")
}

func (r *request) functionResponse(v wire.Value) bool {
	r.members(v, func(name string) rule {
		switch fold(name) {
		case "id", "name", "scheduling", "willcontinue":
			return keep
		case "response":
			return r.opaque
		case "parts":
			return func(v wire.Value) bool {
				r.elements(v, r.googlePart)
				return true
			}
		}
		return nil
	})
	return true
}

// googleTools judges an object whose members are tools.
func (r *request) googleTools(v wire.Value) bool {
	return r.members(v, func(name string) rule {
		return func(tool wire.Value) bool { return r.googleTool(name, tool) }
	})
}

func (r *request) googleTool(name string, v wire.Value) bool {
	if r.full() {
		return true
	}
	var code capability.Code
	var why string
	switch fold(name) {
	case "functiondeclarations":
		r.functions(v)
	case "googlesearch", "googlesearchretrieval", "enterprisewebsearch", "parallelaisearch", "exaaisearch":
		code, why = r.reads(webSearch)
	case "urlcontext":
		code, why = r.reads(webFetch)
	case "codeexecution":
		code, why = r.needs(codeExecution)
	case "googlemaps":
		code, why = r.needs("google_maps")
	case "filesearch":
		code, why = r.needs("file_search")
	case "computeruse":
		code, why = r.needs("computer_use")
	case "mcpservers":
		code, why = capability.ScopeViolation, foreign
	default:
		code, why = capability.NotAvailable, "a tool of this name is not known here"
	}
	if why != "" {
		r.gone = append(r.gone, reference{kind: name})
		r.note(Change{Tool: clip(name), Did: Omitted, Code: code, Why: why})
		return false
	}
	if fold(name) != "functiondeclarations" {
		r.inputs(v)
	}
	r.kept = append(r.kept, reference{kind: name})
	return true
}

// functions judges a list of functions that have no type, or a single one, which some
// take for a list.
func (r *request) functions(v wire.Value) {
	switch v.Kind() {
	case wire.Null:
	case wire.Object:
		r.function(v)
	default:
		r.elements(v, r.function)
	}
}

// function refuses a function that another gateway may take for a tool, by its name or
// by what it has besides.
func (r *request) function(v wire.Value) bool {
	if v.Kind() != wire.Object {
		r.refuse("a function should be an object")
		return true
	}
	r.knownOnly(v, "name description parameters parametersJsonSchema parameters_json_schema "+
		"response responseJsonSchema response_json_schema behavior strict")
	r.opaqueIn(v, ofFunction)
	if _, why := r.judgeNames(v, tool{use: local}); why != "" {
		r.forbid(clip(textOf(v, "name")) + ": " + why)
	}
	return true
}

// toolConfig goes with the tools.
func (r *request) toolConfig(v wire.Value) bool {
	if len(r.gone) > 0 && len(r.kept) == 0 {
		return r.unchosen("no tool stays")
	}
	return r.sniffed(v)
}
