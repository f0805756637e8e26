package agents

import (
	"crypto/sha256"
	"io/fs"
	"os"
	"slices"
	"time"
)

// rest is for how long a file must stay as it was read before what it gives counts: who saves
// it in several steps may be between two of them. With settle it is half a second.
const rest = 450 * time.Millisecond

// stamp tells one state of a file from another.
type stamp struct {
	info fs.FileInfo // nil: there is no file
	sum  [sha256.Size]byte
}

func (s stamp) same(t stamp) bool {
	if s.info == nil || t.info == nil {
		return s.info == t.info
	}
	return s.sum == t.sum && sameState(s.info, t.info)
}

// sameState reports whether two looks at a path found one file that nobody has written to between them.
func sameState(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.Mode() == b.Mode() && a.ModTime().Equal(b.ModTime()) &&
		changedAt(a).Equal(changedAt(b))
}

// mark is since when a file has been as it is.
type mark struct {
	stamp  stamp
	since  time.Time
	rested bool
	ids    []string // the agents that the file has stood for since it last rested
}

// marks are those of the files that stand for agents, and of those that did.
type marks map[string]mark

// next says which files have been as they are for how long, when they are looked at anew. Whole are
// those that took the place of others, as they were then: there is nothing to wait for.
func (m marks) next(files []loaded, before *Roster, whole map[string]fs.FileInfo, begun time.Time, rest time.Duration) marks {
	now, out := time.Now(), make(marks, len(files))
	for _, f := range files {
		is, known := m[f.file]
		switch came := whole[f.file]; {
		case f.stamp.info == nil:
			continue
		case !known || !is.stamp.same(f.stamp):
			is = mark{stamp: f.stamp, since: now, rested: came != nil && sameState(came, f.stamp.info), ids: is.ids}
		case !is.rested:
			is.rested = begun.Sub(is.since) >= rest
		}
		is.stood(f.ids, before.claims[f.file])
		if known && !is.rested || len(f.ids) > 0 || len(before.claims[f.file]) > 0 {
			out[f.file] = is
		}
	}
	for file, was := range m {
		_, there := out[file]
		switch {
		case there:
		case was.stamp.info != nil:
			is := mark{since: now, ids: was.ids}
			is.stood(before.claims[file])
			out[file] = is
		case begun.Sub(was.since) < rest:
			out[file] = was
		}
	}
	return out
}

// stood adds what a file stands for, or did, and forgets it all once it has rested.
func (m *mark) stood(ids ...[]string) {
	if m.rested {
		m.ids = nil
		return
	}
	m.ids = slices.Compact(slices.Sorted(slices.Values(slices.Concat(append(ids, m.ids)...))))
}

// rested says that all files have rested.
func rested(files []loaded) marks {
	out := make(marks, len(files))
	for _, f := range files {
		if f.stamp.info != nil && len(f.ids) > 0 {
			out[f.file] = mark{stamp: f.stamp, rested: true}
		}
	}
	return out
}

// moved are the agents that files which have not rested stand for, or did.
func (m marks) moved() map[string]bool {
	out := map[string]bool{}
	for _, is := range m {
		if !is.rested {
			for _, id := range is.ids {
				out[id] = true
			}
		}
	}
	return out
}

// due is how long it takes until all files have rested, zero where they have.
func (m marks) due(rest time.Duration) time.Duration {
	var due time.Duration
	for _, is := range m {
		if !is.rested {
			due = max(due, time.Until(is.since.Add(rest)), time.Millisecond)
		}
	}
	return due
}

// resting reports whether a file has changed a moment ago.
func (m marks) resting(file string) bool {
	is, known := m[file]
	return known && !is.rested
}
