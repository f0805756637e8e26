package builtin

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"capgate/capability"
)

const (
	maxAddresses = 32               // addresses of one host
	maxTried     = 3                // of them that are dialled
	maxHeader    = 64 << 10         // bytes of a response's header
	dialTime     = 10 * time.Second // for one address
	answerTime   = 20 * time.Second // for the header to begin
)

// send sends a hop, if it is allowed, to an address that is allowed as well. Each
// hop has a connection of its own: one that is kept open was decided on before.
func (w *web) send(ctx context.Context, h *hop) (*http.Response, error) {
	if err := w.allow(capability.Net(h.verb(), h.target)); err != nil {
		return nil, err
	}
	if h.url == nil {
		return nil, problem("the URL cannot be read")
	}
	addrs, err := w.addresses(ctx, h)
	if err != nil {
		return nil, err
	}
	r, err := h.request(ctx, "capgate/"+w.version())
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return w.connect(ctx, addrs)
		},
		TLSClientConfig:        &tls.Config{ServerName: h.url.Hostname(), MinVersion: tls.VersionTLS12, RootCAs: w.Roots},
		TLSHandshakeTimeout:    dialTime,
		ResponseHeaderTimeout:  answerTime,
		MaxResponseHeaderBytes: maxHeader,
		DisableKeepAlives:      true,
		DisableCompression:     true,
	}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		return nil, h.explain(err)
	}
	if answer.StatusCode < http.StatusOK {
		answer.Body.Close() //nolint:errcheck // nothing of it was wanted
		return nil, problemf("the host %s wants to speak something other than HTTP", h.target)
	}
	return answer, nil
}

// addresses finds where a host is, once, and asks about each address. One that is
// denied denies the host: a name that leads inside and outside is not to be trusted.
func (w *web) addresses(ctx context.Context, h *hop) ([]netip.AddrPort, error) {
	port, err := strconv.ParseUint(portOf(h.url), 10, 16)
	if err != nil {
		return nil, problem("the URL cannot be read")
	}
	host := h.url.Hostname()
	if literal, err := netip.ParseAddr(host); err == nil {
		return []netip.AddrPort{netip.AddrPortFrom(literal, uint16(port))}, nil // decided on as it is
	}
	addrs, err := w.resolve(ctx, host)
	switch {
	case err != nil || len(addrs) == 0:
		return nil, problemf("the host %s could not be found", host)
	case len(addrs) > maxAddresses:
		return nil, problemf("the host %s has more than %d addresses", host, maxAddresses)
	}
	var list []netip.AddrPort
	for _, addr := range addrs {
		if err := w.allow(capability.Net(h.verb(), h.target.Resolved(addr))); err != nil {
			return nil, err
		}
		if to := netip.AddrPortFrom(addr.Unmap(), uint16(port)); !slices.Contains(list, to) {
			list = append(list, to)
		}
	}
	return list[:min(len(list), maxTried)], nil
}

// resolve looks a host up. A name with a dot is complete: what the machine would
// search for besides is another host than the one that was decided on.
func (w *web) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if w.Resolve != nil {
		return w.Resolve(ctx, host)
	}
	if strings.Contains(host, ".") {
		host += "."
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// connect dials the addresses in turn, and no others.
func (w *web) connect(ctx context.Context, addrs []netip.AddrPort) (net.Conn, error) {
	var first error
	for _, to := range addrs {
		conn, err := w.dial(ctx, to)
		if err == nil {
			return conn, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

func (w *web) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	if w.Dial != nil {
		return w.Dial(ctx, to)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", to.String())
}

// explain says why there is no answer, without the addresses that errors of the
// network repeat: those of the host, and of the resolver.
func (h *hop) explain(err error) error {
	host, why := h.target.String(), "gave no answer that can be read as HTTP"
	var certificate *tls.CertificateVerificationError
	var alert tls.AlertError
	var record tls.RecordHeaderError
	var slow net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		why = "refuses the connection"
	case errors.As(err, &certificate):
		why = "has no certificate that is valid for it"
	case errors.As(err, &alert) || errors.As(err, &record):
		why = "could not agree on an encrypted connection"
	case errors.As(err, &slow) && slow.Timeout():
		why = "took too long to answer"
	}
	return problemf("the host %s %s", host, why)
}
