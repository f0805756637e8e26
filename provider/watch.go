package provider

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"sync"

	"capgate/capability"
	"capgate/wire"
)

// The limits of watching one response. What is beyond them passes unread, and is
// counted.
const (
	maxEvent    = 4 << 20  // bytes of one event of a stream
	maxDocument = 16 << 20 // bytes of a response that is no stream
	maxSeen     = 64       // different observations of one sort
	brief       = 64 << 10 // bytes of an event or document that no room is asked for
)

// Observation is something that a response shows and the agent's grants do not
// cover.
type Observation struct {
	Tool string          `json:"tool"`
	Host string          `json:"host,omitempty"`
	Code capability.Code `json:"code"`
	Why  string          `json:"why"`
}

// Watch reads the response of a provider as it passes, and sees what the tools
// there did. It never holds a response up: what it cannot read it counts. A Watch
// is for one goroutine.
type Watch struct {
	// Room is asked for each number of bytes that a long event or document takes more.
	// Where there is none it passes unread. Nil has room for all.
	Room func(bytes int) bool

	// Clean takes secrets out of a text before it is cut. Nil takes none.
	Clean func(text []byte) []byte

	kit    kit
	policy Policy
	reads  func() bool // what hosts are held lets a request ask for the web; most answers ask for none
	free   []string    // the tools that the agent holds without any list, so that they may read any page

	mode   mode
	line   []byte // of a stream, as far as it has come
	data   []byte // of the event, or the document
	afterR bool   // the last byte ended a line, and a line feed belongs to it
	full   bool   // the event or document is past its limit
	doc    wire.Doc
	piece  piece
	within bool // a text that is JSON itself

	whole  wire.Value // the response, in whatever says it
	seen   []Observation
	unread int
}

// mode is how a response is written. It shows in its first byte.
type mode uint8

const (
	undecided   mode = iota
	stream           // server-sent events
	document         // one JSON value
	foreignForm      // neither
)

// Watch returns a watch on one response to an agent.
func (v Vendor) Watch(p Policy) *Watch {
	w := &Watch{kit: v.kit, policy: p, reads: sync.OnceValue(func() bool { return v.reads(p) })}
	for _, tool := range []string{webSearch, webFetch} {
		if p.holds(tool).Allowed() {
			w.free = append(w.free, tool, citation)
		}
	}
	return w
}

// reads reports whether the hosts that are held are any that a request can have the vendor
// read: by a list of them, or all.
func (v Vendor) reads(p Policy) bool {
	held := domainsOf(p.hosts(get), p.Strict)
	return held.all || v.Widens() && len(held.meet(asked{}, list{}).names) > 0
}

// citation is a page that an answer rests on, whichever tool has read it.
const citation = "url_citation"

// Write takes the next bytes of the response, all of them and always.
func (w *Watch) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		switch w.mode {
		case undecided:
			if rest = bytes.TrimLeft(rest, " \t\r\n\ufeff"); len(rest) > 0 {
				w.mode = modeOf(rest[0])
			}
		case foreignForm:
			w.unread, rest = 1, nil
		case document:
			w.keep(&w.data, rest, maxDocument)
			rest = nil
		case stream:
			rest = w.lines(rest)
		}
	}
	return len(b), nil
}

// modeOf tells by the first byte how a response is written. Lines of an event stream
// begin with a colon or with data, event, id or retry.
func modeOf(first byte) mode {
	switch first {
	case '{', '[':
		return document
	case ':', 'd', 'e', 'i', 'r':
		return stream
	}
	return foreignForm
}

// keep adds bytes to a buffer that has a limit.
func (w *Watch) keep(buffer *[]byte, b []byte, most int) {
	if size := len(*buffer) + len(b); w.full || size > most || !w.fits(buffer, size, most) {
		w.full, *buffer = true, (*buffer)[:0]
		return
	}
	*buffer = append(*buffer, b...)
}

// fits makes a buffer large enough, if there is room for that.
func (w *Watch) fits(buffer *[]byte, size, most int) bool {
	if size <= max(brief, cap(*buffer)) {
		return true
	}
	full := min(max(size, 2*cap(*buffer)), most)
	if w.Room != nil && !w.Room(full-cap(*buffer)) {
		return false
	}
	*buffer = append(make([]byte, 0, full), *buffer...)
	return true
}

// lines takes what is left of a line, and returns what follows.
func (w *Watch) lines(b []byte) []byte {
	if w.afterR && b[0] == '\n' {
		w.afterR = false
		return b[1:]
	}
	w.afterR = false
	end := bytes.IndexAny(b, "\r\n")
	if end < 0 {
		w.keep(&w.line, b, maxEvent)
		return nil
	}
	w.keep(&w.line, b[:end], maxEvent)
	w.afterR = b[end] == '\r'
	w.endLine()
	return b[end+1:]
}

func (w *Watch) endLine() {
	line := w.line
	w.line = w.line[:0]
	if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
		if len(w.data) > 0 {
			w.keep(&w.data, []byte("\n"), maxEvent)
		}
		w.keep(&w.data, bytes.TrimPrefix(data, []byte(" ")), maxEvent)
	} else if len(line) == 0 {
		w.endEvent()
	}
}

func (w *Watch) endEvent() {
	switch {
	case w.full:
		w.unread++
	case len(w.data) > 0 && (w.piece.tool != "" || telling(w.data)):
		w.read()
	}
	w.data, w.full = w.data[:0], false
}

// telling reports whether an event can be about a tool at all: most are pieces of
// text, and need not be parsed. Any word may be escaped.
func telling(data []byte) bool {
	for _, word := range []string{"tool", "_call", "url", "uri", "xecut", "citation", "search", "rounding", "program", "openrouter:", "mcp_", `\u`} {
		if bytes.Contains(data, []byte(word)) {
			return true
		}
	}
	return false
}

func (w *Watch) read() {
	if bytes.Equal(bytes.TrimSpace(w.data), []byte("[DONE]")) {
		return
	}
	if w.doc.ParseLoosely(w.data, wire.Limits{}) != nil { // a page that was read may say anything
		w.unread++
		return
	}
	root := w.doc.Root()
	w.whole = root
	if part, ok := root.Get("response"); ok {
		w.whole = part
	}
	w.visit(root, "")
	if w.kit == anthropicKit && w.mode == stream {
		w.gather(root)
	}
	w.doc.Reset()
}

// Close ends the response, and returns what was seen, in order.
func (w *Watch) Close() []Observation {
	if w.mode == stream {
		w.endLine()
	}
	w.endEvent()
	w.gathered()
	return w.seen
}

// Unread returns how much passed untold: events or documents that could not be read, and
// observations beyond the most.
func (w *Watch) Unread() int { return w.unread }

// echoed is what a response says again of what was asked for, in the agent's own words.
const echoed = "text response_format tool_choice metadata reasoning instructions prompt"

// visit goes through a value. Inside of what a tool did, addresses are judged.
func (w *Watch) visit(v wire.Value, tool string) {
	switch v.Kind() {
	case wire.Array:
		for element := range v.Elems() {
			if text, ok := element.Str(); ok && tool != "" && isWeb(text) {
				w.address(tool, element)
			}
			w.visit(element, tool)
		}
	case wire.Object:
		kind := w.ran(v)
		if isListed(kind, "tool_use function_call tool_search_call") {
			return // the agent's own, decided where it is called, or only looked for
		}
		if strings.HasPrefix(kind, "mcp_") {
			w.foreign(kind, v)
		}
		tool = w.enter(kind, tool)
		for key, member := range v.Members() {
			if name, _ := key.Str(); v != w.whole || !isListed(name, echoed) {
				w.member(name, member, tool)
			}
		}
	}
}

func (w *Watch) member(name string, v wire.Value, tool string) {
	folded := fold(name)
	if tool != "" && v.Kind() == wire.String && isPlace(folded) {
		w.address(tool, v)
		return
	}
	switch folded {
	case "groundingmetadata":
		w.grounded(v)
		return
	case "functioncall", "tools": // the agent's own, and what it has asked for
		return
	case "searchresults", "citations", "images":
		tool = w.enter(w.cited(v), tool)
	case "toolcall", "toolresponse": // of Google
		tool = w.enter(callOf(cmp.Or(textOf(v, "toolType"), textOf(v, "tool_type"))), tool)
	case "urlcontextmetadata", "executablecode":
		tool = w.enter(callOf(folded), tool)
	case "websearchrequests", "webfetchrequests", "websearchcalls", "xsearchcalls", "codeinterpretercalls", "filesearchcalls", "documentsearchcalls":
		if v.Kind() == wire.Number && string(v.Raw()) != "0" { // all that is shown of a search that nothing is cited from
			w.enter(counted(folded), tool)
		}
	case "arguments", "input", "result":
		w.written(v, tool)
	case "text", "content", "delta", "thinking":
		if v.Kind() == wire.String {
			return
		}
	}
	w.visit(v, tool)
}

// grounded judges what Google says an answer rests on: pages of a search, places, or
// files. It says so with nothing inside, too, where nothing was looked for. Queries are those
// of a search for places where nothing else is shown.
func (w *Watch) grounded(v wire.Value) {
	asked, places := false, false
	for key, member := range v.Members() {
		switch name, _ := key.Str(); fold(name) {
		case "websearchqueries", "imagesearchqueries":
			asked = asked || member.Len() > 0
		case "googlemapswidgetcontexttoken":
			places = w.enter("google_maps_call", "") == ""
		case "searchentrypoint":
			w.enter(webSearch, "")
		case "groundingchunks":
			for chunk := range member.Elems() {
				places = w.chunk(chunk) || places
			}
		}
	}
	if asked && !places {
		w.enter(webSearch, "")
	}
}

// chunk judges one thing that an answer rests on. What is none of Google's other tools
// is a page. It reports whether it is a place.
func (w *Watch) chunk(v wire.Value) (place bool) {
	for key, member := range v.Members() {
		kind := citation
		switch name, _ := key.Str(); fold(name) {
		case "maps":
			kind, place = "google_maps_call", true
		case "retrievedcontext":
			kind = "file_search_call"
		}
		w.visit(member, w.enter(kind, ""))
	}
	return place
}

// enter judges that a tool was used, and returns what it is called from here on. A
// type that is no tool changes nothing.
func (w *Watch) enter(kind, tool string) string {
	verb := ""
	switch {
	case kind == "":
		return tool
	case strings.HasPrefix(kind, webSearch):
		return w.reader(webSearch)
	case strings.HasPrefix(kind, webFetch):
		return w.reader(webFetch)
	case kind == citation:
		return w.reader(citation)
	case strings.Contains(kind, codeExecution), kind == "code_interpreter_call", kind == "program":
		verb = codeExecution
	case kind == "view_x_video_call":
		verb = "x_search"
	case isListed(kind, "file_search_call image_generation_call x_search_call google_maps_call document_library_call advisor "+
		"view_image_call browser_use_call computer_use_call subagent_call files_call"):
		verb = strings.TrimSuffix(kind, "_call")
	case strings.HasPrefix(kind, "mcp_"):
		return ""
	default:
		return tool
	}
	if d := w.policy.holds(verb); !d.Allowed() {
		w.see(Observation{Tool: kind, Code: d.Code, Why: "the provider ran it, and provider." + verb + " is not held"})
	}
	return ""
}

const readTheWeb = "the provider read the web, and "

// reader judges that a tool read the web, by what a request has to hold that asks for it.
func (w *Watch) reader(tool string) string {
	waits := w.policy.waits(tool)
	if tool == citation {
		waits = w.policy.waits(webSearch) && w.policy.waits(webFetch)
	}
	switch {
	case slices.Contains(w.free, tool):
	case waits:
		w.once(Observation{Tool: tool, Code: capability.RequiresApproval, Why: readTheWeb + "nobody can approve that in the middle of a request"})
	case !w.reads():
		w.once(Observation{Tool: tool, Code: capability.CapabilityAbsent, Why: readTheWeb + "no host is held that a request could name to it"})
	}
	return tool
}

// once tells that the web was read: of what is cited only as long as no tool shows that
// has read it.
func (w *Watch) once(o Observation) {
	same := func(s Observation) bool {
		return strings.HasPrefix(s.Why, readTheWeb) && (s.Tool == citation || o.Tool == citation)
	}
	switch i := slices.IndexFunc(w.seen, same); {
	case i < 0:
		w.see(o)
	case o.Tool != citation:
		w.seen[i] = o
	}
}

// foreign judges what the provider had an MCP server do. The names of servers are
// the agent's, so that a tool counts as offered when any connector has it.
func (w *Watch) foreign(kind string, v wire.Value) {
	name := textOf(v, "name")
	offered := func(c Connector) bool { return slices.Contains(c.Tools, name) && w.policy.invokes(c, name).Allowed() }
	switch {
	case len(w.policy.Connectors) == 0:
		w.see(Observation{Tool: kind, Code: capability.ScopeViolation, Why: "the provider used an MCP server that is not listed"})
	case kind != "mcp_call" && kind != "mcp_tool_use": // a list, what came of a call, or what is yet to be allowed
	case !slices.ContainsFunc(w.policy.Connectors, offered):
		if w.Clean != nil {
			name = string(w.Clean([]byte(name)))
		}
		w.see(Observation{Tool: kind + " " + clip(name), Code: capability.ScopeViolation, Why: "the provider used a tool of an MCP server that tool.invoke does not cover"})
	}
}

// sort is what an observation is of: a page, what an MCP server did, or a tool that ran.
func (o Observation) sort() string {
	switch {
	case o.Host != "":
		return "page"
	case strings.HasPrefix(o.Tool, "mcp_"):
		return "mcp"
	}
	return "tool"
}

// see keeps what was not seen yet. Each sort has room of its own: pages there may be any number
// of, and tools of MCP servers.
func (w *Watch) see(o Observation) {
	room := maxSeen
	for _, s := range w.seen {
		if s == o {
			return
		}
		if s.sort() == o.sort() {
			room--
		}
	}
	if room <= 0 {
		w.unread++
		return
	}
	w.seen = append(w.seen, o)
}
