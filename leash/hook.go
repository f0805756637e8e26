package leash

import "context"

// Hook is what is to run when a context ends. It hangs once, is not copied, and stands
// in the memory of whoever hangs it.
type Hook struct {
	run  func()      // nil: child follows
	stop func() bool // where the context is no leash

	child *Leash

	of         *Leash // where it is one
	hangs      bool   // on it; its mutex guards this and the following
	prev, next *Hook
}

// Hang has f run when a context ends, where that is done, or at once if it has ended.
func (h *Hook) Hang(on context.Context, f func()) {
	l, ok := on.(*Leash)
	if !ok {
		h.stop = context.AfterFunc(on, f)
		return
	}
	h.run = f
	h.hang(l)
}

func (h *Hook) hang(on *Leash) {
	on.mu.Lock()
	if on.err != nil {
		on.mu.Unlock()
		h.ended()
		return
	}
	h.of, h.hangs, h.next = on, true, on.hooks
	if h.next != nil {
		h.next.prev = h
	}
	on.hooks = h
	on.mu.Unlock()
}

// ended runs what is to run.
func (h *Hook) ended() {
	if h.run == nil {
		h.child.follow()
		return
	}
	h.run()
}

// Off takes the hook off, and reports whether it hung there: its function has not run
// then, and will not.
func (h *Hook) Off() bool {
	if h.stop != nil {
		return h.stop()
	}
	if h.of == nil {
		return false
	}
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	if !h.hangs {
		return false
	}
	h.hangs = false
	if h.next != nil {
		h.next.prev = h.prev
	}
	if h.prev != nil {
		h.prev.next = h.next
	} else {
		h.of.hooks = h.next
	}
	return true
}
