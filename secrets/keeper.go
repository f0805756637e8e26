package secrets

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// maxExpanded is the most bytes that a text may have once it is filled in: a
// short text can ask for one value very often.
const maxExpanded = 1 << 20

// Options says how values are read. The zero value reads the environment of the
// process, and files that others may not write to.
type Options struct {
	Getenv   func(name string) string
	ReadFile func(path string) ([]byte, error)
}

// Keeper knows where secrets are, and which values it has handed out. It is safe
// for use by several goroutines, and does not print what it knows. The zero
// Keeper has no secrets.
type Keeper struct {
	sources map[string]Source
	opts    Options
	handed  *handed
}

// handed are the values that were handed out. Keepers that take each other's
// place share them.
type handed struct {
	mu       sync.Mutex // one new value at a time
	scrubber atomic.Pointer[scrubber]
	passing  map[string][]string // what came from elsewhere, by name, the newest last
}

// How many values of one name that came from elsewhere are known: a token that is renewed every
// few minutes, with what renews it, for hours after it has expired, or where there is no room for
// all of these, the last few.
const (
	maxPassing = 128
	fewPassing = 8
)

// New returns a keeper of the secrets with these names. It reads no value yet. One
// that takes the place of another comes from [Keeper.With].
func New(sources map[string]Source, opts Options) (*Keeper, error) {
	if opts.Getenv == nil {
		opts.Getenv = os.Getenv
	}
	if opts.ReadFile == nil {
		opts.ReadFile = readFile
	}
	k := &Keeper{opts: opts, handed: &handed{passing: map[string][]string{}}}
	return k.With(sources)
}

// With returns a keeper of other secrets, for a new configuration. What either of
// the two has handed out, before or after, is scrubbed by both: an upstream that
// was started with a value lives on.
func (k *Keeper) With(sources map[string]Source) (*Keeper, error) {
	if k.handed == nil {
		return New(sources, k.opts)
	}
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		if !isName(name) {
			return nil, fmt.Errorf("%.40q cannot be the name of a secret: it takes letters, digits, _ . and -, and at most %d of them", name, maxName)
		}
		if err := sources[name].check(); err != nil {
			return nil, fmt.Errorf("secret %q: %w", name, err)
		}
	}
	return &Keeper{sources: maps.Clone(sources), opts: k.opts, handed: k.handed}, nil
}

// Remember takes note of a value that came from elsewhere, so that it is scrubbed
// like those that were expanded, until many others of its name have come: tokens take
// the place of each other, and those of before are good no more. One that is too short
// to be told from other text is an error.
func (k *Keeper) Remember(name, value string) error {
	if len(value) < minValue {
		return fmt.Errorf("the value of %q is shorter than %d bytes and cannot be taken out of a text", name, minValue)
	}
	if k.handed == nil {
		return fmt.Errorf("the value of %q cannot be remembered", name)
	}
	return k.handed.pass(name, value)
}

// Known is how many values it has come to take out of texts. It takes out others once that is another.
func (k *Keeper) Known() int {
	if k.handed == nil {
		return 0
	}
	return k.handed.scrubber.Load().known()
}

// Names returns the names of the secrets, in order.
func (k *Keeper) Names() []string { return slices.Sorted(maps.Keys(k.sources)) }

// Check says why a secret cannot be resolved, nil if it can.
func (k *Keeper) Check(name string) error {
	_, err := k.Value(name)
	return err
}

// Expand fills in the value of every handle in a text. What was filled in is not
// looked at again: a value that reads like a handle stays what it is.
func (k *Keeper) Expand(text string) (string, error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	var out strings.Builder
	values := map[string]string{} // one text gets one value of a secret
	for {
		before, name, after, err := cutHandle(text)
		if err != nil {
			return "", err
		}
		out.WriteString(before)
		if name == "" {
			return out.String(), nil
		}
		if values[name] == "" {
			if values[name], err = k.Value(name); err != nil {
				return "", err
			}
		}
		if out.Len()+len(values[name])+len(after) > maxExpanded {
			return "", fmt.Errorf("with its secrets filled in, a text has more than %d bytes", maxExpanded)
		}
		out.WriteString(values[name])
		text = after
	}
}

// Value reads the value of a secret, and has it scrubbed from then on.
func (k *Keeper) Value(name string) (string, error) {
	source, ok := k.sources[name]
	if !ok {
		return "", fmt.Errorf("there is no secret %.40q", name)
	}
	value, err := source.value(k.opts)
	if err == nil {
		err = k.handed.remember(name, value)
	}
	if err != nil {
		return "", fmt.Errorf("secret %q: %w", name, err)
	}
	return value, nil
}

// remember adds a value to those that are scrubbed, before anybody gets it. It is never forgotten.
func (h *handed) remember(name, value string) error {
	if h.scrubber.Load().keeps(value) {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.add(name, value, true)
}

// pass does so for a value that came from elsewhere, as the newest of its name.
func (h *handed) pass(name, value string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.passing[name] = slices.DeleteFunc(h.passing[name], func(known string) bool { return known == value })
	if err := h.add(name, value, false); err != nil {
		return err
	}
	if h.passing[name] = append(h.passing[name], value); len(h.passing[name]) > maxPassing {
		h.forget(name)
	}
	return nil
}

// add has a value known. The lock is held.
func (h *handed) add(name, value string, ever bool) error {
	for {
		before := h.scrubber.Load()
		switch {
		case before.knows(value) && ever:
			h.scrubber.Store(before.keeping(value))
			return nil
		case before.knows(value):
			return nil
		}
		if next, ok := before.with(name, value, ever); ok {
			h.scrubber.Store(next)
			return nil
		}
		if !h.makeRoom() {
			return errors.New("too many values have been resolved since the gateway was started: start it again")
		}
	}
}

// makeRoom forgets the oldest value of the name that has most, unless none has many. The lock is held.
func (h *handed) makeRoom() bool {
	most := ""
	for name, all := range h.passing {
		if len(all) > len(h.passing[most]) {
			most = name
		}
	}
	if len(h.passing[most]) <= fewPassing {
		return false
	}
	h.forget(most)
	return true
}

// forget forgets the oldest value of a name that came from elsewhere, unless it is another's too.
// The lock is held.
func (h *handed) forget(name string) {
	oldest := h.passing[name][0]
	h.passing[name] = slices.Delete(h.passing[name], 0, 1)
	for _, all := range h.passing {
		if slices.Contains(all, oldest) {
			return
		}
	}
	if s := h.scrubber.Load(); !s.keeps(oldest) {
		h.scrubber.Store(s.without(oldest))
	}
}

// Scrub replaces every value that was ever resolved by its handle. When there is
// none it returns the text itself, otherwise another one. A text with more values
// than can be meant is replaced as a whole.
func (k *Keeper) Scrub(text []byte) []byte {
	if k.handed == nil {
		return text
	}
	s := k.handed.scrubber.Load()
	if s == nil {
		return text
	}
	return s.scrub(text)
}

// ScrubText is Scrub for a text that is mostly clean, and then returned itself.
func (k *Keeper) ScrubText(text string) string {
	if k.handed == nil || len(text) < window {
		return text
	}
	s := k.handed.scrubber.Load()
	if s == nil {
		return text
	}
	if clean := s.scrub([]byte(text)); string(clean) != text {
		return string(clean)
	}
	return text
}

// String says how many secrets there are.
func (k *Keeper) String() string { return fmt.Sprintf("%d secrets", len(k.sources)) }

// Format prints String, whatever is asked for.
func (k *Keeper) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, k.String()) }

// LogValue is String.
func (k *Keeper) LogValue() slog.Value { return slog.StringValue(k.String()) }
