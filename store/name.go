package store

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	maxKey  = 512 // bytes of a key, and of the name of a bucket
	maxName = 200 // bytes of a file's name; file systems take 255
)

// hashed begins the name of a file whose key is too long to be spelled out. In
// what escape writes there is no such character.
const hashed = "="

// fileName is the name of the file of a key, and of the folder of a bucket.
func fileName(key string) string {
	name := escape(key)
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(key))
	return hashed + hex.EncodeToString(sum[:])
}

// escape spells a key as a name that leads nowhere and that no file system takes
// for another one: capitals and what is not ASCII are spelled out, since some
// fold case and some compose accents, and so is a dot in front.
func escape(key string) string {
	const digits = "0123456789abcdef"
	var b strings.Builder
	for i := range len(key) {
		c := key[i]
		if staysAsIs(c) && (c != '.' || i > 0) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}

func staysAsIs(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.'
}

// unescape reads what escape writes, and nothing else.
func unescape(name string) (key string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] != '%' {
			b.WriteByte(name[i])
			continue
		}
		if i+2 >= len(name) {
			return "", false
		}
		c, err := hex.DecodeString(name[i+1 : i+3])
		if err != nil {
			return "", false
		}
		b.WriteByte(c[0])
		i += 2
	}
	key = b.String()
	return key, key != "" && escape(key) == name
}
