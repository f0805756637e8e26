package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"

	"capgate/agents"
	"capgate/guardrail"
	"capgate/proxy"
	"capgate/store"
)

// Where the state folder keeps what.
const (
	tokenBucket, tokenKey = "tokens", "credentials"
	sealBucket, sealName  = "keys", "seal"
	pinBucket             = "pins"
)

// credentials reads the tokens of agents, and which version of them it is.
func credentials(st *store.Store) (*agents.Credentials, string, error) {
	data, version, err := st.Get(tokenBucket, tokenKey)
	if err != nil {
		return nil, "", fmt.Errorf("the tokens of agents: %w", err)
	}
	creds, err := agents.ParseCredentials(data)
	if err != nil {
		return nil, "", fmt.Errorf("the tokens of agents: %w", err)
	}
	return creds, version, nil
}

// sealKey is what seals cursors and the state of calls. It is kept, so that what
// an agent was given before a restart is good after it.
func sealKey(st *store.Store) ([]byte, error) {
	for {
		key, _, err := st.Get(sealBucket, sealName)
		if err != nil {
			return nil, fmt.Errorf("the key of seals: %w", err)
		}
		if len(key) == 32 {
			return key, nil
		}
		key = make([]byte, 32)
		if _, err := rand.Read(key); err != nil {
			return nil, err
		}
		if _, err := st.Put(sealBucket, sealName, key, ""); err == nil {
			return key, nil
		} else if !errors.Is(err, store.ErrChanged) {
			return nil, fmt.Errorf("the key of seals: %w", err)
		}
	}
}

// pinStore keeps the pins of definitions, a document for each server.
type pinStore struct{ store *store.Store }

// Load reads the pins of a server.
func (p pinStore) Load(upstream string) ([]byte, string, error) {
	return p.store.Get(pinBucket, upstream)
}

// Save replaces them, unless somebody else has.
func (p pinStore) Save(upstream string, data []byte, version string) (string, error) {
	next, err := p.store.Put(pinBucket, upstream, data, version)
	if errors.Is(err, store.ErrChanged) {
		err = fmt.Errorf("%w: %w", proxy.ErrPinsChanged, err)
	}
	return next, err
}

// Changed reports whether the pins of a server are others than those of a version.
func (p pinStore) Changed(upstream, version string) (bool, error) {
	return p.store.Changed(pinBucket, upstream, version)
}

// recorder opens the log of events that the configuration describes.
func (w *world) recorder() (*guardrail.Log, error) { return w.kept().recorder(w.scrubEvent) }

// store is the folder in which the gateway keeps what outlives it.
func (w *world) store() string { return filepath.Join(w.cfg.State, "store") }

// isClean reports whether no secret stands in a file that is no server's.
func (w *world) isClean(data []byte) bool {
	return bytes.Equal(w.servers.keeper.ScrubOf("", data), data)
}

// scrubEvent takes the values of secrets out of a text that is recorded of an upstream, and what agents
// show who they are by, which one may have put anywhere.
func (w *world) scrubEvent(upstream, text string) string {
	return agents.WithoutTokens(w.servers.keeper.ScrubTextOf(upstream, text))
}

// scrubText does so for a text that is logged, whatever it is of.
func (w *world) scrubText(text string) string {
	return agents.WithoutTokens(w.servers.keeper.ScrubText(text))
}
