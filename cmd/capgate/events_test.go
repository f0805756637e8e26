package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"capgate/guardrail"
)

// calls lets an agent call over standard input and output. Each request waits for
// the answer to the one before; the answers are returned.
func (p place) calls(requests ...string) (answers []string) {
	p.t.Helper()
	in, requested := io.Pipe()
	answered, out := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(context.Background(), []string{"-c", filepath.Join(p.dir, "capgate.yml"), "stdio", "--agent", "scout"}, stdio{in: in, out: out, err: io.Discard})
		out.Close()
	}()
	lines := bufio.NewScanner(answered)
	for _, r := range requests {
		if _, err := io.WriteString(requested, r+"\n"); err != nil {
			p.t.Fatal(err)
		}
		if lines.Scan() {
			answers = append(answers, lines.Text())
		}
	}
	requested.Close()
	if code := <-ended; code != exitOK {
		p.t.Fatalf("stdio: exit %d", code)
	}
	return answers
}

const (
	demoMetaParams = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	allowedCall    = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files__read","arguments":{"path":"docs/guide.md"},` + demoMetaParams + `}}`
	deniedCall     = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"files__read","arguments":{"path":"notes/plans.md"},` + demoMetaParams + `}}`
)

// TestEventsOfCalls: what an agent was told of a denial is found by what it was
// told, and an allowed call with what became of it.
func TestEventsOfCalls(t *testing.T) {
	p := newPlace(t)
	answers := p.calls(allowedCall, deniedCall)
	var denied struct {
		Result struct {
			Meta map[string]struct{ Event string } `json:"_meta"`
		}
	}
	if err := json.Unmarshal([]byte(answers[1]), &denied); err != nil {
		t.Fatal(err)
	}
	ref := denied.Result.Meta["capgate/denial"].Event
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"events", "query", "--agent", "scout", "--kind", "decision"}, []string{
			`^20[0-9: -]+  agents/scout +allow  files\.read  fs\.read /.*/work/docs/guide\.md  [0-9a-f]{16}$`,
			`^20[0-9: -]+  agents/scout +deny  files\.read  fs\.read /.*/work/notes/plans\.md  scope_violation  ` + ref + `$`,
		}},
		{[]string{"events", "query", "--code", "scope_violation", "--tool", "files.read", "--decision", "deny"}, []string{ref}},
		{[]string{"events", "query", "--kind", "outcome"}, []string{`  done  files\.read  after .*, [0-9]+ bytes  [0-9a-f]{16}$`}},
		{[]string{"events", "query", "--ref", strings.ToUpper(ref[:12])}, []string{
			`^deny  scope_violation$`, `^  event    ` + ref, `^  tool     files\.read$`,
			`^  needs    fs\.read /.*/work/notes/plans\.md  argument path$`, `^  text     this needs fs.read notes/plans.md`,
		}},
		{[]string{"events", "query", "--decision", "allow", "--json"}, []string{`^\{"seq":[0-9]+,.*"decision":"allow"`}},
		{[]string{"events", "verify"}, []string{`^ok: 1 files, `}},
	} {
		got := p.run(c.args...)
		for _, want := range c.want {
			if !regexp.MustCompile(`(?m)` + want).MatchString(got) {
				t.Errorf("%v: no %q in\n%s", c.args, want, got)
			}
		}
	}
	allowed := strings.Fields(p.run("events", "query", "--decision", "allow"))
	if got := p.run("events", "query", "--ref", allowed[len(allowed)-1]); !strings.Contains(got, "  outcome  after ") || !strings.Contains(got, "  grant    fs.read{in=") {
		t.Errorf("the allowed call: %s", got)
	}
}

// TestEventsOfSession: a session's events are found by the name that they have of it, and no others.
func TestEventsOfSession(t *testing.T) {
	p := newPlace(t)
	const hello, ready = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	call := strings.Replace(deniedCall, ","+demoMetaParams, "", 1)
	for range 2 {
		p.calls(hello, ready+"\n"+call)
	}
	var e struct{ Session string }
	first, _, _ := strings.Cut(p.run("events", "query", "--decision", "deny", "--json"), "\n")
	if err := json.Unmarshal([]byte(first), &e); err != nil || e.Session == "" {
		t.Fatalf("%s: %v", first, err)
	}
	for want, args := range map[int][]string{1: {"--session", e.Session}, 2: {}} {
		if got := p.run(append([]string{"events", "query", "--decision", "deny"}, args...)...); strings.Count(got, "plans.md") != want {
			t.Errorf("%v: %s", args, got)
		}
	}
}

// TestEventsFollow: tail -f shows what other processes record, until it is ended.
func TestEventsFollow(t *testing.T) {
	p := newPlace(t)
	p.run("agents", "token", "issue", "scout")
	ctx, cancel := context.WithCancel(t.Context())
	shown, out := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"-c", filepath.Join(p.dir, "capgate.yml"), "events", "tail", "-f"}, stdio{out: out, err: io.Discard})
		out.Close()
	}()
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(shown); s.Scan(); {
			lines <- s.Text()
		}
	}()
	if old := <-lines; !strings.Contains(old, "is issued") {
		t.Errorf("the last event: %q", old)
	}
	log, err := guardrail.Open(guardrail.Options{Dir: filepath.Join(p.dir, ".capgate", "events")})
	if err != nil {
		t.Fatal(err)
	}
	again := time.NewTicker(10 * time.Millisecond) // from when on it follows cannot be seen
	defer again.Stop()
	for seen := false; !seen; {
		select {
		case line := <-lines:
			if seen = strings.Contains(line, "somebody else writes"); !seen {
				t.Errorf("shown: %q", line)
			}
		case <-again.C:
			if _, err := log.Record(&guardrail.Event{Kind: guardrail.Notice, Text: "somebody else writes"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
	cancel()
	for range lines { // what it had still to say
	}
	if code := <-ended; code != exitOK {
		t.Errorf("exit %d", code)
	}
}

// TestEventsOfProviders: a line about a model's provider says which one, and what was read.
func TestEventsOfProviders(t *testing.T) {
	p := newPlace(t)
	log, err := guardrail.Open(guardrail.Options{Dir: filepath.Join(p.dir, ".capgate", "events")})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []guardrail.Event{
		{Kind: guardrail.Decision, Upstream: "provider/openai", Method: "POST /v1/responses", Decision: "allow"},
		{Kind: guardrail.Notice, Upstream: "provider/openai", Method: "POST /v1/responses", Tool: "web_search", Text: "seen", Needs: []guardrail.Need{{Verb: "net.get", Object: "evil.example"}}},
		{Kind: guardrail.Outcome, Upstream: "provider/openai", Method: "POST /v1/responses"},
	} {
		if _, err := log.Record(&e); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	got := p.run("events", "query")
	for _, want := range []string{
		"  allow  provider/openai POST /v1/responses  ",
		"  notice  provider/openai web_search  seen  net.get evil.example  ",
		"  done  provider/openai POST /v1/responses  after ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// TestEventsOfFailures: why a server did not answer is shown wherever the event is.
func TestEventsOfFailures(t *testing.T) {
	p := newPlace(t)
	log, err := guardrail.Open(guardrail.Options{Dir: filepath.Join(p.dir, ".capgate", "events")})
	if err != nil {
		t.Fatal(err)
	}
	const why = `upstream "up" ended: signal: killed`
	ref, err := log.Record(&guardrail.Event{Kind: guardrail.Refusal, Method: "tools/call", Tool: "up.echo", Code: "upstream_failed", Error: why})
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if got := p.run("events", "query"); !strings.Contains(got, "  refused  up.echo  "+why+"  upstream_failed  ") {
		t.Errorf("in a line: %s", got)
	}
	if got := p.run("events", "query", "--ref", ref); !strings.Contains(got, "  error    "+why) {
		t.Errorf("as a whole: %s", got)
	}
}
