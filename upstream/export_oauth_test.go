package upstream

// Bearer reads a WWW-Authenticate header.
func Bearer(text string) (metadata, scope string, ok bool) {
	c, ok := bearer([]string{text})
	return c.metadata, c.scope, ok
}
