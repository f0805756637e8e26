package skills

import (
	"os"
	"strconv"
	"syscall"
)

// changeOf tells one state of a file from another whose length and time are the same: a
// program can set both, and not when it did.
func changeOf(info os.FileInfo) string {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return strconv.FormatUint(s.Ino, 10) + " " + strconv.FormatInt(s.Ctim.Nano(), 10)
}
