package capability

import (
	"fmt"
	"path"
	"strings"
	"unicode/utf8"
)

// Root is a directory that grants hang from: the one written, and where it
// really is once symbolic links are followed. The zero Root is none.
type Root struct {
	Dir  string // canonical and absolute, as written
	Real string // where Dir leads; equal to Dir when it holds no link
}

// ParseRoot reads a directory as a record or a configuration names it: absolute,
// "~" or "~/…" below home, or relative to base. Without a file-system view the
// directory is taken to be its own real place.
func ParseRoot(text, base string, v View) (Root, error) {
	dir, err := expandDir(text, base, v.Home)
	if err != nil {
		return Root{}, err
	}
	real := dir
	if v.FS != nil {
		if real, err = v.FS.Real(dir); err != nil {
			return Root{}, fmt.Errorf("the directory %q cannot be resolved", text)
		}
	}
	return Root{Dir: dir, Real: real}, nil
}

// expandDir makes the text of a directory absolute and canonical. Dot segments
// are refused rather than cleaned: whoever reads the file must see what it means.
func expandDir(text, base, home string) (string, error) {
	const maxDir = 4096
	switch {
	case text == "" || strings.TrimSpace(text) != text:
		return "", fmt.Errorf("a directory is empty or begins or ends in a space")
	case len(text) > maxDir || !utf8.ValidString(text) || strings.ContainsFunc(text, isControl):
		return "", fmt.Errorf("a directory is over %d bytes or holds control characters", maxDir)
	case strings.ContainsAny(text, "*?"):
		return "", fmt.Errorf("%q is a glob where a directory must stand", text)
	}
	dir := text
	if dir == "~" || strings.HasPrefix(dir, "~/") {
		base, dir = home, strings.TrimPrefix(dir[1:], "/")
	}
	if dir == "." {
		dir = ""
	}
	dir = strings.TrimSuffix(strings.TrimPrefix(dir, "./"), "/")
	if text[0] != '/' {
		if !strings.HasPrefix(base, "/") {
			return "", fmt.Errorf("%q is relative, and nothing here says to what", text)
		}
		dir = path.Join(base, "/") + "/" + dir
	}
	for seg := range strings.SplitSeq(text, "/") {
		if seg == ".." {
			return "", fmt.Errorf("%q holds a .. segment", text)
		}
	}
	return path.Clean("/" + dir), nil
}

// IsZero reports whether there is no root.
func (r Root) IsZero() bool { return r.Dir == "" }

// Within reports whether a root lies in another one, links followed.
func (r Root) Within(outer Root) bool { return beneath(r.Real, outer.Real) }

// Escapes reports whether a root lies in an outer one by its name, and a link leads
// it out. To clamp such a root would be to widen it.
func (r Root) Escapes(outer Root) bool {
	return !outer.IsZero() && !r.Within(outer) && (beneath(r.Dir, outer.Dir) || beneath(r.Dir, outer.Real))
}

// Clamp narrows a root to an outer one: a root inside stays, anything else
// becomes the outer one. No outer root clamps nothing.
func (r Root) Clamp(outer Root) (clamped Root, changed bool) {
	if outer.IsZero() || r.Within(outer) {
		return r, false
	}
	return outer, true
}

// dirs returns the places a root is known by.
func (r Root) dirs() []string {
	if r.Real == r.Dir {
		return []string{r.Dir}
	}
	return []string{r.Dir, r.Real}
}

// beneath reports whether a canonical absolute path is dir or lies below it.
func beneath(p, dir string) bool {
	if dir == "/" {
		return strings.HasPrefix(p, "/")
	}
	return strings.HasPrefix(p, dir) && (len(p) == len(dir) || p[len(dir)] == '/')
}
