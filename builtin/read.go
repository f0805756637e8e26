package builtin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"strconv"
	"time"

	"capgate/upstream"
	"capgate/wire"
)

const (
	maxLines   = 1 << 30  // the largest line number that may be asked for
	maxSkipped = 64 << 20 // bytes in front of the first line that is shown
)

// read is the tool read.
func (f *files) read(ctx context.Context, a arguments, m *memory) (result, error) {
	s, err := f.reach(reading, a.text("path", ""))
	if err != nil {
		return result{}, err
	}
	d, name, err := f.parent(s)
	if err != nil {
		return result{}, err
	}
	defer d.close()
	file, info, err := d.open(name, os.O_RDONLY)
	if err != nil {
		return result{}, err
	}
	defer file.Close()
	p := page{memory: m, from: a.number("offset", 1), lines: a.number("limit", maxLines), bytes: f.Limits.Read}
	if err := p.read(ctx, file); err != nil {
		return result{}, err
	}
	r := result{memory: m}
	if isText(p.data) {
		if err := m.take(len(p.data)); err != nil {
			return result{}, err
		}
		r.text(string(p.data))
		if note := p.note(); note != "" {
			r.text(note)
		}
		return r, nil
	}
	if a.has("offset") || a.has("limit") {
		return result{}, problem("the file is not text, and has no lines")
	}
	m.give(cap(p.data))
	data, err := f.all(file, info, m)
	if err != nil {
		return result{}, err
	}
	uri := url.URL{Scheme: "file", Path: path.Join(f.Root.Dir, s.rel)}
	r.blob(uri.String(), sniff(data), data)
	return r, nil
}

// all reads a file that is shown whole or not at all.
func (f *files) all(file *os.File, info fs.FileInfo, m *memory) ([]byte, error) {
	tooLarge := problemf("the file is not text and holds more than %d bytes", f.Limits.Read)
	if info.Size() > int64(f.Limits.Read) {
		return nil, tooLarge
	}
	data, err := m.read(io.NewSectionReader(file, 0, int64(f.Limits.Read)+1), nil, f.Limits.Read)
	switch {
	case errors.Is(err, upstream.ErrNoRoom):
		return nil, err
	case err != nil:
		return nil, explain(err)
	case len(data) > f.Limits.Read:
		return nil, tooLarge
	}
	return data, nil
}

// page is a run of lines of a file.
type page struct {
	memory             *memory
	from, lines, bytes int // what is asked for

	data []byte // what was read
	last int    // the number of its last line
	more bool   // there are lines beyond it
	cut  bool   // the last line is not whole
}

// read reads the page. A line that is longer than the page is cut.
func (p *page) read(ctx context.Context, file io.Reader) error {
	in := bufio.NewReaderSize(file, 64<<10)
	if err := p.skip(ctx, in); err != nil {
		return err
	}
	p.last = p.from - 1
	for start := true; ; {
		part, err := in.ReadSlice('\n')
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case len(part) == 0 && errors.Is(err, io.EOF):
			return nil
		case start && p.last-p.from+1 == p.lines:
			p.more = true
			return nil
		}
		if start {
			p.last++
		}
		if room := p.bytes - len(p.data); len(part) > room {
			return p.fill(part[:room], start)
		}
		if err := p.add(part); err != nil {
			return err
		}
		start = err == nil
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return explain(err)
		}
	}
}

// fill ends a page that is full: before the line that no longer fits, or in it
// when it is the only one.
func (p *page) fill(part []byte, start bool) error {
	p.more = true
	if p.last > p.from {
		if !start {
			p.data = p.data[:1+lastBreak(p.data)]
		}
		p.last--
		return nil
	}
	err := p.add(part)
	p.data, p.cut = whole(p.data), true
	return err
}

// add puts a part behind what was read, which has memory made for as much again.
func (p *page) add(part []byte) error {
	if len(part) > cap(p.data)-len(p.data) {
		var err error
		if p.data, err = p.memory.grow(p.data, max(len(part), min(len(p.data), p.bytes-len(p.data)))); err != nil {
			return err
		}
	}
	p.data = append(p.data, part...)
	return nil
}

func lastBreak(data []byte) int {
	for i := len(data) - 1; i >= 0; i-- {
		if data[i] == '\n' {
			return i
		}
	}
	return -1
}

// skip reads up to the first line of the page.
func (p *page) skip(ctx context.Context, in *bufio.Reader) error {
	passed, within := 0, false // a line that has not ended yet
	for line := 1; line < p.from; {
		part, err := in.ReadSlice('\n')
		passed += len(part)
		within = err != nil && (within || len(part) > 0)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			line++
		case errors.Is(err, io.EOF) && within:
			return pastEnd(line)
		case errors.Is(err, io.EOF):
			return pastEnd(line - 1)
		case !errors.Is(err, bufio.ErrBufferFull):
			return explain(err)
		}
		if passed > maxSkipped {
			return problemf("there are more than %d bytes in front of that line", maxSkipped)
		}
	}
	if _, err := in.Peek(1); p.from > 1 && errors.Is(err, io.EOF) {
		return pastEnd(p.from - 1)
	}
	return nil
}

// pastEnd says that a file has no more than so many lines.
func pastEnd(lines int) error {
	if lines == 0 {
		return problem("the file is empty")
	}
	return problemf("the file ends with line %d", lines)
}

// note says what is missing of the file, "" when nothing is.
func (p *page) note() string {
	switch {
	case p.cut:
		return fmt.Sprintf("[line %d is longer than %d bytes and was cut; go on with offset %d]", p.last, p.bytes, p.last+1)
	case p.more:
		return fmt.Sprintf("[lines %d to %d; there are more, go on with offset %d]", p.from, p.last, p.last+1)
	}
	return ""
}

// info is the tool info.
func (f *files) info(_ context.Context, a arguments, _ *memory) (result, error) {
	s, err := f.reach(reading, a.text("path", ""))
	if err != nil {
		return result{}, err
	}
	d, name, err := f.parent(s)
	if err != nil {
		return result{}, err
	}
	defer d.close()
	info, err := d.stat(name)
	if err != nil {
		return result{}, err
	}
	changed := info.ModTime().UTC().Format(time.RFC3339)
	var r result
	r.text(fmt.Sprintf("%s, %d bytes, %v, changed %s", kindOf(info), info.Size(), info.Mode(), changed))
	r.structured = wire.AppendString([]byte(`{"type":`), kindOf(info))
	r.structured = strconv.AppendInt(append(r.structured, `,"size":`...), info.Size(), 10)
	r.structured = wire.AppendString(append(r.structured, `,"mode":`...), info.Mode().String())
	r.structured = append(wire.AppendString(append(r.structured, `,"changed":`...), changed), '}')
	return r, nil
}

// kindOf says what an entry is.
func kindOf(info fs.FileInfo) string {
	switch info.Mode().Type() {
	case 0:
		return "file"
	case fs.ModeDir:
		return "directory"
	case fs.ModeSymlink:
		return "link"
	}
	return "special"
}
