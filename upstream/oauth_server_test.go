package upstream_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"capgate/upstream"
)

// issuer is an authorization server, as strict as RFC 6749 and 7636 want one to
// be, whose answers a test may spoil.
type issuer struct {
	*httptest.Server
	t testing.TB

	metadata func(map[string]any)                 // changes what it says of itself
	answer   func(url.Values)                     // changes what the browser is sent back with
	grant    func(url.Values, map[string]any) int // changes what it issues; a status other than 0 is answered instead
	client   map[string]any                       // more of what it registers: a secret, and how it is shown
	sendsIss bool

	mu         sync.Mutex
	n          int
	redirects  map[string]string // of each client
	codes      map[string]url.Values
	refreshes  map[string]string // the client of each refresh token that is good
	valid      map[string]bool   // access tokens
	registered []map[string]any
	forms      []url.Values // that the token endpoint got
	revoked    []string

	revocations []url.Values // what came with them
	issued      []string     // everything that must not be seen
}

func newIssuer(t testing.TB) *issuer {
	t.Helper()
	i := &issuer{t: t, redirects: map[string]string{}, codes: map[string]url.Values{}, refreshes: map[string]string{}, valid: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", i.describe)
	mux.HandleFunc("POST /register", i.register)
	mux.HandleFunc("GET /authorize", i.authorize)
	mux.HandleFunc("POST /token", i.token)
	mux.HandleFunc("POST /revoke", i.revoke)
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

// inJSON writes an object.
func inJSON(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
}

func (i *issuer) describe(w http.ResponseWriter, _ *http.Request) {
	about := map[string]any{
		"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
		"registration_endpoint": i.URL + "/register", "revocation_endpoint": i.URL + "/revoke",
		"code_challenge_methods_supported": []string{"plain", "S256"}, "response_types_supported": []string{"code"},
		"scopes_supported": []string{"read", "write", "offline_access"}, "authorization_response_iss_parameter_supported": i.sendsIss,
	}
	if i.metadata != nil {
		i.metadata(about)
	}
	inJSON(w, 200, about)
}

func (i *issuer) register(w http.ResponseWriter, r *http.Request) {
	var asked map[string]any
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		inJSON(w, 400, map[string]any{"error": "invalid_client_metadata"})
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.n++
	id := fmt.Sprintf("client-%d", i.n)
	i.redirects[id] = asked["redirect_uris"].([]any)[0].(string)
	i.registered = append(i.registered, asked)
	got := map[string]any{"client_id": id}
	maps.Copy(got, i.client)
	inJSON(w, 201, got)
}

// authorize is the page that the person says yes on.
func (i *issuer) authorize(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	q := r.URL.Query()
	redirect, known := i.redirects[q.Get("client_id")]
	if !known || redirect != q.Get("redirect_uri") || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" {
		http.Error(w, "that is no request to authorize anything", http.StatusBadRequest)
		return
	}
	i.n++
	code := fmt.Sprintf("code-of-the-person-%d", i.n)
	i.codes[code] = q
	i.issued = append(i.issued, code)
	back := url.Values{"code": {code}, "state": {q.Get("state")}}
	if i.sendsIss {
		back.Set("iss", i.URL)
	}
	if i.answer != nil {
		i.answer(back)
	}
	http.Redirect(w, r, redirect+"?"+back.Encode(), http.StatusFound)
}

func (i *issuer) token(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	form := r.PostForm
	if id, secret, ok := r.BasicAuth(); ok {
		form.Set("client_id", id)
		form.Set("basic", secret)
	}
	i.forms = append(i.forms, form)
	if !i.good(form) {
		inJSON(w, 400, map[string]any{"error": "invalid_grant", "error_description": "not good: " + strings.Join(i.issued, " ")})
		return
	}
	i.n++
	access, refresh := fmt.Sprintf("access-secret-%d", i.n), fmt.Sprintf("refresh-secret-%d", i.n)
	got := map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": 3600, "refresh_token": refresh, "scope": "read"}
	if i.grant != nil {
		if code := i.grant(form, got); code != 0 {
			inJSON(w, code, got)
			return
		}
	}
	i.valid = map[string]bool{access: true}
	i.refreshes[refresh] = form.Get("client_id")
	i.issued = append(i.issued, access, refresh)
	inJSON(w, 200, got)
}

// good uses up what the form shows.
func (i *issuer) good(form url.Values) bool {
	switch form.Get("grant_type") {
	case "authorization_code":
		q, ok := i.codes[form.Get("code")]
		delete(i.codes, form.Get("code"))
		sum := sha256.Sum256([]byte(form.Get("code_verifier")))
		return ok && base64.RawURLEncoding.EncodeToString(sum[:]) == q.Get("code_challenge") && form.Get("client_id") == q.Get("client_id") &&
			form.Get("redirect_uri") == q.Get("redirect_uri") && form.Get("resource") == q.Get("resource") && len(form.Get("code_verifier")) >= 43
	case "refresh_token":
		of, ok := i.refreshes[form.Get("refresh_token")]
		delete(i.refreshes, form.Get("refresh_token"))
		return ok && of == form.Get("client_id") && form.Get("resource") != ""
	}
	return false
}

func (i *issuer) revoke(_ http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.revoked = append(i.revoked, r.PostForm.Get("token"))
	if id, secret, ok := r.BasicAuth(); ok {
		r.PostForm.Set("client_id", id)
		r.PostForm.Set("basic", secret)
	}
	i.revocations = append(i.revocations, r.PostForm)
}

// renewals counts the refresh tokens that it was shown.
func (i *issuer) renewals() (n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, f := range i.forms {
		if f.Get("grant_type") == "refresh_token" {
			n++
		}
	}
	return n
}

// forget makes every refresh token one that has expired, and every access token too.
func (i *issuer) forget() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.refreshes, i.valid = map[string]string{}, map[string]bool{}
}

// secretIn finds something in a text that must be seen nowhere.
func (i *issuer) secretIn(text string) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, secret := range i.issued {
		if strings.Contains(text, secret) {
			return secret
		}
	}
	return ""
}

// guarded is an MCP server at /mcp that wants a token of an issuer.
type guarded struct {
	*httptest.Server
	inner *server

	challenge string               // "" for one that says where it describes itself
	about     func(map[string]any) // changes what it says of itself
}

func guard(t testing.TB, i *issuer) *guarded {
	t.Helper()
	g := &guarded{inner: &server{t: t, session: "s-1", caps: `{}`, got: make(chan msg, 10000)}}
	g.inner.call = func(w http.ResponseWriter, _ *http.Request, m msg) { answer(w, m, "{}") }
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		about := map[string]any{"resource": g.URL + "/mcp", "authorization_servers": []string{i.URL}, "scopes_supported": []string{"read"}}
		if g.about != nil {
			g.about(about)
		}
		inJSON(w, 200, about)
	})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		i.mu.Lock()
		ok := bearer && i.valid[token]
		i.mu.Unlock()
		if ok {
			g.inner.ServeHTTP(w, r)
			return
		}
		challenge := g.challenge
		if challenge == "" {
			challenge = `Bearer error="invalid_token", resource_metadata="` + g.URL + `/.well-known/oauth-protected-resource/mcp"`
		}
		w.Header().Set("WWW-Authenticate", challenge)
		http.Error(w, "who are you?", http.StatusUnauthorized)
	})
	g.Server = httptest.NewServer(mux)
	t.Cleanup(g.Close)
	return g
}

// shelf keeps a document in memory.
type shelf struct {
	mu      sync.Mutex
	data    []byte
	n       int
	onSave  func(n int) // before the nth save
	refuses error       // of every save
}

func (s *shelf) version() string {
	if s.data == nil {
		return ""
	}
	return fmt.Sprint(s.n)
}

func (s *shelf) Load() ([]byte, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data, s.version(), nil
}

func (s *shelf) Save(data []byte, version string) (string, error) {
	if s.onSave != nil {
		s.onSave(s.n + 1)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuses != nil {
		return "", s.refuses
	}
	if version != s.version() {
		return "", upstream.ErrTokenChanged
	}
	s.n++
	s.data = data
	return s.version(), nil
}

func (s *shelf) Changed(version string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return version != s.version(), nil
}

// clock is a time that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

const redirectURI = "http://127.0.0.1:1/callback"

// browse goes where a person is sent, and returns what the browser would bring back.
func browse(t testing.TB, l *upstream.Login) url.Values {
	t.Helper()
	to, err := l.URL()
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Get(to)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	back, err := resp.Location()
	if err != nil {
		text, _ := io.ReadAll(resp.Body)
		t.Fatalf("the authorization server says %s: %s", resp.Status, text)
	}
	if !strings.HasPrefix(back.String(), redirectURI+"?") {
		t.Fatalf("it sends the browser to %s", back)
	}
	return back.Query()
}
