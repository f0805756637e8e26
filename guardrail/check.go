package guardrail

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
)

// maxFaults is how many faults of one file are named one by one.
const maxFaults = 20

// check is the verification of one file.
type check struct {
	v      *verification
	name   string
	exists bool
	begin  *seal   // its first line, if that is signed as it should be
	claims []claim // what others say of it

	report FileReport
	size   int64
	last   link // of all lines but the end
	hash   digest
	seq    uint64
	met    map[link]bool // lines that a claim asks for
	faults int
}

func (c *check) fault(line int, format string, args ...any) {
	if c.faults++; c.faults <= maxFaults {
		c.v.fault(c.name, line, format, args...)
	} else if c.faults == maxFaults+1 {
		c.v.fault(c.name, line, "and more")
	}
}

// run reads the whole file.
func (c *check) run() {
	defer func() {
		c.report.Name = c.name
		c.v.report.Files = append(c.v.report.Files, c.report)
	}()
	c.met = map[link]bool{}
	for _, cl := range c.claims {
		c.met[cl.at] = false
	}
	l, err := readLines(c.v.dir, c.name)
	if err != nil {
		c.fault(0, "%v", err)
		return
	}
	defer l.close()
	c.report.Live = held(l.f)
	for {
		line, err := l.next()
		if err != nil {
			c.end(l, err)
			return
		}
		c.line(l.n, line)
	}
}

// end judges how the file ends.
func (c *check) end(l *lines, err error) {
	c.report.Lines, c.size = l.n, l.size
	var torn *tornError
	switch {
	case errors.As(err, &torn):
		c.report.Torn = int64(len(torn.rest))
		c.size += c.report.Torn
		if c.report.Closed || !beginning(torn.rest) {
			c.fault(l.n+1, "%v, nor the beginning of one", err)
		}
	case !errors.Is(err, io.EOF):
		c.fault(l.n+1, "%v", err)
	case l.n == 0:
		c.fault(0, "the file is empty: not even its first line is left")
	}
}

// beginning reports whether the rest of a file can be what a write left behind
// that did not end: the beginning of a line, or the whole of it.
func beginning(rest []byte) bool {
	start := []byte(seqKey)
	n := min(len(rest), len(start))
	if string(rest[:n]) != string(start[:n]) {
		return false
	}
	_, err := unseal(rest[:len(rest)-1])
	return errors.Is(err, errForm) // else bytes follow a whole line
}

// line checks one line and its place.
func (c *check) line(n int, line []byte) {
	f, err := unseal(line)
	if err != nil {
		c.fault(n, "%v", err)
		if errors.Is(err, errForm) {
			return // nothing is known of it; its successor will not fit
		}
	} else if !json.Valid(line) {
		c.fault(n, "%v", errForm)
	}
	c.place(n, &f)
	c.seq, c.hash = f.seq, f.hash
	if _, asked := c.met[f.link]; asked && err == nil {
		c.met[f.link] = true
	}
	if f.kind != lineEnd {
		c.last = f.link
	}
	if err == nil {
		c.signature(n, &f, line)
	}
}

// place checks where a line stands.
func (c *check) place(n int, f *frame) {
	switch {
	case (n == 1) != (f.kind == lineBegin):
		c.fault(n, "%s lines stand at the beginning, and nothing else does", lineBegin)
	case c.report.Closed:
		c.fault(n, "a line was added behind the end")
	case n == 1: // where a chain begins is signed
	case f.seq != c.seq+1:
		c.fault(n, "line %d of the chain follows line %d: lines were removed, inserted or exchanged", f.seq, c.seq)
	case f.prev != c.hash:
		c.fault(n, "the line does not follow the one before it")
	}
}

// signature checks the signature of lines that have one, and that others have none.
func (c *check) signature(n int, f *frame, line []byte) {
	sealed := f.kind == lineBegin || f.kind == lineCheckpoint || f.kind == lineEnd
	if !sealed {
		if f.sig != nil {
			c.fault(n, "a signature was added to the line")
		}
		return
	}
	_, s, err := readSeal(line)
	switch {
	case err != nil:
		c.fault(n, "%v", err)
		return
	case !f.vouched(c.v.keyOf(s)):
		c.fault(n, "the line is not signed with the key of this log")
		return
	case s.File != c.name:
		c.fault(n, "the line belongs to the file %s", shown(s.File))
	case c.begin != nil && s.Key != c.begin.Key || s.Key != hex.EncodeToString(c.v.keyOf(s)):
		c.fault(n, "the key is another one than that of the file")
	}
	c.report.Signed = n
	if f.kind != lineEnd {
		return
	}
	c.report.Closed = true
	if s.Next != "" {
		next := c.v.of(s.Next)
		next.claims = append(next.claims, claim{by: c.name})
	}
}

// answer holds the file against what somebody else says of it.
func (c *check) answer(cl *claim) {
	switch {
	case cl.size > c.size:
		c.fault(0, "the file was cut: it had %d bytes when %s began, and has %d", cl.size, cl.by, c.size)
	case cl.at.seq == 0:
	case !c.met[cl.at]:
		c.fault(0, "line %d of the chain is missing or another one: %s names it", cl.at.seq, cl.by)
	case cl.last && c.last != cl.at:
		c.fault(0, "the file goes on behind line %d of the chain, where %s took over", cl.at.seq, cl.by)
	}
}

func sorted(checks map[string]*check) []string { return slices.Sorted(maps.Keys(checks)) }

// shown is a name from outside, as it can be shown.
func shown(text string) string {
	quoted := appendString(nil, text, maxName)
	return string(quoted[1 : len(quoted)-1])
}
