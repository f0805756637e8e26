package upstream

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"

	"capgate/wire"
)

// maxMessage is how large one message of a server may be, unless Limits say
// otherwise.
const maxMessage = 64 << 20

// kind is what a message is.
type kind uint8

const (
	answered kind = iota + 1 // the answer to a request of ours
	asked                    // a request of the server
	noted                    // a notification
)

// message is one JSON-RPC message of a server. Its values belong to the document
// that it was read from.
type message struct {
	kind   kind
	id     wire.Value
	method string
	params wire.Value
	answer Answer
}

var (
	errNotMessage = errors.New("the message is not JSON-RPC 2.0")
	errBothAnswer = errors.New("the message has both a result and an error")
)

// read takes a message apart. No member stands in it twice, and [misread] sees to those
// that differ in case.
func read(doc *wire.Doc) (message, error) {
	var m message
	root := doc.Root()
	if v, ok := root.Get("jsonrpc"); !ok || !v.Equal("2.0") {
		return m, errNotMessage
	}
	m.id, _ = root.Get("id")
	m.params, _ = root.Get("params")
	method, hasMethod := root.Get("method")
	result, hasResult := root.Get("result")
	failure, hasError := root.Get("error")
	switch {
	case hasResult && hasError:
		return m, errBothAnswer
	case hasMethod && (hasResult || hasError):
		return m, errNotMessage
	case hasMethod:
		return m.call(method)
	}
	return m.reply(result, failure)
}

// reply reads what makes a message an answer. One of the two values is none.
func (m message) reply(result, failure wire.Value) (message, error) {
	switch {
	case m.id.Kind() == wire.Invalid:
		return m, errNotMessage
	case result.Kind() == wire.Object:
		if disguised(result, "resultType", "inputRequests", "requestState", "_meta") {
			return m, errNotMessage
		}
		m.answer.Result = disowned(result, "_meta")
		is, _ := result.Get("isError")
		m.answer.Failed = isSet(is)
		if v, ok := result.Get("resultType"); ok {
			if m.answer.Type, _ = v.Str(); m.answer.Type == "" {
				return m, errNotMessage
			}
		}
	case isError(failure) && !disguised(failure, "code", "message", "data"):
		m.answer.Error = disowned(failure, "data")
	default:
		return m, errNotMessage
	}
	m.kind = answered
	return m, nil
}

// isSet reports whether a flag is set, as clients read it that are not strict about its type.
func isSet(v wire.Value) bool {
	switch v.Kind() {
	case wire.Invalid, wire.Null:
		return false
	case wire.Bool:
		is, _ := v.Bool()
		return is
	case wire.Number:
		digits, _, _ := strings.Cut(strings.ToLower(string(v.Raw())), "e")
		return strings.Trim(digits, "-0.") != ""
	case wire.String:
		text, _ := v.Str()
		return text != "" && !strings.EqualFold(text, "false")
	}
	return true
}

// disguised reports whether an answer has what makes it another one for a reader that
// ignores case.
func disguised(answer wire.Value, names ...string) bool {
	for key := range answer.Members() {
		text, _ := key.Str()
		if slices.ContainsFunc(names, func(name string) bool { return text != name && strings.EqualFold(text, name) }) {
			return true
		}
	}
	return false
}

// call reads what makes a message a request or a notification.
func (m message) call(method wire.Value) (message, error) {
	var ok bool
	if m.method, ok = method.Str(); !ok {
		return m, errNotMessage
	}
	if k := m.params.Kind(); k != wire.Invalid && k != wire.Object {
		return m, errNotMessage
	}
	switch m.id.Kind() {
	case wire.Invalid:
		m.kind = noted
	case wire.String, wire.Number:
		m.kind = asked
	default:
		return m, errNotMessage
	}
	return m, nil
}

func isError(v wire.Value) bool {
	code, _ := v.Get("code")
	text, _ := v.Get("message")
	_, whole := code.Int64()
	return whole && text.Kind() == wire.String
}

const (
	requestHead = `{"jsonrpc":"2.0","id":`
	methodHead  = `,"method":"`
	noteHead    = `{"jsonrpc":"2.0","method":"`
	paramsHead  = `","params":`
)

// HeadRoom is how much of a request may stand before its params.
const HeadRoom = 128

// message writes a request: around its params, if they stand where there is room
// for it, and to dst otherwise. It reports which.
func (r *Request) message(dst []byte, id int64) (message []byte, lent bool) {
	end := HeadRoom + len(r.Params)
	if len(r.Params) == 0 || len(r.Around) < end || cap(r.Around) == end || &r.Around[HeadRoom] != &r.Params[0] {
		return appendRequest(dst, id, r.Method, r.Params), false
	}
	var room [HeadRoom]byte
	head := strconv.AppendInt(append(room[:0], requestHead...), id, 10)
	head = append(append(head, methodHead...), plainMethod(r.Method)...)
	if head = append(head, paramsHead...); len(head) > HeadRoom {
		return appendRequest(dst, id, r.Method, r.Params), false
	}
	start := HeadRoom - len(head)
	copy(r.Around[start:], head)
	return append(r.Around[start:end], '}'), true
}

// keep copies part of an answer into the memory that was given for it, or into
// memory of its own.
func keep(part []byte, into *[]byte) []byte {
	if part == nil || into == nil {
		return bytes.Clone(part)
	}
	*into = append((*into)[:0], part...)
	return *into
}

// appendRequest writes a request. The method is one of ours, or one that was
// read from a message: it is written as JSON text either way.
func appendRequest(dst []byte, id int64, method string, params []byte) []byte {
	dst = slices.Grow(dst, len(requestHead)+len(methodHead)+len(paramsHead)+len(method)+len(params)+24)
	dst = append(dst, requestHead...)
	dst = strconv.AppendInt(dst, id, 10)
	dst = append(dst, methodHead...)
	return appendParams(dst, method, params)
}

// appendNote writes a notification.
func appendNote(method string, params []byte) []byte {
	return appendParams([]byte(noteHead), method, params)
}

func appendParams(dst []byte, method string, params []byte) []byte {
	dst = append(dst, plainMethod(method)...)
	if params == nil {
		return append(dst, `"}`...)
	}
	dst = append(dst, paramsHead...)
	dst = append(dst, params...)
	return append(dst, '}')
}

// plainMethod returns the method when it can stand between quotes as it is, which
// all methods of the protocol can.
func plainMethod(method string) string {
	for i := range len(method) {
		if c := method[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return "invalid"
		}
	}
	return method
}

// appendReply writes the answer to a request of the server, whose id is repeated
// byte for byte.
func appendReply(dst, id, result []byte, refusal *Refusal) []byte {
	dst = append(append(dst, requestHead...), id...)
	if refusal == nil {
		return append(append(append(dst, `,"result":`...), result...), '}')
	}
	dst = append(dst, `,"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(refusal.Code), 10)
	dst = append(dst, `,"message":`...)
	dst = wire.AppendString(dst, refusal.Message)
	return append(dst, "}}"...)
}

// oneLine makes a message fit a transport that ends one at a line break. What
// passed the strict reader holds line breaks between tokens only, where a space
// means the same.
func oneLine(message []byte) []byte {
	for _, end := range []byte("\n\r") {
		rest := message
		for i := bytes.IndexByte(rest, end); i >= 0; i = bytes.IndexByte(rest, end) {
			rest[i] = ' '
			rest = rest[i+1:]
		}
	}
	return message
}
