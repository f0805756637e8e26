package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestPairIsTriedAgain: a renewed certificate that could not be used is used once it can be,
// although nobody sees that the files have changed, and that it could not is said once.
func TestPairIsTriedAgain(t *testing.T) {
	p := newPlace(t)
	p.certificate()
	cert, key := filepath.Join(p.dir, "cert.pem"), filepath.Join(p.dir, "key.pem")
	var log bytes.Buffer
	shown, err := readPair(cert, key, slog.New(slog.NewTextHandler(&log, nil)))
	p.must(err)
	first, _ := shown.get(nil)
	p.certificate()
	renewed, err := os.ReadFile(cert)
	p.must(err)
	when := time.Now().Add(time.Hour).Truncate(time.Second)
	for _, text := range [][]byte{bytes.Repeat([]byte("x"), len(renewed)), renewed} {
		p.must(os.WriteFile(cert, text, 0o600))
		p.must(os.Chtimes(cert, when, when))
		for range 3 {
			if now, _ := shown.get(nil); (now == first) != (text[0] == 'x') {
				t.Errorf("with a file that begins with %q: the first one is used: %t", text[0], now == first)
			}
		}
	}
	if n := strings.Count(log.String(), "cannot be used"); n != 1 {
		t.Errorf("said %d times:\n%s", n, log.String())
	}
}

// TestPairThatIsBack: that a certificate cannot be used is said of each that cannot, also
// where the one in use was back meanwhile.
func TestPairThatIsBack(t *testing.T) {
	p := newPlace(t)
	p.certificate()
	cert, key := filepath.Join(p.dir, "cert.pem"), filepath.Join(p.dir, "key.pem")
	var log bytes.Buffer
	shown, err := readPair(cert, key, slog.New(slog.NewTextHandler(&log, nil)))
	p.must(err)
	good, err := os.ReadFile(cert)
	p.must(err)
	info, err := os.Stat(cert)
	p.must(err)
	for range 2 {
		for _, state := range []struct {
			text []byte
			when time.Time
		}{{[]byte("x"), info.ModTime().Add(time.Hour)}, {good, info.ModTime()}} {
			p.must(os.WriteFile(cert, state.text, 0o600))
			p.must(os.Chtimes(cert, state.when, state.when))
			if now, _ := shown.get(nil); now == nil {
				t.Error("nothing is used")
			}
		}
	}
	if n := strings.Count(log.String(), "cannot be used"); n != 2 {
		t.Errorf("said %d times:\n%s", n, log.String())
	}
}
