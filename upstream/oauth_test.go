package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"capgate/upstream"
)

// account is an upstream that wants a token, who issues it, and where it is kept.
type account struct {
	issuer *issuer
	server *guarded
	kept   *shelf
	clock  *clock
	known  *sync.Map // the tokens that it was told to hide
}

func newAccount(t testing.TB) *account {
	t.Helper()
	i := newIssuer(t)
	return &account{i, guard(t, i), &shelf{}, newClock(), &sync.Map{}}
}

// oauth is what one process has of it.
func (a *account) oauth(t testing.TB, change func(*upstream.OAuthOptions)) *upstream.OAuth {
	t.Helper()
	o := upstream.OAuthOptions{
		Name: "tracker", URL: a.server.URL + "/mcp", Tokens: a.kept, Now: a.clock.Now,
		Learn: func(secret string) error { a.known.Store(secret, true); return nil },
	}
	if change != nil {
		change(&o)
	}
	oauth, err := upstream.NewOAuth(o)
	if err != nil {
		t.Fatal(err)
	}
	return oauth
}

// login logs a person in.
func (a *account) login(t testing.TB, oauth *upstream.OAuth) {
	t.Helper()
	l, err := oauth.Login(t.Context(), redirectURI)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Finish(t.Context(), browse(t, l)); err != nil {
		t.Fatal(err)
	}
}

// header is what is sent, which must be there.
func header(t testing.TB, oauth *upstream.OAuth, refresh bool) string {
	t.Helper()
	value, err := oauth.Authorize(t.Context(), refresh)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// needsLogin checks that a person has to do something, and is told what.
func needsLogin(t testing.TB, oauth *upstream.OAuth, refresh bool) {
	t.Helper()
	value, err := oauth.Authorize(t.Context(), refresh)
	var needs *upstream.NeedsLogin
	if !errors.As(err, &needs) || value != "" || !strings.Contains(err.Error(), "capgate upstreams login tracker") {
		t.Fatalf("got %q and the error %v", value, err)
	}
}

func TestOAuthLogin(t *testing.T) {
	a := newAccount(t)
	a.issuer.sendsIss = true
	oauth := a.oauth(t, nil)
	l, err := oauth.Login(t.Context(), redirectURI)
	if err != nil {
		t.Fatal(err)
	}
	if l.Issuer() != a.issuer.URL || !slices.Equal(l.Scopes(), []string{"read", "offline_access"}) {
		t.Errorf("the person is told of %s and %v", l.Issuer(), l.Scopes())
	}
	want := []map[string]any{{
		"client_name": "capgate", "application_type": "native", "token_endpoint_auth_method": "none", "redirect_uris": []any{redirectURI},
		"grant_types": []any{"authorization_code", "refresh_token"}, "response_types": []any{"code"}, "scope": "read offline_access",
	}}
	if diff := cmp.Diff(want, a.issuer.registered); diff != "" {
		t.Errorf("the registration (-want +got):\n%s", diff)
	}
	answer := browse(t, l)
	if err := l.Finish(t.Context(), answer); err != nil {
		t.Fatal(err)
	}
	if err := l.Finish(t.Context(), answer); err == nil {
		t.Error("the answer was taken twice")
	}
	if got := a.issuer.forms[0]; got.Get("resource") != a.server.URL+"/mcp" || got.Get("client_secret") != "" {
		t.Errorf("the token endpoint got %v", got)
	}

	c := dial(t, upstream.Endpoint{Name: "tracker", URL: a.server.URL + "/mcp", Authorize: oauth.Authorize}, upstream.Options{})
	if _, err := call(t.Context(), c, nil); err != nil {
		t.Error(err)
	}
	state, err := oauth.State()
	if err != nil {
		t.Fatal(err)
	}
	wantState := upstream.TokenState{Issuer: a.issuer.URL, Scopes: []string{"read"}, Expires: a.clock.Now().Add(time.Hour), Renewable: true}
	if diff := cmp.Diff(wantState, state); diff != "" {
		t.Errorf("the state (-want +got):\n%s", diff)
	}
	for _, secret := range a.issuer.issued {
		if _, known := a.known.Load(secret); !known && !strings.HasPrefix(secret, "code") {
			t.Errorf("nobody was told to hide %s", secret)
		}
	}
}

// TestOAuthWritten: what the operator writes is what is asked for.
func TestOAuthWritten(t *testing.T) {
	a := newAccount(t)
	a.issuer.redirects["ours"] = redirectURI
	l, err := a.oauth(t, func(o *upstream.OAuthOptions) { o.ClientID, o.Scopes = "ours", []string{"write"} }).Login(t.Context(), redirectURI)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Finish(t.Context(), browse(t, l)); err != nil {
		t.Fatal(err)
	}
	if len(a.issuer.registered) != 0 || !slices.Equal(l.Scopes(), []string{"write"}) {
		t.Errorf("it registered %v and asked for %v", a.issuer.registered, l.Scopes())
	}
}

// TestOAuthSecret: a client that is given a secret shows it as it was told to, and
// again when the token is renewed.
func TestOAuthSecret(t *testing.T) {
	for _, tt := range []struct{ method, basic, form, text string }{
		{"", "s%3A+1", "", ""}, // of RFC 7591
		{"client_secret_basic", "s%3A+1", "", ""},
		{"client_secret_post", "", "s: 1", ""},
		{"none", "", "", ""},
		{"private_key_jwt", "", "", "that the gateway cannot give"},
	} {
		a := newAccount(t)
		a.issuer.client = map[string]any{"client_secret": "s: 1"}
		if tt.method != "" {
			a.issuer.client["token_endpoint_auth_method"] = tt.method
		}
		err := a.attempt(t, nil)
		if tt.text != "" {
			if err == nil || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%s: %v", tt.method, err)
			}
			continue
		}
		a.clock.pass(2 * time.Hour)
		if header(t, a.oauth(t, nil), false); err != nil {
			t.Errorf("%s: %v", tt.method, err)
		}
		for _, form := range a.issuer.forms {
			if form.Get("basic") != tt.basic || form.Get("client_secret") != tt.form {
				t.Errorf("%s: it shows %v", tt.method, form)
			}
		}
	}
}

// TestOAuthNone: without a token a server that wants none is asked, and one that
// wants one is not asked twice.
func TestOAuthNone(t *testing.T) {
	a := newAccount(t)
	open := a.oauth(t, nil)
	if got := header(t, open, false); got != "" {
		t.Errorf("the header is %q", got)
	}
	needsLogin(t, open, true)
	needsLogin(t, a.oauth(t, func(o *upstream.OAuthOptions) { o.Required = true }), false)
	_, err := upstream.Dial(t.Context(), upstream.Endpoint{Name: "tracker", URL: a.server.URL + "/mcp", Authorize: open.Authorize}, upstream.Options{})
	var needs *upstream.NeedsLogin
	if !errors.As(err, &needs) || !strings.Contains(err.Error(), "capgate upstreams login tracker") {
		t.Error(err)
	}
}

// TestOAuthElsewhere: a token is for one upstream and one URL.
func TestOAuthElsewhere(t *testing.T) {
	a := newAccount(t)
	a.login(t, a.oauth(t, nil))
	for name, change := range map[string]func(*upstream.OAuthOptions){
		"url":  func(o *upstream.OAuthOptions) { o.URL += "/other" },
		"name": func(o *upstream.OAuthOptions) { o.Name = "other" },
	} {
		if got := header(t, a.oauth(t, change), false); got != "" {
			t.Errorf("another %s gets %q", name, got)
		}
	}
}

func TestOAuthRenewal(t *testing.T) {
	a := newAccount(t)
	oauth := a.oauth(t, nil)
	a.login(t, oauth)
	first := header(t, oauth, false)
	a.clock.pass(time.Hour - time.Minute)
	if got := header(t, oauth, false); got != first || a.issuer.renewals() != 0 {
		t.Error("it was renewed long before it expires")
	}
	a.clock.pass(45 * time.Second)
	second := header(t, oauth, false)
	if second == first || a.issuer.renewals() != 1 {
		t.Error("it was not renewed before it expires")
	}
	if got := header(t, oauth, true); got != second || a.issuer.renewals() != 1 {
		t.Error("a 401 to a request of before replaced the new token")
	}
	a.clock.pass(time.Minute)
	third := header(t, oauth, true)
	if third == second || a.issuer.renewals() != 2 {
		t.Error("a 401 did not replace the token")
	}
	a.clock.pass(2 * time.Hour)
	c := dial(t, upstream.Endpoint{Name: "tracker", URL: a.server.URL + "/mcp", Authorize: oauth.Authorize}, upstream.Options{})
	a.issuer.mu.Lock()
	a.issuer.valid = map[string]bool{} // taken back before its time
	a.issuer.mu.Unlock()
	a.clock.pass(time.Minute)
	if _, err := call(t.Context(), c, nil); err != nil || a.issuer.renewals() != 4 {
		t.Errorf("after a 401, with %d renewals: %v", a.issuer.renewals(), err)
	}
}

// TestOAuthRenewedOnce: of all who need a token, in whatever process, one renews it.
func TestOAuthRenewedOnce(t *testing.T) {
	a := newAccount(t)
	processes := []*upstream.OAuth{a.oauth(t, nil), a.oauth(t, nil), a.oauth(t, nil)}
	a.login(t, processes[0])
	for _, p := range processes {
		header(t, p, false)
	}
	for name, refresh := range map[string]bool{"expired": false, "refused": true} {
		before := a.issuer.renewals()
		a.clock.pass(2 * time.Hour)
		var got sync.Map
		var all sync.WaitGroup
		for i := range 60 {
			all.Go(func() {
				value, err := processes[i%len(processes)].Authorize(t.Context(), refresh)
				if err != nil {
					t.Error(err)
				}
				got.Store(value, true)
			})
		}
		all.Wait()
		n := 0
		got.Range(func(any, any) bool { n++; return true })
		if renewals := a.issuer.renewals() - before; n != 1 || renewals != 1 {
			t.Errorf("%s: %d tokens came of %d renewals", name, n, renewals)
		}
	}
}

// TestOAuthRenewalDetached: who gives up does not take the new token from the others.
func TestOAuthRenewalDetached(t *testing.T) {
	a := newAccount(t)
	oauth := a.oauth(t, nil)
	a.login(t, oauth)
	a.clock.pass(2 * time.Hour)
	begun, release := make(chan struct{}), make(chan struct{})
	a.issuer.grant = func(url.Values, map[string]any) int { close(begun); <-release; return 0 }
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { _, err := oauth.Authorize(ctx, false); left <- err }()
	<-begun
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(release)
	if got := header(t, oauth, false); got == "" || a.issuer.renewals() != 1 {
		t.Errorf("%q after %d renewals", got, a.issuer.renewals())
	}
}

// TestOAuthExpired: a refresh token that is of no more use is shown once.
func TestOAuthExpired(t *testing.T) {
	a := newAccount(t)
	oauth := a.oauth(t, nil)
	a.login(t, oauth)
	a.issuer.forget()
	a.clock.pass(2 * time.Hour)
	needsLogin(t, oauth, false)
	needsLogin(t, oauth, true)
	needsLogin(t, a.oauth(t, nil), false)
	if n := a.issuer.renewals(); n != 1 {
		t.Errorf("it was shown %d times", n)
	}
	if state, err := oauth.State(); err != nil || !state.Ended || state.Renewable {
		t.Errorf("%+v %v", state, err)
	}
	if text := a.issuer.secretIn(string(a.kept.data)); text != "" {
		t.Errorf("%s is still kept", text)
	}
	a.login(t, oauth)
	header(t, oauth, false)
}

// TestOAuthUnrenewable: without a refresh token it is good while it is.
func TestOAuthUnrenewable(t *testing.T) {
	a := newAccount(t)
	a.issuer.grant = func(_ url.Values, got map[string]any) int { delete(got, "refresh_token"); return 0 }
	oauth := a.oauth(t, nil)
	a.login(t, oauth)
	a.clock.pass(time.Hour - time.Second)
	header(t, oauth, false)
	needsLogin(t, oauth, true)
	a.clock.pass(2 * time.Second)
	needsLogin(t, oauth, false)
}

// TestOAuthUnwell: an authorization server that is unwell is asked again, but not
// at once; meanwhile a token that is still good is used.
func TestOAuthUnwell(t *testing.T) {
	a := newAccount(t)
	oauth := a.oauth(t, nil)
	a.login(t, oauth)
	first := header(t, oauth, false)
	a.issuer.grant = func(form url.Values, got map[string]any) int {
		a.issuer.refreshes[form.Get("refresh_token")] = form.Get("client_id") // it was not used
		clear(got)
		return http.StatusServiceUnavailable
	}
	a.clock.pass(time.Hour - 10*time.Second)
	if got := header(t, oauth, false); got != first {
		t.Errorf("the header is %q", got)
	}
	a.clock.pass(4 * time.Second)
	if header(t, oauth, false); a.issuer.renewals() != 1 {
		t.Error("it was asked again at once")
	}
	a.clock.pass(time.Minute)
	for range 2 {
		if _, err := oauth.Authorize(t.Context(), false); err == nil || !strings.Contains(err.Error(), "could not be renewed") {
			t.Error(err)
		}
	}
	if n := a.issuer.renewals(); n != 2 {
		t.Errorf("it was asked %d times", n)
	}
	a.issuer.mu.Lock()
	a.issuer.grant = nil
	a.issuer.mu.Unlock()
	a.clock.pass(time.Minute)
	header(t, oauth, false)
}

// TestOAuthOvertaken: what somebody else did during a renewal is what counts.
func TestOAuthOvertaken(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, a *account, other *upstream.OAuth)
		good bool
	}{
		{"logged out", func(t *testing.T, a *account, _ *upstream.OAuth) {
			if forgotten, _, err := upstream.Logout(t.Context(), a.kept, upstream.Reach{}, upstream.OAuthOptions{}); !forgotten || err != nil {
				t.Error(err)
			}
		}, false},
		{"logged in", func(t *testing.T, a *account, other *upstream.OAuth) { a.login(t, other) }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newAccount(t)
			oauth, other := a.oauth(t, nil), a.oauth(t, nil)
			a.login(t, oauth)
			a.clock.pass(2 * time.Hour)
			a.kept.onSave = func(n int) {
				if n == 3 { // the second of a renewal, which keeps what came of it
					a.kept.onSave = nil
					tt.do(t, a, other)
				}
			}
			value, err := oauth.Authorize(t.Context(), false)
			if tt.good {
				if err != nil || value != header(t, other, false) {
					t.Errorf("%q %v", value, err)
				}
				return
			}
			if needs := new(upstream.NeedsLogin); !errors.As(err, &needs) || a.kept.data != nil {
				t.Errorf("%q %v", value, err)
			}
		})
	}
}

// TestOAuthDeadRenewal: who died while renewing is not waited for for ever.
func TestOAuthDeadRenewal(t *testing.T) {
	a := newAccount(t)
	oauth := a.oauth(t, nil)
	a.login(t, oauth)
	a.clock.pass(2 * time.Hour)
	text := string(a.kept.data)
	text = text[:len(text)-1] + fmt.Sprintf(`,"renewing":%q}`, a.clock.Now().Add(20*time.Second).Format(time.RFC3339))
	a.kept.data, a.kept.n = []byte(text), a.kept.n+1
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := oauth.Authorize(ctx, false); !errors.Is(err, context.DeadlineExceeded) || a.issuer.renewals() != 0 {
		t.Errorf("somebody renews it: %v after %d renewals", err, a.issuer.renewals())
	}
	a.clock.pass(time.Minute)
	header(t, oauth, false)
}

func TestOAuthLogout(t *testing.T) {
	a := newAccount(t)
	oauth := a.oauth(t, nil)
	if forgotten, _, err := upstream.Logout(t.Context(), a.kept, upstream.Reach{}, upstream.OAuthOptions{}); forgotten || err != nil {
		t.Error("there was nothing to forget")
	}
	a.login(t, oauth)
	header(t, oauth, false)
	forgotten, revoked, err := upstream.Logout(t.Context(), a.kept, upstream.Reach{}, upstream.OAuthOptions{})
	if !forgotten || !revoked || err != nil || len(a.issuer.revoked) != 1 || !strings.HasPrefix(a.issuer.revoked[0], "refresh-secret") {
		t.Errorf("%v %v %v, revoked are %v", forgotten, revoked, err, a.issuer.revoked)
	}
	a.clock.pass(time.Second)
	if got := header(t, oauth, false); got != "" {
		t.Errorf("after that it is %q", got)
	}
}

// TestOAuthUnkept: what cannot be kept or hidden is not used.
func TestOAuthUnkept(t *testing.T) {
	full := errors.New("the disk is full")
	a := newAccount(t)
	oauth := a.oauth(t, nil)
	a.login(t, oauth)
	seen := a.oauth(t, func(o *upstream.OAuthOptions) { o.Learn = func(string) error { return full } })
	if value, err := seen.Authorize(t.Context(), false); !errors.Is(err, full) || value != "" {
		t.Errorf("%q %v", value, err)
	}
	a.clock.pass(2 * time.Hour)
	a.kept.refuses = full
	if value, err := oauth.Authorize(t.Context(), false); !errors.Is(err, full) || value != "" || a.issuer.renewals() != 0 {
		t.Errorf("%q %v", value, err)
	}
	a.kept.refuses = nil
	a.kept.data, a.kept.n = []byte(`{"access":"access-secret-0","what":1}`), a.kept.n+1
	if value, err := oauth.Authorize(t.Context(), false); err == nil || value != "" || strings.Contains(err.Error(), "secret") {
		t.Errorf("%q %v", value, err)
	}
}
