package upstream_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"capgate/upstream"
)

// attempt goes through a login, and returns the error that ends it.
func (a *account) attempt(t testing.TB, change func(*upstream.OAuthOptions)) error {
	t.Helper()
	l, err := a.oauth(t, change).Login(t.Context(), redirectURI)
	if err != nil {
		return err
	}
	if _, err := l.URL(); err != nil {
		return err
	}
	return l.Finish(t.Context(), browse(t, l))
}

// TestOAuthHostile: what an upstream or an authorization server may say to get a
// token that it should not have, or have one sent where it should not go.
func TestOAuthHostile(t *testing.T) {
	about := func(key string, value any) func(*account) {
		return func(a *account) { a.server.about = func(m map[string]any) { m[key] = value } }
	}
	metadata := func(key string, value any) func(*account) {
		return func(a *account) { a.issuer.metadata = func(m map[string]any) { m[key] = value } }
	}
	answer := func(change func(url.Values)) func(*account) {
		return func(a *account) { a.issuer.sendsIss, a.issuer.answer = true, change }
	}
	grant := func(key string, value any) func(*account) {
		return func(a *account) {
			a.issuer.grant = func(_ url.Values, m map[string]any) int { m[key] = value; return 0 }
		}
	}
	for _, tt := range []struct {
		name   string
		spoil  func(*account)
		text   string
		tokens int // requests that the token endpoint got
	}{
		{"resource of another", about("resource", "https://bank.example/mcp"), "about another server", 0},
		{"resource below", func(a *account) { a.server.about = func(m map[string]any) { m["resource"] = a.server.URL + "/mcp/x" } }, "about another server", 0},
		{"resource beside", func(a *account) { a.server.about = func(m map[string]any) { m["resource"] = a.server.URL + "/mc" } }, "about another server", 0},
		{"resource missing", about("resource", nil), "gave no resource", 0},
		{"no authorization server", about("authorization_servers", []string{}), "names no authorization server", 0},
		{"authorization server in clear", about("authorization_servers", []string{"http://auth.example"}), "cannot be one", 0},
		{"authorization server with a user", about("authorization_servers", []string{"https://me:you@auth.example"}), "cannot be one", 0},
		{"authorization server that is a script", about("authorization_servers", []string{"javascript:alert(1)"}), "cannot be one", 0},
		{"scope with a line break", about("scopes_supported", []string{"read\nwrite"}), "cannot be one", 0},
		{"description elsewhere", func(a *account) { a.server.challenge = `Bearer resource_metadata="https://evil.example/x"` }, "somewhere else", 0},
		{"description at another port", func(a *account) { a.server.challenge = `Bearer resource_metadata="` + a.issuer.URL + `/x"` }, "somewhere else", 0},
		{"description that is not there", func(a *account) { a.server.challenge = `Bearer resource_metadata="` + a.server.URL + `/x"` }, "does not describe itself where", 0},

		{"issuer of another", metadata("issuer", "https://honest.example"), "says it is another one", 0},
		{"issuer with another case", func(a *account) {
			a.issuer.metadata = func(m map[string]any) { m["issuer"] = strings.ToUpper(a.issuer.URL) }
		}, "says it is another one", 0},
		{"no PKCE", metadata("code_challenge_methods_supported", nil), "does not support PKCE", 0},
		{"plain PKCE", metadata("code_challenge_methods_supported", []string{"plain"}), "does not support PKCE", 0},
		{"token endpoint in clear", metadata("token_endpoint", "http://auth.example/token"), "travel in clear", 0},
		{"page that is a script", metadata("authorization_endpoint", "javascript:alert(1)"), "authorization_endpoint", 0},
		{"page that is a file", metadata("authorization_endpoint", "file:///etc/passwd"), "authorization_endpoint", 0},
		{"page with a space and a flag", metadata("authorization_endpoint", "https://auth.example/ --x\n"), "authorization_endpoint", 0},
		{"registration elsewhere", metadata("registration_endpoint", "https://169.254.169.254/latest"), "special address", 0},
		{"no registration", metadata("registration_endpoint", nil), "write oauth: { client_id", 0},
		{"twice", func(a *account) { a.issuer.metadata = func(m map[string]any) { m["Issuer"] = m["issuer"] } }, "no JSON that can be relied on", 0},
		{"too much", metadata("x", strings.Repeat("x", 300<<10)), "more than", 0},

		{"iss of another", answer(func(q url.Values) { q.Set("iss", "https://honest.example") }), "comes from another", 0},
		{"iss with a slash", answer(func(q url.Values) { q.Set("iss", q.Get("iss")+"/") }), "comes from another", 0},
		{"iss missing", answer(func(q url.Values) { q.Del("iss") }), "does not say that it comes from there", 0},
		{"iss twice", answer(func(q url.Values) { q.Add("iss", "https://honest.example") }), "says iss twice", 0},
		{"iss though it was not announced", func(a *account) {
			a.issuer.answer = func(q url.Values) { q.Set("iss", "https://honest.example") }
		}, "comes from another", 0},
		{"error of another", answer(func(q url.Values) { q.Set("iss", "https://honest.example"); q.Set("error", "access_denied") }), "comes from another", 0},
		{"denied", answer(func(q url.Values) { q.Del("code"); q.Set("error", "access_denied") }), "it answered access_denied", 0},
		{"unknown error", answer(func(q url.Values) { q.Set("error", q.Get("code")) }), "does not know", 0},
		{"state of another", answer(func(q url.Values) { q.Set("state", "x"+q.Get("state")[1:]) }), "does not belong to this login", 0},
		{"state missing", answer(func(q url.Values) { q.Del("state") }), "does not belong to this login", 0},
		{"state twice", answer(func(q url.Values) { q.Add("state", q.Get("state")) }), "does not belong to this login", 0},
		{"code twice", answer(func(q url.Values) { q.Add("code", "x") }), "says code twice", 0},
		{"code of another", answer(func(q url.Values) { q.Set("code", "guessed") }), "it answered invalid_grant", 1},

		{"not bearer", grant("token_type", "mac"), "not bearer", 1},
		{"no token", grant("access_token", ""), "gave no access_token", 1},
		{"token with a line break", grant("access_token", "a\r\nHost: x"), "cannot be sent", 1},
		{"token too long", grant("access_token", strings.Repeat("x", 17<<10)), "more than", 1},
		{"life that is none", grant("expires_in", -1), "no number of seconds", 1},
		{"life as text", grant("expires_in", "3600"), "no number of seconds", 1},
		{"error with a good status", grant("error", "invalid_scope"), "it answered invalid_scope", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newAccount(t)
			tt.spoil(a)
			err := a.attempt(t, nil)
			if err == nil || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got the error %v, not one with %q", err, tt.text)
			}
			if err != nil && a.issuer.secretIn(err.Error()) != "" {
				t.Errorf("the error repeats a secret: %v", err)
			}
			if len(a.issuer.forms) != tt.tokens || a.kept.data != nil {
				t.Errorf("the token endpoint got %d requests, and %d bytes were kept", len(a.issuer.forms), len(a.kept.data))
			}
		})
	}
}

// TestOAuthRedirects: nothing that is sent follows where an answer points.
func TestOAuthRedirects(t *testing.T) {
	for _, key := range []string{"token_endpoint", "registration_endpoint"} {
		var got []string
		thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.URL.Path) }))
		a := newAccount(t)
		moved := httptest.NewServer(http.RedirectHandler(thief.URL, http.StatusTemporaryRedirect))
		a.issuer.metadata = func(m map[string]any) { m[key] = moved.URL }
		if err := a.attempt(t, nil); err == nil || !strings.Contains(err.Error(), "redirects, which is not followed") {
			t.Errorf("%s: %v", key, err)
		}
		moved.Close()
		thief.Close()
		if len(got) != 0 {
			t.Errorf("%s: the thief got %v", key, got)
		}
	}
}

// TestOAuthAnotherIssuer: an upstream that names another authorization server than
// before is not believed until a person has logged out, and a renewal does not ask it.
func TestOAuthAnotherIssuer(t *testing.T) {
	a := newAccount(t)
	a.login(t, a.oauth(t, nil))
	evil := newIssuer(t)
	a.server.about = func(m map[string]any) { m["authorization_servers"] = []string{evil.URL} }
	a.clock.pass(2 * time.Hour)
	header(t, a.oauth(t, nil), false)
	if err := a.attempt(t, nil); err == nil || !strings.Contains(err.Error(), "log out first") {
		t.Error(err)
	}
	if len(evil.forms)+len(evil.registered) != 0 {
		t.Errorf("the other one got %v %v", evil.forms, evil.registered)
	}
	if _, _, err := upstream.Logout(t.Context(), a.kept, upstream.Reach{}, upstream.OAuthOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := a.attempt(t, nil); err != nil {
		t.Error(err)
	}
}

// TestOAuthOldServer: a server from before the protected resource metadata is its
// own authorization server, and has to say so.
func TestOAuthOldServer(t *testing.T) {
	a := newAccount(t)
	old := *a.server
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { a.issuer.Config.Handler.ServeHTTP(w, r) })
	old.Server = httptest.NewServer(mux)
	defer old.Close()
	a.server, a.issuer.metadata = &old, func(m map[string]any) { m["issuer"] = old.URL }
	if err := a.attempt(t, nil); err != nil {
		t.Error(err)
	}
	a.issuer.metadata = nil // it says that it is the one behind
	if err := a.attempt(t, nil); err == nil || !strings.Contains(err.Error(), "another one") {
		t.Error(err)
	}
}

// TestOAuthUnasked: a server that wants no token is not logged in to.
func TestOAuthUnasked(t *testing.T) {
	s := serve(t, func(s *server) { s.call = func(w http.ResponseWriter, _ *http.Request, m msg) { answer(w, m, "{}") } })
	oauth, err := upstream.NewOAuth(upstream.OAuthOptions{Name: "open", URL: s.URL, Tokens: &shelf{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := oauth.Login(t.Context(), redirectURI); err == nil || !strings.Contains(err.Error(), "asks for no token") {
		t.Error(err)
	}
}

// network is one of which a test says where its hosts are. All of them are served
// by one server, which trusts in TLS.
type network struct {
	hosts  map[string][]string
	server *httptest.Server

	mu     sync.Mutex
	dialed []string
	asked  []string
}

func (n *network) reach() upstream.Reach {
	roots := x509.NewCertPool()
	roots.AddCert(n.server.Certificate())
	return upstream.Reach{
		Roots: roots,
		Resolve: func(_ context.Context, host string) (all []netip.Addr, err error) {
			for _, text := range n.hosts[host] {
				all = append(all, netip.MustParseAddr(text))
			}
			if all == nil {
				err = errors.New("no such host")
			}
			return all, err
		},
		Dial: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			n.mu.Lock()
			n.dialed = append(n.dialed, to.String())
			n.mu.Unlock()
			return new(net.Dialer).DialContext(ctx, "tcp", n.server.Listener.Addr().String())
		},
	}
}

// TestOAuthReach: what an upstream names is not reached within a network that it
// is not in. The certificate of httptest is good for example.com and below.
func TestOAuthReach(t *testing.T) {
	const public, private, other = "93.184.215.14", "10.1.2.3", "10.9.8.7"
	for _, tt := range []struct {
		name, upstream string
		auth           []string
		token          string // the URL of the token endpoint, "" for the one at auth
		ok             bool
	}{
		{"public", public, []string{public}, "", true},
		{"private", public, []string{private}, "", false},
		{"one of two", public, []string{public, private}, "", false},
		{"metadata of a cloud", public, []string{"169.254.169.254"}, "", false},
		{"loopback", public, []string{"127.0.0.1"}, "", false},
		{"loopback as IPv6", public, []string{"::ffff:127.0.0.1"}, "", false},
		{"unique local", public, []string{"fd00:ec2::254"}, "", false},
		{"token endpoint", public, []string{public}, "https://inside.example.com/token", false},
		{"token endpoint by address", public, []string{public}, "https://10.0.0.1/token", false},
		{"token endpoint in clear", public, []string{public}, "http://localhost/token", false},
		{"not there", public, nil, "", false},
		{"both private", private, []string{other}, "", true},
		{"the same", "100.64.0.1", []string{"100.64.0.1"}, "", true},
		{"from private to loopback", private, []string{"127.0.0.1"}, "", false},
		{"from private to link-local", private, []string{"169.254.169.254"}, "", false},
		{"from loopback to private", "127.0.0.1", []string{private}, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := &network{hosts: map[string][]string{"mcp.example.com": {tt.upstream}, "auth.example.com": tt.auth, "inside.example.com": {private}, "localhost": {public}}}
			n.server = httptest.NewTLSServer(n.serve(tt.token))
			defer n.server.Close()
			kept := &shelf{}
			oauth, err := upstream.NewOAuth(upstream.OAuthOptions{Name: "tracker", URL: "https://mcp.example.com/mcp", ClientID: "ours", Tokens: kept, Reach: n.reach()})
			if err != nil {
				t.Fatal(err)
			}
			l, err := oauth.Login(t.Context(), redirectURI)
			if err == nil {
				var to string
				if to, err = l.URL(); err == nil {
					u, _ := url.Parse(to)
					err = l.Finish(t.Context(), url.Values{"code": {"c"}, "state": {u.Query().Get("state")}})
				}
			}
			if (err == nil) != tt.ok {
				t.Errorf("the error is %v, dialed were %v", err, n.dialed)
			}
			if (kept.data != nil) != tt.ok {
				t.Errorf("kept is %s", kept.data)
			}
			n.check(t, tt.ok, tt.upstream)
		})
	}
}

// check looks at what was dialed: nothing special but where the upstream is.
func (n *network) check(t *testing.T, ok bool, home string) {
	t.Helper()
	for _, to := range n.dialed {
		if !ok && to != home+":443" && !strings.HasPrefix(to, "93.184.") {
			t.Errorf("%s was dialed", to)
		}
		if strings.HasSuffix(to, ":80") {
			t.Errorf("%s was dialed in clear", to)
		}
	}
	for _, asked := range n.asked {
		if !ok && strings.HasSuffix(asked, "/token") {
			t.Errorf("%s was asked for a token", asked)
		}
	}
}

func (n *network) serve(token string) http.HandlerFunc {
	const auth = "https://auth.example.com"
	if token == "" {
		token = auth + "/token"
	}
	return func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		n.asked = append(n.asked, r.Host+r.URL.Path)
		n.mu.Unlock()
		switch r.Host + r.URL.Path {
		case "mcp.example.com/mcp":
			w.WriteHeader(http.StatusUnauthorized)
		case "mcp.example.com/.well-known/oauth-protected-resource":
			inJSON(w, 200, map[string]any{"resource": "https://mcp.example.com", "authorization_servers": []string{auth}})
		case "auth.example.com/.well-known/openid-configuration":
			inJSON(w, 200, map[string]any{"issuer": auth, "authorization_endpoint": auth + "/a", "token_endpoint": token, "code_challenge_methods_supported": []string{"S256"}})
		case "auth.example.com/token":
			inJSON(w, 200, map[string]any{"access_token": "a", "token_type": "bearer", "refresh_token": "r", "expires_in": 1})
		default:
			http.NotFound(w, r)
		}
	}
}

// TestOAuthReachLater: a renewal is held to where the upstream was at the login.
func TestOAuthReachLater(t *testing.T) {
	n := &network{hosts: map[string][]string{"mcp.example.com": {"93.184.215.14"}, "auth.example.com": {"93.184.215.14"}}}
	n.server = httptest.NewTLSServer(n.serve(""))
	defer n.server.Close()
	clock := newClock()
	oauth, err := upstream.NewOAuth(upstream.OAuthOptions{Name: "tracker", URL: "https://mcp.example.com/mcp", ClientID: "ours", Tokens: &shelf{}, Reach: n.reach(), Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	l, err := oauth.Login(t.Context(), redirectURI)
	if err != nil {
		t.Fatal(err)
	}
	to, _ := l.URL()
	u, _ := url.Parse(to)
	if err := l.Finish(t.Context(), url.Values{"code": {"c"}, "state": {u.Query().Get("state")}}); err != nil {
		t.Fatal(err)
	}
	header(t, oauth, false)
	n.hosts["mcp.example.com"], n.hosts["auth.example.com"] = []string{"10.0.0.1"}, []string{"10.0.0.1"}
	clock.pass(time.Minute)
	if _, err := oauth.Authorize(t.Context(), false); err == nil || !strings.Contains(err.Error(), "special address") {
		t.Error(err)
	}
}

// TestOAuthClear: over an unencrypted connection nobody logs in.
func TestOAuthClear(t *testing.T) {
	oauth, err := upstream.NewOAuth(upstream.OAuthOptions{Name: "tracker", URL: "http://mcp.example.com/mcp", Tokens: &shelf{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := oauth.Login(t.Context(), redirectURI); err == nil || !strings.Contains(err.Error(), "travel in clear") {
		t.Error(err)
	}
}

// TestOAuthUntrusted: who has no good certificate is sent nothing.
func TestOAuthUntrusted(t *testing.T) {
	n := &network{hosts: map[string][]string{"mcp.example.com": {"93.184.215.14"}}}
	n.server = httptest.NewUnstartedServer(n.serve(""))
	n.server.Config.ErrorLog = log.New(io.Discard, "", 0) // it is to fail
	n.server.StartTLS()
	defer n.server.Close()
	reach := n.reach()
	reach.Roots = x509.NewCertPool()
	oauth, err := upstream.NewOAuth(upstream.OAuthOptions{Name: "tracker", URL: "https://mcp.example.com/mcp", Tokens: &shelf{}, Reach: reach})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := oauth.Login(t.Context(), redirectURI); err == nil || !strings.Contains(err.Error(), "no certificate that is valid") || len(n.asked) != 0 {
		t.Errorf("%v %v", err, n.asked)
	}
}

// TestOAuthHidden: nothing that is printed by mistake holds a token.
func TestOAuthHidden(t *testing.T) {
	a := newAccount(t)
	oauth := a.oauth(t, nil)
	a.login(t, oauth)
	value := header(t, oauth, false)
	l, err := oauth.Login(t.Context(), redirectURI)
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(format, oauth); a.issuer.secretIn(text) != "" || strings.Contains(text, strings.TrimPrefix(value, "Bearer ")) {
			t.Errorf("%s prints %s", format, text)
		}
		if text := fmt.Sprintf(format, l); a.issuer.secretIn(text) != "" {
			t.Errorf("%s prints %s", format, text)
		}
	}
}
