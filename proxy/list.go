package proxy

import (
	"context"
	"encoding/binary"
	"errors"
	"strconv"
	"time"

	"capgate/wire"
)

// freshness is how long a client may keep a list without asking again. It is told
// when a list changes; this is for the one that does not listen.
const freshness = 5 * time.Second

func (c *call) listTools() reply     { return c.list(toolList) }
func (c *call) listPrompts() reply   { return c.list(promptList) }
func (c *call) listResources() reply { return c.list(resourceList) }
func (c *call) listTemplates() reply { return c.list(templateList) }

// list answers with one page of a list: what the agent could use, and no more.
func (c *call) list(k listKind) reply {
	ctx, cancel := context.WithTimeout(c.ctx, listTime)
	defer cancel()
	cat, err := c.catalogue(ctx)
	for most := 0; err == nil && most < len(cat.sources) && cat.grows(ctx, k); most++ {
		cat, err = c.catalogue(ctx)
	}
	switch {
	case errors.Is(err, errRevoked):
		return c.deny(revoked())
	case err != nil:
		return fail(codeInternal, "the list could not be made: "+err.Error())
	}
	n, ok := c.cursor(k)
	if !ok || n >= len(cat.pages[k]) {
		return c.malformed("the cursor was not given to this agent, or is too old")
	}
	c.tenant.seen(cat)
	_, member, _ := k.words()
	p := cat.pages[k][n]
	var tail []byte
	if !p.last {
		next, err := c.server.seal.close(c.pageBond(k), binary.BigEndian.AppendUint32(nil, uint32(n+1)))
		if err != nil {
			return fail(codeInternal, err.Error())
		}
		tail = append(append(append(tail, `,"nextCursor":"`...), next...), '"')
	}
	if k == skillList {
		return reply{head: []byte(`{"` + member + `":`), result: p.entries, tail: append(c.fresh(tail), '}')}
	}
	return reply{head: []byte(`{"` + member + `":`), result: p.entries, tail: append(c.kept(tail), '}')}
}

// grows waits for another server that gives a list, where there is nothing to show yet: who
// asks once would see nothing. It reports whether there was one. Tools are what most servers
// are for; of other lists, one that is empty may be all there is.
func (c *catalogue) grows(ctx context.Context, k listKind) bool {
	var late []*line
	for i := range c.sources {
		switch s := &c.sources[i]; {
		case !s.gave(k):
			late = append(late, s.line)
		case k != toolList:
			return false
		}
	}
	if string(c.pages[k][0].entries) != "[]" {
		return false
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	gave := make(chan bool, len(late))
	for _, l := range late {
		go func() { gave <- l.gives(ctx, k) }()
	}
	for range late {
		if <-gave {
			return true
		}
	}
	return false
}

// gave reports whether what there is of a list could be shown, which is what skills leave, but
// for tools.
func (s *source) gave(k listKind) bool {
	return s.editions[k]&^unheard != 0 && (k == toolList || s.editions[skillList].isKnown())
}

// gives waits until a server gives a list, unless it could not a moment ago, or was waited for
// in vain before.
func (l *line) gives(ctx context.Context, k listKind) bool {
	if l.hopeless.Load() {
		return false
	}
	begun := time.Now()
	for _, one := range [...]listKind{k, skillList} {
		g := &l.lists[one]
		g.mu.Lock()
		failed := g.hasFailed(failedAge)
		g.mu.Unlock()
		if failed {
			return false
		}
		if _, is, err := l.list(ctx, one, listTime); err != nil || !is.isKnown() {
			if time.Since(begun) > patience && !errors.Is(ctx.Err(), context.Canceled) {
				l.hopeless.Store(true)
			}
			return false
		}
		if k == toolList {
			break
		}
	}
	return true
}

// kept says how long what is answered may be kept, and that it is for this agent
// only.
func (c *call) kept(dst []byte) []byte {
	if !c.modern {
		return dst
	}
	return c.fresh(dst)
}

// fresh says the same in whatever era, as the extension for skills does.
func (c *call) fresh(dst []byte) []byte {
	dst = strconv.AppendInt(append(dst, `,"ttlMs":`...), freshness.Milliseconds(), 10)
	dst = append(dst, `,"cacheScope":"private","resultType":"complete","_meta":{"`+metaServer+`":`...)
	return append(append(dst, c.server.self()...), '}')
}

// pageBond is what a cursor is bound to.
func (c *call) pageBond(k listKind) bond {
	_, member, _ := k.words()
	return bond{purpose: "cursor", agent: c.agent, about: member}
}

// cursor reads which page is asked for.
func (c *call) cursor(k listKind) (page int, ok bool) {
	v, has := c.params.Get("cursor")
	if !has || v.Kind() == wire.Null {
		return 0, true
	}
	text, _ := v.Str()
	plain, err := c.server.seal.open(c.pageBond(k), text)
	if err != nil || len(plain) != 4 {
		return 0, false
	}
	return int(binary.BigEndian.Uint32(plain)), true
}

// seen notes what was shown, so that a change can be told from it. Who is shown something
// else than was announced last is told of the next look, whatever that finds.
func (t *tenant) seen(cat *catalogue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shown == (fingerprint{}) || t.missed || !t.tells() {
		t.shown, t.missed = cat.shown, false
		return
	}
	for i := range cat.shown {
		if cat.shown[i] != t.shown[i] {
			t.strayed[i] = true
			t.lookAgain()
		}
	}
}

// tells reports whether anybody waits to be told of changes by this tenant, and not by one
// of a session's own. The lock is held.
func (t *tenant) tells() bool {
	if len(t.streams) > 0 || t.only != nil {
		return true
	}
	for _, s := range t.sessions {
		if s.tenant == t {
			return true
		}
	}
	return false
}

// alone reports whether nobody waits to be told of changes. The lock is held.
func (t *tenant) alone() bool { return len(t.sessions) == 0 && len(t.streams) == 0 && t.only == nil }

const (
	pageEntries = 10000   // of one page
	pageBytes   = 8 << 20 // of one page
)

// pager cuts a list into pages.
type pager struct {
	done    []page
	current []byte
	entries int
}

func (w *pager) add(entry []byte) {
	if w.entries > 0 && (w.entries == pageEntries || len(w.current)+len(entry) > pageBytes) {
		w.cut()
	}
	if w.entries == 0 {
		w.current = append(w.current, '[')
	} else {
		w.current = append(w.current, ',')
	}
	w.current = append(w.current, entry...)
	w.entries++
}

func (w *pager) cut() {
	w.done = append(w.done, page{entries: append(w.current, ']')})
	w.current, w.entries = nil, 0
}

func (w *pager) pages() []page {
	if w.entries > 0 {
		w.cut()
	}
	if len(w.done) == 0 {
		w.done = []page{{entries: []byte("[]")}}
	}
	w.done[len(w.done)-1].last = true
	return w.done
}
