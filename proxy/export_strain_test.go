package proxy

// Strain passes pieces through a strainer, and returns what comes out.
func Strain(scrub func([]byte) []byte, pieces ...[]byte) []byte {
	s := strainer{scrub: scrub}
	var out []byte
	for _, p := range pieces {
		out = append(out, s.pass(p)...)
	}
	return append(out, s.rest()...)
}
