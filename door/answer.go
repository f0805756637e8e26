package door

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"
)

const (
	maxHeld   = 4 << 10          // bytes of an answer without a length that are held back
	maxJoined = 8 << 10          // longer pieces are not copied
	slackTime = 15 * time.Second // that a client has more than it must have, so that deadlines are seldom set
)

// framing is how a client finds the end of an answer.
type framing int

const (
	undecided framing = iota
	counted           // its length is in the head
	pieces            // each piece has its own
)

// answer is the [http.ResponseWriter] of a request.
type answer struct {
	guest  *guest
	body   *body
	header http.Header

	status  int
	framing framing
	left    int64        // of what is counted
	held    []byte       // written while it is undecided
	out     bytes.Buffer // to be sent
	failed  error

	want  time.Time // until when it must be sent; zero for ever
	until time.Time // the deadline that is set
}

var errLength = errors.New("the answer is not as long as was announced")

// begin makes it that of the next request.
func (a *answer) begin(b *body) {
	clear(a.header)
	a.body, a.status, a.framing, a.left, a.held, a.failed, a.want = b, 0, undecided, 0, a.held[:0], nil, time.Time{}
	a.out.Reset()
}

// Header is what goes before the answer.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader says what kind of answer it is. What only announces another is left out.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= http.StatusOK {
		a.status = status
	}
}

// Write writes a piece of the answer. One without a length is held back while it is
// short, so that it may get one.
func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if a.framing == undecided {
		n, err := strconv.ParseInt(a.header.Get("Content-Length"), 10, 64)
		switch {
		case err == nil:
			a.start(counted, n)
		case len(a.held)+len(p) <= maxHeld:
			a.held = append(a.held, p...)
			return len(p), nil
		default:
			a.start(pieces, 0)
		}
	}
	a.emit(p)
	if a.failed != nil {
		return 0, a.failed
	}
	return len(p), nil
}

// start writes the head, and what was held back.
func (a *answer) start(f framing, length int64) {
	a.framing, a.left = f, length
	a.out.WriteString("HTTP/1.1 ")
	a.out.WriteString(strconv.Itoa(a.status))
	a.out.WriteByte(' ')
	a.out.WriteString(http.StatusText(a.status))
	a.out.WriteString("\r\nDate: ")
	a.out.WriteString(a.guest.door.today())
	a.header.Del("Content-Length")
	switch {
	case a.status == http.StatusNoContent || a.status == http.StatusNotModified: // which have no body
		a.framing, a.left = counted, 0
	case f == counted:
		a.out.WriteString("\r\nContent-Length: ")
		a.out.WriteString(strconv.FormatInt(length, 10))
	default:
		a.out.WriteString("\r\nTransfer-Encoding: chunked")
	}
	if a.body.skip(); a.body.left > 0 || a.guest.door.isShut() {
		a.out.WriteString("\r\nConnection: close")
	}
	a.out.WriteString("\r\n")
	_ = a.header.Write(&a.out) // into memory
	a.out.WriteString("\r\n")
	if held := a.held; len(held) > 0 {
		a.held = held[:0]
		a.emit(held)
	}
}

// emit writes a piece behind the head.
func (a *answer) emit(p []byte) {
	switch {
	case len(p) == 0:
	case a.framing == pieces:
		a.out.WriteString(strconv.FormatInt(int64(len(p)), 16))
		a.out.WriteString("\r\n")
		a.join(p)
		a.out.WriteString("\r\n")
	case int64(len(p)) > a.left:
		a.failed = errLength
	default:
		a.left -= int64(len(p))
		a.join(p)
	}
}

// join puts a piece behind what is to be sent, and sends what has become long. A short
// answer waits for the end of its handler: what that holds is free when it comes.
func (a *answer) join(p []byte) {
	if len(p) > maxJoined {
		a.send(p)
		return
	}
	a.out.Write(p)
	if a.out.Len() > maxJoined {
		a.send(nil)
	}
}

// send sends what is there, and a piece behind it.
func (a *answer) send(p []byte) {
	if a.failed != nil || a.out.Len()+len(p) == 0 {
		return
	}
	switch {
	case a.want.IsZero() && !a.until.IsZero():
		a.until = time.Time{}
		a.failed = a.guest.conn.SetWriteDeadline(a.until)
	case a.until.Before(a.want) || a.until.Sub(a.want) > slackTime: // as of the answer before
		a.until = a.want.Add(slackTime)
		a.failed = a.guest.conn.SetWriteDeadline(a.until)
	}
	if a.failed != nil {
		return
	}
	if len(p) == 0 {
		_, a.failed = a.guest.line.Write(a.out.Bytes())
	} else {
		_, a.failed = (&net.Buffers{a.out.Bytes(), p}).WriteTo(a.guest.conn)
	}
	a.out.Reset()
}

// finish ends the answer, and reports whether the client can tell where.
func (a *answer) finish() bool {
	a.WriteHeader(http.StatusOK)
	switch {
	case a.framing == undecided:
		a.start(counted, int64(len(a.held)))
	case a.framing == pieces:
		a.out.WriteString("0\r\n\r\n")
	case a.left > 0:
		a.failed = errLength
	}
	a.send(nil)
	return a.failed == nil
}

// FlushError sends what has been written so far.
func (a *answer) FlushError() error {
	a.WriteHeader(http.StatusOK)
	if a.framing == undecided {
		a.start(pieces, 0)
	}
	a.send(nil)
	return a.failed
}

// SetWriteDeadline limits the time to send what is written from now on.
func (a *answer) SetWriteDeadline(t time.Time) error {
	a.want = t
	return nil
}

// SetReadDeadline limits the time for the request to come, if not all of it is here.
func (a *answer) SetReadDeadline(t time.Time) error {
	if a.body.here() {
		return nil
	}
	a.guest.patient = time.Time{}
	return a.guest.conn.SetReadDeadline(t)
}
