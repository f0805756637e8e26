package upstream

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptrace"

	"capgate/leash"
)

// asking carries requests as net/http does, and asks for their bodies once more when it has a
// connection, which it may have waited for: whoever made one can say then that it may not go.
type asking struct{ http.RoundTripper }

// RoundTrip carries a request.
func (a asking) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.GetBody == nil {
		return a.RoundTripper.RoundTrip(req)
	}
	return a.RoundTripper.RoundTrip(AskLast(req, func() error {
		body, err := req.GetBody()
		if err == nil {
			_ = body.Close()
		}
		return err
	}))
}

// AskLast returns a request of which nothing is written if it may not go once there is a connection
// for it, which can take long. That is asked in the goroutine of RoundTrip.
func AskLast(req *http.Request, may func() error) *http.Request {
	hold := leash.New(req.Context())
	return req.WithContext(httptrace.WithClientTrace(hold, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		if err := may(); err != nil {
			hold.Cut(err)
			if !isCommon(got.Conn) { // it is the request's own, and is written to by another goroutine
				_ = got.Conn.Close()
			}
		}
	}}))
}

// isCommon reports whether a connection may carry the requests of others as well.
func isCommon(conn net.Conn) bool {
	secure, ok := conn.(*tls.Conn)
	return ok && secure.ConnectionState().NegotiatedProtocol == "h2"
}
