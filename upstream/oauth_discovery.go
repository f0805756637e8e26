package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"capgate/wire"
)

// authority is an authorization server, and what it is asked for.
type authority struct {
	issuer    string // as it calls itself
	authorize string
	token     string
	register  string   // "" when it registers nobody
	revoke    string   // "" when it does not say
	sendsIss  bool     // its answers name it
	proofs    []string // of who a client is, nil when it does not say

	resource string   // the server that the token is for
	scopes   []string // to ask for
}

// resource is what a server says of itself.
type resource struct {
	id     string
	issuer string
	scopes []string
}

// The well-known places of RFC 9728, RFC 8414 and OpenID Connect Discovery.
const (
	wellKnown         = "/.well-known/"
	aboutResource     = "oauth-protected-resource"
	aboutServer       = "oauth-authorization-server"
	aboutOpenID       = "openid-configuration"
	challengePKCE     = "S256"
	maxIssuers        = 16
	probe             = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	scopeForRefreshes = "offline_access"
)

// discover finds the authorization server of the upstream: the upstream names it,
// and it must say the same of itself.
func (a *OAuth) discover(ctx context.Context, g *guide) (*authority, error) {
	asks, asked, err := a.probe(ctx, g)
	if err != nil {
		return nil, err
	}
	r, err := a.describe(ctx, g, asks)
	if err != nil {
		return nil, err
	}
	if r == nil && !asked {
		return nil, fmt.Errorf("upstream %q asks for no token", a.o.Name)
	}
	if r == nil {
		// Before the revision 2025-06-18 a server was its own authorization server.
		r = &resource{id: canonical(a.o.URL), issuer: originOf(a.o.URL)}
	}
	if a.o.isOther(r.issuer) {
		return nil, fmt.Errorf("upstream %q names the authorization server %s, and oauth: issuer: says %s", a.o.Name, r.issuer, a.o.Issuer)
	}
	at, extra, err := a.meet(ctx, g, r.issuer)
	if err != nil {
		return nil, err
	}
	at.resource, at.scopes, err = r.id, a.o.Scopes, nil
	if at.scopes == nil {
		at.scopes, err = wanted(asks, r, extra)
	}
	return at, err
}

// wanted are the scopes to ask for where the operator names none: those that the
// server asks for, and what a token that can be renewed takes.
func wanted(asks challenge, r *resource, offered []string) ([]string, error) {
	scopes := r.scopes
	if asks.scope != "" {
		scopes = strings.Fields(asks.scope)
	}
	if slices.Contains(offered, scopeForRefreshes) && !slices.Contains(scopes, scopeForRefreshes) {
		scopes = append(slices.Clone(scopes), scopeForRefreshes)
	}
	return readScopes(scopes)
}

// probe asks the server something without a token, and reports how it asks for one.
func (a *OAuth) probe(ctx context.Context, g *guide) (challenge, bool, error) {
	p, err := g.fetch(ctx, inquiry{
		method: http.MethodPost, url: a.o.URL, body: []byte(probe), own: true,
		header: http.Header{"Content-Type": {"application/json"}},
	})
	if err != nil {
		return challenge{}, false, fmt.Errorf("upstream %q: %w", a.o.Name, err)
	}
	if p.status != http.StatusUnauthorized {
		return challenge{}, false, nil
	}
	c, _ := bearer(p.header.Values("WWW-Authenticate"))
	return c, true, nil
}

// describe reads what the server says of itself, nil when it says nothing. Where
// it says where to look, there is no other place to look at.
func (a *OAuth) describe(ctx context.Context, g *guide, asks challenge) (*resource, error) {
	where := []string{place(a.o.URL, aboutResource)}
	if root := originOf(a.o.URL) + wellKnown + aboutResource; root != where[0] {
		where = append(where, root)
	}
	if asks.metadata != "" {
		if _, err := safeURL(asks.metadata); err != nil || originOf(asks.metadata) != originOf(a.o.URL) {
			return nil, fmt.Errorf("upstream %q describes itself somewhere else, which is not believed", a.o.Name)
		}
		where = []string{asks.metadata}
	}
	for _, at := range where {
		object, err := g.document(ctx, at)
		if err != nil {
			return nil, fmt.Errorf("what upstream %q says of itself: %w", a.o.Name, err)
		}
		if object.Kind() == wire.Object {
			r, err := a.readResource(object)
			if err != nil {
				return nil, fmt.Errorf("what upstream %q says of itself: %w", a.o.Name, err)
			}
			return r, nil
		}
	}
	if asks.metadata != "" {
		return nil, fmt.Errorf("upstream %q does not describe itself where it says so", a.o.Name)
	}
	return nil, nil
}

// document reads a document, an invalid value when there is none.
func (g *guide) document(ctx context.Context, at string) (wire.Value, error) {
	p, err := g.fetch(ctx, inquiry{method: http.MethodGet, url: at})
	switch {
	case err != nil:
		return wire.Value{}, err
	case p.status >= 400 && p.status < 500, p.status == http.StatusOK && !p.isJSON():
		return wire.Value{}, nil
	case p.status != http.StatusOK:
		return wire.Value{}, fmt.Errorf("%s answers with the status %d", hostOf(at), p.status)
	}
	return p.object()
}

func (a *OAuth) readResource(object wire.Value) (*resource, error) {
	id, err := needed(object, "resource", maxURL)
	if err != nil {
		return nil, err
	}
	// Otherwise a token could be had for another server, by way of this one.
	if !holds(id, a.o.URL) {
		return nil, errors.New("it is about another server")
	}
	issuers, err := texts(object, "authorization_servers")
	switch {
	case err != nil:
		return nil, err
	case len(issuers) == 0:
		return nil, errors.New("it names no authorization server")
	case len(issuers) > maxIssuers:
		return nil, fmt.Errorf("it names more than %d authorization servers", maxIssuers)
	}
	scopes, err := texts(object, "scopes_supported")
	if err != nil {
		return nil, err
	}
	scopes, err = readScopes(scopes)
	known := slices.IndexFunc(issuers, func(one string) bool { return !a.o.isOther(one) })
	return &resource{id, issuers[max(known, 0)], scopes}, err
}

// holds reports whether a URL is a resource, or lies below it: a server may call
// itself by its origin.
func holds(id, text string) bool {
	r, err := safeURL(id)
	if err != nil || r.RawQuery != "" || r.ForceQuery {
		return id == text // word for word, or not at all
	}
	if originOf(id) != originOf(text) {
		return false
	}
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	above, below := strings.TrimSuffix(r.EscapedPath(), "/")+"/", strings.TrimSuffix(u.EscapedPath(), "/")+"/"
	return strings.HasPrefix(below, above) && !strings.Contains(below, "/../") && !strings.Contains(below, "/./")
}

// meet reads what an authorization server says of itself. The second result are
// the scopes it offers.
func (a *OAuth) meet(ctx context.Context, g *guide, issuer string) (*authority, []string, error) {
	u, err := safeURL(issuer)
	if err != nil || u.RawQuery != "" || u.ForceQuery {
		return nil, nil, fmt.Errorf("upstream %q names an authorization server that cannot be one", a.o.Name)
	}
	where := []string{place(issuer, aboutServer), place(issuer, aboutOpenID)}
	if path := strings.TrimSuffix(u.EscapedPath(), "/"); path != "" {
		where = append(where, originOf(issuer)+path+wellKnown+aboutOpenID)
	}
	for _, at := range where {
		object, err := g.document(ctx, at)
		if err != nil {
			return nil, nil, fmt.Errorf("the authorization server %s: %w", issuer, err)
		}
		if object.Kind() != wire.Object {
			continue
		}
		at, offered, err := readAuthority(object, issuer)
		if err != nil {
			return nil, nil, fmt.Errorf("the authorization server %s: %w", issuer, err)
		}
		return at, offered, nil
	}
	return nil, nil, fmt.Errorf("the authorization server %s does not describe itself", issuer)
}

// readAuthority reads the metadata of an authorization server. It must be about the
// issuer that it was looked for under: else one server could pass off the
// endpoints of another as its own.
func readAuthority(object wire.Value, issuer string) (at *authority, offered []string, err error) {
	at = new(authority)
	if at.issuer, err = needed(object, "issuer", maxURL); err != nil {
		return nil, nil, err
	}
	if strings.TrimSuffix(at.issuer, "/") != strings.TrimSuffix(issuer, "/") {
		return nil, nil, errors.New("it says it is another one")
	}
	for _, e := range []struct {
		key      string
		to       *string
		optional bool
	}{
		{"authorization_endpoint", &at.authorize, false},
		{"token_endpoint", &at.token, false},
		{"registration_endpoint", &at.register, true},
		{"revocation_endpoint", &at.revoke, true},
	} {
		if *e.to, err = endpoint(object, e.key, e.optional); err != nil {
			return nil, nil, err
		}
	}
	if v, ok := object.Get("authorization_response_iss_parameter_supported"); ok {
		if at.sendsIss, ok = v.Bool(); !ok {
			return nil, nil, errors.New("it does not say whether its answers name it")
		}
	}
	methods, err := texts(object, "code_challenge_methods_supported")
	if err != nil {
		return nil, nil, err
	}
	if !slices.Contains(methods, challengePKCE) {
		return nil, nil, errors.New("it does not support PKCE with S256, without which a code can be stolen")
	}
	if at.proofs, err = texts(object, "token_endpoint_auth_methods_supported"); err != nil {
		at.proofs = []string{} // whoever has a secret does not show it then; nobody else is concerned
	}
	offered, err = texts(object, "scopes_supported")
	return at, offered, err
}

func endpoint(object wire.Value, key string, optional bool) (string, error) {
	text, given, err := member(object, key, maxURL)
	switch {
	case err != nil:
		return "", err
	case optional && !given:
		return "", nil
	case text == "":
		return "", fmt.Errorf("it gave no %s", key)
	}
	if _, err := safeURL(text); err != nil {
		return "", fmt.Errorf("its %s: %w", key, err)
	}
	return text, nil
}

// place is where a document about a URL is: its path stands behind the well-known one.
func place(text, about string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return originOf(text) + wellKnown + about + strings.TrimSuffix(u.EscapedPath(), "/")
}

// originOf is the scheme, the host and the port of a URL, "" if it is none.
func originOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	host := strings.ToLower(u.Host)
	if u.Scheme == "https" {
		host = strings.TrimSuffix(host, ":443")
	} else {
		host = strings.TrimSuffix(host, ":80")
	}
	return u.Scheme + "://" + host
}

// canonical is a URL as the id of a resource.
func canonical(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	rest := strings.TrimSuffix(u.EscapedPath(), "/")
	if u.RawQuery != "" {
		rest += "?" + u.RawQuery
	}
	return originOf(text) + rest
}

func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "it"
	}
	return u.Host
}
