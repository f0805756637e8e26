package secrets_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestLearnt: a token that is renewed every few minutes is one that can be used for as long as
// the gateway runs. Those of some hours ago are not known any more, and all others are.
func TestLearnt(t *testing.T) {
	k := resolved(t, map[string]string{"a": "hunter2-hunter2"})
	token := func(n int) string { return fmt.Sprintf("%08d.%s", n, strings.Repeat("x", 2_000)) }
	const most = 3_000
	for n := range most {
		for _, value := range []string{token(n), "the-same-client-secret", "hunter2-hunter2"} {
			if err := k.Learn("up", "o", value); err != nil {
				t.Fatalf("token %d: %v", n, err)
			}
		}
	}
	for text, want := range map[string]string{
		token(most - 1): "{{secret:o}}", token(most - 100): "{{secret:o}}", "the-same-client-secret": "{{secret:o}}",
		"hunter2-hunter2": "{{secret:a}}", token(0): token(0), token(most - 200): token(most - 200),
	} {
		if got := string(k.ScrubOf("up", []byte(text))); got != want {
			t.Errorf("%.30s becomes %.30s", text, got)
		}
		if got := k.ScrubTextOf("up", text); got != want {
			t.Errorf("the text %.30s becomes %.30s", text, got)
		}
	}
	if got := k.Known(); got != most+3 { // whoever looks whether it is another sees each
		t.Errorf("%d values have become known", got)
	}
}

// TestLearntOfOne: a server chooses what is learnt of it, and so which of its own words are taken out, and of
// no other's. What the configuration has is taken out everywhere, whoever has it too.
func TestLearntOfOne(t *testing.T) {
	const theirs, both, configured = "additionalProperties", "shared-by-two-upstreams", "configured-afterwards"
	k := keeper(t, map[string]string{"late": configured})
	learn := func(upstream string, values ...string) {
		t.Helper()
		for _, value := range values {
			if err := k.Learn(upstream, "oauth."+upstream, value); err != nil {
				t.Fatal(err)
			}
		}
	}
	learn("one", theirs, both, configured)
	learn("two", both)
	if _, err := k.Expand("{{secret:late}}"); err != nil {
		t.Fatal(err)
	}
	for n := range 1_000 {
		learn("one", fmt.Sprintf("token-%08d", n))
	}
	learn("one", theirs)
	text := strings.Join([]string{theirs, both, configured, "token-00000999"}, " ")
	const one, two, late = "{{secret:oauth.one}}", "{{secret:oauth.two}}", "{{secret:late}}"
	for upstream, want := range map[string]string{
		"one":  one + " " + both + " " + late + " " + one,
		"two":  theirs + " " + two + " " + late + " token-00000999",
		"else": theirs + " " + both + " " + late + " token-00000999",
		"":     theirs + " " + both + " " + late + " token-00000999",
	} {
		if got := string(k.ScrubOf(upstream, []byte(text))); got != want {
			t.Errorf("of %q: %s", upstream, got)
		}
		if got := k.ScrubTextOf(upstream, text); got != want {
			t.Errorf("the text of %q: %s", upstream, got)
		}
	}
	want := one + " " + two + " " + late + " " + one
	if got := string(k.Scrub([]byte(text))); got != want {
		t.Errorf("of all: %s", got)
	}
	if got := k.ScrubText(text); got != want {
		t.Errorf("the text of all: %s", got)
	}
}

// TestLearntAndRandom: tokens are taken out of whatever anybody says, as long as nobody could mean anything else
// by them. Where a server has one that reads like words, others may say these.
func TestLearntAndRandom(t *testing.T) {
	for _, token := range []string{
		"gho_16C7e42F292c6912E7710c838347Ae178B4a", "ya29.a0AfH6SMBx-9kQ3fT7", "550e8400-e29b-41d4-a716-446655440000", "sk-proj-4Tz8Qw2LmN9xVb7Rk3Yd",
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U", "xoxb-123456789012-1234567890123-4mt0t4l1yf3kT0k3nQ9",
		"9f86d081884c7d659a2feaa0c55ad015", "cT7+h3/Kp9aZ2Qx8Lm4W==",
	} {
		k := keeper(t, nil)
		if err := k.Learn("one", "o", token); err != nil {
			t.Fatal(err)
		}
		for _, upstream := range []string{"one", "two", ""} {
			if got := k.ScrubTextOf(upstream, "it is "+token); got != "it is {{secret:o}}" {
				t.Errorf("of %q: %s", upstream, got)
			}
		}
	}
	for _, words := range []string{
		"inputSchema", "additionalProperties", "structuredContent", "notifications/message", "customer-account-4711-balance", "2026-11-28-security-report.txt",
		`"isError":true`, `","isError":false,"a1B2c3D4e5F6`, "a1B2c3D4e5", "12345678901234567890", "the answer is 42 or 43", "C:\\Users\\a1b2c3d4e5f6\\x9Y8",
		"io.modelcontextprotocol/clientCapabilities", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "payments.transfer.2024", "Q3-report-2024-final-v2.docx",
		"getConfluencePageDescendants", "getJiraIssueRemoteIssueLinks", "searchConfluenceUsingCql", "get_s3_bucket_v2_acl", "describeEC2Instances",
		"/home/User1/Docs/Q3/Reports/All.md", "src/main/java/org/acme/Foo1Bar.java", "MAX_RETRIES_OF_V2_UPLOADS", "customers_by_q3_v2_and_h1_of_the_year",
		"Report2024ForTeamsOfAllOffices1",
	} {
		k := keeper(t, nil)
		if err := k.Learn("one", "o", words); err != nil {
			t.Fatal(err)
		}
		for upstream, want := range map[string]string{"one": "say {{secret:o}}", "two": "say " + words, "": "say " + words} {
			if got := k.ScrubTextOf(upstream, "say "+words); got != want {
				t.Errorf("of %q: %s", upstream, got)
			}
		}
		for _, encoded := range []string{hex.EncodeToString([]byte(words)), base64.StdEncoding.EncodeToString([]byte(words))} {
			if got := k.ScrubTextOf("two", encoded); got != encoded {
				t.Errorf("%s becomes %s", encoded, got)
			}
		}
	}
}

// TestLearntOfMany: a text is looked at once, however many servers there are that tokens were learnt of.
func TestLearntOfMany(t *testing.T) {
	text := []byte(strings.Repeat(`hello \"w\" \u00e9 %20 a\/b `, 10_000))
	took := func(upstreams int) time.Duration {
		k := keeper(t, nil)
		for i := range upstreams {
			if err := k.Learn(fmt.Sprint("up", i), "o", fmt.Sprintf("gho_16C7e42F292c6912E7%02d10c838347Ae178B4a", i)); err != nil {
				t.Fatal(err)
			}
		}
		best := time.Hour
		for range 5 {
			begun := time.Now()
			k.ScrubOf("up0", text)
			best = min(best, time.Since(begun))
		}
		return best
	}
	if one, many := took(1), took(40); many > 8*one {
		t.Errorf("it takes %s for the tokens of 40 servers, and %s for that of one", many, one)
	}
}

// TestLearntLong: what is long leaves room for the next, and what is too long is said.
func TestLearntLong(t *testing.T) {
	k := keeper(t, nil)
	long := func(n int) string { return fmt.Sprintf("%08d.%s", n, strings.Repeat("x", 1<<20)) }
	for n := range 20 {
		if err := k.Learn("up", "o", long(n)); err != nil {
			t.Fatal(err)
		}
		if text := long(n); k.ScrubTextOf("up", text) == text {
			t.Errorf("value %d is not known", n)
		}
	}
	if text := long(0); k.ScrubTextOf("up", text) != text {
		t.Error("the first is known")
	}
	if err := k.Learn("up", "o", strings.Repeat("x", 4<<20+1)); err == nil {
		t.Error("a value that there is no room for")
	}
}
