package upstream

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"time"

	"capgate/wire"
)

const (
	// doubtTime is how long a server may take to say whether it knows a connection. One that does not say goes on.
	doubtTime = refusalTime + time.Second

	// youngTime is how long a connection does not end in doubt, as many would in turn where a server refuses that question
	// too. It has settled then: its end is no failure to a link.
	youngTime = settledTime + 500*time.Millisecond
)

// doubt is the question whether a server still knows a connection. Several may wait for what it says.
type doubt struct {
	over chan struct{}
	by   *word // once it is over: that by which the server does not stand by the connection, nil if it may
}

// forgotten ends the connection where a refusal says, or may say, that the server knows nothing of it any more, and the
// server stands by it. It reports whether that is sure of the request as well: who looks for a session before anything
// else says so at once, and of any request in the same words. While eras are asked for it says nothing of the kind.
func (c *web) forgotten(ctx context.Context, said *word, session string) bool {
	greeted := c.greeted.Load()
	surely, perhaps := said.forgets(session, session != "")
	perhaps = perhaps || said.wantsHeaders(c.stance.Load())
	switch {
	case greeted == nil || !surely && !perhaps:
		return false
	case !surely && time.Since(*greeted) < youngTime:
		return false
	}
	if by := c.inDoubt(ctx); by == nil || !surely || said.late || !said.isLike(by) {
		return false
	}
	c.gone.Store(true)
	return true
}

// inDoubt asks the server whether it knows the connection, where what it said may mean that it does not, ends it then, and
// returns what was said. What is said of a request may be of what a tool did; nothing but the connection can be meant here.
func (c *web) inDoubt(ctx context.Context) *word {
	c.doubting.Lock()
	q := c.doubt
	if q == nil {
		q = &doubt{over: make(chan struct{})}
		c.doubt = q
		go c.inquire(q)
	}
	c.doubting.Unlock()
	select {
	case <-q.over:
		return q.by
	case <-ctx.Done():
		return nil
	}
}

// inquire asks once. That a connection is gone is what everybody is told from then on.
func (c *web) inquire(q *doubt) {
	defer close(q.over)
	ctx, cancel := context.WithTimeout(c.life, doubtTime)
	defer cancel()
	verdict := make(chan *word, 1)
	go func() { verdict <- c.isUnknown(ctx) }()
	select {
	case q.by = <-verdict:
	case <-ctx.Done(): // whatever else it asks meanwhile
	}
	if q.by != nil {
		c.lose()
		return
	}
	c.doubting.Lock()
	defer c.doubting.Unlock()
	c.doubt = nil
}

// isUnknown asks for a sign of life in the session, or for the era where there is none. It returns what says that the
// connection is not known.
func (c *web) isUnknown(ctx context.Context) *word {
	x := c.begin(ctx, nil)
	defer x.finish()
	x.stance, x.probes = c.stance.Load(), true
	r := Request{Method: ping}
	if x.stance.info.Modern {
		r = discovery(c.client.orDefault())
	}
	resp, err := x.put(r) //nolint:bodyclose // whatever reads it closes it
	if err != nil {
		return nil
	}
	var said *word
	if answer, ok, _ := x.reads(resp); ok {
		said = c.wordOf(answer.Error)
	} else if said, _, err = x.hearsRefusal(x.ctx, resp, x.id); err != nil {
		return nil
	}
	if said.disowns(x.stance) {
		return said
	}
	return nil
}

// wordOf reads an error that answers a request, which may be nil.
func (c *web) wordOf(failure []byte) *word {
	w := &word{status: http.StatusOK}
	if len(failure) == 0 || len(failure) > maxSpeech {
		return w
	}
	doc := c.doc()
	defer c.putDoc(doc)
	if doc.Parse(failure, wire.Limits{}) == nil {
		code, _ := doc.Root().Get("code")
		w.code, _ = code.Int64()
		message, _ := doc.Root().Get("message")
		w.text, _ = message.Str()
		w.around = string(failure)
	}
	return w
}

// ofMethod finds what is said of a method that is not known.
var ofMethod = regexp.MustCompile(`(?i)\bping\b|\b(unknown|unsupported|invalid) method\b|\bmethod (is )?(unknown|not (found|supported|allowed|implemented))\b`)

// keys finds the names of what stands beside the words, which may be a session's own in each error.
var keys = regexp.MustCompile(`"[^"]*"\s*:`)

// disowns reports whether what answers the question for a connection says that it is not known. Who does not know the
// question has looked at it, and so at its session; who does not know the one for its era is of the other.
func (w *word) disowns(st *stance) bool {
	surely, perhaps := w.forgets(st.session, st.session != "")
	switch {
	case w.code == codeRevision, w.wantsHeaders(st), isForgotten(w.text, st.session):
		return true
	case st.info.Modern:
		return w.code == codeMethod || surely || perhaps
	case w.code == codeMethod:
		return false
	case ofMethod.MatchString(w.text) && !w.isOfAnotherEra() && !strings.Contains(strings.ToLower(keys.ReplaceAllString(w.around, "")), "session"):
		return false
	}
	return surely || perhaps
}
