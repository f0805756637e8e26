package proxy

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"time"
)

// sealer writes what agents carry for us, so that nobody else can write or read
// it: cursors, and the state of a call that waits for input. It is bound to
// whom it was given, and for what.
type sealer struct {
	aead   cipher.AEAD
	random io.Reader
	now    func() time.Time
}

const (
	sealTime = 15 * time.Minute // what is sealed can be shown again for
	maxSeal  = 1 << 20          // bytes of a sealed text
)

func newSealer(key []byte, random io.Reader, now func() time.Time) (*sealer, error) {
	if key == nil {
		key = make([]byte, 32)
		if _, err := io.ReadFull(random, key); err != nil {
			return nil, err
		}
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return &sealer{aead: aead, random: random, now: now}, nil
}

// bond is what a sealed text is bound to.
type bond struct {
	purpose, agent, about string
	digest                [sha256.Size]byte
}

func (b bond) bytes() []byte {
	var dst []byte
	for _, part := range [...]string{b.purpose, b.agent, b.about} {
		dst = binary.BigEndian.AppendUint64(dst, uint64(len(part)))
		dst = append(dst, part...)
	}
	return append(dst, b.digest[:]...)
}

// close seals a text, if it can be opened again.
func (s *sealer) close(b bond, text []byte) (string, error) {
	nonce := make([]byte, s.aead.NonceSize(), s.aead.NonceSize()+8+len(text)+s.aead.Overhead())
	if _, err := io.ReadFull(s.random, nonce); err != nil {
		return "", err
	}
	plain := binary.BigEndian.AppendUint64(nil, uint64(s.now().Add(sealTime).Unix()))
	sealed := s.aead.Seal(nonce, nonce, append(plain, text...), b.bytes())
	if base64.RawURLEncoding.EncodedLen(len(sealed)) > maxSeal {
		return "", errLongSeal
	}
	return base64.RawURLEncoding.EncodeToString(sealed), nil
}

var (
	errSeal     = errors.New("it was not given to this agent for this, or it is too old")
	errLongSeal = errors.New("it is too long to come back")
)

// open returns what was sealed for the same.
func (s *sealer) open(b bond, sealed string) ([]byte, error) {
	if len(sealed) > maxSeal {
		return nil, errSeal
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil || len(raw) < s.aead.NonceSize() {
		return nil, errSeal
	}
	nonce, rest := raw[:s.aead.NonceSize()], raw[s.aead.NonceSize():]
	plain, err := s.aead.Open(nil, nonce, rest, b.bytes())
	if err != nil || len(plain) < 8 {
		return nil, errSeal
	}
	if s.now().Unix() > int64(binary.BigEndian.Uint64(plain)) {
		return nil, errSeal
	}
	return plain[8:], nil
}
