package main

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
)

// pair is a certificate and its key, which are read anew once they were renewed. While they
// cannot be read, or do not belong together yet, it is what it was.
type pair struct {
	cert, key string

	mu   sync.Mutex
	seen string // the state that the files were in
	used *tls.Certificate
}

// readPair reads both for the first time.
func readPair(cert, key string) (*pair, error) {
	p := &pair{cert: cert, key: key, seen: stateOf(cert, key)}
	used, err := tls.LoadX509KeyPair(cert, key)
	p.used = &used
	return p, err
}

// get is what a connection is begun with.
func (p *pair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := stateOf(p.cert, p.key); now != p.seen {
		if used, err := tls.LoadX509KeyPair(p.cert, p.key); err == nil {
			p.used, p.seen = &used, now
		}
	}
	return p.used, nil
}

// stateOf says which state some files are in.
func stateOf(files ...string) (text string) {
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			text += fmt.Sprintln(info.Size(), info.ModTime().UnixNano())
		}
	}
	return text
}
