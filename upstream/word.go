package upstream

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"capgate/wire"
)

// word is what a server says where it refuses a request over HTTP.
type word struct {
	status     int
	failure    []byte // the error of the protocol that it is, nil if it is none
	code       int64  // of that
	text       string // what it says, as far as it can be read
	around     string // that, and what is said with it
	page       bool   // it is of a web server, and of no program that has looked at the request
	challenges bool   // it asks for a token
	late       bool   // a program may have looked at the request before
}

const (
	maxSentence = 256             // bytes of a whole sentence
	maxSpeech   = 4 << 10         // bytes of what is looked at for words
	refusalTime = 5 * time.Second // how long a server may take to say why it refuses something
	promptly    = 2 * time.Second // how long it may take to find out that it knows no such session
)

// readRefusal reads a body, up to a limit, that says why there is no answer. One that is cut short has no end in time.
func readRefusal(resp *http.Response, limit int) (body []byte, cut bool) {
	late := time.AfterFunc(refusalTime, func() { _ = resp.Body.Close() })
	defer late.Stop()
	body, err := readBody(io.LimitReader(resp.Body, int64(limit)), nil, limit)
	return body, err != nil || len(body) == limit
}

// readWord reads the body of a refusal, which may be cut short, of a request with an id, "" for any.
func readWord(doc *wire.Doc, resp *http.Response, body []byte, cut bool, id string) *word {
	kind := media(resp.Header)
	w := &word{status: resp.StatusCode, challenges: resp.Header["Www-Authenticate"] != nil}
	start := bytes.TrimLeft(body, " \t\r\n")
	isJSON := kind == mediaJSON || len(start) > 0 && (start[0] == '{' || start[0] == '[')
	coding := resp.Header.Get("Content-Encoding")
	switch {
	case len(start) == 0 && !cut:
		w.page = true
	case cut, coding != "" && coding != "identity", kind == mediaEvents: // what it says is not all that can be read
	case isJSON && doc.Parse(body, wire.Limits{Bytes: maxRefusal}) == nil:
		w.readJSON(doc.Root(), kind == mediaJSON && resp.StatusCode >= http.StatusBadRequest, id)
		w.around = string(body[:min(len(body), maxSpeech)]) + "\n" + w.text // which may be further behind
	case !isJSON:
		w.text = string(body[:min(len(body), maxSpeech)])
		w.around = w.text
		w.page = start[0] == '<' || slices.Contains(pages[:], strings.ToLower(strings.TrimSpace(w.text)))
	}
	return w
}

// pages are what web servers say in text of what they do not have.
var pages = [...]string{"404 page not found", "404 not found", "404: not found", "page not found", "not found"}

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
	isOurs := whose.Kind() == wire.Number && string(whose.Raw()) == id
	if isAnswer && (isOurs || whose.Kind() == wire.Null || whose.Kind() == wire.Invalid) {
		w.failure = disowned(failure, "data")
	}
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
	"session not found or has expired", "a valid session id is required for non-initialize requests",
}

// fronts is what they put before that.
var fronts = [...]string{"bad request: ", "not found: ", "unauthorized: ", "error: ", "unprocessable entity: "}

// isForgotten reports whether a text is one of those, perhaps with the id of the session, or with what to do.
func isForgotten(text, session string) bool {
	if len(text) > maxSentence+len(session) {
		return false
	}
	if len(session) > 2 { // a shorter one may be in any word
		text = strings.ReplaceAll(text, session, "")
	}
	text = strings.Join(strings.Fields(strings.ToLower(text)), " ")
	for _, front := range fronts {
		text = strings.TrimPrefix(text, front)
	}
	text, _, _ = strings.Cut(text, ". please re-initialize")
	return slices.Contains(forgotten[:], strings.Trim(text, ` .!:"'`))
}

// has reports whether some word is in what it says.
func (w *word) has(words ...string) bool {
	text := strings.ToLower(w.around)
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}

// speaks reports whether it has to do with the connection, in words that a server may have for what it did as well.
func (w *word) speaks(inSession bool) bool {
	return w.has("initializ", "session id", "session-id") || w.isOfAnotherEra() || inSession && w.has("session")
}

// isOfAnotherEra reports whether it has to do with what is spoken.
func (w *word) isOfAnotherEra() bool {
	return w.has("protocol version", "protocol-version", "protocolversion", "_meta")
}

// wantsHeaders reports whether it is of headers that only the other era has.
func (w *word) wantsHeaders(st *stance) bool { return w.code == codeHeaders && !st.info.Modern }

// isLike reports whether another refusal says the same. Pages differ in what they are numbered by.
func (w *word) isLike(other *word) bool {
	return w.status == other.status && w.code == other.code && (w.page && other.page || w.code == codeRevision || w.text == other.text)
}

// forgets reports whether the server says that it does not know the session any more, nor what is spoken: surely when
// it says so of nothing else, and has done nothing for the request, then; or perhaps.
func (w *word) forgets(session string, inSession bool) (surely, perhaps bool) {
	if w.code == codeRevision {
		return w.status >= http.StatusBadRequest, false
	}
	says := isForgotten(w.text, session) && (inSession || w.speaks(false))
	return w.isSure(says, inSession), w.isDoubtful(says, inSession)
}

// isSure reports whether what is said, or that nothing is there, is of the session. The protocol has 404 for it, which is
// also how a server says something of our request.
func (w *word) isSure(says, inSession bool) bool {
	switch w.status {
	case http.StatusNotFound:
		return says || inSession && w.page
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusGone:
		return says
	case http.StatusUnauthorized: // mostly of a login that is over
		return says && strings.Contains(strings.ToLower(w.text), "not found") && !w.challenges
	}
	return false
}

// isDoubtful reports whether it may be.
func (w *word) isDoubtful(says, inSession bool) bool {
	switch w.status {
	case http.StatusNotFound:
		return inSession || w.speaks(inSession)
	case http.StatusGone:
		return inSession
	case http.StatusBadRequest, http.StatusConflict, http.StatusUnprocessableEntity:
		return w.speaks(inSession)
	case http.StatusUnauthorized:
		return false
	}
	return says && w.status > http.StatusBadRequest
}

// forgets reports whether a 401 asks for no token but for another session, as rmcp did until 0.16. The body can still
// be read.
func forgets(resp *http.Response, session string) bool {
	from := resp.Body
	body, cut := readRefusal(resp, maxSpeech)
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), from), from}
	surely, _ := readWord(new(wire.Doc), resp, body, cut, "").forgets(session, true)
	return surely
}
