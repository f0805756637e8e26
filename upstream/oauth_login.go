package upstream

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"capgate/wire"
)

const (
	maxCode  = 4 << 10 // bytes of a code
	maxSaves = 4       // attempts to keep a token that others change as well
)

// Login is one attempt of a person to give the gateway a token.
type Login struct {
	oauth    *OAuth
	guide    *guide
	at       *authority
	client   client
	redirect string
	state    string
	verifier string
	spent    bool
}

// client is who the gateway is to an authorization server.
type client struct {
	id, secret, auth string
	isGiven          bool // the secret is the operator's
}

// Login finds the authorization server of the upstream, and registers with it
// unless the operator has. The answer comes to redirect, a URL of this machine.
func (a *OAuth) Login(ctx context.Context, redirect string) (*Login, error) {
	g := &guide{Reach: a.o.Reach}
	at, err := a.discover(ctx, g)
	if err != nil {
		return nil, err
	}
	if err := a.sameIssuer(at.issuer); err != nil {
		return nil, err
	}
	l := &Login{
		oauth: a, guide: g, at: at, redirect: redirect, client: client{id: a.o.ClientID, auth: authNone},
		state: rand.Text(), verifier: rand.Text() + rand.Text(),
	}
	secret, err := a.o.secret()
	if err != nil {
		return nil, err
	}
	switch {
	case a.o.ClientID == "":
		l.client, err = l.register(ctx)
	case a.o.ClientSecret != nil:
		l.client, err = a.client(at, secret)
	}
	if err != nil {
		return nil, fmt.Errorf("the authorization server %s: %w", at.issuer, err)
	}
	return l, nil
}

// client is that by which the operator has registered the gateway.
func (a *OAuth) client(at *authority, secret string) (c client, err error) {
	c = client{id: a.o.ClientID, secret: secret, isGiven: true}
	switch {
	case at.proofs == nil, slices.Contains(at.proofs, authBasic): // of RFC 8414
		c.auth = authBasic
	case slices.Contains(at.proofs, authPost):
		c.auth = authPost
	default:
		err = errProof
	}
	return c, err
}

var errProof = errors.New("it wants a proof of who the gateway is that the gateway cannot give")

// sameIssuer refuses another authorization server than the one before. That an
// upstream names another may be a move, or an attack: a person has to say so.
func (a *OAuth) sameIssuer(issuer string) error {
	t, err := a.current(a.o.Now(), true)
	if err != nil || t == nil || t.Issuer == issuer {
		return err
	}
	return fmt.Errorf("upstream %q names the authorization server %s, and before it was %s; if that is meant, log out first", a.o.Name, issuer, t.Issuer)
}

// Format prints the name of the upstream and nothing else, whatever is asked for.
func (l *Login) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "a login to "+l.oauth.o.Name) }

// Issuer is the authorization server that the person is sent to.
func (l *Login) Issuer() string { return l.at.issuer }

// Scopes are those that are asked for.
func (l *Login) Scopes() []string { return l.at.scopes }

// URL is where the person has to go.
func (l *Login) URL() (string, error) {
	u, err := safeURL(l.at.authorize)
	if err != nil {
		return "", err
	}
	q := u.Query()
	sum := sha256.Sum256([]byte(l.verifier))
	for key, value := range map[string]string{
		"response_type":         "code",
		"client_id":             l.client.id,
		"redirect_uri":          l.redirect,
		"state":                 l.state,
		"code_challenge":        base64.RawURLEncoding.EncodeToString(sum[:]),
		"code_challenge_method": challengePKCE,
		"resource":              l.at.resource,
		"scope":                 strings.Join(l.at.scopes, " "),
	} {
		if q.Set(key, value); value == "" {
			q.Del(key)
		}
	}
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// Expects reports whether an answer is one to this attempt.
func (l *Login) Expects(answer url.Values) bool {
	given := answer["state"]
	return len(given) == 1 && subtle.ConstantTimeCompare([]byte(given[0]), []byte(l.state)) == 1
}

// Finish takes the answer, and keeps the token that it is good for. It does so once.
func (l *Login) Finish(ctx context.Context, answer url.Values) error {
	if !l.Expects(answer) {
		return errors.New("the answer does not belong to this login")
	}
	if l.spent {
		return errors.New("the login has had its answer already")
	}
	l.spent = true
	code, err := l.code(answer)
	if err != nil {
		return fmt.Errorf("the authorization server %s: %w", l.at.issuer, err)
	}
	t := &token{
		Upstream: l.oauth.o.Name, URL: l.oauth.o.URL, Issuer: l.at.issuer, Resource: l.at.resource,
		TokenURL: l.at.token, RevokeURL: l.at.revoke, Home: l.guide.home,
		ClientID: l.client.id, ClientSecret: l.client.secret, ClientAuth: l.client.auth, Scopes: l.at.scopes,
	}
	if l.client.isGiven {
		t.ClientSecret, t.secret = "", l.client.secret
	}
	got, err := t.exchange(ctx, l.guide, url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {l.redirect}, "code_verifier": {l.verifier},
	})
	if err != nil {
		return fmt.Errorf("the authorization server %s: %w", l.at.issuer, err)
	}
	return l.oauth.keep(t.apply(got, l.oauth.o.Now()))
}

// code is what the answer holds, if it comes from the server that was asked. Of
// an answer from another nothing is believed, not even that it is an error.
func (l *Login) code(answer url.Values) (string, error) {
	for _, key := range []string{"code", "iss", "error"} {
		if len(answer[key]) > 1 {
			return "", fmt.Errorf("its answer says %s twice", key)
		}
	}
	switch iss := answer["iss"]; {
	case len(iss) == 0 && l.at.sendsIss:
		return "", errors.New("the answer does not say that it comes from there")
	case len(iss) == 1 && iss[0] != l.at.issuer:
		return "", errors.New("the answer comes from another one")
	}
	if len(answer["error"]) == 1 {
		return "", fault(answer.Get("error"))
	}
	code := answer.Get("code")
	if code == "" || len(code) > maxCode {
		return "", errors.New("its answer holds no code")
	}
	return code, nil
}

// keep replaces the token that is kept: who has logged in last is right.
func (a *OAuth) keep(t *token) error {
	if err := a.learn(t); err != nil {
		return err
	}
	data, err := t.encode()
	if err != nil {
		return err
	}
	for range maxSaves {
		_, version, err := a.reload()
		if err != nil {
			return err
		}
		if _, err = a.o.Tokens.Save(data, version); !errors.Is(err, ErrTokenChanged) {
			a.forget()
			return err
		}
	}
	return ErrTokenChanged
}

// register makes the gateway known to an authorization server. Each login has a
// registration of its own: the redirect goes to another port each time.
func (l *Login) register(ctx context.Context) (client, error) {
	if l.at.register == "" {
		return client{}, errors.New("it registers nobody by itself; write oauth: { client_id: … } with the id it gave you")
	}
	body := []byte(`{"client_name":"capgate","application_type":"native","token_endpoint_auth_method":"none",` +
		`"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"redirect_uris":[`)
	body = append(wire.AppendString(body, l.redirect), ']')
	if len(l.at.scopes) > 0 {
		body = wire.AppendString(append(body, `,"scope":`...), strings.Join(l.at.scopes, " "))
	}
	p, err := l.guide.fetch(ctx, inquiry{
		method: http.MethodPost, url: l.at.register, body: append(body, '}'),
		header: http.Header{"Content-Type": {"application/json"}},
	})
	if err != nil {
		return client{}, err
	}
	object, err := p.accepted("it did not register the gateway")
	if err != nil {
		return client{}, err
	}
	return readClient(object)
}

func readClient(object wire.Value) (c client, err error) {
	if c.id, err = needed(object, "client_id", maxClient); err != nil {
		return c, err
	}
	if c.secret, _, err = member(object, "client_secret", maxClient); err != nil {
		return c, err
	}
	if c.auth, _, err = member(object, "token_endpoint_auth_method", maxScope); err != nil {
		return c, err
	}
	switch {
	case c.secret == "" || c.auth == authNone:
		c.secret, c.auth = "", authNone
	case c.auth == "":
		c.auth = authBasic // of RFC 7591
	case c.auth != authBasic && c.auth != authPost:
		return c, errProof
	}
	return c, nil
}

// Logout forgets the token that is kept, and asks its issuer to make it of no use.
// It reports whether that was done: what is forgotten here may be good elsewhere. The gateway
// is the client that is written now, if the token was issued to that one.
func Logout(ctx context.Context, tokens TokenStore, r Reach, now OAuthOptions) (forgotten, revoked bool, err error) {
	for range maxSaves {
		data, version, err := tokens.Load()
		if err != nil || data == nil {
			return false, false, err
		}
		if _, err = tokens.Save(nil, version); errors.Is(err, ErrTokenChanged) {
			continue
		}
		if err != nil {
			return false, false, err
		}
		t, err := parseToken(data)
		return true, err == nil && t.revoke(ctx, r, &now), nil // what cannot be read is best forgotten
	}
	return false, false, ErrTokenChanged
}

// revoke takes the token back at its issuer.
func (t *token) revoke(ctx context.Context, r Reach, now *OAuthOptions) bool {
	t.secret, _ = now.secretFor(t) // without it nothing is taken back, and that is said
	form := url.Values{"token": {t.Refresh}, "token_type_hint": {"refresh_token"}}
	if t.Refresh == "" {
		form = url.Values{"token": {t.Access}, "token_type_hint": {"access_token"}}
	}
	if t.RevokeURL == "" || form.Get("token") == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, exchangeTime)
	defer cancel()
	p, err := t.post(ctx, &guide{Reach: r, home: t.Home}, t.RevokeURL, form)
	return err == nil && p.status == http.StatusOK
}
