package upstream

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
)

// The limits of what a server says beside the protocol.
const (
	maxSaid   = 1024     // bytes of one line that are passed on
	maxHeard  = 64 << 10 // bytes of one line that are read
	saidBurst = 50       // lines at once
	saidRate  = 10       // lines a second after that

	maxTail     = 4   // lines that an error repeats
	maxTailLine = 200 // bytes of each
)

// scrub takes secrets out of what a server says. It comes before all that cuts a text
// short: half of a secret is not found any more.
type scrub func([]byte) []byte

// of returns what is left of a text. One as long as the limit may have been cut there
// already, within a secret, so that as much of its end is left out as one may take.
func (s scrub) of(text []byte, limit int) []byte {
	cut := len(text) >= limit
	if s == nil {
		return text
	}
	if text = s(text); cut {
		return text[:max(0, len(text)-limit/2)]
	}
	return text
}

// transcript passes on what a server says beside the protocol, within bounds,
// and remembers the end of it.
type transcript struct {
	log   *slog.Logger
	scrub scrub

	mu      sync.Mutex
	tail    []string
	left    float64 // lines that may be logged now
	since   time.Time
	dropped int
}

func newTranscript(log *slog.Logger, s scrub) *transcript {
	return &transcript{log: log, scrub: s, left: saidBurst, since: time.Now()}
}

// listen notes lines until there are no more.
func (t *transcript) listen(r io.Reader) {
	buffered := bufio.NewReaderSize(r, maxHeard+1) // it may keep back a \r at the end
	for {
		line, more, err := buffered.ReadLine()
		if err != nil {
			return
		}
		t.note(line)
		for more && err == nil {
			_, more, err = buffered.ReadLine()
		}
	}
}

// note logs a line of the server's standard error.
func (t *transcript) note(line []byte) {
	line = t.scrub.of(line, maxHeard)
	text := printable(line[:min(len(line), maxSaid)])
	t.mu.Lock()
	t.tail = append(t.tail, text[:min(len(text), maxTailLine)])
	if len(t.tail) > maxTail {
		t.tail = slices.Delete(t.tail, 0, 1)
	}
	t.mu.Unlock()
	if dropped, ok := t.may(); ok {
		t.log.Info("upstream says", "line", text, "dropped", dropped)
	}
}

// odd logs something that a server should not have sent.
func (t *transcript) odd(what string, line []byte) {
	if dropped, ok := t.may(); ok {
		line = t.scrub.of(line, maxHeard)
		t.log.Warn("upstream sent something odd", "what", what,
			"line", printable(line[:min(len(line), maxTailLine)]), "dropped", dropped)
	}
}

// may reports whether a line may be logged now, and how many were not.
func (t *transcript) may() (dropped int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	t.left = min(saidBurst, t.left+now.Sub(t.since).Seconds()*saidRate)
	t.since = now
	if t.left < 1 {
		t.dropped++
		return 0, false
	}
	t.left--
	dropped, t.dropped = t.dropped, 0
	return dropped, true
}

// last returns the end of what was said, "" if nothing was.
func (t *transcript) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.tail, " | ")
}

// printable makes bytes fit to be looked at.
func printable(line []byte) string {
	var b strings.Builder
	for _, r := range string(line) {
		if r == '\t' || unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
