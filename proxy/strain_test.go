package proxy_test

import (
	"bytes"
	"strings"
	"testing"

	"capgate/proxy"
	"capgate/secrets"
)

func keyScrubber(t testing.TB) func([]byte) []byte {
	t.Helper()
	keeper, err := secrets.New(map[string]secrets.Source{"k": {Env: "K"}}, secrets.Options{Getenv: func(string) string { return vendorKey }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keeper.Expand("{{secret:k}}"); err != nil {
		t.Fatal(err)
	}
	return keeper.Scrub
}

func inPieces(text []byte, size int) [][]byte {
	var list [][]byte
	for ; len(text) > 0; text = text[min(size, len(text)):] {
		list = append(list, text[:min(size, len(text))])
	}
	return list
}

// TestStrainPicture: what has no end in sight is passed on before it ends, and the
// key is found in it wherever it stands.
func TestStrainPicture(t *testing.T) {
	scrub := keyScrubber(t)
	long := strings.Repeat("QUJDRA", 20_000)
	for _, at := range []int{0, 1, 16 << 10, 16<<10 - 20, 32 << 10, 32<<10 - 1, 48<<10 + 7, len(long)} {
		for _, size := range []int{1 << 10, 4096 - 1, 32 << 10, 1 << 20} {
			in := []byte(long[:at] + vendorKey + long[at:])
			got := proxy.Strain(scrub, len(vendorKey), inPieces(in, size)...)
			if want := long[:at] + "{{secret:k}}" + long[at:]; string(got) != want {
				t.Errorf("at %d in pieces of %d: %d bytes, want %d", at, size, len(got), len(want))
			}
		}
	}
}

// FuzzStrain: however a text is cut, no key comes out of it, and without a key it
// comes out as it was.
func FuzzStrain(f *testing.F) {
	f.Add([]byte("data: {\"a\":\""+vendorKey+"\"}\n\n"), uint16(7))
	f.Add([]byte(vendorKey+vendorKey), uint16(1))
	f.Add([]byte("data: {}\n\n"), uint16(3))
	f.Add([]byte(strings.Repeat("x", 40<<10)+vendorKey), uint16(4096))
	scrub := keyScrubber(f)
	f.Fuzz(func(t *testing.T, text []byte, size uint16) {
		out := proxy.Strain(scrub, len(vendorKey), inPieces(text, int(size)+1)...)
		if bytes.Contains(out, []byte(vendorKey)) {
			t.Errorf("the key comes out: %q", out)
		}
		if !bytes.Equal(out, text) && bytes.Equal(scrub(text), text) {
			t.Errorf("%q comes out as %q", text, out)
		}
	})
}
