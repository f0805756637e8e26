package upstream_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"capgate/upstream"
)

// value is a secret of these tests, and cut what shows of it when it is cut in two.
const (
	value = "EEEE-the-value-of-a-secret-EEEE"
	cut   = "EEEE-the"
)

func scrubbed(text []byte) []byte {
	return bytes.ReplaceAll(text, []byte(value), []byte("{{secret:a}}"))
}

// TestScrubBeforeCut: what a server says is cut short, and no cut leaves a part of a
// secret that would have been found in the whole.
func TestScrubBeforeCut(t *testing.T) {
	t.Run("standard error", func(t *testing.T) {
		for _, before := range []int{180, 1000, 64<<10 - 20} { // what an error repeats, the log, what is read of a line
			var log safeBuffer
			conn := started(t, program(t, "plain"), upstream.Options{Log: slog.New(slog.NewTextHandler(&log, nil)), Scrub: scrubbed})
			_, err := conn.Call(t.Context(), tool("confide", before), nil)
			if f := failureOf(t, err); !strings.Contains(f.Error(), "xxx") || strings.Contains(f.Error(), cut) {
				t.Errorf("after %d bytes the error is %q", before, f)
			}
			if text := log.String(); !strings.Contains(text, "xxx") || strings.Contains(text, cut) {
				t.Errorf("after %d bytes the log is %q", before, text)
			}
		}
	})
	refusal := func(t *testing.T, body string, o upstream.Options) *upstream.Failed {
		s := serve(t, func(s *server) {
			s.call = func(w http.ResponseWriter, _ *http.Request, _ msg) {
				status(w, http.StatusInternalServerError, "text/plain", body)
			}
		})
		_, err := call(t.Context(), s.dial(o), nil)
		return failureOf(t, err)
	}
	t.Run("body", func(t *testing.T) {
		for _, before := range []int{180, 390, 1<<20 - 20} { // what an error repeats, is made of, and what is read of a body
			f := refusal(t, strings.Repeat("x", before)+value, upstream.Options{Scrub: scrubbed})
			if !strings.Contains(f.Error(), "xxx") || strings.Contains(f.Error(), cut) {
				t.Errorf("after %d bytes the error is %q", before, f)
			}
		}
	})
	t.Run("body of values", func(t *testing.T) { // of which only the half at the end would be left
		none := func(text []byte) []byte { return bytes.ReplaceAll(text, []byte(value), nil) }
		f := refusal(t, "eleven more"+strings.Repeat(value, 1<<20/len(value)+1), upstream.Options{Scrub: none})
		if strings.Contains(f.Error(), cut) {
			t.Errorf("the error is %q", f)
		}
	})
}

// TestScrubRefusals: nor does one of what a server says as it refuses a list, or the handshake.
func TestScrubRefusals(t *testing.T) {
	for _, before := range []int{190, 100 << 10} {
		text := strings.Repeat("x", before) + value
		refuse := func(w http.ResponseWriter, _ *http.Request, m msg) {
			status(w, http.StatusOK, "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":%q}}`, m.ID, text))
		}
		s := serve(t, func(s *server) { s.call = refuse })
		_, err := upstream.List(t.Context(), s.dial(upstream.Options{}), upstream.Listing{Method: "tools/list", Member: "tools", Scrub: scrubbed})
		if got := fmt.Sprint(err); !strings.Contains(got, "xxx") || strings.Contains(got, cut) {
			t.Errorf("the list: %s", got)
		}
		greeter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var m msg
			if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
				t.Error(err)
			}
			refuse(w, r, m)
		}))
		t.Cleanup(greeter.Close)
		_, err = upstream.Dial(t.Context(), upstream.Endpoint{Name: "files", URL: greeter.URL}, upstream.Options{Scrub: scrubbed})
		if got := fmt.Sprint(err); !strings.Contains(got, "xxx") || strings.Contains(got, cut) {
			t.Errorf("the handshake: %s", got)
		}
	}
}
