package store

// The limits and the spelling that the tests outside look at.
const (
	MaxKey  = maxKey
	MaxName = maxName
	MaxData = maxData
	MaxKeys = maxKeys
	MaxHeld = maxHeld
)

// FileName is the name of the file of a key.
func FileName(key string) string { return fileName(key) }

// Unescape reads a name that spells its key out.
func Unescape(name string) (string, bool) { return unescape(name) }
