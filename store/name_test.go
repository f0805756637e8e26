package store_test

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"capgate/store"
)

func TestFileName(t *testing.T) {
	for key, want := range map[string]string{
		"github":                 "github",
		"agents/scout":           "agents%2fscout",
		".":                      "%2e",
		"..":                     "%2e.",
		".lock":                  "%2elock",
		"a.b":                    "a.b",
		"A":                      "%41",
		"a\x00b":                 "a%00b",
		"%2f":                    "%252f",
		"é":                      "%c3%a9",
		"e\u0301":                "e%cc%81",
		"=x":                     "%3dx",
		`a\b`:                    "a%5cb",
		strings.Repeat("a", 200): strings.Repeat("a", 200),
		strings.Repeat("a", 201): fmt.Sprintf("=%x", sha256.Sum256([]byte(strings.Repeat("a", 201)))),
	} {
		if got := store.FileName(key); got != want {
			t.Errorf("%q: %s, want %s", key, got, want)
		}
	}
}

// harmless reports whether every file system takes a name for itself alone.
func harmless(name string) bool {
	return name != "" && name[0] != '.' && len(name) <= store.MaxName && filepath.IsLocal(name) &&
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.%=") == ""
}

func FuzzFileName(f *testing.F) {
	for _, seed := range []string{"", "..", "/", "\x00", "a/../b", "A", "%41", "%2e", "=", "ſ", "K", ".new", ".lock", "\xff", "con."} {
		f.Add(seed, seed+"x")
		f.Add(strings.ToUpper(seed), seed)
		f.Add(strings.Repeat(seed, 100), strings.Repeat(seed, 101))
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if a == "" || b == "" {
			return
		}
		x, y := store.FileName(a), store.FileName(b)
		if !harmless(x) || !harmless(y) {
			t.Errorf("%q: %s; %q: %s", a, x, b, y)
		}
		if a != b && strings.EqualFold(x, y) {
			t.Errorf("%q and %q are both %s", a, b, x)
		}
		key, ok := store.Unescape(x)
		if spelled := x[0] != '='; ok != spelled || ok && key != a {
			t.Errorf("%q: %s reads as %q, %v", a, x, key, ok)
		}
	})
}

// FuzzUnescape: a name that is read as a key is the name of that key.
func FuzzUnescape(f *testing.F) {
	for _, seed := range []string{"a", "%2f", "%2F", "%61", ".", "%2e.", "%", "%2", "%zz", "=ab"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		key, ok := store.Unescape(name)
		if ok && len(name) <= store.MaxName && store.FileName(key) != name {
			t.Errorf("%q reads as %q, which is %q", name, key, store.FileName(key))
		}
	})
}
