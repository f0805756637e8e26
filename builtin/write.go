package builtin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// The modes of the tool write.
const (
	create    = "create"
	overwrite = "overwrite"
	appending = "append"
)

// write is the tool write.
func (f *files) write(_ context.Context, a arguments, _ *memory) (result, error) {
	s, err := f.reach(writing, a.text("path", ""))
	if err != nil {
		return result{}, err
	}
	d, name, err := f.parent(s)
	if err != nil && a.flag("parents") {
		d, name, err = f.parents(s)
	}
	switch {
	case errors.Is(err, missing) && !a.flag("parents"):
		return result{}, problem("there is no such directory: it is made with parents: true")
	case err != nil:
		return result{}, err
	}
	defer d.close()
	content := []byte(a.text("content", ""))
	switch _, err = d.root.Lstat(name); {
	case errors.Is(err, fs.ErrNotExist) || a.text("mode", create) == create:
		err = d.create(name, content)
	case a.text("mode", "") == overwrite:
		err = d.replace(name, content)
	default:
		err = d.extend(name, content)
	}
	if err != nil {
		return result{}, err
	}
	var r result
	r.text(fmt.Sprintf("wrote %d bytes", len(content)))
	return r, nil
}

// parents opens the directory that holds a spot and makes those above it that are
// not there, each of which must be one that may be written. They are named in a
// denial as the path names them.
func (f *files) parents(s spot) (*folder, string, error) {
	dir, name := path.Split(s.real)
	names := strings.Split(strings.Trim(strings.TrimPrefix(dir, f.Root.Real), "/"), "/")
	written := strings.Split(s.rel, "/")
	d, err := f.folder(f.Root.Real)
	for i, n := range names {
		if err != nil || n == "" {
			break
		}
		outer := d
		d, err = outer.sub(n)
		if err != nil && errors.Is(outer.missing(n), fs.ErrNotExist) {
			if above := len(written) - (len(names) - i); above > 0 {
				text := strings.Join(written[:above], "/")
				d, err = f.makeDir(outer, n, spot{text: text, rel: text, real: path.Join(outer.real, n)})
			}
		}
		outer.close()
	}
	return d, name, err
}

func (d *folder) missing(name string) error {
	_, err := d.root.Lstat(name)
	return err
}

func (f *files) makeDir(in *folder, name string, s spot) (*folder, error) {
	if err := f.mayMake(s); err != nil {
		return nil, err
	}
	if err := in.still(); err != nil {
		return nil, err
	}
	if err := in.root.Mkdir(name, 0o777); err != nil {
		return nil, explain(err)
	}
	return in.sub(name)
}

// mayMake asks whether a directory may be made: as one that may be written, or below a
// name with a dot as one in which any file may be. What is kept only for what it may bring
// along, as .cursor is, brings nothing while it is empty.
func (f *files) mayMake(s spot) error {
	err := f.may(writing, s, false)
	if err == nil || !strings.Contains("/"+s.rel, "/.") {
		return err
	}
	file := "/" + rand.Text()
	if f.may(writing, spot{text: s.text + file, rel: s.rel + file, real: s.real + file}, false) == nil {
		return nil
	}
	return err
}

// create makes a file that is not there yet.
func (d *folder) create(name string, content []byte) error {
	if err := d.still(); err != nil {
		return err
	}
	file, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return explain(err)
	}
	if err := d.check(file, path.Join(d.real, name)); err != nil {
		file.Close()
		return err // it is not what was made, so that it is not removed
	}
	if err := fill(file, content); err != nil {
		d.root.Remove(name) //nolint:errcheck // the first error says why
		return err
	}
	return nil
}

// fill writes a file to the disk and closes it.
func fill(file *os.File, content []byte) error {
	_, err := file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if end := file.Close(); err == nil {
		err = end
	}
	if err != nil {
		return explain(err)
	}
	return nil
}

// replace puts a new file in the place of one that could be written to. Other
// names of the old one keep what it held.
func (d *folder) replace(name string, content []byte) error {
	old, info, err := d.open(name, os.O_WRONLY)
	if err != nil {
		return err
	}
	old.Close()
	if err := plain(info); err != nil {
		return err
	}
	fresh := ".capgate-" + rand.Text()
	file, err := d.root.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return explain(err)
	}
	if err = file.Chmod(info.Mode().Perm()); err != nil {
		file.Close()
	} else if err = fill(file, content); err == nil {
		err = d.still()
	}
	if err == nil {
		err = d.root.Rename(fresh, name)
	}
	if err != nil {
		d.root.Remove(fresh) //nolint:errcheck // the first error says why
		return explain(err)
	}
	return nil
}

// extend writes at the end of a file. One that has another name would be written
// under that one too, wherever it is.
func (d *folder) extend(name string, content []byte) error {
	file, info, err := d.open(name, os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return err
	}
	err = plain(info)
	if err == nil && isShared(info) {
		err = problem("the file has another name elsewhere, so that it can be replaced and not extended")
	}
	if err != nil {
		file.Close()
		return err
	}
	return fill(file, content)
}

// plain refuses a file that runs as someone else than who starts it.
func plain(info fs.FileInfo) error {
	if info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		return problem("the file runs with the rights of its owner, and is not changed")
	}
	return nil
}

// remove is the tool delete.
func (f *files) remove(ctx context.Context, a arguments, m *memory) (result, error) {
	s, err := f.find(a.text("path", ""), true)
	if err != nil {
		return result{}, err
	}
	all := a.flag("recursive")
	if err := f.may(deleting, s, all); err != nil {
		return result{}, err
	}
	if s.real == f.Root.Real || s.rel == "." {
		return result{}, problem("the directory that is served is not deleted")
	}
	d, name, err := f.parent(s)
	if err != nil {
		return result{}, err
	}
	defer d.close()
	if err = d.missing(name); err == nil {
		err = d.still()
	}
	switch {
	case err != nil:
	case all:
		if err := f.spares(ctx, d, s, m); err != nil {
			return result{}, err
		}
		err = d.root.RemoveAll(name)
	default:
		err = d.root.Remove(name)
	}
	if err != nil {
		return result{}, explain(err)
	}
	var r result
	r.text("deleted")
	return r, nil
}
