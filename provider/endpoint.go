package provider

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"capgate/capability"
)

// Endpoint is a place of a vendor's API that agents may use. Its zero value is
// none.
type Endpoint struct {
	Method string
	Path   string // as it goes up
	Query  string // as it goes up
	Body   bool   // whether the request has one, that has to be rewritten

	form form
}

// form is how the body of a request is written.
type form uint8

const (
	formNone        form = iota
	formMessages         // Anthropic
	formResponses        // OpenAI
	formInputTokens      // OpenAI: the same, of which nothing is answered
	formChat             // OpenAI, and many others
	formGenerate         // Google
	formCount            // Google: the same within another object
	formEmbed            // texts only
	formEmbedParts       // Google: content, and nothing that runs
)

// route is an endpoint of the list. A star in a path stands for the name of one
// model.
type route struct {
	method, path string
	form         form
	query        string // the names that may stand in the query, with spaces between
}

func anthropicRoutes() []route {
	return []route{
		{"POST", "/v1/messages", formMessages, "beta"},
		{"POST", "/v1/messages/count_tokens", formMessages, "beta"},
		{"GET", "/v1/models", formNone, "limit after_id before_id beta"},
		{"GET", "/v1/models/*", formNone, "beta"},
		{"HEAD", "/api/hello", formNone, ""},
	}
}

func openRoutes() []route {
	return []route{
		{"POST", "/v1/responses", formResponses, ""},
		{"POST", "/v1/responses/input_tokens", formInputTokens, ""},
		{"POST", "/v1/chat/completions", formChat, ""},
		{"POST", "/v1/embeddings", formEmbed, ""},
		{"GET", "/v1/models", formNone, ""},
		{"GET", "/v1/models/*", formNone, ""},
	}
}

func geminiRoutes() []route {
	return []route{
		{"POST", "/v1beta/models/*:generateContent", formGenerate, ""},
		{"POST", "/v1beta/models/*:streamGenerateContent", formGenerate, "alt"},
		{"POST", "/v1beta/models/*:countTokens", formCount, ""},
		{"POST", "/v1beta/models/*:embedContent", formEmbedParts, ""},
		{"POST", "/v1beta/models/*:batchEmbedContents", formEmbedParts, ""}, // answered at once, as it is asked
		{"POST", "/v1beta/openai/chat/completions", formChat, ""},
		{"POST", "/v1beta/openai/embeddings", formEmbed, ""},
		{"GET", "/v1beta/models", formNone, "pageSize pageToken"},
		{"GET", "/v1beta/models/*", formNone, ""},
		{"GET", "/v1beta/openai/models", formNone, ""},
		{"GET", "/v1beta/openai/models/*", formNone, ""},

		// The vendor's SDK has come to ask for the stable version.
		{"POST", "/v1/models/*:generateContent", formGenerate, ""},
		{"POST", "/v1/models/*:streamGenerateContent", formGenerate, "alt"},
		{"POST", "/v1/models/*:countTokens", formCount, ""},
		{"POST", "/v1/models/*:embedContent", formEmbedParts, ""},
		{"POST", "/v1/models/*:batchEmbedContents", formEmbedParts, ""},
		{"GET", "/v1/models", formNone, "pageSize pageToken"},
		{"GET", "/v1/models/*", formNone, ""},
	}
}

func routerRoutes() []route {
	return []route{
		{"POST", "/v1/chat/completions", formChat, ""},
		{"POST", "/v1/responses", formResponses, ""},
		{"GET", "/v1/models", formNone, ""},
	}
}

func xaiRoutes() []route {
	return []route{
		{"POST", "/v1/responses", formResponses, ""},
		{"POST", "/v1/chat/completions", formChat, ""},
		{"GET", "/v1/models", formNone, ""},
		{"GET", "/v1/models/*", formNone, ""},
	}
}

func perplexityRoutes() []route {
	return []route{{"POST", "/chat/completions", formChat, ""}}
}

func mistralRoutes() []route {
	return []route{
		{"POST", "/v1/chat/completions", formChat, ""},
		{"POST", "/v1/embeddings", formEmbed, ""},
		{"GET", "/v1/models", formNone, ""},
		{"GET", "/v1/models/*", formNone, ""},
	}
}

// Endpoint finds a request on the list of what agents may use, by its exact path
// without any decoding. Whatever is not on it is refused: batches and files, in
// which requests hide, realtime, stored prompts and conversations, and what the
// next version brings. The error is a [*Refused].
func (v Vendor) Endpoint(method, path, query string) (Endpoint, error) {
	for _, r := range v.routes {
		if !r.serves(method) || !r.matches(path) {
			continue
		}
		if name := r.strange(query); name != "" {
			return Endpoint{}, &Refused{Status: http.StatusForbidden, Code: capability.Forbidden, Why: fmt.Sprintf("%s does not take %s as it stands in the query", path, name)}
		}
		return Endpoint{method, path, query, r.form != formNone, r.form}, nil
	}
	why := "this endpoint of " + v.Name + " is not open to agents"
	if slices.ContainsFunc(v.routes, func(r route) bool { return r.serves(method) && r.matches("/v1"+path) }) {
		why += ": the address that the client is given must end in /v1"
	}
	return Endpoint{}, &Refused{Status: http.StatusForbidden, Code: capability.Forbidden, Why: why}
}

func (r route) serves(method string) bool {
	return method == r.method || method == http.MethodHead && r.method == http.MethodGet
}

func (r route) matches(path string) bool {
	before, after, ok := strings.Cut(r.path, "*")
	if !ok {
		return path == r.path
	}
	model, begins := strings.CutPrefix(path, before)
	model, ends := strings.CutSuffix(model, after)
	return begins && ends && isModel(model, after == "")
}

// isModel reports whether a part of a path is the plain name of a model. One that OpenAI has
// tuned has colons in it, where nothing stands behind.
func isModel(name string, last bool) bool {
	if tuned, ok := strings.CutPrefix(name, "ft:"); ok && last {
		name = strings.ReplaceAll(tuned, ":", "")
	}
	return name != "" && name[0] != '.' && strings.Trim(name, plain) == ""
}

const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

// strange returns the first name in a query that has no business there, in quotes:
// unknown, twice, not written plainly, or with a value that has none. It is "" for none.
func (r route) strange(query string) string {
	if query == "" {
		return ""
	}
	known, seen := strings.Fields(r.query), []string(nil)
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		form := name != "alt" || value == "sse" || value == "json" // an answer in another form could not be watched
		if !form || !slices.Contains(known, name) || slices.Contains(seen, name) || strings.Trim(value, plain+"~%") != "" {
			return strconv.Quote(clip(name))
		}
		seen = append(seen, name)
	}
	return ""
}

// clip shortens a text of the agent for a sentence.
func clip(text string) string {
	const most = 64
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
