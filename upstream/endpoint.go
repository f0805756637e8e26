package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Endpoint says where a server is reached over HTTP, and how.
type Endpoint struct {
	Name   string  // of the upstream
	URL    string  // http or https, without a user in it
	Header []Field // the operator's headers, on every request

	// Transport is "http" for streamable HTTP, "sse" for the HTTP+SSE of 2024, and
	// "auto", or nothing, to try them in this order.
	Transport string

	// HTTP carries the requests. It follows no redirect and changes no request,
	// as [http.RoundTripper] demands. Nil is a [NewTransport] of the connection's
	// own, which dials by Dial.
	HTTP http.RoundTripper

	// Dial opens connections when HTTP is nil: it is where addresses are refused.
	// Nil is a plain dial.
	Dial DialFunc

	// Authorize returns the Authorization header, if there is one to send. It is
	// asked before every request, and to refresh it when the server answered 401.
	Authorize func(ctx context.Context, refresh bool) (string, error)

	// Renew reads the operator's headers again when the server answered 401 and there
	// is no Authorize. Nil is for headers that stay as they are.
	Renew func() ([]Field, error)
}

// DialFunc opens a network connection, as [net.Dialer.DialContext] does.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// The transports that an Endpoint may name.
const (
	transportAuto = "auto"
	transportHTTP = "http"
	transportSSE  = "sse"
)

// The limits of a connection.
const (
	connectTime  = 10 * time.Second
	idleTime     = 90 * time.Second
	idlePerHost  = 512
	maxHeaders   = 64 << 10 // bytes of the headers of an answer
	tlsSessions  = 64
	socketBuffer = 16 << 10
)

// NewTransport returns what carries requests to MCP servers: many idle
// connections, no proxy of the environment, no compression. It can be shared.
func NewTransport(dial DialFunc) *http.Transport {
	if dial == nil {
		dial = (&net.Dialer{Timeout: connectTime, KeepAlive: 30 * time.Second}).DialContext
	}
	return &http.Transport{
		DialContext:            marked(dial),
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, ClientSessionCache: tls.NewLRUClientSessionCache(tlsSessions)},
		TLSHandshakeTimeout:    connectTime,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxIdleConns:           0, // the limit is per host
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        idleTime,
		MaxResponseHeaderBytes: maxHeaders,
		ReadBufferSize:         socketBuffer,
		WriteBufferSize:        socketBuffer,
	}
}

// dialError marks a failure that came before anything was sent.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

var errCrowd = errors.New("too many files are open")

// marked opens connections for servers, as far as there are files for them.
func marked(dial DialFunc) DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, connectTime)
		defer cancel()
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, &dialError{err}
		}
		if crowds(conn) {
			return nil, &dialError{errors.Join(errCrowd, conn.Close())}
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			return &outlet{tcp}, nil
		}
		return conn, nil
	}
}

// Dial connects to a server over HTTP and greets it. The context bounds the
// handshake only.
func Dial(ctx context.Context, e Endpoint, o Options) (Conn, error) {
	t, err := newTarget(e, o.orDefault())
	if err != nil {
		return nil, err
	}
	switch e.Transport {
	case transportHTTP:
		return dialWeb(ctx, t, o)
	case transportSSE:
		return dialFeed(ctx, t, o)
	case transportAuto, "":
		conn, err := dialWeb(ctx, t, o)
		if !isOlder(err) {
			return conn, err
		}
		conn, older := dialFeed(ctx, t, o)
		if errors.Is(older, errNoFeed) {
			return nil, err
		}
		return conn, older
	}
	return nil, t.failed(fmt.Sprintf("has a transport that is none: %q", e.Transport), nil)
}

// isOlder reports whether an error is how servers without streamable HTTP
// answer it.
func isOlder(err error) bool {
	var s *strange
	if !errors.As(err, &s) {
		return false
	}
	switch s.status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		return true
	}
	return false
}

// target is where requests go, and what all of them have.
type target struct {
	name      string
	url       *url.URL
	header    http.Header // of every request
	carrier   http.RoundTripper
	own       *http.Transport // the carrier, if nobody else uses it
	authorize func(ctx context.Context, refresh bool) (string, error)
	renew     func() ([]Field, error)
	renewed   atomic.Pointer[http.Header] // in place of those of header, once they have changed
	limit     int                         // bytes of a message
	log       *slog.Logger
	scrub     scrub
	said      *transcript
}

func newTarget(e Endpoint, o Options) (*target, error) {
	t := &target{
		name: e.Name, authorize: e.Authorize, renew: e.Renew,
		limit: o.Limits.Message, log: o.Log.With("upstream", e.Name), scrub: o.Scrub,
	}
	t.said = newTranscript(t.log, t.scrub)
	var err error
	if t.url, err = parseURL(e.URL); err != nil {
		return nil, t.failed("has no usable URL", err)
	}
	if t.header, err = parseHeader(e.Header); err != nil {
		return nil, t.failed("has headers that cannot be sent", err)
	}
	if e.HTTP == nil {
		t.own = NewTransport(e.Dial)
		t.carrier = newLanes(t.url, t.own.DialContext, asking{t.own})
		return t, nil
	}
	if e.Dial != nil {
		return nil, t.failed("has a Dial that its HTTP would not use", nil)
	}
	t.carrier = asking{e.HTTP}
	return t, nil
}

// parseURL reads a URL without repeating it in an error: it may hold a secret.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.Unwrap(err)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("its scheme is neither http nor https")
	case u.Hostname() == "":
		return nil, errors.New("it names no host")
	case u.User != nil:
		return nil, errors.New("it has a user in it, which belongs in a header")
	case u.Fragment != "":
		return nil, errors.New("it has a fragment, which is not sent")
	}
	return u, nil
}

// parseHeader builds the headers of every request.
func parseHeader(fields []Field) (http.Header, error) {
	h := http.Header{
		"User-Agent":      {"capgate"},
		"Accept-Encoding": {"identity"},
	}
	for _, f := range fields {
		name := http.CanonicalHeaderKey(f.Name)
		switch {
		case !isToken(f.Name):
			return nil, fmt.Errorf("%q is not the name of a header", f.Name)
		case isReserved(name):
			return nil, fmt.Errorf("the header %s is not the operator's to set", name)
		case strings.ContainsFunc(f.Value, isControl):
			return nil, fmt.Errorf("the value of the header %s has a control character", name)
		}
		if name == "User-Agent" {
			h.Del(name)
		}
		h[name] = append(h[name], f.Value)
	}
	return h, nil
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// isReserved names the headers that say how a message is framed or what it says,
// and those that make net/http send a request twice.
func isReserved(name string) bool {
	switch name {
	case "Accept", "Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type",
		"Expect", "Host", "Idempotency-Key", "Keep-Alive", headerResume, "Te", "Trailer",
		"Transfer-Encoding", "Upgrade", "X-Idempotency-Key":
		return true
	}
	return strings.HasPrefix(name, "Mcp-")
}

// with returns the headers of every request and more: names and values in turn.
// Those with an empty value are left out.
func (t *target) with(pairs ...string) http.Header {
	h := maps.Clone(t.header)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			h[pairs[i]] = []string{pairs[i+1]}
		}
	}
	return h
}

// template is a request that send makes others of, so that nothing is parsed or
// built anew for each.
func template(method string, u *url.URL) *http.Request {
	return &http.Request{Method: method, URL: u, Host: u.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
}

// send carries one request with a body, or without one.
func (t *target) send(ctx context.Context, like *http.Request, header http.Header, body []byte) (*http.Response, error) {
	return t.carry(ctx, like, header, newParcel(body))
}

// carry is send with a body that is the parcel's. The header is not changed, and
// may be shared. A server that answers 401 has not executed anything, so that a
// request with a new authorization may follow.
func (t *target) carry(ctx context.Context, like *http.Request, header http.Header, body *parcel) (*http.Response, error) {
	defer body.release()
	if now := t.renewed.Load(); now != nil {
		header = with(header, *now)
	}
	resp, err := t.try(ctx, like, header, body, false)
	if err != nil || resp.StatusCode != http.StatusUnauthorized || header[headerSession] != nil && forgets(resp, header.Get(headerSession)) {
		return resp, err
	}
	if t.authorize == nil {
		next := t.changed(header)
		if next == nil {
			return resp, nil
		}
		header = with(header, next)
	}
	discard(resp.Body)
	return t.try(ctx, like, header, body, true)
}

// changed returns the operator's headers as they are now, and nothing if a request
// with them would be the one that was refused.
func (t *target) changed(sent http.Header) http.Header {
	if t.renew == nil {
		return nil
	}
	fields, err := t.renew()
	if err != nil {
		t.log.Warn("headers cannot be read again", "error", err)
		return nil
	}
	next, err := parseHeader(fields)
	if err != nil {
		t.log.Warn("headers cannot be sent as they are now", "error", err)
		return nil
	}
	for name, values := range next {
		if !slices.Equal(sent[name], values) {
			t.renewed.Store(&next)
			return next
		}
	}
	return nil
}

// with returns headers with others in the place of those of the same names.
func with(header, others http.Header) http.Header {
	header = maps.Clone(header)
	maps.Copy(header, others)
	return header
}

func (t *target) try(ctx context.Context, like *http.Request, header http.Header, body *parcel, refresh bool) (*http.Response, error) {
	req := like.WithContext(ctx)
	req.Header = header
	if t.authorize != nil {
		value, err := t.authorize(ctx, refresh)
		if err != nil {
			return nil, t.undone("was not asked, for want of an authorization", err)
		}
		if value != "" {
			req.Header = maps.Clone(header)
			req.Header["Authorization"] = []string{value}
		}
	}
	if body.data != nil {
		req.ContentLength = int64(len(body.data))
		var err error
		if req.Body, err = body.open(); err != nil { // it is held until this returns, and so may not go
			return nil, err
		}
		req.GetBody = body.open
	}
	resp, err := t.carrier.RoundTrip(req)
	switch {
	case err == nil:
		return resp, nil
	case body.refused != nil:
		return nil, body.refused
	}
	return nil, t.unreached(ctx, err)
}

// unreached says why there is no response. Only what fails before there is a
// connection is known not to have been executed; net/http itself repeats what
// it could not write to a connection that was idle.
func (t *target) unreached(ctx context.Context, err error) *Failed {
	var (
		dial   *dialError
		op     *net.OpError
		cert   *tls.CertificateVerificationError
		record tls.RecordHeaderError
	)
	switch {
	case ctx.Err() != nil:
		return t.failed("was not waited for", context.Cause(ctx))
	case errors.As(err, &dial), errors.As(err, &op) && op.Op == "dial":
		return &Failed{Upstream: t.name, Text: "cannot be reached", Unsent: true, Err: err}
	case errors.As(err, &cert), errors.As(err, &record):
		return &Failed{Upstream: t.name, Text: "shows no certificate that can be trusted", Unsent: true, Err: err}
	}
	return t.failed("broke the connection off", err)
}

func (t *target) failed(text string, err error) *Failed {
	return &Failed{Upstream: t.name, Text: text, Err: err}
}

func (t *target) undone(text string, err error) *Failed {
	return &Failed{Upstream: t.name, Text: text, Undone: true, Err: err}
}

// close gives back the idle connections that nobody else can use.
func (t *target) close() {
	if t.own == nil {
		return
	}
	t.own.CloseIdleConnections()
	if p, ok := t.carrier.(*lanes); ok {
		p.close()
	}
}
