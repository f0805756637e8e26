//go:build unix

package upstream

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"testing"
)

// BareLanes are lanes to a URL over connections that only read and write, and what ends them.
func BareLanes(t *testing.T, text string) (http.RoundTripper, func()) {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	usual := NewTransport(nil)
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := usual.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return struct{ net.Conn }{conn}, nil
	}
	p, ok := newLanes(u, dial, usual).(*lanes)
	if !ok {
		t.Fatal("it gets no lanes")
	}
	return p, p.close
}
