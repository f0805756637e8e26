package upstream

import (
	"context"
	"time"

	"capgate/wire"
)

// doubtTime is how long a server may take to say whether it knows a connection. One that does not say goes on.
const doubtTime = 2 * time.Second

// doubt is the question whether a server still knows a connection. Several may wait for what it says.
type doubt struct {
	over chan struct{}
	gone bool // once it is over
}

// isGone asks the server whether it knows the connection, where what it said may mean that it does not, and ends it then.
// What is said of a request may be of what a tool did; nothing but the connection can be meant here.
func (c *web) isGone(ctx context.Context) bool {
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
		return q.gone
	case <-ctx.Done():
		return false
	}
}

// inquire asks once. That a connection is gone is what everybody is told from then on.
func (c *web) inquire(q *doubt) {
	defer close(q.over)
	if q.gone = c.isUnknown(); q.gone {
		c.lose()
		return
	}
	c.doubting.Lock()
	defer c.doubting.Unlock()
	c.doubt = nil
}

// isUnknown asks for a sign of life in the session, or for the era where there is none.
func (c *web) isUnknown() bool {
	ctx, cancel := context.WithTimeout(c.life, doubtTime)
	defer cancel()
	x := c.begin(ctx, nil)
	defer x.finish()
	x.stance = c.stance.Load()
	r := Request{Method: ping}
	if x.stance.info.Modern {
		r = discovery(c.client.orDefault())
	}
	resp, err := x.put(r) //nolint:bodyclose // whatever reads it closes it
	if err != nil {
		return false
	}
	if answer, ok, _ := x.reads(resp); ok {
		return answer.Error != nil && (x.stance.info.Modern || c.saysForgotten(answer.Error, x.stance.session))
	}
	said, _, err := x.hearsRefusal(x.ctx, resp, x.id)
	if err != nil {
		return false
	}
	surely, perhaps := said.forgets(x.stance.session, x.stance.session != "")
	return surely || perhaps
}

// saysForgotten reports whether an error says that a session is not known, whatever the status is.
func (c *web) saysForgotten(failure []byte, session string) bool {
	if session == "" || len(failure) > maxSpeech {
		return false
	}
	doc := c.doc()
	defer c.putDoc(doc)
	if doc.Parse(failure, wire.Limits{}) != nil {
		return false
	}
	message, _ := doc.Root().Get("message")
	text, _ := message.Str()
	return isForgotten(text, session)
}
