package proxy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"capgate/capability"
	"capgate/upstream"
	"capgate/wire"
)

const (
	listTime   = 30 * time.Second       // to fetch a list
	patience   = 3 * time.Second        // that other servers are waited for, before a list is shown without theirs
	failedTime = 200 * time.Millisecond // the same, of one whose list could not be had lately
	failedAge  = 5 * time.Second        // which is this long ago
)

// How old a list may be. Some servers tell of no changes, or have nobody to tell, such as
// one over HTTP that was started anew: their lists are fetched again as soon as somebody
// wants to see them, who waits for a while and then sees what was known.
const (
	listAge  = time.Minute
	skillAge = 5 * time.Minute // as texts are read with them
	agedTime = time.Second     // that is waited
)

// age is how old a list may be that has these items. A skill that could not be read may be one a moment later.
func (k listKind) age(items []item) time.Duration {
	if k == skillList && !slices.ContainsFunc(items, func(it item) bool { return it.skill.unread }) {
		return skillAge
	}
	return listAge
}

// listing is one list of a server, as it was fetched last.
type listing struct {
	mu     sync.Mutex
	age    time.Duration // that it may have
	wanted uint64        // counts up whenever the list has changed, as far as is known
	have   uint64        // which of them the items are
	vain   uint64        // which of them were waited for longer than a list is shown without them, and did not come
	items  []item
	weight int           // of the items
	state  uint64        // of the items: others have another
	seen   time.Time     // when the server was asked for them
	err    error         // why they could not be had, the last time
	failed time.Time     // when that was
	down   time.Time     // since when it has been so; zero where they could be had
	busy   chan struct{} // closed when the fetch that is on has ended
	since  time.Time     // when that began
	again  bool          // somebody is about to fetch it once more

	awaited bool // who waits until the server has said is to look again then

	doubted time.Time // what was asked for before that may have changed
	owed    bool      // and the server has not been asked since, or has not said
}

// item is one entry of a list, as the server wrote it.
type item struct {
	raw  []byte
	doc  *wire.Doc // over raw
	exam *exam     // what can be said of it by itself

	skill *served // in place of all that, of a skill
}

func (i item) text(key string) string {
	v, _ := i.doc.Root().Get(key)
	text, _ := v.Str()
	return text
}

// is reports whether an entry is the very one that was known.
func (i item) is(other item) bool { return i.doc == other.doc && i.skill == other.skill }

// doubt makes the next look fetch the list again, as if it were old.
func (g *listing) doubt(now time.Time) {
	g.mu.Lock()
	g.doubted, g.owed = now, true
	g.mu.Unlock()
}

// renew makes the next look fetch the list again, and wait for it.
func (g *listing) renew() {
	g.mu.Lock()
	g.wanted++
	g.mu.Unlock()
}

// wasHad reports whether the server has ever given the list.
func (g *listing) wasHad() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state != 0
}

// changes is how often the list has changed, as far as is known.
func (g *listing) changes() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.wanted
}

// covers reports whether an edition is what the server says, as of so many changes at least. If
// not, everyone looks again once it has said something.
func (g *listing) covers(e edition, changes uint64, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	covers := e&^unheard == edition(g.state) && g.have >= changes && !g.isOld(now)
	g.awaited = g.awaited || !covers
	return covers
}

// hasSince is the same, however old that is by now.
func (g *listing) hasSince(e edition, changes uint64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return e&^unheard == edition(g.state) && g.have >= changes
}

// edition is what is known of a list: a state of it, and whether that is what the server
// says now. Zero is that it is to be looked at.
type edition uint64

const unheard edition = 1 << 63 // nobody knows whether it is

func (e edition) isKnown() bool { return e != 0 && e&unheard == 0 }

// edition says what a look would find, as far as nobody has to be asked or waited for.
func (g *listing) edition(now time.Time) edition {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isSettled(now, patience) || g.busy != nil && time.Since(g.since) >= g.most(patience) {
		return g.now()
	}
	return 0
}

// now is the edition that there is. The lock is held.
func (g *listing) now() edition {
	if g.have == g.wanted {
		return edition(g.state)
	}
	return edition(g.state) | unheard
}

// most is how long a fetch is waited for by somebody who would wait that long for a list
// that was never fetched. The lock is held.
func (g *listing) most(wait time.Duration) time.Duration {
	switch {
	case g.have == g.wanted:
		return min(wait, agedTime)
	case wait <= patience && g.hasFailed(failedAge):
		return min(wait, failedTime)
	}
	return wait
}

// hasFailed reports whether the list could not be had, no longer ago than that. The lock is held.
func (g *listing) hasFailed(within time.Duration) bool {
	return g.err != nil && time.Since(g.failed) < within
}

// isLate reports whether one of the lists has kept somebody waiting in vain a moment ago.
func (l *line) isLate() (late bool) {
	for k := range l.lists {
		g := &l.lists[k]
		g.mu.Lock()
		late = late || g.busy != nil && time.Since(g.since) >= patience || g.hasFailed(failedAge)
		g.mu.Unlock()
	}
	return late
}

// isOld reports whether the list may have changed unseen. The lock is held.
func (g *listing) isOld(now time.Time) bool {
	return now.Sub(g.seen) > g.age || g.seen.Before(g.doubted)
}

var errPatience = errors.New("the server is being waited for")

// list returns a list of the server, and fetches it when it is not known, has changed or
// is old. A fetch is waited for as long as is said; after that, and while the server does
// not answer, what it said last is what there is. One that failed a moment ago is tried again
// only by who would wait for it longer than others do.
func (l *line) list(ctx context.Context, k listKind, wait time.Duration) ([]item, edition, error) {
	g := &l.lists[k]
	g.mu.Lock()
	asked := g.wanted
	g.mu.Unlock()
	for {
		g.mu.Lock()
		if g.isSettled(l.tenant.server.now(), wait) {
			items, is, err := g.items, g.now(), g.err
			g.mu.Unlock()
			return items, is, err
		}
		if g.busy == nil {
			g.busy, g.since = make(chan struct{}), time.Now()
			l.tenant.server.work.Go(func() { l.fetch(k) })
		}
		busy := g.busy
		left := time.NewTimer(g.most(wait) - time.Since(g.since))
		g.mu.Unlock()
		late := ends(ctx, busy, left.C)
		left.Stop()
		g.mu.Lock()
		items, is, state, err := g.items, g.now(), edition(g.state), g.err
		isNew := g.have >= asked
		g.mu.Unlock()
		switch {
		case late != nil && is.isKnown():
			return items, is, nil
		case late != nil:
			return items, is, late
		case err != nil:
			return items, is, err
		case state != 0 && isNew: // which may have changed since it was asked for
			return items, state, nil
		}
	}
}

// isSettled reports whether nobody is to be asked or waited for. The lock is held.
func (g *listing) isSettled(now time.Time, wait time.Duration) bool {
	if g.have == g.wanted {
		return !g.isOld(now)
	}
	return g.busy == nil && wait <= patience && g.hasFailed(againTime)
}

// ends waits until a fetch has ended, and says why it did not wait any longer.
func ends(ctx context.Context, busy <-chan struct{}, left <-chan time.Time) error {
	select {
	case <-busy:
		return nil
	case <-left:
		return errPatience
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fetch gets a list and puts it where it is looked for.
func (l *line) fetch(k listKind) {
	ctx, cancel := context.WithTimeout(l.tenant.server.ctx, listTime)
	defer cancel()
	items, wanted, now, err := l.obtain(ctx, k)
	g := &l.lists[k]
	g.mu.Lock()
	known := g.have == g.wanted // and only old
	same := g.state != 0 && err == nil && slices.EqualFunc(items, g.items, item.is)
	if err == nil && !same {
		l.outdate(k)
		g.items = append([]item{}, items...) // none is not the same as unknown
		g.weight = weigh(items)
		g.state++
	}
	switch {
	case err == nil:
		g.have, g.seen, g.age, g.err, g.owed = wanted, now, k.age(items), nil, now.Before(g.doubted)
		g.down = time.Time{}
	case known:
		g.seen, g.doubted = l.tenant.server.now().Add(againTime-g.age), time.Time{} // it is as good as it was
	default:
		g.missed(wanted, err)
	}
	busy, owed, awaited := g.busy, g.owed, g.awaited
	g.busy, g.awaited = nil, false
	g.mu.Unlock()
	close(busy)
	if err != nil && !known || owed {
		l.again(k)
	}
	l.lament(err)
	if err == nil && (!same || k == skillList && !known) || awaited { // while skills are not known, others are left out
		l.tenant.touched(none)
	}
}

// missed notes that the list could not be had, as of so many changes. The lock is held.
func (g *listing) missed(wanted uint64, err error) {
	g.err, g.failed = err, time.Now()
	g.down = cmp.Or(g.down, g.failed)
	if time.Since(g.since) > patience {
		g.vain = wanted
	}
}

// precede has the lists that a list is to follow and that were never had, as far as they are had within
// a moment: it counts only once it was asked for after what they say. Those that were had may be what
// they were, and have it asked for again where they are not.
func (l *line) precede(ctx context.Context, k listKind) {
	conn, err := l.link.Conn(ctx)
	if err != nil || !able(conn.Info(), "resources") && !extends(conn.Info(), skillsExtension) {
		return // nobody is there, or it has no skills
	}
	ctx, cancel := context.WithTimeout(ctx, agedTime)
	defer cancel()
	var having sync.WaitGroup
	for _, before := range follows[k] {
		if l.lists[before].wasHad() {
			continue
		}
		having.Go(func() { _, _, _ = l.list(ctx, before, listTime) })
	}
	having.Wait()
}

// follows is which lists have to be known first: what comes after the skills of its server may be
// of one that came with it. The resources say which there are.
var follows = [listKinds][]listKind{
	resourceList: {promptList, templateList},
	skillList:    {promptList, templateList, resourceList},
}

// outdate has the lists that follow one asked for again, where it is another than it was.
func (l *line) outdate(k listKind) {
	for after, before := range follows {
		if slices.Contains(before, k) {
			l.lists[after].renew()
		}
	}
}

// settle leaves out of the lists what was not there when the skills of the server were known last,
// while they are not: it may be of one that came with it.
func (l *line) settle(lists *[listKinds][]item, skills edition) (left []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if skills.isKnown() {
		l.settled = *lists
		return nil
	}
	for k, key := range map[listKind]string{promptList: "name", resourceList: "uri", templateList: "uriTemplate"} {
		known := map[string]bool{}
		for _, it := range l.settled[k] {
			known[string(it.raw)] = true
		}
		lists[k] = slices.DeleteFunc(slices.Clone(lists[k]), func(it item) bool {
			is := known[string(it.raw)]
			if !is {
				left = append(left, it.text(key))
			}
			return !is
		})
	}
	return left
}

// lament logs why lists cannot be had, once for all of them until one can.
func (l *line) lament(err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	l.mu.Lock()
	known := l.trouble == text
	l.trouble = text
	l.mu.Unlock()
	if !known && err != nil {
		l.tenant.server.log.Warn("a list could not be fetched", "upstream", l.up().Name, "error", err)
	}
}

// againTime is the wait before a list that could not be had is asked for again, as long as
// somebody waits to be told of it. It grows with the time that this goes on, up to mostAgain: a
// program that does not start is started for it, and says so, each time.
const (
	againTime = time.Second
	mostAgain = 30 * time.Second
)

// again asks for a list once more, later: agents that were shown less than there is
// are told when it is there.
func (l *line) again(k listKind) {
	s, g := l.tenant.server, &l.lists[k]
	g.mu.Lock()
	waiting := g.again
	g.again = true
	pause := againTime
	if !g.down.IsZero() {
		pause = min(max(time.Since(g.down)/10, againTime), mostAgain)
	}
	g.mu.Unlock()
	if waiting {
		return
	}
	s.work.Go(func() {
		wait := time.NewTimer(pause)
		defer wait.Stop()
		select {
		case <-s.ctx.Done():
		case <-wait.C:
		}
		g.mu.Lock()
		g.again = false
		g.mu.Unlock()
		if s.ctx.Err() == nil && l.isListened() && !g.edition(s.now()).isKnown() {
			_, _, _ = l.list(s.ctx, k, listTime) // what comes of it, it tells itself
		}
	})
}

// isListened reports whether anybody would be told of a change of the lists.
func (l *line) isListened() bool {
	hears := func(t *tenant) bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		return !t.alone() && !t.closed
	}
	if l.tenant.agent == "" {
		return l.inUse() && slices.ContainsFunc(l.tenant.server.everyone(), hears)
	}
	return l.inUse() && hears(l.tenant)
}

// obtain gets a list, and says how often it had changed before the server was asked for it, and when
// that was: it may take long to come up, and be started anew meanwhile.
func (l *line) obtain(ctx context.Context, k listKind) (items []item, wanted uint64, asked time.Time, err error) {
	l.precede(ctx, k)
	wanted, asked = l.lists[k].changes(), l.tenant.server.now()
	conn, err := l.link.Conn(ctx)
	if err == nil {
		items, err = l.get(ctx, conn, k)
	}
	if err == nil {
		err = l.bear(k, items)
	}
	return items, wanted, asked, err
}

func (l *line) get(ctx context.Context, conn upstream.Conn, k listKind) ([]item, error) {
	if k == skillList {
		return l.skills(ctx, conn)
	}
	method, member, ability := k.words()
	if !able(conn.Info(), ability) {
		return nil, nil
	}
	raw, err := upstream.List(ctx, conn, upstream.Listing{Method: method, Member: member, Meta: l.meta(conn.Info()), Scrub: l.tenant.server.scrubberOf(l.up())})
	g := &l.lists[k]
	g.mu.Lock()
	before := g.items
	g.mu.Unlock()
	if refusal, ok := errors.AsType[*upstream.Refusal](err); ok && refusal.Code == codeMethod && k != toolList && len(before) == 0 {
		return nil, nil // it has resources, say, and no templates
	}
	if err != nil {
		return nil, err
	}
	items := make([]item, len(raw))
	rejected, why := 0, ""
	for i, r := range raw {
		if i < len(before) && bytes.Equal(before[i].raw, r) {
			items[i] = before[i]
			continue
		}
		r = bytes.Clone(r) // so that an entry that stays keeps no more than itself
		doc, err := objectOf(ctx, r)
		if err != nil {
			return nil, fmt.Errorf("upstream %q: entry %d of %s: %w", l.up().Name, i, method, err)
		}
		items[i] = item{raw: r, doc: doc}
		items[i].exam = look(k, items[i])
		if x := items[i].exam; x.code == capability.ToolRejected {
			rejected, why = rejected+1, x.why
		}
	}
	if rejected > 0 {
		l.tenant.server.log.Warn("entries of a list are hidden", "upstream", l.up().Name, "method", method, "entries", rejected, "error", why)
	}
	return items, nil
}

// objectOf reads an entry of a list, unless nobody waits for the list any more.
func objectOf(ctx context.Context, raw []byte) (*wire.Doc, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	doc := new(wire.Doc)
	err := doc.ParseLoosely(raw, wire.Limits{}) // it is judged by its flaws
	if err == nil && doc.Root().Kind() != wire.Object {
		err = errors.New("it is not an object")
	}
	return doc, err
}
