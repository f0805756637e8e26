package guardrail

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// keyHead starts the file that holds the key of an install.
const keyHead = "capgate-log-key-1 "

// maxKeyFile bounds what is read as a key: head, seed, line feed.
const maxKeyFile = len(keyHead) + 2*ed25519.SeedSize + 1

// installKey signs checkpoints and hashes targets. All gateways of an install
// share it.
type installKey struct {
	sign    ed25519.PrivateKey
	targets []byte
}

func (k *installKey) public() string {
	pub, _ := k.sign.Public().(ed25519.PublicKey)
	return hex.EncodeToString(pub)
}

// PublicKey returns the public half of the key in a file, for whoever verifies
// a log on another machine.
func PublicKey(file string) (string, error) {
	key, err := readKey(file)
	if err != nil {
		return "", err
	}
	return key.public(), nil
}

// Prepare computes what signing takes whatever the key is, so that whoever opens a log a
// moment later does not wait for it.
func Prepare() { ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)) }

// loadKey reads the key of an install, and makes it when there is none. Of
// several processes that make one at the same time, one wins.
func loadKey(file string, random io.Reader) (*installKey, error) {
	key, err := readKey(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := makeKey(file, random); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make log key: %w", err)
	}
	return readKey(file)
}

func makeKey(file string, random io.Reader) error {
	var seed [ed25519.SeedSize]byte
	if _, err := io.ReadFull(random, seed[:]); err != nil {
		return fmt.Errorf("draw a random key: %w", err)
	}
	return writeKey(file, seed[:])
}

// restore writes a key again whose file is gone.
func (k *installKey) restore(file string) error {
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return writeKey(file, k.sign.Seed())
}

// writeKey writes a whole key under another name and links it into place: there
// is never half a key, and never a second one.
func writeKey(file string, seed []byte) error {
	fresh := fmt.Sprintf("%s.%d-%s.new", file, os.Getpid(), rand.Text())
	f, err := os.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	defer os.Remove(fresh)
	_, err = f.WriteString(keyHead + hex.EncodeToString(seed) + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Link(fresh, file)
}

func readKey(file string) (*installKey, error) {
	info, err := os.Lstat(file)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read log key: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("read log key: %s is no regular file", file)
	case shared(info, 0o077):
		return nil, fmt.Errorf("read log key: others may use %s: its mode is %v, not %v", filepath.Base(file), info.Mode().Perm(), fs.FileMode(fileMode))
	case info.Size() > int64(maxKeyFile):
		return nil, fmt.Errorf("read log key: %s holds no key", file)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read log key: %w", err)
	}
	text, ok := strings.CutPrefix(strings.TrimSuffix(string(data), "\n"), keyHead)
	seed, err := hex.DecodeString(text)
	if !ok || err != nil || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("read log key: %s holds no key", file)
	}
	targets, err := hkdf.Key(sha256.New, seed, nil, "capgate guardrail targets 1", sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("read log key: %w", err)
	}
	return &installKey{sign: ed25519.NewKeyFromSeed(seed), targets: targets}, nil
}
