package guardrail

import (
	"os"

	"capgate/brief"
)

// Break gives a log another file to write to, as a full disk would be one. The
// log closes it like its own.
func Break(l *Log, f *os.File) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.writing {
		l.wait()
	}
	if l.file == nil {
		return false
	}
	l.file.f.Close()
	l.file = &segment{f: brief.NewFile(f), name: l.file.name, size: l.file.size}
	return true
}

// MaxLine bounds a line.
const MaxLine = maxLine
