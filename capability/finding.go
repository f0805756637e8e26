package capability

import (
	"fmt"
	"strconv"
)

// Pos is where in the user's files something was written. The zero Pos is
// nowhere in particular: the command line, or a default.
type Pos struct {
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"` // 1-based; 0 when unknown
	Col  int    `json:"col,omitempty"`  // 1-based; 0 when unknown
}

// String writes the position as file:line:col, leaving out what is unknown.
func (p Pos) String() string {
	s := p.File
	if p.Line > 0 {
		s += ":" + strconv.Itoa(p.Line)
		if p.Col > 0 {
			s += ":" + strconv.Itoa(p.Col)
		}
	}
	return s
}

// Severity orders findings. None of them stops a load by itself: what an error
// names has already been left out or made inert.
type Severity uint8

// The severities, mildest first.
const (
	Note Severity = iota
	Warning
	Error
)

// String returns note, warning or error.
func (s Severity) String() string { return [...]string{"note", "warning", "error"}[s] }

// MarshalText writes the severity as its word.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Finding is one thing that load or doctor has to say.
type Finding struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	Pos      Pos      `json:"pos"`
	Text     string   `json:"text"`           // what is the case
	Hint     string   `json:"hint,omitempty"` // what to do about it
}

// String writes the finding as one line, position first.
func (f Finding) String() string {
	s := fmt.Sprintf("%s: %s [%s]", f.Severity, f.Text, f.Code)
	if at := f.Pos.String(); at != "" {
		s = at + ": " + s
	}
	if f.Hint != "" {
		s += "; " + f.Hint
	}
	return s
}
