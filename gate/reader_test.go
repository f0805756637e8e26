package gate_test

import (
	"math/rand/v2"
	"net/url"
	"path"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"capgate/capability"
	"capgate/gate"
	"capgate/mapping"
)

// readers are ways in which servers find what a URI names. Each returns a host and a path as one.
var readers = map[string]func(uri string) string{
	"net/url": func(uri string) string {
		u, err := url.Parse(uri)
		if err != nil {
			return ""
		}
		return place(u.Hostname() + "/" + u.Path + u.Opaque)
	},
	"all behind the scheme": func(uri string) string { return place(bare(uri)) },
	"no query":              func(uri string) string { return place(unqueried(bare(uri))) },
	"between the first two ://": func(uri string) string {
		_, rest, ok := strings.Cut(uri, "://")
		between, _, _ := strings.Cut(rest, "://")
		if !ok {
			return ""
		}
		return place(between)
	},
	"behind the first @": func(uri string) string {
		host, rest, _ := strings.Cut(unqueried(bare(uri)), "/")
		if _, name, ok := strings.Cut(host, "@"); ok && strings.Contains(uri, "://") {
			host = name
		}
		return place(host + "/" + rest)
	},
	"without its scheme wherever that stands": func(uri string) string {
		scheme, _, _ := strings.Cut(uri, ":")
		if plain, err := url.PathUnescape(uri); err == nil {
			uri = plain
		}
		return place(bare(scheme + "://" + strings.ReplaceAll(bare(uri), scheme+"://", "")))
	},
	"behind as much as its scheme is long with slashes": func(uri string) string {
		scheme, _, _ := strings.Cut(uri, ":")
		return place(unqueried(uri[min(len(uri), len(scheme)+3):]))
	},
	"between the first two colons": func(uri string) string { return place(strings.Split(uri, ":")[1]) },
	"behind the last @": func(uri string) string {
		rest := bare(uri)
		return place(rest[strings.LastIndexByte(rest, '@')+1:])
	},
	"decoded as often as it goes": func(uri string) string {
		for range 4 {
			if plain, err := url.PathUnescape(uri); err == nil {
				uri = plain
			}
		}
		return place(unqueried(bare(uri)))
	},
	"a browser": func(uri string) string {
		_, rest, _ := strings.Cut(uri, ":")
		host, path, _ := strings.Cut(unqueried(strings.TrimLeft(strings.ReplaceAll(rest, `\`, "/"), "/")), "/")
		name, _, _ := strings.Cut(host[strings.LastIndexByte(host, '@')+1:], ":")
		return place(norm.NFKC.String(name) + "/" + path)
	},
	"Windows": func(uri string) string {
		segs := strings.Split(unqueried(bare(strings.ReplaceAll(uri, `\`, "/"))), "/")
		for i, seg := range segs {
			if plain, err := url.PathUnescape(seg); err == nil {
				seg = plain
			}
			seg, _, _ = strings.Cut(seg, ":")
			segs[i] = strings.TrimRight(seg, ". ")
		}
		return place(strings.Join(segs, "/"))
	},
	"without accents": func(uri string) string {
		plain, _ := url.PathUnescape(unqueried(bare(uri)))
		return place(strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Mn, r) {
				return -1
			}
			return r
		}, norm.NFKD.String(plain)))
	},
	"without parameters": func(uri string) string {
		segs := strings.Split(unqueried(bare(uri)), "/")
		for i, seg := range segs {
			segs[i], _, _ = strings.Cut(seg, ";")
		}
		return place(strings.Join(segs, "/"))
	},
	"a form's plus": func(uri string) string {
		plain, _ := url.QueryUnescape(unqueried(bare(uri)))
		return place(strings.TrimSpace(plain))
	},
	"the items of a list joined, as variables of templates are": func(uri string) string {
		return place(strings.ReplaceAll(unqueried(bare(uri)), ",", "/"))
	},
	"the items of a list joined, with the query": func(uri string) string { return place(strings.ReplaceAll(bare(uri), ",", "/")) },
	"ASCII only": func(uri string) string {
		plain, _ := url.PathUnescape(unqueried(bare(uri)))
		return place(ascii(plain))
	},
	"without marks": func(uri string) string {
		plain, _ := url.PathUnescape(unqueried(bare(uri)))
		return place(strings.NewReplacer("!", "", "'", "", "(", "", ")", "", ",", "", "=", "", "&", "", "+", "").Replace(plain))
	},
	"as names of files are made safe": func(uri string) string {
		plain, _ := url.PathUnescape(unqueried(bare(uri)))
		segs := strings.Split(plain, "/")
		for i, seg := range segs {
			seg = strings.Map(func(r rune) rune {
				if r >= 0x80 || !strings.ContainsRune("_.-", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
					return -1
				}
				return r
			}, ascii(strings.ReplaceAll(seg, " ", "_")))
			segs[i] = strings.Trim(seg, "._")
		}
		return place(strings.Join(segs, "/"))
	},
	"as SQL's LIKE reads what it knows": func(uri string) string {
		for _, known := range []string{"inner", "inner/a"} {
			if plain := bare(uri); len(plain) == len(known) && isLike(plain, known) {
				return known
			}
		}
		return ""
	},
	"behind the last colon, where there is no host": func(uri string) string {
		plain, _ := url.PathUnescape(unqueried(uri))
		if strings.Contains(plain, "://") {
			return ""
		}
		return place(plain[strings.LastIndexByte(plain, ':')+1:])
	},
	"decoded, and its first segment, and the others joined to a folder": func(uri string) string {
		plain, _ := url.PathUnescape(unqueried(uri))
		return joined(plain, 1)
	},
	"decoded, two segments, and the others joined to a folder": func(uri string) string {
		plain, _ := url.PathUnescape(unqueried(uri))
		return joined(plain, 2)
	},
	"its segments, each decoded and joined to a folder": func(uri string) string {
		at := ""
		for seg := range strings.SplitSeq(unqueried(bare(uri)), "/") {
			plain, err := url.PathUnescape(seg)
			if err != nil {
				plain = seg
			}
			if strings.HasPrefix(plain, "/") {
				at = ""
			}
			at = path.Join(at, plain)
		}
		return place(at)
	},
	"its first segment, and the others joined to a folder": func(uri string) string { return joined(uri, 1) },
	"two segments, and the others joined to a folder":      func(uri string) string { return joined(uri, 2) },
	"three segments, and the others joined to a folder":    func(uri string) string { return joined(uri, 3) },
}

// ascii is a text without accents, and without what is then not ASCII.
func ascii(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 0x80 {
			return -1
		}
		return r
	}, norm.NFKD.String(text))
}

// isLike reports whether a pattern of SQL without a % is of a text as long as it.
func isLike(like, text string) bool {
	for i := range len(text) {
		if like[i] != '_' && like[i] != text[i] {
			return false
		}
	}
	return true
}

// joined is what is left of a path joined to what it begins with, as Python does: what starts at the root is there.
func joined(uri string, n int) string {
	segs := strings.SplitN(unqueried(bare(uri)), "/", n+1)
	behind := strings.TrimRight(strings.Join(segs[:min(n, len(segs))], "/"), "/")
	if len(segs) > n && strings.HasPrefix(segs[n], "/") && !strings.HasSuffix(behind, ":") { // which is known
		return place(segs[n])
	}
	return place(strings.Join(segs, "/"))
}

func bare(uri string) string {
	_, rest, _ := strings.Cut(uri, ":")
	return strings.TrimPrefix(rest, "//")
}

func unqueried(text string) string {
	if i := strings.IndexAny(text, "?#"); i >= 0 {
		return text[:i]
	}
	return text
}

// place cleans what a server would look for beneath a folder of its own.
func place(name string) string {
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	return strings.ToLower(strings.TrimPrefix(path.Clean("/"+name), "/"))
}

// Whoever's grants are of a place reads no other one, and what needs more by its entry is not had without,
// whichever of the usual ways a server reads URIs in.
func TestResourceByEveryReader(t *testing.T) {
	m, _, err := mapping.Parse("m.yml", []byte(`server: s
tools: {}
resources:
  docs://inner/*: { requires: [memory.write] }
  fix://dir/*: { requires: [memory.read] }
  fix://team-*: { requires: [memory.read] }
  notes: memory.read
`))
	if err != nil {
		t.Fatal(err)
	}
	g := gateOf(t, map[string]string{
		"all.md":  record(`resource.read: { uris: ["docs:*"] }`),
		"dir.md":  record(`resource.read: { uris: ["data://dir/*"] }`, `memory.read: { keys: ["dir/*"] }`),
		"end.md":  record(`resource.read: { uris: ["data://*/end"] }`),
		"keys.md": record(`memory.read: { keys: ["*-end"] }`),
		"team.md": record(`resource.read: { uris: ["data://team-*"] }`),
		"fix.md":  record(`memory.read: { keys: ["*"] }`),
	})
	of := &gate.Resources{Name: "s", Item: "s", Mapping: m, View: capability.View{Cwd: "/w"}}
	isIn := func(at string) bool { return at == "dir" || strings.HasPrefix(at, "dir/") }
	ofTeam := func(at string) bool { return strings.HasPrefix(at, "team-") }
	r := rand.New(rand.NewPCG(3, 4))
	for _, who := range []struct {
		agent, begin, end string
		may               func(at string) bool
	}{
		{"all", "docs:", "", func(at string) bool { return at != "inner" && !strings.HasPrefix(at, "inner/") }},
		{"all", "docs://", "inner/a", func(at string) bool { return at != "inner" && !strings.HasPrefix(at, "inner/") }},
		{"dir", "data://dir/", "", isIn},
		{"dir", "notes://dir/", "", isIn},
		{"end", "data://", "/end", func(at string) bool { return at == "end" || strings.HasSuffix(at, "/end") }},
		{"keys", "notes://", "-end", func(at string) bool { return strings.HasSuffix(at, "-end") }},
		{"team", "data://team-", "", ofTeam},
		{"fix", "fix://dir/", "", isIn},
		{"fix", "fix://team-", "", ofTeam},
	} {
		read := 0
		for range 6000 {
			uri := who.begin
			for range r.IntN(6) {
				if n := r.IntN(len(pieces) + 1); n < len(pieces) {
					uri += pieces[n]
					continue
				}
				scheme, _, _ := strings.Cut(who.begin, ":")
				uri += scheme + "://"
			}
			if uri += who.end; !g.Resource("agents/"+who.agent, of, uri).Decision.Allowed() {
				continue
			}
			read++
			for name, at := range readers {
				if is := at(uri); is != "" && !who.may(is) {
					t.Errorf("%s may read %s, which is %s by %s", who.agent, uri, is, name)
				}
			}
		}
		if read < 50 {
			t.Errorf("%s reads only %d of what begins with %s: the test has lost its teeth", who.agent, read, who.begin)
		}
	}
}

// pieces are what the URIs are put together from.
var pieces = []string{
	"a", "inner", "%69nner", "INNER", "/", "/", "//", "?", "#", "@", ":", ":80", "://", "..", "/../", "/./", ";", `\`,
	"%3f", "%23", "%40", "%3a", "%2e", "%2F", "%25", ".", "-", "~", "[", "]", "&", "|", "\t", "\u200b",
	"*", "í", "%C3%AD", "i\u0301", "ｉ", "nner", "+", "%20", "=", "xx", "inner/a", "%3A%2F%2F",
	"..,", ",", "_", "!", "ж", "\u0301", "inne_", "in", "('", "&", ".ж.", "?x=b,..,..,",
}
