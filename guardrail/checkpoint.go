package guardrail

import (
	"errors"
	"fmt"
	"io"
)

// Checkpoints returns the last signed line of each file in a folder, oldest
// file first. Kept where nobody who can write to the folder can reach them,
// they are what Verify takes as anchors.
func Checkpoints(dir string) ([]string, error) {
	files, err := list(dir)
	if err != nil {
		return nil, fmt.Errorf("read checkpoints: %w", err)
	}
	var all []string
	for _, e := range files {
		line, err := lastSigned(dir, e.Name())
		if err != nil {
			return nil, fmt.Errorf("read checkpoints: %w", err)
		}
		if line != "" {
			all = append(all, line)
		}
	}
	return all, nil
}

// lastSigned is the last signed line of a file. It is not verified.
func lastSigned(dir, name string) (found string, err error) {
	l, err := readLines(dir, name)
	if err != nil {
		return "", err
	}
	defer l.close()
	for {
		line, err := l.next()
		var torn *tornError
		switch {
		case errors.Is(err, io.EOF) || errors.As(err, &torn):
			return found, nil
		case err != nil:
			return "", placed(name, l.n+1, err)
		}
		if f, err := unseal(line); err == nil && f.sig != nil {
			found = string(line)
		}
	}
}
