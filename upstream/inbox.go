package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"capgate/wire"
)

var errNoise = errors.New("it sends what are no messages")

// waiting is a request of the server that is being answered.
type waiting struct {
	id     string // as it was written
	during *call  // the call that it belongs to, nil for none
	cancel context.CancelFunc
}

// take deals with one line of the server. An error ends the connection.
func (p *pipe) take(ctx context.Context, text []byte) error {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	defer p.doc.Reset()
	if err := p.doc.ParseLoosely(text, wire.Limits{Bytes: p.limit}); err != nil {
		return p.unreadable(text, err)
	}
	m, err := read(&p.doc)
	if err == nil && !p.doc.Sound() {
		err = misread(&p.doc, p.methodOf(m))
	}
	if err != nil {
		return p.unreadable(text, err)
	}
	p.noise = 0
	p.sent.Add(1)
	switch m.kind {
	case answered:
		p.answered(m)
	case asked:
		p.asked(ctx, m)
	case noted:
		p.noted(m)
	}
	return nil
}

// unreadable deals with a line that is no message. When it is meant to be the
// answer to a call, that call fails at once instead of waiting for ever. Nothing
// else is taken from such a line, so it may be read loosely.
func (p *pipe) unreadable(text []byte, cause error) error {
	var meant struct {
		ID     *int64 `json:"id"`
		Method any    `json:"method"`
	}
	loose := bytes.HasPrefix(bytes.TrimSpace(text), []byte("{"))
	if loose && json.Unmarshal(text, &meant) != nil {
		meant.ID, meant.Method = looseID(text), nil
	}
	if loose && meant.ID != nil && meant.Method == nil {
		if c := p.pick(*meant.ID); c != nil {
			c.reply <- reply{failed: p.failed("answered with what cannot be read", false, cause)}
			return nil
		}
	}
	if p.noise++; p.noise > maxNoise {
		return errNoise
	}
	p.said.odd(cause.Error(), text)
	return nil
}

// overlong fails the call that a line which is too long was to answer, and passes over
// the rest of it. A line that names no call may have been for any of them: it ends the
// connection. Many servers write the id behind the result.
func (p *pipe) overlong(in *lines, head []byte) error {
	id, isAnswer := idBefore(head)
	if !isAnswer {
		return errLong
	}
	fail := func(id int64) {
		if c := p.pick(id); c != nil {
			c.reply <- reply{failed: p.failed("answers with too much; ask it for less", false, errLong)}
			return
		}
		p.said.odd("a long answer that nobody waits for", nil)
	}
	if id > 0 {
		fail(id)
	}
	end, err := in.skip()
	if err != nil || id > 0 {
		return err
	}
	if id = idBehind(end); id == 0 {
		return errLong
	}
	fail(id)
	return nil
}

// idBefore reads the beginning of a line, and reports whether it is an answer. The id
// is that of the answer, 0 if it does not stand in front of the result.
func idBefore(line []byte) (id int64, isAnswer bool) {
	in := json.NewDecoder(bytes.NewReader(line[:min(len(line), idWithin)]))
	if open, err := in.Token(); err != nil || open != json.Delim('{') {
		return 0, false
	}
	for {
		key, _ := in.Token()
		switch key {
		case "result", "error":
			return id, true
		case "id":
			if in.Decode(&id) != nil {
				return 0, false
			}
		case "jsonrpc":
			if _, err := in.Token(); err != nil {
				return 0, false
			}
		default:
			return 0, false
		}
	}
}

// idBehind reads the id in front of the last bracket of a line, 0 if there is none.
// Quotes as they are stand in no string, so that it is a key of the whole message.
func idBehind(end []byte) int64 {
	end, whole := bytes.CutSuffix(bytes.TrimSpace(end), []byte("}"))
	at := bytes.LastIndex(end, []byte(`"id":`))
	if !whole || at < 1 || !bytes.ContainsRune([]byte(",{ "), rune(end[at-1])) {
		return 0
	}
	id, err := strconv.ParseUint(string(bytes.TrimSpace(end[at+len(`"id":`):])), 10, 63)
	if err != nil {
		return 0
	}
	return int64(id)
}

// isCall reports whether what cannot be read is a notification or a request rather than an
// answer: it names a method and, as far as it is JSON at all, no result.
func isCall(text []byte) bool {
	in := json.NewDecoder(bytes.NewReader(text))
	if open, err := in.Token(); err != nil || open != json.Delim('{') {
		return false
	}
	names := false
	for {
		key, err := in.Token()
		name, ok := key.(string)
		if err != nil || !ok {
			return names
		}
		switch strings.ToLower(name) {
		case "result", "error":
			return false
		case "method":
			names = true
		}
		var value json.RawMessage
		if in.Decode(&value) != nil {
			return names
		}
	}
}

// idWithin is how much of a line is looked at for the id of what it was to answer.
const idWithin = 256

// looseID finds the id in the beginning of a line that is not JSON. It is taken for
// what it looks like: all that can come of it is that a call fails.
func looseID(text []byte) *int64 {
	_, rest, ok := bytes.Cut(text[:min(len(text), idWithin)], []byte(`"id":`))
	if !ok {
		return nil
	}
	rest = bytes.TrimLeft(rest, " ")
	end := bytes.IndexFunc(rest, func(c rune) bool { return c < '0' || c > '9' })
	if end <= 0 {
		return nil
	}
	id, err := strconv.ParseInt(string(rest[:end]), 10, 64)
	if err != nil {
		return nil
	}
	return &id
}

// methodOf returns the method that a message answers, "" for any other message.
func (p *pipe) methodOf(m message) string {
	id, _ := m.id.Int64()
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.pending[id]; c != nil && m.kind == answered {
		return c.method
	}
	return ""
}

// pick takes a call out of those that wait, nil if there is none of this id.
func (p *pipe) pick(id int64) *call {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.pending[id]
	if c != nil {
		p.remove(c)
	}
	return c
}

// answered hands an answer to its call. The answer is the call's to keep.
func (p *pipe) answered(m message) {
	id, ok := m.id.Int64()
	if !ok {
		p.said.odd("an answer to a request that is not ours", m.id.Raw())
		return
	}
	c := p.pick(id)
	if c == nil {
		p.said.odd("an answer that nobody waits for", m.id.Raw())
		return
	}
	c.reply <- reply{answer: Answer{
		Result: keep(m.answer.Result, c.into), Type: m.answer.Type, Failed: m.answer.Failed,
		Error: keep(m.answer.Error, c.into),
	}}
}

// noted passes a notification on to who it is for.
func (p *pipe) noted(m message) {
	switch m.method {
	case "notifications/progress":
		token, _ := m.params.Get("progressToken")
		p.notify(p.byToken(token), m)
		return
	case "notifications/cancelled":
		id, _ := m.params.Get("requestId")
		p.cancelled(id)
		return
	}
	meta, _ := m.params.Get("_meta")
	subscription, ok := meta.Get(metaSubscription)
	if !ok {
		p.event.Notify(m.method, m.params.Raw())
		return
	}
	p.notify(p.byID(subscription), m)
}

// notify tells a call something. What is for a call that has ended is nobody's.
func (p *pipe) notify(c *call, m message) {
	if c == nil {
		return
	}
	defer c.busy.Done()
	if c.sink != nil {
		c.sink.Notify(m.method, m.params.Raw())
	} else {
		p.event.Notify(m.method, m.params.Raw())
	}
}

// byToken returns the call with a progress token, nil if there is none. The call
// is busy until its sink has been told.
func (p *pipe) byToken(token wire.Value) *call {
	text, ok := token.Str()
	if !ok {
		text = string(token.Raw())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return used(p.tokens[text])
}

// byID is byToken with the id of the request.
func (p *pipe) byID(id wire.Value) *call {
	n, ok := id.Int64()
	if !ok {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return used(p.pending[n])
}

// used marks a call, which must be one that waits, as busy.
func used(c *call) *call {
	if c != nil {
		c.busy.Add(1)
	}
	return c
}

// cancelled ends what the server is no longer interested in. The ids of the two
// sides are not the same: a legacy server cancels its own requests, a modern one
// has none and ends subscriptions.
func (p *pipe) cancelled(id wire.Value) {
	if p.Info().Modern {
		p.unsubscribed(id)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.asks[string(id.Raw())]; w != nil {
		delete(p.asks, w.id)
		w.cancel()
	}
}

func (p *pipe) unsubscribed(id wire.Value) {
	n, ok := id.Int64()
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.pending[n]; ok && c != nil && c.method == listenMethod {
		p.remove(c)
		c.reply <- reply{failed: p.failed("ended the subscription", false, nil)}
	}
}

// asked lets a request of the server be answered, elsewhere: it may take time.
func (p *pipe) asked(ctx context.Context, m message) {
	id := string(m.id.Raw())
	switch {
	case len(id) > maxID:
		p.said.odd("a request with a very long id", nil)
		return
	case p.Info().Modern:
		p.said.odd("a request, which its protocol revision does not have", []byte(m.method))
		return
	case m.method == ping:
		p.answer(&response{id: []byte(id), result: []byte("{}")})
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &waiting{id: id, cancel: cancel}
	h, refused := p.addressee(w)
	if refused != nil {
		cancel()
		p.answer(&response{id: []byte(id), refused: refused})
		return
	}
	method, params := m.method, slices.Clone(m.params.Raw())
	p.tasks.Go(func() {
		defer w.over()
		r := h.ask(ctx, []byte(id), method, params)
		if p.asksStill(w) {
			p.answer(r)
		}
	})
}

// over ends the use of what a request was answered with.
func (w *waiting) over() {
	w.cancel()
	if w.during != nil {
		w.during.busy.Done()
	}
}

// addressee says who answers a request of the server, and notes that it waits.
// Nothing says which call it is for, unless there is only one, and nobody else
// could have made another that was given up: else it is for who takes events.
func (p *pipe) addressee(w *waiting) (*hearer, *Refusal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case len(p.asks) >= maxAsks:
		return nil, &Refusal{Code: codeInternal, Message: "too many requests wait for an answer"}
	case p.asks[w.id] != nil:
		return nil, &Refusal{Code: codeRequest, Message: "there is a request with this id already"}
	}
	h := &hearer{sink: p.event}
	if mine := p.asking(); len(mine) == 1 && !p.many {
		w.during = used(mine[0])
		if w.during.hearer == nil {
			w.during.hearer = &hearer{sink: w.during.sink}
		}
		h = w.during.hearer
	}
	p.asks[w.id] = w
	return h, nil
}

// asking returns the calls in flight that a question could belong to, which are
// not those that the gateway makes for itself. The lock is held.
func (p *pipe) asking() []*call {
	var list []*call
	for _, c := range p.pending {
		if c != nil && c.sink != nil {
			list = append(list, c)
		}
	}
	return list
}

// asksStill reports whether the server still waits for an answer, and notes that
// it gets it.
func (p *pipe) asksStill(w *waiting) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asks[w.id] != w {
		return false
	}
	delete(p.asks, w.id)
	return true
}

// answer answers a request of the server. Nothing is odd about one that is open when the connection is
// closed from here.
func (p *pipe) answer(r *response) {
	l := &line{data: appendLine(r.message()), may: r.may}
	l.refused = func(why error) {
		r.refuse(why)
		go p.answer(r) // nothing can be queued meanwhile
	}
	if err := p.out.push(l); err != nil && !p.shut.Load() {
		p.said.odd("a request whose answer it does not read", r.id)
	}
}
