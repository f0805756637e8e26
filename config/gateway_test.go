package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"capgate/capability"
	"capgate/config"
)

// gateway reads the file that holds every key of the gateway's sections.
func gateway(t *testing.T) *config.Config {
	t.Helper()
	return parse(t, string(read(t, "testdata/gateway.yml")))
}

func pos(line, col int) capability.Pos { return capability.Pos{File: file, Line: line, Col: col} }

func TestGateway(t *testing.T) {
	c := gateway(t)
	got := config.Config{
		Listen: c.Listen, Mappings: c.Mappings, Secrets: c.Secrets, Providers: c.Providers, Limits: c.Limits, Guardrail: c.Guardrail,
	}
	want := config.Config{
		Listen: config.Listen{
			Address: "0.0.0.0:8443", Cert: "/srv/gate/tls/cert.pem", Key: "/srv/gate/tls/key.pem",
			Hosts: []string{"gate.example.com", "gate.example.com:8443"}, Origins: []string{"https://app.example.com"},
		},
		Mappings: []string{"/srv/gate/mappings"},
		Secrets:  map[string]config.Secret{"github": {Env: "GITHUB_TOKEN"}, "Files.2": {File: "/run/secrets/files"}},
		Providers: []config.Provider{
			{Name: "anthropic", Pos: pos(14, 3), Key: "{{secret:github}}", Start: 10 * time.Minute, Idle: 5 * time.Minute},
			{
				Name: "openai", Pos: pos(15, 3), URL: "http://127.0.0.1:9000/api", Key: "{{secret:Files.2}}", Strict: true,
				Start: 2 * time.Minute, Idle: 30 * time.Second, Pass: []string{"service_tier"},
				Connectors: []config.Connector{{Name: "docs", URL: "https://docs.example.com/mcp?v=1", Tools: []string{"search", "Fetch.It"}, Pos: pos(20, 19)}},
			},
		},
		Limits: config.Limits{
			Call: 90 * time.Second, Start: 2 * time.Minute, Body: 1 << 20, Answer: 512 << 10,
			CallsPerMinute: 60, UpstreamProcesses: 8, Sessions: 12,
		},
		Guardrail: config.Guardrail{Log: "/var/log/capgate", Continue: true, HMAC: true, Fsync: "always"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the sections differ (-want +got):\n%s", diff)
	}
}

func TestUpstreams(t *testing.T) {
	read := func(path string, line, col int) []capability.Spec {
		return []capability.Spec{capability.Spec{Verb: "fs.read", Pos: pos(line, col)}.With("paths", path)}
	}
	work := plain("/home/me/work")
	want := []config.Upstream{
		{
			Name: "files", Pos: pos(26, 3),
			Command: []string{"/srv/gate/bin/server", "--root=/home/me/work", "/srv/gate/state/x", ""},
			Cwd:     "/home/me/work/src",
			Env: map[string]string{
				"LOG": "info", "EMPTY": "", "DIR": "/home/me/work", "TOKEN": "a {{secret:Files.2}} b {{.Name}}",
			},
			Protocol: "2025-11-25", Mapping: "own", MappingPos: pos(30, 14),
			Declared: true, Declares: read(".", 23, 25),
			Tools: map[string]config.Tool{
				"write_file": {Declared: true, Pins: "require"},
				"Odd.Tool":   {Pins: "off"},
			},
			Pins: "require", MayAsk: []string{}, Prefix: "disk", Shared: true,
			Call: 5 * time.Minute, Start: time.Second, Answer: 2 << 20,
		},
		{
			Name: "web", Pos: pos(43, 3), URL: "https://mcp.example.com:8443/mcp/?v=1",
			Headers:   map[string]string{"Authorization": "Bearer {{secret:github}}", "X-Env": "test"},
			Transport: "sse", Unmediated: true, Pins: "off", MayAsk: []string{"elicitation", "sampling"}, Prefix: "web",
		},
		{
			Name: "near", Pos: pos(51, 3), URL: "http://127.0.0.1:9000/mcp",
			OAuth:    &config.OAuth{ClientID: "capgate-1", ClientSecret: "{{secret:github}}", Issuer: "https://login.example.com/x", Scopes: []string{"read", "repo:write"}},
			Declared: true, Pins: "tofu", MayAsk: []string{"roots"}, Prefix: "near",
		},
		{
			Name: "shell", Pos: pos(56, 3), Builtin: "fs", Root: plain("/home/me/work/tmp"),
			Declared: true, Declares: read("docs", 47, 92), Pins: "tofu", MayAsk: []string{"roots"},
		},
		{Name: "http", Pos: pos(57, 3), Builtin: "net", Pins: "tofu", MayAsk: []string{"roots"}, Prefix: "http"},
		{Name: "fs", Pos: pos(58, 3), Builtin: "fs", Root: work, Pins: "tofu", MayAsk: []string{"roots"}, Prefix: "fs"},
	}
	for i := range want[1:] {
		want[i+1].Call, want[i+1].Start, want[i+1].Answer = 90*time.Second, 2*time.Minute, 512<<10
	}
	if diff := cmp.Diff(want, gateway(t).Upstreams); diff != "" {
		t.Errorf("the upstreams differ (-want +got):\n%s", diff)
	}
}

// TestOrder: a section may stand before what it refers to.
func TestOrder(t *testing.T) {
	c := parse(t, `upstreams:
  a: { command: ["${state}/a", "${root}"], env: { T: "{{secret:t}}" }, tools: { x: { declares: {} } }, pins: off }
  b: { builtin: fs, root: w/b }
tests:
- { agent: scout, deny: [tool: a.x] }
limits: { call: 5s }
secrets: { t: { env: T } }
state: /state
sandbox: w
`)
	a := c.Upstreams[0]
	if a.Command[0] != "/state/a" || a.Command[1] != "/srv/gate/w" || a.Call != 5*time.Second || a.Tools["x"].Pins != "off" {
		t.Errorf("the upstream is %+v", a)
	}
}

func TestListenForms(t *testing.T) {
	for in, want := range map[string]config.Listen{
		"{}":                                           {Address: "127.0.0.1:8420"},
		"listen: localhost:0":                          {Address: "localhost:0"},
		`listen: "[::1]:8420"`:                         {Address: "[::1]:8420"},
		"listen: unix:./gate.sock":                     {Socket: "/srv/gate/gate.sock"},
		"listen: unix:/run/g.sock":                     {Socket: "/run/g.sock"},
		"listen: {hosts: [a.b]}":                       {Address: "127.0.0.1:8420", Hosts: []string{"a.b"}},
		"listen: {address: unix:~/g}":                  {Socket: "/home/me/g"},
		"listen: {address: 0.0.0.0:1, insecure: true}": {Address: "0.0.0.0:1"},
		"listen: {address: gate.example.com:1, insecure: true}": {Address: "gate.example.com:1"},
		"listen: {address: 127.0.0.1:1, insecure: false}":       {Address: "127.0.0.1:1"},
	} {
		if diff := cmp.Diff(want, parse(t, in+"\n").Listen); diff != "" {
			t.Errorf("%s differs (-want +got):\n%s", in, diff)
		}
	}
}

func TestLongSocket(t *testing.T) {
	dir := "/run/" + strings.Repeat("x", 95)
	if c := parse(t, "listen: unix:"+dir+"/so\n"); c.Listen.Socket != dir+"/so" {
		t.Errorf("the socket is %+v", c.Listen)
	}
	got := wrong(t, "listen: unix:"+dir+"/soc\n", view())
	if len(got) != 1 || !strings.Contains(got[0], "1:9: the path of a socket is at most 103 bytes") {
		t.Errorf("a socket of 104 bytes says %q", got)
	}
}

// TestGatewayFindings: what may be meant as it is written, and hardly ever is.
func TestGatewayFindings(t *testing.T) {
	for in, want := range map[string]string{
		"{a: {command: [x]}}": "",
		"{a: {url: 'https://a.b', declares: {}, headers: {Authorization: x}}}":         "clear_secret",
		"{a: {url: 'https://a.b', declares: {}, headers: {X-Api-Key: x}}}":             "clear_secret",
		"{a: {url: 'https://a.b', declares: {}, headers: {Accept-Language: x}}}":       "",
		"{a: {url: 'https://a.b', declares: {}, headers: {Cookie: 'a={{secret:s}}'}}}": "",
	} {
		_, findings, err := config.Parse(file, []byte("agents: a\nsecrets: {s: {env: S}}\nupstreams: "+in+"\n"), view())
		got := ""
		for _, f := range findings {
			if got += f.Code; f.Pos != pos(3, 13) || f.Hint == "" || f.Severity != capability.Warning {
				t.Errorf("%s: the finding is %+v", in, f)
			}
		}
		if err != nil || got != want {
			t.Errorf("%s finds %q, %v; want %q", in, got, err, want)
		}
	}
}

// TestUnservedTests: a test of a tool that is called by the name of its upstream, where that has another
// prefix or none, would prove nothing. It may be meant where some tool has no prefix.
func TestUnservedTests(t *testing.T) {
	for in, want := range map[string]string{
		"danger.wipe":   `the tools of the upstream "danger" are named without its name | write wipe`,
		"known.wipe":    `the tools of the upstream "known" are named with the prefix zed | write zed.wipe`,
		"danger.listed": "",
		"zed.wipe":      "",
		"wipe":          "",
		"other.wipe":    "",
		"danger.":       "",
	} {
		text := "agents: a\nupstreams: {danger: {command: [x], prefix: none, tools: {danger.listed: {pins: off}}}, known: {command: [x], prefix: zed}}\n" +
			"tests:\n- agent: scout\n  deny:\n  - tool: " + in + "\n"
		_, findings, err := config.Parse(file, []byte(text), view())
		got := ""
		for _, f := range findings {
			if got += f.Text + " | " + f.Hint; f.Pos != pos(6, 11) || f.Code != "unserved" || f.Severity != capability.Warning {
				t.Errorf("%s: the finding is %+v", in, f)
			}
		}
		if err != nil || got != want {
			t.Errorf("%s finds %q, %v; want %q", in, got, err, want)
		}
	}
}

// TestToolCalls: the arguments of a test are those that are written, digit by
// digit.
func TestToolCalls(t *testing.T) {
	want := []config.Test{
		{
			Tool:   "disk.read_text_file",
			Args:   []byte(`{"path":"notes/todo.md","head":12345678901234567890,"rate":1.50,"deep":{"a":[true,"5",1e3,-0,[],{}]},"q\"<é":"\\"}`),
			Effect: capability.Allow, Pos: pos(62, 9),
		},
		{Tool: "plain_name", Args: []byte("{}"), Effect: capability.Allow, Pos: pos(63, 9)},
		{Tool: "web.fetch", Args: []byte("{}"), Code: capability.ScopeViolation, Pos: pos(65, 9)},
		{Tool: "capgate.whoami", Args: []byte("{}"), Pos: pos(66, 9)},
	}
	for i := range want {
		want[i].Agent = "scout"
	}
	c := gateway(t)
	if diff := cmp.Diff(want, c.Tests); diff != "" {
		t.Errorf("the tests differ (-want +got):\n%s", diff)
	}
	if got := c.Tests[2].Text() + ": " + c.Tests[2].Want(); got != "web.fetch {}: deny scope_violation" {
		t.Errorf("a tool call is %s", got)
	}
}

// TestGatewaysOwn: the fence is around all that decides or authenticates.
func TestGatewaysOwn(t *testing.T) {
	c := gateway(t)
	c.Listen.Socket = "/run/gate.sock"
	v := view()
	v.FS = linked{"/run/secrets/files": "/run/secrets/..data/files"}
	own, err := c.Own(v)
	if err != nil {
		t.Fatal(err)
	}
	fence := capability.NewFence(own...)
	for _, path := range []string{
		"/srv/gate/tls/cert.pem", "/srv/gate/tls/key.pem", "/srv/gate/mappings/own.yml", "/run/gate.sock",
		"/var/log/capgate/1.jsonl", "/run/secrets/files", "/run/secrets/..data/files", "/srv/gate/state/x", file,
	} {
		need, err := capability.ParseRequirement("fs.read{path="+path+"}", view())
		if err != nil {
			t.Fatal(err)
		}
		if !fence.Touches(need) {
			t.Errorf("the fence leaves out %s", path)
		}
	}
}
