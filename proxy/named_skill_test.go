package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/upstream"
)

// TestServedNames: names of files that servers write into URIs as URLs are written are no flaw, and
// what escapes to a blank, or to one that moves, leads to nothing else.
func TestServedNames(t *testing.T) {
	const root = "skill://pages"
	for name, shown := range map[string]bool{
		"app/[slug]/page.tsx": true, "my%20guide%20(v2).md": true, "na%C3%AFve.md": true, "a@b,c.md": true, "app/%5Bid%5D.tsx": true,
		"%20../x.md": false, "..%20/x.md": false, "a/%20/x.md": false, "SKILL.md%20": false, "in/%20SKILL.md": false, "a%0Ab.md": false, "a%09b.md": false, "a|b.md": false, "a b.md": false,
	} {
		uri := root + "/" + name
		s := newSkillServer(true, map[string]string{root + "/SKILL.md": skillText("pages", "", "Write.\n"), uri: "some text"})
		w := start(t, map[string]string{"scout": anyReader}, s.up(t))
		inEras(t, w, "scout", func(t *testing.T, do ask) {
			if got := len(skillURIs(listSkills(t, do))); got != map[bool]int{true: 1}[shown] {
				t.Errorf("with %s %d are listed", name, got)
			}
			if a := do("resources/read", uriParams("skill://files/pages/"+name)); strings.Contains(a.Raw, "some text") != shown {
				t.Errorf("%s is read as %s", name, a.Raw)
			}
		})
	}
}

// TestIrregularSkills: a skill that clients refuse by the letter of the format, and all others that
// are listed beside it, is shown in every other way.
func TestIrregularSkills(t *testing.T) {
	entry := func(name string) string {
		text := skillText(name, "", "Do "+name+".\n")
		return fmt.Sprintf(`{"uri":"skill://%s/SKILL.md","frontmatter":{"name":"%s","description":"About %s."},"resources":[%s]}`, name, name, name, manifestEntry("skill://"+name+"/SKILL.md", text))
	}
	s := newSkillServer(true, map[string]string{"skill://plain/SKILL.md": skillText("plain", "", "Do plain.\n"), "skill://Of_Old/SKILL.md": skillText("Of_Old", "", "Do Of_Old.\n")})
	s.list(entry("plain"), entry("Of_Old"))
	w := start(t, map[string]string{"scout": anyReader}, s.up(t))
	w.bundles(map[string]string{"own/SKILL.md": skillText("own", "", "Do own.\n"), "odd/SKILL.md": strings.Replace(skillText("odd", "", "Do odd.\n"), "---\nDo", "metadata: { version: 1.0 }\n---\nDo", 1)})
	inEras(t, w, "scout", func(t *testing.T, do ask) {
		if diff := cmp.Diff([]string{"skill://files/plain/SKILL.md", "skill://own/SKILL.md"}, skillURIs(listSkills(t, do))); diff != "" {
			t.Error(diff)
		}
		for _, at := range []string{"skill://files/Of_Old/SKILL.md", "skill://odd/SKILL.md"} {
			if a := do("resources/list", "{}"); !strings.Contains(a.Raw, at) {
				t.Errorf("%s is no resource: %s", at, a.Raw)
			}
			for _, method := range []string{"resources/read", "skills/get"} {
				if a := do(method, uriParams(at)); a.Error != nil {
					t.Errorf("%s of %s: %s", method, at, a.Raw)
				}
			}
		}
		for _, name := range []string{"files__Of_Old", "odd"} {
			if a := do("prompts/get", `{"name":"`+name+`"}`); a.Error != nil {
				t.Errorf("the prompt %s: %s", name, a.Raw)
			}
		}
	})
}

// secretive is a server that lists one of its skills by the extension, or none, and all of them as
// resources. It answers for two that are none.
func secretive(modern bool, listed string) *skillServer {
	all := map[string]string{
		"skill://plain/SKILL.md":  skillText("plain", "", "Do plain.\n"),
		"skill://Of_Old/SKILL.md": skillText("Of_Old", "", "Do Of_Old.\n"), "skill://Of_Old/a.txt": "more",
		"skill://Hid_Den/SKILL.md": skillText("Hid_Den", "WebFetch(domain:example.com)", hiddenText), "skill://Hid_Den/a.txt": hiddenText,
		"wiki://x/Far_Off/SKILL.md": skillText("Far_Off", "WebFetch(domain:example.com)", hiddenText), "wiki://x/Far_Off/a.txt": hiddenText,
		"skill://Not_One/SKILL.md": hiddenText, "wiki://x/Not_One/SKILL.md": "no skill",
	}
	s := newSkillServer(modern, all)
	entries := map[string]string{}
	for _, e := range s.entries() {
		uri, _, _ := strings.Cut(strings.TrimPrefix(e, `{"uri":"`), `"`)
		entries[uri] = e
	}
	s.list(slices.DeleteFunc([]string{entries[listed]}, func(e string) bool { return e == "" })...)
	var resources []string
	for uri := range all {
		resources = append(resources, fmt.Sprintf(`{"uri":%q,"name":"x"}`, uri))
	}
	s.lists["resources/list"] = `"resources":[` + strings.Join(resources, ",") + `]`
	s.lists["resources/templates/list"] = `"resourceTemplates":[{"uriTemplate":"wiki://x/Far_Off/{+file}","name":"t"}]`
	s.lists["prompts/list"] = `"prompts":[{"name":"Of_Old"},{"name":"Hid_Den"},{"name":"hub__Hid_Den"},{"name":"Far_Off"},{"name":"Not_One"}]`
	s.reply = func(ctx context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
		var p struct{ URI string }
		switch err := json.Unmarshal(r.Params, &p); {
		case r.Method == "prompts/get":
			return upstream.Answer{Type: "complete", Result: []byte(`{"messages":[{"role":"user","content":{"type":"text","text":"` + hiddenText + `"}}]}`)}, nil
		case err != nil || r.Method != "skills/get":
			return s.read(ctx, r, sink)
		case strings.Contains(p.URI, "Not_One"):
			return upstream.Answer{Error: []byte(`{"code":-32602,"message":"no such skill"}`)}, nil
		}
		return upstream.Answer{Type: "complete", Result: []byte(`{"resultType":"complete","skill":` + entries[p.URI] + `}`)}, nil
	}
	return s
}

// TestUnlistedSkills: what a server has as a skill and does not list by the extension, as this gateway
// does not list irregular ones, is asked for, and decided on in every way that leads to it.
func TestUnlistedSkills(t *testing.T) {
	for _, s := range []*skillServer{
		secretive(true, "skill://plain/SKILL.md"), secretive(false, "skill://plain/SKILL.md"), secretive(true, ""), secretive(false, ""),
	} {
		w := start(t, map[string]string{"scout": anyReader}, s.up(t))
		inEras(t, w, "scout", func(t *testing.T, do ask) {
			for _, route := range []string{
				"resources/list {}", "resources/templates/list {}", "prompts/list {}", "skills/list {}",
				`resources/read {"uri":"skill://files/Hid_Den/SKILL.md"}`, `resources/read {"uri":"skill://files/Hid_Den/a.txt"}`, `skills/get {"uri":"skill://files/Hid_Den/SKILL.md"}`,
				`resources/read {"uri":"wiki://x/Far_Off/SKILL.md"}`, `resources/read {"uri":"wiki://x/Far_Off/a.txt"}`, `resources/read {"uri":"skill://files/Not_One/SKILL.md"}`,
				`prompts/get {"name":"files__Hid_Den"}`, `prompts/get {"name":"files__hub__Hid_Den"}`, `prompts/get {"name":"files__Far_Off"}`, `prompts/get {"name":"files__Not_One"}`,
			} {
				method, params, _ := strings.Cut(route, " ")
				if a := do(method, params); a.Error == nil && mentions(a, "Hid_Den", "Far_Off", "Not_One", hiddenText) {
					t.Errorf("%s: %s", route, a.Raw)
				}
			}
			if got := fileOf(t, do("resources/read", uriParams("skill://files/Of_Old/a.txt")), "skill://files/Of_Old/a.txt"); string(got) != "more" {
				t.Errorf("read is %q", got)
			}
			if a := do("prompts/get", `{"name":"files__Of_Old"}`); !mentions(a, "Do Of_Old.") {
				t.Errorf("as a prompt: %s", a.Raw)
			}
		})
	}
}

// TestSkillsThatNobodyLists: the SKILL.md of a skill that its server has in no list is no resource, whether
// or not it lists others: what it requires is not known.
func TestSkillsThatNobodyLists(t *testing.T) {
	for _, listed := range []string{"", "wiki://h/a/SKILL.md"} {
		s := newSkillServer(true, map[string]string{
			"wiki://h/a/SKILL.md": skillText("a", "", "Fine.\n"), "wiki://h/q/SKILL.md": skillText("q", "Bash", hiddenText), "wiki://h/notes.md": "notes",
		})
		s.list(slices.DeleteFunc(s.entries(), func(e string) bool { return listed == "" || !strings.Contains(e, listed) })...)
		w := start(t, map[string]string{"scout": anyReader}, s.up(t))
		inEras(t, w, "scout", func(t *testing.T, do ask) {
			for _, uri := range []string{"wiki://h/q/SKILL.md", "wiki://h/q/skill.md", "wiki://h/q/SKILL%2Emd"} {
				if a := do("resources/read", uriParams(uri)); a.Error == nil || !mentions(a, "Denied by capgate") || mentions(a, hiddenText) {
					t.Errorf("%s beside %q: %s", uri, listed, a.Raw)
				}
			}
			s.tamper("wiki://h/notes.md", `{"contents":[{"uri":"wiki://h/notes.md","text":"notes"},{"uri":"wiki://h/q/SKILL.md","text":"`+hiddenText+`"}]}`)
			if a := do("resources/read", uriParams("wiki://h/notes.md")); a.Error == nil || mentions(a, hiddenText) {
				t.Errorf("in another resource: %s", a.Raw)
			}
			s.tamper("wiki://h/notes.md", "notes")
			if a := do("resources/read", uriParams("wiki://h/notes.md")); a.Error != nil {
				t.Errorf("what is no skill: %s", a.Raw)
			}
		})
	}
}

// TestSkillsOfNoExtension: nor does a server without the extension, and with no skill that anybody knows of,
// bring along what is read as a file of one or not at all.
func TestSkillsOfNoExtension(t *testing.T) {
	for _, test := range []struct {
		uri  string
		good bool
	}{
		{"skill://q/SKILL.md", false}, {"SKILL://q/a.md", false}, {"%73kill:q", false}, {"wiki://h/q/SKILL.md", true}, {"skills://h/a", true},
	} {
		s := newSkillServer(true, map[string]string{"wiki://h/notes.md": "notes"})
		s.info.Capabilities = []byte(serverAbilities)
		s.lists["prompts/list"] = `"prompts":[{"name":"intro"}]`
		embedded := `{"uri":"` + test.uri + `","text":"` + hiddenText + `"}`
		s.tamper("wiki://h/notes.md", `{"contents":[{"uri":"wiki://h/notes.md","text":"notes"},`+embedded+`]}`)
		s.reply = func(ctx context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
			if r.Method != "prompts/get" {
				return s.read(ctx, r, sink)
			}
			return upstream.Answer{Type: "complete", Result: []byte(`{"messages":[{"role":"user","content":{"type":"resource","resource":` + embedded + `}}]}`)}, nil
		}
		w := start(t, map[string]string{"scout": anyReader}, s.up(t))
		inEras(t, w, "scout", func(t *testing.T, do ask) {
			for _, route := range []string{`resources/read {"uri":"wiki://h/notes.md"}`, `prompts/get {"name":"files__intro"}`} {
				method, params, _ := strings.Cut(route, " ")
				if a := do(method, params); (a.Error == nil) != test.good || mentions(a, hiddenText) != test.good {
					t.Errorf("%s with %s: %s", route, test.uri, a.Raw)
				}
			}
		})
	}
}

// TestIrregularSkillsChange: who may keep such a skill is told that it has changed, also where no
// list shows that.
func TestIrregularSkillsChange(t *testing.T) {
	w := start(t, map[string]string{"scout": anyReader})
	own := map[string]string{"Odd/SKILL.md": skillText("Odd", "", "Do.\n"), "Odd/a.txt": "old"}
	w.bundles(own)
	c := w.client("scout")
	c.initialize("{}")
	listSkills(t, c.request)
	in := c.open(t.Context(), t, http.MethodGet, "")
	own["Odd/a.txt"] = "new"
	w.bundles(own)
	if heard := in.next(); !strings.Contains(heard, "resources/list_changed") {
		t.Errorf("heard is %q", heard)
	}
}

// TestUnlistedSkillsAreBounded: a server that answers with more than is kept of one shows nothing,
// and what it answers of another skill is not taken for the one that was asked for.
func TestUnlistedSkillsAreBounded(t *testing.T) {
	for want, answer := range map[string]func(uri string) string{
		"upstream_failed": func(uri string) string {
			return `{"skill":{"uri":"` + uri + `"},"x":"` + strings.Repeat("x", 4<<20) + `"}`
		},
		"unknown_tool": func(string) string { return `{"skill":{"uri":"skill://other/SKILL.md"}}` },
	} {
		s := newSkillServer(true, nil)
		s.lists["resources/list"] = `"resources":[{"uri":"skill://a/SKILL.md"},{"uri":"skill://b/SKILL.md"},{"uri":"skill://c/SKILL.md"}]`
		s.lists["prompts/list"] = `"prompts":[{"name":"a"}]`
		s.reply = func(_ context.Context, r upstream.Request, _ upstream.Sink) (upstream.Answer, error) {
			var p struct{ URI string }
			if err := json.Unmarshal(r.Params, &p); err != nil {
				return upstream.Answer{}, err
			}
			return upstream.Answer{Type: "complete", Result: []byte(answer(p.URI))}, nil
		}
		w := start(t, map[string]string{"scout": anyReader}, s.up(t))
		if a := w.client("scout").modern("prompts/get", `{"name":"files__a"}`, "{}"); denialOf(t, a).Code != want {
			t.Errorf("%s: %s", want, a.Raw)
		}
	}
}
