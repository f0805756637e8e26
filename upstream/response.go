package upstream

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	mediaJSON   = "application/json"
	mediaEvents = "text/event-stream"

	bodyRoom   = 4 << 10  // bytes of room for a body of unknown length
	bodyTrust  = 4 << 20  // bytes of room that a Content-Length alone is given
	keepBody   = 4 << 20  // bytes of the largest memory that is used again
	maxRefusal = 1 << 20  // bytes of a body that says why there is no answer
	maxDiscard = 64 << 10 // bytes of a body that are read for the connection's sake
)

// strange is an answer over HTTP that is not one of the protocol.
type strange struct {
	status int
	text   string
}

// said is what the status says without the words of the server, which are not for agents.
func (s *strange) said() string {
	name := strings.TrimSpace(fmt.Sprint(s.status, " ", http.StatusText(s.status)))
	switch s.status / 100 {
	case 4:
		return "refuses the request (" + name + ")"
	case 5:
		return "fails (" + name + ")"
	}
	return "does not answer"
}

func (s *strange) Error() string {
	text := fmt.Sprintf("status %d %s", s.status, http.StatusText(s.status))
	if s.text == "" {
		return text
	}
	return text + ", " + s.text
}

// Is says when the answer may be one of a server of the other era: not when a
// server is out of order, or wants to know who asks.
func (s *strange) Is(target error) bool {
	denied := s.status == http.StatusUnauthorized || s.status == http.StatusForbidden
	return target == errForeign && !denied && s.status < http.StatusInternalServerError
}

// media returns the type of a body when it is one of the protocol's, and what it
// says it is instead otherwise.
func media(h http.Header) string {
	if coding := h.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return "content coding " + quote(coding)
	}
	values := h["Content-Type"]
	if len(values) != 1 {
		return "no one content type"
	}
	if values[0] == mediaJSON || values[0] == mediaEvents {
		return values[0]
	}
	name, params, err := mime.ParseMediaType(values[0])
	charset := params["charset"]
	if err == nil && (name == mediaJSON || name == mediaEvents) && (charset == "" || strings.EqualFold(charset, "utf-8")) {
		return name
	}
	return "content type " + quote(values[0])
}

// readBody reads a body to its end, so that its connection can be used again. It
// begins with the memory of data, which is grown as bytes come.
func readBody(body io.Reader, data []byte, limit int) ([]byte, error) {
	for {
		if len(data) == cap(data) {
			data = slices.Grow(data, max(len(data), bodyRoom))
		}
		n, err := body.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case len(data) > limit:
			return data, errLong
		case err == io.EOF:
			return data, nil
		case err != nil:
			return data, err
		}
	}
}

// readWhole reads a body into memory of its own, if it is given none. One of unknown
// length, which is less than none, is gathered elsewhere first then; a length that is
// only claimed gets little.
func (c *web) readWhole(body io.Reader, length int64, into *[]byte) ([]byte, error) {
	if length > int64(c.limit) {
		return nil, errLong
	}
	if into != nil {
		data := slices.Grow((*into)[:0], int(min(max(length, 0), bodyTrust))+1)
		data, err := readBody(body, data, c.limit)
		*into = data
		return data, err
	}
	if length >= 0 {
		return readBody(body, make([]byte, 0, min(length, bodyTrust)+1), c.limit)
	}
	room, ok := c.bodies.Get().(*[]byte)
	if !ok {
		room = new([]byte)
	}
	data, err := readBody(body, (*room)[:0], c.limit)
	whole := bytes.Clone(data)
	if cap(data) <= keepBody {
		*room = data
		c.bodies.Put(room)
	}
	return whole, err
}

// discard reads the little that a body may still hold, and closes it.
func discard(body io.ReadCloser) {
	late := time.AfterFunc(refusalTime, func() { _ = body.Close() })
	defer late.Stop()
	_, _ = io.CopyN(io.Discard, body, maxDiscard)
	_ = body.Close()
}

// refused reads a response that is neither an answer nor a stream, to what was sent some time ago. It ends the connection
// where that says that the server knows nothing of it any more.
func (c *web) refused(ctx context.Context, resp *http.Response, id int64, session string, began time.Time) (Answer, error) {
	late := time.Since(began) > promptly
	said, odd, err := c.hearsRefusal(ctx, resp, id)
	if err != nil {
		return Answer{}, err
	}
	said.late = late
	switch {
	case c.forgotten(ctx, said, session):
		return Answer{}, &Failed{Upstream: c.name, Text: "no longer knows the session", Unsent: true, Lost: true, Err: odd}
	case resp.StatusCode == http.StatusUnauthorized: // whatever it says besides
		return Answer{}, c.undone("wants to know who asks (401)", odd)
	case resp.StatusCode == http.StatusForbidden:
		return Answer{}, c.forbidden(resp.Header, odd)
	case said.failure != nil:
		return Answer{Error: said.failure}, nil
	case resp.StatusCode/100 == 3:
		odd.text = "which is not followed"
		return Answer{}, c.failed("answers with a redirect", odd)
	}
	return Answer{}, c.failed(odd.said(), odd)
}

// hearsRefusal reads what a response says that is neither an answer nor a stream.
func (c *web) hearsRefusal(ctx context.Context, resp *http.Response, id int64) (*word, *strange, error) {
	defer discard(resp.Body)
	doc := c.doc()
	defer c.putDoc(doc)
	body, cut := readRefusal(resp, maxRefusal)
	if cut && ctx.Err() != nil {
		return nil, nil, c.unreached(ctx, ctx.Err())
	}
	said := readWord(doc, resp, body, cut, strconv.FormatInt(id, 10))
	return said, &strange{status: resp.StatusCode, text: c.excerpt(media(resp.Header), body, maxRefusal)}, nil
}

// forbidden says why a token that is shown does not do. A person may get one that does: which
// scopes that takes is for the log and the event.
func (c *web) forbidden(h http.Header, odd *strange) *Failed {
	asked, _ := bearer(h.Values("WWW-Authenticate"))
	if !asked.lacks {
		return c.failed("forbids it (403)", odd)
	}
	if odd.text = "for want of scopes"; asked.scope != "" {
		odd.text = "a token for the scopes " + c.scrub.quote(asked.scope) + " would do"
	}
	return c.undone("does not let its token do that (403); ask the operator", odd)
}

// excerpt is what of a body, read up to a limit, is worth a place in an error.
func (t *target) excerpt(kind string, body []byte, limit int) string {
	switch {
	case len(body) > 0 && kind != mediaEvents:
		body = t.scrub.of(body, limit)
		return quote(string(body[:min(len(body), 2*maxQuote)]))
	case kind != mediaJSON && kind != mediaEvents:
		return kind
	}
	return ""
}
