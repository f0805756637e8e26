package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"sync"

	"capgate/config"
	"capgate/store"
	"capgate/upstream"
)

// Where the tokens for upstreams are kept. The name of one has no dot in it.
const (
	oauthBucket    = "oauth"
	oauthSeparator = "."
)

// shelf keeps the token of one upstream in the state folder. The folder is made
// when it is needed: a server that wants no token leaves no trace.
type shelf struct {
	dir, key string

	mu    sync.Mutex
	store *store.Store
}

func (s *shelf) open() (*store.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.store == nil {
		s.store, err = store.Open(s.dir)
	}
	return s.store, err
}

// Load reads the token.
func (s *shelf) Load() (data []byte, version string, err error) {
	st, err := s.open()
	if err != nil {
		return nil, "", err
	}
	return st.Get(oauthBucket, s.key)
}

// Save replaces it, unless somebody else has.
func (s *shelf) Save(data []byte, version string) (next string, err error) {
	st, err := s.open()
	if err != nil {
		return "", err
	}
	if data == nil {
		err = st.Delete(oauthBucket, s.key, version)
	} else {
		next, err = st.Put(oauthBucket, s.key, data, version)
	}
	if errors.Is(err, store.ErrChanged) {
		err = upstream.ErrTokenChanged
	}
	return next, err
}

// Changed reports whether it is another than that of a version.
func (s *shelf) Changed(version string) (bool, error) {
	st, err := s.open()
	if err != nil {
		return true, err
	}
	return st.Changed(oauthBucket, s.key, version)
}

// oauthKey names the token of an upstream. When the address changes, or what is
// written of how to get a token, the one before is not used any more.
func oauthKey(u *config.Upstream) string {
	asked := struct {
		URL, ClientID string
		Scopes        []string
		Secret        bool   `json:",omitempty"`
		Issuer        string `json:",omitempty"`
	}{URL: u.URL}
	if u.OAuth != nil {
		asked.ClientID, asked.Scopes, asked.Secret = u.OAuth.ClientID, slices.Sorted(slices.Values(u.OAuth.Scopes)), u.OAuth.ClientSecret != ""
		asked.Issuer = u.OAuth.Issuer
	}
	text, _ := json.Marshal(asked) // of texts only
	sum := sha256.Sum256(text)
	return u.Name + oauthSeparator + hex.EncodeToString(sum[:])
}

// oauth is the token of an upstream. Nothing is opened by it.
func (s *servers) oauth(u *config.Upstream) (*upstream.OAuth, error) {
	o := s.client(u)
	o.Tokens = &shelf{dir: filepath.Join(s.cfg.State, "store"), key: oauthKey(u)}
	o.Learn = func(token string) error { return s.keeper.Learn(u.Name, "oauth."+u.Name, token) }
	return upstream.NewOAuth(o)
}

// client is who the gateway is to the authorization server of an upstream, and what it asks for.
func (s *servers) client(u *config.Upstream) upstream.OAuthOptions {
	o := upstream.OAuthOptions{Name: u.Name, URL: u.URL, Required: u.OAuth != nil}
	if s.cfg.Wrapped {
		o.Login = "write it into a configuration, under upstreams:, and log in to it there"
	}
	if u.OAuth != nil {
		o.ClientID, o.Scopes, o.Issuer = u.OAuth.ClientID, u.OAuth.Scopes, u.OAuth.Issuer
		if handle := u.OAuth.ClientSecret; handle != "" {
			o.ClientSecret = func() (string, error) { return s.keeper.Expand(handle) }
		}
	}
	return o
}

// hasOwnToken reports whether the operator says what is sent.
func hasOwnToken(u *config.Upstream) bool {
	_, written := u.Headers["Authorization"]
	return written
}

// authorize is where the Authorization header of an upstream comes from, nil where
// it is written.
func (s *servers) authorize(u *config.Upstream) func(context.Context, bool) (string, error) {
	if hasOwnToken(u) {
		return nil
	}
	oauth, err := s.oauth(u)
	if err != nil {
		return func(context.Context, bool) (string, error) { return "", err }
	}
	return oauth.Authorize
}
