package capability

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"capgate/capability/pattern"
)

// Dialect is the language a record is written in. It decides what a verb
// without a scope means; everything else is the same in all of them.
type Dialect uint8

// The dialects, one for each of the four front ends.
const (
	Egghead Dialect = iota
	Scarab
	Rye
	Ethos
)

// String returns the dialect's name.
func (d Dialect) String() string { return [...]string{"egghead", "scarab", "rye", "ethos"}[d] }

// parseToken reads the scope of a Scarab token, which is all that follows the
// first colon. An absolute path is its own root.
func parseToken(verb, scope string) (Spec, error) {
	e, ok := Lookup(Verb(verb))
	if !ok { // said by Compile, which knows what was meant
		return Spec{Verb: verb, Bare: true}, nil
	}
	if e.token == "" {
		return Spec{}, fmt.Errorf("%q takes no scope after a colon; write %s{…}", verb, verb)
	}
	if scope == "" {
		return Spec{}, fmt.Errorf("%q has nothing after the colon", verb+":")
	}
	if scope[0] == ' ' { // an entry of a record written as text, and no name that begins so
		return Spec{}, fmt.Errorf("%q has a blank after the colon; write %s{%s=[…]}", verb+":", verb, e.token)
	}
	spec := Spec{Verb: verb, Token: strings.HasPrefix(scope, "/")}
	if e.token != pathsKey.Name || e.Verb.Resource() != "fs" {
		return spec.With(e.token, scope), nil
	}
	return pathToken(spec, scope)
}

// pathToken splits an absolute path glob into the root it carries with it and
// the part below. The part is always a glob, never a plain entry: in a token
// /etc/hosts means that file, where paths: [hosts] means all beneath it too.
func pathToken(spec Spec, scope string) (Spec, error) {
	if !strings.HasPrefix(scope, "/") {
		return spec.With(pathsKey.Name, exactGlob(scope)), nil
	}
	p, err := pattern.Parse(scope, pattern.Slash)
	if err != nil {
		return Spec{}, fmt.Errorf("%s: %w", spec.Verb, err)
	}
	if _, literal := p.Literal(); !literal {
		// The longest run of whole segments without a glob character is the root.
		cut := strings.IndexAny(scope, `*?[{\`)
		dir := scope[:strings.LastIndexByte(scope[:cut], '/')]
		return spec.With(inKey.Name, max(dir, "/")).With(pathsKey.Name, scope[len(dir)+1:]), nil
	}
	dir, base := scope[:strings.LastIndexByte(scope, '/')], scope[strings.LastIndexByte(scope, '/')+1:]
	if base == "" {
		return Spec{}, fmt.Errorf("%s:%s ends in a slash; write %s** for everything beneath it", spec.Verb, scope, scope)
	}
	return spec.With(inKey.Name, max(dir, "/")).With(pathsKey.Name, exactGlob(base)), nil
}

// exactGlob marks plain text as a glob, so that it stands for itself alone.
func exactGlob(text string) string {
	if strings.ContainsAny(text, globChars) {
		return text
	}
	return `\` + text
}

// ryeActions and ryeTypes are the words of a Rye string, in their documented order.
var (
	ryeActions = [...]string{"execute", "search", "load", "sign"}
	ryeTypes   = [...]string{"tool", "directive", "knowledge"}
)

// ryeAll is Rye's "god mode": every action on everything.
const ryeAll = "rye.*"

// isRye reports whether a token is a Rye capability string, and no verb with a scope.
func isRye(text string) bool {
	end := strings.IndexAny(text, "{:")
	return strings.HasPrefix(text, "rye.") && (end < 0 || text[end] != '{')
}

// parseRye reads rye.<action>.<type>[.<id pattern>], with the wildcards
// rye.<action>.* and rye.* for all types and all actions. Those two stay one
// spec each: [Compile] expands them.
func parseRye(text string) (Spec, error) {
	if text == ryeAll {
		return Spec{Verb: ryeAll, Bare: true}, nil
	}
	words := strings.SplitN(text, ".", 4)
	if len(words) < 3 {
		return Spec{}, fmt.Errorf("%q is no Rye string: rye.<action>.<type>.<id>", clip(text))
	}
	if !slices.Contains(ryeActions[:], words[1]) {
		return Spec{}, fmt.Errorf("%q is no Rye action: one of %s", clip(words[1]), strings.Join(ryeActions[:], ", "))
	}
	if words[2] == "*" && len(words) == 3 {
		return Spec{Verb: text, Bare: true}, nil
	}
	if !slices.Contains(ryeTypes[:], words[2]) {
		return Spec{}, fmt.Errorf("%q is no Rye item type: one of %s", clip(words[2]), strings.Join(ryeTypes[:], ", "))
	}
	verb := strings.Join(words[:3], ".")
	if len(words) == 3 {
		return Spec{Verb: verb, Bare: true}, nil
	}
	id := strings.ReplaceAll(words[3], "/", ".")
	if strings.ContainsFunc(id, isNotRye) {
		return Spec{}, fmt.Errorf("%q is no Rye id pattern: letters, digits, - _ . and the wildcards * and ?", clip(words[3]))
	}
	return Spec{Verb: verb}.With(ryeKey.Name, id), nil
}

// isNotRye reports whether a character may not stand in a Rye id pattern.
func isNotRye(r rune) bool {
	const punctuation = "-_.*?"
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(punctuation, r)
}

const (
	maxXMLBytes = 256 << 10
	maxXMLDepth = 3 // permissions, action, type
)

// ParsePermissions reads a Rye <permissions> block. Entities beyond XML's own
// five, processing instructions and anything but the known elements are refused.
func ParsePermissions(block string) ([]Spec, error) {
	if len(block) > maxXMLBytes {
		return nil, fmt.Errorf("the <permissions> block is over %d bytes", maxXMLBytes)
	}
	r := ryeReader{dec: xml.NewDecoder(strings.NewReader(block))}
	r.dec.Strict = true
	for {
		tok, err := r.dec.Token()
		if errors.Is(err, io.EOF) {
			return r.end()
		}
		if err == nil {
			err = r.token(tok)
		}
		if err != nil {
			line, col := r.dec.InputPos()
			return nil, fmt.Errorf("<permissions> line %d column %d: %w", line, col, err)
		}
	}
}

// ryeReader walks the elements of a <permissions> block.
type ryeReader struct {
	dec   *xml.Decoder
	path  []string // open elements
	said  bool     // the element at hand has had its text
	done  bool     // the block has been closed
	specs []Spec
}

func (r *ryeReader) end() ([]Spec, error) {
	if !r.done {
		return nil, fmt.Errorf("no <permissions> block")
	}
	return r.specs, nil
}

func (r *ryeReader) token(tok xml.Token) error {
	switch t := tok.(type) {
	case xml.StartElement:
		return r.open(t)
	case xml.EndElement:
		r.path, r.said = r.path[:len(r.path)-1], false
		r.done = len(r.path) == 0
	case xml.CharData:
		return r.text(strings.TrimSpace(string(t)))
	case xml.Comment:
	default:
		return fmt.Errorf("only elements and text may stand here")
	}
	return nil
}

func (r *ryeReader) open(t xml.StartElement) error {
	name := t.Name.Local
	known := [maxXMLDepth][]string{{"permissions"}, ryeActions[:], ryeTypes[:]}
	switch {
	case r.done || len(r.path) >= maxXMLDepth || !slices.Contains(known[len(r.path)], name):
		return fmt.Errorf("<%s> does not belong here", clip(name))
	case len(t.Attr) > 0 || t.Name.Space != "":
		return fmt.Errorf("<%s> takes no attributes", name)
	}
	r.path, r.said = append(r.path, name), false
	return nil
}

func (r *ryeReader) text(text string) error {
	if text == "" {
		return nil
	}
	if len(r.path) < maxXMLDepth && text != "*" || len(r.path) == 0 {
		return fmt.Errorf("%q does not belong here", clip(text))
	}
	if r.said { // a comment or CDATA within would make two of one
		return fmt.Errorf("%q is a second text in <%s>", clip(text), r.path[len(r.path)-1])
	}
	r.said = true
	word := strings.Join(append([]string{"rye"}, r.path[1:]...), ".") + "." + text
	spec, err := parseRye(word)
	if err != nil {
		return err
	}
	line, col := r.dec.InputPos()
	spec.Pos = Pos{Line: line, Col: col}
	r.specs = append(r.specs, spec)
	return nil
}
