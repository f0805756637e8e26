package skills

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// What one skill may hold, as the extension of the protocol says.
const (
	maxFiles  = 512
	maxBytes  = 16 << 20
	maxNested = 16  // folders inside each other, in one skill
	maxPath   = 512 // bytes of the path of a file
)

// anybody is the mode of a file that may be run.
const anybody = 0o111

// documentName is the file that makes a folder a skill.
const documentName = "SKILL.md"

// File is one file of a skill.
type File struct {
	Path   string // below the skill's folder, slash separated
	Digest string // of its bytes: sha256: and 64 hexadecimal digits
	Size   int64
	Exec   bool // it may be run
}

// ErrChanged is returned for a file that is not what it was when the skill was read.
var ErrChanged = errors.New("the file has changed since the skill was read")

// Digest returns how the digest of some bytes is written.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// digestOf is the digest of files together: of their names, their bytes, and which of them
// may be run.
func digestOf(files []File) string {
	var all []byte
	for _, f := range files {
		all = fmt.Appendf(all, "%q %s %t\n", f.Path, f.Digest, f.Exec)
	}
	return Digest(all)
}

// Read returns the bytes of one of the files, as they were when the skill was read:
// one that has changed since is [ErrChanged], one that is not of the skill
// [fs.ErrNotExist].
func (s *Skill) Read(file string) ([]byte, error) {
	i := slices.IndexFunc(s.Files, func(f File) bool { return f.Path == file })
	if i < 0 || s.dir == "" {
		return nil, fs.ErrNotExist
	}
	root, err := os.OpenRoot(asFolder(s.dir))
	if err != nil {
		return nil, ErrChanged
	}
	defer func() { _ = root.Close() }() // nothing was written
	data, err := readFile(root, file, s.Files[i].Size)
	if err != nil || int64(len(data)) != s.Files[i].Size || Digest(data) != s.Files[i].Digest {
		return nil, ErrChanged
	}
	return data, nil
}

// asFolder is a path that leads to a folder or nowhere. Without its end, whoever opens a
// pipe that took the place of a folder waits, and nothing is read any more. One that ends
// in a slash would do too, but leads an [os.Root] of Go before 1.26.5 out through a link.
func asFolder(name string) string { return name + "/." }

// readFile returns a regular file of at most some bytes. The root follows no link
// that leads out of it.
func readFile(root *os.Root, name string, most int64) ([]byte, error) {
	// A pipe that took the place of a file must not keep anybody waiting.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read, or is a link that leads out", clip(name))
	}
	defer func() { _ = f.Close() }() // nothing was written
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", clip(name))
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s cannot be read", clip(name))
	case int64(len(data)) > most:
		return nil, fmt.Errorf("%s is too large, or the files of the skill are together", clip(name))
	}
	return data, nil
}

// bundle is what one folder of a skill holds.
type bundle struct {
	root  *os.Root
	files []File
	texts map[string][]byte // by their names
	left  int64             // bytes that it may still hold

	books, links bool // it holds bookkeeping, and links
}

// readBundle reads every file below a folder. An error hides the skill: a part of it
// that is left out could be what matters. What was read until then is told as well.
func readBundle(root *os.Root) (*bundle, error) {
	b := &bundle{root: root, texts: map[string][]byte{}, left: maxBytes}
	if err := b.folder(".", 0); err != nil {
		return b, err
	}
	slices.SortFunc(b.files, func(x, y File) int { return strings.Compare(x.Path, y.Path) })
	if b.books && b.links {
		return b, errors.New("it holds links, which could lead into the .git beside them")
	}
	folded := map[string]bool{}
	for _, f := range b.files {
		name := oneCase(f.Path)
		if folded[name] {
			return b, fmt.Errorf("two of its files are called %s but for their case", clip(f.Path))
		}
		folded[name] = true
	}
	return b, nil
}

func (b *bundle) folder(dir string, depth int) error {
	if depth > maxNested {
		return fmt.Errorf("its folders nest deeper than %d", maxNested)
	}
	f, err := b.root.Open(asFolder(dir))
	if err != nil {
		return fmt.Errorf("%s cannot be read", clip(dir))
	}
	entries, err := f.ReadDir(maxFiles * 4)
	_ = f.Close() // nothing was written
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return fmt.Errorf("%s cannot be read", clip(dir))
	case len(entries) >= maxFiles*4:
		return fmt.Errorf("%s holds too many files", clip(dir))
	}
	slices.SortFunc(entries, func(x, y fs.DirEntry) int { return strings.Compare(x.Name(), y.Name()) })
	for _, e := range entries {
		if isBookkeeping(e.Name()) {
			b.books = true
			continue
		}
		if err := b.entry(path.Join(dir, e.Name()), e, depth); err != nil {
			return err
		}
	}
	return nil
}

// isBookkeeping reports whether a name is that of something which lies in folders
// and is not part of what they are.
func isBookkeeping(name string) bool {
	return slices.Contains([]string{".git", ".hg", ".svn", ".DS_Store"}, name)
}

func (b *bundle) entry(name string, e fs.DirEntry, depth int) error {
	switch {
	case e.IsDir():
		return b.folder(name, depth+1)
	case !isFileName(name):
		return errors.New("a file has a name that is not plain text")
	case len(b.files) == maxFiles:
		return fmt.Errorf("it holds more than %d files", maxFiles)
	}
	b.links = b.links || e.Type()&fs.ModeSymlink != 0
	data, err := readFile(b.root, name, b.left)
	if err != nil {
		b.left = 0 // it may have been read to the limit
		return err
	}
	b.left -= int64(len(data))
	info, err := b.root.Stat(name)
	if err != nil {
		return fmt.Errorf("%s cannot be read", clip(name))
	}
	b.files = append(b.files, File{Path: name, Digest: Digest(data), Size: int64(len(data)), Exec: info.Mode()&anybody != 0})
	b.texts[name] = data
	return nil
}

// oneCase writes names alike that file systems which ignore case take for the same: as s
// and ſ, without what is never seen, and with accents behind their letters.
func oneCase(name string) string {
	if !strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return strings.ToLower(name)
	}
	seen := strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return -1
		}
		return r
	}, name)
	return norm.NFD.String(strings.ToLower(strings.ToUpper(norm.NFD.String(seen))))
}

// isFileName reports whether a path can be shown, and written into a URI and onto
// another disk.
func isFileName(name string) bool {
	return len(name) <= maxPath && utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool {
		return r < ' ' || r == 0x7f || r == '\\' || r == '\ufffd'
	})
}
