package mapping

import (
	"slices"
	"strings"
	"unicode"

	"capgate/capability"
	"capgate/wire"
)

// headers are HTTP headers that a call may set: those of a list.
type headers struct {
	names []string // in lower case
}

func (h headers) read(_ *reading, at place) error {
	if at.value.Kind() != wire.Object {
		return at.wrong("an object of headers")
	}
	if at.value.Len() > most {
		return tooMany(at.name, "headers")
	}
	for key, value := range at.value.Members() {
		name, _ := key.Str()
		text, ok := value.Str()
		here := inside(at.name, printable(name))
		switch {
		case !isHeader(name) || !slices.Contains(h.names, strings.ToLower(name)):
			return refuse(capability.ScopeViolation, here, "is a header that the tool may not be given")
		case !ok:
			return malformed(here, "is %s, where text belongs", kindOf(value))
		case strings.ContainsFunc(text, unicode.IsControl):
			return malformed(here, "holds line breaks or other control characters")
		}
	}
	return nil
}

func (headers) verbs() []capability.Verb { return nil }
func (headers) derives() bool            { return false }

// isHeader reports whether a text is the plain name of a header. An underscore is
// none of it: many servers take it for a dash.
func isHeader(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"
	return name != "" && strings.Trim(name, letters) == ""
}

// fixedHeader reports whether no mapping may pass a header on: one that chooses
// the host that is reached, carries credentials, frames the message, or makes the
// request another one than was decided on.
func fixedHeader(name string) bool {
	switch name = strings.ToLower(name); name {
	case "host", "authorization", "authentication", "cookie", "cookie2", "set-cookie",
		"connection", "keep-alive", "upgrade", "expect", "te", "trailer", "transfer-encoding",
		"content-length", "content-encoding", "via", "forwarded", "http2-settings", "alt-used",
		"x-http-method", "x-method-override", "x-original-url", "x-rewrite-url", "x-original-method",
		"x-real-ip", "x-client-ip", "true-client-ip", "client-ip", "metadata", "metadata-flavor":
		return true
	}
	for _, prefix := range []string{"proxy-", "sec-", "x-forwarded", "x-http-method-", "x-aws-", "x-google-metadata", "cf-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	for _, part := range []string{"auth", "token", "api-key", "apikey", "secret", "password", "credential", "cookie", "session", "csrf"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}
