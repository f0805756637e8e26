package builtin

import (
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"capgate/capability"
)

// deletedEntries is how many times as many entries a call deletes at most as a list or a
// search looks at.
const deletedEntries = 20

// packages is the folder of what others have written, which may bring files along that
// tell clients something. No client is started in it.
const packages = "node_modules"

// spares refuses to delete a directory with a file beneath that may not be deleted by
// itself, as those may not that tell clients which servers to use. It is the whole that is
// denied: what lies in it is not told.
func (f *files) spares(ctx context.Context, in *folder, s spot, m *memory) error {
	info, err := in.root.Lstat(path.Base(s.real))
	if err != nil {
		return explain(err)
	}
	if !info.IsDir() || slices.Contains(strings.Split(s.real, "/"), packages) {
		return nil
	}
	seen := 0
	for left := []spot{s}; len(left) > 0; {
		dir := left[len(left)-1]
		left = left[:len(left)-1]
		m.give(spotSize(dir))
		folders, err := f.deletable(ctx, dir, &seen)
		if denied := (*capability.Denied)(nil); errors.As(err, &denied) {
			need, bad := f.need(deleting, s, true)
			if bad != nil {
				return bad
			}
			return &capability.Denied{Decision: capability.Denial(denied.Decision.Code, need)}
		}
		if err != nil {
			return err
		}
		for _, sub := range folders {
			if err := m.take(spotSize(sub)); err != nil {
				return err
			}
		}
		left = append(left, folders...)
	}
	return nil
}

// deletable asks for each file in a directory whether it may be deleted, and returns the
// directories in it. A name that no requirement can hold is none of a client's.
func (f *files) deletable(ctx context.Context, dir spot, seen *int) (folders []spot, err error) {
	d, err := f.folder(dir.real)
	if err != nil {
		return nil, err
	}
	defer d.close()
	for {
		some, err := d.self.ReadDir(1024)
		if *seen += len(some); *seen > deletedEntries*f.Limits.Entries {
			return nil, problem("there are more entries than one call deletes: delete some of the directories in it first")
		}
		for _, e := range some {
			rel := path.Join(dir.rel, e.Name())
			sub := spot{text: rel, rel: rel, real: path.Join(dir.real, e.Name())}
			denied := (*capability.Denied)(nil)
			switch {
			case e.IsDir() && e.Name() != packages:
				folders = append(folders, sub)
			case !e.IsDir() && errors.As(f.may(deleting, sub, false), &denied):
				return nil, denied
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return folders, ctx.Err()
		case err != nil:
			return nil, explain(err)
		case ctx.Err() != nil:
			return nil, ctx.Err()
		}
	}
}

func spotSize(s spot) int { return entrySize + len(s.rel) + len(s.real) }
