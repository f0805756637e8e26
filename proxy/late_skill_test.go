package proxy_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"capgate/proxy"
	"capgate/upstream"
)

// telling answers every prompt and completion of a server with what a hidden skill holds.
func (s *skillServer) telling() {
	s.reply = func(ctx context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
		switch r.Method {
		case "prompts/get":
			return upstream.Answer{Type: "complete", Result: []byte(`{"messages":[{"role":"user","content":{"type":"text","text":"` + hiddenText + `"}}]}`)}, nil
		case "completion/complete":
			return upstream.Answer{Type: "complete", Result: []byte(`{"completion":{"values":["` + hiddenText + `"]}}`)}, nil
		}
		return s.read(ctx, r, sink)
	}
}

// hides gives the server a skill that hardly anybody sees, and a prompt of its name.
func (s *skillServer) hides(at string) {
	s.mu.Lock()
	s.files[at+"/SKILL.md"] = skillText("deploy", "WebFetch(domain:example.com)", hiddenText)
	s.mu.Unlock()
	s.relist("prompts/list", `"prompts":[{"name":"deploy"}]`)
}

// TestSkillsOfResourcesOfBefore: where only the prompts of a server are said to have changed, the
// resources that say which skills it has are asked for as well.
func TestSkillsOfResourcesOfBefore(t *testing.T) {
	for _, speaks := range []bool{false, true} {
		const plain = `{"uri":"skill://plain/SKILL.md","name":"x"}`
		s := newSkillServer(true, map[string]string{"skill://plain/SKILL.md": skillText("plain", "", "Plain.\n")})
		if !speaks {
			s.info.Capabilities = []byte(strings.Replace(skillAbilities, "io.modelcontextprotocol/skills", "other", 1))
		}
		s.telling()
		s.relist("resources/list", `"resources":[`+plain+`]`)
		w := start(t, map[string]string{"scout": anyReader}, s.up(t))
		c := w.client("scout")
		c.modern("prompts/list", "{}", "{}")
		s.hides("skill://deploy")
		s.relist("resources/list", `"resources":[`+plain+`,{"uri":"skill://deploy/SKILL.md","name":"x"}]`)
		s.newest().Events.Notify("notifications/prompts/list_changed", nil)
		for range 3 {
			if a := c.modern("prompts/get", `{"name":"files__deploy"}`, "{}"); strings.Contains(a.Raw, hiddenText) {
				t.Errorf("speaks %t: %s", speaks, a.Raw)
			}
			if a := c.modern("prompts/list", "{}", "{}"); strings.Contains(a.Raw, "deploy") {
				t.Errorf("speaks %t: %s", speaks, a.Raw)
			}
		}
		if n := s.asked("resources/list"); n > 2 {
			t.Errorf("asked for its resources %d times", n)
		}
	}
}

// TestSkillsThatCannotBeAskedFor: what a server fails to say of a SKILL.md is not that it is no skill.
func TestSkillsThatCannotBeAskedFor(t *testing.T) {
	for _, said := range []upstream.Answer{
		{Error: []byte(`{"code":-32603,"message":"internal error"}`)},
		{Error: []byte(`{"code":-32000,"message":"too many requests"}`)},
		{Type: "input_required", Result: []byte(`{"resultType":"input_required","inputRequests":{}}`)},
	} {
		s := secretive(true, "skill://plain/SKILL.md")
		reply := s.reply
		s.reply = func(ctx context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
			var p struct{ URI string }
			if err := json.Unmarshal(r.Params, &p); err == nil && r.Method == "skills/get" && strings.Contains(p.URI, "Far_Off") {
				return said, nil
			}
			return reply(ctx, r, sink)
		}
		w := start(t, map[string]string{"scout": anyReader}, s.up(t))
		for _, route := range []string{`resources/read {"uri":"wiki://x/Far_Off/a.txt"}`, `prompts/get {"name":"files__Far_Off"}`, `prompts/list {}`} {
			method, params, _ := strings.Cut(route, " ")
			if a := w.client("scout").modern(method, params, "{}"); a.Error == nil && mentions(a, "Far_Off", hiddenText) {
				t.Errorf("%s: %s", route, a.Raw)
			}
		}
	}
}

// TestSkillsOfListsHadLate: the same of a list that could not be had when the skills were asked for.
func TestSkillsOfListsHadLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSkillServer(true, map[string]string{"skill://plain/SKILL.md": skillText("plain", "", "Plain.\n")})
		s.telling()
		s.relist("prompts/list", `"prompts":"none"`)
		w := start(t, map[string]string{"scout": anyReader}, s.up(t))
		c := w.client("scout")
		listSkills(t, func(method, params string) said { return c.modern(method, params, "{}") })
		time.Sleep(50 * time.Second)
		s.hides("skill://deploy")
		s.list(s.entries()...)
		if a := c.modern("prompts/get", `{"name":"files__deploy"}`, "{}"); strings.Contains(a.Raw, hiddenText) {
			t.Error(a.Raw)
		}
	})
}

// tardy is a connection that takes long for some things.
type tardy struct {
	upstream.Conn
	takes func(method string) time.Duration
}

func (c tardy) Call(ctx context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
	time.Sleep(c.takes(r.Method))
	return c.Conn.Call(ctx, r, sink)
}

// slowly is the server where it takes so long to say which skills it has.
func (s *skillServer) slowly(t *testing.T, long *atomic.Int64) *proxy.Upstream {
	up := s.up(t)
	open := up.Open
	up.Open = func(ctx context.Context, p proxy.Peer) (upstream.Conn, error) {
		conn, err := open(ctx, p)
		return tardy{conn, func(method string) time.Duration {
			if method == "skills/list" {
				return time.Duration(long.Load())
			}
			return 0
		}}, err
	}
	return up
}

// TestCompletionsWaitForSkills: what completes a template may be of a skill that is not known yet.
func TestCompletionsWaitForSkills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, long := newSkillServer(true, map[string]string{"skill://plain/SKILL.md": skillText("plain", "", "Plain.\n")}), new(atomic.Int64)
		s.telling()
		s.relist("resources/templates/list", `"resourceTemplates":[{"uriTemplate":"deploy://{+path}","name":"t"}]`)
		w := start(t, map[string]string{"scout": anyReader}, s.slowly(t, long))
		c := w.client("scout")
		const params = `{"ref":{"type":"ref/resource","uri":"deploy://{+path}"},"argument":{"name":"path","value":"d"}}`
		if a := c.modern("completion/complete", params, "{}"); !strings.Contains(a.Raw, hiddenText) {
			t.Fatal(a.Raw)
		}
		s.hides("deploy://deploy")
		s.list(s.entries()...)
		long.Store(int64(4 * time.Second))
		s.changed()
		for range 5 {
			if a := c.modern("completion/complete", params, "{}"); strings.Contains(a.Raw, hiddenText) {
				t.Error(a.Raw)
			}
		}
	})
}

// TestCompletionsOfPromptsThatBecomeSkills: a prompt that turns out to be a skill while it is not known which
// ones there are has nothing to complete, as any other skill.
func TestCompletionsOfPromptsThatBecomeSkills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, long := newSkillServer(true, map[string]string{"skill://plain/SKILL.md": skillText("plain", "", "Plain.\n")}), new(atomic.Int64)
		s.telling()
		s.relist("prompts/list", `"prompts":[{"name":"deploy"}]`)
		w := start(t, map[string]string{"scout": anyReader}, s.slowly(t, long))
		c := w.client("scout")
		c.modern("prompts/list", "{}", "{}")
		s.mu.Lock()
		s.files["skill://deploy/SKILL.md"] = skillText("deploy", "", "Deploy.\n")
		s.mu.Unlock()
		s.list(s.entries()...)
		long.Store(int64(4 * time.Second))
		s.changed()
		a := c.modern("completion/complete", `{"ref":{"type":"ref/prompt","name":"files__deploy"},"argument":{"name":"path","value":"d"}}`, "{}")
		if !strings.Contains(a.Raw, `"values":[]`) {
			t.Error(a.Raw)
		}
	})
}

// TestToldOnceSkillsAreKnown: who was shown less than there is, as it was not known which skills the
// server has, is told once it is, also where they are none.
func TestToldOnceSkillsAreKnown(t *testing.T) {
	t.Parallel() // as it takes some seconds
	s, long := newSkillServer(true, nil), new(atomic.Int64)
	s.relist("resources/list", `"resources":[]`)
	w := start(t, map[string]string{"scout": anyReader}, s.slowly(t, long))
	c := w.client("scout")
	c.initialize("{}")
	c.request("resources/list", "{}")
	in := c.open(t.Context(), t, http.MethodGet, "")
	long.Store(int64(4 * time.Second))
	s.relist("resources/list", `"resources":[{"uri":"notes:///new","name":"new"}]`)
	s.changed()
	over := time.AfterFunc(15*time.Second, func() { _ = in.resp.Body.Close() })
	defer over.Stop()
	for shown := false; !shown; {
		if in.next() == "" {
			t.Fatal("nobody is told")
		}
		shown = strings.Contains(c.request("resources/list", "{}").Raw, "notes:///new")
	}
}

// TestOldAnswersWithNewSkills: what was there before may hold by now what is of a skill that is not
// known yet.
func TestOldAnswersWithNewSkills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, long := newSkillServer(true, map[string]string{"skill://plain/SKILL.md": skillText("plain", "", "Plain.\n"), "notes:///old": "An old one.\n", "notes:///too": "Another.\n"}), new(atomic.Int64)
		s.relist("resources/list", `"resources":[{"uri":"notes:///old","name":"old"},{"uri":"notes:///too","name":"too"}]`)
		w := start(t, map[string]string{"scout": anyReader}, s.slowly(t, long))
		c := w.client("scout")
		c.modern("resources/list", "{}", "{}")
		s.hides("deploy://deploy")
		s.list(s.entries()...)
		s.tamper("notes:///old", `{"contents":[{"uri":"notes:///old","text":"old"},{"uri":"deploy://deploy/a.md","text":"`+hiddenText+`"}]}`)
		s.tamper("notes:///too", `{"contents":[{"uri":"notes:///old","text":"old"},{"uri":"notes:///too","text":"too"}]}`)
		long.Store(int64(4 * time.Second))
		s.changed()
		for range 5 {
			if a := c.modern("resources/read", uriParams("notes:///old"), "{}"); strings.Contains(a.Raw, hiddenText) {
				t.Error(a.Raw)
			}
			if a := c.modern("resources/read", uriParams("notes:///too"), "{}"); a.Error != nil {
				t.Error(a.Raw)
			}
		}
	})
}

// TestWhatBecomesSkillsUnseen: nothing that was known before is had of a server that has said that its
// lists are others, and takes long to say which skills it has by now: it may have become one's.
func TestWhatBecomesSkillsUnseen(t *testing.T) {
	for _, route := range []string{
		`prompts/get {"name":"files__deploy"}`,
		`completion/complete {"ref":{"type":"ref/prompt","name":"files__deploy"},"argument":{"name":"path","value":"d"}}`,
		`completion/complete {"ref":{"type":"ref/resource","uri":"deploy://{+path}"},"argument":{"name":"path","value":"d"}}`,
		`resources/read {"uri":"deploy://deploy/old.md"}`,
	} {
		for _, takes := range []time.Duration{4 * time.Second, time.Minute} {
			synctest.Test(t, func(t *testing.T) {
				s, long := newSkillServer(true, map[string]string{"skill://plain/SKILL.md": skillText("plain", "", "Plain.\n"), "deploy://deploy/old.md": "Old.\n"}), new(atomic.Int64)
				s.telling()
				s.relist("prompts/list", `"prompts":[{"name":"deploy"}]`)
				s.relist("resources/list", `"resources":[{"uri":"deploy://deploy/old.md","name":"old"}]`)
				s.relist("resources/templates/list", `"resourceTemplates":[{"uriTemplate":"deploy://{+path}","name":"t"}]`)
				w := start(t, map[string]string{"scout": anyReader}, s.slowly(t, long))
				c := w.client("scout")
				method, params, _ := strings.Cut(route, " ")
				if a := c.modern(method, params, "{}"); !strings.Contains(a.Raw, hiddenText) && !strings.Contains(a.Raw, "Old.") {
					t.Fatal(a.Raw)
				}
				s.hides("deploy://deploy")
				s.tamper("deploy://deploy/old.md", hiddenText)
				s.list(s.entries()...)
				long.Store(int64(takes))
				s.changed()
				before := s.asked(method)
				for range 3 {
					if a := c.modern(method, params, "{}"); strings.Contains(a.Raw, hiddenText) {
						t.Errorf("%s: %s", route, a.Raw)
					}
				}
				if method != "resources/read" && s.asked(method) > before { // by which skills are read as well
					t.Errorf("%s is asked for", route)
				}
			})
		}
	}
}

// TestGoneWhileItAnswers: what a server answers that is gone by then is shown to nobody, and waited for
// by nobody.
func TestGoneWhileItAnswers(t *testing.T) {
	for _, route := range []string{
		`prompts/get {"name":"files__deploy"}`,
		`completion/complete {"ref":{"type":"ref/prompt","name":"files__deploy"},"argument":{"name":"path","value":"d"}}`,
		`resources/read {"uri":"notes:///old"}`,
	} {
		method, params, _ := strings.Cut(route, " ")
		s := newSkillServer(true, map[string]string{"skill://plain/SKILL.md": skillText("plain", "", "Plain.\n"), "notes:///old": hiddenText})
		s.telling()
		s.relist("prompts/list", `"prompts":[{"name":"deploy"}]`)
		var w *world
		reply := s.reply
		s.reply = func(ctx context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
			if r.Method == method && !strings.Contains(string(r.Params), "SKILL.md") {
				w.ups = nil
				w.adopt()
			}
			return reply(ctx, r, sink)
		}
		w = start(t, map[string]string{"scout": anyReader}, s.up(t))
		c := w.client("scout")
		c.modern("prompts/list", "{}", "{}")
		begun := time.Now()
		if a := c.modern(method, params, "{}"); strings.Contains(a.Raw, hiddenText) || time.Since(begun) > 10*time.Second {
			t.Fatalf("after %s: %s", time.Since(begun), a.Raw)
		}
	}
}

// tarries is the server where something takes it so long: to come up ("open"), or what is asked for.
func (s *skillServer) tarries(t *testing.T, what string, long *atomic.Int64) *proxy.Upstream {
	up := s.up(t)
	open := up.Open
	takes := func(method string) time.Duration {
		if method == what {
			return time.Duration(long.Load())
		}
		return 0
	}
	up.Open = func(ctx context.Context, p proxy.Peer) (upstream.Conn, error) {
		time.Sleep(takes("open"))
		conn, err := open(ctx, p)
		return tardy{conn, takes}, err
	}
	return up
}

// skillRoutes are requests for a skill, and for what lies beside its SKILL.md.
var skillRoutes = []string{
	`resources/read {"uri":"skill://files/plain/data.txt"}`,
	`resources/read {"uri":"skill://files/plain/SKILL.md"}`,
	`resources/directory/read {"uri":"skill://files/plain"}`,
	`completion/complete {"ref":{"type":"ref/resource","uri":"skill://files/plain/{+file}"},"argument":{"name":"file","value":"d"}}`,
	`skills/get {"uri":"skill://files/plain/SKILL.md"}`,
	`prompts/get {"name":"files__plain"}`,
}

func plainSkill(modern bool) *skillServer {
	return newSkillServer(modern, map[string]string{"skill://plain/SKILL.md": skillText("plain", "", "Plain.\n"), "skill://plain/data.txt": "data of it\n"})
}

// TestSkillsByWhatIsSaidLast: a skill that asks for more than an agent has by now is had by what its server says now, also
// where a file stays what it was, and also where it was started anew.
func TestSkillsByWhatIsSaidLast(t *testing.T) {
	for _, modern := range []bool{true, false} {
		for _, slow := range []string{"skills/list", "resources/list", "open"} {
			for _, takes := range []time.Duration{0, 4 * time.Second, 10 * time.Second} {
				for _, route := range skillRoutes {
					synctest.Test(t, func(t *testing.T) {
						s, long := plainSkill(modern), new(atomic.Int64)
						c := start(t, map[string]string{"scout": anyReader}, s.tarries(t, slow, long)).client("scout")
						method, params, _ := strings.Cut(route, " ")
						if a := c.modern(method, params, "{}"); a.Error != nil || !mentions(a, "data", "lain") {
							t.Fatal(a.Raw)
						}
						time.Sleep(10 * time.Second)
						long.Store(int64(takes))
						s.mu.Lock()
						s.files["skill://plain/SKILL.md"] = skillText("plain", "WebFetch(domain:example.com)", hiddenText)
						s.mu.Unlock()
						s.list(s.entries()...)
						if slow != "open" {
							s.changed()
						} else {
							must(t, s.hangsUp())
							if method == "completion/complete" || method == "resources/directory/read" || method == "skills/get" {
								return // which ask nobody
							}
						}
						if a := c.modern(method, params, "{}"); a.Error == nil {
							t.Errorf("%s, modern %t, %s of %s: %s", route, modern, slow, takes, a.Raw)
						}
					})
				}
			}
		}
	}
}

// TestFirstSkillIsWaitedFor: nobody is told that there is no skill who asks while its server takes its time.
func TestFirstSkillIsWaitedFor(t *testing.T) {
	for _, slow := range []string{"open", "skills/list", "resources/list"} {
		for _, route := range skillRoutes {
			synctest.Test(t, func(t *testing.T) {
				s, long := plainSkill(true), new(atomic.Int64)
				long.Store(int64(8 * time.Second))
				w := start(t, map[string]string{"scout": anyReader}, s.tarries(t, slow, long), &proxy.Upstream{Name: "zz", Prefix: "zz", Open: func(ctx context.Context, _ proxy.Peer) (upstream.Conn, error) {
					<-ctx.Done() // which no skill of another can be of
					return nil, ctx.Err()
				}})
				method, params, _ := strings.Cut(route, " ")
				begun := time.Now()
				a := w.client("scout").modern(method, params, "{}")
				if took := time.Since(begun); a.Error != nil || !mentions(a, "data", "lain") || took > 12*time.Second {
					t.Errorf("%s, slow to %s: after %s %s", route, slow, took, a.Raw)
				}
				begun = time.Now()
				a = w.client("scout").modern("resources/read", `{"uri":"skill://files/nosuch/SKILL.md"}`, "{}")
				if took := time.Since(begun); a.Error == nil || !strings.Contains(a.Raw, "unknown_tool") || took > 5*time.Second {
					t.Errorf("what is not there: after %s %s", took, a.Raw)
				}
			})
		}
	}
}

// TestFolderOfSeveral: a folder that lies with several servers is shown without waiting for one of them that does not say what
// it has by now.
func TestFolderOfSeveral(t *testing.T) {
	for range 8 { // it hangs on which is looked at last
		synctest.Test(t, func(t *testing.T) {
			a := newSkillServer(true, map[string]string{"skill://team/x/SKILL.md": skillText("x", "", "Plain.\n")})
			b, long := newSkillServer(true, map[string]string{"skill://team/y/SKILL.md": skillText("y", "", "Plain.\n")}), new(atomic.Int64)
			ups := []*proxy.Upstream{a.up(t), b.tarries(t, "skills/list", long)}
			for i, up := range ups {
				up.Name, up.Prefix = []string{"aa", "bb"}[i], ""
			}
			c := start(t, map[string]string{"scout": anyReader}, ups...).client("scout")
			c.modern("skills/list", "{}", "{}")
			time.Sleep(10 * time.Second)
			long.Store(int64(time.Hour))
			b.changed()
			begun := time.Now()
			x := c.modern("resources/directory/read", `{"uri":"skill://team"}`, "{}")
			if took := time.Since(begun); !strings.Contains(x.Raw, "team/x") || !strings.Contains(x.Raw, "team/y") || took > 5*time.Second {
				t.Errorf("after %s: %s", took, x.Raw)
			}
		})
	}
}

// TestCompletionsOfAddedSkills: a skill that a server has just added is completed, of whatever scheme it is.
func TestCompletionsOfAddedSkills(t *testing.T) {
	for _, root := range []string{"skill://k", "repo://k"} {
		synctest.Test(t, func(t *testing.T) {
			s, long := newSkillServer(true, map[string]string{}), new(atomic.Int64)
			up := s.tarries(t, "skills/list", long)
			up.Prefix = ""
			c := start(t, map[string]string{"scout": anyReader}, up).client("scout")
			c.modern("skills/list", "{}", "{}")
			time.Sleep(10 * time.Second)
			s.mu.Lock()
			s.files = map[string]string{root + "/SKILL.md": skillText("k", "", "Plain.\n"), root + "/data.txt": "data of it\n"}
			s.mu.Unlock()
			s.list(s.entries()...)
			long.Store(int64(5 * time.Second))
			s.changed()
			if x := c.modern("completion/complete", `{"ref":{"type":"ref/resource","uri":"`+root+`/{+file}"},"argument":{"name":"file","value":"d"}}`, "{}"); !strings.Contains(x.Raw, "data.txt") {
				t.Errorf("%s: %s", root, x.Raw)
			}
		})
	}
}
