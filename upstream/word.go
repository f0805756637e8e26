package upstream

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"

	"capgate/wire"
)

// word is what a server says where it refuses a request over HTTP.
type word struct {
	status  int
	failure []byte // the error of the protocol that it is, nil if it is none
	code    int64  // of that
	text    string // what it says, as far as it can be read
	ours    bool   // it names our request
	formed  bool   // it was written by a program that has looked at the request: it is no page of a web server
	answers bool   // it may be an answer of a request that was executed, whatever its status and form
}

// Bytes of what a server says that are looked at.
const (
	maxSentence = 256
	maxSpeech   = 4 << 10
)

// readWord reads the body of a refusal, which may be cut short, of a request with an id, "" for any.
func readWord(doc *wire.Doc, resp *http.Response, body []byte, cut bool, id string) *word {
	kind := media(resp.Header)
	w := &word{status: resp.StatusCode, answers: cut || mayAnswer(body, id)}
	start := bytes.TrimLeft(body, " \t\r\n")
	w.formed = kind == mediaJSON || kind == mediaEvents || len(start) > 0 && (start[0] == '{' || start[0] == '[')
	coding := resp.Header.Get("Content-Encoding")
	switch {
	case coding != "" && coding != "identity":
		w.answers = true
	case cut: // the rest may say more
	case !w.formed:
		w.text = string(body[:min(len(body), maxSpeech)])
	case doc.Parse(body, wire.Limits{Bytes: maxRefusal}) == nil:
		w.readJSON(doc.Root(), kind == mediaJSON && resp.StatusCode >= http.StatusBadRequest, id)
	}
	return w
}

// readJSON finds the error in a body. One that names no request is an error of the one that was sent; one that names
// another is none, but says what it says.
func (w *word) readJSON(root wire.Value, isAnswer bool, id string) {
	if _, ok := root.Get("result"); ok {
		return
	}
	failure, _ := root.Get("error")
	text, ok := failure.Get("message")
	for _, key := range [...]string{"error", "message", "detail"} { // of who has no error of the protocol
		if !ok || text.Kind() != wire.String {
			text, ok = root.Get(key)
		}
	}
	w.text, _ = text.Str()
	version, _ := root.Get("jsonrpc")
	if !version.Equal("2.0") || !isError(failure) || disguised(failure, "code", "message", "data") {
		return
	}
	code, _ := failure.Get("code")
	w.code, _ = code.Int64()
	whose, _ := root.Get("id")
	w.ours = isAnswer && whose.Kind() == wire.Number && string(whose.Raw()) == id
	if isAnswer && (w.ours || whose.Kind() == wire.Null || whose.Kind() == wire.Invalid) {
		w.failure = disowned(failure, "data")
	}
}

// mayAnswer reports whether a body has a result, or an id that begins as the one that was sent, or if that is not
// known, as any.
func mayAnswer(body []byte, id string) bool {
	for rest, ok := body, true; ok; {
		_, rest, ok = bytes.Cut(rest, []byte(`"id"`))
		its := bytes.TrimLeft(rest, " \t\r\n:\"")
		if ok && bytes.HasPrefix(its, []byte(id)) && (id != "" || len(its) > 0 && its[0] >= '0' && its[0] <= '9') {
			return true
		}
	}
	return bytes.Contains(body, []byte(`"result"`))
}

// forgotten is how servers say that they do not know a session, with nothing besides. None says it of what it has done.
var forgotten = [...]string{
	"session not found", "session id not found", "session not found or expired", "could not find session", "no session found",
	"session does not exist", "unknown session", "unknown session id",
	"invalid session", "invalid session id", "invalid or missing session id", "invalid or expired session", "invalid or expired session id",
	"no valid session", "no valid session id", "no valid session id provided", "missing session id",
	"session expired", "session has expired", "session terminated", "session has been terminated", "session closed",
	"server not initialized", "session not initialized", "not initialized", "mcp-session-id header is required",
	"expect initialize request", "unexpected message, expect initialize request",
	"no transport found for sessionid", "no transport found for session id",
}

// fronts is what they put before that.
var fronts = [...]string{"bad request: ", "not found: ", "unauthorized: ", "error: ", "unprocessable entity: "}

// isForgotten reports whether a text is one of those, perhaps with the id of the session, or with a plea.
func isForgotten(text, session string) bool {
	if len(text) > maxSentence+len(session) {
		return false
	}
	if session != "" {
		text = strings.ReplaceAll(text, session, "")
	}
	text = strings.Join(strings.Fields(strings.ToLower(text)), " ")
	for _, front := range fronts {
		text = strings.TrimPrefix(text, front)
	}
	text, _, _ = strings.Cut(text, ". please ")
	return slices.Contains(forgotten[:], strings.Trim(text, ` .!:"'`))
}

// speaks reports whether it has to do with the connection, in words that a server may have for what it did as well.
func (w *word) speaks() bool {
	text := strings.ToLower(w.text[:min(len(w.text), maxSpeech)])
	return slices.ContainsFunc([]string{"session", "initialize", "protocol version"}, func(word string) bool {
		return strings.Contains(text, word)
	})
}

// forgets reports whether the server says that it does not know the session any more, nor what is spoken. It is said
// surely when nothing can have been done for the request, which may be sent again; and perhaps when it does no harm to
// begin anew for the next one. The protocol has 404 for it, which is also how a server says something of our request.
func (w *word) forgets(session string, inSession bool) (surely, perhaps bool) {
	says := isForgotten(w.text, session)
	missing := w.status == http.StatusNotFound && inSession
	switch w.status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusNotFound, http.StatusGone, http.StatusUnprocessableEntity:
		surely = says || missing && !w.formed && !w.answers
	}
	switch w.status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity:
		perhaps = !w.ours && (missing || w.speaks())
	case http.StatusGone:
		perhaps = !w.ours && inSession
	}
	return surely, surely || perhaps || w.status >= http.StatusBadRequest && (says || w.code == codeRevision)
}

// forgets reports whether a 401 asks for no token but for another session, as rmcp did until 0.16. The body can still
// be read.
func forgets(resp *http.Response, session string) bool {
	from := resp.Body
	body, err := readBody(io.LimitReader(from, maxSpeech), nil, maxSpeech)
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), from), from}
	return isForgotten(readWord(new(wire.Doc), resp, body, err != nil || len(body) == maxSpeech, "").text, session)
}

// heed ends a connection by an error that says that its session has to begin anew, whatever the status.
func (c *web) heed(failure []byte, session string) {
	if session == "" || len(failure) > maxSpeech {
		return
	}
	doc := c.doc()
	defer c.putDoc(doc)
	if doc.Parse(failure, wire.Limits{}) != nil {
		return
	}
	message, _ := doc.Root().Get("message")
	if text, _ := message.Str(); isForgotten(text, session) && strings.Contains(strings.ToLower(text), "initialize") {
		c.lose()
	}
}
