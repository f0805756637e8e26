package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"capgate/wire"
)

const (
	// renewalTime is how long one may renew a token while the others wait. It is
	// longer than the exchange takes: who waits longer takes the first for dead.
	renewalTime = 2 * exchangeTime

	// renewalLook is how often those who wait look.
	renewalLook = 50 * time.Millisecond
)

// renewal is a renewal under way.
type renewal struct {
	done  chan struct{} // closed when one of the two is there
	token *token
	err   error
}

// renew returns a token in place of old. Whoever comes meanwhile shares the same
// renewal, and it does not end with the context of who began it: a refresh token
// is good once, and what it was given for must not get lost.
func (a *OAuth) renew(ctx context.Context, old *token) (*token, error) {
	a.mu.Lock()
	if a.flight == nil && a.o.Now().Before(a.paused) {
		err := a.why
		a.mu.Unlock()
		return nil, err
	}
	if a.flight == nil {
		a.flight = &renewal{done: make(chan struct{})}
		go a.fly(context.WithoutCancel(ctx), a.flight, old.Access)
	}
	f := a.flight
	a.mu.Unlock()
	select {
	case <-f.done:
		return f.token, f.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// fly is the renewal itself.
func (a *OAuth) fly(ctx context.Context, f *renewal, old string) {
	ctx, cancel := context.WithTimeout(ctx, 2*renewalTime)
	defer cancel()
	f.token, f.err = a.replace(ctx, old)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.flight, a.paused = nil, time.Time{}
	if gone := new(NeedsLogin); f.err != nil && !errors.As(f.err, &gone) {
		a.paused, a.why = a.o.Now().Add(renewPause), f.err
	}
	close(f.done)
}

// replace waits until the token is another than old, and makes it another itself
// when nobody else does.
func (a *OAuth) replace(ctx context.Context, old string) (*token, error) {
	for {
		t, version, err := a.reload()
		switch {
		case err != nil:
			return nil, err
		case t == nil:
			return nil, a.needsLogin(whyNone)
		case t.Access != old && t.Access != "":
			return t, nil
		case t.Refresh == "":
			return nil, a.needsLogin(whyExpired)
		}
		now := a.o.Now()
		if left := t.Renewing.Sub(now); left > 0 && left <= renewalTime {
			if err := sleep(ctx, renewalLook); err != nil {
				return nil, err
			}
			continue
		}
		mine := *t
		mine.Renewing = now.Add(renewalTime).UTC()
		version, err = a.save(&mine, version)
		if errors.Is(err, ErrTokenChanged) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return a.refresh(ctx, &mine, version)
	}
}

// refresh renews a token that nobody else renews. When somebody has logged in or
// out meanwhile, that is what counts.
func (a *OAuth) refresh(ctx context.Context, t *token, version string) (*token, error) {
	var got issued
	var err error
	if t.secret, err = a.o.secretFor(t); err == nil {
		g := &guide{Reach: a.o.Reach, home: t.Home}
		got, err = t.exchange(ctx, g, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {t.Refresh}})
	}
	next := t.apply(got, a.o.Now())
	var f fault
	switch {
	case errors.As(err, &f) && f.final(a.o.ClientSecret != nil):
		next, err = t.ended(), a.needsLogin(whyExpired)
	case err != nil:
		back := *t
		back.Renewing = time.Time{}
		next, err = &back, fmt.Errorf("the token of the upstream could not be renewed at the authorization server %s: %w", t.Issuer, err)
	default:
		err = a.learn(next)
	}
	_, unsaved := a.save(next, version)
	if errors.Is(unsaved, ErrTokenChanged) {
		return a.instead()
	}
	if unsaved != nil && err == nil {
		err = fmt.Errorf("the renewed token of the upstream could not be kept: %w", unsaved)
	}
	if err != nil {
		return nil, err
	}
	return next, nil
}

// instead is the token that somebody else has put there.
func (a *OAuth) instead() (*token, error) {
	t, _, err := a.reload()
	switch {
	case err != nil:
		return nil, err
	case t == nil:
		return nil, a.needsLogin(whyNone)
	case t.Access == "":
		return nil, a.needsLogin(whyExpired)
	}
	return t, nil
}

func (a *OAuth) save(t *token, version string) (string, error) {
	data, err := t.encode()
	if err != nil {
		return "", err
	}
	defer a.forget()
	return a.o.Tokens.Save(data, version)
}

// fault is an error in the words of the protocol. What a server writes besides is
// not repeated: it may hold anything.
type fault string

// Error returns a sentence about the server.
func (f fault) Error() string {
	if !slices.Contains(faults(), string(f)) {
		return "it answered with an error that the protocol does not know"
	}
	return "it answered " + string(f)
}

// final reports whether asking again would be of no use. What is said of a client is not final where
// its secret is the operator's: another may have taken its place, which the gateway is given later.
func (f fault) final(given bool) bool {
	return f == "invalid_grant" || !given && (f == "invalid_client" || f == "unauthorized_client")
}

// faults are the errors of RFC 6749, 7591, 8707 and OpenID Connect.
func faults() []string {
	return []string{
		"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type", "invalid_scope",
		"access_denied", "unsupported_response_type", "server_error", "temporarily_unavailable",
		"invalid_redirect_uri", "invalid_client_metadata", "invalid_software_statement", "unapproved_software_statement",
		"invalid_target", "interaction_required", "login_required", "account_selection_required", "consent_required",
	}
}

// exchange asks for a token.
func (t *token) exchange(ctx context.Context, g *guide, form url.Values) (issued, error) {
	form.Set("resource", t.Resource)
	p, err := t.post(ctx, g, t.TokenURL, form)
	if err != nil {
		return issued{}, err
	}
	object, err := p.accepted("it issued no token")
	if err != nil {
		return issued{}, err
	}
	return readIssued(object)
}

// post sends a form with what shows who the gateway is.
func (t *token) post(ctx context.Context, g *guide, to string, form url.Values) (*page, error) {
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	switch t.ClientAuth {
	case authBasic:
		r := http.Request{Header: header}
		r.SetBasicAuth(url.QueryEscape(t.ClientID), url.QueryEscape(cmp.Or(t.secret, t.ClientSecret)))
	case authPost:
		form.Set("client_id", t.ClientID)
		form.Set("client_secret", cmp.Or(t.secret, t.ClientSecret))
	default:
		form.Set("client_id", t.ClientID)
	}
	return g.fetch(ctx, inquiry{method: http.MethodPost, url: to, header: header, body: []byte(form.Encode())})
}

// accepted reads the object that a server answered with, if that is not an error.
func (p *page) accepted(otherwise string) (wire.Value, error) {
	good := p.status >= 200 && p.status < 300
	object, err := p.object()
	if err != nil && !good {
		return wire.Value{}, fmt.Errorf("%s: the status is %d", otherwise, p.status)
	}
	if err != nil {
		return wire.Value{}, err
	}
	if text, given, err := member(object, "error", maxScope); given || err != nil {
		return wire.Value{}, fmt.Errorf("%s: %w", otherwise, fault(text))
	}
	if !good {
		return wire.Value{}, fmt.Errorf("%s: the status is %d", otherwise, p.status)
	}
	return object, nil
}
