package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	"capgate/wire"
)

// The limits of what an authorization server issues.
const (
	maxToken  = 16 << 10 // bytes of one token
	maxClient = 4 << 10  // bytes of a client id or secret
	maxScopes = 64
	maxScope  = 256
	maxLife   = 10 * 365 * 24 * time.Hour
)

// token is what is kept of a login. All that a renewal needs stands in it, so that
// nothing the upstream says later can have the refresh token sent elsewhere.
type token struct {
	Upstream string `json:"upstream"`
	URL      string `json:"url"`
	Issuer   string `json:"issuer"`
	Resource string `json:"resource"`

	TokenURL  string       `json:"token_url"`
	RevokeURL string       `json:"revoke_url,omitempty"`
	Home      []netip.Addr `json:"home,omitempty"` // where the upstream was reached

	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret,omitempty"`
	ClientAuth   string `json:"client_auth"` // of the constants below

	Access  string    `json:"access,omitempty"` // "" when it has ended
	Refresh string    `json:"refresh,omitempty"`
	Scopes  []string  `json:"scopes,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
	Issued  time.Time `json:"issued"`

	Renewing time.Time `json:"renewing,omitzero"` // somebody renews it, and has until then

	secret string // the operator's, in place of ClientSecret; it is not kept
}

// How a client shows that it is the one it says it is.
const (
	authNone  = "none"
	authPost  = "client_secret_post"
	authBasic = "client_secret_basic"
)

// Format prints none of it, whatever is asked for.
func (t *token) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "a token") }

func (t *token) header() string { return "Bearer " + t.Access }

// ends reports whether the token will have expired some time from now.
func (t *token) ends(now time.Time, early time.Duration) bool {
	return !t.Expires.IsZero() && !now.Add(early).Before(t.Expires)
}

// settles reports whether the token is so new that requests with the one before
// it are still under way. A clock that was set back settles nothing.
func (t *token) settles(now time.Time) bool {
	age := now.Sub(t.Issued)
	return age >= 0 && age < settling && !t.ends(now, 0)
}

// ended is the token after it turned out to be of no more use.
func (t *token) ended() *token {
	next := *t
	next.Access, next.Refresh, next.Renewing = "", "", time.Time{}
	return &next
}

func (t *token) encode() ([]byte, error) { return json.Marshal(t) }

func parseToken(data []byte) (*token, error) {
	t := new(token)
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(t); err != nil {
		return nil, errors.New("the token that is kept of the upstream cannot be read") // the cause would quote it
	}
	return t, nil
}

// issued is what an authorization server gave.
type issued struct {
	access, refresh string
	scopes          []string
	life            time.Duration // 0 when it does not say
}

// apply puts what was issued into the token. Without a new refresh token the old
// one stays good, and without scopes they are those that were asked for.
func (t *token) apply(i issued, now time.Time) *token {
	next := *t
	next.Access, next.Issued, next.Expires, next.Renewing = i.access, now.UTC(), time.Time{}, time.Time{}
	if i.refresh != "" {
		next.Refresh = i.refresh
	}
	if i.scopes != nil {
		next.Scopes = i.scopes
	}
	if i.life > 0 {
		next.Expires = now.Add(i.life).UTC()
	}
	return &next
}

// readIssued reads the answer of a token endpoint.
func readIssued(answer wire.Value) (i issued, err error) {
	kind, _, err := member(answer, "token_type", maxScope)
	if err != nil {
		return i, err
	}
	if !strings.EqualFold(kind, "bearer") {
		return i, errors.New("it issued a token of a type that is not bearer")
	}
	if i.access, err = needed(answer, "access_token", maxToken); err != nil {
		return i, err
	}
	if i.refresh, _, err = member(answer, "refresh_token", maxToken); err != nil {
		return i, err
	}
	if !isVisible(i.access) || !isVisible(i.refresh) {
		return i, errors.New("it issued a token that cannot be sent")
	}
	text, given, err := member(answer, "scope", maxScopes*maxScope)
	if err != nil {
		return i, err
	}
	if given {
		if i.scopes, err = readScopes(strings.Fields(text)); err != nil {
			return i, err
		}
	}
	i.life, err = readLife(answer)
	return i, err
}

func readLife(answer wire.Value) (time.Duration, error) {
	v, ok := answer.Get("expires_in")
	if !ok || v.Kind() == wire.Null {
		return 0, nil
	}
	seconds, ok := v.Int64()
	if !ok || seconds <= 0 || seconds > int64(maxLife/time.Second) {
		return 0, errors.New("its expires_in is no number of seconds")
	}
	return time.Duration(seconds) * time.Second, nil
}

// readScopes checks scopes that somebody else wrote: they are shown to a person
// and sent on.
func readScopes(list []string) ([]string, error) {
	if len(list) > maxScopes {
		return nil, fmt.Errorf("it names more than %d scopes", maxScopes)
	}
	for _, scope := range list {
		if scope == "" || len(scope) > maxScope || !isVisible(scope) || strings.ContainsAny(scope, `"\`) {
			return nil, errors.New("it names a scope that cannot be one")
		}
	}
	return slices.Clone(list), nil
}

// isVisible reports whether a text has only characters that stand in headers and
// in URLs as they are, none of them a space.
func isVisible(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// member is a text in an object; given is false when there is none.
func member(object wire.Value, key string, limit int) (text string, given bool, err error) {
	v, ok := object.Get(key)
	if !ok || v.Kind() == wire.Null {
		return "", false, nil
	}
	text, ok = v.Str()
	switch {
	case !ok:
		return "", false, fmt.Errorf("its %s is no text", key)
	case len(text) > limit:
		return "", false, fmt.Errorf("its %s has more than %d bytes", key, limit)
	}
	return text, true, nil
}

// needed is a text that must be in an object.
func needed(object wire.Value, key string, limit int) (string, error) {
	text, _, err := member(object, key, limit)
	if err == nil && text == "" {
		err = fmt.Errorf("it gave no %s", key)
	}
	return text, err
}

// texts is a list of texts in an object, nil when there is none.
func texts(object wire.Value, key string) (list []string, err error) {
	v, ok := object.Get(key)
	if !ok || v.Kind() == wire.Null {
		return nil, nil
	}
	if v.Kind() != wire.Array {
		return nil, fmt.Errorf("its %s is no list", key)
	}
	list = []string{}
	for e := range v.Elems() {
		text, ok := e.Str()
		if !ok {
			return nil, fmt.Errorf("its %s holds something that is no text", key)
		}
		list = append(list, text)
	}
	return list, nil
}
