package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// chance is a line that may go or not by chance.
type chance struct {
	line
	text    string
	allowed atomic.Bool // what was said last
	told    atomic.Int64
	gone    atomic.Bool // its sender has left
	late    atomic.Bool // and it was asked all the same
}

// Queue has many push lines at once to somebody who reads by chance, and compares what comes of it.
func Queue(seed uint64) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	out, err := newOutbox(w, func(error) {})
	if err != nil {
		return err
	}
	const senders, each = 4, 25
	all := chances(seed, senders*each)
	var got bytes.Buffer
	read := make(chan error, 1)
	go func() { read <- readByChance(r, seed, &got) }()
	var pushing sync.WaitGroup
	for s := range senders {
		pushing.Go(func() {
			by := rand.New(rand.NewPCG(seed, uint64(s)<<40))
			for _, c := range all[s*each : (s+1)*each] {
				if out.push(&c.line) == nil && by.IntN(3) == 0 {
					out.leave(&c.line)
					c.gone.Store(true)
				}
			}
		})
	}
	pushing.Wait()
	for waits := true; waits; {
		out.mu.Lock()
		waits = out.busy
		out.mu.Unlock()
		<-time.After(time.Millisecond)
	}
	_ = w.Close()
	if err := <-read; !errors.Is(err, io.EOF) {
		return err
	}
	rest := got.Bytes()
	for i, c := range all {
		if err := c.wrong(i, bytes.Count(rest, []byte(c.text)), out.leave(&c.line)); err != nil {
			return err
		}
		rest = bytes.Replace(rest, []byte(c.text), nil, 1)
	}
	if len(rest) > 0 {
		return fmt.Errorf("%d bytes are of no line", len(rest))
	}
	return nil
}

func chances(seed uint64, n int) []*chance {
	all := make([]*chance, n)
	for i := range all {
		c := &chance{}
		own := rand.New(rand.NewPCG(seed, uint64(i)))
		c.text = fmt.Sprintf("%d:%s\n", i, strings.Repeat("x", own.IntN(9000)))
		c.data = []byte(c.text)
		c.may = func() error { // with the outbox locked, so that own is nobody else's
			if c.gone.Load() {
				c.late.Store(true)
			}
			c.allowed.Store(own.IntN(4) > 0)
			if !c.allowed.Load() {
				return io.EOF
			}
			return nil
		}
		c.refused = func(error) { c.told.Add(1) }
		all[i] = c
	}
	return all
}

func readByChance(r io.Reader, seed uint64, got *bytes.Buffer) error {
	by, piece := rand.New(rand.NewPCG(seed, 1<<32)), make([]byte, 20000)
	for {
		n, err := r.Read(piece[:1+by.IntN(len(piece)-1)])
		got.Write(piece[:n])
		if err != nil {
			return err
		}
	}
}

// wrong is what should not be of a line that has been read so often.
func (c *chance) wrong(i, has int, state lineState) error {
	switch {
	case c.late.Load():
		return fmt.Errorf("line %d is asked about when its sender has left", i)
	case has != map[lineState]int{written: 1}[state]:
		return fmt.Errorf("line %d is there %d times in state %d", i, has, state)
	case has == 1 && !c.allowed.Load(), (state == dropped) != (c.told.Load() == 1):
		return fmt.Errorf("line %d in state %d was allowed: %t, and refused %d times", i, state, c.allowed.Load(), c.told.Load())
	}
	return nil
}

// LeftWhileBegun has the sender of a line leave while it is tried to write it, in vain, and reports how often
// it is asked after that and whether the line is there to be written once more.
func LeftWhileBegun() (asked int, stays bool) {
	o := &outbox{busy: true}
	l := &line{data: []byte("x\n"), refused: func(error) {}}
	l.may = func() error { asked++; return nil }
	_ = o.push(l)
	o.next()
	asked = 0
	o.leave(l)
	o.wrote(0)
	return asked, o.next() != nil
}
