package proxy

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"capgate/agents"
	"capgate/capability"
	"capgate/guardrail"
)

const (
	writeTime = 30 * time.Second // for an agent to take what is sent to it
	heartbeat = 25 * time.Second // between signs of life on an idle stream
	slowest   = 64 << 10         // bytes a second that an agent must take of a large answer
	wholeBody = 256 << 10        // a larger answer is not put together before it is written
)

// ServeHTTP answers one request of an agent. It must come over HTTP/1: another version
// may go on sending what a handler wrote when that has returned, and its memory is
// another agent's by then.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor != 1 {
		http.Error(w, "only HTTP/1 is spoken here", http.StatusHTTPVersionNotSupported)
		return
	}
	rc := http.NewResponseController(w)
	_ = rc.SetWriteDeadline(time.Time{}) // of the request before, on the same connection
	if r.ContentLength != 0 {            // net/http waits for the rest of a body before it answers, also one that nobody reads
		if err := rc.SetReadDeadline(time.Now().Add(bodyTime)); err != nil && !errors.Is(err, http.ErrNotSupported) { // no network
			http.Error(w, "the connection cannot be used", http.StatusInternalServerError)
			return
		}
	}
	switch r.URL.Path {
	case "/mcp", "/mcp/":
	case "/healthz":
		s.health(w)
		return
	default:
		if name, path, ok := destination(r); ok {
			s.consult(w, r, name, path)
			return
		}
		give(w, 0)
		http.Error(w, "there is nothing here; MCP is at /mcp", http.StatusNotFound)
		return
	}
	if why := s.foreign(r); why != "" {
		s.turnAway(w, r, http.StatusForbidden, capability.Forbidden, why)
		return
	}
	if s.beforePage(w, r) {
		return
	}
	v := visit{server: s, w: w, r: r, policy: s.policy.Load()}
	if !v.recognise() {
		return
	}
	switch r.Method {
	case http.MethodPost:
		v.post()
	case http.MethodGet:
		v.get()
	case http.MethodDelete:
		v.delete()
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		http.Error(w, "the method is not one of MCP", http.StatusMethodNotAllowed)
	}
}

func (s *Server) health(w http.ResponseWriter) {
	give(w, 0)
	if s.policy.Load() == nil || s.ctx.Err() != nil {
		http.Error(w, "not serving", http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "ok\n") // who asked and did not wait will ask again
}

// foreign says why a request does not come from where requests may come from, ""
// if it does: a web page that had its name resolve to this machine shows itself
// by the name in Host, and every other page by its Origin.
func (s *Server) foreign(r *http.Request) string {
	if !isLocal(r.Host) && !slices.Contains(s.hosts, hostOnly(r.Host)) {
		return "the Host header names another machine"
	}
	origins := r.Header["Origin"]
	if len(origins) == 0 {
		return ""
	}
	if len(origins) == 1 && (slices.Contains(s.origins, origins[0]) || isLocalOrigin(origins[0])) {
		return ""
	}
	return "the request comes from a web page of another origin"
}

// beforePage tells the browser of a web page that the operator has named that the page may read
// what it is answered. It reports whether that was all the browser asked, as it does before a
// request: such a question shows no token.
func (s *Server) beforePage(w http.ResponseWriter, r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if !slices.Contains(s.origins, origin) {
		return false
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Vary", "Origin")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		h.Set("Access-Control-Expose-Headers", headerSession+", "+headerRevision+", WWW-Authenticate")
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	h.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
	give(w, 0)
	w.WriteHeader(http.StatusNoContent)
	return true
}

func hostOnly(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return strings.ToLower(host)
	}
	return strings.ToLower(strings.Trim(hostport, "[]"))
}

func isLocal(hostport string) bool {
	switch hostOnly(hostport) {
	case "localhost", "127.0.0.1", "::1":
		return true
	}
	return false
}

func isLocalOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.User == nil && isLocal(u.Host)
}

// turnAway refuses a request before anything of it is read.
func (s *Server) turnAway(w http.ResponseWriter, r *http.Request, status int, code capability.Code, why string) {
	s.turnAs(w, r, status, denial{code: code, why: why}, why)
}

// turnAs does so, and tells the operator something else than who has sent it.
func (s *Server) turnAs(w http.ResponseWriter, r *http.Request, status int, d denial, told string) {
	d.event = s.record(&guardrail.Event{Kind: "refusal", Code: string(d.code), Text: told, Method: r.Method})
	if d.event != "" { // as many lines as events: anybody can cause them
		s.log.Warn("a request is turned away", "status", status, "from", r.RemoteAddr, "why", told, "event", d.event)
	}
	f := s.word(d).failure()
	answer := reply{failure: f}
	w.Header().Set("Content-Type", "application/json")
	body := answer.append(nil, nil)
	give(w, len(body))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the status has said it
}

// visit is one request of an agent over HTTP.
type visit struct {
	server     *Server
	w          http.ResponseWriter
	r          *http.Request
	policy     *Policy
	tenant     *tenant
	agent      string
	credential string
	letter     *letter
	bulk       int64 // bytes that the tenant is loaded with
}

// recognise finds out whose token the request shows. Nothing else says who an
// agent is: no header, no name that the client gives itself.
func (v *visit) recognise() bool {
	if v.policy == nil {
		give(v.w, 0)
		http.Error(v.w, "the gateway is starting", http.StatusServiceUnavailable)
		return false
	}
	shown := v.r.Header["Authorization"]
	why := "the request shows no token of an agent: send Authorization: Bearer with one that capgate agents token issue has printed"
	told := ""
	if len(shown) == 1 {
		if scheme, token, ok := strings.Cut(shown[0], " "); ok && strings.EqualFold(scheme, "Bearer") {
			token = strings.TrimSpace(token)
			if c, ok := v.issued(token); ok {
				return v.admit(c.Agent, c.ID)
			}
			if old := v.outlived(token); old != "" {
				why = old
			} else if agents.IsToken(token) { // somebody may go on with one that was revoked
				why, told = notGood, "; it shows "+agents.WithoutTokens(token)
			}
		}
	}
	v.w.Header().Set("WWW-Authenticate", `Bearer realm="capgate"`)
	v.server.turnAs(v.w, v.r, http.StatusUnauthorized, denial{code: capability.Unauthenticated, why: why}, why+told)
	return false
}

// notGood is said of what has the form of a token and is none here: the same whether it ever was one.
const notGood = "the token that is shown is not good here, or no longer: ask the operator for a new one, which capgate agents token issue or rotate prints"

// outlived says of a token that it has expired, and "" of one that is none or that is not
// known: whose secret is another is told no more than whose id is.
func (v *visit) outlived(token string) string {
	c, ok := v.policy.Credentials.Outlived(token, v.server.now())
	if !ok {
		return ""
	}
	name := strings.TrimPrefix(c.Agent, "agents/")
	return fmt.Sprintf("the token %s expired at %s: capgate agents token issue %s prints a new one, as does token rotate, which ends all others",
		c.ID, c.Expires.Format(time.RFC3339), name)
}

// issued finds the credential that a token is of. One that is not known may have been
// issued a moment ago.
func (v *visit) issued(token string) (c agents.Credential, ok bool) {
	if c, ok = v.policy.Credentials.Recognise(token, v.server.now()); ok || !agents.IsToken(token) {
		return c, ok
	}
	v.policy = v.server.latest()
	return v.policy.Credentials.Recognise(token, v.server.now())
}

// renewTime is the least between two times that tokens are looked for which are not known:
// anybody can show one.
const renewTime = 5 * time.Millisecond

// latest is the policy with the tokens that have been issued by now. Looking once is enough
// for all who wait for it.
func (s *Server) latest() *Policy {
	asked := time.Now()
	s.renewal.Lock()
	defer s.renewal.Unlock()
	if s.renew != nil && s.renewed.Before(asked) {
		<-time.After(time.Until(s.renewed.Add(renewTime)))
		s.renewed = time.Now()
		s.renew()
	}
	return s.policy.Load()
}

func (v *visit) admit(agent, credential string) bool {
	t, err := v.server.tenant(agent)
	if err != nil {
		http.Error(v.w, err.Error(), http.StatusServiceUnavailable)
		return false
	}
	v.tenant, v.agent, v.credential = t, agent, credential
	return true
}

// post answers a POST: one message.
func (v *visit) post() {
	if !isJSON(v.r.Header["Content-Type"]) {
		v.refuse(http.StatusUnsupportedMediaType, nil, codeRequest, "the body must be application/json")
		return
	}
	if isEncoded(v.r.Header) {
		v.refuse(http.StatusUnsupportedMediaType, nil, codeRequest, "the body must not be compressed: send it without Content-Encoding")
		return
	}
	if !accepts(v.r.Header, "application/json") {
		v.refuse(http.StatusNotAcceptable, nil, codeRequest, "the answer is application/json, or an event stream: accept both")
		return
	}
	l := v.server.letter()
	defer v.server.putBack(l) // what is in it was answered and written then
	v.letter = l
	if !v.tenant.enter() { // a body that is taken in costs as much as a request
		v.refuse(http.StatusTooManyRequests, nil, codeRequest, "too many requests at once")
		return
	}
	defer v.unload()
	whole := v.read(l)
	v.tenant.leave()
	if !whole {
		return
	}
	if f := v.index(l); f != nil {
		v.refuse(f.status, requestID(l.body), f.code, f.text)
		return
	}
	m, err := readMessage(&l.doc)
	if bad, ok := errors.AsType[*malformed](err); ok {
		v.refuse(http.StatusBadRequest, bad.id, bad.code, bad.Error())
		return
	}
	if !v.still() {
		return
	}
	v.message(m)
}

// still takes the policy that is in force once the whole message is here: an agent
// that sends slowly is decided on by what holds in the end.
func (v *visit) still() bool {
	now := v.server.policy.Load()
	if now == v.policy {
		return true
	}
	if !now.holds(v.credential, v.agent, v.server.now()) {
		v.server.turnAway(v.w, v.r, http.StatusUnauthorized, capability.Unauthenticated, errRevoked.Error())
		return false
	}
	v.policy = now
	return true
}

// isJSON reports whether a body says that it is JSON in UTF-8, and nothing else.
func isJSON(kinds []string) bool {
	if len(kinds) != 1 {
		return false
	}
	if kinds[0] == "application/json" {
		return true
	}
	name, params, err := mime.ParseMediaType(kinds[0])
	return err == nil && name == "application/json" && (params["charset"] == "" || strings.EqualFold(params["charset"], "utf-8"))
}

// accepts reports whether a client takes an answer of a media type. One that says
// nothing takes any.
func accepts(h http.Header, kind string) bool {
	list := h["Accept"]
	if len(list) == 0 {
		return true
	}
	family, _, _ := strings.Cut(kind, "/")
	for _, line := range list {
		for one := range strings.SplitSeq(line, ",") {
			one, _, _ = strings.Cut(one, ";")
			switch one = strings.ToLower(strings.TrimSpace(one)); one {
			case kind, "*/*", family + "/*":
				return true
			}
		}
	}
	return false
}

// read takes in the whole body, within the limits.
func (v *visit) read(l *letter) bool {
	f := v.takeIn(l)
	if f != nil {
		v.refuse(f.status, nil, f.code, f.text)
	}
	return f == nil
}

// refuse answers a message that is not one, or too much, and records it.
func (v *visit) refuse(status int, id []byte, code int, text string) {
	why := refusalOf(status)
	e := &guardrail.Event{Kind: "refusal", Agent: v.agent, Code: string(why), Text: text, Policy: v.policy.Hash}
	d := denial{code: why, why: text, event: v.server.record(e)}
	f := v.server.word(d).failure()
	f.code = code
	v.write(id, reply{failure: f, status: status})
}

// write sends an answer that is JSON.
func (v *visit) write(id []byte, r reply) {
	h := v.w.Header()
	h["Content-Type"] = jsonType()
	status := r.status
	if status == 0 {
		status = http.StatusOK
	}
	if len(r.result) < wholeBody {
		body := r.append(v.sheet(r.size()), id)
		h["Content-Length"] = []string{strconv.Itoa(len(body))}
		give(v.w, len(body))
		v.w.WriteHeader(status)
		_, _ = v.w.Write(body) // an agent that is gone will not miss it
		return
	}
	head := r.open(make([]byte, 0, maxID+256), id)
	tail := r.close(nil)
	size := len(head) + len(r.result) + len(tail)
	h["Content-Length"] = []string{strconv.Itoa(size)}
	give(v.w, size)
	v.w.WriteHeader(status)
	for _, part := range [...][]byte{head, r.result, tail} {
		if _, err := v.w.Write(part); err != nil {
			return
		}
	}
}

// sheet is memory for an answer, until its letter is put back.
func (v *visit) sheet(size int) []byte {
	if v.letter == nil {
		return make([]byte, 0, size)
	}
	v.letter.out = slices.Grow(v.letter.out[:0], size)
	return v.letter.out
}

// give gives an agent time to take an answer. What was given to the one before on
// the same connection does not count.
func give(w http.ResponseWriter, size int) {
	limit := writeTime + time.Duration(size/slowest)*time.Second
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit)) // where there is none, there is no network
}

func jsonType() []string { return []string{"application/json"} }
