//go:build !linux

package skills

import "os"

// changeOf is nothing here, so that a file which is written with the same length and time
// is withheld when it is read, as its digest is another.
func changeOf(os.FileInfo) string { return "" }
