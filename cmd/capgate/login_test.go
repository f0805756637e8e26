package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"capgate/config"
	"capgate/proxy"
	"capgate/upstream"
)

// tracker is an MCP server that wants a token, and the authorization server that
// issues it, both on this machine.
type tracker struct {
	*httptest.Server

	mu      sync.Mutex
	n       int
	asked   url.Values // what the person was asked to allow
	access  string     // the token that is good
	refresh string     // and the one that renews it
	renewed int
	secrets []string
	revoked []string
	words   string // the token that is issued, "" for one that is made
	wrong   string // the issuer that answers say they come from, "" for the true one
	client  string // the secret of the one client that it knows, "" where all may register
}

func newTracker(t *testing.T) *tracker {
	t.Helper()
	s := &tracker{}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *tracker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	say := func(code int, v map[string]any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(v)
	}
	if s.client != "" && !s.knows(r) {
		say(401, map[string]any{"error": "invalid_client"})
		return
	}
	switch r.URL.Path {
	case "/mcp":
		s.mcp(w, r, say)
	case "/.well-known/oauth-protected-resource/mcp":
		say(200, map[string]any{"resource": s.URL + "/mcp", "authorization_servers": []string{s.URL}})
	case "/.well-known/oauth-authorization-server":
		say(200, map[string]any{
			"issuer": s.URL, "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token", "registration_endpoint": s.URL + "/register",
			"revocation_endpoint": s.URL + "/revoke", "code_challenge_methods_supported": []string{"S256"}, "authorization_response_iss_parameter_supported": true,
		})
	case "/register":
		say(201, map[string]any{"client_id": "c"})
	case "/authorize":
		s.asked = r.URL.Query()
		iss := s.URL
		if s.wrong != "" {
			iss = s.wrong
		}
		back := url.Values{"code": {s.secret("code")}, "state": {s.asked.Get("state")}, "iss": {iss}}
		http.Redirect(w, r, s.asked.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
	case "/token":
		s.token(r, say)
	case "/revoke":
		s.revoked = append(s.revoked, r.FormValue("token"))
	default:
		http.NotFound(w, r)
	}
}

// secret makes something that nobody may see.
func (s *tracker) secret(kind string) string {
	s.n++
	text := fmt.Sprintf("%s-of-the-operator-%d", kind, s.n)
	s.secrets = append(s.secrets, text)
	return text
}

func (s *tracker) token(r *http.Request, say func(int, map[string]any)) {
	_ = r.ParseForm()
	sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
	proven := s.asked.Get("code_challenge") == base64.RawURLEncoding.EncodeToString(sum[:])
	renews := r.PostForm.Get("grant_type") == "refresh_token" && r.PostForm.Get("refresh_token") == s.refresh && s.refresh != ""
	if !proven && !renews || r.PostForm.Get("resource") != s.URL+"/mcp" {
		say(400, map[string]any{"error": "invalid_grant", "error_description": strings.Join(s.secrets, " ")})
		return
	}
	if renews {
		s.renewed++
	}
	if s.access, s.refresh = s.words, s.secret("refresh"); s.access == "" {
		s.access = s.secret("access")
	}
	say(200, map[string]any{"access_token": s.access, "refresh_token": s.refresh, "token_type": "Bearer", "expires_in": 3600, "scope": "read"})
}

func (s *tracker) mcp(w http.ResponseWriter, r *http.Request, say func(int, map[string]any)) {
	if s.access == "" || r.Header.Get("Authorization") != "Bearer "+s.access {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+s.URL+`/.well-known/oauth-protected-resource/mcp", scope="read"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var m struct {
		ID     json.RawMessage
		Method string
	}
	_ = json.NewDecoder(r.Body).Decode(&m)
	result := map[string]any{}
	switch m.Method {
	case "initialize":
		result = map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]any{"name": "t", "version": "1"}}
	case "tools/list":
		result["tools"] = []any{map[string]any{"name": "count", "inputSchema": map[string]any{"type": "object"}}}
	case "tools/call":
		result["content"] = []any{map[string]any{"type": "text", "text": "there are three, and you are " + s.access}}
	case "server/discover":
		say(400, map[string]any{})
		return
	default:
		w.WriteHeader(http.StatusAccepted)
		return
	}
	say(200, map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
}

// desk is where an operator sits: everything that is printed is looked through
// for what nobody may see.
type desk struct {
	place
	tracker *tracker

	mu      sync.Mutex
	printed bytes.Buffer
	page    chan string // the address that login prints
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{place: newPlace(t), tracker: newTracker(t), page: make(chan string, 1)}
	d.configure(d.tracker.URL + "/mcp")
	record := "---\nclass: agent\ncapabilities:\n  - tool.invoke: { tools: [tracker.count] }\n---\n"
	if err := os.WriteFile(filepath.Join(d.dir, "agents", "scout.md"), []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *desk) configure(at string) {
	d.t.Helper()
	text := "agents: ./agents\nupstreams:\n  tracker: { url: \"" + at + "\", unmediated: true }\n  files: { builtin: fs }\nsandbox: ./work\n"
	if err := os.WriteFile(filepath.Join(d.dir, "capgate.yml"), []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// Write takes what is printed.
func (d *desk) Write(text []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m := regexp.MustCompile(`(?m)^http\S+/authorize\?\S+`).Find(text); m != nil {
		d.page <- string(m)
	}
	return d.printed.Write(text)
}

// does runs a command to its end, and returns what it printed and its exit code.
func (d *desk) does(in io.Reader, args ...string) (string, int) {
	d.mu.Lock()
	from := d.printed.Len()
	d.mu.Unlock()
	ctx, cancel := context.WithTimeout(d.t.Context(), time.Minute)
	defer cancel()
	code := run(ctx, append([]string{"-c", filepath.Join(d.dir, "capgate.yml")}, args...), stdio{in: in, out: d, err: d, dir: d.dir})
	d.mu.Lock()
	defer d.mu.Unlock()
	return string(d.printed.Bytes()[from:]), code
}

// visit is a person with a browser that does what it is told, and then what a page
// of somebody else would have it do.
func (d *desk) visit() (string, error) {
	to := <-d.page
	u, err := url.Parse(to)
	if err != nil {
		return "", err
	}
	back := u.Query().Get("redirect_uri")
	for _, other := range []string{"?code=x&state=y", "?code=x", "", "?%zz", "x?code=x&state=" + u.Query().Get("state")} {
		resp, err := http.Get(back + other)
		if err != nil {
			return "", err
		}
		_ = resp.Body.Close()
		if resp.StatusCode < 400 {
			return "", fmt.Errorf("%s is answered with %s", other, resp.Status)
		}
	}
	resp, err := http.Get(to)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

func (d *desk) login(args ...string) (string, int) {
	d.t.Helper()
	type visited struct {
		text string
		err  error
	}
	done := make(chan visited, 1)
	go func() { text, err := d.visit(); done <- visited{text, err} }()
	printed, code := d.does(nil, append([]string{"upstreams", "login", "tracker"}, args...)...)
	if v := <-done; v.err != nil || !strings.Contains(v.text, "capgate has the answer") {
		d.t.Fatalf("the browser shows %q %v", v.text, v.err)
	}
	return printed, code
}

// call has the agent call the tool through the gateway.
func (d *desk) call() string {
	d.t.Helper()
	return d.says("tools/call", `"name":"tracker__count","arguments":{},`)
}

// says has the agent send one request.
func (d *desk) says(method, params string) string {
	d.t.Helper()
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + meta + "}}\n")
	printed, code := d.does(in, "stdio", "--agent", "scout")
	if code != exitOK {
		d.t.Fatalf("exit %d: %s", code, printed)
	}
	return printed
}

// dial connects to the server as the gateway does.
func (d *desk) dial() (upstream.Conn, error) {
	d.t.Helper()
	w := d.world()
	ctx, cancel := context.WithTimeout(d.t.Context(), time.Minute)
	defer cancel()
	return w.servers.openURL(&w.cfg.Upstreams[0])(ctx, proxy.Peer{})
}

func (d *desk) world() *world {
	d.t.Helper()
	a := &app{ui: newUI(stdio{out: d, err: d}), settings: config.Settings{Config: filepath.Join(d.dir, "capgate.yml")}}
	w, err := a.load()
	if err != nil {
		d.t.Fatal(err)
	}
	return w
}

// age makes the token that is kept one of an hour ago.
func (d *desk) age() {
	d.t.Helper()
	w := d.world()
	s := &shelf{dir: w.store(), key: oauthKey(&w.cfg.Upstreams[0])}
	data, version, err := s.Load()
	if err != nil {
		d.t.Fatal(err)
	}
	old := regexp.MustCompile(`"issued":"[^"]*"`).ReplaceAll(data, fmt.Appendf(nil, `"issued":%q`, time.Now().Add(-time.Hour).Format(time.RFC3339)))
	if _, err := s.Save(old, version); err != nil || bytes.Equal(old, data) {
		d.t.Fatal(err)
	}
}

// check looks for secrets in everything that was printed or recorded, and for
// files that others could read.
func (d *desk) check() {
	d.t.Helper()
	seen := map[string]string{"the terminal": d.printed.String()}
	kept := filepath.Join(".capgate", "store", "oauth")
	err := filepath.WalkDir(d.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 && strings.Contains(path, kept) {
			d.t.Errorf("%s has the mode %v", path, info.Mode())
		}
		data, err := os.ReadFile(path)
		if !strings.Contains(path, kept) {
			seen[path] = string(data)
		}
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	for place, text := range seen {
		for _, secret := range d.tracker.secrets {
			if strings.Contains(text, secret) {
				d.t.Errorf("%s shows %s", place, secret)
			}
		}
	}
}

// TestLogin: without a token a call fails and says what to do; with one it does not.
func TestLogin(t *testing.T) {
	d := newDesk(t)
	if got := d.call(); strings.Contains(got, "there are three") {
		t.Errorf("without a token the call gets %s", got)
	}
	if _, err := d.dial(); err == nil || !strings.Contains(err.Error(), "capgate upstreams login tracker") {
		t.Errorf("nobody is told what to do: %v", err)
	}
	wraps := d.world().servers
	wraps.cfg.Wrapped = true
	if o := wraps.client(&config.Upstream{Name: "wrapped-1"}); !strings.Contains(o.Login, "into a configuration") {
		t.Errorf("who wraps a server is told to %s", o.Login)
	}
	printed, code := d.login()
	if code != exitOK || !strings.Contains(printed, "note: the gateway has a token for tracker: token until ") {
		t.Fatalf("exit %d: %s", code, printed)
	}
	if q := d.tracker.asked; q.Get("resource") != d.tracker.URL+"/mcp" || q.Get("code_challenge_method") != "S256" || q.Get("scope") != "read" {
		t.Errorf("the person was asked for %v", q)
	}
	if got := d.call(); !strings.Contains(got, "there are three") {
		t.Errorf("with a token the call gets %s", got)
	}
	d.age()
	d.tracker.access = "another" // it was taken back
	if got := d.call(); !strings.Contains(got, "there are three") || d.tracker.renewed != 1 {
		t.Errorf("after %d renewals the call gets %s", d.tracker.renewed, got)
	}
	d.records("somebody logs in, at " + d.tracker.URL)
	if list, _ := d.does(nil, "events", "query", "--kind", "notice"); !strings.Contains(list, "tracker  somebody logs in, at ") {
		t.Errorf("the events do not say where: %s", list)
	}
	d.check()
}

// records looks for an event.
func (d *desk) records(text string) {
	d.t.Helper()
	if got, _ := d.does(nil, "events", "query", "--json"); !strings.Contains(got, text) {
		d.t.Errorf("it is not recorded that %s: %s", text, got)
	}
}

// TestLoginListed: what the list says of a token, which is for one URL.
func TestLoginListed(t *testing.T) {
	d := newDesk(t)
	d.login("--json")
	list, _ := d.does(nil, "upstreams", "list", "--json")
	for _, want := range []string{`"state": "held"`, `"issuer": "` + d.tracker.URL + `"`, `"renewable": true`, `"confined": true`} {
		if !strings.Contains(list, want) {
			t.Errorf("the list has no %s: %s", want, list)
		}
	}
	d.configure(d.tracker.URL + "/mcp?other")
	if list, _ := d.does(nil, "upstreams", "list"); !strings.Contains(list, "no token") {
		t.Errorf("another URL has the token: %s", list)
	}
	d.check()
}

// TestLogout: what is forgotten is used by nobody any more.
func TestLogout(t *testing.T) {
	d := newDesk(t)
	d.login()
	d.configure(d.tracker.URL + "/elsewhere") // the token for the URL of before goes as well
	if printed, code := d.does(nil, "upstreams", "logout", "tracker"); code != exitOK || !strings.Contains(printed, "was taken back") || len(d.tracker.revoked) != 1 {
		t.Errorf("exit %d: %s", code, printed)
	}
	d.configure(d.tracker.URL + "/mcp")
	if got := d.call(); strings.Contains(got, "there are three") {
		t.Errorf("after the logout the call gets %s", got)
	}
	if _, code := d.does(nil, "upstreams", "logout", "tracker"); code != exitRed {
		t.Errorf("a second logout ends with %d", code)
	}
	d.records("somebody logs out")
	d.check()
}

// TestLoginPasted: where the browser cannot come back, a person brings the answer.
func TestLoginPasted(t *testing.T) {
	d := newDesk(t)
	for _, tt := range []struct {
		name   string
		change func(string) string
		code   int
		text   string
	}{
		{"another state", func(s string) string { return strings.Replace(s, "state=", "state=x", 1) }, exitRed, "does not belong to this login"},
		{"no address", func(string) string { return "what?" }, exitRed, "no address that a browser ends at"},
		{"good", func(s string) string { return s }, exitOK, "the gateway has a token"},
	} {
		in, person := io.Pipe()
		go func() {
			client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			if resp, err := client.Get(<-d.page); err == nil {
				_ = resp.Body.Close()
				_, _ = io.WriteString(person, tt.change(resp.Header.Get("Location"))+"\n")
			}
			_ = person.Close()
		}()
		printed, code := d.does(in, "upstreams", "login", "tracker", "--paste")
		if code != tt.code || !strings.Contains(printed, tt.text) {
			t.Errorf("%s: exit %d: %s", tt.name, code, printed)
		}
	}
	d.check()
}

// TestOpenPage: only an address of the web reaches a program, and no shell does.
func TestOpenPage(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\nprintf '%s|' \"$#\" \"$@\" > " + dir + "/got.new && mv " + dir + "/got.new " + dir + "/got\n"
	for _, name := range []string{"xdg-open", "open"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	for _, bad := range []string{"javascript:alert(1)", "file:///etc/passwd", "http://h/x", "--help", "-a Calculator", "https:", "x-app://h"} {
		if err := openPage(t.Context(), bad); err == nil {
			t.Errorf("%q was opened", bad)
		}
	}
	const page = "https://h/x?a=$(touch%20x)&b=;reboot"
	if err := openPage(t.Context(), page); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		if got, err := os.ReadFile(filepath.Join(dir, "got")); err == nil {
			if string(got) != "1|"+page+"|" {
				t.Errorf("the program got %s", got)
			}
			return
		}
	}
	t.Error("no program was started")
}

// TestTokenOfWords: a server whose token reads like a word of the protocol, or of another server, takes
// it out of what it says itself, and hides nothing of the other.
func TestTokenOfWords(t *testing.T) {
	for _, word := range []string{"inputSchema", "files__read", "description"} {
		d := newDesk(t)
		d.tracker.words = word
		record := "---\nclass: agent\ncapabilities:\n  - tool.invoke: { tools: [tracker.count] }\n  - fs.read: { paths: [\"**\"] }\n---\n"
		if err := os.WriteFile(filepath.Join(d.dir, "agents", "scout.md"), []byte(record), 0o600); err != nil {
			t.Fatal(err)
		}
		before := d.says("tools/list", "")
		if _, code := d.login(); code != exitOK {
			t.Fatalf("exit %d", code)
		}
		if got := d.call(); word != "inputSchema" && !strings.Contains(got, "three, and you are {{secret:oauth.tracker}}") || word == "inputSchema" && !strings.Contains(got, "tool_rejected") {
			t.Errorf("%s: %s", word, got)
		}
		read := regexp.MustCompile(`\{"name":"files__read",.*?"inputSchema":\{.*?\}\}`)
		was, is := read.FindString(before), read.FindString(d.says("tools/list", ""))
		if was == "" || is != was {
			t.Errorf("with %s, files__read is listed as %s, before as %s", word, is, was)
		}
	}
}
