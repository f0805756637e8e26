package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxData is the most bytes of an entry.
const maxData = 16 << 20

// The line before the data: the format, the version, the checksum and the key.
const (
	format      = "capgate-store-1"
	versionSize = 26 // of rand.Text
	maxHead     = len(format) + 1 + versionSize + 1 + 2*sha256.Size + 1 + 3*maxKey + 1
)

var errDamaged = errors.New("the entry is damaged")

// head is what stands before the data.
type head struct{ version, sum, key string }

// encode writes an entry as it stands in its file.
func encode(data []byte, version, bucket, key string) []byte {
	text := make([]byte, 0, maxHead+len(data))
	text = fmt.Appendf(text, "%s %s %s %s\n", format, version, checksum(data, version, bucket, key), escape(key))
	return append(text, data...)
}

// decode reads what encode wrote for the same bucket and key. Data that is empty
// is not nil: nil is an absent entry.
func decode(text []byte, bucket, key string) (data []byte, version string, err error) {
	line, data, ok := bytes.Cut(text, []byte{'\n'})
	h, err := parseHead(line)
	if err != nil {
		return nil, "", err
	}
	if !ok || h.key != escape(key) || h.sum != checksum(data, h.version, bucket, key) {
		return nil, "", errDamaged
	}
	return data, h.version, nil
}

// checksum covers the place of an entry too, so that a file that was moved is
// not taken for what should stand there.
func checksum(data []byte, version, bucket, key string) string {
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%s\n%s\n%s\n%d\n", version, escape(bucket), escape(key), len(data))
	_, _ = sum.Write(data)
	return hex.EncodeToString(sum.Sum(nil))
}

func parseHead(line []byte) (head, error) {
	f := strings.Split(string(line), " ")
	if len(f) != 4 || f[0] != format || len(f[1]) != versionSize || len(f[2]) != 2*sha256.Size {
		return head{}, errDamaged
	}
	return head{f[1], f[2], f[3]}, nil
}

// readHead reads the line before the data.
func readHead(f *os.File) (head, error) {
	var room [maxHead]byte
	n, err := io.ReadFull(f, room[:])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return head{}, err
	}
	line, _, ok := bytes.Cut(room[:n], []byte{'\n'})
	if !ok {
		return head{}, errDamaged
	}
	return parseHead(line)
}

// readWhole reads the file of an entry.
func readWhole(path string) ([]byte, error) {
	f, err := openEntry(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > int64(maxHead+maxData) {
		return nil, fmt.Errorf("its %d bytes are too many", info.Size())
	}
	text := make([]byte, info.Size())
	if _, err := io.ReadFull(f, text); err != nil {
		return nil, fmt.Errorf("it became shorter while it was read: %w", err)
	}
	return text, nil
}

// openEntry opens a file to read if it is one that the store has written. It
// follows no link, and does not wait for who may write into a pipe.
func openEntry(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = ownFile(info)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
