package proxy_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"capgate/proxy"
)

// TestSigns: whoever waits for an answer on a stream is sent a sign of life, as clients and
// proxies end streams on which nothing comes.
func TestSigns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		if err := proxy.Streamed(w, func() { time.Sleep(110 * time.Second) }); err != nil {
			t.Fatal(err)
		}
		body := w.Body.String()
		if n := strings.Count(body, "\n\n: \n\n"); n == 0 || strings.Count(body, ": \n\n") != 4 || !strings.HasSuffix(body, `"result":{}}`+"\n\n") {
			t.Errorf("%q", body)
		}
	})
}
