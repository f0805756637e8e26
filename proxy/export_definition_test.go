package proxy

import (
	"time"

	"capgate/capability"
	"capgate/wire"
)

// What the tests of definitions and pins reach into.

func Vet(def wire.Value) (capability.Code, string)   { return vet(def) }
func Canonical(dst []byte, v wire.Value) []byte      { return canonical(dst, v) }
func Digest(v wire.Value) [32]byte                   { return digest(v) }
func HiddenIn(text string) (hidden rune, found bool) { return hiddenIn([]byte(text)) }

// Board is one upstream's board of a pinboard.
type Board struct {
	p        *pinboard
	upstream string
}

func NewBoard(store PinStore, upstream string) *Board { return &Board{newPinboard(store), upstream} }

// Judge vets and judges definitions as the gateway does, and returns the codes.
func (b *Board) Judge(mode Pins, now time.Time, defs ...wire.Value) ([]capability.Code, error) {
	codes := make([]capability.Code, len(defs))
	var seen []sighting
	var which []int
	for i, def := range defs {
		code, why := vet(def)
		if codes[i] = code; code == capability.ToolRejected {
			continue
		}
		name, _ := def.Get("name")
		tool, _ := name.Str()
		seen = append(seen, sighting{tool: tool, definition: def, digest: digest(def), suspicion: why})
		which = append(which, i)
	}
	rulings, err := b.p.judge(b.upstream, mode, seen, now)
	for i, r := range rulings {
		codes[which[i]] = r.code
	}
	return codes, err
}

// Loads is how often other pins came than were ruled by.
func (b *Board) Loads() uint64 { return b.p.loads.Load() }

// Stale reports whether other pins came than were ruled by, or what could not be kept is to be
// tried again.
func (b *Board) Stale(now time.Time) bool {
	before := b.p.loads.Load()
	b.p.recheck(b.upstream, now)
	return b.p.loads.Load() != before
}

const (
	MaxPins    = maxPins
	MaxKept    = maxKept
	MaxPinName = maxPinName
	MaxTries   = maxTries
)
