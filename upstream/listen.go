package upstream

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"capgate/wire"
)

// listenMethod is the request whose answer does not come as long as there is something to hear.
const listenMethod = "subscriptions/listen"

// How long a connection waits to listen again when the stream has ended: longer
// each time, until a stream has lasted.
const (
	firstPause = time.Second
	mostPause  = time.Minute
	lasting    = 30 * time.Second
)

// listen keeps a stream open for what the server says by itself, until the
// connection ends or the server has no such stream.
func (c *web) listen(info Info) {
	var once func(e *ear, again bool) bool
	switch {
	case info.Modern:
		params := c.client.wishes(info)
		if params == nil {
			return
		}
		once = func(_ *ear, again bool) bool { return c.subscribe(params, again) }
	case c.stance.Load().session == "": // who speaks on the next stream may have been started anew, and have asked nothing
		once = c.hear
	default:
		x := c.begin(c.life, c.events) // one for all streams: what was asked on one is answered when it has ended
		defer x.finish()
		once = x.hear
	}
	e := &ear{events: newEventReader(nil, c.limit)}
	insist(c.life, func(again bool) (time.Duration, bool) {
		ok := once(e, again)
		return e.events.retry, ok
	})
}

// ear is what one stream has of those before it.
type ear struct {
	events  *eventReader
	had     bool   // there was one
	refused string // the event after which one was to begin and did not
}

// insist does something once more whenever it has ended, until it is not worth it or the
// context ends. A server may say how long to wait.
func insist(ctx context.Context, once func(again bool) (wait time.Duration, ok bool)) {
	pause := firstPause
	for again := false; ; again = true {
		began := time.Now()
		wait, ok := once(again)
		if !ok {
			return
		}
		if time.Since(began) > lasting {
			pause = firstPause
		}
		spread := time.Duration(rand.Int64N(int64(pause) / 4))
		if sleep(ctx, min(max(pause, wait), mostPause)+spread) != nil {
			return
		}
		pause = min(2*pause, mostPause)
	}
}

// HeardAgain is what a sink of events is notified of when a server is listened to once
// more: what changed meanwhile was not told.
const HeardAgain = "capgate/heard_again"

// hear opens the stream of the legacy era, and reports whether it is worth to be
// opened again. What is asked on it ends with it.
func (c *web) hear(e *ear, again bool) bool {
	x := c.begin(c.life, c.events)
	defer x.finish()
	return x.hear(e, again)
}

// hear is the same, and what is asked ends with the exchange.
func (x *exchange) hear(e *ear, again bool) bool {
	c := x.web
	x.id = 0 // nothing on such a stream is an answer
	x.stance = c.stance.Load()
	from := string(e.events.id)
	if !isPlainHeader(from) {
		from = ""
	}
	resp, err := c.listenFrom(x.ctx, x.stance, from)
	c.hearing.Do(func() { close(c.heard) })
	if err != nil {
		return c.life.Err() == nil
	}
	if resp.StatusCode != http.StatusOK || media(resp.Header) != mediaEvents {
		err := x.refusesStream(resp, e.had)
		x.log.Debug("the server has no stream to listen to", "error", err)
		if from == e.refused && mayMiss(resp.StatusCode) {
			e.events.id = e.events.id[:0] // that something was missed is told with the next stream
		}
		e.refused = from
		return passes(resp.StatusCode) || e.had && mayPass(resp.StatusCode) && !x.isOver()
	}
	e.had, e.refused = true, ""
	defer func() { _ = resp.Body.Close() }()
	if again {
		c.events.Notify(HeardAgain, nil)
	}
	e.events.resume(resp.Body)
	doc := c.doc()
	defer c.putDoc(doc)
	_, err = x.follow(e.events, doc)
	var cut *cutOff
	if !errors.As(err, &cut) {
		c.log.Warn("the server's stream is not listened to any longer", "error", err)
		return false
	}
	return c.life.Err() == nil
}

// refusesStream reads why there is no stream, and ends a session that is lost where there was one before: who never had
// one may say in whatever way that there is none. It says nothing of a request that was sent.
func (x *exchange) refusesStream(resp *http.Response, had bool) error {
	said, odd, err := x.hearsRefusal(x.ctx, resp, 0)
	if err != nil {
		return err
	}
	if had {
		x.forgotten(x.ctx, said, x.stance.session)
	}
	return x.failed(odd.said(), odd)
}

// passes reports whether what a status says may be over soon.
func passes(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented:
		return false
	}
	return status >= http.StatusInternalServerError
}

// mayPass reports whether what a status says may be over later, where there was a stream before.
func mayPass(status int) bool {
	return status == http.StatusNotFound || status == http.StatusBadRequest
}

// mayMiss reports whether what a status says may be of the event after which a stream was asked for, which a server keeps for
// a while.
func mayMiss(status int) bool {
	return !passes(status) || status == http.StatusInternalServerError || status == http.StatusInsufficientStorage
}

// subscribe is the same in the modern era, where the stream is an answer that does
// not come as long as there is something to hear.
func (c *web) subscribe(params []byte, again bool) bool {
	answer, err := c.Call(c.life, Request{Method: listenMethod, Params: params}, subscriber{c.events, again})
	var odd *strange
	switch {
	case c.life.Err() != nil:
		return false
	case answer.Error != nil, errors.As(err, &odd) && !passes(odd.status):
		c.log.Debug("the server has nothing to subscribe to", "error", err)
		return false
	}
	return true
}

// wishes asks for the changes that a server says it tells of, nil when there are
// none.
func (c Client) wishes(info Info) []byte {
	var doc wire.Doc
	if err := doc.Parse(info.Capabilities, wire.Limits{}); err != nil {
		return nil
	}
	var wanted []string
	for _, list := range []string{"tools", "prompts", "resources"} {
		capability, _ := doc.Root().Get(list)
		changes, _ := capability.Get("listChanged")
		if yes, _ := changes.Bool(); yes {
			wanted = append(wanted, `"`+list+`ListChanged":true`)
		}
	}
	if wanted == nil {
		return nil
	}
	params := append([]byte(`{"_meta":`), appendMeta(nil, c, info.Version)...)
	params = append(params, `,"notifications":{`...)
	params = append(params, strings.Join(wanted, ",")...)
	return append(params, "}}"...)
}

// subscriber is a sink of events, without what only says that they will come.
type subscriber struct {
	Sink
	again bool
}

// Notify hands on a notification.
func (s subscriber) Notify(method string, params []byte) {
	switch {
	case method != "notifications/subscriptions/acknowledged":
		s.Sink.Notify(method, params)
	case s.again:
		s.Sink.Notify(HeardAgain, nil)
	}
}

// Ask is never called: in the modern era a server asks nothing.
func (s subscriber) Ask(ctx context.Context, method string, params []byte) ([]byte, error) {
	return unheard{}.Ask(ctx, method, params)
}
