package proxy

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"capgate/agents"
)

const (
	maxFields     = 100     // header lines of a request to a provider
	maxFieldValue = 8 << 10 // bytes of one that goes up
)

// Headers that show who asks, by whichever name a vendor's client has for it. All
// of them are taken to be the agent's token, and none goes up.
func shows() []string { return []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key"} }

// goesUp reports whether a header of an agent is passed on to a provider. One that
// names an account, another request, or where something comes from, is not: the
// account is the gateway's, and its other agents' too.
func goesUp(name string) bool {
	switch name {
	case "Accept", "User-Agent", "Anthropic-Version", "Anthropic-Beta", "Openai-Beta",
		"X-App", "X-Goog-Api-Client", "X-Title", "X-Client-Request-Id":
		return true
	}
	return strings.HasPrefix(name, "X-Stainless-")
}

// comesDown reports whether a header of a provider is passed on to an agent. None
// that sets a cookie, leads elsewhere or tells whose account it is.
func comesDown(name string) bool {
	switch name {
	case "Content-Type", "Cache-Control", "Date", "Request-Id", "X-Request-Id", "Retry-After", "Retry-After-Ms",
		"X-Should-Retry", "Openai-Model", "Openai-Processing-Ms", "Openai-Version":
		return true
	}
	return strings.HasPrefix(name, "Anthropic-Ratelimit-") || strings.HasPrefix(name, "X-Ratelimit-")
}

// isEncoded reports whether a body is not what it looks like until it is decoded.
func isEncoded(h http.Header) bool {
	encoding := h.Values("Content-Encoding")
	return len(encoding) > 1 || len(encoding) == 1 && !strings.EqualFold(encoding[0], "identity")
}

// obstacle says what about the headers of a request makes its body, or where it
// goes, other than it looks.
func obstacle(r *http.Request) (status int, why string) {
	fields := 0
	for _, list := range r.Header {
		fields += len(list)
	}
	switch {
	case fields > maxFields:
		return http.StatusRequestHeaderFieldsTooLarge, "the request has too many headers"
	case slices.ContainsFunc(r.Header["Upgrade"], func(to string) bool { return strings.Contains(strings.ToLower(to), "websocket") }):
		return http.StatusUpgradeRequired, "no WebSocket is spoken here: turn WebSockets off in the client" // by this status Codex asks again without
	case isEncoded(r.Header):
		return http.StatusUnsupportedMediaType, "the body must not be compressed"
	case len(r.Trailer) > 0:
		return http.StatusBadRequest, "headers behind the body are not read"
	}
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Http-Method") || name == "X-Method-Override" || name == "X-Original-Url" || name == "X-Rewrite-Url" {
			return http.StatusBadRequest, "the header " + name + " would have the request read as another one"
		}
	}
	for _, name := range []string{"Content-Type", "Anthropic-Version"} {
		if len(r.Header[name]) > 1 {
			return http.StatusBadRequest, "the header " + name + " stands there more than once"
		}
	}
	return 0, ""
}

// shown finds the one token that a request shows, and what is left of its query
// without it. Two that differ are one too many: the other one would be a key that
// the agent has no use for here.
func shown(r *http.Request) (token, query, why string) {
	var all []string
	for _, name := range shows() {
		for _, value := range r.Header[name] {
			if name == "Authorization" {
				scheme, token, _ := strings.Cut(value, " ")
				if !strings.EqualFold(scheme, "Bearer") {
					return "", "", "the header Authorization takes a bearer token"
				}
				value = token
			}
			all = append(all, strings.TrimSpace(value))
		}
	}
	inQuery, query, ok := cutKeys(r.URL.RawQuery)
	if !ok {
		return "", "", "the query cannot be read"
	}
	all = slices.Compact(append(all, inQuery...))
	switch {
	case len(all) == 0 || all[0] == "":
		return "", query, "the request shows no token of an agent: set the API key of the client to one that capgate agents token issue has printed"
	case len(all) > 1:
		return "", query, "the request shows two different keys: keep the agent's token, and remove every key of the provider from the agent's environment"
	}
	return all[0], query, ""
}

// cutKeys takes the parameters named key out of a query, and leaves the others as
// they are written.
func cutKeys(raw string) (keys []string, rest string, ok bool) {
	if raw == "" {
		return nil, "", true
	}
	if _, err := url.ParseQuery(raw); err != nil {
		return nil, "", false
	}
	var kept []string
	for part := range strings.SplitSeq(raw, "&") {
		name, value, _ := strings.Cut(part, "=")
		if name, err := url.QueryUnescape(name); err != nil || name != "key" {
			kept = append(kept, part)
			continue
		}
		value, err := url.QueryUnescape(value)
		if err != nil {
			return nil, "", false
		}
		keys = append(keys, value)
	}
	return keys, strings.Join(kept, "&"), true
}

// upward makes the headers of a request to a provider.
func upward(from http.Header) (http.Header, string) {
	h := http.Header{"Accept-Encoding": {"identity"}, "User-Agent": {"capgate"}}
	for name, list := range from {
		if !goesUp(name) {
			continue
		}
		for _, value := range list {
			if len(value) > maxFieldValue || strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' }) {
				return nil, "the header " + name + " is too long, or holds what is no visible ASCII"
			}
		}
		h[name] = slices.Clone(list)
	}
	if slices.ContainsFunc(h["Accept"], unreadable) {
		delete(h, "Accept")
	}
	return h, ""
}

// unreadable reports whether an Accept asks for an answer in another form than the
// vendor's own, that would not be watched: some give protocol buffers to who wants them.
func unreadable(accept string) bool {
	for form := range strings.SplitSeq(accept, ",") {
		form, _, _ = strings.Cut(form, ";")
		switch strings.ToLower(strings.TrimSpace(form)) {
		case "*/*", "application/*", "application/json", "text/event-stream":
		default:
			return true
		}
	}
	return false
}

// toolsHeader tells an agent's client what became of the provider tools in its
// request.
const (
	toolsHeader = "X-Capgate-Provider-Tools"
	maxToolList = 1 << 10 // bytes of it
)

// plain makes a name that an agent chose fit for a header.
func plain(name string) string {
	const longest = 64
	clean := strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || c == '.' || c == ':' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			return c
		}
		return '_'
	}, agents.WithoutTokens(name))
	return clean[:min(len(clean), longest)]
}
