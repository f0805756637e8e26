package brief

import (
	"errors"
	"syscall"
)

// CanPeek reports whether the connection can be looked at without reading from it.
func (s *Socket) CanPeek() bool { return CanPeek && s.raw != nil }

// Quiet reports whether nothing has come on a connection that nobody uses, neither
// bytes that were not asked for nor its end.
func (s *Socket) Quiet() bool {
	_, err := s.look.move(nil, s.raw.Read)
	return errors.Is(err, syscall.EAGAIN)
}

// Gone waits until something comes on a connection, and reports whether it is the end.
func (s *Socket) Gone() bool {
	something, err := s.wait()
	return err == nil && !something
}

// wait waits until something comes, and reports false if it is the end.
func (s *Socket) wait() (something bool, err error) {
	err = s.raw.Read(func(fd uintptr) bool {
		n, err := peek(fd)
		something = err == 0 && n > 0
		return err != syscall.EAGAIN
	})
	return something, err
}
