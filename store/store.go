package store

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// ErrChanged says that an entry no longer has the version that the writer named.
var ErrChanged = errors.New("it was changed by somebody else meanwhile")

const (
	maxKeys    = 10_000 // entries in a bucket
	maxBuckets = 10_000 // buckets in a store
)

const (
	folderMode = 0o700
	fileMode   = 0o600
)

// beside is where an entry is written before it is renamed. One name is enough,
// as it is used only under the bucket's lock, and so nothing piles up.
const beside = ".new"

// Store is a folder of buckets. It is safe for use by several goroutines, and
// by several processes.
type Store struct {
	dir  string
	made fs.FileInfo // the folder as it was opened

	mu    sync.Mutex
	turns map[string]chan struct{} // by bucket: who of this process is at its lock

	held held
}

// Open opens the store in a folder, which is made if need be. It refuses a folder
// that is a link, that belongs to somebody else or that others may write.
func Open(dir string) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open the store %s: %w", dir, err)
	}
	if err := os.MkdirAll(dir, folderMode); err != nil {
		return nil, fmt.Errorf("open the store %s: %w", dir, plain(err))
	}
	made, err := ownFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("open the store %s: %w", dir, err)
	}
	return &Store{dir: dir, made: made, turns: map[string]chan struct{}{}, held: held{files: map[string]heldFile{}}}, nil
}

// here refuses a folder that is not the one that was opened. What is missing
// from a folder that was unmounted or removed is not absent.
func (s *Store) here() error {
	now, err := ownFolder(s.dir)
	if err == nil && !os.SameFile(now, s.made) {
		err = errors.New("another folder stands in its place")
	}
	if err != nil {
		return fmt.Errorf("the store %s: %w", s.dir, err)
	}
	return nil
}

// Get returns an entry and its version. An entry that is absent has no data, nil,
// and the version "". One that cannot be read is an error.
func (s *Store) Get(bucket, key string) (data []byte, version string, err error) {
	p, err := s.place(bucket, key)
	if err != nil {
		return nil, "", err
	}
	data, version, err = p.read()
	if err != nil {
		return nil, "", p.failed("get", err)
	}
	return data, version, nil
}

// Changed reports whether an entry has another version than the one named, where
// "" stands for an absent entry. It costs one look at the file's number for as
// long as nothing has.
func (s *Store) Changed(bucket, key, version string) (bool, error) {
	p, err := s.place(bucket, key)
	if err != nil {
		return true, err
	}
	now, err := s.held.version(p)
	if err != nil {
		return true, p.failed("look at", err)
	}
	return now != version, nil
}

// Put writes an entry if it still has the version that was read, where "" means
// that it is absent. Otherwise the error is [ErrChanged].
func (s *Store) Put(bucket, key string, data []byte, version string) (newVersion string, err error) {
	err = s.locked("put", bucket, key, func(p place) error {
		if err := p.expect(version); err != nil {
			return err
		}
		newVersion, err = p.write(data, version == "")
		return err
	})
	if err != nil {
		return "", err
	}
	return newVersion, nil
}

// Delete removes an entry if it still has the version that was read. Otherwise
// the error is [ErrChanged].
func (s *Store) Delete(bucket, key, version string) error {
	return s.locked("delete", bucket, key, func(p place) error {
		if err := p.expect(version); err != nil || version == "" {
			return err
		}
		return p.remove()
	})
}

// Update writes what edit makes of an entry: nil stands for an absent one, both
// ways. Edits of a bucket take turns, so edit sees what the last one wrote. It
// must depend on nothing but the data, and not use the store. When it returns an
// error, that is the error of Update and nothing is written.
func (s *Store) Update(bucket, key string, edit func([]byte) ([]byte, error)) error {
	var refused error
	err := s.locked("update", bucket, key, func(p place) error {
		was, version, err := p.read()
		if err != nil {
			return err
		}
		var is []byte
		is, refused = edit(slices.Clone(was))
		switch {
		case refused != nil:
			return refused
		case is == nil && version == "", is != nil && version != "" && bytes.Equal(is, was):
			return nil
		case is == nil:
			return p.remove()
		}
		_, err = p.write(is, version == "")
		return err
	})
	if refused != nil {
		return refused
	}
	return err
}

// Keys returns the keys of a bucket in order.
func (s *Store) Keys(bucket string) ([]string, error) {
	folder, err := s.bucket(bucket)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, s.here()
	}
	if err != nil {
		return nil, fmt.Errorf("list %q: %w", bucket, plain(err))
	}
	var keys []string
	for _, entry := range entries {
		if entry.Name()[0] == '.' {
			continue // escape begins no name with a dot
		}
		key, ok, err := keyOf(folder, entry)
		if err != nil {
			return nil, fmt.Errorf("list %q: %s: %w", bucket, entry.Name(), err)
		}
		if ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys, nil
}

// keyOf is the key of the entry in a file. It is not ok when the file has gone
// since the folder was read.
func keyOf(folder string, entry fs.DirEntry) (key string, ok bool, err error) {
	name := entry.Name()
	if !entry.Type().IsRegular() {
		return "", false, errors.New("it is no regular file")
	}
	if key, ok := unescape(name); ok && fileName(key) == name {
		return key, true, nil
	}
	if !strings.HasPrefix(name, hashed) {
		return "", false, errors.New("it is not an entry of the store")
	}
	f, err := openEntry(filepath.Join(folder, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	h, err := readHead(f)
	if err != nil {
		return "", false, err
	}
	if key, ok = unescape(h.key); !ok || fileName(key) != name {
		return "", false, errDamaged
	}
	return key, true, nil
}

// place is where one entry is kept.
type place struct {
	store                     *Store
	bucket, key, folder, path string
}

func (s *Store) bucket(bucket string) (folder string, err error) {
	if bucket == "" || len(bucket) > maxKey {
		return "", fmt.Errorf("the name of the bucket %.40q is empty or has more than %d bytes", bucket, maxKey)
	}
	return filepath.Join(s.dir, fileName(bucket)), nil
}

func (s *Store) place(bucket, key string) (place, error) {
	folder, err := s.bucket(bucket)
	if err != nil {
		return place{}, err
	}
	if key == "" || len(key) > maxKey {
		return place{}, fmt.Errorf("the key %.40q is empty or has more than %d bytes", key, maxKey)
	}
	return place{s, bucket, key, folder, filepath.Join(folder, fileName(key))}, nil
}

func (p place) failed(verb string, err error) error {
	if errors.Is(err, errDamaged) { // nobody else can say which file that is
		err = fmt.Errorf("%w: its file is %s", err, p.path)
	}
	return fmt.Errorf("%s %.80q in %q: %w", verb, p.key, p.bucket, plain(err))
}

// locked does something to an entry while nobody else writes to its bucket.
func (s *Store) locked(verb, bucket, key string, do func(place) error) error {
	p, err := s.place(bucket, key)
	if err != nil {
		return err
	}
	if err := s.makeBucket(p.folder); err != nil {
		return p.failed(verb, err)
	}
	unlock, err := s.lock(p.folder)
	if err != nil {
		return p.failed(verb, err)
	}
	defer unlock()
	if err := do(p); err != nil {
		return p.failed(verb, err)
	}
	return nil
}

// makeBucket makes the folder of a bucket, unless it is there.
func (s *Store) makeBucket(folder string) error {
	_, err := os.Lstat(folder)
	if err == nil {
		_, err = ownFolder(folder)
		return err
	}
	if err := s.here(); err != nil {
		return err
	}
	if err := room(s.dir, maxBuckets); err != nil {
		return err
	}
	if err := os.Mkdir(folder, folderMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, err := ownFolder(folder); err != nil {
		return err
	}
	return syncFolder(s.dir)
}

// room refuses one thing more in a folder that is full.
func room(folder string, most int) error {
	entries, err := os.ReadDir(folder)
	if err == nil && len(entries) >= most {
		err = fmt.Errorf("there are %d already, which is the most", most)
	}
	return err
}

// expect refuses an entry that has another version.
func (p place) expect(version string) error {
	now, err := p.version()
	if err == nil && now != version {
		err = ErrChanged
	}
	return err
}

// version is "" for an absent entry.
func (p place) version() (string, error) {
	f, err := openEntry(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", p.store.here()
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	return p.versionIn(f)
}

// versionIn reads the version of the entry in its file.
func (p place) versionIn(f *os.File) (string, error) {
	h, err := readHead(f)
	if err == nil && h.key != escape(p.key) {
		err = errDamaged
	}
	return h.version, err
}

func (p place) read() (data []byte, version string, err error) {
	text, err := readWhole(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", p.store.here()
	}
	if err != nil {
		return nil, "", err
	}
	return decode(text, p.bucket, p.key)
}

// write replaces the file of an entry.
func (p place) write(data []byte, fresh bool) (version string, err error) {
	if len(data) > maxData {
		return "", fmt.Errorf("its %d bytes are more than %d", len(data), maxData)
	}
	if fresh {
		if err := room(p.folder, maxKeys); err != nil {
			return "", err
		}
	}
	version = rand.Text()
	tmp := filepath.Join(p.folder, beside)
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err // of a writer that did not live to rename it
	}
	if err := writeFresh(tmp, encode(data, version, p.bucket, p.key)); err != nil {
		os.Remove(tmp)
		return "", err
	}
	if err := os.Rename(tmp, p.path); err != nil {
		os.Remove(tmp)
		return "", err
	}
	return version, syncFolder(p.folder)
}

func (p place) remove() error {
	if err := os.Remove(p.path); err != nil {
		return err
	}
	return syncFolder(p.folder)
}

func writeFresh(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// plain is an error of the file system without the path: which entry it is about
// is said before it, in the words of the caller.
func plain(err error) error {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		return p.Err
	case errors.As(err, &l):
		return l.Err
	}
	return err
}
