package proxy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"capgate/wire"
)

// Pin is what is kept of one tool of an upstream.
type Pin struct {
	Tool     string      `json:"tool"`              // the server's own name of it
	Current  *Definition `json:"current,omitempty"` // what is shown; nil: nothing was ever approved
	Approved time.Time   `json:"approved,omitzero"` // when somebody approved Current; zero: it was what was seen first
	Waiting  *Definition `json:"waiting,omitempty"` // what is hidden until it is approved, as it was listed last
}

// Definition is a tool's definition as it was seen.
type Definition struct {
	Hash string    `json:"hash"`                 // SHA-256 of the canonical JSON, in hexadecimal
	Seen time.Time `json:"seen"`                 // for the first time
	Why  string    `json:"why,omitempty"`        // it is hidden
	Text string    `json:"definition,omitempty"` // the canonical JSON; "" when there was no room for it
}

func (d *Definition) has(hash string) bool { return d != nil && d.Hash == hash }

// size is how much of the room for definitions one takes.
func (d *Definition) size() int {
	if d == nil {
		return 0
	}
	return quoted(d.Text)
}

// quoted is how many bytes a text has between quotes.
func quoted(text string) int { return len(wire.AppendString(nil, text)) - len(`""`) }

// rulesAs reports whether another pin makes for the same rulings.
func (p Pin) rulesAs(other Pin) bool {
	if p.Current == nil || other.Current == nil {
		return p.Current == other.Current
	}
	return p.Current.Hash == other.Current.Hash && p.Approved.IsZero() == other.Approved.IsZero()
}

// pinFile is what a [PinStore] keeps of an upstream. The tools are a list in the
// order of their names: as keys of an object, two names that differ in case only
// would make it unreadable.
type pinFile struct {
	Version int   `json:"version"`
	Tools   []Pin `json:"tools"`
}

const pinVersion = 1

func encodePins(pins map[string]Pin) ([]byte, error) {
	f := pinFile{Version: pinVersion, Tools: make([]Pin, 0, len(pins))}
	for _, tool := range slices.Sorted(maps.Keys(pins)) {
		f.Tools = append(f.Tools, pins[tool])
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(f); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Pinned reads what a [PinStore] keeps of an upstream: its tools in the order of
// their names. It is strict, as whoever cannot read a pin must not take the tool
// for a new one.
func Pinned(data []byte) ([]Pin, error) {
	var strict wire.Doc
	if err := strict.Parse(data, wire.Limits{}); err != nil {
		return nil, err
	}
	var f pinFile
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return nil, err
	}
	if f.Version != pinVersion {
		return nil, fmt.Errorf("the pins are of version %d, and this program reads version %d", f.Version, pinVersion)
	}
	if f.Tools == nil {
		return nil, errors.New("the pins name no list of tools")
	}
	for i, pin := range f.Tools {
		if i > 0 && f.Tools[i-1].Tool >= pin.Tool {
			return nil, fmt.Errorf("the pin of %q is not in its place", pin.Tool)
		}
		if err := pin.check(); err != nil {
			return nil, fmt.Errorf("the pin of %q: %w", pin.Tool, err)
		}
	}
	return f.Tools, nil
}

func (p Pin) check() error {
	switch {
	case p.Tool == "" || p.Current == nil && p.Waiting == nil:
		return errors.New("it is empty")
	case p.Current == nil && !p.Approved.IsZero():
		return errors.New("nothing is there that was approved")
	}
	for _, d := range [...]*Definition{p.Current, p.Waiting} {
		if d == nil {
			continue
		}
		if sum, err := hex.DecodeString(d.Hash); err != nil || len(sum) != sha256.Size || hex.EncodeToString(sum) != d.Hash {
			return errors.New("its hash is none")
		}
		if sum := sha256.Sum256([]byte(d.Text)); d.Text != "" && hex.EncodeToString(sum[:]) != d.Hash {
			return errors.New("its definition is not the one that its hash is of")
		}
	}
	return nil
}

// Approve makes the definition of a tool that has the hash the one that is shown,
// and returns what is to be kept instead of data. The hash is that of the
// definition somebody has looked at: the server may have listed another meanwhile.
func Approve(data []byte, tool, hash string, at time.Time) ([]byte, error) {
	list, err := Pinned(data)
	if err != nil {
		return nil, err
	}
	pins := make(map[string]Pin, len(list))
	for _, pin := range list {
		pins[pin.Tool] = pin
	}
	pin, ok := pins[tool]
	if !ok {
		return nil, fmt.Errorf("no tool %q is pinned or waits for approval", tool)
	}
	switch {
	case pin.Waiting.has(hash):
		current := *pin.Waiting
		current.Why = ""
		pin.Current, pin.Waiting = &current, nil
	case !pin.Current.has(hash):
		return nil, fmt.Errorf("no definition of tool %q has the hash %q", tool, hash)
	}
	pin.Approved = at.UTC().Truncate(time.Second)
	if pin.Approved.IsZero() {
		return nil, errors.New("an approval needs the time it was given at")
	}
	pins[tool] = pin
	return encodePins(pins)
}
