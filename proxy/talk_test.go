package proxy_test

import (
	"bufio"
	"cmp"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"capgate/guardrail"
	"capgate/mapping"
	"capgate/proxy"
)

var update = flag.Bool("update", false, "write what is got into testdata, for review")

// TestTalks plays the conversations in testdata/talks, in which time passes as it is
// written there. One has the sections
//
//	-- agent --   the record of the agent scout
//	-- meta --    what $META stands for in what the agent says; with it the agent is of
//	              the modern era, without it it has said initialize before the talk begins
//	-- server --  what the server answers by itself: on each line a method, and the member
//	              result or error of the answer
//	-- talk --    what is said
//	-- events --  what is recorded of it
//
// and of the talk the lines that are not indented are played:
//
//	agent: MESSAGE     the agent says it over stdio
//	server: MESSAGE    the server says it over HTTP, in answer to the request of that id,
//	                   or before the answer to the last one
//	server STATUS      the server answers the last request so
//	server cuts        it breaks the answer to the last request off
//	server goes        it ends, and can't be reached
//	server comes       it can be reached again, and knows no session
//	wait DURATION      nobody says anything
//
// The indented ones below are all that is heard because of it, and when. The members
// jsonrpc are left out, requests count from one at the server, and what is random has the
// name of what it is.
func TestTalks(t *testing.T) {
	names, err := filepath.Glob("testdata/talks/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			archive := txtar.Parse(data)
			texts := map[string]string{}
			for _, f := range archive.Files {
				texts[f.Name] = string(f.Data)
			}
			got := hold(t, texts)
			for i, f := range archive.Files {
				if heard, ok := got[f.Name]; ok {
					archive.Files[i].Data = []byte(heard)
					delete(got, f.Name)
				}
			}
			if len(got) > 0 {
				t.Fatalf("the sections talk and events are both wanted: %v", got)
			}
			if *update {
				if err := os.WriteFile(name, txtar.Format(archive), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := gocmp.Diff(strings.Split(string(data), "\n"), strings.Split(string(txtar.Format(archive)), "\n")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// hold plays the talk of a conversation, and returns it with what was heard and recorded.
func hold(t *testing.T, texts map[string]string) map[string]string {
	m, err := mapping.Builtin("filesystem")
	if err != nil {
		t.Fatal(err)
	}
	talk := &talk{t: t, reachable: true, byItself: map[string]string{}, numbers: map[string]string{}, posts: map[string]*post{}, random: map[string]string{}}
	for line := range strings.Lines(texts["server"]) {
		method, member, _ := strings.Cut(strings.TrimSpace(line), " ")
		talk.byItself[method] = member
	}
	up := &proxy.Upstream{Name: "files", Prefix: "files", Mapping: m, MayAsk: []string{"elicitation"}, Open: talk.open}
	inBubble(t, map[string]string{"scout": texts["agent"]}, []*proxy.Upstream{up}, func(t *testing.T, b *bubble) {
		talk.random["ROOT"], talk.events = b.root, b.events
		in, input := io.Pipe()
		output, out := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- b.server.Stdio(t.Context(), "scout", in, out) }()
		go talk.hear(output)
		talk.input, talk.meta = input, strings.TrimSpace(texts["meta"])
		if talk.meta == "" {
			talk.agent(strings.Replace(hello, `"jsonrpc":"2.0",`, "", 1))
			talk.agent(`{"method":"notifications/initialized"}`)
		}
		synctest.Wait()
		talk.lines, talk.heard, talk.requests = nil, nil, 0
		for line := range strings.Lines(texts["talk"]) {
			if line = strings.TrimRight(line, "\n"); !strings.HasPrefix(line, " ") && line != "" {
				talk.play(line)
			}
		}
		talk.act("goes")
		input.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		out.Close()
	})
	return map[string]string{"talk": strings.Join(talk.lines, "\n") + "\n", "events": talk.recorded()}
}

// recorded is what became of calls, and what was refused.
func (k *talk) recorded() string {
	var text strings.Builder
	for _, e := range k.events.all() {
		if e.Kind == guardrail.Notice {
			continue
		}
		fmt.Fprint(&text, e.Kind)
		why := e.Error
		if e.Kind == guardrail.Refusal {
			why = cmp.Or(why, e.Text)
		}
		for _, word := range []string{e.Method, e.Decision, e.Code, why} {
			if word != "" {
				fmt.Fprint(&text, " ", word)
			}
		}
		if e.Kind == guardrail.Outcome {
			fmt.Fprint(&text, " after ", e.Latency.Round(100*time.Millisecond))
		}
		fmt.Fprintln(&text)
	}
	return text.String()
}

// talk is one that goes on.
type talk struct {
	t        *testing.T
	byItself map[string]string // of the server, by method
	meta     string
	input    io.Writer
	events   *recorder

	mu        sync.Mutex
	since     time.Time
	lines     []string
	heard     []hearing
	numbers   map[string]string // of the requests in the talk, by their ids on the wire
	requests  int               // the highest one
	posts     map[string]*post  // that wait, by their numbers
	last      *post
	random    map[string]string // what was random, by its name
	reachable bool
	conns     []net.Conn
}

// play has one line of the talk happen, and writes down what came of it.
func (k *talk) play(line string) {
	k.mu.Lock()
	k.since = time.Now()
	k.mu.Unlock()
	who, what, _ := strings.Cut(line, " ")
	switch who {
	case "agent:":
		k.agent(k.known(strings.ReplaceAll(what, "$META", k.meta)))
	case "server:":
		k.say(k.known(what))
	case "server":
		k.act(what)
	case "wait":
		d, err := time.ParseDuration(what)
		if err != nil {
			k.t.Fatal(err)
		}
		time.Sleep(d)
	default:
		k.t.Fatalf("cannot play %q", line)
	}
	synctest.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	slices.SortStableFunc(k.heard, func(a, b hearing) int {
		return cmp.Or(cmp.Compare(a.after, b.after), strings.Compare(b.whom, a.whom))
	})
	k.lines = append(k.lines, line)
	for _, h := range k.heard {
		after := ""
		if h.after > 0 {
			after = "after " + h.after.String() + " "
		}
		k.lines = append(k.lines, "    "+after+h.whom+h.text)
	}
	k.heard = nil
}

const version = `"jsonrpc":"2.0",`

// agent says a message to the gateway.
func (k *talk) agent(message string) {
	if _, err := io.WriteString(k.input, strings.Replace(message, "{", "{"+version, 1)+"\n"); err != nil {
		k.t.Fatal(err)
	}
}

// hear notes what the agent is told.
func (k *talk) hear(output io.Reader) {
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		k.note(toAgent, lines.Text())
	}
}

// hearing is what somebody hears. Who hears first of what happens at the same time is
// nobody's concern: it is the server, then the agent.
type hearing struct {
	after      time.Duration
	whom, text string
}

const (
	toServer = "to the server: "
	toAgent  = "to the agent: "
	dropped  = "dropped at the server: "
	unheard  = "nobody waits for it"
)

// note takes down what was heard.
func (k *talk) note(whom, text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.heard = append(k.heard, hearing{time.Since(k.since).Round(100 * time.Millisecond), whom, k.named(strings.Replace(text, version, "", 1))})
}

// randomness finds what is another one each time, and says what it is.
var randomness = map[string]*regexp.Regexp{
	"TOKEN": regexp.MustCompile(`()(capgate-[A-Za-z0-9_-]+)`),
	"STATE": regexp.MustCompile(`("requestState":")([^"$]+)`),
	"ROOT":  regexp.MustCompile(`()(/[A-Za-z0-9_/-]*/TestTalks[^/]*/[0-9]+)`),
}

// named replaces what is random by its name. The lock is held.
func (k *talk) named(text string) string {
	for name, re := range randomness {
		text = re.ReplaceAllStringFunc(text, func(found string) string {
			m := re.FindStringSubmatch(found)
			k.random[name] = m[2]
			return m[1] + "$" + name
		})
	}
	return text
}

// known replaces names by what they stand for.
func (k *talk) known(text string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, value := range k.random {
		text = strings.ReplaceAll(text, "$"+name, value)
	}
	return text
}
