package upstream_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"capgate/upstream"
)

func TestHTTPUnreached(t *testing.T) {
	s := serve(t, nil)
	url := s.URL
	s.Close()
	_, err := upstream.Dial(t.Context(), upstream.Endpoint{Name: "files", URL: url}, upstream.Options{})
	if f := failed(t, err, "cannot be reached"); !f.Unsent {
		t.Error("nothing can have been executed")
	}

	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // it is to fail
	secure.StartTLS()
	defer secure.Close()
	_, err = upstream.Dial(t.Context(), upstream.Endpoint{Name: "files", URL: secure.URL}, upstream.Options{})
	if f := failed(t, err, "shows no certificate that can be trusted"); !f.Unsent {
		t.Error("nothing can have been executed")
	}

	denied := errors.New("that address is not for you")
	_, err = upstream.Dial(t.Context(), upstream.Endpoint{
		Name: "files", URL: url,
		Dial: func(context.Context, string, string) (net.Conn, error) { return nil, denied },
	}, upstream.Options{})
	if f := failed(t, err, denied.Error()); !f.Unsent || !errors.Is(err, denied) {
		t.Errorf("%+v", f)
	}
}

func TestHTTPAuthorize(t *testing.T) {
	tests := []struct {
		name      string
		authorize func(refresh bool) (string, error)
		accept    string
		calls     int
		text      string
		unsent    bool
	}{
		{"good", func(bool) (string, error) { return "Bearer 1", nil }, "Bearer 1", 1, "", false},
		{"refreshed", func(refresh bool) (string, error) {
			if refresh {
				return "Bearer 2", nil
			}
			return "Bearer 1", nil
		}, "Bearer 2", 2, "", false},
		{"bad", func(bool) (string, error) { return "Bearer 1", nil }, "Bearer 2", 2, "(401)", false},
		{"none", func(bool) (string, error) { return "", nil }, "", 1, "", false},
		{"fails", func(bool) (string, error) { return "", errors.New("no token") }, "", 0, "no token", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, func(s *server) {
				s.call = func(w http.ResponseWriter, r *http.Request, m msg) {
					if r.Header.Get("Authorization") != tt.accept {
						status(w, 401, "text/plain", "who are you?")
						return
					}
					answer(w, m, "{}")
				}
			})
			greeted := false
			c := dial(t, upstream.Endpoint{
				Name: "files", URL: s.URL,
				Authorize: func(_ context.Context, refresh bool) (string, error) {
					if !greeted {
						return "", nil
					}
					return tt.authorize(refresh)
				},
			}, upstream.Options{})
			greeted = true
			_, err := call(t.Context(), c, nil)
			if n := s.count("tools/call"); n != tt.calls {
				t.Errorf("it was sent %d times, not %d", n, tt.calls)
			}
			greeted = false
			if tt.text == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if f := failed(t, err, tt.text); f.Unsent != tt.unsent || !f.Undone {
				t.Errorf("unsent is %v, undone %v", f.Unsent, f.Undone)
			}
		})
	}
}

// TestRenew: a server that refuses headers is asked again with those that they have
// become, and with nothing that it has refused already.
func TestRenew(t *testing.T) {
	var token, accepted atomic.Pointer[string]
	set := func(p *atomic.Pointer[string], text string) { p.Store(&text) }
	set(&token, "one")
	set(&accepted, "one")
	s := serve(t, func(s *server) {
		s.call = func(w http.ResponseWriter, r *http.Request, m msg) {
			if r.Header.Get("X-Key") != *accepted.Load() {
				status(w, 401, "text/plain", "who are you?")
				return
			}
			answer(w, m, "{}")
		}
	})
	renew := func() ([]upstream.Field, error) {
		if *token.Load() == "" {
			return nil, errors.New("it is gone")
		}
		return []upstream.Field{{Name: "X-Key", Value: *token.Load()}}, nil
	}
	header, _ := renew()
	c := dial(t, upstream.Endpoint{Name: "files", URL: s.URL, Transport: "http", Header: header, Renew: renew}, upstream.Options{})
	for _, step := range []struct {
		token, accepted, fails string
		calls                  int
	}{
		{"one", "one", "", 1},
		{"one", "two", "(401)", 1}, // it would be the same again
		{"two", "two", "", 2},
		{"two", "two", "", 1}, // what was renewed stays
		{"three", "four", "(401)", 2},
		{"a\nb", "five", "(401)", 1},
		{"", "five", "(401)", 1},
		{"five", "five", "", 2},
	} {
		set(&token, step.token)
		set(&accepted, step.accepted)
		before := s.count("tools/call")
		_, err := call(t.Context(), c, nil)
		if step.fails == "" && err != nil {
			t.Errorf("%+v: %v", step, err)
		} else if step.fails != "" {
			failed(t, err, step.fails)
		}
		if n := s.count("tools/call") - before; n != step.calls {
			t.Errorf("%+v: %d calls", step, n)
		}
	}
}

func TestHTTPEndpoint(t *testing.T) {
	good := upstream.Endpoint{Name: "files", URL: "http://127.0.0.1:1/mcp"}
	tests := []struct {
		name   string
		change func(*upstream.Endpoint)
		text   string
	}{
		{"scheme", func(e *upstream.Endpoint) { e.URL = "file:///etc" }, "neither http nor https"},
		{"host", func(e *upstream.Endpoint) { e.URL = "http:///mcp" }, "names no host"},
		{"user", func(e *upstream.Endpoint) { e.URL = "http://u:secret@h/" }, "has a user in it"},
		{"fragment", func(e *upstream.Endpoint) { e.URL = "http://h/#secret" }, "has a fragment"},
		{"not a URL", func(e *upstream.Endpoint) { e.URL = "http://h/\x7fsecret" }, "no usable URL"},
		{"host in a header", func(e *upstream.Endpoint) { e.Header = []upstream.Field{{"host", "secret"}} }, "Host is not the operator's"},
		{"a header that repeats requests", func(e *upstream.Endpoint) { e.Header = []upstream.Field{{"x-idempotency-key", "secret"}} }, "is not the operator's"},
		{"a header of ours", func(e *upstream.Endpoint) { e.Header = []upstream.Field{{"mcp-session-id", "secret"}} }, "is not the operator's"},
		{"a header with a line break", func(e *upstream.Endpoint) { e.Header = []upstream.Field{{"X", "secret\r\nY: 1"}} }, "control character"},
		{"no header", func(e *upstream.Endpoint) { e.Header = []upstream.Field{{"a b", "secret"}} }, "not the name of a header"},
		{"transport", func(e *upstream.Endpoint) { e.Transport = "carrier pigeon" }, "has a transport that is none"},
		{"two dials", func(e *upstream.Endpoint) {
			e.HTTP = http.DefaultTransport
			e.Dial = (&net.Dialer{}).DialContext
		}, "has a Dial"},
	}
	for _, tt := range tests {
		e := good
		tt.change(&e)
		_, err := upstream.Dial(t.Context(), e, upstream.Options{})
		failed(t, err, tt.text)
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
