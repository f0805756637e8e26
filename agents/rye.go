package agents

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"capgate/capability"
)

// maxElements is how deep the XML around a <permissions> block may nest.
const maxElements = 64

// rye reads a directive: the one <permissions> block of the file. Without one,
// the directive has what its parent has, and without a parent nothing.
func (p *parser) rye() error {
	text, from, err := p.directive()
	if err != nil {
		return err
	}
	d := directive{parser: p, text: text, from: from}
	if text != "" {
		if err := d.read(); err != nil {
			return err
		}
	}
	if p.rec.ID == "" && d.name != "" {
		if p.rec.ID = capability.AgentID(d.name); p.rec.ID == "" {
			return p.invalid(d.pos(0), fmt.Sprintf("the directive's name %q is no agent id", d.name), idForm)
		}
	}
	p.rec.Inherit = d.starts == nil && p.rec.Parent != ""
	return p.idFromFile()
}

// directive finds the XML of the record in its file: all of an XML file, the
// first xml fence of a Markdown file, or the one element that stands in its text.
// It returns nothing when there is none.
func (p *parser) directive() (text string, from int, err error) {
	if p.kind == xmlFile {
		return p.body, 0, nil
	}
	blocks := fences(p.body)
	tags := tagsOf(p.body, "permissions")
	if i := slices.IndexFunc(blocks, func(b fenced) bool { return strings.EqualFold(b.info, "xml") }); i >= 0 {
		return p.fencedDirective(blocks[i], tags)
	}
	for _, at := range tags {
		if slices.ContainsFunc(blocks, func(b fenced) bool { return b.start <= at && at < b.end }) {
			return "", 0, p.atBody(at, "the <permissions> block stands in a fence that is not marked as xml", "begin the fence with ```xml")
		}
	}
	starts := append(tags, tagsOf(p.body, "directive")...)
	if len(starts) == 0 {
		return "", 0, p.checkTags()
	}
	from = slices.Min(starts)
	if open := strings.Index(p.body, "<!--"); open >= 0 && open < slices.Max(starts) {
		return "", 0, p.atBody(open, "a comment stands before or in the directive's XML, which could hide it", "put the XML into a fence marked xml")
	}
	return p.element(from, tags)
}

// checkTags looks for a block that was mistyped, in a text that seems to have none.
func (p *parser) checkTags() error {
	for at := range len(p.body) {
		if p.body[at] != '<' {
			continue
		}
		if name := tagName(p.body[at+1:]); mistyped(name, []string{"permissions"}) != "" {
			return p.atBody(at, fmt.Sprintf("<%s> is no element of a directive", name), "did you mean <permissions>?")
		}
	}
	return nil
}

func (p *parser) fencedDirective(b fenced, tags []int) (string, int, error) {
	for _, at := range tags {
		if at < b.start || at >= b.end {
			return "", 0, p.atBody(at, "a <permissions> block stands outside the first xml fence", "keep one block, in the first xml fence")
		}
	}
	if !b.closed {
		return "", 0, p.atBody(b.start, "the xml fence is never closed", "")
	}
	return p.body[b.start:b.end], b.start, nil
}

// element cuts out the element that begins at a place in the prose.
func (p *parser) element(from int, tags []int) (string, int, error) {
	dec := xml.NewDecoder(strings.NewReader(p.body[from:]))
	for depth := 0; ; {
		tok, err := dec.Token()
		if err != nil {
			return "", 0, p.atBody(from, "the directive's XML is not well-formed: "+xmlProblem(err), "if the text is prose, write dialect: egghead")
		}
		switch tok.(type) {
		case xml.StartElement:
			depth++
		case xml.EndElement:
			depth--
		}
		if depth > maxElements {
			return "", 0, p.atBody(from, fmt.Sprintf("the directive's XML nests deeper than %d", maxElements), "")
		}
		if depth == 0 {
			break
		}
	}
	end := from + int(dec.InputOffset())
	if i := slices.IndexFunc(tags, func(at int) bool { return at >= end }); i >= 0 {
		return "", 0, p.atBody(tags[i], "a second <permissions> block stands here", "keep one")
	}
	return p.body[from:end], from, nil
}

// atBody is an error at a byte of the body.
func (p *parser) atBody(at int, text, hint string) *Invalid {
	pos := posAt([]byte(p.body), at)
	pos.Line += p.bodyLine
	return p.invalid(pos, text, hint)
}

// directive reads the XML of one.
type directive struct {
	*parser
	text string
	from int // where it begins in the body

	name       string
	directives int
	depth      int
	starts     []int // where <permissions> elements begin in the text
	end        int   // where the first of them ends
	inside     int   // the depth of the open <permissions>, 0 if none is
	hidden     int   // <permissions in comments
}

func (d *directive) pos(at int) capability.Pos {
	pos := posAt([]byte(d.body), d.from+at)
	pos.Line += d.bodyLine
	return pos
}

func (d *directive) read() error {
	dec := xml.NewDecoder(strings.NewReader(d.text))
	for {
		at := int(dec.InputOffset())
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return d.finish()
		}
		if err != nil {
			return d.invalid(d.pos(at), "the directive's XML is not well-formed: "+xmlProblem(err), "")
		}
		if err := d.token(tok, at, int(dec.InputOffset())); err != nil {
			return err
		}
	}
}

func xmlProblem(err error) string {
	if syntax := (*xml.SyntaxError)(nil); errors.As(err, &syntax) {
		return syntax.Msg
	}
	return err.Error()
}

func (d *directive) token(tok xml.Token, at, end int) error {
	switch t := tok.(type) {
	case xml.StartElement:
		return d.open(t, at)
	case xml.EndElement:
		if d.depth == d.inside {
			d.inside, d.end = 0, end
		}
		d.depth--
	case xml.Comment:
		d.hidden += len(tagsOf(d.text[at:end], "permissions"))
	case xml.Directive:
		return d.invalid(d.pos(at), "a document type has no place in a directive", "")
	case xml.ProcInst:
		if at != 0 || t.Target != "xml" {
			return d.invalid(d.pos(at), "a processing instruction has no place in a directive", "")
		}
	}
	return nil
}

func (d *directive) open(t xml.StartElement, at int) error {
	d.depth++
	name := t.Name.Local
	switch {
	case d.depth > maxElements:
		return d.invalid(d.pos(at), fmt.Sprintf("the directive's XML nests deeper than %d", maxElements), "")
	case name == "permissions" && t.Name.Space == "":
		if d.starts = append(d.starts, at); d.inside == 0 {
			d.inside = d.depth
		}
	case d.inside > 0:
	case name == "permissions":
		return d.invalid(d.pos(at), "<permissions> takes no namespace", "")
	case mistyped(name, []string{"permissions"}) != "":
		return d.invalid(d.pos(at), fmt.Sprintf("<%s> is no element of a directive", name), "did you mean <permissions>?")
	case d.depth == 1 && slices.Contains([]string{"execute", "search", "load", "sign"}, name):
		return d.invalid(d.pos(at), fmt.Sprintf("<%s> stands outside a <permissions> block", name), "")
	case d.depth == 1 && name == "directive":
		return d.directive(t, at)
	}
	return nil
}

// directive notes the name of the directive.
func (d *directive) directive(t xml.StartElement, at int) error {
	if d.directives++; d.directives > 1 {
		return d.invalid(d.pos(at), "a second <directive> begins here", "one file holds one directive")
	}
	for _, a := range t.Attr {
		if a.Name.Local == "name" && a.Name.Space == "" {
			d.name = a.Value
		}
	}
	return nil
}

// finish reads the block that was found. Every <permissions that the text shows
// must be the block or part of a comment.
func (d *directive) finish() error {
	shown := tagsOf(d.text, "permissions")
	switch {
	case len(d.starts) > 1 || len(shown) != len(d.starts)+d.hidden:
		return d.invalid(d.pos(shown[len(shown)-1]), "<permissions> stands more than once, or where it is not read", "keep one block")
	case len(d.starts) == 0:
		return nil
	}
	block := d.text[d.starts[0]:d.end]
	at := d.pos(d.starts[0])
	if strings.Contains(block, "&") || strings.Contains(block, "<![") {
		return d.invalid(at, "the <permissions> block holds entities or CDATA", "write the ids out")
	}
	// The parser counts from where its text begins; it begins where the block
	// stands in the file.
	padding := strings.Repeat("\n", at.Line-1) + strings.Repeat(" ", at.Col-1)
	specs, err := capability.ParsePermissions(padding + block)
	if err != nil {
		return d.invalid(at, err.Error(), "")
	}
	for i := range specs {
		specs[i].Pos.File = d.file
	}
	d.add(specs...)
	return nil
}
