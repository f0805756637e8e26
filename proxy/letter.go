package proxy

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"capgate/capability"
	"capgate/wire"
)

const (
	bodyTime   = 30 * time.Second // for the body of a request to arrive
	pooledBody = 4 << 20          // larger ones are not kept for the next request
)

// letter is the body of a request, the index over it and memory for what a server
// answers and for what is written then, to be used again.
type letter struct {
	body   []byte
	doc    wire.Doc
	answer []byte
	out    []byte // shorter than wholeBody
}

// letters keeps them. The pool is made once and holds no state that is seen.
func (s *Server) letter() *letter {
	if l, ok := s.letters.Get().(*letter); ok {
		return l
	}
	return new(letter)
}

func (s *Server) putBack(l *letter) {
	l.doc.Reset()
	if cap(l.body) <= pooledBody && cap(l.answer) <= pooledBody {
		s.letters.Put(l)
	}
}

// spoilt says why a body was not taken in.
type spoilt struct {
	status, code int
	text         string
}

// refusalOf is the code that goes with a status of HTTP by which a message is refused.
func refusalOf(status int) capability.Code {
	if status == http.StatusRequestEntityTooLarge || status == http.StatusTooManyRequests {
		return capability.LimitExceeded
	}
	return capability.MalformedRequest
}

// takeIn is read without the answer. What is announced counts as long as the request
// lasts, whether it comes or not: else many bodies could be here before the first is too
// much. Of one that is not announced only what came counts in the end.
func (v *visit) takeIn(l *letter) *spoilt {
	limit := v.server.limits.Body
	if v.r.ContentLength > int64(limit) {
		return tooLong(limit)
	}
	size := v.r.ContentLength
	if size < 0 {
		size = int64(limit)
	}
	if size > trusted {
		if !v.Take(int(size)) {
			return crowded()
		}
	}
	var err error
	l.body, err = fill(l.body[:0], v.r.Body, v.r.ContentLength, limit)
	switch {
	case errors.Is(err, errLong):
		return tooLong(limit)
	case err != nil:
		return &spoilt{http.StatusBadRequest, codeParse, "the message broke off"}
	}
	if size > trusted {
		v.lighten(size - int64(len(l.body)))
	}
	_ = http.NewResponseController(v.w).SetReadDeadline(time.Time{}) // where there was none, there is none to take back
	return nil
}

// index reads a body as JSON. What is made of it can take many times its memory: it counts
// as well, and no more long ones of an agent are read at once than there is work done.
func (v *visit) index(l *letter) *spoilt {
	if len(l.body) > trusted {
		v.tenant.reading <- struct{}{}
		defer func() { <-v.tenant.reading }()
	}
	if err := l.doc.Parse(l.body, wire.Limits{Bytes: v.server.limits.Body}); err != nil {
		return &spoilt{http.StatusBadRequest, codeParse, err.Error()}
	}
	if m := l.doc.Memory(); m > trusted && !v.Take(m) {
		return crowded()
	}
	return nil
}

func crowded() *spoilt {
	return &spoilt{http.StatusTooManyRequests, codeRequest, "too many long messages at once"}
}

// Take counts what a message takes, until the visit is over.
func (v *visit) Take(bytes int) bool {
	ok := v.tenant.load(int64(bytes))
	if ok {
		v.bulk += int64(bytes)
	}
	return ok
}

// Give takes back what of it an answer was made with and does not hold.
func (v *visit) Give(bytes int) { v.lighten(int64(bytes)) }

// unload takes back what was counted.
func (v *visit) unload() { v.lighten(v.bulk) }

// lighten takes back some of it.
func (v *visit) lighten(bytes int64) {
	if bytes > 0 {
		v.tenant.load(-bytes)
		v.bulk -= bytes
	}
}

func tooLong(limit int) *spoilt {
	return &spoilt{http.StatusRequestEntityTooLarge, codeRequest, "the message is longer than " + strconv.Itoa(limit) + " bytes"}
}

var errLong = errors.New("too long")

// trusted is how much room is made for a body because of what its header says.
const trusted = 64 << 10

// fill reads to the end, at most limit bytes.
func fill(dst []byte, r io.Reader, length int64, limit int) ([]byte, error) {
	want := 4096
	if length >= 0 {
		want = min(int(length)+1, trusted) // what is announced need not come
	}
	dst = slices.Grow(dst, want)
	for {
		if len(dst) == cap(dst) {
			dst = slices.Grow(dst, cap(dst))
		}
		n, err := r.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		if len(dst) > limit {
			return dst, errLong
		}
		if errors.Is(err, io.EOF) {
			return dst, nil
		}
		if err != nil {
			return dst, err
		}
	}
}
