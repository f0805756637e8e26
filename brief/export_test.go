package brief

import "time"

// IsUnannounced reports whether the next write goes without a word.
func (f *File) IsUnannounced() bool { return f.raw != nil && f.until.IsZero() }

// Until is when writes to a file that was slow go without a word again.
func (f *File) Until() time.Time { return f.until }

// IsServed says that there is something to be tested here.
const IsServed = isServed

// IsUnannounced reports whether it is read without a word.
func (p *Pipe) IsUnannounced() bool { return p.raw != nil }
