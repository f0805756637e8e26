package builtin

import (
	"errors"
	"path"
	"slices"
	"strings"

	"capgate/capability"
	"capgate/capability/hostfs"
)

// spot is a path of a call, and where it leads.
type spot struct {
	text string // as it was written, which is all that a denial shows of it
	rel  string // the same below the root, "." for the root itself
	real string // where it leads, absolute and without links
}

// find looks up where a path leads. The last segment is followed when it is a
// link, unless the link itself is meant.
func (f *files) find(text string, itself bool) (spot, error) {
	rel, err := f.below(text)
	if err != nil {
		return spot{}, err
	}
	full, last := path.Join(f.Root.Real, rel), ""
	if itself && rel != "." {
		full, last = path.Split(full)
	}
	real, err := (hostfs.FS{}).Real(full)
	if err != nil {
		return spot{}, problem("the path cannot be followed to a file")
	}
	return spot{text: text, rel: rel, real: path.Join(real, last)}, nil
}

// below reads a path as one below the root. What would have to be worked out
// first, or is outside as written, is refused.
func (f *files) below(text string) (string, error) {
	switch {
	case strings.TrimSpace(text) == "":
		return "", problem("the path is empty")
	case slices.Contains(strings.Split(text, "/"), ".."):
		return "", problem("the path holds a .. segment")
	case text == "~" || strings.HasPrefix(text, "~/"):
		return "", problem("the path begins with ~, which is not expanded here")
	case !strings.HasPrefix(text, "/"):
		return path.Clean(text), nil
	}
	for _, dir := range []string{f.Root.Dir, f.Root.Real} {
		if full := path.Clean(text); beneath(full, dir) {
			return path.Join(".", strings.TrimPrefix(full, dir)), nil
		}
	}
	return "", problem("the path is outside of the directory that is served")
}

// beneath reports whether a clean absolute path is dir or lies below it.
func beneath(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// pinned is a file-system view in which every path leads to where this one was
// found to lead. What is decided on is then that place, and the path as written.
type pinned struct {
	hostfs.FS
	place string
}

func (p pinned) Real(string) (string, error) { return p.place, nil }

// need is the requirement to touch a spot, or all that is beneath it as well.
func (f *files) need(verb capability.Verb, s spot, tree bool) (*capability.Requirement, error) {
	view := capability.View{Cwd: f.Root.Dir, FS: pinned{place: s.real}, Plain: true}
	where, err := view.Path(s.text)
	if tree {
		where, err = view.Tree(s.text)
	}
	if bad := (*capability.Malformed)(nil); errors.As(err, &bad) {
		return nil, problem("the path " + bad.Text)
	}
	return capability.File(verb, where), err
}

// may asks whether a spot may be touched, before anything there is.
func (f *files) may(verb capability.Verb, s spot, tree bool) error {
	need, err := f.need(verb, s, tree)
	if err != nil {
		return err
	}
	if err := f.allow(need); err != nil {
		return err
	}
	if !beneath(s.real, f.Root.Real) {
		return problem("the path leads out of the directory that is served")
	}
	return nil
}

// reach finds a path that may be touched.
func (f *files) reach(verb capability.Verb, text string) (spot, error) {
	s, err := f.find(text, false)
	if err != nil {
		return s, err
	}
	return s, f.may(verb, s, false)
}

// shows reports whether an entry may be shown to the agent.
func (f *files) shows(s spot) bool { return f.may(reading, s, false) == nil }
