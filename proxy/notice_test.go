package proxy_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"capgate/proxy"
)

// TestTurnedAwayIsLogged: whoever runs the gateway sees who was not let in, and a
// flood of it does not fill the log.
func TestTurnedAwayIsLogged(t *testing.T) {
	var log syncBuffer
	w := start(t, map[string]string{"scout": reader})
	front, err := proxy.New(t.Context(), proxy.Options{Events: w.events, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	w.server = front
	w.adopt()
	t.Cleanup(func() {
		if err := front.Close(); err != nil {
			t.Error(err)
		}
	})
	const many = 900
	for range many {
		r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", strings.NewReader("{}"))
		r.Header.Set("Authorization", "Bearer cg_0123456789abcdef_sesame")
		answer := httptest.NewRecorder()
		if front.ServeHTTP(answer, r); answer.Code != http.StatusUnauthorized {
			t.Fatalf("status %d", answer.Code)
		}
	}
	if n := strings.Count(log.String(), "status=401"); n < 1 || n >= many {
		t.Errorf("%d of %d are logged", n, many)
	}
	if strings.Count(log.String(), "sesame") > 0 {
		t.Error("the log holds the token")
	}
}
