package agents_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"capgate/agents"
)

// noon is when the tests on credentials begin.
func noon() time.Time { return time.Date(2026, 1, 31, 12, 0, 0, 500, time.UTC) }

func issue(t testing.TB, c *agents.Credentials, agent, note string, life time.Duration) (string, *agents.Credentials) {
	t.Helper()
	token, next, err := c.Issue(agent, note, life, noon(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return token, next
}

// TestRecognise is R-SEC-11: an agent is who holds its token, and nobody else.
func TestRecognise(t *testing.T) {
	scout, c := issue(t, nil, "scout", "laptop", 0)
	lead, c := issue(t, c, "agents/lead", "", time.Hour)
	for _, set := range []*agents.Credentials{c, reread(t, c)} {
		got, ok := set.Recognise(scout, noon().AddDate(50, 0, 0))
		if !ok || got.Agent != "agents/scout" || got.Note != "laptop" || !got.Expires.IsZero() {
			t.Errorf("scout: %+v, %v", got, ok)
		}
		got, ok = set.Recognise(lead, noon().Add(time.Hour-time.Second))
		if !ok || got.Agent != "agents/lead" {
			t.Errorf("lead: %+v, %v", got, ok)
		}
		if got, ok := set.Recognise(lead, noon().Add(time.Hour)); ok || got != (agents.Credential{}) {
			t.Errorf("an expired token: %+v", got)
		}
	}
	var zero agents.Credentials
	for _, none := range []*agents.Credentials{nil, {}, &zero} {
		if _, ok := none.Recognise(scout, noon()); ok {
			t.Error("nobody has credentials")
		}
	}
	if text := string(c.Encode()); strings.Contains(text, scout[len(scout)-43:]) {
		t.Errorf("the secret is kept:\n%s", text)
	}
}

// TestWholeHash: every bit of the hash that is kept counts.
func TestWholeHash(t *testing.T) {
	token, c := issue(t, nil, "scout", "", 0)
	data := c.Encode()
	head := []byte(`"hash":"`)
	at := bytes.Index(data, head) + len(head)
	for i := range 64 {
		other := bytes.Clone(data)
		if other[at+i]++; other[at+i] != '1' {
			other[at+i] = '0'
		}
		set, err := agents.ParseCredentials(other)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := set.Recognise(token, noon()); ok {
			t.Errorf("recognised by a hash that differs in digit %d", i)
		}
	}
}

// TestOutlived: that a token has expired is told to who shows its secret, and to nobody else.
func TestOutlived(t *testing.T) {
	scout, c := issue(t, nil, "scout", "", 0)
	lead, c := issue(t, c, "agents/lead", "", time.Hour)
	if got, ok := c.Outlived(lead, noon().Add(time.Hour)); !ok || got.Agent != "agents/lead" {
		t.Errorf("an expired token: %+v, %v", got, ok)
	}
	for text, at := range map[string]time.Duration{lead: 0, scout: time.Hour, lead[:len(lead)-43] + scout[len(scout)-43:]: time.Hour} {
		if got, ok := c.Outlived(text, noon().Add(at)); ok || got != (agents.Credential{}) {
			t.Errorf("%s after %s has expired: %+v", text, at, got)
		}
	}
}

func reread(t *testing.T, c *agents.Credentials) *agents.Credentials {
	t.Helper()
	again, err := agents.ParseCredentials(c.Encode())
	if err != nil {
		t.Fatalf("%v in\n%s", err, c.Encode())
	}
	if diff := cmp.Diff(slices.Collect(c.All()), slices.Collect(again.All())); diff != "" {
		t.Error(diff)
	}
	if !bytes.Equal(again.Encode(), c.Encode()) {
		t.Errorf("encoded again:\n%s\n%s", c.Encode(), again.Encode())
	}
	return again
}

func TestNotRecognised(t *testing.T) {
	token, c := issue(t, nil, "scout", "", 0)
	other, c := issue(t, c, "lead", "", 0)
	const secretAt = len("cg_0123456789abcdef_")
	for name, text := range map[string]string{
		"empty":                  "",
		"prefix":                 "cg_",
		"bearer":                 "Bearer " + token,
		"space":                  token + " ",
		"line":                   token + "\n",
		"short":                  token[:len(token)-1],
		"upper":                  strings.ToUpper(token),
		"no secret":              token[:secretAt],
		"hash":                   token[:secretAt] + strings.Repeat("A", 43),
		"secret of another":      token[:secretAt] + other[secretAt:],
		"id of nobody":           "cg_0123456789abcdef_" + token[secretAt:],
		"other prefix":           "cG_" + token[3:],
		"other separator":        token[:secretAt-1] + "-" + token[secretAt:],
		"foreign characters":     token[:len(token)-2] + "é",
		"padding":                token[:len(token)-1] + "=",
		"long":                   strings.Repeat(token, 100_000),
		"standard base64":        token[:len(token)-1] + "+",
		"id with a foreign rune": "cg_" + strings.Repeat("g", 16) + token[secretAt-1:],
	} {
		if got, ok := c.Recognise(text, noon()); ok {
			t.Errorf("%s: %.80q is %+v", name, text, got)
		}
	}
	// Every other way to write the last character, two bits of which mean nothing.
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for i := range len(token) {
		for _, r := range alphabet {
			text := token[:i] + string(r) + token[i+1:]
			if got, ok := c.Recognise(text, noon()); ok != (text == token) {
				t.Fatalf("%q: %+v, %v", text, got, ok)
			}
		}
	}
}

func TestIssueRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		agent, note string
		life        time.Duration
	}{
		"no agent":     {"", "", 0},
		"not an id":    {"../scout", "", 0},
		"self":         {"self", "", 0},
		"negative":     {"scout", "", -1},
		"over at once": {"scout", "", 100},
		"endless":      {"scout", "", 1 << 62},
		"two lines":    {"scout", "a\nb", 0},
		"escape":       {"scout", "\x1b[2J", 0},
		"bidi":         {"scout", "\u202e", 0},
		"not text":     {"scout", "\xff", 0},
		"long":         {"scout", strings.Repeat("x", 201), 0},
	} {
		if token, next, err := (*agents.Credentials)(nil).Issue(tc.agent, tc.note, tc.life, noon(), rand.Reader); err == nil || token != "" || next != nil {
			t.Errorf("%s: %q, %v", name, token, err)
		}
	}
	if _, _, err := (&agents.Credentials{}).Issue("scout", "", 0, noon(), strings.NewReader("too few bits")); err == nil {
		t.Error("issued without randomness")
	}
	same := strings.Repeat("x", 40)
	_, c, err := (*agents.Credentials)(nil).Issue("scout", "", 0, noon(), strings.NewReader(same))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Issue("lead", "", 0, noon(), strings.NewReader(same)); err == nil {
		t.Error("an id was given twice")
	}
}

// TestImmutable: a change makes others and leaves those that were.
func TestImmutable(t *testing.T) {
	scout, one := issue(t, nil, "scout", "", 0)
	text := string(one.Encode())
	lead, two := issue(t, one, "lead", "", 0)
	_, _, err := two.Rotate("scout", 0, 0, noon(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	id := slices.Collect(one.All())[0].ID
	three, ok := two.Revoke(id)
	if !ok {
		t.Fatal("not revoked")
	}
	if string(one.Encode()) != text {
		t.Error("the first have changed")
	}
	for _, tc := range []struct {
		c           *agents.Credentials
		scout, lead bool
	}{{one, true, false}, {two, true, true}, {three, false, true}} {
		_, isScout := tc.c.Recognise(scout, noon())
		_, isLead := tc.c.Recognise(lead, noon())
		if isScout != tc.scout || isLead != tc.lead {
			t.Errorf("%s: %v %v", tc.c.Encode(), isScout, isLead)
		}
	}
	if only, err := two.Only("lead"); err != nil || string(only.Encode()) != string(three.Encode()) {
		t.Errorf("of one only: %s, %v", only.Encode(), err)
	}
	if again, ok := three.Revoke(id); ok || again != three {
		t.Error("revoked twice")
	}
	if _, ok := (*agents.Credentials)(nil).Revoke(id); ok {
		t.Error("revoked from nothing")
	}
	for have := range two.All() {
		have.Agent = "agents/boss"
	}
	if got := slices.Collect(two.Of("lead")); len(got) != 1 || got[0].Agent != "agents/lead" {
		t.Errorf("got %+v", got)
	}
}

func TestRotate(t *testing.T) {
	old, c := issue(t, nil, "scout", "ci", 0)
	ending, c := issue(t, c, "scout", "ci", time.Minute)
	bystander, c := issue(t, c, "lead", "", 0)
	recognised := func(c *agents.Credentials, token string, at time.Duration) bool {
		_, ok := c.Recognise(token, noon().Add(at))
		return ok
	}
	fresh, now, err := c.Rotate("agents/scout", 0, 0, noon(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if recognised(now, old, 0) || recognised(now, ending, 0) || !recognised(now, fresh, 0) || !recognised(now, bystander, 0) {
		t.Error("without grace")
	}
	if got, _ := now.Recognise(fresh, noon()); got.Note != "ci" {
		t.Errorf("the note is %q", got.Note)
	}
	fresh, later, err := c.Rotate("scout", 24*time.Hour, time.Hour, noon(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		token string
		at    time.Duration
		want  bool
	}{
		{old, 59 * time.Minute, true},
		{old, time.Hour, false},
		{ending, 30 * time.Second, true},
		{ending, time.Minute, false},
		{fresh, 23 * time.Hour, true},
		{fresh, 24 * time.Hour, false},
	} {
		if got := recognised(reread(t, later), tc.token, tc.at); got != tc.want {
			t.Errorf("%s after %s: %v", tc.token, tc.at, got)
		}
	}
	for _, tc := range []struct {
		agent       string
		life, grace time.Duration
	}{{"nobody", 0, 0}, {"", 0, 0}, {"scout", 0, -1}, {"scout", 0, 1 << 62}, {"scout", -1, 0}} {
		if token, _, err := c.Rotate(tc.agent, tc.life, tc.grace, noon(), rand.Reader); err == nil || token != "" {
			t.Errorf("%+v: %q", tc, token)
		}
	}
}

// TestForgotten: what has long expired is not kept for ever.
func TestForgotten(t *testing.T) {
	_, c := issue(t, nil, "scout", "", time.Hour)
	for days, want := range map[int]int{30: 2, 31: 1} {
		_, next, err := c.Issue("scout", "", 0, noon().AddDate(0, 0, days), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(slices.Collect(next.All())); got != want {
			t.Errorf("after %d days: %d", days, got)
		}
	}
}

func TestParseCredentials(t *testing.T) {
	line := func(change ...string) string {
		text := `{"id":"0123456789abcdef","agent":"agents/scout","hash":"` + strings.Repeat("a1", 32) +
			`","created":"2026-01-31T12:00:00Z","expires":"never","note":""}`
		return strings.NewReplacer(change...).Replace(text)
	}
	file := func(lines ...string) string { return `{"credentials":[` + strings.Join(lines, ",") + `]}` }
	for name, text := range map[string]string{
		"none at all":  "",
		"empty list":   file(),
		"one":          file(line()),
		"two":          file(line(), line("0123", "4567")),
		"with an end":  file(line("never", "2026-02-01T00:00:00Z")),
		"other order":  file(line("agents/scout", "agents/zoe"), line("0123", "4567")),
		"spaces":       " { \"credentials\" : [ ] } ",
		"escaped note": file(line(`"note":""`, `"note":"\u0041"`)),
	} {
		c, err := agents.ParseCredentials([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		reread(t, c)
	}
	for name, text := range map[string]string{
		"space":              " ",
		"null":               "null",
		"list":               "[" + line() + "]",
		"no list":            "{}",
		"null list":          `{"credentials":null}`,
		"unknown key":        `{"credentials":[],"version":1}`,
		"key in another":     file(line(`"note":""`, `"note":"","admin":"yes"`)),
		"missing key":        file(line(`,"note":""`, "")),
		"misspelled key":     file(line("expires", "expire")),
		"duplicate key":      file(line(`"note":""`, `"note":"","id":"x"`)),
		"two lists":          `{"credentials":[],"credentials":[]}`,
		"case":               `{"Credentials":[]}`,
		"duplicate id":       file(line(), line("scout", "lead")),
		"short hash":         file(line("a1a1", "a1")),
		"hash in capitals":   file(line("a1", "A1")),
		"hash of zeros":      file(line("a1", "00")),
		"hash no hex":        file(line("a1", "xx")),
		"id in capitals":     file(line("abcdef", "ABCDEF")),
		"long id":            file(line("abcdef", "abcdef0")),
		"agent not in form":  file(line("agents/scout", "scout")),
		"agent no id":        file(line("agents/scout", "agents/..")),
		"no agent":           file(line("agents/scout", "")),
		"created not a time": file(line("2026-01-31T12:00:00Z", "yesterday")),
		"expires empty":      file(line("never", "")),
		"expires null":       file(line(`"never"`, "null")),
		"expires number":     file(line(`"never"`, "0")),
		"expires zero":       file(line("never", "0001-01-01T00:00:00Z")),
		"expires local":      file(line("never", "2026-02-01T00:00:00+01:00")),
		"expires fraction":   file(line("never", "2026-02-01T00:00:00.5Z")),
		"expires impossible": file(line("never", "2026-02-30T00:00:00Z")),
		"note with escape":   file(line(`"note":""`, `"note":"\u001b"`)),
		"second document":    file() + file(),
		"cut off":            file(line())[:100],
		"not text":           "\xff",
	} {
		if c, err := agents.ParseCredentials([]byte(text)); err == nil || c != nil {
			t.Errorf("%s: %s", name, c.Encode())
		}
	}
}

func TestManyCredentials(t *testing.T) {
	var file bytes.Buffer
	file.WriteString(`{"credentials":[`)
	const most = 10_000
	for i := range most {
		fmt.Fprintf(&file, `{"id":"%016x","agent":"agents/a%d","hash":"%064x","created":"2026-01-31T12:00:00Z","expires":"never","note":"%s"},`,
			i, i, i+1, strings.Repeat("n", 200))
	}
	full := file.Bytes()[:file.Len()-1]
	c, err := agents.ParseCredentials(append(slices.Clone(full), "]}"...))
	if err != nil {
		t.Fatal(err)
	}
	reread(t, c)
	if _, _, err := c.Issue("scout", "", 0, noon(), rand.Reader); err == nil {
		t.Error("one more was issued")
	}
	over := fmt.Appendf(slices.Clone(full), `,{"id":"%016x","agent":"agents/b","hash":"%064x","created":"2026-01-31T12:00:00Z","expires":"never","note":""}]}`, most, 1)
	if _, err := agents.ParseCredentials(over); err == nil || !strings.Contains(err.Error(), "the most is") {
		t.Errorf("one more was read: %v", err)
	}
}

// TestRecogniseAllocates: it is on the path of every request.
func TestRecogniseAllocates(t *testing.T) {
	token, c := issue(t, nil, "scout", "", time.Hour)
	unknown := "cg_0123456789abcdef" + token[19:]
	at := noon()
	for _, text := range []string{token, unknown, "x"} {
		if n := testing.AllocsPerRun(100, func() { c.Recognise(text, at) }); n != 0 {
			t.Errorf("%s: %v allocations", text, n)
		}
	}
}

func FuzzParseCredentials(f *testing.F) {
	token, c := issue(f, nil, "scout", "laptop", time.Hour)
	f.Add(c.Encode(), token)
	f.Add([]byte(nil), "cg_0123456789abcdef_")
	f.Add([]byte(`{"credentials":[]}`), "")
	f.Fuzz(func(t *testing.T, data []byte, token string) {
		c, err := agents.ParseCredentials(data)
		if err != nil {
			return
		}
		reread(t, c)
		if len(data) > 0 && !json.Valid(data) {
			t.Error("read what is not JSON")
		}
		if have, ok := c.Recognise(token, noon()); ok && have.Expired(noon()) {
			t.Error("recognised an expired token")
		}
		for have := range c.All() {
			if _, _, err := c.Rotate(have.Agent, 0, 0, noon(), rand.Reader); err != nil {
				t.Errorf("%s: %v", have.Agent, err)
			}
		}
	})
}

func BenchmarkRecognise(b *testing.B) {
	token, c := issue(b, nil, "scout", "", 0)
	for range 1000 {
		_, c = issue(b, c, "lead", "", 0)
	}
	at := noon()
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := c.Recognise(token, at); !ok {
			b.Fatal("not recognised")
		}
	}
}

// TestWithoutTokens: of a token that stands in a text its id is left.
func TestWithoutTokens(t *testing.T) {
	const id, secret = "cg_0123456789abcdef_", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN-_9"
	for text, want := range map[string]string{
		"":                                     "",
		"POST /v1/messages":                    "POST /v1/messages",
		"a?key=" + id + secret:                 "a?key=" + id + "…",
		id + secret + "&" + id + secret + "x":  id + "…&" + id + "…",
		id + secret[:9] + "…":                  id + "……",
		"cg_" + id + secret + "/b":             "cg_" + id + "…/b",
		"cg_0123":                              "cg_0123",
		"cg_0123456789abcdeX_" + secret:        "cg_0123456789abcdeX_" + secret,
		id:                                     id,
		"É" + strings.ToUpper(id+secret) + "/": "É" + strings.ToUpper(id) + "…/",
		"xcG_0123456789abcdeF_" + secret:       "xcG_0123456789abcdeF_…",
	} {
		if got := agents.WithoutTokens(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
