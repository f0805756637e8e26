package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capgate/config"
)

// knows reports whether a request is one of the client that is known, where that must be shown.
func (s *tracker) knows(r *http.Request) bool {
	id, secret, _ := r.BasicAuth()
	switch r.URL.Path {
	case "/register":
		return false
	case "/token", "/revoke":
		return id == "given" && secret == s.client
	}
	return true
}

// given is a desk whose gateway is a client that the tracker knows.
func given(t *testing.T) *desk {
	t.Helper()
	d := newDesk(t)
	d.tracker.client = d.tracker.secret("client")
	written := "agents: ./agents\nsandbox: ./work\nsecrets: { tracker: { file: ./secret } }\nupstreams:\n  tracker:\n    url: " + d.tracker.URL + "/mcp\n    unmediated: true\n" +
		"    oauth: { client_id: given, client_secret: \"{{secret:tracker}}\", issuer: \"" + d.tracker.URL + "\" }\n"
	for name, text := range map[string]string{"capgate.yml": written, "secret": d.tracker.client} {
		if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// TestLoginAsGivenClient: where a server registers nobody, the gateway is the client that the operator
// was given, with its secret, which is printed and kept nowhere.
func TestLoginAsGivenClient(t *testing.T) {
	d := given(t)
	if printed, code := d.login(); code != exitOK {
		t.Fatalf("exit %d: %s", code, printed)
	}
	if got := d.call(); !strings.Contains(got, "there are three") {
		t.Errorf("with a token the call gets %s", got)
	}
	d.age()
	d.tracker.access = "another"
	if got := d.call(); !strings.Contains(got, "there are three") || d.tracker.renewed != 1 {
		t.Errorf("after %d renewals the call gets %s", d.tracker.renewed, got)
	}
	if printed, code := d.does(nil, "upstreams", "logout", "tracker"); code != exitOK || !strings.Contains(printed, "was taken back") || len(d.tracker.revoked) != 1 {
		t.Errorf("exit %d: %s", code, printed)
	}
	if err := os.Remove(filepath.Join(d.dir, "secret")); err != nil {
		t.Fatal(err)
	}
	d.check()
}

// TestLogoutWithoutSecret: a token is forgotten although the secret cannot be had, and it is said that
// this is why it was not taken back.
func TestLogoutWithoutSecret(t *testing.T) {
	d := given(t)
	if printed, code := d.login(); code != exitOK {
		t.Fatalf("exit %d: %s", code, printed)
	}
	if err := os.Remove(filepath.Join(d.dir, "secret")); err != nil {
		t.Fatal(err)
	}
	printed, code := d.does(nil, "upstreams", "logout", "tracker")
	if code != exitOK || !strings.Contains(printed, "is forgotten; who issued it did not take it back") || !strings.Contains(printed, `secret "tracker": open `) || len(d.tracker.revoked) > 0 {
		t.Errorf("exit %d: %s", code, printed)
	}
}

// TestLoginMixedUp: an answer from another authorization server changes nothing.
func TestLoginMixedUp(t *testing.T) {
	d := newDesk(t)
	d.tracker.wrong = "https://honest.example"
	printed, code := d.login("--json")
	if code != exitRed || !strings.Contains(printed, "the answer comes from another one") || d.tracker.access != "" {
		t.Errorf("exit %d: %s", code, printed)
	}
	d.check()
}

// TestSecretFromElsewhere: a server whose secrets come from elsewhere by now is started anew, as it would
// use what is there no more. One that uses others goes on.
func TestSecretFromElsewhere(t *testing.T) {
	identity := func(u config.Upstream, from config.Secret) string {
		s := servers{cfg: &config.Config{Secrets: map[string]config.Secret{"key": from, "still": {Env: "STILL"}}}}
		return s.identity(&u)
	}
	for name, u := range map[string]config.Upstream{
		"environment": {Command: []string{"a"}, Cwd: "/", Env: map[string]string{"KEY": "{{secret:key}}"}},
		"header":      {URL: "https://a.example", Headers: map[string]string{"Authorization": "Bearer {{secret:still}}{{secret:key}}"}},
		"login":       {URL: "https://a.example", OAuth: &config.OAuth{ClientID: "a", ClientSecret: "{{secret:key}}", Issuer: "https://b.example"}},
	} {
		before, again := identity(u, config.Secret{Env: "ONE"}), identity(u, config.Secret{Env: "ONE"})
		if next := identity(u, config.Secret{File: "/one"}); before != again || before == next {
			t.Errorf("%s: %s, %s again, and %s with another source", name, before, again, next)
		}
	}
	other := config.Upstream{URL: "https://a.example", Headers: map[string]string{"Authorization": "Bearer {{secret:still}}"}}
	if before, next := identity(other, config.Secret{Env: "ONE"}), identity(other, config.Secret{Env: "TWO"}); before != next {
		t.Errorf("the secret of another server: %s and then %s", before, next)
	}
}

// TestTokenOfOthers: a token is used by no other client, and by none that expects it of another server.
// What nobody writes makes no difference to a token that is there.
func TestTokenOfOthers(t *testing.T) {
	plain := config.Upstream{Name: "a", URL: "https://a.example", OAuth: &config.OAuth{ClientID: "a"}}
	const before = "a.b955236d0d76ab55ce63d6d3e65e2be3f9abd8faa1996c3882deb7c342bb1100" // the hash of the URL, the client and no scopes
	keys := map[string]string{"plain": oauthKey(&plain)}
	for name, o := range map[string]config.OAuth{
		"client": {ClientID: "b"}, "secret": {ClientID: "a", ClientSecret: "{{secret:x}}"},
		"server": {ClientID: "a", Issuer: "https://b.example"}, "scope": {ClientID: "a", Scopes: []string{"read"}},
	} {
		u := plain
		u.OAuth = &o
		for other, key := range keys {
			if oauthKey(&u) == key {
				t.Errorf("%s: it is the token of %s", name, other)
			}
		}
		keys[name] = oauthKey(&u)
	}
	if keys["plain"] != before {
		t.Errorf("a token is forgotten that is there: %s", keys["plain"])
	}
}
