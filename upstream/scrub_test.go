package upstream_test

import (
	"bytes"
	"log/slog"
	"net/http"
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
