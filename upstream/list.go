package upstream

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"capgate/wire"
)

// The limits of a list.
const (
	maxPages     = 1000
	maxItems     = 100_000
	maxListBytes = 128 << 20 // of all pages together
	maxCursor    = 16 << 10  // bytes of a cursor
)

// Listing says what is listed.
type Listing struct {
	Method string
	Member string                  // of each result, which has the items
	Meta   func(dst []byte) []byte // appends the _meta of each request; nil is none
	Scrub  func([]byte) []byte     // takes secrets out of a refusal before it is cut short; nil is none
}

// List calls a method that lists, page by page, and returns the raw items. They are the
// caller's; each may have to be read loosely, and to be refused for its [Flaw]. An error of
// the server is a [*Refusal]. A list that is cut short by a limit is an error.
func List(ctx context.Context, c Conn, of Listing) ([][]byte, error) {
	var (
		l    = list{member: of.Member, modern: c.Info().Modern, seen: map[string]bool{}}
		doc  wire.Doc
		more = true
	)
	for pages := 0; more; pages++ {
		if pages == maxPages {
			return nil, fmt.Errorf("%s: there are more than %d pages", of.Method, maxPages)
		}
		answer, err := c.Call(ctx, Request{Method: of.Method, Params: l.params(of.Meta)}, nil)
		if err == nil {
			err = refusalIn(answer, of.Scrub)
		}
		if err == nil {
			more, err = l.page(&doc, answer.Result)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", of.Method, err)
		}
	}
	return l.items, nil
}

// list is what came of one so far.
type list struct {
	member string
	modern bool
	items  [][]byte
	bytes  int
	cursor []byte // where it goes on, as the server wrote it
	seen   map[string]bool
}

func (l *list) params(meta func(dst []byte) []byte) []byte {
	dst := []byte("{")
	if l.cursor != nil {
		dst = append(append(dst, `"cursor":`...), l.cursor...)
	}
	if meta != nil {
		if l.cursor != nil {
			dst = append(dst, ',')
		}
		dst = meta(append(dst, `"_meta":`...))
	}
	return append(dst, '}')
}

// page takes the items of a result, and reports whether there are more.
func (l *list) page(doc *wire.Doc, result []byte) (more bool, err error) {
	if l.bytes += len(result); l.bytes > maxListBytes {
		return false, fmt.Errorf("the list is longer than %d bytes", maxListBytes)
	}
	if err := doc.ParseLoosely(result, wire.Limits{Bytes: maxMessage}); err != nil {
		return false, err
	}
	root := doc.Root()
	if err := outside(doc, appendPlaces(nil, root, []string{l.member, "*"})); err != nil {
		return false, err
	}
	if kind, ok := root.Get("resultType"); ok && !kind.Equal("complete") && (l.modern || kind.Equal("input_required")) {
		return false, errors.New("the result is not a complete one")
	}
	items, _ := root.Get(l.member)
	if items.Kind() != wire.Array {
		return false, fmt.Errorf("the result has no list of %s", l.member)
	}
	if len(l.items)+items.Len() > maxItems {
		return false, fmt.Errorf("there are more than %d %s", maxItems, l.member)
	}
	for item := range items.Elems() {
		l.items = append(l.items, item.Raw())
	}
	return l.next(root)
}

// next reads where the list goes on. The same place twice would never end.
func (l *list) next(root wire.Value) (more bool, err error) {
	cursor, ok := root.Get("nextCursor")
	if !ok || cursor.Kind() == wire.Null {
		return false, nil
	}
	text, ok := cursor.Str()
	switch {
	case ok && text == "" && !l.modern:
		return false, nil // there are servers that end a list so
	case !ok || len(text) > maxCursor:
		return false, errors.New("the cursor is not one")
	case l.seen[text]:
		return false, errors.New("a cursor comes a second time")
	}
	l.seen[text] = true
	l.cursor = cursor.Raw()
	return true, nil
}

// refusalIn returns the error of a server as one of ours.
func refusalIn(a Answer, clean scrub) error {
	if a.Error == nil {
		return nil
	}
	doc, err := wire.Parse(a.Error)
	if err != nil {
		return err
	}
	code, _ := doc.Root().Get("code")
	message, _ := doc.Root().Get("message")
	number, _ := code.Int64()
	text, _ := message.Str()
	said := clean.of([]byte(text), math.MaxInt)
	return &Refusal{Code: int(number), Message: strings.ToValidUTF8(string(said[:min(len(said), maxQuote)]), "")}
}
