package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"capgate/guardrail"
	"capgate/proxy"
	"capgate/upstream"
)

// until asks again and again, for as long as a server may take to be looked at.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatal("not in time: " + what)
		case <-tick.C:
		}
	}
}

// mentions reports whether an answer holds one of some words.
func mentions(a said, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(a.Raw, w) })
}

// TestServedSkillsAreBound: what a server serves in place of the file that was
// decided on reaches nobody, and is decided on anew.
func TestServedSkillsAreBound(t *testing.T) {
	const main, more = "skill://files/greet/SKILL.md", "skill://files/greet/more.txt"
	own := map[string]string{"skill://greet/SKILL.md": skillText("greet", "", "Greet.\n"), "skill://greet/more.txt": "more"}
	other := skillText("greet", "WebFetch(domain:example.com)", hiddenText)
	for name, served := range map[string]struct{ uri, text string }{
		"other skill":    {"skill://greet/SKILL.md", other},
		"other file":     {"skill://greet/more.txt", hiddenText},
		"one byte less":  {"skill://greet/more.txt", "mor"},
		"two files":      {"skill://greet/more.txt", `{"contents":[{"uri":"skill://greet/more.txt","text":"more"},{"uri":"skill://greet/x","text":"` + hiddenText + `"}]}`},
		"another URI":    {"skill://greet/more.txt", `{"contents":[{"uri":"skill://x/` + hiddenText + `","text":"more"}]}`},
		"text and bytes": {"skill://greet/more.txt", `{"contents":[{"uri":"skill://greet/more.txt","text":"more","blob":"` + hiddenText + `"}]}`},
		"no file":        {"skill://greet/more.txt", `{"contents":[]}`},
		"bad bytes":      {"skill://greet/more.txt", `{"contents":[{"uri":"skill://greet/more.txt","blob":"` + hiddenText + `"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSkillServer(true, own)
			w := start(t, map[string]string{"scout": anyReader}, s.up(t))
			inEras(t, w, "scout", func(t *testing.T, do ask) {
				exposed := "skill://files/" + strings.TrimPrefix(served.uri, "skill://")
				until(t, "the file is served", func() bool { return do("resources/read", uriParams(exposed)).Error == nil })
				s.tamper(served.uri, served.text)
				a := do("resources/read", uriParams(exposed))
				if a.Error == nil || strings.Contains(a.Raw, hiddenText) || denialOf(t, a).Code != "upstream_failed" {
					t.Errorf("%s", a.Raw)
				}
				if a := do("prompts/get", `{"name":"files__greet"}`); strings.Contains(a.Raw, hiddenText) {
					t.Errorf("as a prompt: %s", a.Raw)
				}
				s.tamper(served.uri, own[served.uri])
				s.changed()
			})
		})
	}
	t.Run("listed anew", func(t *testing.T) {
		s := newSkillServer(false, own)
		w := start(t, map[string]string{"scout": anyReader, "boss": fetcher}, s.up(t))
		scout, boss := w.client("scout"), w.client("boss")
		scout.initialize("{}")
		boss.initialize("{}")
		for _, c := range []*client{scout, boss} {
			if n := len(listSkills(t, c.request)); n != 1 {
				t.Fatalf("%d skills", n)
			}
		}
		s.tamper("skill://greet/SKILL.md", other)
		s.mu.Lock()
		s.files = map[string]string{"skill://greet/SKILL.md": other, "skill://greet/more.txt": "more"}
		s.mu.Unlock()
		s.list(s.entries()...)
		s.changed()
		if n := len(listSkills(t, scout.request)); n != 0 {
			t.Errorf("the agent sees %d skills", n)
		}
		for _, uri := range []string{main, more} {
			if a := scout.request("resources/read", uriParams(uri)); a.Error == nil || strings.Contains(a.Raw, hiddenText) {
				t.Errorf("%s", a.Raw)
			}
		}
		if a := boss.request("resources/read", uriParams(main)); a.Error != nil || !strings.Contains(a.Raw, hiddenText) {
			t.Errorf("whoever satisfies it is told %s", a.Raw)
		}
	})
}

// TestServedSkillsAreWatched: a file that its server says has changed is looked at,
// and those who watch it are told under the URI that they know.
func TestServedSkillsAreWatched(t *testing.T) {
	s := newSkillServer(false, map[string]string{"skill://greet/SKILL.md": skillText("greet", "", "Greet.\n"), "skill://greet/more.txt": "more"})
	w := start(t, map[string]string{"scout": anyReader}, s.up(t))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := w.client("scout")
	c.initialize("{}")
	listSkills(t, c.request)
	if a := c.request("resources/subscribe", uriParams("skill://files/greet/more.txt")); a.Error != nil {
		t.Fatal(a.Raw)
	}
	if asked := s.calls()[len(s.calls())-1]; asked.Method != "resources/subscribe" || !strings.Contains(string(asked.Params), `"skill://greet/more.txt"`) {
		t.Errorf("the server was asked %s %s", asked.Method, asked.Params)
	}
	session := c.open(ctx, t, http.MethodGet, "")
	s.mu.Lock()
	s.files = map[string]string{"skill://greet/SKILL.md": s.files["skill://greet/SKILL.md"], "skill://greet/more.txt": "less"}
	s.mu.Unlock()
	s.list(s.entries()...)
	s.first().Events.Notify("notifications/resources/updated", []byte(`{"uri":"skill://greet/more.txt"}`))
	heard := session.next() + session.next()
	if !strings.Contains(heard, "resources/list_changed") || !strings.Contains(heard, `"params":{"uri":"skill://files/greet/more.txt"}`) {
		t.Errorf("heard is %s", heard)
	}
	if a := c.request("resources/read", uriParams("skill://files/greet/more.txt")); string(fileOf(t, a, "skill://files/greet/more.txt")) != "less" {
		t.Errorf("%s", a.Raw)
	}
}

// TestUpdatesOfHiddenSkills: whoever watches what a skill lies in that the agent does not see is
// told of nothing in its folder, whether or not the server lists that.
func TestUpdatesOfHiddenSkills(t *testing.T) {
	s := newSkillServer(false, servedFiles())
	s.lists["resources/list"] = `"resources":[{"name":"x","uri":"repo://acme/x"}]`
	w := start(t, map[string]string{"scout": anyReader}, s.up(t))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := w.client("scout")
	c.initialize("{}")
	if a := c.request("resources/subscribe", uriParams("repo://acme/x")); a.Error != nil {
		t.Fatal(a.Raw)
	}
	session := c.open(ctx, t, http.MethodGet, "")
	listener := c.open(
		ctx, t, http.MethodPost, `{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["repo://acme/x"]},"_meta":{`+modernMeta+`}}}`,
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen",
	)
	listener.next() // the acknowledgement
	for _, uri := range []string{"skills/hid/a.md", "skills/hid/notes-of-bob.md", "skills/hid", "skills/hid/a.md?v=2", "SKILLS/hid/a.md", "skills/other/SKILL.md", "README"} {
		s.first().Events.Notify("notifications/resources/updated", []byte(`{"uri":"repo://acme/x/`+uri+`"}`))
	}
	for _, in := range []*events{session, listener} {
		if got := in.next(); !strings.Contains(got, "repo://acme/x/README") {
			t.Errorf("told is %s", got)
		}
	}
}

// TestUpdatesOfNewSkills: what lies in a skill that the server has added since is told to nobody,
// however long it takes to say which skills it has. All else is told by then.
func TestUpdatesOfNewSkills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSkillServer(false, servedFiles())
		s.lists["resources/list"] = `"resources":[{"name":"x","uri":"repo://acme/x"}]`
		w := start(t, map[string]string{"scout": anyReader}, s.up(t))
		c := w.client("scout")
		c.initialize("{}")
		if a := c.request("resources/subscribe", uriParams("repo://acme/x")); a.Error != nil {
			t.Fatal(a.Raw)
		}
		in := c.open(t.Context(), t, http.MethodGet, "")
		until(t, "at rest", func() bool { return !w.server.Looks("scout") })
		tell := s.first().Events.Notify
		for name, again := range map[string]func(){
			"new":     func() { tell("notifications/resources/list_changed", nil) },
			"another": func() { tell(upstream.HeardAgain, nil) },
		} {
			s.mu.Lock()
			s.files["repo://acme/x/"+name+"/SKILL.md"] = skillText(name, "WebFetch(domain:example.com)", hiddenText)
			s.mu.Unlock()
			s.list(s.entries()...)
			s.takes(200 * time.Millisecond)
			time.Sleep(time.Millisecond) // it was asked before
			again()
			for _, uri := range []string{name + "/notes-of-bob.md", name, "README-" + name} {
				tell("notifications/resources/updated", []byte(uriParams("repo://acme/x/"+uri)))
				again()
			}
			for got := ""; !strings.Contains(got, "README-"+name); {
				if got = in.next(); got == "" || strings.Contains(got, "/"+name) {
					t.Fatalf("%s: told is %q", name, got)
				}
			}
		}
	})
}

// TestMadeUpSkills: of a skill that a server makes up as it is read, what is read is
// what is decided on; nothing else of it is served.
func TestMadeUpSkills(t *testing.T) {
	const uri = "skill://files/daily/SKILL.md"
	s := newSkillServer(true, map[string]string{"skill://daily/SKILL.md": skillText("daily", "", "Monday.\n"), "skill://daily/more.txt": hiddenText})
	s.list(`{"uri":"skill://daily/SKILL.md","frontmatter":{"name":"daily","description":"About daily."},"resources":"dynamic"}`)
	w := start(t, map[string]string{"scout": anyReader}, s.up(t))
	inEras(t, w, "scout", func(t *testing.T, do ask) {
		if list := listSkills(t, do); len(list) != 1 || string(list[0].Resources) != `"dynamic"` {
			t.Fatalf("listed is %+v", list)
		}
		s.tamper("skill://daily/SKILL.md", skillText("daily", "Read", "Tuesday.\n"))
		if a := do("resources/read", uriParams(uri)); !strings.Contains(string(fileOf(t, a, uri)), "Tuesday") {
			t.Errorf("%s", a.Raw)
		}
		for _, text := range []string{
			skillText("daily", "WebFetch(domain:example.com)", hiddenText), skillText("other", "", hiddenText), hiddenText,
			strings.Replace(skillText("daily", "", hiddenText), "About daily.", "Something else.", 1),
		} {
			s.tamper("skill://daily/SKILL.md", text)
			if a := do("resources/read", uriParams(uri)); a.Error == nil || strings.Contains(a.Raw, hiddenText) {
				t.Errorf("%s", a.Raw)
			}
		}
		if a := do("resources/read", uriParams("skill://files/daily/more.txt")); a.Error == nil || strings.Contains(a.Raw, hiddenText) {
			t.Errorf("%s", a.Raw)
		}
	})
}

// TestDraftSkills: a server that serves skills as resources, as was done before there
// was an extension.
func TestDraftSkills(t *testing.T) {
	secret := skillText("secret", "WebFetch(domain:example.com)", hiddenText)
	greet, bare := skillText("greet", "", "Greet.\n"), skillText("bare", "", "Bare.\n")
	manifest := func(files map[string]string) string {
		var list []string
		for path, data := range files {
			e := strings.NewReplacer(`"uri"`, `"path"`, `"digest"`, `"hash"`).Replace(manifestEntry(path, data))
			list = append(list, e)
		}
		return `{"skill":"x","files":[` + strings.Join(list, ",") + `]}`
	}
	s := newSkillServer(false, map[string]string{
		"skill://greet/SKILL.md": greet, "skill://greet/more.txt": "more", "skill://greet/unlisted.txt": hiddenText,
		"skill://greet/_manifest": manifest(map[string]string{"SKILL.md": greet, "more.txt": "more"}),
		"skill://secret/SKILL.md": secret, "skill://secret/_manifest": manifest(map[string]string{"SKILL.md": secret}),
		"skill://bare/SKILL.md": bare, "skill://bare/more.txt": hiddenText, "skill://index.json": hiddenText,
		"skill://bad/SKILL.md": skillText("bad", "", hiddenText), "skill://bad/_manifest": manifest(map[string]string{"SKILL.md": "x", "../secret/SKILL.md": secret}),
	})
	s.info.Capabilities = []byte(serverAbilities)
	delete(s.lists, "skills/list")
	var resources []string
	for uri := range s.files {
		if !strings.HasSuffix(uri, ".txt") {
			resources = append(resources, fmt.Sprintf(`{"uri":%q,"name":"x"}`, uri))
		}
	}
	s.lists["resources/list"] = `"resources":[` + strings.Join(resources, ",") + `]`
	s.lists["resources/templates/list"] = `"resourceTemplates":[{"uriTemplate":"skill://greet/{path*}","name":"t"}]`
	w := start(t, map[string]string{"scout": anyReader}, s.up(t))
	c := w.client("scout")
	if a := c.initialize("{}"); !strings.Contains(a.Raw, "io.modelcontextprotocol/skills") {
		t.Errorf("said is %s", a.Raw)
	}
	inEras(t, w, "scout", func(t *testing.T, do ask) {
		list := listSkills(t, do)
		if diff := cmp.Diff([]string{"skill://files/bare/SKILL.md", "skill://files/greet/SKILL.md"}, skillURIs(list)); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff(map[string]string{"skill://files/greet/SKILL.md": greet, "skill://files/greet/more.txt": "more"}, verify(t, do, list[1])); diff != "" {
			t.Error(diff)
		}
		verify(t, do, list[0])
		for _, uri := range []string{
			"skill://files/secret/SKILL.md", "skill://files/secret/_manifest", "skill://files/greet/unlisted.txt", "skill://files/bare/more.txt", "skill://index.json",
			"skill://files/index.json", "skill://secret/SKILL.md", "skill://greet/_manifest", "skill://files/greet/_manifest", "skill://files/bad/SKILL.md",
		} {
			if a := do("resources/read", uriParams(uri)); a.Error == nil || a.Error.Code != -32602 || strings.Contains(a.Raw, hiddenText) {
				t.Errorf("%s: %s", uri, a.Raw)
			}
		}
		for _, method := range []string{"resources/list", "resources/templates/list", "prompts/list"} {
			if a := do(method, "{}"); mentions(a, "secret", "index.json", "path*", "_manifest") {
				t.Errorf("%s: %s", method, a.Raw)
			}
		}
	})
}

// TestSkillCollisions: what two owners claim, nobody has. A prompt of a server that is called
// like one of its skills is that skill.
func TestSkillCollisions(t *testing.T) {
	s := newSkillServer(true, map[string]string{
		"skill://greet/SKILL.md": skillText("greet", "", hiddenText), "skill://fine/SKILL.md": skillText("fine", "", "Fine.\n"),
		"skill://a/b/SKILL.md": skillText("b", "", hiddenText), "skill://taken/SKILL.md": skillText("taken", "", "Taken.\n"),
	})
	s.lists["prompts/list"] = `"prompts":[{"name":"taken"}]`
	w := start(t, map[string]string{"scout": anyReader}, s.up(t))
	w.bundles(map[string]string{
		"files/greet/SKILL.md": skillText("greet", "", hiddenText), "notes/SKILL.md": skillText("notes", "", "Notes.\n"),
		"files/a/SKILL.md": skillText("a", "", hiddenText), "files__fine/SKILL.md": skillText("files__fine", "", "Mine.\n"),
		"one/same/SKILL.md": skillText("same", "", "One.\n"), "two/same/SKILL.md": skillText("same", "", "Two.\n"),
	})
	inEras(t, w, "scout", func(t *testing.T, do ask) {
		want := []string{"skill://files/fine/SKILL.md", "skill://files/taken/SKILL.md", "skill://notes/SKILL.md", "skill://one/same/SKILL.md", "skill://two/same/SKILL.md"}
		if diff := cmp.Diff(want, skillURIs(listSkills(t, do))); diff != "" {
			t.Error(diff)
		}
		for _, uri := range []string{"skill://files/greet/SKILL.md", "skill://files/a/SKILL.md", "skill://files/a/b/SKILL.md"} {
			if a := do("resources/read", uriParams(uri)); a.Error == nil || strings.Contains(a.Raw, hiddenText) {
				t.Errorf("%s: %s", uri, a.Raw)
			}
		}
		if a := do("resources/read", uriParams("skill://files__fine/SKILL.md")); !mentions(a, "Mine.") { // no name by the letter
			t.Errorf("what is not listed is read as %s", a.Raw)
		}
		var r struct{ Prompts []struct{ Name string } }
		if a := do("prompts/list", "{}"); json.Unmarshal(a.Result, &r) != nil || len(r.Prompts) != 2 || r.Prompts[0].Name != "files__taken" || r.Prompts[1].Name != "notes" {
			t.Errorf("the prompts are %s", a.Raw)
		}
		if a := do("prompts/get", `{"name":"files__taken"}`); !mentions(a, "Taken.") {
			t.Errorf("the prompt is %s", a.Raw)
		}
		for _, name := range []string{"files__fine", "same"} {
			if a := do("prompts/get", `{"name":"`+name+`"}`); denialOf(t, a).Code != "name_collision" {
				t.Errorf("%s: %s", name, a.Raw)
			}
		}
	})
}

// TestClaimsSpelledOtherwise: a server does not take the place of skills that are not its own by
// URIs that mean it to some readers only. It has none for them.
func TestClaimsSpelledOtherwise(t *testing.T) {
	for _, claim := range []string{
		"SKILL://notes/SKILL.md", "skill:/notes/SKILL.md", "skill:///notes/SKILL.md", "skill%3A//notes/SKILL.md", " skill://notes/SKILL.md",
		"skill://../notes/SKILL.md", "skill://..;x/notes/SKILL.md", "skill://..%3Bx/notes/SKILL.md", "skill://x/..:y/..:y/notes/SKILL.md",
		"SKILL://well/notes/SKILL.md", "skill://..;x/well/notes/SKILL.md", "SKILL://well/SKILL.md", "skill://..;x/well/SKILL.md",
	} {
		name := path.Base(strings.TrimSuffix(claim, "/SKILL.md"))
		s := newSkillServer(true, map[string]string{"skill://mine/SKILL.md": skillText("mine", "", "Mine.\n"), claim: skillText(name, "", hiddenText)})
		other := newSkillServer(false, map[string]string{"skill://notes/SKILL.md": skillText("notes", "", "Notes.\n")})
		w := start(t, map[string]string{"scout": anyReader}, s.up(t), &proxy.Upstream{Name: "well", Prefix: "well", Open: other.open})
		w.bundles(map[string]string{"notes/SKILL.md": skillText("notes", "", "Notes.\n")})
		c := w.client("scout")
		c.initialize("{}")
		want := []string{"skill://files/mine/SKILL.md", "skill://notes/SKILL.md", "skill://well/notes/SKILL.md"}
		if diff := cmp.Diff(want, skillURIs(listSkills(t, c.request))); diff != "" {
			t.Errorf("%s: %s", claim, diff)
		}
		if a := c.request("resources/read", uriParams(claim)); a.Error == nil || strings.Contains(a.Raw, hiddenText) {
			t.Errorf("%s: %s", claim, a.Raw)
		}
	}
}

// TestSkillsInPlaceOfResources: a server does not answer for the resources of another by
// making them files of a skill, be they listed or described by a template. Nobody has
// them then.
func TestSkillsInPlaceOfResources(t *testing.T) {
	wiki := newSkillServer(true, map[string]string{"wiki://corp/page/policy.md": "the policy", "wiki://corp/pages/a.md": "a page", "wiki://corp/other.md": "other"})
	wiki.info.Capabilities = []byte(serverAbilities)
	wiki.lists["resources/list"] = `"resources":[{"uri":"wiki://corp/page/policy.md","name":"policy"},{"uri":"wiki://corp/other.md","name":"other"}]`
	wiki.lists["resources/templates/list"] = `"resourceTemplates":[{"uriTemplate":"wiki://corp/pages/{+page}","name":"pages"}]`
	s := newSkillServer(true, map[string]string{
		"wiki://corp/page/SKILL.md": skillText("page", "", hiddenText), "wiki://corp/page/policy.md": hiddenText,
		"wiki://corp/pages/in/SKILL.md": skillText("in", "", hiddenText), "wiki://corp/pages/in/a.md": hiddenText,
		"wiki://mine/fine/SKILL.md": skillText("fine", "", "Fine.\n"),
	})
	w := start(t, map[string]string{"scout": anyReader}, s.up(t), &proxy.Upstream{Name: "wiki", Prefix: "wiki", Open: wiki.open})
	inEras(t, w, "scout", func(t *testing.T, do ask) {
		if diff := cmp.Diff([]string{"wiki://mine/fine/SKILL.md"}, skillURIs(listSkills(t, do))); diff != "" {
			t.Error(diff)
		}
		for _, uri := range []string{"wiki://corp/page/policy.md", "wiki://corp/page/SKILL.md", "wiki://corp/pages/in/a.md", "wiki://corp/pages/in/SKILL.md"} {
			if a := do("resources/read", uriParams(uri)); a.Error == nil || strings.Contains(a.Raw, hiddenText) {
				t.Errorf("%s: %s", uri, a.Raw)
			}
		}
		for uri, text := range map[string]string{"wiki://corp/pages/a.md": "a page", "wiki://corp/other.md": "other"} {
			if a := do("resources/read", uriParams(uri)); string(fileOf(t, a, uri)) != text {
				t.Errorf("%s: %s", uri, a.Raw)
			}
		}
		if a := do("resources/list", "{}"); mentions(a, "policy.md", hiddenText) {
			t.Errorf("the resources are %s", a.Raw)
		}
	})
}

// TestUnknownSkillsShowNothing: as long as nobody knows which resources of a server
// are skills, none is shown or read.
func TestUnknownSkillsShowNothing(t *testing.T) {
	s := newSkillServer(true, servedFiles())
	s.lists["resources/list"] = `"resources":[{"uri":"repo://acme/x/skills/hid/a.md","name":"secret"},{"uri":"repo://acme/x/README","name":"readme"}]`
	s.lists["skills/list"] = `"skills":"none"`
	w := start(t, map[string]string{"scout": anyReader}, s.up(t), &proxy.Upstream{Name: "other", Prefix: "other", Open: (&scripted{}).open})
	c := w.client("scout")
	c.initialize("{}")
	if a := c.request("resources/list", "{}"); strings.Contains(a.Raw, "repo:") {
		t.Errorf("%s", a.Raw)
	}
	for _, uri := range []string{"repo://acme/x/skills/hid/a.md", "repo://acme/x/README"} {
		if a := c.request("resources/read", uriParams(uri)); a.Error == nil || strings.Contains(a.Raw, hiddenText) {
			t.Errorf("%s", a.Raw)
		}
	}
}

// TestPolicyWhileReading: a file of a server's skill for which another policy comes between
// what is decided and what goes up is decided anew.
func TestPolicyWhileReading(t *testing.T) {
	s := newSkillServer(true, map[string]string{"skill://greet/SKILL.md": skillText("greet", "", "Greet.\n")})
	w := start(t, map[string]string{"scout": anyReader}, s.up(t))
	c := w.client("scout")
	c.initialize("{}")
	const uri = "skill://files/greet/SKILL.md"
	until(t, "served", func() bool { return c.request("resources/read", uriParams(uri)).Error == nil })
	var once sync.Once
	w.events.before = func(e *guardrail.Event) {
		if e.Decision == "allow" {
			once.Do(func() { w.adopt() })
		}
	}
	before := len(w.events.of(guardrail.Refusal))
	if a := c.request("resources/read", uriParams(uri)); a.Error != nil || len(w.events.of(guardrail.Refusal)) != before {
		t.Errorf("%s, %+v", a.Raw, w.events.of(guardrail.Refusal))
	}
}
