package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"capgate/agents"
	"capgate/capability"
	"capgate/guardrail"
	"capgate/provider"
)

// downstream is the answer of a provider while it is passed on, piece by piece as
// it comes.
type downstream struct {
	*consultation
	watch  *provider.Watch
	strain strainer
	events bool // it is an event stream
	code   int  // of HTTP
	policy *Policy
	asked  time.Time // when the agent was last known to have its token
	unseen []byte    // what the watch has not been shown yet

	control *http.ResponseController
	given   time.Time // when the agent was last given time to take a piece
	size    int
}

const pieceSize = 32 << 10 // bytes of an answer that are passed on at once

// relay passes an answer on.
func (c *consultation) relay(ctx context.Context, resp *http.Response, v *vigil) {
	d := &downstream{
		consultation: c, control: http.NewResponseController(c.w), watch: c.vendor.Watch(c.held), strain: strainer{scrub: c.server.scrub, least: len(c.key)}, policy: c.policy,
		code: resp.StatusCode, events: strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream"),
	}
	d.watch.Room = c.Take // many long answers at once are not to be watched at the cost of other agents
	d.watch.Clean = d.clean
	if err := d.entitled(); err != nil { // an answer may take minutes to begin, and its head is told before a piece of it is read
		c.withdrawn(err)
		return
	}
	d.head(resp)
	err := d.copy(resp.Body, v)
	d.observed()
	cause := context.Cause(ctx)
	switch {
	case err == nil:
		c.outcome(d.size, status(resp.StatusCode))
	case c.r.Context().Err() != nil || errors.Is(err, errGone):
		c.outcome(d.size, "the agent left")
	case cause != nil:
		d.breakOff(cause)
	default:
		d.breakOff(err)
	}
}

// status is the outcome of a request that was answered, "" when all went well.
func status(code int) string {
	if code < http.StatusBadRequest {
		return ""
	}
	return fmt.Sprintf("the provider answered %d", code)
}

// head passes on what the provider says of its answer.
func (d *downstream) head(resp *http.Response) {
	h := d.w.Header()
	for name, list := range resp.Header {
		if !comesDown(name) || d.isKept(name) {
			continue
		}
		for _, value := range list {
			h.Add(name, string(d.clean([]byte(value))))
		}
	}
	if d.events {
		h.Set("X-Accel-Buffering", "no")
	}
	if list := d.became(); list != "" {
		h.Set(toolsHeader, list)
	}
	d.give(time.Now())
	d.w.WriteHeader(resp.StatusCode)
	_ = d.flush() // who is gone shows with the first piece
}

// isKept reports whether a secret stands in the name of a header, whose case is not as
// the provider wrote it.
func (d *downstream) isKept(name string) bool {
	folded := strings.ToLower(name)
	return strings.Contains(folded, strings.ToLower(d.key)) || !d.server.isClean(nil, []byte(name)) || !d.server.isClean(nil, []byte(folded))
}

func (d *downstream) flush() error {
	err := d.control.Flush()
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

func (d *downstream) clean(text []byte) []byte {
	if d.strain.scrub == nil {
		return text
	}
	return d.strain.scrub(text)
}

var (
	errGone   = errors.New("the agent does not take its answer")
	errBroken = errors.New("it broke off within its answer")
	errTaken  = errors.New("the provider is no longer there for the agent")
)

// copy passes on each piece before it waits for the next.
func (d *downstream) copy(body io.Reader, v *vigil) error {
	piece := make([]byte, pieceSize)
	for {
		v.begin(time.Now())
		n, err := body.Read(piece)
		now := time.Now()
		v.rest()
		if err := d.entitled(); err != nil {
			return err
		}
		d.size += n
		d.give(now)
		if n > 0 {
			if d.write(d.strain.pass(piece[:n])) != nil {
				return errGone
			}
			d.look(piece[:n])
		}
		switch {
		case errors.Is(err, io.EOF):
			if d.write(d.strain.rest()) != nil {
				return errGone
			}
			return nil
		case err != nil:
			return errBroken
		}
	}
}

// entitled is an error when the agent has no longer the token that it showed, or the
// provider is not there for it. Under the same policy only time can take a token away,
// and that is looked at once a second.
func (d *downstream) entitled() error {
	policy, now := d.server.policy.Load(), d.server.now()
	if policy == d.policy && now.Sub(d.asked) < time.Second {
		return nil
	}
	d.policy, d.asked = policy, now
	if !policy.holds(d.credential, d.agent, now) {
		return errRevoked
	}
	if p := policy.provider(d.name); p == nil || !p.isFor(d.agent) {
		return errTaken
	}
	if _, denied := policy.Gate.Provider(d.agent); denied != nil {
		return errTaken
	}
	return nil
}

// unseen is how much of an answer is gathered before it is looked at. Pieces are
// mostly words, and to look at each by itself costs as much as to pass it on.
const unseen = 4 << 10

// look has the watch see a piece, sooner or later.
func (d *downstream) look(piece []byte) {
	if d.unseen = append(d.unseen, piece...); len(d.unseen) >= unseen {
		_, _ = d.watch.Write(d.unseen) // it takes all of it
		d.unseen = d.unseen[:0]
	}
}

// give gives the agent time to take a piece, or the end. It is not more exact than
// it has to be: pieces may come thousands a second.
func (d *downstream) give(now time.Time) {
	const exact = time.Second
	if now.Sub(d.given) >= exact {
		d.given = now
		give(d.w, pieceSize)
	}
}

// write sends a piece off.
func (d *downstream) write(piece []byte) error {
	if len(piece) == 0 {
		return nil
	}
	if _, err := d.w.Write(piece); err != nil {
		return err
	}
	return d.flush()
}

// breakOff ends an answer that has begun so that no client takes it for a whole
// one: an event stream with an event that says so, anything else by cutting the
// connection.
func (d *downstream) breakOff(cause error) {
	why := d.server.word(denial{why: d.sentence(cause), event: d.outcome(d.size, cause.Error())}).clause()
	d.give(time.Now())
	if !d.events {
		panic(http.ErrAbortHandler)
	}
	event := bytes.NewBufferString("\n\n") // the last one may not have ended
	event.Write(d.vendor.Failure(provider.Refused{Status: http.StatusBadGateway, Code: capability.UpstreamFailed, Why: why}))
	_ = d.write(event.Bytes()) // an agent that is gone will not miss it
}

// observed records what tools that ran at the provider reached outside of what the
// agent holds. It is found out afterwards: the model has seen it.
func (d *downstream) observed() {
	_, _ = d.watch.Write(d.unseen) // it takes all of it
	seen := d.watch.Close()
	if n := d.watch.Unread(); n > 0 && status(d.code) == "" {
		e := d.event(guardrail.Notice)
		e.Text = fmt.Sprintf("provider_answer_unread: %d parts of the answer could not be looked at, or are too many to be told", n)
		d.server.record(e)
	}
	for _, seen := range seen {
		e := d.event(guardrail.Notice)
		e.Code, e.Tool, e.Text = string(seen.Code), plain(string(d.clean([]byte(seen.Tool)))), "provider_scope_observed: "+seen.Why
		if seen.Host != "" {
			e.Needs = hostNeeds([]string{seen.Host})
		}
		d.server.record(e)
		d.server.log.Warn("a tool at the provider reached outside of what is held", "agent", d.agent, "provider", d.name, "tool", e.Tool)
	}
}

// hostNeeds writes hosts as what a fetch from them needs.
func hostNeeds(hosts []string) []guardrail.Need {
	needs := make([]guardrail.Need, 0, len(hosts))
	for _, h := range hosts {
		needs = append(needs, guardrail.Need{Verb: "net.get", Object: agents.WithoutTokens(h)})
	}
	return needs
}
