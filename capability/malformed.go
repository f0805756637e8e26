package capability

// Malformed says why a value cannot be read at all: it holds control
// characters, has no usable content, or is over a limit. A call that carries
// one is denied with [MalformedArguments]; a value that can be read but is not
// canonical is not malformed, it is simply covered by no grant.
type Malformed struct {
	// Text finishes the sentence "the value …": "holds a NUL byte".
	Text string
}

// Error writes the reason as a sentence.
func (m *Malformed) Error() string { return "the value " + m.Text }
