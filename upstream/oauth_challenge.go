package upstream

import "strings"

// maxChallenge is the most bytes of a WWW-Authenticate header that are read.
const maxChallenge = 8 << 10

// challenge is how a server asks for a token.
type challenge struct {
	metadata string // the URL of what it says of itself, "" when it does not say
	scope    string
	lacks    bool // a token has been shown, for too few scopes
}

// bearer finds the first challenge for a bearer token. A header that cannot be
// read in one way only asks for nothing.
func bearer(headers []string) (challenge, bool) {
	for _, text := range headers {
		if len(text) > maxChallenge {
			continue
		}
		r := challengeReader{rest: text}
		for r.next() {
			if strings.EqualFold(r.scheme, "bearer") && !r.broken {
				return challenge{r.params["resource_metadata"], r.params["scope"], r.params["error"] == "insufficient_scope"}, true
			}
		}
	}
	return challenge{}, false
}

// challengeReader reads challenges as RFC 9110 has them: a scheme and then, with
// commas in between, its parameters. What follows a comma may be either.
type challengeReader struct {
	rest   string
	scheme string
	params map[string]string
	broken bool // nothing more can be read
}

// next reads one challenge. It is false at the end, and when there is no reading on.
func (r *challengeReader) next() bool {
	r.skip(" \t,")
	r.params = map[string]string{}
	r.scheme = r.token()
	if r.broken || r.scheme == "" {
		return false
	}
	if r.rest == "" || r.rest[0] == ',' {
		return true
	}
	if r.rest[0] != ' ' {
		r.broken = true
		return false
	}
	for {
		r.skip(" \t,")
		before := r.rest
		name := strings.ToLower(r.token())
		r.skip(" \t")
		if name == "" || !strings.HasPrefix(r.rest, "=") {
			r.rest = before // the next scheme, or a token68, which is not ours
			return !r.broken && (r.rest == "" || name != "")
		}
		r.rest = r.rest[1:]
		r.skip(" \t")
		value, ok := r.value()
		if _, twice := r.params[name]; !ok || twice {
			r.broken = true
			return false
		}
		r.params[name] = value
		r.skip(" \t")
		if r.rest == "" {
			return true
		}
		if r.rest[0] != ',' {
			r.broken = true
			return false
		}
	}
}

func (r *challengeReader) skip(set string) { r.rest = strings.TrimLeft(r.rest, set) }

func (r *challengeReader) token() string {
	n := 0
	for n < len(r.rest) && isToken(r.rest[n:n+1]) {
		n++
	}
	text := r.rest[:n]
	r.rest = r.rest[n:]
	return text
}

// value reads a token or a quoted string.
func (r *challengeReader) value() (string, bool) {
	if !strings.HasPrefix(r.rest, `"`) {
		text := r.token()
		return text, text != ""
	}
	var b strings.Builder
	for i := 1; i < len(r.rest); i++ {
		c := r.rest[i]
		switch {
		case c == '"':
			r.rest = r.rest[i+1:]
			return b.String(), true
		case c == '\\' && i+1 < len(r.rest):
			i++
			c = r.rest[i]
		}
		if c < ' ' && c != '\t' || c == 0x7f {
			return "", false
		}
		b.WriteByte(c)
	}
	return "", false
}
