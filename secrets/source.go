package secrets

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"unicode/utf8"
)

const (
	minValue = 8        // bytes of a value: see [Keeper.Scrub]
	maxValue = 16 << 10 // bytes of a value: a long key, not a key store
)

// Source is where a value comes from: one of the two.
type Source struct {
	Env  string // the name of a variable in the gateway's own environment
	File string // a file, absolute; line breaks at its end do not count
}

func (s Source) check() error {
	switch {
	case (s.Env == "") == (s.File == ""):
		return errors.New("it comes from either a variable or a file")
	case strings.ContainsAny(s.Env, "=\x00"):
		return fmt.Errorf("%.40q cannot be the name of a variable", s.Env)
	case s.File != "" && !filepath.IsAbs(s.File):
		return fmt.Errorf("the file %.80q is not absolute", s.File)
	}
	return nil
}

// value reads the value. No error holds any of it.
func (s Source) value(opts Options) (string, error) {
	value, from := "", "the variable "+s.Env
	if s.Env != "" {
		value = opts.Getenv(s.Env)
	} else {
		data, err := opts.ReadFile(s.File)
		if err != nil {
			return "", err
		}
		value, from = strings.TrimRight(string(data), "\r\n"), "the file "+s.File
	}
	switch {
	case value == "":
		return "", fmt.Errorf("%s is empty or not set", from)
	case len(value) < minValue:
		return "", fmt.Errorf("%s holds fewer than %d bytes: a value that short cannot be told from other text when results are scrubbed", from, minValue)
	case len(value) > maxValue:
		return "", fmt.Errorf("%s holds more than %d bytes", from, maxValue)
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return "", fmt.Errorf("%s does not hold text", from)
	}
	return value, nil
}

// readFile reads a file that nobody else changes. It follows links, since
// what mounts secrets makes them of links, and does not wait at a pipe.
func readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	switch perm := info.Mode().Perm(); {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", path)
	case perm&0o022 != 0 && runtime.GOOS != "windows":
		return nil, fmt.Errorf("others may write to %s: its mode is %04o, and chmod 600 makes it private", path, perm)
	}
	const most = maxValue + len("\r\n") + 1
	data, err := io.ReadAll(io.LimitReader(f, int64(most)))
	if err != nil {
		return nil, err
	}
	if len(data) == most {
		return nil, fmt.Errorf("the file %s holds more than %d bytes", path, maxValue)
	}
	return data, nil
}
