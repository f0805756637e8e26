package proxy_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"capgate/proxy"
	"capgate/upstream"
)

// outdated is a connection whose answers take so long to arrive that they are old by then.
type outdated struct {
	upstream.Conn
	takes func(method string) time.Duration
}

func (c outdated) Call(ctx context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
	a, err := c.Conn.Call(ctx, r, sink)
	time.Sleep(c.takes(r.Method))
	return a, err
}

// over is the server over connections that are made of its own.
func (s *skillServer) over(t *testing.T, conn func(upstream.Conn) upstream.Conn) *proxy.Upstream {
	up := s.up(t)
	open := up.Open
	up.Open = func(ctx context.Context, p proxy.Peer) (upstream.Conn, error) {
		c, err := open(ctx, p)
		return conn(c), err
	}
	return up
}

// only is how long one thing takes.
func only(slow string, long time.Duration) func(method string) time.Duration {
	return func(method string) time.Duration {
		if method == slow {
			return long
		}
		return 0
	}
}

// TestSkillsOfListsHadSlowly: the skills are asked for again where a list that was never known comes
// so much later that it may tell of one which was not there when they were asked for.
func TestSkillsOfListsHadSlowly(t *testing.T) {
	for _, slow := range []struct {
		first, prompts string
		conn           func(upstream.Conn) upstream.Conn
	}{
		{"resources/list", "[]", func(c upstream.Conn) upstream.Conn { return tardy{c, only("prompts/list", 20*time.Second)} }},
		{"prompts/list", `"none"`, func(c upstream.Conn) upstream.Conn { return outdated{c, only("skills/list", 20*time.Second)} }},
	} {
		t.Run(slow.first, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSkillServer(true, map[string]string{"skill://plain/SKILL.md": skillText("plain", "", "Plain.\n")})
				s.telling()
				s.relist("prompts/list", `"prompts":`+slow.prompts)
				w := start(t, map[string]string{"scout": anyReader}, s.over(t, slow.conn))
				c := w.client("scout")
				c.modern(slow.first, "{}", "{}")
				time.Sleep(6 * time.Second)
				s.hides("skill://deploy")
				s.list(s.entries()...)
				for range 3 {
					if a := c.modern("prompts/get", `{"name":"files__deploy"}`, "{}"); strings.Contains(a.Raw, hiddenText) {
						t.Error(a.Raw)
					}
				}
			})
		})
	}
}

// TestSkillsOfServersStartedAnew: what was decided by the lists of a server is decided anew by those of
// the one that is started in its place, before that hears of it.
func TestSkillsOfServersStartedAnew(t *testing.T) {
	for _, route := range []string{
		`prompts/get {"name":"files__deploy"}`,
		`completion/complete {"ref":{"type":"ref/prompt","name":"files__deploy"},"argument":{"name":"path","value":"d"}}`,
		`completion/complete {"ref":{"type":"ref/resource","uri":"deploy://{+path}"},"argument":{"name":"path","value":"d"}}`,
		`resources/read {"uri":"notes:///old"}`,
	} {
		for _, asks := range [][]string{nil, {"elicitation"}} { // of a legacy server, whose calls wait for answers
			synctest.Test(t, func(t *testing.T) {
				s := newSkillServer(asks == nil, map[string]string{"skill://plain/SKILL.md": skillText("plain", "", "Plain.\n"), "notes:///old": "Old.\n"})
				s.telling()
				s.relist("prompts/list", `"prompts":[{"name":"deploy"}]`)
				s.relist("resources/templates/list", `"resourceTemplates":[{"uriTemplate":"deploy://{+path}","name":"t"}]`)
				long := new(atomic.Int64)
				up := s.slowly(t, long)
				up.MayAsk = asks
				w := start(t, map[string]string{"scout": anyReader}, up)
				c := w.client("scout")
				c.modern("prompts/list", "{}", "{}")
				long.Store(int64(4 * time.Second))
				s.hides("deploy://deploy")
				s.list(s.entries()...)
				if err := s.hangsUp(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Second) // so that it may be started again
				method, params, _ := strings.Cut(route, " ")
				a := c.modern(method, params, "{}")
				if strings.Contains(a.Raw, hiddenText) || method != "resources/read" && s.asked(method) > 0 {
					t.Error(a.Raw)
				}
				if method == "resources/read" && !strings.Contains(a.Raw, "Old.") {
					t.Errorf("what is of no skill is not there: %s", a.Raw)
				}
			})
		}
	}
}

// TestSlowStartsAskOnce: what a server takes to come up makes no list older than another.
func TestSlowStartsAskOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSkillServer(true, map[string]string{"skill://plain/SKILL.md": skillText("plain", "", "Plain.\n")})
		s.relist("prompts/list", `"prompts":[{"name":"hello"}]`)
		s.relist("resources/list", `"resources":[]`)
		w := start(t, map[string]string{"scout": anyReader}, s.over(t, func(c upstream.Conn) upstream.Conn {
			time.Sleep(10 * time.Second)
			return tardy{c, only("prompts/list", time.Millisecond)}
		}))
		if a := w.client("scout").modern("prompts/list", "{}", "{}"); !strings.Contains(a.Raw, "files__hello") {
			t.Error(a.Raw)
		}
		for _, method := range []string{"prompts/list", "resources/list", "skills/list"} {
			if n := s.asked(method); n != 1 {
				t.Errorf("%s was asked for %d times", method, n)
			}
		}
	})
}

// TestPromptsThatBecomeSkills: what a server answers is not shown where it says before that what was
// asked for is of a skill by now.
func TestPromptsThatBecomeSkills(t *testing.T) {
	for _, route := range []string{
		`prompts/get {"name":"files__deploy"}`,
		`completion/complete {"ref":{"type":"ref/prompt","name":"files__deploy"},"argument":{"name":"path","value":"d"}}`,
		`completion/complete {"ref":{"type":"ref/resource","uri":"deploy://{+path}"},"argument":{"name":"path","value":"d"}}`,
		`resources/read {"uri":"deploy://deploy/old.md"}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSkillServer(true, map[string]string{"skill://plain/SKILL.md": skillText("plain", "", "Plain.\n")})
			s.telling()
			s.relist("prompts/list", `"prompts":[{"name":"deploy"}]`)
			s.relist("resources/templates/list", `"resourceTemplates":[{"uriTemplate":"deploy://{+path}","name":"t"}]`)
			s.tamper("deploy://deploy/old.md", `{"contents":[{"uri":"deploy.md","text":"`+hiddenText+`"}]}`)
			long := new(atomic.Int64) // that it takes to say which skills it has
			var becomes atomic.Bool
			reply := s.reply
			s.reply = func(ctx context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
				if !strings.Contains(string(r.Params), "SKILL.md") && becomes.Load() {
					s.hides("deploy://deploy")
					s.list(s.entries()...)
					long.Store(int64(4 * time.Second))
					s.changed()
				}
				return reply(ctx, r, sink)
			}
			w := start(t, map[string]string{"scout": anyReader}, s.slowly(t, long))
			c := w.client("scout")
			method, params, _ := strings.Cut(route, " ")
			for _, is := range []bool{false, true} {
				becomes.Store(is)
				if a := c.modern(method, params, "{}"); strings.Contains(a.Raw, hiddenText) == is {
					t.Errorf("%s: %s", route, a.Raw)
				}
			}
		})
	}
}

// TestListsThatChangeAllTheTime: of a server that says again and again that its lists are others, as
// soon as it has said what they are, is had what it has.
func TestListsThatChangeAllTheTime(t *testing.T) {
	for _, of := range []struct {
		speaks             bool
		takes, every, most time.Duration
	}{
		{true, 2 * time.Second, time.Second / 2, 90 * time.Second},
		{false, 2 * time.Second, time.Second / 2, time.Minute},
		{false, time.Second, 2 * time.Second, 2 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSkillServer(true, map[string]string{"skill://plain/SKILL.md": skillText("plain", "", "Plain.\n"), "notes:///old": "Old.\n"})
			if !of.speaks {
				s.info.Capabilities = []byte(serverAbilities)
			}
			s.telling()
			s.relist("prompts/list", `"prompts":[{"name":"deploy"}]`)
			s.relist("resources/list", `"resources":[{"uri":"notes:///old","name":"old"}]`)
			w := start(t, map[string]string{"scout": anyReader}, s.over(t, func(c upstream.Conn) upstream.Conn {
				return tardy{c, func(method string) time.Duration {
					if strings.HasSuffix(method, "/list") {
						return of.takes
					}
					return 0
				}}
			}))
			c := w.client("scout")
			c.modern("prompts/list", "{}", "{}")
			over := make(chan struct{})
			defer close(over)
			go func() {
				for n := 0; ; n++ {
					select {
					case <-over:
						return
					case <-time.After(of.every):
					}
					s.relist("resources/list", fmt.Sprintf(`"resources":[{"uri":"notes:///old","name":"old"},{"uri":"notes:///%d","name":"new"}]`, n))
					s.changed()
				}
			}()
			time.Sleep(10 * time.Second)
			begun := time.Now()
			const times = 10
			for range times {
				if a := c.modern("resources/read", uriParams("notes:///old"), "{}"); !strings.Contains(a.Raw, "Old.") {
					t.Error(a.Raw)
				}
				if a := c.modern("prompts/get", `{"name":"files__deploy"}`, "{}"); a.Error != nil {
					t.Error(a.Raw)
				}
				time.Sleep(100 * time.Millisecond)
			}
			if took := time.Since(begun) / times; took > of.most {
				t.Errorf("%s for a read and a prompt", took)
			}
		})
	}
}
