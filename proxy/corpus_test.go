package proxy_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"capgate/agents"
	"capgate/capability"
	"capgate/capability/hostfs"
	"capgate/gate"
	"capgate/proxy"
)

// attack is one line of the attack corpus, as far as it reaches the front.
type attack struct {
	ID, Family, Expect, Code, Why string

	Grant json.RawMessage
	Args  json.RawMessage
	Hint  struct {
		Scenario, Tool, Server, Requires, Cwd, Via string

		Properties   json.RawMessage
		Bind         map[string]string
		Additional   bool `json:"additional_properties"`
		Strict       bool `json:"strict_unbound"`
		Unregistered bool
		Dialect      string
		Approval     []string
		InArgument   bool `json:"in_argument"`

		ConfigSandbox string `json:"config_sandbox"`
		AgentSandbox  string `json:"agent_sandbox"`

		Headers   map[string]string `json:"http_headers"`
		Direction string
		Result    *struct {
			CacheScope string
			Absent     []string
		} `json:"assert_result"`
		MetaKeys *[]string `json:"assert_forward_meta_keys"`
		Servers  map[string][]string
		Pinned   json.RawMessage
	} `json:"tool_args_schema_hint"`
}

// want is what comes of the case. Any program is no grant here, as nothing confines
// programs (R-EGG-19); the corpus has a sandbox in mind.
func (a *attack) want() string {
	switch named := regexp.MustCompile(`"(cmds|patterns)"`).Match(a.Grant); {
	case a.Expect != "allow":
		return a.Code
	case a.Hint.Requires == "proc.exec" && !named:
		return string(capability.ScopeViolation)
	}
	return "allow"
}

// judged are the cases that come out otherwise at the front, each with the
// sentence that says why.
func judged() map[string]string {
	return map[string]string{
		"PROMPT-ABSENT-01":  "scope_violation: prompt.get is held, for the prompts of docs, and another prompt is outside of it",
		"PROMPT-ARGS-01":    "capability_absent: no grant of fs.read is held, and that is decided before any scope",
		"NAME-LIST-CALL-01": "scope_violation: tool.invoke is held, for another name",
		"NAME-TRUNCATE-01":  "allow: nothing is shortened, so that both have names of their own",

		"JSON-NON-OBJECT-01": "malformed_request: arguments that are no object are no tools/call, of whatever tool",

		"ENVELOPE-CACHE-01 in a session":         "allow: sessions know no cacheScope",
		"ENVELOPE-REQUEST-STATE-01 in a session": "allow: sessions know no requestState; what is not known does not go up",
	}
}

// TestAttackCorpus drives the attack corpus through the front, in both eras: a
// denial reaches no server, and what is allowed reaches it once, as it came.
func TestAttackCorpus(t *testing.T) {
	corpus := beside(t, "attacks-shared.jsonl")
	tree := buildSite(t, filepath.Join(filepath.Dir(corpus), "attacks-fixture.json"))
	decided := map[string]int{}
	for _, a := range readCorpus(t, corpus) {
		drive := drivers()[a.Hint.Scenario]
		if drive == nil || a.Family == "egghead" || a.Family == "upstream" {
			continue // decided at load, or by whoever makes the request
		}
		decided[a.Family]++
		t.Run(a.ID, func(t *testing.T) {
			for _, modern := range []bool{false, true} {
				id := a.ID
				if !modern {
					id += " in a session"
				}
				s := *tree // nothing is written into it
				s.t = t
				one := s.fill(a)
				got, want := drive(&s, one, modern), one.want()
				for _, key := range []string{a.ID, id} {
					if why, ok := judged()[key]; ok {
						want, _, _ = strings.Cut(why, ":")
					}
				}
				if got != want {
					t.Errorf("%s: got %s, want %s (%s)", id, got, want, a.Why)
				}
			}
		})
	}
	t.Logf("decided in both eras: %v", decided)
	for _, family := range []string{"path", "json", "host", "cmd", "envelope", "name", "resource", "prompt", "description", "scarab"} {
		if decided[family] == 0 {
			t.Errorf("no case of %s was decided", family)
		}
	}
}

// readCorpus reads the lines, with their placeholders.
func readCorpus(t *testing.T, file string) []attack {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []attack
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var a attack
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	return all
}

// site is the tree that the cases are about.
type site struct {
	t                         *testing.T
	root, config, state, home string
	placeholders              *strings.Replacer
}

func buildSite(t *testing.T, fixture string) *site {
	t.Helper()
	top := realDir(t)
	s := &site{t: t, root: top + "/root", config: top + "/config", state: top + "/state", home: top + "/home"}
	s.placeholders = strings.NewReplacer(
		"${ROOT}", s.root, "${ROOT_NAME}", "root", "${ROOT_UPPER}", strings.ToUpper(s.root), "${OUTSIDE}", top+"/outside",
		"${CAPGATE_CONFIG}", s.config, "${CAPGATE_STATE}", s.state, "${CURSOR_OF_OTHER_AGENT}", "b3RoZXI",
	)
	data, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	var tree struct {
		Dirs            []string
		Files, Symlinks map[string]string
	}
	must(t, json.Unmarshal([]byte(s.placeholders.Replace(string(data))), &tree))
	for _, dir := range append(tree.Dirs, s.config, s.state, s.home) {
		must(t, os.MkdirAll(dir, 0o755))
	}
	for file, text := range tree.Files {
		must(t, os.WriteFile(file, []byte(text), 0o600))
	}
	for link, target := range tree.Symlinks {
		must(t, os.Symlink(target, link))
	}
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fill puts the places of the tree into a case.
func (s *site) fill(a attack) *attack {
	for _, part := range []*json.RawMessage{&a.Grant, &a.Args, &a.Hint.Pinned} {
		*part = json.RawMessage(s.placeholders.Replace(string(*part)))
	}
	for _, part := range []*string{&a.Hint.Cwd, &a.Hint.ConfigSandbox, &a.Hint.AgentSandbox} {
		*part = s.placeholders.Replace(*part)
	}
	return &a
}

func (s *site) view(cwd string) capability.View {
	return capability.View{Cwd: cwd, Home: s.home, FS: hostfs.FS{}}
}

// serve brings a gateway up for the agent of a case.
func (s *site) serve(a *attack, o proxy.Options, ups ...*proxy.Upstream) *world {
	s.t.Helper()
	w := startWith(s.t, o, map[string]string{"other": "---\nclass: agent\ncapabilities: []\n---\n"}, ups...)
	record := "---\nclass: agent\ncapabilities: " + string(a.Grant) + "\n"
	if a.Hint.Approval != nil { // a tool without a server in its name is marked by its verb
		record += "approve: [tool.invoke]\n"
	}
	if a.Hint.AgentSandbox != "" {
		record += "sandbox: " + a.Hint.AgentSandbox + "\n"
	}
	w.write("scout", record+"---\n")
	opts := agents.Options{View: s.view("")}
	if dir := a.Hint.ConfigSandbox; dir != "" {
		opts.Config = capability.Root{Dir: dir, Real: dir}
	}
	roster, err := agents.Load(opts, w.dir)
	must(s.t, err)
	for _, f := range roster.Findings() {
		s.t.Log(f)
	}
	fence := capability.NewFence(capability.Root{Dir: s.config, Real: s.config}, capability.Root{Dir: s.state, Real: s.state})
	w.server.Adopt(&proxy.Policy{Gate: &gate.Gate{Roster: roster, Fence: fence}, Credentials: w.creds, Upstreams: ups, Hash: "corpus"})
	return w
}

// bytesOf returns the bytes that the agent sends as arguments.
func (s *site) bytesOf(args json.RawMessage) []byte {
	s.t.Helper()
	var raw struct {
		Text   *string `json:"$raw"`
		Base64 *string `json:"$raw_base64"`
	}
	must(s.t, json.Unmarshal(args, &raw))
	switch {
	case raw.Text != nil:
		return []byte(*raw.Text)
	case raw.Base64 != nil:
		data, err := base64.StdEncoding.DecodeString(*raw.Base64)
		must(s.t, err)
		return []byte(s.placeholders.Replace(string(data)))
	}
	return args
}

const modernMeta = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`

// ask sends a request in one of the eras, with the bytes of its params' members.
func (s *site) ask(w *world, modern bool, method, name, members string) said {
	s.t.Helper()
	c := w.client("scout")
	if !modern {
		c.initialize("{}")
		return take(s.t, c.post(`{"jsonrpc":"2.0","id":7,"method":"`+method+`","params":{`+members+`}}`))
	}
	if members != "" {
		members += ","
	}
	return take(s.t, c.post(`{"jsonrpc":"2.0","id":7,"method":"`+method+`","params":{`+members+`"_meta":{`+modernMeta+`}}}`,
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method, "Mcp-Name", headerText(name)))
}

// headerText writes a text as the header that mirrors it.
func headerText(text string) string {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(text)) + "?="
		}
	}
	return text
}

// outcome is the code of an answer, "allow" for one that the server gave. What
// reached the server must fit.
func (s *site) outcome(a said, servers ...*scripted) string {
	s.t.Helper()
	calls := 0
	for _, one := range servers {
		calls += len(one.calls())
	}
	got := denialOf(s.t, a).Code
	switch {
	case got != "" && calls > 0:
		return fmt.Sprintf("%s, and %d calls reached the server", got, calls)
	case got != "":
		return got
	case a.Error != nil:
		return "an error without a denial: " + a.Raw
	case calls != 1:
		return fmt.Sprintf("allow, and %d calls reached the server", calls)
	}
	return "allow"
}
