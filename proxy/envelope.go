package proxy

import (
	"fmt"

	"capgate/wire"
)

const (
	maxID     = 256 // bytes of a request's id
	maxMethod = 128 // bytes of a method's name
)

// kind is what a message of an agent is.
type kind uint8

const (
	request kind = iota + 1
	notification
	response
)

// message is one JSON-RPC message of an agent. Its values belong to the document
// it was read from.
type message struct {
	kind   kind
	id     []byte // as it was written; nil in a notification
	method string
	params wire.Value
	meta   wire.Value // params._meta

	result, failure wire.Value // of a response
}

// malformed says why a message cannot be taken for what it claims to be.
type malformed struct {
	code int    // of JSON-RPC
	id   []byte // of the message, when that much could be read
	text string
}

func (m *malformed) Error() string { return m.text }

// Codes of JSON-RPC and of the protocol.
const (
	codeParse        = -32700
	codeRequest      = -32600
	codeMethod       = -32601
	codeParams       = -32602
	codeInternal     = -32603
	codeHeader       = -32020
	codeClientCannot = -32021
	codeVersion      = -32022
	codeDenied       = 403 // outside what the protocol reserves: a denial where no tool result can carry it
)

// readMessage takes a message apart. Members that JSON-RPC does not know are
// refused: a receiver that ignores case would take METHOD for method.
func readMessage(doc *wire.Doc) (message, error) {
	var m message
	root := doc.Root()
	if root.Kind() != wire.Object {
		return m, &malformed{code: codeRequest, text: "a message is one JSON object; there are no batches"}
	}
	var version, method, id wire.Value
	for key, value := range root.Members() {
		switch {
		case key.Equal("jsonrpc"):
			version = value
		case key.Equal("id"):
			id = value
		case key.Equal("method"):
			method = value
		case key.Equal("params"):
			m.params = value
		case key.Equal("result"):
			m.result = value
		case key.Equal("error"):
			m.failure = value
		default:
			name, _ := key.Str()
			return m, &malformed{code: codeRequest, id: requestID(root.Raw()), text: fmt.Sprintf("a message has no member %.40q", name)}
		}
	}
	if id.Kind() != wire.Invalid {
		if !validID(id) {
			return m, &malformed{code: codeRequest, text: "the id is neither a text nor a whole number"}
		}
		m.id = id.Raw()
	}
	if !version.Equal("2.0") {
		return m, &malformed{code: codeRequest, id: m.id, text: `the message does not say "jsonrpc":"2.0"`}
	}
	return m.classify(method)
}

func validID(v wire.Value) bool {
	if v.Kind() == wire.String {
		return len(v.Raw()) <= maxID
	}
	if v.Kind() != wire.Number {
		return false
	}
	for _, c := range v.Raw() {
		if c == '.' || c == 'e' || c == 'E' {
			return false
		}
	}
	return true
}

// classify tells requests, notifications and responses apart.
func (m message) classify(method wire.Value) (message, error) {
	if method.Kind() == wire.Invalid {
		return m.answer()
	}
	var ok bool
	switch m.method, ok = method.Str(); {
	case !ok || m.method == "" || len(m.method) > maxMethod:
		return m.refuse("the method is not a name")
	case m.answers():
		return m.refuse("the message is both a request and an answer")
	case !objectOrNone(m.params):
		return m, &malformed{code: codeParams, id: m.id, text: "the params are not an object"}
	}
	if m.meta, _ = m.params.Get("_meta"); !objectOrNone(m.meta) {
		return m, &malformed{code: codeParams, id: m.id, text: "_meta is not an object"}
	}
	m.kind = notification
	if m.id != nil {
		m.kind = request
	}
	return m, nil
}

// answer is classify for a message without a method.
func (m message) answer() (message, error) {
	switch {
	case !m.answers():
		return m.refuse("the message has no method")
	case m.id == nil || m.params.Kind() != wire.Invalid:
		return m.refuse("the message is neither a request nor the answer to one")
	case m.result.Kind() != wire.Invalid && m.failure.Kind() != wire.Invalid:
		return m.refuse("the message has both a result and an error")
	}
	m.kind = response
	return m, nil
}

// answers reports whether the message has what answers have.
func (m message) answers() bool {
	return m.result.Kind() != wire.Invalid || m.failure.Kind() != wire.Invalid
}

func (m message) refuse(text string) (message, error) {
	return m, &malformed{code: codeRequest, id: m.id, text: text}
}

func objectOrNone(v wire.Value) bool { return v.Kind() == wire.Object || v.Kind() == wire.Invalid }
