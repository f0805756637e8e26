package guardrail

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"capgate/brief"
)

// Nobody but the owner reads what agents did, or adds to it.
const (
	fileMode   = 0o600
	folderMode = 0o700
)

// maxSeen is how many of the files before it a file names with their sizes, so
// that one of them cannot vanish or shrink unnoticed.
const maxSeen = 16

// maxSeenLine is how far from its end the last line of such a file is looked for.
const maxSeenLine = 4 << 10

// A file is called by the time at which it began, the process that writes it,
// and random digits: in the order of their names, files are in that of their
// beginnings.
const (
	nameForm   = "20060102T150405.000000"
	nameEnd    = ".jsonl"
	nameRandom = 8      // bytes
	freshEnd   = ".new" // of a file whose first line is not written yet
)

func fileName(now time.Time, random io.Reader) (string, error) {
	var salt [nameRandom]byte
	if _, err := io.ReadFull(random, salt[:]); err != nil {
		return "", fmt.Errorf("draw a random name: %w", err)
	}
	return fmt.Sprintf("%sZ-%d-%s%s", now.UTC().Format(nameForm), os.Getpid(), hex.EncodeToString(salt[:]), nameEnd), nil
}

// began is the time in the name of a file, in the form of the times in its
// lines; not ok if that is no name of a log's file.
func began(name string) (at string, ok bool) {
	text, ok := strings.CutSuffix(name, nameEnd)
	parts := strings.Split(text, "-")
	if !ok || len(parts) != 3 {
		return "", false
	}
	start, err := time.Parse(nameForm+"Z", parts[0])
	_, noPid := strconv.ParseUint(parts[1], 10, 32)
	salt, noSalt := hex.DecodeString(parts[2])
	if err != nil || noPid != nil || noSalt != nil || len(salt) != nameRandom || !lower([]byte(parts[2])) {
		return "", false
	}
	return start.Format(timeForm), true
}

// list returns the names of the log's files in a folder, oldest first.
func list(dir string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		_, ok := began(e.Name())
		return !ok || !e.Type().IsRegular()
	}), nil
}

// sighting is a file that was there when another one began, and its last whole
// line, if that was short enough to be found.
type sighting struct {
	File string `json:"file"`
	Size int64  `json:"size"`
	Seq  uint64 `json:"seq,omitempty"`
	Hash string `json:"hash_of_line,omitempty"`
}

// line is where the line stands in its chain.
func (s *sighting) line() (at link) {
	if len(s.Hash) == hashLen {
		at = link{s.Seq, digest([]byte(s.Hash))}
	}
	return at
}

// sightings are those of the newest files in a folder.
func sightings(dir string) ([]sighting, error) {
	entries, err := list(dir)
	if err != nil {
		return nil, err
	}
	var seen []sighting
	for _, e := range entries[max(0, len(entries)-maxSeen):] {
		one := sighting{File: e.Name()}
		last, size, err := ending(dir, e.Name(), maxSeenLine)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since
		}
		if errors.Is(err, fs.ErrPermission) {
			size, err = sizeOf(e) // another user's
		}
		if err != nil {
			return nil, err
		}
		one.Size = size
		whole := last[:bytes.LastIndexByte(last, '\n')+1]
		start := bytes.LastIndexByte(bytes.TrimSuffix(whole, []byte("\n")), '\n') + 1
		if f, err := unseal(bytes.TrimSuffix(whole[start:], []byte("\n"))); err == nil {
			one.Seq, one.Hash = f.seq, string(f.hash[:])
		}
		seen = append(seen, one)
	}
	return seen, nil
}

func sizeOf(e fs.DirEntry) (int64, error) {
	info, err := e.Info()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// ending returns the last bytes of a file, and its size.
func ending(dir, name string, most int64) ([]byte, int64, error) {
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	size := info.Size()
	last := make([]byte, min(size, most))
	if _, err := f.ReadAt(last, size-int64(len(last))); err != nil {
		return nil, 0, err
	}
	return last, size, nil
}

// seal is what a signed line says beside its place in the chain.
type seal struct {
	File string `json:"file"` // so that a file cannot take another's place
	Key  string `json:"key"`

	// Of a first line only.
	Prior  string     `json:"prior,omitempty"`  // the file whose chain this one carries on
	Broken bool       `json:"broken,omitempty"` // lines behind that place of it were not recorded
	Seen   []sighting `json:"seen,omitempty"`

	// Of a last line only.
	Next string `json:"next,omitempty"` // the file that carries the chain on
}

// appendSeal appends the members of a signed line.
func (d *draft) appendSeal(kind string, s *seal) {
	d.name("kind", kind)
	d.name("file", s.File)
	d.name("key", s.Key)
	d.name("prior", s.Prior)
	if s.Broken {
		d.key("broken")
		d.buf = append(d.buf, "true"...)
	}
	if len(s.Seen) > 0 {
		d.key("seen")
		for i, one := range s.Seen {
			d.buf = append(d.buf, "[,"[min(i, 1)], '{')
			d.buf = append(d.buf, `"file":`...)
			d.buf = appendString(d.buf, one.File, maxName)
			d.buf = append(d.buf, `,"size":`...)
			d.buf = strconv.AppendInt(d.buf, one.Size, 10)
			d.number("seq", int64(one.Seq))
			d.name("hash_of_line", one.Hash)
			d.buf = append(d.buf, '}')
		}
		d.buf = append(d.buf, ']')
	}
	d.name("next", s.Next)
}

// segment is the file that a log writes to.
type segment struct {
	f     *brief.File
	name  string
	size  int64
	fresh atomic.Bool // its name may not have reached the disk
}

// createSegment makes a file that starts with some lines. It gets its name when
// they stand in it: nobody sees a file without its first line.
func createSegment(dir, name string, first []byte) (*segment, error) {
	path := filepath.Join(dir, name)
	f, err := os.OpenFile(path+freshEnd, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return nil, err
	}
	s := &segment{f: brief.NewFile(f), name: name}
	s.fresh.Store(true)
	err = hold(f)
	if err == nil {
		err = s.write(first)
	}
	if err == nil {
		err = os.Link(path+freshEnd, path) // never over another file
	}
	os.Remove(path + freshEnd)
	if err != nil {
		f.Close()
		return nil, err
	}
	return s, nil
}

func (s *segment) write(lines []byte) error {
	n, err := s.f.Write(lines)
	s.size += int64(n)
	if err == nil {
		return nil
	}
	var trouble *fs.PathError
	if errors.As(err, &trouble) {
		err = trouble.Err // it names the file as it was called at first
	}
	return fmt.Errorf("write %s: %w", s.name, err)
}

// sync brings the file, and at first its name, to the disk.
func (s *segment) sync() error {
	if err := s.f.Sync(); err != nil {
		return err
	}
	if !s.fresh.Swap(false) {
		return nil
	}
	dir, err := os.Open(filepath.Dir(s.f.Name()))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
