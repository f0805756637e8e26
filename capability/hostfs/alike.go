package hostfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"capgate/capability"
)

// maxEntries is how many names of a directory are compared with one that is not
// there.
const maxEntries = 1 << 14

// alike finds the name in a directory that is the same text to Unicode as one that
// is not there, "" if there is none: a server may open the one for the other, which
// can be a link to anywhere. Where there are several, nobody knows which,
// and where there are as many entries as may be looked at, whether there is one.
func alike(dir, name string, most int, effort *int) (string, error) {
	if !hasForms(name) {
		return "", nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return "", err
	}
	defer f.Close()
	most = min(most, max(*effort/effortOfName, 1))
	names, err := f.Readdirnames(most)
	*effort -= effortOfName * len(names)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if len(names) == most {
		return "", fmt.Errorf("%s has too many entries to compare", dir)
	}
	plain, found := norm.NFC.String(name), ""
	for _, other := range names {
		if !isASCII(other) {
			*effort -= len(other) / lengthOfOne
		}
		switch {
		case *effort < 0:
			return "", capability.ErrTooMuch
		case norm.NFC.String(other) != plain:
		case found != "":
			return "", fmt.Errorf("%q could be %q or %q", name, found, other)
		default:
			found = other
		}
	}
	return found, nil
}

// hasForms reports whether Unicode knows another way to write a name. Of ASCII,
// those are three characters.
func hasForms(name string) bool {
	return strings.ContainsAny(name, "K;`") || !isASCII(name)
}

func isASCII(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf })
}
