package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"capgate/wire"
)

// The protocol revisions to begin with.
const (
	modern = "2026-07-28" // the revision without sessions
	legacy = "2025-11-25" // the newest with them
)

// isLegacy reports whether a revision that begins with initialize is known.
func isLegacy(revision string) bool {
	switch revision {
	case "2024-11-05", "2025-03-26", "2025-06-18", legacy:
		return true
	}
	return false
}

// The limits of a handshake.
const (
	// probeTime is how long a server may be silent when it is asked for its era.
	// Legacy servers need not answer a request that they do not know.
	probeTime = 5 * time.Second

	// greetTime is how long the whole handshake may take. Some servers are
	// downloaded when they are started.
	greetTime = 60 * time.Second

	// maxGreeting is how long the answer of a handshake may be.
	maxGreeting = 1 << 20
)

// The names of what is said within _meta.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaClient       = "io.modelcontextprotocol/clientInfo"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaServer       = "io.modelcontextprotocol/serverInfo"
	metaSubscription = "io.modelcontextprotocol/subscriptionId"
)

// The codes of errors that only a modern server has.
const (
	codeHeaders      = -32020 // headers and body say different things
	codeCapabilities = -32021 // a capability is missing
	codeRevision     = -32022 // the revision is not spoken
)

// greeter is a connection as the handshake sees it.
type greeter interface {
	// Call is that of a Conn. The sink may be nil: what comes meanwhile is an
	// event. A [*Failed] that is errForeign says that what answered may be a
	// legacy server; any other ends the handshake.
	Call(ctx context.Context, r Request, s Sink) (Answer, error)
	Notify(ctx context.Context, method string, params []byte) error

	// adopt says what is spoken from here on, also before the first request. An
	// Info without a version is what a legacy connection is until the server has
	// chosen one. A request may be in flight when it is called.
	adopt(Info)
}

var (
	// errForeign is within the error of an HTTP server that answered, with a
	// status from 400 that is not 401 or 403 and below 500, as one that does not
	// know what it was asked.
	errForeign = errors.New("the answer is not one of this protocol revision")
	errSlow    = errors.New("the handshake took too long")
)

// handshake is one that takes place.
type handshake struct {
	greeter
	client Client
	server string
	scrub  scrub
}

// greet finds out what a server speaks, and begins to speak it.
func greet(ctx context.Context, g greeter, o Options, server string) (Info, error) {
	c := o.Client
	ctx, cancel := context.WithTimeoutCause(ctx, greetTime, errSlow)
	defer cancel()
	h := handshake{greeter: g, client: c.orDefault(), server: server, scrub: o.Scrub}
	switch {
	case c.Protocol == "" && c.Session:
		return h.initialize(ctx, legacy)
	case c.Protocol == "":
		h.adopt(Info{Modern: true, Version: modern})
		return h.find(ctx)
	case c.Protocol == modern:
		h.adopt(Info{Modern: true, Version: modern})
		return h.only(h.discover(ctx))
	case isLegacy(c.Protocol):
		return h.initialize(ctx, c.Protocol)
	}
	return Info{}, h.failed("is to be spoken to in a protocol revision that is not known", c.Protocol)
}

// greetLegacy greets a server that must not be asked for its era.
func greetLegacy(ctx context.Context, g greeter, o Options, server string) error {
	c := o.Client
	ctx, cancel := context.WithTimeoutCause(ctx, greetTime, errSlow)
	defer cancel()
	h := handshake{greeter: g, client: c.orDefault(), server: server, scrub: o.Scrub}
	_, err := h.initialize(ctx, cmp.Or(c.Protocol, legacy))
	return err
}

// verdict is what a server's answer to server/discover means.
type verdict struct {
	info   Info
	legacy string // the revision to initialize with instead, "" if modern
	err    error
}

// find asks for the era, and takes silence as an answer too. A server that is
// only slow to start has then got both requests: it may turn out to be modern
// when it refuses the second.
func (h *handshake) find(ctx context.Context) (Info, error) {
	probing, cancel := context.WithCancel(ctx)
	defer cancel()
	verdicts := make(chan verdict, 1)
	go func() { verdicts <- h.discover(probing) }()

	v, ok := await(ctx, verdicts)
	if ok {
		return h.follow(ctx, v)
	}
	info, err := h.initialize(ctx, legacy)
	if refused := new(refusal); !errors.As(err, &refused) {
		return info, err
	}
	if v, ok := await(ctx, verdicts); ok && v.err == nil && v.legacy == "" {
		return h.only(v)
	}
	return Info{}, err
}

// await waits for a verdict for as long as a server may be silent.
func await(ctx context.Context, verdicts <-chan verdict) (verdict, bool) {
	silence := time.NewTimer(probeTime)
	defer silence.Stop()
	select {
	case v := <-verdicts:
		return v, true
	case <-silence.C:
	case <-ctx.Done():
	}
	return verdict{}, false
}

// follow does what a verdict says.
func (h *handshake) follow(ctx context.Context, v verdict) (Info, error) {
	if v.err == nil && v.legacy != "" {
		return h.initialize(ctx, v.legacy)
	}
	return h.only(v)
}

// only takes a modern server and no other.
func (h *handshake) only(v verdict) (Info, error) {
	switch {
	case v.err != nil:
		return Info{}, v.err
	case v.legacy != "":
		return Info{}, h.failed("does not speak protocol revision "+modern, "")
	}
	h.adopt(v.info)
	return v.info, nil
}

// discover asks a server for its era. A server may refuse the revision that it
// then names itself; it is asked once more.
func (h *handshake) discover(ctx context.Context) verdict {
	v, again := h.probe(ctx)
	if again {
		v, again = h.probe(ctx)
	}
	if again {
		v.err = h.failed("names protocol revision "+modern+" and refuses it", "")
	}
	return v
}

// discovery is the question for a server's era.
func discovery(client Client) Request {
	params := append([]byte(`{"_meta":`), appendMeta(nil, client, modern)...)
	return Request{Method: "server/discover", Params: append(params, '}')}
}

func (h *handshake) probe(ctx context.Context) (v verdict, again bool) {
	answer, err := h.Call(ctx, discovery(h.client), nil)
	switch {
	case errors.Is(err, errForeign):
		return verdict{legacy: legacy}, false
	case err != nil:
		return verdict{err: err}, false
	case answer.Error != nil:
		return h.refused(answer.Error)
	}
	root, err := h.parse(answer.Result)
	if err != nil {
		return verdict{err: err}, false
	}
	versions, _ := root.Get("supportedVersions")
	if versions.Kind() != wire.Array {
		return verdict{legacy: legacy}, false // another method of the same name
	}
	return h.common(versions, root), false
}

// refused reads the error that answered server/discover.
func (h *handshake) refused(failure []byte) (v verdict, again bool) {
	root, err := h.parse(failure)
	if err != nil {
		return verdict{err: err}, false
	}
	code, _ := root.Get("code")
	switch n, _ := code.Int64(); n {
	case codeHeaders, codeCapabilities:
		return verdict{err: h.refusal("the question for its era", root)}, false
	case codeRevision:
		data, _ := root.Get("data")
		versions, _ := data.Get("supported")
		v := h.common(versions, wire.Value{})
		return v, v.err == nil && v.legacy == ""
	}
	return verdict{legacy: legacy}, false
}

// common picks the newest revision that both sides speak. The result is that of
// server/discover, if there is one.
func (h *handshake) common(versions, result wire.Value) verdict {
	newest := ""
	for v := range versions.Elems() {
		if name, _ := v.Str(); name == modern || isLegacy(name) {
			newest = max(newest, name)
		}
	}
	switch newest {
	case "":
		return verdict{err: h.failed("speaks no protocol revision that is spoken here", "")}
	case modern:
		return h.discovered(result)
	}
	return verdict{legacy: newest}
}

func (h *handshake) discovered(result wire.Value) verdict {
	if kind, ok := result.Get("resultType"); ok && !kind.Equal("complete") {
		return verdict{err: h.failed("answers the question for its era with something else", "")}
	}
	meta, _ := result.Get("_meta")
	server, ok := meta.Get(metaServer)
	if !ok {
		server, _ = result.Get("serverInfo") // where drafts of the revision had it
	}
	return verdict{info: said(Info{Modern: true, Version: modern}, result, server)}
}

// initialize begins a session of the legacy era.
func (h *handshake) initialize(ctx context.Context, revision string) (Info, error) {
	h.adopt(Info{})
	params := fmt.Appendf(nil, `{"protocolVersion":%q,"capabilities":%s,"clientInfo":%s}`,
		revision, h.client.Capabilities, h.client.Info)
	answer, err := h.Call(ctx, Request{Method: "initialize", Params: params}, nil)
	if err != nil {
		return Info{}, err
	}
	if answer.Error != nil {
		root, err := h.parse(answer.Error)
		if err != nil {
			return Info{}, err
		}
		return Info{}, h.refusal("the handshake", root)
	}
	root, err := h.parse(answer.Result)
	if err != nil {
		return Info{}, err
	}
	chosen, _ := root.Get("protocolVersion")
	version, _ := chosen.Str()
	if !isLegacy(version) || h.client.Protocol != "" && version != h.client.Protocol {
		return Info{}, h.failed("wants a protocol revision that is not spoken here", version)
	}
	server, _ := root.Get("serverInfo")
	info := said(Info{Version: version}, root, server)
	h.adopt(info)
	return info, h.Notify(ctx, "notifications/initialized", nil)
}

// said adds to an Info what a server says of itself. What has the wrong kind
// counts as not said.
func said(info Info, result, server wire.Value) Info {
	info.Capabilities = []byte("{}")
	if capabilities, _ := result.Get("capabilities"); capabilities.Kind() == wire.Object {
		info.Capabilities = slices.Clone(capabilities.Raw())
	}
	if server.Kind() == wire.Object {
		info.Server = slices.Clone(server.Raw())
	}
	return info
}

func (h *handshake) parse(data []byte) (wire.Value, error) {
	doc := new(wire.Doc)
	if err := doc.Parse(data, wire.Limits{Bytes: maxGreeting}); err != nil {
		return wire.Value{}, &Failed{Upstream: h.server, Text: "answers the handshake with what cannot be read", Err: err}
	}
	return doc.Root(), nil
}

// failed makes the error of a server that cannot be greeted. What the server
// said, if anything, is quoted, and not for agents.
func (h *handshake) failed(text, quoted string) *Failed {
	f := &Failed{Upstream: h.server, Text: text}
	if quoted != "" {
		f.Err = &refusal{h.scrub.quote(quoted)}
	}
	return f
}

// refusal is what a server said in a handshake that led nowhere.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

func (h *handshake) refusal(what string, failure wire.Value) *Failed {
	code, _ := failure.Get("code")
	message, _ := failure.Get("message")
	text, _ := message.Str()
	return &Failed{
		Upstream: h.server, Text: "refuses " + what,
		Err: &refusal{fmt.Sprintf("error %s: %s", code.Raw(), h.scrub.quote(text))},
	}
}

// maxQuote is how much of what a server said an error repeats.
const maxQuote = 200

// quote is quote for what may have secrets in it, at any length.
func (s scrub) quote(text string) string { return quote(string(s.of([]byte(text), math.MaxInt))) }

// quote makes what a server said fit into a line of ours.
func quote(text string) string {
	if len(text) > maxQuote {
		text = text[:maxQuote] + "…"
	}
	return strconv.QuoteToASCII(text)
}

// appendMeta writes the _meta object of a modern request: what it must say of
// the client, and nothing else.
func appendMeta(dst []byte, c Client, revision string) []byte {
	c = c.orDefault()
	dst = append(dst, `{"`+metaVersion+`":`...)
	dst = wire.AppendString(dst, revision)
	dst = append(append(dst, `,"`+metaClient+`":`...), c.Info...)
	dst = append(append(dst, `,"`+metaCapabilities+`":`...), c.Capabilities...)
	return append(dst, '}')
}

// orDefault fills in what a handshake must say.
func (c Client) orDefault() Client {
	if c.Info == nil {
		c.Info = []byte(`{"name":"capgate","version":"0"}`)
	}
	if c.Capabilities == nil {
		c.Capabilities = []byte("{}")
	}
	return c
}
