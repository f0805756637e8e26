package builtin

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"

	"capgate/capability/hostfs"
	"capgate/wire"
)

const maxListed = 2000 // entries in one result

// entry is one entry of a directory as it is shown.
type entry struct {
	name string
	info fs.FileInfo
	spot spot
}

// list is the tool list.
func (f *files) list(ctx context.Context, a arguments, m *memory) (result, error) {
	s, err := f.reach(reading, a.text("path", "."))
	if err != nil {
		return result{}, err
	}
	d, err := f.folder(s.real)
	if err != nil {
		return result{}, err
	}
	defer d.close()
	names, err := d.names(f.Limits.Entries, m)
	if err != nil {
		return result{}, err
	}
	var shown []entry
	for _, name := range names {
		if ctx.Err() != nil {
			return result{}, ctx.Err()
		}
		if len(shown) > maxListed {
			break
		}
		if e, ok := f.entry(d, s.rel, name); ok {
			if err := m.take(entrySize + len(e.spot.rel) + len(e.spot.real)); err != nil {
				return result{}, err
			}
			shown = append(shown, e)
		}
	}
	complete := len(shown) <= maxListed
	return listing(shown[:min(len(shown), maxListed)], complete, m), nil
}

// names returns the names in the directory, sorted. They are what the directory
// itself says; what its entries are is asked of each.
func (d *folder) names(most int, m *memory) ([]string, error) {
	var names []string
	for {
		some, err := d.self.Readdirnames(1024)
		names = append(names, some...)
		if err := m.take(namesSize(some)); err != nil {
			return nil, err
		}
		switch {
		case len(names) > most:
			return nil, problem("there are more entries than one call looks at")
		case errors.Is(err, io.EOF):
			slices.Sort(names)
			return names, nil
		case err != nil:
			return nil, explain(err)
		}
	}
}

// entry looks at an entry of a directory, if the agent may read what it leads to.
// One that it may not read is not there for it.
func (f *files) entry(d *folder, rel, name string) (entry, bool) {
	info, err := d.root.Lstat(name)
	if err != nil {
		return entry{}, false
	}
	e := entry{name: name, info: info}
	e.spot.rel = path.Join(rel, name)
	e.spot.text, e.spot.real = e.spot.rel, path.Join(d.real, name)
	if info.Mode().Type() == fs.ModeSymlink {
		if e.spot.real, err = (hostfs.FS{}).Real(e.spot.real); err != nil {
			return entry{}, false
		}
	}
	return e, f.shows(e.spot)
}

func listing(entries []entry, complete bool, m *memory) result {
	size := 0
	for _, e := range entries {
		size += lineSize + written(e.name)
	}
	r, lines := lined(`{"entries":[`, size, m)
	for i, e := range entries {
		kind := kindOf(e.info)
		if i > 0 {
			r.structured = append(r.structured, ',')
		}
		r.structured = wire.AppendString(append(r.structured, `{"name":`...), e.name)
		r.structured = wire.AppendString(append(r.structured, `,"type":`...), kind)
		lines.WriteString(kind + "\t" + e.name)
		if e.info.Mode().IsRegular() {
			r.structured = strconv.AppendInt(append(r.structured, `,"size":`...), e.info.Size(), 10)
			lines.WriteString("\t" + strconv.FormatInt(e.info.Size(), 10))
		}
		r.structured = append(r.structured, '}')
		lines.WriteByte('\n')
	}
	r.structured = strconv.AppendBool(append(r.structured, `],"complete":`...), complete)
	r.structured = append(r.structured, '}')
	if !complete {
		lines.WriteString("[there are more]\n")
	}
	r.text(lines.String())
	return r
}
