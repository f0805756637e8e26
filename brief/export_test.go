package brief

import "time"

// IsLocal reports whether a write may go without a word.
func (f *File) IsLocal() bool { return f.raw != nil }

// IsUnannounced reports whether one does now.
func (f *File) IsUnannounced() bool { return f.raw != nil && f.isBusy(time.Now()) }

// Hurry has the next write follow one that is just over.
func (f *File) Hurry() { f.last = time.Now().Add(time.Minute) }

// Until is when writes to a file that was slow go without a word again.
func (f *File) Until() time.Time { return f.until }

// IsServed says that there is something to be tested here.
const IsServed = isServed

// IsUnannounced reports whether it is read without a word.
func (p *Pipe) IsUnannounced() bool { return p.raw != nil }
