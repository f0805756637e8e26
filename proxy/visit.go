package proxy

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"capgate/capability"
	"capgate/guardrail"
	"capgate/leash"
	"capgate/upstream"
	"capgate/wire"
)

// The headers of the protocol, as they are written in canonical form.
const (
	headerSession  = "Mcp-Session-Id"
	headerRevision = "Mcp-Protocol-Version"
	headerMethod   = "Mcp-Method"
	headerName     = "Mcp-Name"
)

// message answers one message in the era that it is of.
func (v *visit) message(m message) {
	revision, several := one(v.r.Header, headerRevision)
	if several {
		v.refuse(http.StatusBadRequest, m.id, codeHeader, "the header "+headerRevision+" stands there more than once")
		return
	}
	inBody, _ := m.meta.Get(metaVersion)
	said, _ := inBody.Str()
	modern := inBody.Kind() != wire.Invalid && !isLegacy(said) || revision != "" && !isLegacy(revision)
	switch {
	case m.kind == response && modern:
		v.refuse(http.StatusBadRequest, m.id, codeRequest, "there are no requests of ours to answer in this revision")
	case m.kind == notification && modern:
		v.w.WriteHeader(http.StatusAccepted)
	case modern:
		v.modern(m, revision, inBody)
	default:
		v.legacy(m, revision)
	}
}

// one returns the only value of a header. A header that stands there twice says
// nothing that can be relied on.
func one(h http.Header, name string) (value string, several bool) {
	list := h[name]
	if len(list) == 0 {
		return "", false
	}
	return strings.Trim(list[0], " \t"), len(list) > 1
}

// begin makes a call of a message.
func (v *visit) begin(m message) *call {
	return &call{
		message: m, server: v.server, policy: v.policy, tenant: v.tenant, agent: v.agent, credential: v.credential,
		ref: v.server.reference(), start: v.server.now(), into: &v.letter.answer, room: v,
	}
}

// exchange makes the place where the answer goes.
func (v *visit) exchange() *exchange {
	return &exchange{visit: v, events: accepts(v.r.Header, "text/event-stream")}
}

// modern answers a request of the stateless era. What its headers repeat must be
// what its body says: others on the way may have decided by the headers.
func (v *visit) modern(m message, revision string, inBody wire.Value) {
	c := v.begin(m)
	ctx := leash.New(v.r.Context())
	defer ctx.Cut(nil)
	c.modern, c.ctx, c.life = true, ctx, ctx
	if r, ok := v.checkModern(c, revision, inBody); !ok {
		v.write(m.id, r)
		return
	}
	x := v.exchange()
	c.out = x
	x.answer(c)
}

func (v *visit) checkModern(c *call, revision string, inBody wire.Value) (reply, bool) {
	switch {
	case revision == "":
		return c.mismatch("the header " + headerRevision + " is missing"), false
	case inBody.Kind() == wire.String && !inBody.Equal(revision):
		return c.mismatch("the header " + headerRevision + " and _meta name different revisions"), false
	case inBody.Kind() == wire.Invalid && revision != modernRevision: // of a session, perhaps
		r := c.unspoken(revision)
		r.status = http.StatusBadRequest
		return r, false
	}
	if r, ok := c.introduced(inBody); !ok {
		r.status = http.StatusBadRequest
		return r, false
	}
	c.mirrored = &mirror{v.r.Header}
	if err := c.mirrored.check(c.message); err != nil {
		return c.mismatch(err.Error()), false
	}
	return reply{}, true
}

// introduced takes what a request of the stateless era says of its client in _meta: the
// revision, what the client can do, and which logs it wants to see.
func (c *call) introduced(inBody wire.Value) (reply, bool) {
	bad := func(code int, text string) (reply, bool) {
		r := c.malformed(text)
		r.failure.code = code
		return r, false
	}
	client, _ := c.meta.Get(metaCapabilities)
	level, levelled := c.meta.Get(metaLogLevel)
	switch {
	case inBody.Kind() != wire.String:
		return bad(codeParams, "_meta lacks "+metaVersion)
	case !inBody.Equal(modernRevision):
		said, _ := inBody.Str()
		return c.unspoken(said), false
	case client.Kind() != wire.Object:
		return bad(codeParams, "_meta lacks "+metaCapabilities)
	case levelled && c.logLevel() == "":
		return bad(codeParams, "_meta names a level of logs that there is not: "+string(level.Raw()[:min(len(level.Raw()), maxMethod)]))
	}
	c.client = client
	return reply{}, true
}

// unspoken answers a request of a revision that is not one of ours.
func (c *call) unspoken(revision string) reply {
	r := c.malformed("the revision is not one that is spoken here")
	r.failure.code = codeVersion
	r.failure.data = append(wire.AppendString([]byte(`{"supported":`+supported+`,"requested":`), revision), '}')
	return r
}

// mirror is the headers of a request that repeat what its body says.
type mirror struct{ header http.Header }

func (m *mirror) check(msg message) error {
	method, several := one(m.header, headerMethod)
	if several || method != msg.method {
		return errors.New("the header " + headerMethod + " does not name the method")
	}
	var key string
	switch msg.method {
	case "tools/call", "prompts/get":
		key = "name"
	case "resources/read":
		key = "uri"
	default:
		return nil
	}
	want, _ := msg.params.Get(key)
	raw, several := one(m.header, headerName)
	name, ok := upstream.DecodeHeader(raw)
	if _, present := m.header[headerName]; several || !present || !ok || !want.Equal(name) {
		return errors.New("the header " + headerName + " does not say what the body does")
	}
	return nil
}

// legacy answers a message of the era with sessions.
func (v *visit) legacy(m message, revision string) {
	if m.kind == request && m.method == "initialize" {
		v.initialize(m)
		return
	}
	if m.kind == request && m.method == "server/discover" {
		v.refuse(http.StatusBadRequest, m.id, codeParams, "server/discover is of the revision "+modernRevision+", and says so in _meta")
		return
	}
	s := v.session(m.id)
	if s == nil {
		return
	}
	if revision != "" && !isLegacy(revision) {
		v.refuse(http.StatusBadRequest, m.id, codeRequest, "the revision is not one that is spoken here")
		return
	}
	switch m.kind {
	case response:
		if !s.answered(m) {
			v.refuse(http.StatusBadRequest, m.id, codeRequest, "nothing was asked that this answers")
			return
		}
		v.w.WriteHeader(http.StatusAccepted)
	case notification:
		s.heard(m)
		v.w.WriteHeader(http.StatusAccepted)
	default:
		v.request(m, s)
	}
}

// session finds the session that a request belongs to. One of another agent is
// not there.
func (v *visit) session(id []byte) *session {
	name, several := one(v.r.Header, headerSession)
	if name == "" || several {
		v.refuse(http.StatusBadRequest, id, codeRequest, "the request names no session: begin with initialize")
		return nil
	}
	s := v.tenant.find(name)
	if s == nil || s.credential != v.credential {
		e := &guardrail.Event{Kind: "refusal", Agent: v.agent, Code: string(capability.MalformedRequest), Text: "there is no such session of the agent: it may have ended, or be of before the gateway was started", Policy: v.policy.Hash}
		v.server.record(e)
		v.write(id, reply{failure: &failure{code: codeRequest, text: "there is no such session"}, status: http.StatusNotFound})
		return nil
	}
	return s
}

func (v *visit) initialize(m message) {
	c := v.begin(m)
	c.ctx = v.r.Context()
	if inMeta, ok := m.meta.Get(metaVersion); ok && !isLegacyValue(inMeta) {
		v.write(m.id, c.unknownMethod())
		return
	}
	r := c.answer()
	if c.session != nil {
		v.w.Header().Set(headerSession, c.session.id)
	}
	v.write(m.id, r)
}

func isLegacyValue(v wire.Value) bool {
	text, ok := v.Str()
	return ok && isLegacy(text)
}

// request answers a request of a session.
func (v *visit) request(m message, s *session) {
	c := v.begin(m)
	c.session, c.tenant, c.client = s, s.tenant, s.capabilities()
	ctx := leash.New(v.r.Context())
	defer ctx.Cut(nil)
	c.ctx, c.life = ctx, ctx
	if err := s.begin(m.id, func() { ctx.Cut(nil) }); err != nil {
		status := http.StatusBadRequest
		if errors.Is(err, errOver) {
			status = http.StatusNotFound // by which a client knows to begin another
		}
		v.refuse(status, m.id, codeRequest, err.Error())
		return
	}
	defer s.finish(m.id)
	x := v.exchange()
	c.out = x
	x.answer(c)
}

// heard takes a notification of the client.
func (s *session) heard(m message) {
	if m.method != "notifications/cancelled" {
		return
	}
	if id, ok := m.params.Get("requestId"); ok && validID(id) {
		s.cancel(id.Raw())
	}
}

// get opens the stream of a session, for what belongs to no request.
func (v *visit) get() {
	if !accepts(v.r.Header, "text/event-stream") {
		v.refuse(http.StatusNotAcceptable, nil, codeRequest, "what is to be had here is an event stream")
		return
	}
	if revision, _ := one(v.r.Header, headerRevision); revision != "" && !isLegacy(revision) || v.r.Header[headerSession] == nil {
		v.w.Header().Set("Allow", "POST")
		http.Error(v.w, "there is no stream without a session", http.StatusMethodNotAllowed)
		return
	}
	s := v.session(nil)
	if s == nil {
		return
	}
	s.mu.Lock()
	taken := s.taken
	s.taken = true
	s.mu.Unlock()
	if taken {
		v.refuse(http.StatusConflict, nil, codeRequest, "the session has a stream already")
		return
	}
	defer func() {
		s.mu.Lock()
		s.taken, s.seen = false, v.server.now()
		s.mu.Unlock()
	}()
	v.stream(s)
}

// stream sends what is queued for a session, until either side ends it.
func (v *visit) stream(s *session) {
	beginStream(v.w)
	if http.NewResponseController(v.w).Flush() != nil {
		return
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		message, wake := s.take()
		if !v.holds() { // the one before may have been taken slowly
			return
		}
		if wake == nil {
			if message.goes() && writeEvent(v.w, message.text) != nil {
				s.putBack(message)
				return
			}
			continue
		}
		select {
		case <-wake:
		case <-s.ended:
			return
		case <-v.server.ctx.Done():
			return
		case <-v.r.Context().Done():
			return
		case <-beat.C:
			if writeSign(v.w) != nil {
				return
			}
		}
	}
}

// holds reports whether the token that was shown is good still.
func (v *visit) holds() bool { return v.server.holds(v.credential, v.agent) }

// delete ends a session.
func (v *visit) delete() {
	if v.r.Header[headerSession] == nil {
		v.w.Header().Set("Allow", "POST")
		http.Error(v.w, "there is no session to end", http.StatusMethodNotAllowed)
		return
	}
	s := v.session(nil)
	if s == nil {
		return
	}
	v.tenant.drop(s)
	v.w.WriteHeader(http.StatusNoContent)
}
