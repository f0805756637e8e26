package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"capgate/capability"
	"capgate/wire"
)

// PinStore keeps the pins of each upstream, as the bytes that [Pinned] reads. Any
// number of processes may share one.
type PinStore interface {
	// Load returns what is kept of an upstream and its version: nil and "" when
	// that is nothing.
	Load(upstream string) (data []byte, version string, err error)
	// Save keeps data in place of the version that was loaded. When that is no
	// longer the one that is kept, the error is ErrPinsChanged.
	Save(upstream string, data []byte, version string) (newVersion string, err error)
	// Changed reports whether another version is kept than the one named.
	Changed(upstream, version string) (bool, error)
}

// ErrPinsChanged says that somebody else has saved pins since they were loaded.
var ErrPinsChanged = errors.New("the pins were changed by somebody else meanwhile")

// pinboard holds the definitions of every upstream against what is pinned.
type pinboard struct {
	store PinStore      // nil: pins last as long as the process
	loads atomic.Uint64 // how often others came than something was ruled by

	mu     sync.Mutex
	boards map[string]*board
}

// board is what is pinned of one upstream, as it was loaded last.
type board struct {
	upstream string
	store    PinStore
	loads    *atomic.Uint64 // of the pinboard

	mu      sync.Mutex
	ruled   bool      // something was judged
	blind   bool      // and without the pins, as they could not be read
	unkept  time.Time // when something could not be saved, zero once that is tried again
	loaded  bool
	version string
	pins    map[string]Pin
}

func newPinboard(store PinStore) *pinboard {
	return &pinboard{store: store, boards: map[string]*board{}}
}

func (p *pinboard) board(upstream string) *board {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, ok := p.boards[upstream]
	if !ok {
		b = &board{upstream: upstream, store: p.store, loads: &p.loads, pins: map[string]Pin{}}
		p.boards[upstream] = b
	}
	return b
}

// sighting is a tool as a server lists it now.
type sighting struct {
	tool       string // the server's own name of it
	definition wire.Value
	digest     [sha256.Size]byte // of the definition
	suspicion  string            // why a person must look at it first, "" if none has to
}

// ruling says whether a tool is shown: no code means that it is.
type ruling struct {
	code capability.Code
	why  string
}

// unkeptTime is how long after a failure to save something that is tried again.
const unkeptTime = 30 * time.Second

// maxTries is how often pins that others change at the same time are tried to be
// saved. Those others save the same, as a rule, and then nothing is left to do.
const maxTries = 16

// judge rules on all the tools that an upstream lists, in their order. What is new
// is saved once for all of them, before any of it is shown. The error says why
// pins could not be read or kept; what depends on that is not shown.
func (p *pinboard) judge(upstream string, mode Pins, seen []sighting, now time.Time) ([]ruling, error) {
	b := p.board(upstream)
	b.mu.Lock()
	defer b.mu.Unlock()
	defer func() { b.ruled = true }()
	t := trial{mode: mode, now: now.UTC().Truncate(time.Second), seen: seen}
	var err error
	for range maxTries {
		if err = b.refresh(); err != nil {
			b.blind = true
			return t.unknown(), fmt.Errorf("read the pins of upstream %q: %w", upstream, err)
		}
		t.hold(b.pins)
		if err = b.save(t.news); err == nil {
			return t.rulings, nil
		}
		if !errors.Is(err, ErrPinsChanged) {
			break
		}
	}
	b.unkept = now
	t.unsaved()
	return t.rulings, fmt.Errorf("keep the pins of upstream %q: %w", upstream, err)
}

// recheck looks whether judge would rule otherwise than it did, because somebody has approved
// something meanwhile, or because the pins could not be read or kept and now perhaps can. To
// find out whether they can be kept, all is judged again.
func (p *pinboard) recheck(upstream string, now time.Time) {
	b := p.board(upstream)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.store == nil || !b.ruled {
		return
	}
	if b.refresh() == nil && !b.unkept.IsZero() && now.Sub(b.unkept).Abs() >= unkeptTime {
		b.unkept = time.Time{}
		b.loads.Add(1)
	}
}

// refresh loads the pins unless those that are known are still the ones kept.
// Pins that cannot be read are never taken for none.
func (b *board) refresh() error {
	if b.store == nil {
		return nil
	}
	if b.loaded {
		changed, err := b.store.Changed(b.upstream, b.version)
		if b.loaded = err == nil; err != nil || !changed {
			return err
		}
	}
	b.loaded = false
	data, version, err := b.store.Load(b.upstream)
	if err != nil {
		return err
	}
	pins := map[string]Pin{}
	if data != nil || version != "" {
		list, err := Pinned(data)
		if err != nil {
			return err
		}
		for _, pin := range list {
			pins[pin.Tool] = pin
		}
	}
	if b.ruled && (b.blind || !maps.EqualFunc(pins, b.pins, Pin.rulesAs)) {
		b.loads.Add(1)
	}
	b.pins, b.version, b.loaded, b.blind = pins, version, true, false
	return nil
}

// save keeps what is new. After an error nobody knows what is kept.
func (b *board) save(news map[string]Pin) error {
	if len(news) == 0 {
		return nil
	}
	pins := maps.Clone(b.pins)
	maps.Copy(pins, news)
	if b.store != nil {
		data, err := encodePins(pins)
		if err != nil {
			return err
		}
		b.loaded = false
		version, err := b.store.Save(b.upstream, data, b.version)
		if err != nil {
			return err
		}
		b.version, b.loaded = version, true
	}
	b.pins = pins
	return nil
}

// trial is one list of tools being held against the pins.
type trial struct {
	mode    Pins
	now     time.Time
	seen    []sighting
	rulings []ruling
	pins    map[string]Pin // that are kept
	room    int            // bytes of definitions and of long names that can still be kept, once that is measured
	count   int            // tools that are known
	news    map[string]Pin // what has to be saved before the rulings hold

	measured bool
}

// The most that is kept of one upstream, so that a server that lists ever other
// tools fills neither the memory nor the store.
const (
	maxPins    = 16 << 10 // tools
	maxWhy     = 128      // bytes of why one waits
	maxPinName = 4 << 10  // bytes of a name, as it is kept; that of a resource is a URI
	pinName    = 128      // the same of one that takes none of the room for definitions
	maxKept    = 6 << 20  // the same of definitions; of what is beyond, only the hash is kept
)

// hold rules on every tool.
func (t *trial) hold(pins map[string]Pin) {
	t.rulings, t.news = make([]ruling, len(t.seen)), map[string]Pin{}
	t.pins, t.count, t.measured = pins, len(pins), false
	times := make(map[string]int, len(t.seen))
	for _, s := range t.seen {
		times[s.tool]++
	}
	for i, s := range t.seen {
		switch {
		case s.definition.Kind() != wire.Object || t.mode > Off:
			t.rulings[i] = quarantined("there is no definition to hold against the pins")
		case times[s.tool] > 1:
			t.rulings[i] = quarantined("the server lists the tool more than once")
		default:
			t.rulings[i] = t.rule(s, pins[s.tool])
		}
	}
}

func quarantined(why string) ruling { return ruling{capability.ToolQuarantined, why} }

// rule rules on one tool, of which pin is what is kept.
func (t *trial) rule(s sighting, pin Pin) ruling {
	hash := hex.EncodeToString(s.digest[:])
	doubtful := t.mode == Require || s.suspicion != ""
	current := pin.Current.has(hash)
	first := pin.Current == nil && !doubtful
	switch {
	case t.mode == Off && !doubtful, current && (!doubtful || !pin.Approved.IsZero()):
		return ruling{}
	case current, pin.Waiting.has(hash) && !first:
		return quarantined(s.reason(pin, current))
	case s.tool == "":
		return quarantined("the tool has no name, by which its pin would be kept")
	case pin.Tool == "" && !t.canKeep(s.tool):
		return quarantined("the upstream has too many tools, or one with too long a name, to keep their pins")
	}
	def := t.definition(s, hash)
	if first {
		pin = pin.seen(def)
	} else {
		why := s.reason(pin, current)
		def.Why = strings.ToValidUTF8(why[:min(len(why), maxWhy)], "")
		pin.Waiting = def
	}
	if pin.Tool == "" {
		pin.Tool = s.tool
		t.count, t.room = t.count+1, t.room-long(s.tool)
	}
	t.news[s.tool] = pin
	if first {
		return ruling{}
	}
	return quarantined(def.Why)
}

// canKeep reports whether there is place for one tool more.
func (t *trial) canKeep(tool string) bool {
	if t.count >= maxPins || quoted(tool) > maxPinName {
		return false
	}
	return long(tool) == 0 || long(tool) <= t.left()
}

// long is how much of the room for definitions a name takes.
func long(name string) int {
	if n := quoted(name); n > pinName {
		return n
	}
	return 0
}

// left is how much room there is still.
func (t *trial) left() int {
	if !t.measured {
		t.measured, t.room = true, maxKept
		for _, pin := range t.pins {
			t.room -= pin.Current.size() + pin.Waiting.size() + long(pin.Tool)
		}
	}
	return t.room
}

// seen is the pin with the first definition that nothing speaks against.
func (p Pin) seen(def *Definition) Pin {
	p.Current = def
	if p.Waiting.has(def.Hash) {
		p.Waiting = nil
	}
	return p
}

const nobodyApproved = "nobody has approved the definition"

// reason says why a tool is hidden until somebody approves it.
func (s sighting) reason(pin Pin, current bool) string {
	switch {
	case s.suspicion != "":
		return s.suspicion
	case current || pin.Current == nil:
		return nobodyApproved
	case pin.Approved.IsZero():
		return "the definition is another than the one that was seen first"
	}
	return "the definition is another than the one that was approved"
}

// definition is a definition as it is kept.
func (t *trial) definition(s sighting, hash string) *Definition {
	d := &Definition{Hash: hash, Seen: t.now, Text: string(canonical(nil, s.definition))}
	if d.size() > t.left() {
		d.Text = ""
	}
	t.room -= d.size()
	return d
}

// unknown rules when the pins cannot be read: what needs none is shown.
func (t *trial) unknown() []ruling {
	t.rulings = make([]ruling, len(t.seen))
	for i, s := range t.seen {
		if t.mode != Off || s.suspicion != "" {
			t.rulings[i] = quarantined("the pins of the upstream cannot be read")
		}
	}
	return t.rulings
}

// unsaved takes back what was ruled on the condition that it is kept.
func (t *trial) unsaved() {
	for i, s := range t.seen {
		if _, isNew := t.news[s.tool]; isNew && t.rulings[i].code == "" {
			t.rulings[i] = quarantined("the pin of the tool cannot be kept")
		}
	}
}
