package upstream

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"capgate/capability"
	"capgate/wire"
)

// The limits of one exchange with an authorization server.
const (
	exchangeTime  = 15 * time.Second
	maxDocument   = 256 << 10 // bytes of an answer
	maxAddresses  = 32        // of one host
	triedOfThem   = 3
	maxURL        = 2 << 10 // bytes of a URL that somebody else wrote
	documentDepth = 16
)

// Reach says how hosts are found and reached. The zero value is the network of
// this machine.
type Reach struct {
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	Dial    func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	Roots   *x509.CertPool // whose certificates are trusted, nil for the machine's
}

// guide reaches the hosts that an upstream names. What it names is not trusted: a
// host within this network is only reached when the upstream is in it as well,
// and nothing that is answered leads anywhere else.
type guide struct {
	Reach

	mu   sync.Mutex
	home []netip.Addr // where the upstream was reached
}

// page is what was answered.
type page struct {
	status int
	header http.Header
	body   []byte
}

// inquiry is one request. What it carries goes to the host of the URL and no further.
type inquiry struct {
	method, url string
	header      http.Header
	body        []byte

	// own is set for the URL that the operator has written: it may be anywhere.
	own bool
}

// fetch makes one request. It follows no redirect.
func (g *guide) fetch(ctx context.Context, a inquiry) (*page, error) {
	u, err := safeURL(a.url)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, exchangeTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, a.method, u.String(), bytes.NewReader(a.body))
	if err != nil {
		return nil, errors.New("the URL cannot be asked for")
	}
	req.GetBody = nil // a code and a refresh token are good for one request
	if a.header != nil {
		req.Header = a.header.Clone()
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "capgate")
	carrier := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return g.connect(ctx, u, a.own)
		},
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: g.Roots},
		TLSHandshakeTimeout:    connectTime,
		MaxResponseHeaderBytes: maxHeaders,
		DisableKeepAlives:      true,
		DisableCompression:     true,
	}
	defer carrier.CloseIdleConnections()
	resp, err := carrier.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be reached: %w", u.Host, reason(ctx, err))
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	if a.own {
		return &page{status: resp.StatusCode, header: resp.Header}, nil // what it says may not end, and nobody reads it
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the answer of %s broke off", u.Host)
	case len(body) > maxDocument:
		return nil, fmt.Errorf("the answer of %s has more than %d bytes", u.Host, maxDocument)
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return nil, fmt.Errorf("%s redirects, which is not followed", u.Host)
	}
	return &page{resp.StatusCode, resp.Header, body}, nil
}

// unfit is why a host is not dialled. It is ours, and says nothing of a secret.
type unfit struct{ text string }

func (r *unfit) Error() string { return r.text }

// reason says why there is no answer, in words of ours: those of the network may
// repeat what the other side wrote.
func reason(ctx context.Context, err error) error {
	var (
		refused *unfit
		cert    *tls.CertificateVerificationError
		record  tls.RecordHeaderError
		slow    net.Error
	)
	switch {
	case errors.As(err, &refused):
		return refused
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &cert), errors.As(err, &record):
		return errors.New("it has no certificate that is valid for it")
	case errors.As(err, &slow) && slow.Timeout():
		return errors.New("it took too long to answer")
	}
	return errors.New("there is no connection to it, or no answer that is HTTP")
}

// safeURL reads a URL that a secret may be sent to: https, or this machine alone.
func safeURL(text string) (*url.URL, error) {
	if len(text) > maxURL {
		return nil, fmt.Errorf("a URL has more than %d bytes", maxURL)
	}
	u, err := parseURL(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("a URL cannot be used: %w", err)
	case u.Scheme == "http" && !isThisMachine(u.Hostname()):
		return nil, fmt.Errorf("what is sent to http://%.200s would travel in clear", u.Host)
	case strings.ContainsFunc(text, isControl), strings.Contains(text, `\`):
		return nil, errors.New("a URL holds characters that do not belong in one")
	}
	return u, nil
}

// isThisMachine reports whether a host is a name or an address of loopback.
func isThisMachine(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.Unmap().IsLoopback()
}

// connect opens a connection to an address of a host, all of which must be fit.
func (g *guide) connect(ctx context.Context, u *url.URL, own bool) (net.Conn, error) {
	port, err := portOf(u)
	if err != nil {
		return nil, err
	}
	addrs, err := g.addresses(ctx, u.Hostname())
	if err != nil {
		return nil, err
	}
	for _, addr := range addrs {
		if u.Scheme == "http" && !addr.IsLoopback() {
			return nil, &unfit{"it is not on this machine, and what is sent there would travel in clear"}
		}
		if !own && !g.admits(addr) {
			return nil, &unfit{"it is at a special address, within a network that the upstream is not in"}
		}
	}
	var first error
	for _, addr := range addrs[:min(len(addrs), triedOfThem)] {
		conn, err := g.dial(ctx, netip.AddrPortFrom(addr, port))
		if err == nil {
			g.arrived(addr, own)
			return conn, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

func portOf(u *url.URL) (uint16, error) {
	text := u.Port()
	if text == "" && u.Scheme == "https" {
		return 443, nil
	}
	if text == "" {
		return 80, nil
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return 0, &unfit{"its port is none"}
	}
	return uint16(port), nil
}

// addresses finds where a host is. A name with a dot is complete.
func (g *guide) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr.Unmap()}, nil
	}
	found, err := g.resolve(ctx, host)
	switch {
	case err != nil || len(found) == 0:
		return nil, &unfit{"it could not be found"}
	case len(found) > maxAddresses:
		return nil, &unfit{fmt.Sprintf("it has more than %d addresses", maxAddresses)}
	}
	addrs := make([]netip.Addr, len(found))
	for i, addr := range found {
		addrs[i] = addr.Unmap()
	}
	return addrs, nil
}

func (g *guide) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if g.Resolve != nil {
		return g.Resolve(ctx, host)
	}
	if strings.Contains(host, ".") && !strings.HasSuffix(host, ".") {
		host += "."
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

func (g *guide) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	if g.Dial != nil {
		return g.Dial(ctx, to)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", to.String())
}

// arrived notes where the upstream is.
func (g *guide) arrived(addr netip.Addr, own bool) {
	if !own {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.home = append(g.home, addr)
}

// admits reports whether an address may be reached: one of the public internet,
// or one of the network that the upstream itself is in.
func (g *guide) admits(addr netip.Addr) bool {
	if !capability.Special(addr) {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, home := range g.home {
		if home == addr || home.IsLoopback() && addr.IsLoopback() || home.IsPrivate() && addr.IsPrivate() {
			return true
		}
	}
	return false
}

// isJSON reports whether a page says that it is JSON. Some servers answer every
// path with a page for people.
func (p *page) isJSON() bool {
	kind, _, err := mime.ParseMediaType(p.header.Get("Content-Type"))
	return err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
}

// object reads a page that is one JSON object.
func (p *page) object() (wire.Value, error) {
	var doc wire.Doc
	if err := doc.Parse(p.body, wire.Limits{Bytes: maxDocument, Depth: documentDepth}); err != nil {
		return wire.Value{}, errors.New("what it answered is no JSON that can be relied on") // the cause would quote it
	}
	if doc.Root().Kind() != wire.Object {
		return wire.Value{}, errors.New("what it answered is no JSON object")
	}
	return doc.Root(), nil
}
