package capability

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	maxSpecText   = 64 << 10 // bytes of one compact spec
	maxSpecValues = 1024     // values of one scope key
	maxSpecDepth  = 4        // brackets within one compact spec, pattern brackets not counted
)

// ParseSpec reads one grant in compact form, verb{key=[a,b],key=value}, or as a
// token of another dialect: fs.write:/home/agent/**, rye.execute.tool.a.*. It
// checks the form only; what the words mean is decided by [Compile].
func ParseSpec(text string) (Spec, error) {
	switch {
	case len(text) > maxSpecText:
		return Spec{}, fmt.Errorf("the grant is over %d bytes", maxSpecText)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, isControl):
		return Spec{}, fmt.Errorf("the grant holds control characters or invalid UTF-8")
	}
	text = strings.TrimSpace(text)
	if isRye(text) {
		return parseRye(text)
	}
	verb, rest := text, ""
	if i := strings.IndexAny(text, "{:"); i >= 0 {
		verb, rest = strings.TrimRight(text[:i], " "), text[i:]
	}
	if err := checkVerbForm(verb); err != nil {
		return Spec{}, err
	}
	switch {
	case rest == "":
		return Spec{Verb: verb, Bare: true}, nil
	case rest[0] == ':':
		return parseToken(verb, rest[1:])
	}
	p := specParser{text: rest}
	scope, err := p.scope(0)
	if err == nil && p.rest() != "" {
		err = fmt.Errorf("unexpected %q after the closing brace", p.rest())
	}
	if err != nil {
		return Spec{}, fmt.Errorf("grant %q: %w", text, err)
	}
	return Spec{Verb: verb, Scope: scope}, nil
}

// isControl reports whether a rune is a C0 or C1 control character or DEL.
func isControl(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }

// checkVerbForm accepts resource.verb in lower case, and says what else was meant.
func checkVerbForm(verb string) error {
	if strings.Trim(verb, "abcdefghijklmnopqrstuvwxyz0123456789_.") == "" && strings.Contains(verb, ".") &&
		!strings.HasPrefix(verb, ".") && !strings.HasSuffix(verb, ".") && !strings.Contains(verb, "..") {
		return nil
	}
	if verb == "" {
		return fmt.Errorf("the grant names no verb")
	}
	return fmt.Errorf("%q is no verb: a verb is resource.verb, such as net.get", clip(verb))
}

// specParser reads the scope part of a compact spec.
type specParser struct {
	text string
	pos  int
}

func (p *specParser) rest() string { return strings.TrimSpace(p.text[p.pos:]) }

func (p *specParser) skip() {
	for p.pos < len(p.text) && p.text[p.pos] == ' ' {
		p.pos++
	}
}

// take consumes one character if it is the next one.
func (p *specParser) take(c byte) bool {
	p.skip()
	if p.pos < len(p.text) && p.text[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

// scope reads {key=value,…}.
func (p *specParser) scope(depth int) ([]Param, error) {
	if depth >= maxSpecDepth {
		return nil, fmt.Errorf("brackets nest deeper than %d", maxSpecDepth)
	}
	p.take('{')
	params := []Param{}
	if p.take('}') {
		return params, nil
	}
	for {
		param, err := p.param(depth)
		if err != nil {
			return nil, err
		}
		for _, q := range params {
			if q.Key == param.Key {
				return nil, fmt.Errorf("%q stands twice", param.Key)
			}
		}
		params = append(params, param)
		switch {
		case p.take('}'):
			return params, nil
		case !p.take(','):
			return nil, fmt.Errorf("a comma or a closing brace is missing after %q", param.Key)
		}
	}
}

func (p *specParser) param(depth int) (Param, error) {
	p.skip()
	end := strings.IndexAny(p.text[p.pos:], "={}[],")
	if end <= 0 || p.text[p.pos+end] != '=' {
		return Param{}, fmt.Errorf("key=value expected at %q", clip(p.text[p.pos:]))
	}
	param := Param{Key: strings.TrimSpace(p.text[p.pos : p.pos+end])}
	p.pos += end + 1
	p.skip()
	var err error
	switch {
	case strings.HasPrefix(p.text[p.pos:], "{"):
		param.IsMap = true
		param.Args, err = p.scope(depth + 1)
	case p.take('['):
		param.Values, err = p.list()
	default:
		param.Single = true
		var v string
		v, err = p.value(",}")
		param.Values = []string{v}
	}
	return param, err
}

func (p *specParser) list() ([]string, error) {
	values := []string{}
	if p.take(']') {
		return values, nil
	}
	for {
		v, err := p.value(",]")
		if err != nil {
			return nil, err
		}
		values = append(values, v)
		switch {
		case len(values) > maxSpecValues:
			return nil, fmt.Errorf("more than %d values", maxSpecValues)
		case p.take(']'):
			return values, nil
		case !p.take(','):
			return nil, fmt.Errorf("a comma or a closing bracket is missing after %q", clip(v))
		}
	}
}

// value reads one plain or quoted value up to one of the stop characters that
// stands outside the value's own brackets.
func (p *specParser) value(stops string) (string, error) {
	p.skip()
	if p.take('"') {
		return p.quotedValue()
	}
	start, depth := p.pos, 0
	for ; p.pos < len(p.text); p.pos++ {
		c := p.text[p.pos]
		if depth == 0 && strings.IndexByte(stops, c) >= 0 {
			break
		}
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
	}
	v := strings.TrimSpace(p.text[start:p.pos])
	if v == "" {
		return "", fmt.Errorf("a value is missing at %q", clip(p.text[start:]))
	}
	return v, nil
}

func (p *specParser) quotedValue() (string, error) {
	var b strings.Builder
	for ; p.pos < len(p.text); p.pos++ {
		switch c := p.text[p.pos]; {
		case c == '"':
			p.pos++
			return b.String(), nil
		case c == '\\' && p.pos+1 < len(p.text):
			p.pos++
			b.WriteByte(p.text[p.pos])
		default:
			b.WriteByte(c)
		}
	}
	return "", fmt.Errorf("a closing quote is missing")
}

// clip shortens text for a message, to whole characters.
func clip(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
