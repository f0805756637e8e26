package proxy_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"capgate/proxy"
	"capgate/upstream"
)

// TestSkillsGoneMeanwhile: what was asked for while a server had a hidden skill brings none of its
// files along, though the server has taken the skill away before anybody looks at the answer.
func TestSkillsGoneMeanwhile(t *testing.T) {
	const embedded = `{"uri":"wiki://h/q/in.md","text":"` + hiddenText + `"}`
	for method, of := range map[string][2]string{
		"resources/read": {`{"uri":"wiki://h/index"}`, `"contents":[{"uri":"wiki://h/index","text":"index"},` + embedded + `]`},
		"prompts/get":    {`{"name":"files__guide"}`, `"messages":[{"role":"user","content":{"type":"resource","resource":` + embedded + `}}]`},
	} {
		s := newSkillServer(true, map[string]string{"wiki://h/q/SKILL.md": skillText("q", "WebFetch(domain:example.com)", hiddenText), "wiki://h/q/in.md": hiddenText})
		listed := s.entries()
		s.lists["prompts/list"] = `"prompts":[{"name":"guide"}]`
		s.reply = func(ctx context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
			if r.Method != method || r.Name == "wiki://h/q/SKILL.md" {
				return s.read(ctx, r, sink)
			}
			s.list()
			s.changed()
			return upstream.Answer{Type: "complete", Result: []byte(`{"resultType":"complete",` + of[1] + `}`)}, nil
		}
		w := start(t, map[string]string{"scout": anyReader}, s.up(t))
		inEras(t, w, "scout", func(t *testing.T, do ask) {
			s.list(listed...)
			s.changed()
			if a := do(method, of[0]); a.Error == nil || mentions(a, hiddenText) {
				t.Errorf("%s: %s", method, a.Raw)
			}
			if a := do(method, of[0]); a.Error != nil { // nothing hides it any more
				t.Errorf("%s of what is no skill's: %s", method, a.Raw)
			}
		})
	}
}

// TestSkillsOfTheOneBefore: what a server answered that spoke the extension is not of one that has no skills,
// though it has been started anew by then and speaks the extension no more.
func TestSkillsOfTheOneBefore(t *testing.T) {
	const embedded = `{"uri":"wiki://h/q/SKILL.md","text":"` + hiddenText + `"}`
	for method, of := range map[string][2]string{
		"resources/read": {`{"uri":"wiki://h/index"}`, `"contents":[{"uri":"wiki://h/index","text":"index"},` + embedded + `]`},
		"prompts/get":    {`{"name":"files__guide"}`, `"messages":[{"role":"user","content":{"type":"resource","resource":` + embedded + `}}]`},
	} {
		synctest.Test(t, func(t *testing.T) {
			now, then := newSkillServer(true, nil), newSkillServer(true, nil)
			then.info.Capabilities = []byte(serverAbilities)
			for _, s := range []*skillServer{now, then} {
				s.lists["prompts/list"] = `"prompts":[{"name":"guide"}]`
			}
			var restarted atomic.Bool
			up := now.up(t)
			up.Open = func(ctx context.Context, p proxy.Peer) (upstream.Conn, error) {
				if restarted.Load() {
					return then.open(ctx, p)
				}
				return now.open(ctx, p)
			}
			now.reply = func(context.Context, upstream.Request, upstream.Sink) (upstream.Answer, error) {
				restarted.Store(true)
				now.changed()
				return upstream.Answer{Type: "complete", Result: []byte(`{"resultType":"complete",` + of[1] + `}`)}, now.hangsUp()
			}
			c := start(t, map[string]string{"scout": anyReader}, up).client("scout")
			c.modern("prompts/list", "{}", "{}")
			time.Sleep(10 * time.Second) // so that it is started anew at once
			if a := c.modern(method, of[0], "{}"); a.Error == nil || mentions(a, hiddenText) || then.asked("resources/list") == 0 {
				t.Errorf("%s: %s", method, a.Raw)
			}
		})
	}
}

// TestSkillTakenWhileWatched: a server that is started anew is not asked to tell of the file of a skill that nobody
// who watches it is shown any more, and is asked once somebody is again.
func TestSkillTakenWhileWatched(t *testing.T) {
	for range 10 { // as it is also forgotten in another way, a moment later
		synctest.Test(t, takenWhileWatched)
	}
}

func takenWhileWatched(t *testing.T) {
	s := newSkillServer(false, map[string]string{
		"skill://a/SKILL.md": skillText("a", "WebFetch(domain:example.com)", "A.\n"), "skill://b/SKILL.md": skillText("b", "", "B.\n"),
	})
	w := start(t, map[string]string{"scout": fetcher}, s.up(t))
	c := w.client("scout")
	c.initialize("{}")
	c.request("resources/list", "{}")
	for _, uri := range []string{"skill://files/a/SKILL.md", "skill://files/b/SKILL.md"} {
		if a := c.request("resources/subscribe", uriParams(uri)); a.Error != nil {
			t.Fatal(a.Raw)
		}
	}
	for i, test := range []struct {
		record string
		a, b   int
	}{{reader, 1, 2}, {anyReader, 1, 3}, {fetcher, 3, 4}, {anyReader, 3, 5}} {
		w.write("scout", test.record)
		if i == 3 { // by another line
			another := s.up(t)
			another.Identity, w.ups = "another", []*proxy.Upstream{another}
		}
		w.adopt()
		time.Sleep(5 * time.Second)
		if i < 3 {
			must(t, s.conns[i].Close())
		}
		time.Sleep(5 * time.Minute)
		a, b := 0, 0
		for _, r := range s.calls() {
			switch {
			case r.Method != "resources/subscribe":
			case strings.Contains(string(r.Params), "skill://a"):
				a++
			default:
				b++
			}
		}
		if a != test.a || b != test.b {
			t.Errorf("by record %d it is asked %d and %d times", i, a, b)
		}
	}
}

// TestUnlistedSkillsAreNotCompleted: a server of the extension that has a skill in no list names it by no
// template either, neither by one of any SKILL.md nor by what completes another. All else it completes.
func TestUnlistedSkillsAreNotCompleted(t *testing.T) {
	for _, test := range []struct {
		template, value string
		completed       bool
	}{
		{"wiki://h/{name}/SKILL.md", hiddenText, false},
		{"wiki://h/{name}/skill%2Emd{?version}", hiddenText, false},
		{"wiki://h/{+dir}SKILL.md", hiddenText + "/", false},
		{"wiki://h/{+path}", hiddenText + "/SKILL.md", false},
		{"{+uri}", "wiki://h/" + hiddenText + "/Skill.MD", false},
		{"wiki://h/{+path}", hiddenText + "/README.md", true},
		{"wiki://h/{name}/notes.md", hiddenText, true},
	} {
		for _, listed := range []bool{true, false} {
			s := newSkillServer(true, map[string]string{"skill://a/SKILL.md": skillText("a", "", "Fine.\n")})
			if !listed {
				s.list()
			}
			s.lists["resources/templates/list"] = `"resourceTemplates":[{"uriTemplate":"` + test.template + `","name":"t"}]`
			s.reply = func(ctx context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
				if r.Method == "completion/complete" {
					return upstream.Answer{Type: "complete", Result: []byte(`{"completion":{"values":["other","` + test.value + `"]}}`)}, nil
				}
				return s.read(ctx, r, sink)
			}
			w := start(t, map[string]string{"scout": anyReader}, s.up(t))
			inEras(t, w, "scout", func(t *testing.T, do ask) {
				_, name, _ := strings.Cut(test.template, "{")
				name, _, _ = strings.Cut(strings.Trim(name, "+"), "}")
				a := do("completion/complete", `{"ref":{"type":"ref/resource","uri":"`+test.template+`"},"argument":{"name":"`+name+`","value":""}}`)
				if (a.Error == nil) != test.completed || mentions(a, hiddenText) != test.completed {
					t.Errorf("%s by %s: %s", test.template, test.value, a.Raw)
				}
			})
		}
	}
}

// TestFlawedURIs: the operator is told what of a URI it is that keeps a skill from being shown.
func TestFlawedURIs(t *testing.T) {
	for _, test := range []struct{ root, file, why string }{
		{"file:///srv/q", "", "its URI has nothing between :// and the next slash"},
		{"skill://a//q", "", "its URI can be read in several ways"},
		{"skill://a/../q", "", "its URI can be read in several ways"},
		{"skill://" + strings.Repeat("a/", 65) + "q", "", "its URI is too long, or too deep"},
		{"skill://q", "skill://q/a b.md", "it lists a file whose URI can be read in several ways"},
		{"skill://q", "skill://other/a.md", "it lists a file that does not lie in its folder"},
	} {
		main := test.root + "/SKILL.md"
		s := newSkillServer(true, map[string]string{main: skillText("q", "", "Fine.\n")})
		manifest := manifestEntry(main, s.files[main])
		if test.file != "" {
			manifest += "," + manifestEntry(test.file, "x")
		}
		s.list(`{"uri":"` + main + `","frontmatter":{"name":"q"},"resources":[` + manifest + `]}`)
		w := start(t, map[string]string{"scout": anyReader}, s.up(t))
		all, _, err := w.server.LookSkills(t.Context(), "agents/scout")
		if err != nil || len(all) != 1 || all[0].Visible || all[0].Why != test.why {
			t.Errorf("%s: %+v, %v", test.root, all, err)
		}
	}
}

// TestSkillsDescribedOtherwise: the operator is told why a skill is shown to nobody of which the list of its server
// says something else than it does itself.
func TestSkillsDescribedOtherwise(t *testing.T) {
	for text, why := range map[string]string{
		skillText("q", "", "Fine.\n"):  "the list of its server describes it otherwise than it does itself",
		"---\nname: q\nname: q\n---\n": `the key "name" stands twice in the frontmatter`,
	} {
		s := newSkillServer(true, map[string]string{"skill://q/SKILL.md": text})
		s.list(strings.Replace(s.entries()[0], "About q.", "Better.", 1))
		w := start(t, map[string]string{"scout": anyReader}, s.up(t))
		all, _, err := w.server.LookSkills(t.Context(), "agents/scout")
		if err != nil || len(all) != 1 || all[0].Visible || all[0].Why != why {
			t.Errorf("%+v, %v", all, err)
		}
	}
}

// TestWhyNoResource: the agent is told that there is none, and the operator why.
func TestWhyNoResource(t *testing.T) {
	const one, list = "it may be a file of a skill of its server, and is read as one or not at all", `upstream "files" gives no list that can be read, so that it is not known what it has`
	for _, test := range []struct{ skills, uri, why, said string }{
		{`"skills":[]`, "wiki://h/q/SKILL.md", one, "there is no resource of that name"},
		{`"skills":[{"uri":"wiki://h/q/SKILL.md"}]`, "wiki://h/q/a.md", one, "there is no resource of that name"},
		{`"skills":"none"`, "wiki://h/a.md", list, "gives no list that can be read"},
	} {
		s := newSkillServer(true, nil)
		s.lists["skills/list"] = test.skills
		w := start(t, map[string]string{"scout": anyReader}, s.up(t))
		a := w.client("scout").modern("resources/read", uriParams(test.uri), "{}")
		events := w.events.of("decision")
		if len(events) != 1 || events[0].Link != test.why || !mentions(a, test.said) {
			t.Errorf("%s: %s\n%+v", test.uri, a.Raw, events)
		}
	}
}

// TestFilesOfEscapes: a file that a skill may have is read, however long its server's answer is for that.
func TestFilesOfEscapes(t *testing.T) {
	s := newSkillServer(true, map[string]string{"skill://a/SKILL.md": skillText("a", "", "Fine.\n"), "skill://a/log": strings.Repeat("\x01", 6<<20)})
	w := start(t, map[string]string{"scout": anyReader}, s.up(t))
	if a := w.client("scout").modern("resources/read", uriParams("skill://files/a/log"), "{}"); a.Error != nil {
		t.Errorf("%.500s", a.Raw)
	}
}
