//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package guardrail

import "os"

// removed reports whether a file has no name any more.
func removed(f *os.File) bool { return nameless(f) }
