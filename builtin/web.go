package builtin

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"

	"capgate/capability"
)

const (
	maxAddress = 8192    // bytes of a URL, as in package capability
	maxSent    = 1 << 20 // bytes of a request's body
	maxHops    = 5       // redirects that are followed
)

// web is the server of kind net.
type web struct{ Options }

// tools are the tools of the web server.
func (w *web) tools() []tool {
	return []tool{{
		name: "fetch", title: "Fetch a URL", run: w.fetch,
		help: "Sends one HTTP request and returns the answer: text as text, images as images, anything else as base64. Follows redirects, each of which must be allowed as well.",
		parameters: []parameter{
			{name: "url", required: true, most: maxAddress, help: "An http or https URL."},
			{name: "method", choices: []string{"get", "head", "post", "put", "delete"}, anyCase: true, help: "The default is get."},
			{name: "headers", kind: fields, choices: requestHeaders(), help: "Headers of the request."},
			{name: "body", most: maxSent, help: "The body of a post or put."},
			{name: "max_bytes", kind: number, most: int64(w.Limits.Response), help: "How much of the answer's body to return at most; what is beyond is cut off."},
		},
		hints: hints{destroys: true, open: true},
	}}
}

// requestHeaders are the headers that an agent may set: none of them says who
// asks, whom, or how the message is framed.
func requestHeaders() []string {
	return []string{"Accept", "Accept-Language", "Content-Type", "If-Modified-Since", "If-None-Match"}
}

// hop is one request on the way to an answer.
type hop struct {
	url     *url.URL
	target  capability.Target
	method  string
	headers [][2]string
	body    string
}

// fetch is the tool fetch.
func (w *web) fetch(ctx context.Context, a arguments, m *memory) (result, error) {
	h := hop{method: strings.ToUpper(a.text("method", "get")), headers: a.fields("headers"), body: a.text("body", "")}
	if a.has("body") && h.method != http.MethodPost && h.method != http.MethodPut {
		return result{}, problem("only a post or a put has a body")
	}
	if err := h.aim(a.text("url", "")); err != nil {
		return result{}, err
	}
	most := a.number("max_bytes", w.Limits.Response)
	for range maxHops + 1 {
		answer, err := w.send(ctx, &h)
		if err != nil {
			return result{}, err
		}
		to, follows, err := h.location(answer)
		if !follows && err == nil {
			defer answer.Body.Close() //nolint:errcheck // what is read of it was read
			return show(h.url.String(), answer, most, m)
		}
		answer.Body.Close() //nolint:errcheck // nothing of it was wanted
		if err != nil {
			return result{}, err
		}
		if err := h.turn(answer.StatusCode, to); err != nil {
			return result{}, err
		}
	}
	return result{}, problemf("the server redirects more than %d times", maxHops)
}

// aim points the hop at a URL. What the decision is about and what is dialled are
// read from the text by two parsers, which have to agree.
func (h *hop) aim(text string) error {
	target, err := capability.ParseURL(text)
	if err != nil {
		return problem("the URL cannot be read")
	}
	h.target = target
	u, err := url.Parse(text)
	if target.Opaque() != "" {
		h.url = nil
		return nil // what no grant covers is left to the decision
	}
	if err != nil || u.User != nil || u.Opaque != "" || h.at(u) != target.String() {
		return problem("the URL cannot be read")
	}
	u.Fragment, u.RawFragment = "", ""
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	h.url = u
	return nil
}

// at writes the host and port of a URL as targets do.
func (h *hop) at(u *url.URL) string {
	port, host := portOf(u), strings.ToLower(u.Hostname())
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + port
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case strings.EqualFold(u.Scheme, "https"):
		return "443"
	}
	return "80"
}

// verb is what the hop needs. A method that has none is one of nobody's.
func (h *hop) verb() capability.Verb {
	switch h.method {
	case http.MethodGet, http.MethodHead:
		return "net.get"
	default:
		return capability.Verb("net." + strings.ToLower(h.method))
	}
}

// location reads where an answer sends the hop, if it does.
func (h *hop) location(answer *http.Response) (to *url.URL, follows bool, err error) {
	switch answer.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, false, nil
	}
	values := answer.Header.Values("Location")
	switch {
	case len(values) == 0 || len(values) == 1 && values[0] == "":
		return nil, false, nil
	case len(values) > 1 || len(values[0]) > maxAddress:
		return nil, true, problem("the server redirects to several places, or to a URL that is too long")
	}
	to, err = h.url.Parse(values[0])
	if err != nil {
		return nil, true, problem("the server redirects to a URL that cannot be read")
	}
	return to, true, nil
}

// turn makes of the hop the one that a redirect asks for. Another origin gets
// nothing that was meant for this one but the body of a request that the redirect
// says to repeat, which is decided on as one that sends.
func (h *hop) turn(status int, to *url.URL) error {
	from := h.url
	if from.Scheme == "https" && !strings.EqualFold(to.Scheme, "https") {
		return problem("the server redirects from https to something that is not, which is not followed")
	}
	if status == http.StatusSeeOther && h.method != http.MethodHead ||
		h.method == http.MethodPost && (status == http.StatusMovedPermanently || status == http.StatusFound) {
		h.method, h.body, h.headers = http.MethodGet, "", without(h.headers, "Content-Type")
	}
	if err := h.aim(to.String()); err != nil {
		return err
	}
	if h.url == nil || h.url.Scheme != from.Scheme || h.at(h.url) != h.at(from) {
		h.headers = nil
	}
	return nil
}

func without(headers [][2]string, name string) (rest [][2]string) {
	for _, f := range headers {
		if !strings.EqualFold(f[0], name) {
			rest = append(rest, f)
		}
	}
	return rest
}

// request makes the request of the hop.
func (h *hop) request(ctx context.Context, client string) (*http.Request, error) {
	var body io.Reader
	if h.body != "" {
		body = strings.NewReader(h.body)
	}
	r, err := http.NewRequestWithContext(ctx, h.method, h.url.String(), body)
	if err != nil {
		return nil, problem("the URL cannot be read")
	}
	for _, f := range h.headers {
		r.Header.Set(f[0], f[1])
	}
	r.Header.Set("User-Agent", client)
	r.Header.Set("Accept-Encoding", "identity")
	return r, nil
}
