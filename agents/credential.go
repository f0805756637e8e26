package agents

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"capgate/capability"
	"capgate/wire"
)

// A token is cg_ID_SECRET. Its parts have one length each, so that a text that
// is none is refused before anything is computed of it, and so that scanners for
// leaked tokens find it: cg_[0-9a-f]{16}_[A-Za-z0-9_-]{43}.
const (
	tokenPrefix = "cg_"
	idBytes     = 8
	idSize      = 2 * idBytes // in hex
	secretBytes = 32
	secretSize  = 43 // in base64url without padding
	secretAt    = len(tokenPrefix) + idSize + 1
	tokenSize   = secretAt + secretSize
)

const (
	maxCredentials     = 10_000                     // of all agents together
	maxCredentialBytes = 8 << 20                    // of the text of them all
	maxNote            = 200                        // bytes of a note
	maxLife            = 100 * 365 * 24 * time.Hour // of a token that ends at all
	keptExpired        = 30 * 24 * time.Hour        // how long an expired one is still listed
)

// never is when a credential expires that does not.
const never = "never"

// Credential is one token of an agent, without its secret. The token is shown
// once, when it is issued; what is kept is the hash of its secret. As the secret
// is 256 random bits there is nothing to guess, and a slow or salted hash, which
// protects what people choose, would only make recognising slow.
type Credential struct {
	ID      string
	Agent   string // in its canonical form: agents/scout
	Hash    [sha256.Size]byte
	Created time.Time
	Expires time.Time // zero when it does not
	Note    string    // what the token is for, in the words of who issued it
}

// Expired reports whether the credential is of no more use.
func (c Credential) Expired(now time.Time) bool {
	return !c.Expires.IsZero() && !now.Before(c.Expires)
}

// Credentials are the tokens by which agents are recognised. They are immutable:
// a change makes others. The zero value recognises nobody.
type Credentials struct {
	list []Credential   // by agent, age and id
	byID map[string]int // into list
}

// All ranges over the credentials, by agent and then the oldest first.
func (c *Credentials) All() iter.Seq[Credential] { return slices.Values(c.entries()) }

// Of ranges over the credentials of one agent, the oldest first.
func (c *Credentials) Of(agent string) iter.Seq[Credential] {
	id := capability.AgentID(agent)
	return func(yield func(Credential) bool) {
		for _, have := range c.entries() {
			if have.Agent == id && !yield(have) {
				return
			}
		}
	}
}

// Only returns the credentials without those of other agents.
func (c *Credentials) Only(agent string) (*Credentials, error) {
	return newCredentials(slices.Collect(c.Of(agent)))
}

func (c *Credentials) entries() []Credential {
	if c == nil {
		return nil
	}
	return c.list
}

// Recognise returns the credential that a token belongs to, if it has not
// expired. An id that is not known takes as long as a wrong secret.
func (c *Credentials) Recognise(token string, now time.Time) (Credential, bool) {
	if found, ok := c.shown(token); ok && !found.Expired(now) {
		return found, true
	}
	return Credential{}, false
}

// Outlived returns the credential that a token belonged to until it expired, as long
// as that is known: only to who shows its secret, as to anybody else nothing is told.
func (c *Credentials) Outlived(token string, now time.Time) (Credential, bool) {
	if found, ok := c.shown(token); ok && found.Expired(now) {
		return found, true
	}
	return Credential{}, false
}

// shown finds the credential that a whole token is of, expired or not.
func (c *Credentials) shown(token string) (Credential, bool) {
	if !IsToken(token) {
		return Credential{}, false
	}
	var found Credential // its hash is nobody's
	known := false
	if c != nil {
		if i, ok := c.byID[token[len(tokenPrefix):secretAt-1]]; ok {
			found, known = c.list[i], true
		}
	}
	hash := hashSecret(token[secretAt:])
	same := subtle.ConstantTimeCompare(hash[:], found.Hash[:]) == 1
	if !known || !same {
		return Credential{}, false
	}
	return found, true
}

// hashSecret hashes the secret of a token as it is written. Several texts decode
// to the same 32 bytes; only the one that was issued has the hash.
func hashSecret(secret string) [sha256.Size]byte {
	var text [secretSize]byte
	copy(text[:], secret)
	return sha256.Sum256(text[:])
}

// IsToken reports whether a text has the form of a token, of whichever gateway.
func IsToken(text string) bool {
	if len(text) != tokenSize || text[:len(tokenPrefix)] != tokenPrefix || text[secretAt-1] != '_' {
		return false
	}
	for i := secretAt; i < tokenSize; i++ {
		if c := text[i]; !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return isHex(text[len(tokenPrefix):secretAt-1], idSize)
}

// WithoutTokens takes the secrets out of what has the form of tokens in a text, whole or
// not and in capitals or not, for what is written down. The id of each is left.
func WithoutTokens(text string) string {
	const ofSecret = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	var clean strings.Builder
	small := inSmall(text)
	for {
		at := strings.Index(small, tokenPrefix)
		switch {
		case at < 0 && clean.Len() == 0:
			return text
		case at < 0:
			clean.WriteString(text)
			return clean.String()
		}
		end := at + len(tokenPrefix)
		if secret := at + secretAt; secret < len(small) && small[secret-1] == '_' && isHex(small[end:secret-1], idSize) {
			end = secret
		}
		clean.WriteString(text[:end])
		if text, small = text[end:], small[end:]; end == at+secretAt {
			rest := strings.TrimLeft(text, ofSecret)
			if rest != text {
				clean.WriteString("…")
			}
			text, small = rest, small[len(text)-len(rest):]
		}
	}
}

// inSmall writes A to Z in small letters, where there may be a token. Nothing in the text moves.
func inSmall(text string) string {
	if !strings.Contains(text, "_") {
		return text
	}
	small := []byte(text)
	for i, c := range small {
		if 'A' <= c && c <= 'Z' {
			small[i] += 'a' - 'A'
		}
	}
	return string(small)
}

func isHex(text string, size int) bool {
	for i := range len(text) {
		if c := text[i]; !('0' <= c && c <= '9' || 'a' <= c && c <= 'f') {
			return false
		}
	}
	return len(text) == size
}

// Issue makes a token for an agent. A life of zero does not end. The note must be
// a line that can be printed.
func (c *Credentials) Issue(agent, note string, life time.Duration, now time.Time, random io.Reader) (token string, next *Credentials, err error) {
	id := capability.AgentID(agent)
	if id == "" {
		return "", nil, fmt.Errorf("issue a token: %.80q cannot be the id of an agent", agent)
	}
	fresh := Credential{Agent: id, Note: note, Created: toSecond(now)}
	if life < 0 || life > maxLife {
		return "", nil, fmt.Errorf("issue a token for %s: a life of %s is not possible", id, life)
	}
	if life > 0 {
		fresh.Expires = toSecond(now.Add(life))
	}
	if fresh.Expired(now) {
		return "", nil, fmt.Errorf("issue a token for %s: a life of %s is over at once", id, life)
	}
	var bits [idBytes + secretBytes]byte
	if _, err := io.ReadFull(random, bits[:]); err != nil {
		return "", nil, fmt.Errorf("issue a token for %s: %w", id, err)
	}
	secret := base64.RawURLEncoding.EncodeToString(bits[idBytes:])
	fresh.ID, fresh.Hash = hex.EncodeToString(bits[:idBytes]), hashSecret(secret)
	kept := slices.DeleteFunc(slices.Clone(c.entries()), func(old Credential) bool {
		return !old.Expires.IsZero() && old.Expired(now.Add(-keptExpired))
	})
	next, err = newCredentials(append(kept, fresh))
	if err != nil {
		return "", nil, fmt.Errorf("issue a token for %s: %w", id, err)
	}
	return tokenPrefix + fresh.ID + "_" + secret, next, nil
}

// Rotate issues a token in the place of those that the agent has, with the note
// of the youngest. The others expire when the grace is over; without grace they
// are of no more use at once.
func (c *Credentials) Rotate(agent string, life, grace time.Duration, now time.Time, random io.Reader) (token string, next *Credentials, err error) {
	if grace < 0 || grace > maxLife {
		return "", nil, fmt.Errorf("rotate the token of %.80q: a grace of %s is not possible", agent, grace)
	}
	id, end := capability.AgentID(agent), toSecond(now.Add(grace))
	list := slices.Clone(c.entries())
	note, found := "", false
	for i := range list {
		old := &list[i]
		if old.Agent != id {
			continue
		}
		if note, found = old.Note, true; old.Expires.IsZero() || old.Expires.After(end) {
			old.Expires = end
		}
	}
	if !found {
		return "", nil, fmt.Errorf("rotate the token of %.80q: it has none", agent)
	}
	ending := Credentials{list: list}
	return ending.Issue(id, note, life, now, random)
}

// Revoke makes a token of no use. It is not ok when no credential has the id.
func (c *Credentials) Revoke(id string) (next *Credentials, ok bool) {
	i := slices.IndexFunc(c.entries(), func(have Credential) bool { return have.ID == id })
	if i < 0 {
		return c, false
	}
	next, err := newCredentials(slices.Delete(slices.Clone(c.list), i, i+1))
	return next, err == nil
}

// newCredentials checks and sorts a list, which becomes its own.
func newCredentials(list []Credential) (*Credentials, error) {
	if len(list) > maxCredentials {
		return nil, fmt.Errorf("there are %d credentials, the most is %d: revoke some", len(list), maxCredentials)
	}
	slices.SortFunc(list, func(a, b Credential) int {
		return cmp.Or(cmp.Compare(a.Agent, b.Agent), a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	c := &Credentials{list: list, byID: make(map[string]int, len(list))}
	for i, have := range list {
		if err := have.check(); err != nil {
			return nil, fmt.Errorf("credential %.40q: %w", have.ID, err)
		}
		if _, twice := c.byID[have.ID]; twice {
			return nil, fmt.Errorf("credential %q stands twice", have.ID)
		}
		c.byID[have.ID] = i
	}
	return c, nil
}

func (c Credential) check() error {
	switch {
	case !isHex(c.ID, idSize):
		return fmt.Errorf("the id is not %d digits in lower-case hex", idSize)
	case c.Agent == "" || capability.AgentID(c.Agent) != c.Agent:
		return fmt.Errorf("%.80q is not the canonical id of an agent", c.Agent)
	case c.Hash == [sha256.Size]byte{}:
		return errors.New("the hash is empty")
	case len(c.Note) > maxNote || !utf8.ValidString(c.Note) || strings.ContainsFunc(c.Note, isNotPrinted):
		return fmt.Errorf("the note is not a line of at most %d bytes that can be printed", maxNote)
	}
	return nil
}

func isNotPrinted(r rune) bool { return !unicode.IsPrint(r) }

// toSecond rounds down, so that nothing lives longer than it was given.
func toSecond(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// writtenCredential is a credential as it is kept.
type writtenCredential struct {
	ID      string `json:"id"`
	Agent   string `json:"agent"`
	Hash    string `json:"hash"`
	Created string `json:"created"`
	Expires string `json:"expires"`
	Note    string `json:"note"`
}

// Encode writes the credentials as JSON: one text for the same credentials, with
// one of them a line, so that a difference can be read.
func (c *Credentials) Encode() []byte {
	var b bytes.Buffer
	b.WriteString(`{"credentials":[`)
	for i, have := range c.entries() {
		w := writtenCredential{
			ID: have.ID, Agent: have.Agent, Hash: hex.EncodeToString(have.Hash[:]), Note: have.Note,
			Created: have.Created.Format(time.RFC3339), Expires: never,
		}
		if !have.Expires.IsZero() {
			w.Expires = have.Expires.Format(time.RFC3339)
		}
		line, _ := json.Marshal(w) // strings that are UTF-8 are always written
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n\t")
		b.Write(line)
	}
	b.WriteString("\n]}\n")
	return b.Bytes()
}

// ParseCredentials reads what Encode writes. It refuses everything that it would
// not have written: a slip in this file is somebody who gets in or does not get
// out. No data at all are no credentials.
func ParseCredentials(data []byte) (*Credentials, error) {
	if len(data) == 0 {
		return &Credentials{}, nil
	}
	var doc wire.Doc
	if err := doc.Parse(data, wire.Limits{Bytes: maxCredentialBytes}); err != nil {
		return nil, fmt.Errorf("read the credentials: %w", err)
	}
	list, ok := doc.Root().Get("credentials")
	if !ok || list.Kind() != wire.Array || doc.Root().Len() != 1 {
		return nil, errors.New(`read the credentials: they are not an object with the one key "credentials", a list`)
	}
	all := make([]Credential, 0, min(list.Len(), maxCredentials))
	for item := range list.Elems() {
		have, err := readCredential(item)
		if err != nil {
			return nil, fmt.Errorf("read the credentials: number %d: %w", len(all)+1, err)
		}
		all = append(all, have)
	}
	c, err := newCredentials(all)
	if err != nil {
		return nil, fmt.Errorf("read the credentials: %w", err)
	}
	return c, nil
}

func readCredential(item wire.Value) (Credential, error) {
	var w writtenCredential
	fields := map[string]*string{
		"id": &w.ID, "agent": &w.Agent, "hash": &w.Hash, "created": &w.Created, "expires": &w.Expires, "note": &w.Note,
	}
	if item.Kind() != wire.Object || item.Len() != len(fields) {
		return Credential{}, fmt.Errorf("it is not an object with %d keys", len(fields))
	}
	for key, value := range item.Members() {
		name, _ := key.Str()
		text, ok := value.Str()
		if fields[name] == nil || !ok {
			return Credential{}, fmt.Errorf("the key %.40q is not known, or its value is not a string", name)
		}
		*fields[name] = text
	}
	return w.read()
}

func (w writtenCredential) read() (Credential, error) {
	c := Credential{ID: w.ID, Agent: w.Agent, Note: w.Note}
	if !isHex(w.Hash, 2*sha256.Size) {
		return Credential{}, errors.New("the hash is not SHA-256 in lower-case hex")
	}
	if _, err := hex.Decode(c.Hash[:], []byte(w.Hash)); err != nil {
		return Credential{}, err
	}
	var err error
	if c.Created, err = readTime(w.Created); err != nil {
		return Credential{}, fmt.Errorf("created: %w", err)
	}
	if w.Expires == never {
		return c, nil
	}
	if c.Expires, err = readTime(w.Expires); err != nil {
		return Credential{}, fmt.Errorf("expires: %w", err)
	}
	return c, nil
}

// readTime reads a time as it is written here, in UTC and whole seconds.
func readTime(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.UTC().Format(time.RFC3339) != text || t.IsZero() {
		return time.Time{}, fmt.Errorf("%.40q is not a time such as 2026-01-31T12:00:00Z", text)
	}
	return t.UTC(), nil
}
