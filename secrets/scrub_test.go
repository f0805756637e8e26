package secrets_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"capgate/secrets"
)

// asJSON is a text as it stands in a JSON string.
func asJSON(text string) string {
	quoted, _ := json.Marshal(text)
	return string(quoted[1 : len(quoted)-1])
}

// asUnits is a text in which every character is a JSON escape.
func asUnits(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r > 0xffff {
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04X`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		} else {
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// asPercent is a text in which every byte is percent-encoded.
func asPercent(text string) string {
	var b strings.Builder
	for i := range len(text) {
		fmt.Fprintf(&b, "%%%02x", text[i])
	}
	return b.String()
}

// ways are how a value comes back.
func ways() map[string]func(string) string {
	all := map[string]func(string) string{
		"as it is":        func(s string) string { return s },
		"JSON":            asJSON,
		"JSON in JSON":    func(s string) string { return asJSON(asJSON(s)) },
		"JSON units":      asUnits,
		"JSON slashes":    func(s string) string { return strings.ReplaceAll(asJSON(s), "/", `\/`) },
		"query":           url.QueryEscape,
		"path":            url.PathEscape,
		"every byte":      asPercent,
		"twice":           func(s string) string { return url.QueryEscape(url.QueryEscape(s)) },
		"query in JSON":   func(s string) string { return asUnits(url.QueryEscape(s)) },
		"JSON in a query": func(s string) string { return url.QueryEscape(asJSON(s)) },
		"hex":             func(s string) string { return hex.EncodeToString([]byte(s)) },
		"upper hex":       func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
		"base64 in JSON": func(s string) string {
			return strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte(s)), "/", `\/`)
		},
		"base64 in a link": func(s string) string { return url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(s))) },
	}
	for name, alphabet := range map[string]*base64.Encoding{"std": base64.StdEncoding, "url": base64.RawURLEncoding} {
		for before := range 4 {
			for after := range 4 {
				all[fmt.Sprintf("base64 %s %d+%d", name, before, after)] = func(s string) string {
					return alphabet.EncodeToString([]byte("user:"[:before] + s + "\n\n\n\n"[:after]))
				}
			}
		}
	}
	return all
}

func TestScrub(t *testing.T) {
	for _, value := range []string{
		"12345678", "ghp_x9Zk27Qw", "with space/and+plus=", `quote " and \ back`, "line\nbreak\ttab", "<html>&amp;",
		"pässwörd-€-😀😀", "%2Fpercent%", `\u0041 stays`, "\u007f\u0001\u2028 controls",
	} {
		k := resolved(t, map[string]string{"key": value})
		for name, way := range ways() {
			for _, around := range []string{"%s", "before %s after", `{"a":"%s"}`, "100%% \\ %s %%zz \\u12"} {
				text := strings.Replace(strings.ReplaceAll(around, "%%", "%"), "%s", way(value), 1)
				got := string(k.Scrub([]byte(text)))
				if other := k.ScrubText(text); other != got {
					t.Errorf("ScrubText: %q, Scrub: %q", other, got)
				}
				if !strings.Contains(got, "{{secret:key}}") {
					t.Errorf("%s: %q is %q", name, text, got)
					continue
				}
				before, after, _ := strings.Cut(strings.ReplaceAll(around, "%%", "%"), "%s")
				if !strings.HasPrefix(got, before) || !strings.HasSuffix(got, after) {
					t.Errorf("%s: what stands around is gone: %q is %q", name, text, got)
				}
				// Of base64 some bits may stay, in characters that hold others too.
				if rest := len(got) - len(before) - len(after) - len("{{secret:key}}"); rest > 14 || rest > 0 && !strings.HasPrefix(name, "base64") {
					t.Errorf("%s: %d bytes are left: %q is %q", name, rest, text, got)
				}
			}
		}
	}
}

func TestScrubLeaves(t *testing.T) {
	k := resolved(t, map[string]string{"key": "ghp_0123456789"})
	for _, text := range []string{
		"", "x", "ghp_012345678", "hp_0123456789", "GHP_0123456789", "ghp_01234_56789", "{{secret:key}}",
		`C:\new\files and 100% of \uD83D`, `\u004`, `\u\`, "%4", strings.Repeat("ghp_012345678", 1000),
	} {
		in := []byte(text)
		out := k.Scrub(in)
		if string(out) != text || len(in) > 0 && &out[0] != &in[0] {
			t.Errorf("%.40q became %.40q, or was copied", text, out)
		}
	}
}

func TestScrubOverlap(t *testing.T) {
	k := resolved(t, map[string]string{
		"a": "abcdefgh", "b": "efghijkl", "c": "abcdefghij", "d": "same-value", "e": "same-value", "n": "aaaaaaaa",
	})
	for text, want := range map[string]string{
		"abcdefgh":                          "{{secret:a}}",
		"abcdefghi":                         "{{secret:a}}i",
		"xabcdefghijx":                      "x{{secret:c}}x",
		"abcdefghijkl":                      "{{secret:c}}",
		"abcdefghefghijkl":                  "{{secret:a}}{{secret:b}}",
		"abcdefghabcdefgh":                  "{{secret:a}}",
		"abcdefgh abcdefgh":                 "{{secret:a}} {{secret:a}}",
		"same-value":                        "{{secret:d}}",
		"aaaaaaaaaaaaaaaaaaaa":              "{{secret:n}}",
		`\u0061bcdefgh`:                     "{{secret:a}}",
		`abcdefgh \"efghijkl%22abcdefghij.`: `{{secret:a}} \"{{secret:b}}%22{{secret:c}}.`,
	} {
		if got := string(k.Scrub([]byte(text))); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestScrubManyHits: a text made of values does not become a larger one.
func TestScrubManyHits(t *testing.T) {
	k := resolved(t, map[string]string{"key": "12345678"})
	if got := string(k.Scrub([]byte(strings.Repeat("12345678,", 10_000)))); strings.Count(got, "{{secret:key}},") != 10_000 {
		t.Errorf("%d bytes", len(got))
	}
	for _, text := range []string{"12345678,", `\u0031\u0032345678,`, "%312345678,"} {
		if got := string(k.Scrub([]byte(strings.Repeat(text, 10_001)))); strings.Contains(got, "345678") || len(got) > 10_001*len(text) {
			t.Errorf("%s: %d bytes: %.80s", text, len(got), got)
		}
	}
}

// TestScrubWhileResolving: nobody gets a value that is not scrubbed yet.
func TestScrubWhileResolving(t *testing.T) {
	values := map[string]string{}
	for i := range 50 {
		values["s"+strconv.Itoa(i)] = fmt.Sprintf("value-%d-%d", i, i)
	}
	k := keeper(t, values)
	var all sync.WaitGroup
	for name := range values {
		all.Go(func() {
			text, err := k.Expand("{{secret:" + name + "}}")
			if err != nil {
				t.Error(err)
			}
			if got := string(k.Scrub([]byte(text))); got != "{{secret:"+name+"}}" {
				t.Errorf("%s came back as %s", text, got)
			}
		})
	}
	all.Wait()
}

// FuzzScrub: a value is found in every way that it is written, whatever stands
// around it, and a text that shows none is left alone.
func FuzzScrub(f *testing.F) {
	f.Add("ghp_0123456789", "before ", " after", uint64(0))
	f.Add(`quote "\`+"\n\x01😀", `{"a":"`, `"}`, uint64(7))
	f.Add("%2F%2F%2F%2F", "%", "%2", uint64(3))
	f.Add("aaaaaaaaaaaa", "aaa", "aaa", uint64(9))
	f.Fuzz(func(t *testing.T, value, before, after string, seed uint64) {
		k := keeper(t, map[string]string{"key": value})
		if k.Check("key") != nil {
			return
		}
		random := rand.New(rand.NewPCG(seed, 0))
		// Some characters as they are, others escaped, and always those that escape.
		mixed := func(layer func(string) string) string {
			var b strings.Builder
			for _, r := range value {
				if write := string(r); random.IntN(2) == 0 || r == '\\' || r == '%' {
					b.WriteString(layer(write))
				} else {
					b.WriteString(write)
				}
			}
			return b.String()
		}
		for _, written := range []string{
			value, mixed(asUnits), mixed(asPercent), asUnits(mixed(asPercent)), asPercent(mixed(asUnits)), asJSON(mixed(asUnits)),
			hex.EncodeToString([]byte(value)),
		} {
			text := before + " " + written + " " + after
			if got := k.ScrubText(text); got == text || strings.Contains(got, value) && !strings.Contains("{{secret:key}}", value) {
				t.Errorf("%q is %q", text, got)
			}
		}
		text := []byte(before + after)
		got := k.Scrub(text)
		if bytes.Contains(text, []byte(value)) == bytes.Equal(got, text) && !mayShow(string(text), value) {
			t.Errorf("%q is %q", text, got)
		}
	})
}

// mayShow reports whether a text can show a value in another way than as it is.
func mayShow(text, value string) bool {
	return strings.ContainsAny(text, `\%+`) || len(text) > len(value) || strings.Contains("{{secret:key}}", value)
}

func BenchmarkScrub(b *testing.B) {
	values := map[string]string{}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 10 {
		values["s"+strconv.Itoa(i)] = fmt.Sprintf("ghp_%016x%016x", random.Uint64(), random.Uint64())
	}
	line := `{"type":"text","text":"The quick brown fox said \"hello\" to /usr/share/doc.\n"},`
	for name, k := range map[string]*secrets.Keeper{"none": keeper(b, values), "10": resolved(b, values)} {
		for _, size := range []int{300, 64 << 10, 1 << 20} {
			text := []byte(strings.Repeat(line, size/len(line)+1)[:size])
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				b.SetBytes(int64(size))
				for b.Loop() {
					k.Scrub(text)
				}
			})
		}
	}
	k := resolved(b, values)
	for name, part := range map[string]string{"escapes": `\\\\`, "percents": "%25%25", "values": values["s0"] + " ", "almost": values["s0"][:35]} {
		text := []byte(strings.Repeat(part, 1<<20/len(part)))
		b.Run("worst/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				k.Scrub(text)
			}
		})
	}
}
