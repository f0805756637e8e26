package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// OAuthOptions say for which upstream a token is, and where it is kept.
type OAuthOptions struct {
	Name  string // of the upstream
	Login string // what a person does who is to log in to it; "": the command with its name
	URL   string // of the upstream: a token is for this URL and for no other

	ClientID string   // by which the gateway is known to the authorization server, "" to register
	Scopes   []string // to ask for, nil for those that the server wants

	// Issuer is the authorization server that knows the gateway, "" for the one that the server
	// names: whoever says where to log in must not say who is shown a secret.
	Issuer string

	// ClientSecret is what shows that the gateway is that client, nil where nothing does. It is
	// asked each time, and not kept. There must be an Issuer.
	ClientSecret func() (string, error)

	// Required is set when the server is known to want a token, so that without one
	// it is not asked at all.
	Required bool

	Tokens TokenStore
	Reach  Reach

	// Learn is told each token before it is used, so that it can be taken out of
	// what the server says. With its error the token is not used. Nil forgets it.
	Learn func(token string) error

	Now func() time.Time // nil is time.Now
}

// TokenStore keeps one document. It holds tokens in clear, and is for nobody but
// the user of the gateway to read.
type TokenStore interface {
	// Load returns the document and its version, nil and "" where there is none.
	Load() (data []byte, version string, err error)

	// Save replaces the version that was loaded; nil removes it. The error is
	// [ErrTokenChanged] when somebody else has changed it meanwhile.
	Save(data []byte, version string) (next string, err error)

	// Changed reports whether there is another version than the one named.
	Changed(version string) (bool, error)
}

// ErrTokenChanged says that somebody else has changed the document meanwhile.
var ErrTokenChanged = errors.New("the token was changed by somebody else meanwhile")

// NeedsLogin is the error when there is no token that a server would accept.
type NeedsLogin struct {
	Why string // a sentence about "it", the server
	Do  string // what a person has to do
}

// Error returns the sentence, and what helps.
func (e *NeedsLogin) Error() string { return e.Why + "; a person has to " + e.Do }

// The ways to have no token.
const (
	whyNone    = "it wants a token, and nobody has logged in to it"
	whyExpired = "its token has expired, and cannot be renewed"
	whyRefused = "it no longer accepts its token, which cannot be renewed"
)

const (
	// renewEarly is how long before its end a token is renewed, so that it does not
	// expire on its way.
	renewEarly = 30 * time.Second

	// settling is how long a new token is not replaced because of a 401: requests
	// that were sent with the one before are still being answered.
	settling = 10 * time.Second

	// lookPause is how long it is believed that nobody else has changed the token.
	lookPause = 100 * time.Millisecond

	// renewPause is how long no renewal is tried after one that failed.
	renewPause = 5 * time.Second
)

// OAuth gets, keeps and renews the token of an upstream. It is safe for use by
// several goroutines, and any number of them, in any number of processes, may
// share a [TokenStore]: one of them renews, and the others wait for it.
type OAuth struct {
	o OAuthOptions

	mu      sync.Mutex
	held    *token // nil for none
	version string // of held
	loaded  bool   // held is what was there
	looked  time.Time
	flight  *renewal
	paused  time.Time // no renewal is tried before
	why     error
}

// NewOAuth makes what keeps the token of an upstream. It asks nobody anything yet.
func NewOAuth(o OAuthOptions) (*OAuth, error) {
	if _, err := parseURL(o.URL); err != nil {
		return nil, fmt.Errorf("upstream %q has no usable URL: %w", o.Name, err)
	}
	if o.Tokens == nil {
		return nil, fmt.Errorf("upstream %q has nowhere to keep a token", o.Name)
	}
	if o.ClientSecret != nil && (o.ClientID == "" || o.Issuer == "") {
		return nil, fmt.Errorf("upstream %q has a secret of the gateway, and does not say who knows it", o.Name)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Learn == nil {
		o.Learn = func(string) error { return nil }
	}
	return &OAuth{o: o}, nil
}

// isOther reports whether an authorization server is another than the one that is written.
func (o *OAuthOptions) isOther(issuer string) bool {
	return o.Issuer != "" && strings.TrimSuffix(issuer, "/") != strings.TrimSuffix(o.Issuer, "/")
}

// secret is what shows who the gateway is, "" where nothing does.
func (o *OAuthOptions) secret() (string, error) {
	if o.ClientSecret == nil {
		return "", nil
	}
	return o.ClientSecret()
}

// secretFor is the secret by which a token is renewed and taken back, "" where the token was issued to
// another client, or by another server.
func (o *OAuthOptions) secretFor(t *token) (string, error) {
	if o.Issuer == "" || o.isOther(t.Issuer) || t.ClientID != o.ClientID {
		return "", nil
	}
	return o.secret()
}

// Format prints the name of the upstream and nothing else, whatever is asked for.
func (a *OAuth) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "the token of "+a.o.Name) }

// Authorize returns the Authorization header of a request, "" where the server has
// not asked for one. It is what [Endpoint] asks: refresh says that the server has
// answered 401. The error is a [*NeedsLogin] when a person has to do something.
func (a *OAuth) Authorize(ctx context.Context, refresh bool) (string, error) {
	now := a.o.Now()
	t, err := a.current(now, refresh)
	if err != nil {
		return "", err
	}
	switch {
	case t == nil && (refresh || a.o.Required):
		return "", a.needsLogin(whyNone)
	case t == nil:
		return "", nil
	case t.Access == "":
		return "", a.needsLogin(whyExpired)
	case refresh && t.settles(now), !refresh && !t.ends(now, renewEarly):
		return t.header(), nil
	case t.Refresh != "":
		return a.renewed(ctx, t, refresh)
	case refresh:
		return "", a.needsLogin(whyRefused)
	case !t.ends(now, 0):
		return t.header(), nil
	}
	return "", a.needsLogin(whyExpired)
}

// renewed waits for a new token. The old one will do while it is good: that it
// could not be renewed early harms nobody.
func (a *OAuth) renewed(ctx context.Context, old *token, refused bool) (string, error) {
	t, err := a.renew(ctx, old)
	if err == nil {
		return t.header(), nil
	}
	var gone *NeedsLogin
	if !refused && !old.ends(a.o.Now(), 0) && !errors.As(err, &gone) && ctx.Err() == nil {
		return old.header(), nil
	}
	return "", err
}

func (a *OAuth) needsLogin(why string) error {
	return &NeedsLogin{Why: why, Do: cmp.Or(a.o.Login, "run: capgate upstreams login "+a.o.Name)}
}

// current returns the token that is kept, nil for none.
func (a *OAuth) current(now time.Time, look bool) (*token, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if age := now.Sub(a.looked); a.loaded && !look && age >= 0 && age < lookPause {
		return a.held, nil
	}
	if a.loaded {
		changed, err := a.o.Tokens.Changed(a.version)
		if err != nil {
			return nil, fmt.Errorf("the token of the upstream cannot be read: %w", err)
		}
		if a.looked = now; !changed {
			return a.held, nil
		}
	}
	t, _, err := a.load()
	return t, err
}

// load reads the token that is kept. What was kept for another server, or for
// another URL of it, is none. The lock is held.
func (a *OAuth) load() (*token, string, error) {
	a.loaded = false
	data, version, err := a.o.Tokens.Load()
	if err != nil {
		return nil, "", fmt.Errorf("the token of the upstream cannot be read: %w", err)
	}
	var t *token
	if data != nil {
		if t, err = parseToken(data); err != nil {
			return nil, "", err
		}
		if t.Upstream != a.o.Name || t.URL != a.o.URL {
			t = nil
		}
	}
	if t != nil {
		if err := a.learn(t); err != nil {
			return nil, "", err
		}
	}
	a.held, a.version, a.loaded, a.looked = t, version, true, a.o.Now()
	return t, version, nil
}

func (a *OAuth) reload() (*token, string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.load()
}

// forget has the token read again: what was read is not what is kept any more.
func (a *OAuth) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.loaded = false
}

// learn makes the values of a token known to whoever has to hide them.
func (a *OAuth) learn(t *token) error {
	for _, secret := range []string{t.Access, t.Refresh, t.ClientSecret} {
		if secret == "" {
			continue
		}
		if err := a.o.Learn(secret); err != nil {
			return fmt.Errorf("the token of the upstream cannot be used: %w", err)
		}
	}
	return nil
}

// TokenState is what may be said of a token.
type TokenState struct {
	Issuer    string    // who issued it, "" when there is none
	Scopes    []string  // that it was issued for, as far as is known
	Expires   time.Time // zero when that is not known
	Renewable bool      // it is renewed without anybody doing anything
	Ended     bool      // a person has to log in again
}

// State says what is kept.
func (a *OAuth) State() (TokenState, error) {
	t, err := a.current(a.o.Now(), true)
	if err != nil || t == nil {
		return TokenState{}, err
	}
	return TokenState{
		Issuer: t.Issuer, Scopes: t.Scopes, Expires: t.Expires, Renewable: t.Refresh != "",
		Ended: t.Access == "" || t.Refresh == "" && t.ends(a.o.Now(), 0),
	}, nil
}
