package proxy_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/upstream"
)

// hiddenRoutes are requests that would show something of a skill, which HIDDEN
// stands for; the first few do for an agent that satisfies it.
func hiddenRoutes() (good, bad []string) {
	good = []string{
		`skills/get {"uri":"skill://HIDDEN/SKILL.md"}`,
		`resources/read {"uri":"skill://HIDDEN/SKILL.md"}`,
		`resources/read {"uri":"skill://HIDDEN/more/a.md"}`,
		`resources/directory/read {"uri":"skill://HIDDEN"}`,
		`resources/directory/read {"uri":"skill://HIDDEN/more"}`,
		`prompts/get {"name":"HIDDEN"}`,
		`completion/complete {"ref":{"type":"ref/resource","uri":"skill://HIDDEN/{+file}"},"argument":{"name":"file","value":""}}`,
		`completion/complete {"ref":{"type":"ref/prompt","name":"HIDDEN"},"argument":{"name":"x","value":""}}`,
	}
	for _, uri := range []string{
		"skill://notes/../HIDDEN/SKILL.md", "skill://notes/%2e%2e/HIDDEN/SKILL.md", "skill://HIDDEN/./SKILL.md", "skill://HIDDEN//SKILL.md",
		"skill:///HIDDEN/SKILL.md", "skill:/HIDDEN/SKILL.md", "skill:HIDDEN/SKILL.md", "SKILL://HIDDEN/SKILL.md", "Skill://HIDDEN/SKILL.md",
		"skill://HIDDEN/SKILL.md/", "skill://HIDDEN/SKILL.md?", "skill://HIDDEN/SKILL.md#x", "skill://HIDDEN/SKILL%2Emd", "skill://HIDDEN%2FSKILL.md",
		"skill%3A//HIDDEN/SKILL.md", "skill://HIDDEN/skill.md", "skill://HIDDEN\\SKILL.md", " skill://HIDDEN/SKILL.md", "sk\\till://HIDDEN/SKILL.md",
		"skill://notes/SKILL.md/../../HIDDEN/SKILL.md", "skill://HIDDEN", "skill://HIDDEN/", "skill://", "skill:", "skill://HIDDEN/_manifest",
		"skill://index.json", "skill://*/SKILL.md", "skill://user@HIDDEN/SKILL.md", "skill://HIDDEN:80/SKILL.md", "skill://./HIDDEN/SKILL.md",
	} {
		quoted := strings.ReplaceAll(string(mustJSON(uri)), `\\t`, `\t`)
		for _, method := range []string{"resources/read", "skills/get", "resources/directory/read"} {
			bad = append(bad, method+` {"uri":`+quoted+`}`)
		}
	}
	for _, name := range []string{"hidden", "HIDDEN ", "skill__HIDDEN", "skill://HIDDEN/SKILL.md", "inner", "outer", "broken"} {
		bad = append(bad, `prompts/get {"name":"`+name+`"}`)
	}
	for _, uri := range []string{"skill://outer/SKILL.md", "skill://outer/inner/SKILL.md", "skill://broken/SKILL.md"} {
		bad = append(bad, `resources/read {"uri":"`+uri+`"}`, `skills/get {"uri":"`+uri+`"}`)
	}
	bad = append(
		bad, `resources/directory/read {"uri":"skill://outer"}`, `resources/directory/read {"uri":"skill://outer/inner"}`,
		`completion/complete {"ref":{"type":"ref/resource","uri":"skill://{+file}"},"argument":{"name":"file","value":""}}`,
		`completion/complete {"ref":{"type":"ref/resource","uri":"skill://notes/{+file}"},"argument":{"name":"file","value":"../"}}`,
	)
	return good, bad
}

func mustJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// sameRefusal compares what is said of a hidden skill with what is said of none.
func sameRefusal(t *testing.T, route string, hidden, unknown said) {
	t.Helper()
	const mismatch = -32020 // of the header that repeats a URI with blanks
	if hidden.Error == nil || unknown.Error == nil || hidden.Error.Code != -32602 && hidden.Error.Code != mismatch {
		t.Errorf("%s: %s, %s", route, hidden.Raw, unknown.Raw)
		return
	}
	h, u := denialOf(t, hidden), denialOf(t, unknown)
	if a, b := strings.ReplaceAll(hidden.Error.Message, h.Event, ""), strings.ReplaceAll(unknown.Error.Message, u.Event, ""); a != b {
		t.Errorf("%s: hidden is %q, unknown %q", route, a, b)
	}
	h.Event, h.Tool, u.Event, u.Tool = "", "", "", ""
	if diff := cmp.Diff(h, u); diff != "" {
		t.Errorf("%s: %s", route, diff)
	}
}

// TestHiddenSkills: what an agent does not satisfy is not there, by whatever route,
// in the words for what there never was. Nothing of it reaches the agent, and each
// refusal is an event. The agent may read any resource there is.
func TestHiddenSkills(t *testing.T) {
	s := &scripted{}
	up := files(t, s)
	w := skilled(t, up)
	w.write("scout", "---\nclass: agent\ncapabilities:\n  - fs.read: { in: $ROOT, paths: [docs] }\n  - resource.read: { uris: [\"**\"] }\n  - prompt.get: { names: [\"**\"] }\n---\n")
	w.adopt()
	good, bad := hiddenRoutes()
	split := func(route, name string) (method, params string) {
		method, params, _ = strings.Cut(strings.ReplaceAll(route, "HIDDEN", name), " ")
		return method, params
	}
	inEras(t, w, "boss", func(t *testing.T, do ask) {
		for _, route := range good {
			if a := do(split(route, "secret")); a.Error != nil {
				t.Errorf("%s: whoever satisfies it is told %s", route, a.Raw)
			}
		}
	})
	inEras(t, w, "scout", func(t *testing.T, do ask) {
		for _, route := range append(good, bad...) {
			before := len(w.events.of("decision")) + len(w.events.of("refusal"))
			hidden, unknown := do(split(route, "secret")), do(split(route, "nosuch"))
			if strings.Contains(hidden.Raw, hiddenText) {
				t.Errorf("%s shows what is hidden: %s", route, hidden.Raw)
			}
			if strings.Contains(route, "notes/{+file}") {
				if !strings.Contains(hidden.Raw, `"values":[]`) {
					t.Errorf("%s: %s", route, hidden.Raw)
				}
				continue
			}
			sameRefusal(t, route, hidden, unknown)
			if n := len(w.events.of("decision")) + len(w.events.of("refusal")) - before; n != 2 {
				t.Errorf("%s: %d events for two refusals", route, n)
			}
		}
		for _, method := range []string{"skills/list", "resources/list", "resources/templates/list", "prompts/list"} {
			a := do(method, "{}")
			for _, name := range []string{"secret", "outer", "inner", "broken", hiddenText} {
				if strings.Contains(a.Raw, name) {
					t.Errorf("%s shows %s: %s", method, name, a.Raw)
				}
			}
		}
	})
	if calls := s.calls(); len(calls) > 0 {
		t.Errorf("the server was asked %v", calls)
	}
}

// TestNothingOfThatName: what is missing is called what was asked for, whether it is
// hidden or there never was any.
func TestNothingOfThatName(t *testing.T) {
	w := skilled(t, files(t, &scripted{}))
	good, _ := hiddenRoutes()
	inEras(t, w, "scout", func(t *testing.T, do ask) {
		for _, route := range append(good, `tools/call {"name":"HIDDEN","arguments":{}}`) {
			method, params, _ := strings.Cut(route, " ")
			kind, _, _ := strings.Cut(method, "/")
			want := "there is no " + map[string]string{
				"completion": "prompt or resource", "prompts": "prompt", "resources": "resource", "skills": "skill", "tools": "tool",
			}[kind] + " of that name. ["
			for _, name := range []string{"secret", "nosuch"} {
				if a := do(method, strings.ReplaceAll(params, "HIDDEN", name)); !strings.Contains(a.Raw, want) {
					t.Errorf("%s of %s: %s, want %s", route, name, a.Raw, want)
				}
			}
		}
	})
}

// TestSkillOfAnotherSession: what one agent may read is not to be had with another
// agent's session or cursor.
func TestSkillOfAnotherSession(t *testing.T) {
	w := skilled(t)
	boss, scout := w.client("boss"), w.client("scout")
	boss.initialize("{}")
	scout.session = boss.session
	if a := scout.request("resources/read", uriParams("skill://secret/SKILL.md")); a.Error == nil || strings.Contains(a.Raw, hiddenText) {
		t.Errorf("%s", a.Raw)
	}
}

// TestSkillChangedOnDisk: a file that is not what the skill was decided on is not
// served.
func TestSkillChangedOnDisk(t *testing.T) {
	w := skilled(t)
	inEras(t, w, "scout", func(t *testing.T, do ask) {
		file := filepath.Join(w.root, "skills", "notes", "references", "guide.md")
		if err := os.WriteFile(file, []byte("the gUide"), 0o600); err != nil {
			t.Fatal(err)
		}
		a := do("resources/read", uriParams("skill://notes/references/guide.md"))
		if denialOf(t, a).Code != "not_available" || strings.Contains(a.Raw, "gUide") {
			t.Errorf("%s", a.Raw)
		}
		if err := os.WriteFile(file, []byte("the guide"), 0o600); err != nil {
			t.Fatal(err)
		}
		if a := do("resources/read", uriParams("skill://notes/references/guide.md")); a.Error != nil {
			t.Errorf("%s", a.Raw)
		}
	})
}

// TestUnrecordedSkillIsNotRead: what cannot be recorded is not read.
func TestUnrecordedSkillIsNotRead(t *testing.T) {
	w := skilled(t)
	c := w.client("scout")
	c.initialize("{}")
	w.events.failWith(os.ErrPermission)
	a := c.request("resources/read", uriParams("skill://notes/SKILL.md"))
	w.events.failWith(nil)
	if denialOf(t, a).Code != "not_available" || strings.Contains(a.Raw, "Notes") {
		t.Errorf("%s", a.Raw)
	}
}

// TestPromptsOfSkills: a server that serves its skills as prompts too, as the gateway does,
// does not so serve one that the agent does not see, nor any while its skills are not known.
func TestPromptsOfSkills(t *testing.T) {
	s := newSkillServer(true, map[string]string{
		"skill://fine/SKILL.md": skillText("fine", "", "Fine.\n"), "skill://deploy/SKILL.md": skillText("deploy", "allowed-tools: Bash\n", hiddenText),
		"skill://dot.ted/SKILL.md":   skillText("dot.ted", "allowed-tools: Bash\n", hiddenText),
		"skill://a/spelled/SKILL.md": skillText("other", "allowed-tools: Bash\n", hiddenText),
	})
	s.lists["prompts/list"] = `"prompts":[{"name":"fine"},{"name":"Deploy"},{"name":"deploy"},{"name":"other"},{"name":"spelled"},{"name":"hub__deploy"},{"name":"hub___deploy"},{"name":"a__b__dot.ted"},{"name":"more"}]`
	w := start(t, map[string]string{"scout": anyReader}, s.up(t))
	inEras(t, w, "scout", func(t *testing.T, do ask) {
		if a := do("prompts/list", "{}"); mentions(a, "eploy", "other", "spelled", "ted") || !mentions(a, "files__fine") || !mentions(a, "files__more") {
			t.Errorf("the prompts are %s", a.Raw)
		}
		for _, name := range []string{"deploy", "Deploy", "other", "spelled", "hub__deploy", "hub___deploy", "a__b__dot_ted"} {
			if a := do("prompts/get", `{"name":"files__`+name+`"}`); denialOf(t, a).Code != "unknown_tool" {
				t.Errorf("%s: %s", name, a.Raw)
			}
		}
	})
	if calls := s.calls(); slices.ContainsFunc(calls, func(r upstream.Request) bool { return r.Method == "prompts/get" }) {
		t.Errorf("the server was asked %v", calls)
	}
	silent := newSkillServer(true, map[string]string{"skill://fine/SKILL.md": skillText("fine", "", "Fine.\n")})
	silent.lists["prompts/list"], silent.lists["skills/list"] = `"prompts":[{"name":"fine"}]`, noSuchMethod
	w = start(t, map[string]string{"scout": anyReader}, silent.up(t))
	inEras(t, w, "scout", func(t *testing.T, do ask) {
		if a := do("prompts/get", `{"name":"files__fine"}`); denialOf(t, a).Code != "upstream_failed" {
			t.Errorf("while the skills are not known: %s", a.Raw)
		}
	})
}

// TestPromptsThatHoldSkills: nor does a prompt bring the text of a skill along that the agent
// does not see. It may bring other resources, and name where to find some.
func TestPromptsThatHoldSkills(t *testing.T) {
	const link, file = `{"type":"resource_link","name":"x","uri":"repo://acme/x/skills/own/SKILL.md"}`, `{"type":"resource","resource":{"uri":"repo://acme/x/README","text":"readme"}}`
	for content, good := range map[string]bool{
		link: true, file: true, `[` + link + `,` + file + `]`: true,
		`{"type":"resource","resource":{"uri":"repo://acme/x/skills/hid/SKILL.md","text":"` + hiddenText + `"}}`:            false,
		`{"type":"resource_link","uri":"repo://acme/x/skills/hid/SKILL.md","Text":"` + hiddenText + `"}`:                    false,
		`[` + file + `,{"type":"resource","resource":{"URI":"REPO://acme/x/skills/hid/b.md","blob":"` + hiddenText + `"}}]`: false,
	} {
		s := newSkillServer(true, servedFiles())
		s.lists["prompts/list"] = `"prompts":[{"name":"intro"}]`
		s.reply = func(ctx context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
			if r.Method != "prompts/get" {
				return s.read(ctx, r, sink)
			}
			return upstream.Answer{Type: "complete", Result: []byte(`{"resultType":"complete","messages":[{"role":"user","content":` + content + `}]}`)}, nil
		}
		c := start(t, map[string]string{"scout": anyReader}, s.up(t)).client("scout")
		if a := c.modern("prompts/get", `{"name":"files__intro"}`, "{}"); (a.Error == nil) != good || strings.Contains(a.Raw, hiddenText) {
			t.Errorf("%s: %s", content, a.Raw)
		}
	}
}
