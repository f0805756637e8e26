package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"capgate/config"
)

// TestStateInUse: the folders that a gateway was started with are out of reach as long as
// it uses them, also when others are written by now.
func TestStateInUse(t *testing.T) {
	p := newPlace(t)
	const rest = "agents: ./agents\nsandbox: ./work\nupstreams:\n  files: { builtin: fs }\n"
	p.write(map[string]string{
		"agents/scout.md": "---\nclass: agent\ncapabilities:\n  - fs.read: { paths: [.] }\n  - fs.write: { paths: [.] }\n---\n",
		"capgate.yml":     rest + "state: ./work/.kept\nguardrail: { log: ./work/.log }\n",
	})
	gateway := p.talk()
	p.write(map[string]string{"capgate.yml": rest + "  more: { builtin: fs }\nstate: ./elsewhere\n"})
	look := time.NewTicker(tokenLook)
	defer look.Stop()
	for n := 0; !strings.Contains(gateway.ask("tools/list", `{}`), "more__read"); n++ {
		if n > 100 {
			t.Fatal("the configuration is not followed")
		}
		<-look.C
	}
	for _, path := range []string{".kept/store/keys/seal", ".log/log.key"} {
		if got := gateway.ask("tools/call", `{"name":"files__read","arguments":{"path":"`+path+`"}}`); !strings.Contains(got, "scope_violation") {
			t.Errorf("%s is read: %s", path, got)
		}
	}
	if got := gateway.ask("tools/call", `{"name":"files__read","arguments":{"path":"docs/guide.md"}}`); !strings.Contains(got, "Read me.") {
		t.Errorf("the guide is not read: %s", got)
	}
}

// TestWaiting: a setting that is read when a gateway starts is said to wait when it is
// edited, and no other is.
func TestWaiting(t *testing.T) {
	first := &config.Config{State: "/s", Limits: config.Limits{Body: 1, Call: 1}}
	for want, edit := range map[string]func(*config.Config){
		"":                          func(c *config.Config) { c.Limits.Call, c.Agents = 2, []string{"/a"} },
		"listen":                    func(c *config.Config) { c.Listen.Origins = []string{"https://a.example"} },
		"state":                     func(c *config.Config) { c.State = "/t" },
		"guardrail":                 func(c *config.Config) { c.Guardrail.Continue = true },
		"limits.body":               func(c *config.Config) { c.Limits.Body = 2 },
		"limits.calls_per_minute":   func(c *config.Config) { c.Limits.CallsPerMinute = 2 },
		"limits.upstream_processes": func(c *config.Config) { c.Limits.UpstreamProcesses = 2 },
		"limits.sessions":           func(c *config.Config) { c.Limits.Sessions = 2 },
	} {
		now := *first
		edit(&now)
		if got := (source{first: first}).waiting(&now); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q waits, want %q", got, want)
		}
		if got := (source{}).waiting(&now); got != nil {
			t.Errorf("%q waits where nothing was there before", got)
		}
	}
}
