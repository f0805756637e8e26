package guardrail

import (
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Verify reads all files of a log and looks for what was changed, removed,
// exchanged, inserted or signed by somebody else, within files and between
// them. It returns an error when it could not look.
//
// Up to its last signed line, nothing in a file can be changed without a fault
// by anyone who does not hold the key of the install. Who may write to its folder can put
// another key and other files there. What an anchor vouches for, nobody can change.
func Verify(dir string, o VerifyOptions) (*Report, error) {
	v := &verification{dir: dir, o: o, checks: map[string]*check{}, report: &Report{}}
	if err := v.findKey(); err != nil {
		return nil, fmt.Errorf("verify event log: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("verify event log: %w", err)
	}
	v.list(entries)
	if v.keyed && len(v.names) == 0 && v.o.Since.IsZero() {
		v.fault("", 0, "there is a key but no log: its files were removed, or the first one could not be written when the key was made")
	}
	for _, name := range v.names {
		v.readBegin(name)
	}
	for i, line := range o.Anchors {
		v.readAnchor(i+1, line)
	}
	for _, name := range v.names {
		v.checks[name].run()
	}
	v.compare()
	v.admit()
	return v.report, nil
}

// verification is the work of one Verify.
type verification struct {
	dir    string
	o      VerifyOptions
	key    ed25519.PublicKey // nil: each file's own
	keyed  bool              // the key is kept beside the files
	report *Report
	names  []string
	checks map[string]*check // by name of the file; also of those that are not there
}

// claim is what one place says about a file that is another's.
type claim struct {
	by   string
	at   link // a line that must be there; the zero link: no line in particular
	last bool // it must be the last one, but for the file's end
	size int64
}

// findKey settles whose signatures count.
func (v *verification) findKey() error {
	if v.o.Key != "" {
		return v.useKey(v.o.Key)
	}
	file := v.o.KeyFile
	if file == "" {
		file = filepath.Join(v.dir, KeyFile)
	}
	text, err := PublicKey(file)
	switch {
	case err == nil:
		v.keyed = v.o.KeyFile == ""
		return v.useKey(text)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case len(v.o.Anchors) > 0:
		if _, s, err := readSeal([]byte(strings.TrimSpace(v.o.Anchors[0]))); err == nil {
			return v.useKey(s.Key)
		}
	}
	v.unknown("whose signatures these are: no key was given, so each file was measured by the key that it names")
	return nil
}

func (v *verification) useKey(text string) error {
	key, err := hex.DecodeString(text)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return fmt.Errorf("%q is no public key", shown(text))
	}
	v.key = key
	return nil
}

func (v *verification) fault(file string, line int, format string, args ...any) {
	v.report.Faults = append(v.report.Faults, Fault{file, line, fmt.Sprintf(format, args...)})
}

func (v *verification) unknown(format string, args ...any) {
	v.report.Unknown = append(v.report.Unknown, fmt.Sprintf(format, args...))
}

// list takes the names of the log's files. Whatever else claims to be one is a
// fault: a file could be hidden behind it.
func (v *verification) list(entries []fs.DirEntry) {
	for _, e := range entries {
		name := e.Name()
		_, ours := began(name)
		switch {
		case ours && e.Type().IsRegular():
			v.names = append(v.names, name)
			v.checks[name] = &check{v: v, name: name, exists: true}
		case strings.HasSuffix(name, nameEnd):
			v.fault(shown(name), 0, "this is no file of the log")
		}
	}
}

// of is the check of a file, also of one that is missing.
func (v *verification) of(name string) *check {
	c := v.checks[name]
	if c == nil {
		c = &check{v: v, name: name}
		v.checks[name] = c
	}
	return c
}

// readBegin notes what the first line of a file says about other files.
func (v *verification) readBegin(name string) {
	c := v.checks[name]
	l, err := readLines(v.dir, name)
	if err != nil {
		return // found again, and said, when the whole file is read
	}
	defer l.close()
	line, err := l.next()
	if err != nil {
		return
	}
	f, s, err := readSeal(line)
	if err != nil || f.kind != lineBegin || !f.vouched(v.keyOf(s)) {
		return
	}
	c.begin = s
	if s.Prior != "" {
		prior := v.of(s.Prior)
		prior.claims = append(prior.claims, claim{by: name, at: link{f.seq - 1, f.prev}, last: !s.Broken})
	}
	for _, seen := range s.Seen {
		other := v.of(seen.File)
		other.claims = append(other.claims, claim{by: name, size: seen.Size, at: seen.line()})
	}
}

func (v *verification) keyOf(s *seal) ed25519.PublicKey {
	if v.key != nil {
		return v.key
	}
	key, err := hex.DecodeString(s.Key)
	if err != nil {
		return nil
	}
	return key
}

// readAnchor notes what a checkpoint from elsewhere says.
func (v *verification) readAnchor(number int, text string) {
	by := fmt.Sprintf("anchor %d", number)
	f, s, err := readSeal([]byte(strings.TrimSpace(text)))
	switch {
	case err != nil:
		v.fault("", 0, "%s: %v", by, err)
		return
	case !f.vouched(v.keyOf(s)):
		v.fault("", 0, "%s is not signed with the key of this log", by)
		return
	}
	c := v.of(s.File)
	c.claims = append(c.claims, claim{by: by, at: f.link})
}

// readSeal takes a signed line apart.
func readSeal(line []byte) (frame, *seal, error) {
	f, err := unseal(line)
	if err != nil {
		return f, nil, err
	}
	if f.sig == nil {
		return f, nil, errors.New("this line is not signed")
	}
	s := &seal{}
	if err := json.Unmarshal(line, s); err != nil {
		return f, nil, errForm
	}
	return f, s, nil
}

// compare holds the files against what they say of each other.
func (v *verification) compare() {
	for _, name := range sorted(v.checks) {
		c := v.checks[name]
		if !c.exists {
			v.missing(c)
			continue
		}
		for _, cl := range c.claims {
			c.answer(&cl)
		}
	}
}

// missing reports a file that others name, once. Only files before Since may be
// missing, and none that an anchor names.
func (v *verification) missing(c *check) {
	if info, err := os.Lstat(filepath.Join(v.dir, c.name)); err == nil && info.Mode().IsRegular() {
		v.unknown("%s began while this was verified", shown(c.name))
		return
	}
	at, _ := began(c.name)
	for _, cl := range c.claims {
		anchored := strings.HasPrefix(cl.by, "anchor ")
		if anchored || v.o.Since.IsZero() || at >= v.o.Since.UTC().Format(timeForm) {
			v.fault(shown(c.name), 0, "the file is missing: %s names it", cl.by)
			return
		}
	}
}

// admit says what cannot be known.
func (v *verification) admit() {
	for _, r := range v.report.Files {
		switch {
		case r.Closed, r.Live && r.Lines == r.Signed && r.Torn == 0:
		case r.Live:
			v.unknown("%s is being written: its last %d lines are not signed yet", r.Name, r.Lines-r.Signed)
		case v.carriedOn(r.Name):
		default:
			v.unknown("%s was never closed: its process was ended, or its end was cut; %d whole lines and %d bytes behind its last signed line prove nothing",
				r.Name, r.Lines-r.Signed, r.Torn)
		}
	}
	if !v.o.Since.IsZero() {
		v.unknown("which files from before %s were there", v.o.Since.UTC().Format(timeForm))
	}
	if len(v.o.Anchors) == 0 {
		v.unknown("whether files were cut behind a signed line, or the newest files removed: only a checkpoint that was kept elsewhere can tell")
		v.unknown("whether somebody who holds the key, or may write to the folder and put another key there with other files, wrote all of this anew: only a checkpoint that was kept elsewhere can tell")
	}
}

// carriedOn reports whether another file vouches for the whole of one.
func (v *verification) carriedOn(name string) bool {
	for _, cl := range v.checks[name].claims {
		if cl.last {
			return true
		}
	}
	return false
}
