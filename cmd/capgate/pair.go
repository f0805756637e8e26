package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
)

// pair is a certificate and its key, which are read anew once they were renewed. While they
// cannot be read, or do not belong together yet, it is what it was, which is said once.
type pair struct {
	cert, key string
	log       *slog.Logger

	mu   sync.Mutex
	seen string // the state that the files were in
	said string // the state that was said to be of no use
	used *tls.Certificate
}

// readPair reads both for the first time.
func readPair(cert, key string, log *slog.Logger) (*pair, error) {
	p := &pair{cert: cert, key: key, log: log, seen: stateOf(cert, key)}
	used, err := tls.LoadX509KeyPair(cert, key)
	p.used = &used
	return p, err
}

// get is what a connection is begun with.
func (p *pair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := stateOf(p.cert, p.key)
	if now == p.seen {
		p.said = ""
		return p.used, nil
	}
	if used, err := tls.LoadX509KeyPair(p.cert, p.key); err == nil {
		p.used, p.seen = &used, now
	} else if p.said != now {
		p.said = now
		p.log.Warn("the certificate of listen has changed and cannot be used: connections are begun with the one before", "error", err)
	}
	return p.used, nil
}

// stateOf says which state some files are in.
func stateOf(files ...string) (text string) {
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			text += fmt.Sprintln(file, info.Mode(), info.Size(), info.ModTime().UnixNano())
		}
	}
	return text
}
