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
	mu       sync.Mutex               // one new value at a time
	resolved atomic.Pointer[scrubber] // of those of the configuration
	learnt   []lesson                 // by upstream; the lock is held
	all      atomic.Pointer[scrubber] // of both, so that a text is looked at once
	news     atomic.Int64             // how many values there have been
}

// lesson is what came from elsewhere for one upstream.
type lesson struct {
	upstream string
	values   []string // the newest last
	*scrubber
}

// maxLearnt is how many such values of one upstream are known: a token that is renewed every few
// minutes, with what renews it, for hours after it has expired.
const maxLearnt = 128

// New returns a keeper of the secrets with these names. It reads no value yet. One
// that takes the place of another comes from [Keeper.With].
func New(sources map[string]Source, opts Options) (*Keeper, error) {
	if opts.Getenv == nil {
		opts.Getenv = os.Getenv
	}
	if opts.ReadFile == nil {
		opts.ReadFile = readFile
	}
	k := &Keeper{opts: opts, handed: new(handed)}
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

// Learn takes note of a value that came from elsewhere for one upstream, so that it is scrubbed
// like those that were expanded, until many others of it have come: tokens take the place of each
// other, and those of before are good no more. One that is no random text is found in what that
// upstream says and in what is recorded of it, and nowhere else: who chooses such a value would
// choose which words of others are taken out. One that is too short to be told from other text
// is an error.
func (k *Keeper) Learn(upstream, name, value string) error {
	if len(value) < minValue {
		return fmt.Errorf("the value of %q is shorter than %d bytes and cannot be taken out of a text", name, minValue)
	}
	if len(value) > maxValueBytes {
		return fmt.Errorf("the value of %q is longer than %d bytes", name, maxValueBytes)
	}
	if k.handed == nil {
		return fmt.Errorf("the value of %q cannot be remembered", name)
	}
	k.handed.learn(upstream, name, value)
	return nil
}

// Known is how many values it has come to take out of texts. It takes out others once that is another.
func (k *Keeper) Known() int {
	if k.handed == nil {
		return 0
	}
	return int(k.handed.news.Load())
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
	if h.resolved.Load().knows(value) {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.resolved.Load()
	if before.knows(value) {
		return nil
	}
	next, ok := before.with(name, value)
	if !ok {
		return errors.New("too many values have been resolved since the gateway was started: start it again")
	}
	h.gather(next) // before it is said to be known
	h.resolved.Store(next)
	h.news.Add(1)
	return nil
}

// gather has values found, of the configuration and that came for upstreams. The lock is held.
func (h *handed) gather(resolved *scrubber) {
	all := &scrubber{}
	add := func(s *scrubber, upstream string) {
		all.escaped = all.escaped || s.escaped
		for _, n := range s.needles {
			if n.word {
				n.only = upstream
			}
			all.needles = append(all.needles, n)
		}
	}
	if resolved != nil {
		add(resolved, "")
	}
	for _, l := range h.learnt {
		add(l.scrubber, l.upstream)
	}
	all.index()
	h.all.Store(all)
}

// learn does so for a value that came from elsewhere, as the newest of an upstream.
func (h *handed) learn(upstream, name, value string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i, known := slices.BinarySearchFunc(h.learnt, upstream, func(l lesson, name string) int { return strings.Compare(l.upstream, name) })
	if !known {
		h.learnt = slices.Insert(h.learnt, i, lesson{upstream: upstream})
	}
	l := &h.learnt[i]
	l.values = append(slices.DeleteFunc(l.values, func(before string) bool { return before == value }), value)
	if !l.knows(value) {
		more, ok := l.with(name, value)
		for !ok || len(l.values) > maxLearnt {
			l.scrubber, l.values = l.without(l.values[0]), l.values[1:]
			more, ok = l.with(name, value)
		}
		l.scrubber = more
		h.gather(h.resolved.Load())
		h.news.Add(1)
	}
}

// Scrub replaces every value that was ever resolved by its handle, and all that were learnt. When
// there is none it returns the text itself, otherwise another one. A text with more values
// than can be meant is replaced as a whole.
func (k *Keeper) Scrub(text []byte) []byte { return k.scrub(text, speaker{all: true}) }

// ScrubText is Scrub for a text that is mostly clean, and then returned itself.
func (k *Keeper) ScrubText(text string) string { return k.scrubText(text, speaker{all: true}) }

// ScrubOf is Scrub for what an upstream says, "" for what is said of none.
func (k *Keeper) ScrubOf(upstream string, text []byte) []byte {
	return k.scrub(text, speaker{upstream: upstream})
}

// ScrubTextOf is ScrubOf for a text that is mostly clean.
func (k *Keeper) ScrubTextOf(upstream, text string) string {
	return k.scrubText(text, speaker{upstream: upstream})
}

func (k *Keeper) scrub(text []byte, of speaker) []byte {
	return replaced(text, k.find(text, of))
}

func (k *Keeper) scrubText(text string, of speaker) string {
	if len(text) < window || k.handed == nil || k.handed.all.Load() == nil {
		return text
	}
	whole := []byte(text)
	spans := k.find(whole, of)
	if len(spans) == 0 {
		return text
	}
	return string(replaced(whole, spans))
}

// find returns where a text shows values, in order and apart.
func (k *Keeper) find(text []byte, of speaker) []span {
	if k.handed == nil {
		return nil
	}
	if all := k.handed.all.Load(); all != nil {
		return all.find(text, maxLayers, of)
	}
	return nil
}

// String says how many secrets there are.
func (k *Keeper) String() string { return fmt.Sprintf("%d secrets", len(k.sources)) }

// Format prints String, whatever is asked for.
func (k *Keeper) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, k.String()) }

// LogValue is String.
func (k *Keeper) LogValue() slog.Value { return slog.StringValue(k.String()) }
