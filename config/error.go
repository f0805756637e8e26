package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"capgate/capability"
)

// Error is one thing that is wrong with a configuration or a setting.
type Error struct {
	Pos  capability.Pos
	Text string // what is the case
	Hint string // what to do about it, "" when that is plain
}

// Error writes the position and the text. The hint is left to whoever prints it.
func (e *Error) Error() string {
	if at := e.Pos.String(); at != "" {
		return at + ": " + e.Text
	}
	return e.Text
}

// hinted writes an error for the log, each with what to do about it.
func hinted(err error) string {
	all := Errors(err)
	if len(all) == 0 {
		return err.Error()
	}
	lines := make([]string, len(all))
	for i, e := range all {
		if lines[i] = e.Error(); e.Hint != "" {
			lines[i] += "; " + e.Hint
		}
	}
	return strings.Join(lines, "\n")
}

// Errors takes apart what [Load] and [Parse] return: every error of the file, in
// the order of its lines.
func Errors(err error) []*Error {
	if joined, ok := errors.AsType[interface {
		error
		Unwrap() []error
	}](err); ok {
		var list []*Error
		for _, e := range joined.Unwrap() {
			list = append(list, Errors(e)...)
		}
		return list
	}
	if one, ok := errors.AsType[*Error](err); ok {
		return []*Error{one}
	}
	return nil
}

// faults collects what is wrong with one file. The first thing that is said of a
// place stands; what follows from it is not said again.
type faults struct {
	file string
	list []*Error
	seen map[capability.Pos]bool
	more int // faults that were not kept
}

const maxErrors = 100 // that are kept of one file

func newFaults(file string) *faults {
	return &faults{file: file, seen: map[capability.Pos]bool{}}
}

// pos returns where a node was written.
func (f *faults) pos(n *yaml.Node) capability.Pos {
	return capability.Pos{File: f.file, Line: n.Line, Col: n.Column}
}

// at notes what is wrong with a node.
func (f *faults) at(n *yaml.Node, hint, format string, a ...any) {
	f.add(f.pos(n), hint, format, a...)
}

func (f *faults) add(pos capability.Pos, hint, format string, a ...any) {
	if f.seen[pos] {
		return
	}
	if len(f.list) == maxErrors {
		f.more++
		return
	}
	f.seen[pos] = true
	f.list = append(f.list, &Error{Pos: pos, Text: fmt.Sprintf(format, a...), Hint: hint})
}

// err returns everything that was noted, nil if nothing was.
func (f *faults) err() error {
	slices.SortStableFunc(f.list, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Pos.File, b.Pos.File), cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Col, b.Pos.Col))
	})
	list := make([]error, 0, len(f.list)+1)
	for _, e := range f.list {
		list = append(list, e)
	}
	if f.more > 0 {
		list = append(list, &Error{Pos: capability.Pos{File: f.file}, Text: fmt.Sprintf("and %d more errors", f.more)})
	}
	return errors.Join(list...)
}
