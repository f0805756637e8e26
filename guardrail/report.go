package guardrail

import (
	"fmt"
	"time"
)

// Report is what Verify found.
type Report struct {
	Files  []FileReport
	Faults []Fault // proof that something was changed or is missing

	// Unknown says what nobody can know from the folder alone, or from what was
	// given beside it.
	Unknown []string
}

// OK reports whether nothing was found to be changed or missing.
func (r *Report) OK() bool { return len(r.Faults) == 0 }

// FileReport is the state of one file.
type FileReport struct {
	Name   string
	Lines  int   // whole ones
	Signed int   // of these, how many a signature vouches for
	Torn   int64 // bytes at the end that are no whole line
	Live   bool  // a process writes to it
	Closed bool  // it has a last line
}

// Fault is one thing that is wrong.
type Fault struct {
	File string // "" if it is an anchor that is wrong
	Line int    // 0: the file as a whole
	Why  string
}

// String is the fault with its place.
func (f Fault) String() string {
	switch {
	case f.File == "":
		return f.Why
	case f.Line == 0:
		return f.File + ": " + f.Why
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Why)
}

// VerifyOptions say what a log is measured by.
type VerifyOptions struct {
	// Key is the public key of the install, as PublicKey returns it. Without
	// one the key in KeyFile is used, whose name is that of Options.
	Key     string
	KeyFile string

	// Anchors are checkpoints that were kept elsewhere: lines as Checkpoints
	// returned them.
	Anchors []string

	// Since is the time before which files may have been removed on purpose.
	Since time.Time
}
