package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/store"
)

func open(t testing.TB) (s *store.Store, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "state", "store")
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s, dir
}

func put(t testing.TB, s *store.Store, key, data, version string) string {
	t.Helper()
	now, err := s.Put("pins", key, []byte(data), version)
	if err != nil {
		t.Fatal(err)
	}
	if now == "" || now == version {
		t.Fatalf("version %q after %q", now, version)
	}
	return now
}

func get(t testing.TB, s *store.Store, key, data, version string) {
	t.Helper()
	got, now, err := s.Get("pins", key)
	if err != nil || string(got) != data || now != version || (got == nil) != (version == "") {
		t.Errorf("%s: got %q at %q, %v; want %q at %q", key, got, now, err, data, version)
	}
}

func TestCompareAndSwap(t *testing.T) {
	s, _ := open(t)
	get(t, s, "github", "", "")
	one := put(t, s, "github", "one", "")
	get(t, s, "github", "one", one)
	two := put(t, s, "github", "two", one)
	get(t, s, "github", "two", two)
	for _, stale := range []string{"", one, "nonsense"} {
		if now, err := s.Put("pins", "github", nil, stale); !errors.Is(err, store.ErrChanged) || now != "" {
			t.Errorf("put at %q: %q, %v", stale, now, err)
		}
		if err := s.Delete("pins", "github", stale); !errors.Is(err, store.ErrChanged) {
			t.Errorf("delete at %q: %v", stale, err)
		}
	}
	get(t, s, "github", "two", two)
	again := put(t, s, "github", "two", two)
	if err := s.Delete("pins", "github", again); err != nil {
		t.Fatal(err)
	}
	get(t, s, "github", "", "")
	if err := s.Delete("pins", "github", ""); err != nil {
		t.Errorf("delete what is absent: %v", err)
	}
	if err := s.Delete("pins", "github", again); !errors.Is(err, store.ErrChanged) {
		t.Errorf("delete twice: %v", err)
	}
	empty := put(t, s, "github", "", "")
	get(t, s, "github", "", empty)
}

// TestVersions: equal data put back never has a version that was before.
func TestVersions(t *testing.T) {
	s, _ := open(t)
	seen := map[string]bool{}
	for range 50 {
		version := put(t, s, "k", "same", "")
		if seen[version] {
			t.Fatalf("version %s twice", version)
		}
		seen[version] = true
		if err := s.Delete("pins", "k", version); err != nil {
			t.Fatal(err)
		}
	}
}

func TestChanged(t *testing.T) {
	s, dir := open(t)
	changed := func(version string, want bool) {
		t.Helper()
		if got, err := s.Changed("pins", "k", version); got != want || err != nil {
			t.Errorf("since %q: %v, %v", version, got, err)
		}
	}
	changed("", false)
	changed("other", true)
	one := put(t, s, "k", "same", "")
	changed("", true)
	changed(one, false)
	two := put(t, s, "k", "same", one)
	changed(one, true)
	changed(two, false)
	if err := os.Chmod(filepath.Join(dir, "pins", "k"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Changed("pins", "k", two); !got || err == nil {
		t.Errorf("a file that cannot be trusted: %v, %v", got, err)
	}
}

// TestChangedAtOnce: what is replaced faster than times of files change, by
// something of the same size and under a number that was free again, is seen.
func TestChangedAtOnce(t *testing.T) {
	s, dir := open(t)
	other, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	version := ""
	for range 100 {
		before := version
		version = put(t, other, "k", "same", before)
		if got, err := s.Changed("pins", "k", before); !got || err != nil {
			t.Fatalf("since %q: %v, %v", before, got, err)
		}
		if got, err := s.Changed("pins", "k", version); got || err != nil {
			t.Fatalf("since %q: %v, %v", version, got, err)
		}
	}
	if err := other.Delete("pins", "k", version); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Changed("pins", "k", version); !got || err != nil {
		t.Errorf("deleted: %v, %v", got, err)
	}
}

// TestChangedOfMany: more entries than are held open, each still right.
func TestChangedOfMany(t *testing.T) {
	s, _ := open(t)
	versions := map[string]string{}
	for i := range store.MaxHeld + 5 {
		key := strconv.Itoa(i)
		versions[key] = put(t, s, key, "x", "")
	}
	for range 2 {
		for key, version := range versions {
			if got, err := s.Changed("pins", key, version); got || err != nil {
				t.Errorf("%s: %v, %v", key, got, err)
			}
		}
	}
}

func TestUpdate(t *testing.T) {
	s, dir := open(t)
	update := func(edit func([]byte) ([]byte, error)) {
		t.Helper()
		if err := s.Update("pins", "k", edit); err != nil {
			t.Error(err)
		}
	}
	update(func(was []byte) ([]byte, error) {
		if was != nil {
			t.Errorf("absent is %q", was)
		}
		return nil, nil
	})
	if _, err := os.Stat(filepath.Join(dir, "pins", "k")); !os.IsNotExist(err) {
		t.Error("nothing was written as something")
	}
	update(func([]byte) ([]byte, error) { return []byte{}, nil })
	_, version, _ := s.Get("pins", "k")
	get(t, s, "k", "", version)
	update(func(was []byte) ([]byte, error) {
		if was == nil {
			t.Error("empty is nil")
		}
		return []byte("x"), nil
	})
	_, version, _ = s.Get("pins", "k")
	update(func(was []byte) ([]byte, error) { return was, nil })
	get(t, s, "k", "x", version) // nothing to write
	update(func(was []byte) ([]byte, error) { was[0] = 'y'; return was, nil })
	if data, now, _ := s.Get("pins", "k"); string(data) != "y" || now == version {
		t.Errorf("edited in place: %q", data)
	}
	refusal := errors.New("no")
	if err := s.Update("pins", "k", func([]byte) ([]byte, error) { return []byte("z"), refusal }); err != refusal { //nolint:errorlint // it is that error, not one around it
		t.Errorf("got %v", err)
	}
	if data, _, _ := s.Get("pins", "k"); string(data) != "y" {
		t.Errorf("a refused edit was written: %q", data)
	}
	update(func([]byte) ([]byte, error) { return nil, nil })
	get(t, s, "k", "", "")
}

func TestKeys(t *testing.T) {
	s, dir := open(t)
	if keys, err := s.Keys("pins"); keys != nil || err != nil {
		t.Errorf("an absent bucket: %q, %v", keys, err)
	}
	want := []string{".", "..", "../../etc/passwd", "A", "a", "a/b", strings.Repeat("long/", 100), "é"}
	for _, key := range want {
		put(t, s, key, key, "")
	}
	if err := os.WriteFile(filepath.Join(dir, "pins", ".new"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := s.Keys("pins")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Error(diff)
	}
	for _, foreign := range []string{"UP", "a%2B", "%6", "x=", "=00"} {
		path := filepath.Join(dir, "pins", foreign)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if keys, err := s.Keys("pins"); err == nil {
			t.Errorf("%s: listed %q", foreign, keys)
		}
		os.Remove(path)
	}
	if err := os.Mkdir(filepath.Join(dir, "pins", "dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Keys("pins"); err == nil {
		t.Error("a folder was listed as an entry")
	}
}

func TestBucketsAreApart(t *testing.T) {
	s, dir := open(t)
	version := put(t, s, "k", "x", "")
	if data, now, err := s.Get("other", "k"); data != nil || now != "" || err != nil {
		t.Errorf("%q at %q, %v", data, now, err)
	}
	if _, err := s.Put("other", "k", []byte("y"), ""); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "pins", "k"), filepath.Join(dir, "other", "k")); err != nil {
		t.Fatal(err)
	}
	if data, _, err := s.Get("other", "k"); err == nil {
		t.Errorf("an entry of another bucket at %s: %q", version, data)
	}
}

func TestLimits(t *testing.T) {
	s, dir := open(t)
	long := strings.Repeat("K", store.MaxKey)
	put(t, s, long, "x", "")
	for _, bad := range []string{"", long + "K"} {
		if _, _, err := s.Get("pins", bad); err == nil {
			t.Errorf("the key of %d bytes", len(bad))
		}
		if _, err := s.Put(bad, "k", nil, ""); err == nil {
			t.Errorf("the bucket of %d bytes", len(bad))
		}
		if _, err := s.Keys(bad); err == nil {
			t.Errorf("list the bucket of %d bytes", len(bad))
		}
	}
	if _, err := s.Put(long, "k", nil, ""); err != nil {
		t.Error(err)
	}
	big := make([]byte, store.MaxData)
	version, err := s.Put("pins", "big", big, "")
	if err != nil {
		t.Fatal(err)
	}
	if data, _, err := s.Get("pins", "big"); err != nil || !bytes.Equal(data, big) {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	if _, err := s.Put("pins", "big", make([]byte, store.MaxData+1), version); err == nil {
		t.Error("a byte too many was written")
	}
	if err := os.Truncate(filepath.Join(dir, "pins", "big"), 2*store.MaxData); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Get("pins", "big"); err == nil || !strings.Contains(err.Error(), "too many") {
		t.Errorf("an oversized file: %v", err)
	}
}

func TestFullBucket(t *testing.T) {
	s, dir := open(t)
	version := put(t, s, "k", "x", "")
	for i := range store.MaxKeys {
		if err := os.WriteFile(filepath.Join(dir, "pins", "f"+strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Put("pins", "one-more", nil, ""); err == nil {
		t.Error("a full bucket took one more")
	}
	put(t, s, "k", "y", version)
}

// TestGoroutines: two stores in one process and many goroutines lose nothing,
// and who reads meanwhile sees whole entries only.
func TestGoroutines(t *testing.T) {
	const writers, each = 8, 10
	s, dir := open(t)
	other, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var readers, writing sync.WaitGroup
	readers.Go(func() {
		for last := 0; ; {
			data, _, err := s.Get("counts", "k")
			now, _ := strconv.Atoi(strings.TrimSpace(string(data)))
			if err != nil || now < last {
				t.Errorf("%q after %d: %v", data, last, err)
			}
			last = now
			select {
			case <-done:
				return
			default:
			}
		}
	})
	for i := range writers {
		from := []*store.Store{s, other}[i%2]
		writing.Go(func() {
			for range each {
				if _, err := increment(from); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	close(done)
	readers.Wait()
	if data, _, err := s.Get("counts", "k"); strings.TrimSpace(string(data)) != strconv.Itoa(writers*each) || err != nil {
		t.Errorf("%q, %v", data, err)
	}
}

// increment counts with Update and Put in turn.
func increment(s *store.Store) (now int, err error) {
	err = s.Update("counts", "k", func(was []byte) ([]byte, error) {
		n, _ := strconv.Atoi(strings.TrimSpace(string(was)))
		now = n + 1
		return fmt.Appendf(nil, "%d%s", now, strings.Repeat(" ", now%5000)), nil
	})
	return now, err
}

func BenchmarkGet(b *testing.B) {
	s, _ := open(b)
	put(b, s, "k", strings.Repeat("x", 4096), "")
	for b.Loop() {
		if _, _, err := s.Get("pins", "k"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkChanged(b *testing.B) {
	s, _ := open(b)
	version := put(b, s, "k", strings.Repeat("x", 4096), "")
	for b.Loop() {
		if changed, err := s.Changed("pins", "k", version); changed || err != nil {
			b.Fatal(changed, err)
		}
	}
}

func BenchmarkPut(b *testing.B) {
	s, _ := open(b)
	version := ""
	for b.Loop() {
		version = put(b, s, "k", "x", version)
	}
}
