package provider

import (
	"strings"

	"capgate/wire"
)

// piece is what a tool of Anthropic's is told to do, as far as a stream has said it: the
// call begins without, and the rest comes in pieces of JSON.
type piece struct {
	tool  string // "" while there is none
	index string // of the block
	input []byte
}

// gather puts together what a tool is told to do, and judges it once it is whole.
func (w *Watch) gather(event wire.Value) {
	at, _ := event.Get("index")
	index := string(at.Raw())
	if kind := textOf(event, "type"); kind == "content_block_start" {
		block, _ := event.Get("content_block")
		if textOf(block, "type") == "server_tool_use" {
			w.gathered()
			w.piece = piece{tool: textOf(block, "name"), index: index}
		}
		return
	} else if w.piece.tool == "" || index != w.piece.index {
		return
	} else if kind == "content_block_stop" {
		w.gathered()
		return
	}
	delta, _ := event.Get("delta")
	w.piece.input = append(w.piece.input, textOf(delta, "partial_json")...)
	if len(w.piece.input) > brief {
		w.unread, w.piece = w.unread+1, piece{}
	}
}

// gathered judges what there is of a call.
func (w *Watch) gathered() {
	p := w.piece
	if w.piece = (piece{}); len(p.input) == 0 {
		return
	}
	var doc wire.Doc
	if doc.ParseLoosely(p.input, wire.Limits{}) != nil {
		w.unread++
		return
	}
	w.visit(doc.Root(), w.enter(p.tool, ""))
}

// written judges what a tool was told, or has found, where that is a text of JSON. One that
// is no JSON may be the first piece of it.
func (w *Watch) written(v wire.Value, tool string) {
	text, _ := v.Str()
	text = strings.TrimSpace(text)
	switch {
	case tool == "" || w.within || !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "["):
		return
	case len(text) > brief:
		w.unread++
		return
	}
	var doc wire.Doc
	if doc.ParseLoosely([]byte(text), wire.Limits{}) != nil {
		return
	}
	w.within = true
	w.visit(doc.Root(), tool)
	w.within = false
}
