package builtin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"capgate/upstream"
	"capgate/wire"
)

const (
	maxSought   = 1024      // bytes of the text that is searched for
	maxFound    = 500       // hits in one result
	maxDeep     = 64        // directories inside each other
	maxSearched = 8 << 20   // bytes of one file; larger ones are passed over
	maxTotal    = 256 << 20 // bytes of all files of one search
	maxShown    = 300       // bytes of a line that is shown
)

// hunt is one search.
type hunt struct {
	*files
	memory *memory
	glob   glob
	text   []byte
	data   []byte // memory that files are read into

	seen   int // entries looked at
	total  int // bytes read
	passed int // files passed over, for their size
	hits   []hit
	full   bool // there are more hits
}

// hit is a file that was found, with a line of it when text was searched for.
type hit struct {
	path string
	line int // counted from 1; 0 for the file itself
	text string
}

// search is the tool search.
func (f *files) search(ctx context.Context, a arguments, m *memory) (result, error) {
	h := hunt{files: f, memory: m, text: []byte(a.text("text", ""))}
	var err error
	if h.glob, err = parseGlob(a.text("pattern", "")); err != nil {
		return result{}, err
	}
	s, err := f.find(a.text("path", "."), false)
	if err == nil {
		err = f.may(reading, s, true)
	}
	if err != nil {
		return result{}, err
	}
	d, err := f.folder(s.real)
	if err != nil {
		return result{}, err
	}
	defer d.close()
	if err := h.folder(ctx, d, s.rel, h.glob.start()); err != nil {
		return result{}, err
	}
	return h.result(), nil
}

// folder searches a directory, to which some way leads through the pattern.
func (h *hunt) folder(ctx context.Context, d *folder, rel string, w way) error {
	names, err := d.names(h.Limits.Entries-h.seen, h.memory)
	if err != nil {
		return err
	}
	defer h.memory.give(namesSize(names))
	d.self.Close() // its names were all that was wanted; deep down there are many
	for _, name := range names {
		switch h.seen++; {
		case ctx.Err() != nil:
			return ctx.Err()
		case h.full:
			return nil
		case h.seen > h.Limits.Entries:
			return problem("there are more entries than one call looks at: search in a smaller directory")
		}
		if e, ok := h.entry(d, rel, name); ok {
			if err := h.entered(ctx, d, e, w); err != nil {
				return err
			}
		}
	}
	return nil
}

// entered looks at one entry, and beneath it.
func (h *hunt) entered(ctx context.Context, d *folder, e entry, w way) error {
	w, err := h.glob.next(w, e.name)
	matches := w.matches()
	switch {
	case err != nil:
		return err
	case e.info.IsDir():
		if matches && len(h.text) == 0 {
			h.found(hit{path: e.spot.rel})
		}
		if w.depth == maxDeep {
			return problemf("there are more than %d directories inside each other: search in a smaller one", maxDeep)
		}
		sub, err := d.sub(e.name)
		if err != nil {
			return unopened(err)
		}
		defer sub.close()
		return h.folder(ctx, sub, e.spot.rel, w)
	case !matches:
		return nil
	case len(h.text) == 0:
		h.found(hit{path: e.spot.rel})
		return nil
	case e.info.Mode().IsRegular():
		return h.lines(d, e)
	}
	return nil
}

// unopened is what comes of a search in which something was not opened: what cannot be, or was moved
// away, holds no hits.
func unopened(err error) error {
	if errors.Is(err, crowd) {
		return err
	}
	return nil
}

func (h *hunt) found(x hit) {
	if len(h.hits) == maxFound {
		h.full = true
		return
	}
	h.hits = append(h.hits, x)
}

// lines searches the lines of a file.
func (h *hunt) lines(d *folder, e entry) error {
	file, info, err := d.open(e.name, os.O_RDONLY)
	if err != nil {
		return unopened(err)
	}
	defer file.Close()
	if info.Size() > maxSearched {
		h.passed++
		return nil
	}
	data, err := h.memory.read(file, h.data, maxSearched)
	h.data = data
	switch h.total += len(data); {
	case errors.Is(err, upstream.ErrNoRoom):
		return err
	case h.total > maxTotal:
		return problemf("there are more than %d bytes to search: search in a smaller directory", maxTotal)
	}
	if err != nil || !bytes.Contains(data, h.text) || !isText(data) {
		return nil // what cannot be read holds no hits
	}
	number := 0
	for line := range bytes.Lines(data) {
		if number++; bytes.Contains(line, h.text) {
			line = bytes.TrimRight(line, "\r\n")
			h.found(hit{e.spot.rel, number, string(whole(line[:min(len(line), maxShown)]))})
		}
	}
	return nil
}

// result writes what was found.
func (h *hunt) result() result {
	size := 0
	for _, x := range h.hits {
		size += lineSize + written(x.path) + written(x.text)
	}
	r, lines := lined(`{"hits":[`, size, h.memory)
	for i, x := range h.hits {
		if i > 0 {
			r.structured = append(r.structured, ',')
		}
		r.structured = wire.AppendString(append(r.structured, `{"path":`...), x.path)
		lines.WriteString(x.path)
		if x.line > 0 {
			r.structured = strconv.AppendInt(append(r.structured, `,"line":`...), int64(x.line), 10)
			r.structured = wire.AppendString(append(r.structured, `,"text":`...), x.text)
			fmt.Fprintf(lines, ":%d: %s", x.line, x.text)
		}
		r.structured = append(r.structured, '}')
		lines.WriteByte('\n')
	}
	r.structured = strconv.AppendBool(append(r.structured, `],"complete":`...), !h.full && h.passed == 0)
	r.structured = append(r.structured, '}')
	if len(h.hits) == 0 {
		lines.WriteString("[nothing was found]\n")
	}
	if h.full {
		fmt.Fprintf(lines, "[there are more than %d]\n", maxFound)
	}
	if h.passed > 0 {
		fmt.Fprintf(lines, "[%d files are over %d bytes and were not searched]\n", h.passed, maxSearched)
	}
	r.text(lines.String())
	return r
}
