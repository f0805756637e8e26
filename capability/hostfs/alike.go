package hostfs

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxEntries is how many names of a directory are compared with one that is not
// there.
const maxEntries = 1 << 14

// unlike reports, as an error, that a directory without a name holds another one
// that is the same text to Unicode: a server may open that one instead, which can
// lead anywhere.
func unlike(dir, name string) error {
	if !hasForms(name) {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	plain := norm.NFC.String(name)
	for seen := 0; ; {
		names, err := f.Readdirnames(maxEntries - seen)
		for _, other := range names {
			if norm.NFC.String(other) == plain {
				return fmt.Errorf("%q is the same text as %q, which is not there", other, name)
			}
		}
		switch seen += len(names); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case seen == maxEntries:
			return fmt.Errorf("%s has more than %d entries to compare", dir, maxEntries)
		}
	}
}

// hasForms reports whether Unicode knows another way to write a name. Of ASCII,
// those are three characters.
func hasForms(name string) bool {
	return strings.ContainsAny(name, "K;`") || strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf })
}
