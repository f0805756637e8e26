//go:build unix

package brief_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"capgate/brief"
)

// networks are those that agents come by.
func networks(t *testing.T, test func(t *testing.T, here, there net.Conn)) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			address := "127.0.0.1:0"
			if network == "unix" {
				address = filepath.Join(t.TempDir(), "s")
			}
			l, err := net.Listen(network, address)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			there, err := net.Dial(network, l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer there.Close()
			here, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer here.Close()
			for _, conn := range []net.Conn{here, there} {
				_ = conn.SetDeadline(time.Now().Add(5 * time.Second)) // what is lost ends the test
			}
			test(t, here, there)
		})
	}
}

// TestSocketCarries sends pieces of many lengths both ways, among them such as fill the
// connection while nobody reads.
func TestSocketCarries(t *testing.T) {
	networks(t, func(t *testing.T, here, there net.Conn) {
		for _, length := range []int{1, 100, 4 << 10, 64 << 10, 64<<10 + 1, 8 << 20} {
			sent := make([]byte, length)
			_, _ = rand.Read(sent)
			for _, way := range [][2]net.Conn{{here, there}, {there, here}} {
				failed := make(chan error, 1)
				go func() {
					s := brief.NewSocket(way[0])
					for rest := sent; len(rest) > 0; {
						piece := rest[:min(len(rest), 64<<10)]
						if n, err := s.Write(piece); err != nil || n != len(piece) {
							failed <- errors.Join(err, errors.New("it was not written whole"))
							return
						}
						rest = rest[len(piece):]
					}
					failed <- nil
				}()
				time.Sleep(time.Millisecond)
				got := make([]byte, length)
				if _, err := io.ReadFull(brief.NewSocket(way[1]), got); err != nil {
					t.Fatal(err)
				}
				if err := <-failed; err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, sent) {
					t.Errorf("of %d bytes others came", length)
				}
			}
		}
	})
}

// TestSocketOfMany has many write to one connection: no piece is within another.
func TestSocketOfMany(t *testing.T) {
	networks(t, func(t *testing.T, here, there net.Conn) {
		const many, each, length = 8, 50, 20 << 10
		s := brief.NewSocket(here)
		var all sync.WaitGroup
		for i := range many {
			all.Go(func() {
				for range each {
					if _, err := s.Write(bytes.Repeat([]byte{byte('a' + i)}, length)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		piece, r := make([]byte, length), brief.NewSocket(there)
		for range many * each {
			if _, err := io.ReadFull(r, piece); err != nil {
				t.Fatal(err)
			}
			if bytes.Count(piece, piece[:1]) != length {
				t.Fatal("one piece is within another")
			}
		}
		all.Wait()
	})
}

// TestSocketFails compares what a connection says with what a socket does, word by word.
func TestSocketFails(t *testing.T) {
	var buf [10]byte
	read := func(rw io.ReadWriter) (int, error) { return rw.Read(buf[:]) }
	write := func(rw io.ReadWriter) (n int, err error) {
		for range 1000 { // until the other side's answer is here
			if n, err = rw.Write(buf[:]); err != nil {
				return n, err
			}
			time.Sleep(time.Millisecond)
		}
		return n, nil
	}
	reset := func(there net.Conn) {
		if tcp, ok := there.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = there.Close()
		time.Sleep(10 * time.Millisecond)
	}
	for _, tt := range []struct {
		name    string
		prepare func(here, there net.Conn)
		do      func(io.ReadWriter) (int, error)
		is      error
	}{
		{"the end", func(_, there net.Conn) { _ = there.Close() }, read, io.EOF},
		{"reset", func(_, there net.Conn) { reset(there) }, read, nil},
		{"closed here", func(here, _ net.Conn) { _ = here.Close() }, read, net.ErrClosed},
		{"closed here meanwhile", func(here, _ net.Conn) { time.AfterFunc(20*time.Millisecond, func() { _ = here.Close() }) }, read, net.ErrClosed},
		{"too late", func(here, _ net.Conn) { _ = here.SetReadDeadline(time.Now().Add(20 * time.Millisecond)) }, read, os.ErrDeadlineExceeded},
		{"too late already", func(here, _ net.Conn) { _ = here.SetReadDeadline(time.Unix(1, 0)) }, read, os.ErrDeadlineExceeded},
		{"write to what is closed there", func(_, there net.Conn) { reset(there) }, write, nil},
		{"write to what is closed here", func(here, _ net.Conn) { _ = here.Close() }, write, net.ErrClosed},
		{"write too late", func(here, _ net.Conn) { _ = here.SetWriteDeadline(time.Unix(1, 0)) }, write, os.ErrDeadlineExceeded},
		{"nothing", func(net.Conn, net.Conn) {}, func(rw io.ReadWriter) (int, error) { return rw.Read(nil) }, nil},
		{"something", func(_, there net.Conn) { _, _ = there.Write([]byte("some")) }, read, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var said []string
			for _, of := range []func(net.Conn) io.ReadWriter{
				func(c net.Conn) io.ReadWriter { return c },
				func(c net.Conn) io.ReadWriter { return brief.NewSocket(c) },
			} {
				networks(t, func(t *testing.T, here, there net.Conn) {
					tt.prepare(here, there)
					n, err := tt.do(of(here))
					if tt.is != nil && !errors.Is(err, tt.is) {
						t.Errorf("it says %v", err)
					}
					said = append(said, words(n, err, here))
				})
			}
			if said[0] != said[2] || said[1] != said[3] {
				t.Errorf("a connection says %q, a socket %q", said[:2], said[2:])
			}
		})
	}
}

// words is what came of a call, without what differs between connections.
func words(n int, err error, conn net.Conn) string {
	text := fmtOf(n, err)
	for _, a := range []net.Addr{conn.LocalAddr(), conn.RemoteAddr()} {
		if a != nil && a.String() != "" {
			text = string(bytes.ReplaceAll([]byte(text), []byte(a.String()), []byte("ADDRESS")))
		}
	}
	return text
}

func fmtOf(n int, err error) string {
	var op *net.OpError
	var call *os.SyscallError
	var errno syscall.Errno
	var timeout net.Error
	text := string(rune('0' + n))
	if err != nil {
		text += " " + err.Error()
	}
	if errors.As(err, &op) {
		text += " op"
	}
	if errors.As(err, &call) {
		text += " call " + call.Syscall
	}
	if errors.As(err, &errno) {
		text += " errno"
	}
	if errors.As(err, &timeout) && timeout.Timeout() {
		text += " timeout"
	}
	return text
}

// TestSocketSaysHowFar writes until it is too late: what is said to be written is there.
func TestSocketSaysHowFar(t *testing.T) {
	networks(t, func(t *testing.T, here, there net.Conn) {
		s, said := brief.NewSocket(here), int64(0)
		_ = here.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		for {
			n, err := s.Write(make([]byte, 60_000))
			said += int64(n)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if n != 60_000 || err != nil {
				t.Fatalf("%d bytes were written, and %v", n, err)
			}
		}
		_ = here.Close()
		if came, err := io.Copy(io.Discard, there); came != said || err != nil {
			t.Errorf("%d bytes came of %d, and %v", came, said, err)
		}
	})
}

// TestSocketOfNoFile goes by the connection itself.
func TestSocketOfNoFile(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	go func() {
		_, _ = brief.NewSocket(there).Write([]byte("whole"))
		_ = there.Close()
	}()
	s := brief.NewSocket(here)
	if s.CanPeek() {
		t.Error("what has no descriptor can be looked at")
	}
	if got, err := io.ReadAll(s); err != nil || string(got) != "whole" {
		t.Errorf("%q came, and %v", got, err)
	}
}

// TestSocketPeeks looks at a connection in each of its states.
func TestSocketPeeks(t *testing.T) {
	networks(t, func(t *testing.T, here, there net.Conn) {
		s := brief.NewSocket(here)
		if !s.CanPeek() || !s.Quiet() {
			t.Fatal("a connection on which nothing came is not quiet")
		}
		time.AfterFunc(10*time.Millisecond, func() { _, _ = there.Write([]byte("x")) })
		if s.Gone() {
			t.Error("a connection is gone on which something came")
		}
		if s.Quiet() {
			t.Error("a connection is quiet on which something came")
		}
		var one [10]byte
		if n, err := s.Read(one[:]); n != 1 || err != nil {
			t.Fatalf("what was looked at is not there: %d, %v", n, err)
		}
		time.AfterFunc(10*time.Millisecond, func() { _ = there.Close() })
		if !s.Gone() || s.Quiet() {
			t.Error("a connection is not gone that has ended")
		}
		_ = here.Close()
		if s.Gone() || s.Quiet() {
			t.Error("one that is closed here is gone, or quiet")
		}
	})
}

// TestSocketKeepsNothing: reading and writing take no memory.
func TestSocketKeepsNothing(t *testing.T) {
	networks(t, func(t *testing.T, here, there net.Conn) {
		in, out := brief.NewSocket(here), brief.NewSocket(there)
		piece := make([]byte, 100)
		if n := testing.AllocsPerRun(100, func() {
			_, _ = out.Write(piece)
			_, _ = in.Read(piece)
			if brief.IsServed { // else the system says who sent what is looked at
				_ = in.Quiet()
			}
		}); n > 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

func BenchmarkSocket(b *testing.B) {
	for _, of := range []struct {
		name string
		make func(net.Conn) io.ReadWriter
	}{
		{"connection", func(c net.Conn) io.ReadWriter { return c }},
		{"socket", func(c net.Conn) io.ReadWriter { return brief.NewSocket(c) }},
	} {
		b.Run(of.name, func(b *testing.B) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			go func() {
				if conn, err := l.Accept(); err == nil {
					_, _ = io.Copy(of.make(conn), of.make(conn))
				}
			}()
			conn, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			rw, piece := of.make(conn), make([]byte, 100)
			for b.Loop() {
				if _, err := rw.Write(piece); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(rw, piece); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
