package upstream_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"capgate/upstream"
)

// registered is an account whose authorization server knows the gateway by an id and a secret, which
// may be another each time that it is asked for.
func registered(t *testing.T, secret *string) (*account, func(*upstream.OAuthOptions)) {
	t.Helper()
	a := newAccount(t)
	a.issuer.redirects["given"] = redirectURI
	return a, func(o *upstream.OAuthOptions) {
		o.ClientID, o.Issuer = "given", a.issuer.URL+"/"
		o.ClientSecret = func() (string, error) {
			if *secret == "" {
				return "", errors.New("the secret cannot be had")
			}
			return *secret, nil
		}
	}
}

// TestOAuthOwnSecret: the secret that the operator was given is shown as the authorization server
// wants it, when somebody logs in, when the token is renewed, and when it is taken back. It is kept nowhere.
func TestOAuthOwnSecret(t *testing.T) {
	for _, tt := range []struct {
		proofs []string
		shown  func(url.Values) string
	}{
		{nil, basic},
		{[]string{"client_secret_post", "client_secret_basic"}, basic},
		{[]string{"none", "client_secret_post"}, func(form url.Values) string { return form.Get("client_secret") }},
	} {
		secret := "s3cret: of+the operator"
		a, by := registered(t, &secret)
		a.issuer.metadata = func(about map[string]any) {
			if delete(about, "registration_endpoint"); tt.proofs != nil {
				about["token_endpoint_auth_methods_supported"] = tt.proofs
			}
		}
		oauth := a.oauth(t, by)
		a.login(t, oauth)
		a.clock.pass(2 * time.Hour)
		secret = "the next one"
		header(t, oauth, false)
		var now upstream.OAuthOptions
		by(&now)
		if _, revoked, err := upstream.Logout(t.Context(), a.kept, upstream.Reach{}, now); !revoked || err != nil {
			t.Errorf("%v: revoked %v, %v", tt.proofs, revoked, err)
		}
		var shown []string
		for _, form := range append(a.issuer.forms, a.issuer.revocations...) {
			shown = append(shown, form.Get("client_id")+" "+tt.shown(form))
		}
		if diff := cmp.Diff([]string{"given s3cret: of+the operator", "given the next one", "given the next one"}, shown); diff != "" {
			t.Errorf("%v: %s", tt.proofs, diff)
		}
	}
}

// basic is the secret that came as a password, escaped as RFC 6749 has it.
func basic(form url.Values) string {
	text, _ := url.QueryUnescape(form.Get("basic"))
	return text
}

// TestOAuthOwnSecretOfAnother: a token that was issued to another client, or by another server, is
// renewed and taken back without the secret.
func TestOAuthOwnSecretOfAnother(t *testing.T) {
	for name, other := range map[string]func(*upstream.OAuthOptions){
		"client": func(o *upstream.OAuthOptions) { o.ClientID = "ours" },
		"server": func(o *upstream.OAuthOptions) { o.Issuer = "https://login.example.com" },
	} {
		secret := "s3cret-of-the-operator"
		a, by := registered(t, &secret)
		a.login(t, a.oauth(t, by))
		a.clock.pass(2 * time.Hour)
		header(t, a.oauth(t, func(o *upstream.OAuthOptions) { by(o); other(o) }), false)
		if form := a.issuer.forms[len(a.issuer.forms)-1]; form.Get("grant_type") != "refresh_token" || strings.Contains(form.Encode(), secret) {
			t.Errorf("to renew it, another %s is shown %v", name, form)
		}
		var now upstream.OAuthOptions
		by(&now)
		other(&now)
		if forgotten, _, err := upstream.Logout(t.Context(), a.kept, upstream.Reach{}, now); !forgotten || err != nil || len(a.issuer.revocations) != 1 {
			t.Fatalf("%s: forgotten %v, %v, asked %v", name, forgotten, err, a.issuer.revocations)
		}
		if got := a.issuer.revocations[0].Encode(); strings.Contains(got, secret) {
			t.Errorf("another %s is shown %s", name, got)
		}
	}
}

// TestOAuthOwnSecretIsNotKept: nothing of it is in the document.
func TestOAuthOwnSecretIsNotKept(t *testing.T) {
	secret := "s3cret-of-the-operator"
	a, by := registered(t, &secret)
	oauth := a.oauth(t, by)
	a.login(t, oauth)
	a.clock.pass(2 * time.Hour)
	header(t, oauth, false)
	if text := string(a.kept.data); strings.Contains(text, secret) || !strings.Contains(text, `"client_id":"given"`) {
		t.Errorf("kept is %s", text)
	}
}

// TestOAuthOwnSecretLacks: a token is not given up because the secret cannot be had for a while.
func TestOAuthOwnSecretLacks(t *testing.T) {
	secret := ""
	a, by := registered(t, &secret)
	oauth := a.oauth(t, by)
	if _, err := oauth.Login(t.Context(), redirectURI); err == nil || !strings.Contains(err.Error(), "cannot be had") {
		t.Errorf("a login without it: %v", err)
	}
	secret = "back"
	a.login(t, oauth)
	secret = ""
	a.clock.pass(2 * time.Hour)
	if value, err := oauth.Authorize(t.Context(), false); value != "" || err == nil || !strings.Contains(err.Error(), "cannot be had") || a.issuer.renewals() != 0 {
		t.Errorf("without it: %q, %v, after %d renewals", value, err, a.issuer.renewals())
	}
	secret = "back"
	a.clock.pass(time.Minute)
	if value := header(t, oauth, false); value == "" || a.issuer.renewals() != 1 {
		t.Errorf("with it: %q, after %d renewals", value, a.issuer.renewals())
	}
}

// TestOAuthOwnSecretElsewhere: whatever server is named, the secret goes to the one that gave it.
func TestOAuthOwnSecretElsewhere(t *testing.T) {
	secret := "s3cret-of-the-operator"
	a, by := registered(t, &secret)
	other := newIssuer(t)
	other.redirects["given"] = redirectURI
	other.metadata = func(map[string]any) { t.Error("the other one is asked who it is") }
	names := []string{other.URL}
	a.server.about = func(about map[string]any) { about["authorization_servers"] = names }
	if _, err := a.oauth(t, by).Login(t.Context(), redirectURI); err == nil || !strings.Contains(err.Error(), "oauth: issuer: says "+a.issuer.URL) {
		t.Errorf("another server is named: %v", err)
	}
	names = append(names, a.issuer.URL)
	a.login(t, a.oauth(t, by))
	if len(other.forms) > 0 || len(a.issuer.forms) != 1 {
		t.Errorf("asked were %v and %v", other.forms, a.issuer.forms)
	}
	for _, proofs := range []any{[]string{"private_key_jwt"}, []string{}, "client_secret_basic", 5} {
		a.issuer.metadata = func(about map[string]any) { about["token_endpoint_auth_methods_supported"] = proofs }
		if _, err := a.oauth(t, by).Login(t.Context(), redirectURI); err == nil || !strings.Contains(err.Error(), "cannot give") {
			t.Errorf("%v is wanted: %v", proofs, err)
		}
	}
	names, a.kept.data = names[1:], nil
	a.login(t, a.oauth(t, nil)) // who has no secret is not concerned
	for name, spoil := range map[string]func(*upstream.OAuthOptions){
		"id":     func(o *upstream.OAuthOptions) { o.ClientID = "" },
		"issuer": func(o *upstream.OAuthOptions) { o.Issuer = "" },
	} {
		o := upstream.OAuthOptions{Name: "tracker", URL: a.server.URL + "/mcp", Tokens: a.kept}
		by(&o)
		spoil(&o)
		if _, err := upstream.NewOAuth(o); err == nil {
			t.Errorf("there is a secret without %s", name)
		}
	}
}

// TestOAuthOwnSecretIsOld: that a secret is good no more says nothing of the token. It is renewed when
// the gateway has the secret that has taken its place.
func TestOAuthOwnSecretIsOld(t *testing.T) {
	for _, word := range []string{"invalid_client", "unauthorized_client"} {
		secret := "s3cret-of-the-operator"
		a, by := registered(t, &secret)
		oauth := a.oauth(t, by)
		a.login(t, oauth)
		a.issuer.grant = func(form url.Values, got map[string]any) int {
			if basic(form) == "the next one" {
				return 0
			}
			a.issuer.refreshes[form.Get("refresh_token")] = "given" // it is not used up
			clear(got)
			got["error"] = word
			return 401
		}
		a.clock.pass(2 * time.Hour)
		var gone *upstream.NeedsLogin
		if value, err := oauth.Authorize(t.Context(), false); value != "" || err == nil || errors.As(err, &gone) {
			t.Errorf("%s: with the old secret: %q, %v", word, value, err)
		}
		secret = "the next one"
		a.clock.pass(time.Minute)
		if value, err := oauth.Authorize(t.Context(), false); value == "" || err != nil {
			t.Errorf("%s: with the next secret: %q, %v", word, value, err)
		}
	}
}
