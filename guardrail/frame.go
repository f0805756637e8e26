package guardrail

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"time"
)

// A line is, in this order and spelling,
//
//	{"seq":7,"prev":"<hash of line 6>","time":"…","kind":"…",…,"hash":"<hash>"}
//
// where the hash is the SHA-256 of all bytes before `,"hash"`. A signed line
// has `,"sig":"<Ed25519>"` behind its hash.
const (
	seqKey     = `{"seq":`
	prevKey    = `"prev":"` // behind the comma that ends the number
	timeKey    = `","time":"`
	kindKey    = `","kind":"`
	hashKey    = `,"hash":"`
	sigKey     = `","sig":"`
	lineEnding = `"}`
)

// The lengths of a hash and a signature as they stand in a line.
const (
	hashLen = 2 * sha256.Size
	sigLen  = 2 * ed25519.SignatureSize
)

// refLen is how much of its hash names an event: enough that no two are alike
// and nothing can be told from it.
const refLen = 16

// timeForm has a fixed width, so that times compare as text.
const timeForm = "2006-01-02T15:04:05.000000000Z"

// signing is what a signature is about, so that it serves nothing else.
const signing = "capgate guardrail checkpoint 1\n"

// digest is a hash as it stands in a line.
type digest [hashLen]byte

// zero is what the first line of the first file follows.
func zero() (d digest) {
	for i := range d {
		d[i] = '0'
	}
	return d
}

// link is where a chain ends: the next line follows it.
type link struct {
	seq  uint64
	hash digest
}

// stamp is a time as it stands in a line. It formats a second once.
type stamp struct {
	second int64
	text   []byte
}

const nanosAt = len("2006-01-02T15:04:05.")

// of returns the text of a time, valid until the next call.
func (s *stamp) of(now time.Time) []byte {
	if second := now.Unix(); s.text == nil || second != s.second {
		s.second, s.text = second, now.UTC().AppendFormat(s.text[:0], timeForm)
		return s.text
	}
	for i, n := nanosAt+8, now.Nanosecond(); i >= nanosAt; i, n = i-1, n/10 {
		s.text[i] = byte('0' + n%10)
	}
	return s.text
}

// begin appends the head of the line that follows a link.
func (l link) begin(buf, at []byte) []byte {
	buf = append(buf, seqKey...)
	buf = strconv.AppendUint(buf, l.seq+1, 10)
	buf = append(buf, ',')
	buf = append(buf, prevKey...)
	buf = append(buf, l.hash[:]...)
	buf = append(buf, timeKey...)
	buf = append(buf, at...)
	return append(buf, '"')
}

// seal ends the line that starts at start, and returns the link that it is.
func (l link) seal(buf []byte, start int, key ed25519.PrivateKey) ([]byte, link) {
	sum := sha256.Sum256(buf[start:])
	next := link{seq: l.seq + 1}
	hex.Encode(next.hash[:], sum[:])
	buf = append(buf, hashKey...)
	buf = append(buf, next.hash[:]...)
	if key != nil {
		buf = append(buf, sigKey...)
		buf = hex.AppendEncode(buf, ed25519.Sign(key, signed(sum)))
	}
	buf = append(buf, lineEnding...)
	return append(buf, '\n'), next
}

func signed(sum [sha256.Size]byte) []byte {
	return append([]byte(signing), sum[:]...)
}

// frame is a line taken apart; its hash is that of its bytes.
type frame struct {
	link
	prev digest
	time string
	kind string
	sum  [sha256.Size]byte
	sig  []byte // nil: the line is not signed
}

// What can be wrong with a line by itself.
var (
	errForm = errors.New("this is no line of an event log")
	errHash = errors.New("the line was changed: its hash is another one")
)

// unseal takes a line, without its line feed, apart.
func unseal(line []byte) (f frame, err error) {
	body, ok := bytes.CutSuffix(line, []byte(lineEnding))
	if !ok {
		return f, errForm
	}
	if at := len(body) - sigLen - len(sigKey); at > 0 && string(body[at:at+len(sigKey)]) == sigKey {
		f.sig = make([]byte, ed25519.SignatureSize)
		if _, err := hex.Decode(f.sig, body[at+len(sigKey):]); err != nil || !lower(body[at+len(sigKey):]) {
			return f, errForm
		}
		body = body[:at]
	}
	at := len(body) - hashLen - len(hashKey)
	if at < 0 || string(body[at:at+len(hashKey)]) != hashKey {
		return f, errForm
	}
	f.sum = sha256.Sum256(body[:at])
	hex.Encode(f.hash[:], f.sum[:])
	claimed := digest(body[at+len(hashKey):])
	if err := f.head(body[:at]); err != nil {
		return f, err
	}
	if claimed != f.hash {
		f.hash = claimed // what the next line names, so that one change is found once
		return f, errHash
	}
	return f, nil
}

// head reads what every line starts with.
func (f *frame) head(body []byte) error {
	text, ok := bytes.CutPrefix(body, []byte(seqKey))
	digits, text, found := bytes.Cut(text, []byte(","))
	seq, err := strconv.ParseUint(string(digits), 10, 63)
	if !ok || !found || err != nil || digits[0] == '0' || digits[0] == '+' {
		return errForm
	}
	const prevAt, timeAt = len(prevKey), len(prevKey) + hashLen + len(timeKey)
	const kindAt = timeAt + len(timeForm) + len(kindKey)
	if len(text) < kindAt || string(text[:prevAt]) != prevKey ||
		string(text[prevAt+hashLen:timeAt]) != timeKey || string(text[timeAt+len(timeForm):kindAt]) != kindKey {
		return errForm
	}
	kind, _, ok := bytes.Cut(text[kindAt:], []byte(`"`))
	if !ok {
		return errForm
	}
	f.seq, f.prev = seq, digest(text[prevAt:prevAt+hashLen])
	f.time, f.kind = string(text[timeAt:timeAt+len(timeForm)]), string(kind)
	return nil
}

// vouched reports whether a line is signed with a key.
func (f *frame) vouched(key ed25519.PublicKey) bool {
	return len(key) == ed25519.PublicKeySize && f.sig != nil && ed25519.Verify(key, signed(f.sum), f.sig)
}

// lower reports whether hexadecimal text is spelled as this package spells it.
func lower(text []byte) bool { return !bytes.ContainsAny(text, "ABCDEF") }
