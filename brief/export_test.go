package brief

// IsUnannounced reports whether the next write goes without a word.
func (f *File) IsUnannounced() bool { return f.raw != nil && f.until.IsZero() }

// IsServed says that there is something to be tested here.
const IsServed = isServed
