package proxy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"capgate/upstream"
	"capgate/wire"
)

const (
	maxQueue   = 256              // messages that wait for an agent to open its event stream
	maxQueued  = 8 << 20          // bytes of them
	maxUntaken = 64 << 20         // bytes of those for all sessions of an agent
	maxAsked   = 64               // requests to one client that are not answered yet
	maxWatched = 1024             // resources that one session is subscribed to
	askTime    = 10 * time.Minute // a person may have to answer
)

// session is one connection of an agent in the legacy era, from initialize on.
type session struct {
	id         string // what the agent shows with each request
	name       string // what events call it
	credential string // the id of the token that opened it, "" over stdio
	tenant     *tenant
	client     *wire.Doc // what it said that it can do

	mu      sync.Mutex
	ended   chan struct{}
	over    bool
	seen    time.Time
	level   string
	wake    chan struct{} // closed when something was queued
	queue   []queued
	waiting int  // bytes in it
	taken   bool // a stream takes from the queue
	flights map[string]context.CancelFunc
	left    map[string]bool // those of them that the client has cancelled
	asked   map[string]chan outcome
	count   uint64
	watched map[string]*watched // resources, by URI
	dormant map[string]*watched // the same of what cannot be watched for now
}

// outcome is what a client answered.
type outcome struct {
	result  []byte
	refusal *upstream.Refusal
}

func newSession(id, name string, client *wire.Doc, now time.Time) *session {
	return &session{
		id: id, name: name, client: client, seen: now, ended: make(chan struct{}), wake: make(chan struct{}),
		flights: map[string]context.CancelFunc{}, left: map[string]bool{}, asked: map[string]chan outcome{}, watched: map[string]*watched{}, dormant: map[string]*watched{},
	}
}

// capabilities is what the client said that it can do.
func (s *session) capabilities() wire.Value {
	v, _ := s.client.Root().Get("capabilities")
	return v
}

// end makes the session one that is over: its stream ends, its requests are
// cancelled and what was asked of its client is not answered any more.
func (s *session) end() {
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return
	}
	s.over = true
	close(s.ended)
	for _, cancel := range s.flights {
		cancel()
	}
	s.tenant.keep(-s.waiting, 0)
	s.queue, s.waiting = nil, 0
	all := s.watched
	s.watched, s.dormant = map[string]*watched{}, map[string]*watched{}
	s.mu.Unlock()
	unwatchAll(all)
	if s.tenant.only == s {
		s.tenant.close()
	}
}

// abandon cancels all requests of the session, and returns the ids of those that its client waits for: nothing else is said
// for them.
func (s *session) abandon() (ids [][]byte) {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.flights)) {
		s.flights[id]()
		if !s.left[id] {
			ids = append(ids, []byte(id))
		}
	}
	clear(s.flights)
	clear(s.left)
	return ids
}

// notify queues a notification for the stream that belongs to no request. One
// that is there already is not queued twice when it says no more than that
// something has changed. Whether it may still go is asked when it does; nil: it may.
func (s *session) notify(method string, params []byte, may func() bool) {
	q := queued{note(method, params), may}
	switch {
	case params == nil:
		s.post(q, changed)
	case method == resourceUpdated:
		s.post(q, updated)
	case method == logMessage:
		s.post(q, logged)
	default:
		s.post(q, asked)
	}
}

// queued is a message that waits for an agent to take it.
type queued struct {
	text []byte
	may  func() bool // whether it may still go; nil: it may
}

func (q queued) goes() bool { return q.may == nil || q.may() }

// waits reports whether a message of the same text is in a queue. Then it goes if the later one
// may: what the earlier one is of may be gone by now.
func waits(queue []queued, message queued) bool {
	at := slices.IndexFunc(queue, func(q queued) bool { return string(q.text) == string(message.text) })
	if at >= 0 && queue[at].may != nil {
		queue[at].may = message.may
	}
	return at >= 0
}

// worth is what a message is worth while nobody takes it. Where room is short logs are left
// out first; that lists have changed is never lost.
type worth uint8

const (
	logged  worth = iota
	updated       // a resource was
	asked         // the client is, or what has to do with it
	changed       // lists have
)

// room is how many messages may wait for a session with one of this worth, how many bytes
// of them, and how many for all sessions of the agent.
func (w worth) room() (messages, bytes, all int) {
	switch w {
	case logged:
		return maxQueue, maxQueued / 2, maxUntaken / 2
	case updated:
		return maxQueue + maxWatched, maxQueued, maxUntaken / 4 * 3
	case asked:
		return maxQueue + maxWatched, maxQueued, maxUntaken
	}
	return math.MaxInt, math.MaxInt, math.MaxInt
}

// note writes a notification.
func note(method string, params []byte) []byte {
	dst := append([]byte(`{"jsonrpc":"2.0","method":"`), method...)
	if params == nil {
		return append(dst, `"}`...)
	}
	dst = append(append(dst, `","params":`...), params...)
	return append(dst, '}')
}

// Methods that are known in several places.
const (
	resourceUpdated = "notifications/resources/updated"
	logMessage      = "notifications/message"
	listenMethod    = "subscriptions/listen"
)

// post queues a message if there is room for one of its worth.
func (s *session) post(message queued, w worth) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	if (w == changed || w == updated) && waits(s.queue, message) {
		return true
	}
	if w == logged && s.taken { // which is not what nobody listens to
		w = updated
	}
	messages, bytes, all := w.room()
	size := len(message.text) + perMessage
	if len(s.queue) >= messages || s.waiting > bytes-size || !s.tenant.keep(size, all) {
		return false
	}
	s.queue, s.waiting = append(s.queue, message), s.waiting+size
	close(s.wake)
	s.wake = make(chan struct{})
	return true
}

// take returns what has been queued for longest, or the channel that is closed when something is.
func (s *session) take() (queued, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = s.tenant.server.now()
	if len(s.queue) == 0 {
		return queued{}, s.wake
	}
	message := s.queue[0]
	s.drop(0)
	return message, nil
}

// putBack queues what was taken and could not be sent, so that who comes back has it first.
func (s *session) putBack(message queued) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	size := len(message.text) + perMessage
	s.tenant.keep(size, math.MaxInt) // as it was counted before
	s.queue, s.waiting = slices.Insert(s.queue, 0, message), s.waiting+size
}

// drop takes a message out of the queue. The lock is held.
func (s *session) drop(at int) {
	size := len(s.queue[at].text) + perMessage
	copy(s.queue[1:at+1], s.queue[:at]) // nothing where it is the first, as it mostly is
	s.queue[0] = queued{}
	s.queue, s.waiting = s.queue[1:], s.waiting-size
	s.tenant.keep(-size, 0)
}

// withdraw takes a message back that nobody has taken yet.
func (s *session) withdraw(message []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.queue, func(q queued) bool { return &q.text[0] == &message[0] })
	if at < 0 {
		return false
	}
	s.drop(at)
	return true
}

var (
	errAskLimit = errors.New("too many requests wait for the client's answer")
	errOver     = errors.New("the session is over")
)

// errUnsent says that a client was not asked, as its stream did not take the question.
var errUnsent = errors.New("the question could not be sent")

// errUnput says that a client was not asked, as the question might not go any more when a stream
// took it.
var errUnput = errors.New("the agent is shown nothing of the server any more")

// mailbox takes questions for the stream of a session that belongs to no request.
type mailbox struct {
	session *session
	may     func() bool // whether they may still go
}

func (m mailbox) send(message queued) error {
	if !m.session.post(queued{message.text, m.may}, asked) {
		return errSlow
	}
	return nil
}

// ask sends a request to the client and waits for what it answers.
func (s *session) ask(ctx context.Context, out stream, method string, params []byte) (outcome, error) {
	s.mu.Lock()
	if s.over || len(s.asked) >= maxAsked {
		s.mu.Unlock()
		return outcome{}, errAskLimit
	}
	s.count++
	id := "capgate-" + strconv.FormatUint(s.count, 10)
	answer := make(chan outcome, 1)
	s.asked[id] = answer
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.asked, id)
		s.mu.Unlock()
	}()
	message := append([]byte(`{"jsonrpc":"2.0","id":"`), id...)
	message = append(append(message, `","method":"`...), method...)
	message = append(message, '"')
	if params != nil {
		message = append(append(message, `,"params":`...), params...)
	}
	message = append(message, '}')
	if err := out.send(queued{text: message}); err != nil {
		return outcome{}, fmt.Errorf("%w: %w", errUnsent, err)
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	select {
	case got := <-answer:
		return got, nil
	case <-s.ended:
		return outcome{}, errOver
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), errUnput) {
			return outcome{}, errUnput
		}
		if !s.withdraw(message) {
			s.callOff(out, []byte(`{"requestId":"`+id+`"}`))
		}
		return outcome{}, ctx.Err()
	}
}

// callOff says that a question need not be answered: where it was asked, as long as that goes on.
func (s *session) callOff(out stream, params []byte) {
	message := append(append([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":`), params...), '}')
	if _, own := out.(mailbox); own || out.send(queued{text: message}) != nil {
		s.notify("notifications/cancelled", params, nil)
	}
}

// isListening reports whether somebody takes what is queued. Over stdio somebody does.
func (s *session) isListening() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken || s.credential == ""
}

// answered takes the client's answer to a request of ours. It reports whether
// there is one that the answer is to.
func (s *session) answered(m message) bool {
	id, ok := idText(m.id)
	s.mu.Lock()
	waiting, known := s.asked[id]
	delete(s.asked, id)
	s.mu.Unlock()
	if !ok || !known {
		return false
	}
	if m.failure.Kind() == wire.Invalid {
		if m.result.Kind() != wire.Object {
			waiting <- outcome{refusal: &upstream.Refusal{Code: codeInternal, Message: "the client's answer is not an object"}}
			return true
		}
		waiting <- outcome{result: append([]byte(nil), m.result.Raw()...)}
		return true
	}
	code, _ := m.failure.Get("code")
	text, _ := m.failure.Get("message")
	number, whole := code.Int64()
	if !whole {
		number = codeInternal
	}
	said, _ := text.Str()
	waiting <- outcome{refusal: &upstream.Refusal{Code: int(number), Message: said}}
	return true
}

// idText is the text of an id that is a text.
func idText(id []byte) (string, bool) {
	if len(id) < 2 || id[0] != '"' {
		return "", false
	}
	return string(id[1 : len(id)-1]), true
}

// begin notes a request that is being answered, so that it can be cancelled. The error says
// why that is not to be.
func (s *session) begin(id []byte, cancel context.CancelFunc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, taken := s.flights[string(id)]
	switch {
	case s.over:
		return errOver
	case taken:
		return errSameID
	}
	s.seen = s.tenant.server.now()
	s.flights[string(id)] = cancel
	return nil
}

var errSameID = errors.New("a request of the same id is being answered")

func (s *session) finish(id []byte) {
	s.mu.Lock()
	delete(s.flights, string(id))
	delete(s.left, string(id))
	s.seen = s.tenant.server.now()
	s.mu.Unlock()
}

// cancel ends a request of this session. One of another session is out of reach.
func (s *session) cancel(id []byte) {
	s.mu.Lock()
	cancel := s.flights[string(id)]
	if cancel != nil {
		s.left[string(id)] = true
	}
	s.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// idle reports since when nobody has used the session; never, while a stream or
// a request is open, or it is that of a process.
func (s *session) idle(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken || s.credential == "" || len(s.flights) > 0 {
		return 0
	}
	return now.Sub(s.seen)
}
