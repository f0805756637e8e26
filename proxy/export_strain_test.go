package proxy

// Strain passes pieces through a strainer, and returns what comes out.
// The key has at least so many bytes.
func Strain(scrub func([]byte) []byte, least int, pieces ...[]byte) []byte {
	s := strainer{scrub: scrub, least: least}
	var out []byte
	for _, p := range pieces {
		out = append(out, s.pass(p)...)
	}
	return append(out, s.rest()...)
}
