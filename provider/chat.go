package provider

import (
	"net/http"
	"strings"

	"capgate/capability"
	"capgate/wire"
)

// chat judges a request in the form of chat completions.
func (r *request) chat(root wire.Value) {
	r.resume(root)
	r.unnamed(root)
	r.inOrder(root, r.chatMember, "tools", "messages")
	if r.kit == perplexityKit {
		r.sonar(root)
	}
}

func (r *request) chatMember(name string) rule {
	switch name {
	case "prediction", "response_format":
		return r.opaque
	case "metadata":
		return r.metadata
	case "audio":
		return r.voice
	case "frequency_penalty", "function_call", "logit_bias", "logprobs", "max_completion_tokens",
		"max_tokens", "modalities", "n", "presence_penalty", "prompt_cache_key",
		"prompt_cache_retention", "reasoning_effort", "safety_identifier", "seed", "service_tier",
		"stop", "store", "stream", "stream_options", "temperature", "top_logprobs", "top_p", "user", "verbosity":
		return keep
	case "moderation", "prompt_cache_options":
		return r.sniffed
	case "model":
		return r.modelMember
	case "messages":
		return func(v wire.Value) bool { return r.elements(v, r.chatMessage) || true }
	case "tools":
		return r.tools
	case "functions":
		return func(v wire.Value) bool {
			r.functions(v)
			return true
		}
	case "tool_choice":
		return r.choice
	case "parallel_tool_calls":
		return r.parallel
	case "web_search_options":
		return r.searchOptions
	}
	return r.extra(name)
}

// extra is the table of what single vendors add to a request.
func (r *request) extra(name string) rule {
	switch r.kit {
	case routerKit:
		return r.routerMember(name)
	case perplexityKit:
		return perplexityMember(name)
	case geminiKit:
		if name == "extra_body" {
			return r.ofGoogle(r.thinking)
		}
	case mistralKit:
		switch name {
		case "random_seed", "safe_prompt", "prompt_mode", "document_image_limit", "document_page_limit":
			return keep
		case "guardrails":
			return r.looked
		}
	case xaiKit:
		switch name {
		case "search_parameters":
			return r.searchParameters
		case "deferred":
			return r.refusedIfTrue("a response is read as it is made, not later")
		case "reasoning":
			return r.sniffed
		case "logprobs", "max_turns", "min_p", "seed", "top_k":
			return keep
		}
	}
	return nil
}

func (r *request) chatMessage(v wire.Value) bool {
	answer := textOf(v, "role") == "assistant"
	r.members(v, func(name string) rule {
		switch name {
		case "tool_calls", "function_call", "refusal", "reasoning", "reasoning_content", "reasoning_details":
			return r.opaque
		case "role", "name", "tool_call_id", "prefix", "cache_control":
			return keep
		case "audio":
			return r.spoken
		case "content":
			return func(wire.Value) bool {
				r.partsOf(v, "content")
				return true
			}
		case "annotations":
			return r.annotations
		case "parsed": // beside content, which OpenAI's SDK has read it from: no vendor has a use for it
			if answer {
				return r.opaque
			}
		case "extra_content":
			if answer && r.kit == geminiKit {
				return r.ofGoogle(r.thought)
			}
		case "images": // of an answer
			if r.kit == routerKit {
				return func(wire.Value) bool {
					r.partsOf(v, "images")
					return true
				}
			}
		}
		return nil
	})
	return true
}

// ofGoogle judges what Gemini has beside the form of OpenAI, all of it in one member.
func (r *request) ofGoogle(rules func(name string) rule) rule {
	return func(v wire.Value) bool {
		return r.members(v, func(name string) rule {
			if name != "google" {
				return nil
			}
			return func(v wire.Value) bool { return r.members(v, rules) }
		})
	}
}

// thought is the table of what Gemini says of its answer.
func (r *request) thought(name string) rule {
	if isListed(name, "thought thought_signature") {
		return r.single
	}
	return nil
}

// thinking is the table of what Gemini is told beside the form of OpenAI.
func (r *request) thinking(name string) rule {
	switch name {
	case "thinking_config":
		return func(v wire.Value) bool {
			return r.members(v, func(name string) rule {
				if isListed(name, "include_thoughts thinking_budget thinking_level") {
					return r.single
				}
				return nil
			})
		}
	case "cached_content":
		return r.refusedUnlessNull("what the provider keeps cannot be judged: send the messages")
	}
	return nil
}

// single is the rule of what holds nothing else: a word, a number, a switch.
func (r *request) single(v wire.Value) bool {
	if v.Kind() == wire.Object || v.Kind() == wire.Array {
		r.refuse("a value should hold no others: " + clip(string(v.Raw())))
	}
	return r.sniffed(v)
}

// spoken judges what a model has said: its provider keeps it, and finds it by its id.
func (r *request) spoken(v wire.Value) bool {
	r.spelled(v)
	if v.Kind() != wire.Object {
		return r.stored(v)
	}
	id, ok := v.Get("id")
	return !ok || r.stored(id)
}

// voice judges how the model is to speak: like itself, or as somebody whose voice is stored.
func (r *request) voice(v wire.Value) bool {
	r.spelled(v)
	if v.Kind() != wire.Object {
		return r.stored(v)
	}
	voice, ok := v.Get("voice")
	return !ok || voice.Kind() == wire.String || r.stored(voice)
}

// annotations judges what stands beside an answer: the pages that it cites, which
// nobody reads again, and files that were read, in whose place pictures stand.
func (r *request) annotations(v wire.Value) bool {
	if v.Kind() == wire.Null {
		return true
	}
	r.elements(v, func(v wire.Value) bool {
		if textOf(v, "type") != "url_citation" {
			r.inputs(v)
		}
		return true
	})
	return true
}

// searchOptions judges the switch for a search that takes no list of domains.
func (r *request) searchOptions(v wire.Value) bool {
	if v.Kind() == wire.Null {
		return true
	}
	if r.kit == perplexityKit { // which always searches: these are its settings
		return r.members(v, func(name string) rule {
			switch name {
			case "search_context_size", "user_location":
				return keep
			case "search_type":
				return r.searchType
			}
			return nil
		}) || true
	}
	code, why := r.reads(webSearch)
	if why != "" {
		r.note(Change{Tool: "web_search_options", Did: Omitted, Code: code, Why: why})
	}
	return why == ""
}

// searchType judges how Perplexity searches: but for the fast way, it may fetch pages by
// their address and run code.
func (r *request) searchType(v wire.Value) bool {
	if v.Kind() == wire.Null || v.Equal("fast") {
		return true
	}
	code, why := r.needs(codeExecution)
	if why == "" {
		code, why = r.reads(webFetch)
	}
	if why != "" {
		r.deny(http.StatusForbidden, code, "a search of this type fetches pages and runs code: "+why)
	}
	return true
}

// searchParameters leaves out a search that its vendor no longer documents.
func (r *request) searchParameters(v wire.Value) bool {
	if v.Kind() == wire.Null {
		return true
	}
	r.note(Change{Tool: "search_parameters", Did: Omitted, Code: capability.NotAvailable, Why: "it is deprecated: use the tool web_search"})
	return false
}

// model judges the name of a model, as some always search the web.
func (r *request) modelMember(v wire.Value) bool {
	name, ok := v.Str()
	if !ok {
		r.refuse("model should be text")
		return true
	}
	r.model(name)
	return r.placeless(v)
}

// unnamed judges a request that names no model. OpenRouter takes that of its account then.
func (r *request) unnamed(root wire.Value) {
	others, _ := root.Get("models")
	if _, ok := root.Get("model"); !ok && others.Len() == 0 {
		r.model("")
	}
}

func (r *request) model(name string) {
	name = strings.ToLower(strings.TrimSpace(name))
	switch {
	case r.kit == routerKit && name == "":
		if code, why := r.reads(webSearch); why != "" {
			r.deny(http.StatusForbidden, code, "it names no model, and that of the account may search the web: "+why)
		}
	case strings.Contains(name, "@preset") || strings.HasPrefix(name, "@") || r.kit == mistralKit && isAgent(name):
		r.forbid("a preset that the provider keeps cannot be judged: name the model")
	case r.policy.Relayed && strings.Contains(name, "compound"): // of Groq, which runs code as well
		code, why := r.needs(codeExecution)
		if why == "" {
			code, why = r.reads(webSearch)
		}
		if why != "" {
			r.deny(http.StatusForbidden, code, "this model runs tools by itself: "+why)
		}
	case r.searching(name):
		if code, why := r.reads(webSearch); why != "" {
			r.deny(http.StatusForbidden, code, "this model searches the web: "+why)
		}
	}
}

// isAgent reports whether the name of a model is the id of an agent that Mistral keeps, old or new.
func isAgent(name string) bool {
	return strings.HasPrefix(name, "ag:") || strings.HasPrefix(name, "ag_")
}

// searching reports whether a model of this name searches the web. Perplexity's do so in any case.
func (r *request) searching(name string) bool {
	return r.kit != perplexityKit && (searches(name) || r.policy.Relayed && asksFor(name))
}

// asksFor reports whether the name of a model says to another gateway that it is to read the
// web, as in "model:enable_web_search=on" or "model-search".
func asksFor(name string) bool {
	name = strings.ReplaceAll(name, "research", "")
	return strings.Contains(name, "search") || strings.Contains(name, "online") || strings.Contains(name, "web_")
}

// searches reports whether a model searches the web by itself. One that chooses
// another model may choose such a one.
func searches(name string) bool {
	for _, part := range []string{"search-preview", "search-api", "deep-research", "sonar", ":online", "openrouter/", "/router"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

func (r *request) routerMember(name string) rule {
	switch name {
	case "min_p", "top_k", "top_a", "repetition_penalty", "route", "transforms", "usage", "include_reasoning",
		"session_id", "trace", "debug", "cache_control", "structured_outputs", "frequency_penalty", "presence_penalty", "modalities":
		return keep
	case "provider", "reasoning", "stop_server_tools_when":
		return r.sniffed
	case "image_config":
		return r.looked
	case "models":
		return func(v wire.Value) bool { return v.Kind() == wire.Null || r.elements(v, r.modelMember) }
	case "plugins":
		return func(v wire.Value) bool { return v.Kind() == wire.Null || r.elements(v, r.plugin) }
	}
	return nil
}

// plugin judges what OpenRouter does before and after the model.
func (r *request) plugin(v wire.Value) bool {
	id := textOf(v, "id")
	var code capability.Code
	var why string
	switch id {
	case "web":
		code, why = r.scoped(v, scope{
			verb: webSearch, allowed: "include_domains", blocked: "exclude_domains", engines: "exa firecrawl parallel perplexity", wide: "x_search",
			members: "id enabled engine include_domains exclude_domains max_results max_uses mode search_prompt user_location x_search",
		}, id)
	case "web-fetch":
		code, why = r.scoped(v, scope{
			verb: webFetch, allowed: "allowed_domains", blocked: "blocked_domains",
			members: "id allowed_domains blocked_domains max_content_tokens max_uses",
		}, id)
	case "file-parser", "response-healing", "context-compression", "moderation":
		r.sniff(v)
	default:
		code, why = capability.NotAvailable, "a plugin of this name is not known here"
	}
	if why != "" {
		r.note(Change{Tool: "plugin " + clip(id), Did: Omitted, Code: code, Why: why})
	}
	return why == ""
}

func perplexityMember(name string) rule {
	switch name {
	case "country", "disable_search", "enable_search_classifier", "image_domain_filter", "image_format_filter", "language_preference",
		"last_updated_after_filter", "last_updated_before_filter", "media_response", "num_images", "num_search_results", "return_images", "safe_search",
		"return_related_questions", "search_after_date_filter", "search_before_date_filter", "search_domain_filter",
		"search_language_filter", "search_mode", "search_recency_filter", "stream_mode", "top_k":
		return keep
	}
	return nil
}

// sonar gives a search that is part of the model the domains that are held. Where
// none is left the request cannot go up.
func (r *request) sonar(root wire.Value) {
	researches := strings.Contains(strings.ToLower(textOf(root, "model")), "deep-research") // which is to search
	switch off, _ := root.Get("disable_search"); {
	case string(off.Raw()) == "true" && !researches:
		r.restrict(root, root, scope{wide: "enable_search_classifier return_images media_response"}, "search")
		return
	case r.policy.waits(webSearch):
		r.deny(http.StatusForbidden, capability.RequiresApproval, unapproved+webSearch)
		return
	case r.web().all:
		r.rests(get, "*")
		return
	}
	const most = 20
	filter, _ := root.Get("search_domain_filter")
	texts, ok := textsOf(filter)
	if !ok && filter.Kind() != wire.Invalid && filter.Kind() != wire.Null {
		r.refuse("search_domain_filter should be a list of names")
		return
	}
	var wants asked
	for _, text := range texts {
		if blocked, no := strings.CutPrefix(text, "-"); no {
			wants.blocked = append(wants.blocked, blocked)
		} else {
			wants.allowed, wants.limited = append(wants.allowed, text), true
		}
	}
	got := r.web().meet(wants, list{most: most})
	if len(got.names) == 0 {
		code := capability.ScopeViolation
		if len(r.web().held) == 0 {
			code = r.absent()
		}
		r.deny(http.StatusForbidden, code, "this provider always searches the web: hold net.get for what it may read, or send disable_search"+because(got.notes))
		return
	}
	r.rests(get, got.names...)
	r.restrict(root, root, scope{wide: "return_images search_mode media_response"}, "search")
	if !same(filter, got.names) && r.set(root, "search_domain_filter", appendList(nil, got.names)) {
		r.note(Change{Tool: "search", Did: Narrowed, Code: capability.ScopeViolation, Why: "it reaches no more than net.get" + because(got.notes), Hosts: got.names})
	}
	r.wider("search", got)
}
