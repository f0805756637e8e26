package proxy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/proxy"
	"capgate/upstream"
)

// TestCompletionOfWhateverATemplateMayBecome: a server that completes a template tells of
// resources by their names, so that one grant of a single name, or of one level, is not
// enough.
func TestCompletionOfWhateverATemplateMayBecome(t *testing.T) {
	for _, tt := range []struct {
		grant, template string
		goesUp          int
	}{
		{`resource.read: { uris: ["notes:///x"] }`, "notes:///{name}", 0},
		{`resource.read: { uris: ["notes:///?"] }`, "notes:///{name}", 0},
		{`resource.read: { uris: ["notes:///**"] }`, "notes:///{name}", 1},
		{`fs.read: { in: /srv, paths: [x] }`, "file:///srv/{name}", 0},
		{`fs.read: { in: /srv, paths: ["*"] }`, "file:///srv/{name}", 1},
		{`fs.read: { in: /srv, paths: ["*"] }`, "file:///srv/{+name}", 0},
		{`fs.read: { in: /srv, paths: ["*"] }`, "file:///srv/{name*}", 0},
		{`fs.read: { in: /srv, paths: ["*"] }`, "file:///srv{/name}", 0},
		{`fs.read: { in: /srv, paths: ["*/*"] }`, "file:///srv/{+name}", 0},
		{`fs.read: { in: /srv, paths: ["*", "*/*"] }`, "file:///srv/{+name}", 0},
		{`fs.read: { in: /srv, paths: ["*/**"] }`, "file:///srv/{+name}", 0},
		{`fs.read: { in: /srv, paths: [.] }`, "file:///srv/{+name}", 1},
	} {
		t.Run(tt.grant+" "+tt.template, func(t *testing.T) {
			s := &scripted{lists: map[string]string{"resources/templates/list": `"resourceTemplates":[{"uriTemplate":"` + tt.template + `","name":"n"}]`}}
			up := files(t, s)
			w := start(t, map[string]string{"scout": "---\nclass: agent\ncapabilities:\n  - " + tt.grant + "\n---\n"}, up)
			a := w.client("scout").modern("completion/complete",
				`{"ref":{"type":"ref/resource","uri":"`+tt.template+`"},"argument":{"name":"name","value":""}}`, "{}")
			if n := len(s.calls()); n != tt.goesUp {
				t.Errorf("%d requests go up, want %d: %s", n, tt.goesUp, a.Raw)
			}
		})
	}
}

// TestCompletionCarriesWhatIsDecided: what is given for a variable is some of what the agent may read, and
// nothing else goes up.
func TestCompletionCarriesWhatIsDecided(t *testing.T) {
	const template = "notes://team/{a}/{b}"
	s := &scripted{lists: map[string]string{"resources/templates/list": `"resourceTemplates":[{"uriTemplate":"` + template + `","name":"n"}]`}, reply: completing(`{"values":["x-y"]}`)}
	w := start(t, map[string]string{"scout": "---\nclass: agent\ncapabilities:\n  - resource.read: { uris: [\"notes://team/*\"] }\n---\n"}, files(t, s))
	scout := w.client("scout")
	ask := func(rest string) said {
		return scout.modern("completion/complete", `{"ref":{"type":"ref/resource","uri":"`+template+`","root":"/"},`+rest+`}`, "{}")
	}
	for _, rest := range []string{
		`"argument":{"name":"b","value":"../../priv/"}`,
		`"argument":{"name":"b","value":"/etc/"}`,
		`"argument":{"name":"root","value":"x"}`,
		`"argument":{"name":"b","value":["../../priv"]}`,
		`"argument":{"name":"b","value":null}`,
		`"argument":{"name":"b"}`,
		`"argument":{"value":"x"}`,
		`"argument":{"name":"b","value":"x"},"context":{"arguments":{"a":"../priv"}}`,
		`"argument":{"name":"b","value":"x"},"context":{"arguments":{"root":"/"}}`,
		`"argument":{"name":"b","value":"x"},"context":{"arguments":{"a":["../priv"]}}`,
		`"argument":{"name":"b","value":"x"},"context":{"arguments":["../priv"]}`,
		`"argument":{"name":"b","value":"x"},"context":"../priv"`,
	} {
		if a := ask(rest); a.Error == nil || strings.Contains(a.Raw, "agents grant") {
			t.Errorf("%s: %s", rest, a.Raw)
		}
	}
	if n := len(s.calls()); n != 0 {
		t.Fatalf("%d requests went up: %s", n, s.calls()[0].Params)
	}
	var went []string
	for _, rest := range []string{
		`"argument":{"name":"b","value":"\u0078-y","root":"/"},"context":{"arguments":{"a":"y"},"root":"/"},"root":"/"`,
		`"argument":{"name":"b","value":""},"context":{}`,
	} {
		if a := ask(rest); a.Error != nil {
			t.Fatalf("%s: %s", rest, a.Raw)
		}
		all := s.calls()
		_, params, _ := strings.Cut(string(all[len(all)-1].Params), `"ref":`)
		went = append(went, strings.TrimSuffix(params, "}"))
	}
	want := []string{
		`{"type":"ref/resource","uri":"` + template + `"},"argument":{"name":"b","value":"x-y"},"context":{"arguments":{"a":"y"}}`,
		`{"type":"ref/resource","uri":"` + template + `"},"argument":{"name":"b","value":""}`,
	}
	if diff := cmp.Diff(want, went); diff != "" {
		t.Errorf("what goes up differs (-want +got):\n%s", diff)
	}
}

// completing is a server that completes everything so.
func completing(completion string) func(context.Context, upstream.Request, upstream.Sink) (upstream.Answer, error) {
	return func(context.Context, upstream.Request, upstream.Sink) (upstream.Answer, error) {
		return upstream.Answer{Result: []byte(`{"completion":` + completion + `,"x":[ 1 ]}`)}, nil
	}
}

// TestCompletionTells: of what completes a template, the agent is told what may be read. Where all of it may,
// it is as it came.
func TestCompletionTells(t *testing.T) {
	many, few := `"n`+strings.Repeat(`","n`, 99)+`"`, strings.Repeat(`"x:y",`, 2000)
	for _, tt := range []struct{ value, answer, told string }{
		{"", `{ "total":2, "values" : ["ab","c\u0064"] ,"y":1}`, ""},
		{"", `{"values":[]}`, ""},
		{"", `{"values":null}`, ""},
		{"", `{"values":[` + many + `],"hasMore":true}`, ""},
		{"", `{"values":[` + many + `,"m"],"hasMore":false}`, `{"values":[` + many + `],"hasMore":true}`},
		{"", `{"values":[` + few[:len(few)/2] + `"m"]}`, `{"values":["m"],"hasMore":false}`},
		{"", `{"values":["ab",` + few + few + `"m"]}`, `{"values":["ab"],"hasMore":true}`},
		{"", `{"values":["ab","x:y","x\u003ay","..","","c\u0064"],"total":7,"hasMore":true,"y":"x:y"}`, `{"values":["ab","c\u0064"],"hasMore":true}`},
		{"", `{"values":["ab","x:y"],"hasMore":"x:y"}`, `{"values":["ab"],"hasMore":false}`},
		{"", `{"values":["ab",{"name":"x:y"},7,null,["ab"]]}`, `{"values":["ab"],"hasMore":false}`},
		{"", `{"values":["../priv/ab","a/../../priv","ab/c"]}`, `{"values":["ab/c"],"hasMore":false}`},
		{"ab/", `{"values":["ab/c","x:y","zz","ab/x:y"]}`, `{"values":["ab/c","zz"],"hasMore":false}`},
		{"", `{"values":{"a":"x:y"}}`, "denied"},
		{"", `{"values":"x:y"}`, "denied"},
		{"", `{"value":["x:y"]}`, "denied"},
		{"", `["x:y"]`, "denied"},
	} {
		s := &scripted{lists: map[string]string{"resources/templates/list": `"resourceTemplates":[{"uriTemplate":"notes://team/{a}","name":"n"}]`}, reply: completing(tt.answer)}
		w := start(t, map[string]string{"scout": "---\nclass: agent\ncapabilities:\n  - resource.read: { uris: [\"notes://team/*\"] }\n---\n"}, files(t, s))
		a := w.client("scout").modern("completion/complete", `{"ref":{"type":"ref/resource","uri":"notes://team/{a}"},"argument":{"name":"a","value":"`+tt.value+`"}}`, "{}")
		told := tt.told
		if told == "" {
			told = tt.answer
		}
		switch {
		case len(s.calls()) != 1:
			t.Errorf("%d requests go up: %s", len(s.calls()), a.Raw)
		case told == "denied":
			if a.Error == nil || strings.Contains(a.Raw, "x:y") {
				t.Errorf("%s: %s", tt.answer, a.Raw)
			}
		case !strings.Contains(a.Raw, `"completion":`+told+`,"x":[ 1 ]`):
			t.Errorf("of %.200s is told %.400s", tt.answer, a.Raw)
		}
	}
}

// TestCompletionTellsByNow: what an agent may no more is not told, if it could be asked for before.
func TestCompletionTellsByNow(t *testing.T) {
	record := func(uris string) string {
		return "---\nclass: agent\ncapabilities:\n  - resource.read: { uris: [" + uris + "] }\n---\n"
	}
	s := &scripted{lists: map[string]string{"resources/templates/list": `"resourceTemplates":[{"uriTemplate":"notes://team/{a}","name":"n"}]`}}
	w := start(t, map[string]string{"scout": record(`"notes://team/*"`)}, files(t, s))
	s.reply = func(ctx context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
		w.write("scout", record(`"notes://team/o*"`))
		w.adopt()
		return completing(`{"values":["secret","open"]}`)(ctx, r, sink)
	}
	a := w.client("scout").modern("completion/complete", `{"ref":{"type":"ref/resource","uri":"notes://team/{a}"},"argument":{"name":"a","value":""}}`, "{}")
	if mentions(a, "secret") || !mentions(a, "open") {
		t.Errorf("told is %s", a.Raw)
	}
}

// TestCompletionOfPromptByNow: of a prompt nothing is told any more that became another's, or one nobody may have, while its
// server looked, nor what may be of a skill.
func TestCompletionOfPromptByNow(t *testing.T) {
	const may = "---\nclass: agent\ncapabilities: [\"prompt.get{names=[files.p]}\"]\n---\n"
	for name, tt := range map[string]struct {
		record, value string
		want          bool
	}{
		"kept": {may, "open", true}, "revoked": {strings.ReplaceAll(may, "files.p", "files.q"), "open", false}, "a skill's": {may, "skill://hid/SKILL.md", false}, "no file": {may, "Skill: welding", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scripted{lists: map[string]string{"prompts/list": `"prompts":[{"name":"p","arguments":[{"name":"a"}]}]`}}
			w := start(t, map[string]string{"scout": may}, files(t, s))
			s.reply = func(ctx context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
				if tt.record != may {
					w.write("scout", tt.record)
					w.adopt()
				}
				return completing(`{"values":["`+tt.value+`"]}`)(ctx, r, sink)
			}
			a := w.client("scout").modern("completion/complete", `{"ref":{"type":"ref/prompt","name":"files__p"},"argument":{"name":"a","value":""}}`, "{}")
			if len(s.calls()) != 1 || mentions(a, tt.value) != tt.want {
				t.Errorf("told is %s", a.Raw)
			}
		})
	}
}

// TestCompletionOfWithheld: a template that is not shown is not completed.
func TestCompletionOfWithheld(t *testing.T) {
	for description, want := range map[string]int{"All notes.": 1, "All notes.\u200b\u200b Then": 0} {
		s := &scripted{lists: map[string]string{"resources/templates/list": `"resourceTemplates":[{"uriTemplate":"notes://{a}","name":"n","description":"` + description + `"}]`}}
		w := start(t, map[string]string{"scout": "---\nclass: agent\ncapabilities:\n  - resource.read: { uris: [\"notes://*\"] }\n---\n"}, files(t, s))
		a := w.client("scout").modern("completion/complete", `{"ref":{"type":"ref/resource","uri":"notes://{a}"},"argument":{"name":"a","value":"x"}}`, "{}")
		if n := len(s.calls()); n != want {
			t.Errorf("%q: %d requests go up: %s", description, n, a.Raw)
		}
	}
}

// TestCompletionOfWhereSkillsLie: what completes a template may be the name of a skill that the
// agent does not see, however the template spells where that lies.
func TestCompletionOfWhereSkillsLie(t *testing.T) {
	s := newSkillServer(true, map[string]string{"repo://acme/x/skills/hid/SKILL.md": skillText("hid", "WebFetch(domain:example.com)", hiddenText)})
	uris := map[string]int{"repo://acme/y/{n}": 1, "repo://acme/x/skill/{n}": 1, "notes://acme/x/skills/{n}": 1, "repo://acme/x/skills/other/{n}": 1}
	for _, uri := range []string{
		"repo://acme/x/skills/{n}/a.md", "REPO://acme/x/skills/{n}", "repo://ACME/x/skills/{n}", "repo://acme/x/./skills/{n}", "repo://acme/x/%73kills/{n}", "repo://acme/x/skills//{n}",
		"repo:/acme/x/skills/{n}", "repo://acme/x/skills/?n={n}", "repo://acme:80/x/skills/{n}", "repo://acme/x/skills/;{n}", "repo://acme/x/skills/H{n}", "repo://acme/x/skills%2{n}",
		"repo://acme/x/skills%252{n}", "repo://acme/y/../x/{n}", "repo://me@acme/x/{n}", "repo://me{u}@acme/x/skills/{n}", "REPO:{+n}", "rep{+n}", "{+n}", "%{+n}",
	} {
		uris[uri] = 0
	}
	var all []string
	for uri := range uris {
		all = append(all, fmt.Sprintf(`{"name":"t%d","uriTemplate":%q}`, len(all), uri))
	}
	s.lists["resources/templates/list"] = `"resourceTemplates":[` + strings.Join(all, ",") + `]`
	c := start(t, map[string]string{"scout": anyReader}, s.up(t)).client("scout")
	c.modern("skills/list", "{}", "{}")
	for uri, goesUp := range uris {
		before := len(s.calls())
		a := c.modern("completion/complete", `{"ref":{"type":"ref/resource","uri":"`+uri+`"},"argument":{"name":"n","value":""}}`, "{}")
		if n := len(s.calls()) - before; n != goesUp {
			t.Errorf("%s: %d requests go up, want %d: %s", uri, n, goesUp, a.Raw)
		}
	}
}

// TestTemplatesBesideSkills: a template that is not shown, as it describes skills too, still says
// whose the other resources are that it describes.
func TestTemplatesBesideSkills(t *testing.T) {
	for _, tools := range []string{"", "WebFetch(domain:example.com)"} {
		s := newSkillServer(true, map[string]string{"wiki://h/q/SKILL.md": skillText("q", tools, hiddenText), "wiki://h/beside": "beside"})
		s.lists["resources/templates/list"] = `"resourceTemplates":[{"name":"all","uriTemplate":"wiki://h/{+f}"}]`
		other := &scripted{lists: map[string]string{"tools/list": `"tools":[]`, "resources/templates/list": `"resourceTemplates":[{"name":"all","uriTemplate":"wiki://h/its/{f}"}]`}}
		c := start(t, map[string]string{"scout": anyReader}, s.up(t), &proxy.Upstream{Name: "other", Prefix: "other", Open: other.open}).client("scout")
		if a := c.modern("resources/templates/list", "{}", "{}"); mentions(a, "{+f}") || !mentions(a, "its/{f}") {
			t.Errorf("listed are %s", a.Raw)
		}
		if a := c.modern("resources/read", uriParams("wiki://h/beside"), "{}"); a.Error != nil || !mentions(a, `"beside"`) {
			t.Errorf("what lies beside them: %s", a.Raw)
		}
		before := len(s.calls())
		for _, uri := range []string{"wiki://h/q/other", "wiki://h/its/a"} {
			if a := c.modern("resources/read", uriParams(uri), "{}"); len(s.calls()) != before {
				t.Errorf("%s: %s", uri, a.Raw)
			}
		}
	}
}

// TestWhoseResourceItIs: what is listed can be read, at who lists it, unless a template of another
// server describes it. A template that could be anything describes nothing that another lists.
func TestWhoseResourceItIs(t *testing.T) {
	for _, tt := range []struct {
		name            string
		lists, template string // of the one server, and of the other
		uri             string
		listed          bool
		goesTo          string
	}{
		{"anything", "note:///a", "{+any}", "note:///a", true, "a"},
		{"anything behind a letter", "note:///a", "n{+any}", "note:///a", true, "a"},
		{"any of what lies at a place", "note:///a", "{scheme}://{+any}", "note:///a", true, "a"},
		{"another scheme", "note:///a", "notes:///{any}", "note:///a", true, "a"},
		{"its scheme", "note:///a", "note:{+any}", "note:///a", false, ""},
		{"its place", "note:///a", "note:///{any}", "note:///a", false, ""},
		{"the same", "note:///a", "note:///a", "note:///a", false, ""},
		{"what nobody lists", "note:///a", "{+any}", "note:///b", true, "b"},
		{"what another describes", "note:///a", "issue://{any}", "issue://1", true, "b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := &scripted{lists: map[string]string{"tools/list": `"tools":[]`, "resources/list": `"resources":[{"uri":"` + tt.lists + `","name":"a"}]`}}
			b := &scripted{lists: map[string]string{"tools/list": `"tools":[]`, "resources/templates/list": `"resourceTemplates":[{"uriTemplate":"` + tt.template + `","name":"b"}]`}}
			w := start(t, map[string]string{"scout": everything}, &proxy.Upstream{Name: "a", Prefix: "a", Open: a.open}, &proxy.Upstream{Name: "b", Prefix: "b", Open: b.open})
			c := w.client("scout")
			if l := c.modern("resources/list", "{}", "{}"); mentions(l, tt.lists) != tt.listed {
				t.Errorf("listed are %s", l.Raw)
			}
			answer := c.modern("resources/read", uriParams(tt.uri), "{}")
			got := map[bool]string{true: "a"}[len(a.calls()) > 0] + map[bool]string{true: "b"}[len(b.calls()) > 0]
			if got != tt.goesTo || (got == "") != (denialOf(t, answer).Code == "name_collision") {
				t.Errorf("the read goes to %q, want %q: %s", got, tt.goesTo, answer.Raw)
			}
			if events := w.events.of("decision"); got == "" && !strings.Contains(events[len(events)-1].Link, `upstream "a" lists the resource, and a template of upstream "b"`) {
				t.Errorf("the event says %q", events[len(events)-1].Link)
			}
		})
	}
}

// TestResourceOfAnyServer: what nobody lists and no template fits is read at the only server there
// is. Beside another there is no such resource, and the event says why.
func TestResourceOfAnyServer(t *testing.T) {
	for _, several := range []bool{false, true} {
		a, b := &scripted{lists: map[string]string{"tools/list": `"tools":[]`}}, &scripted{lists: map[string]string{"tools/list": `"tools":[]`}}
		ups := []*proxy.Upstream{{Name: "a", Prefix: "a", Open: a.open}}
		if several {
			ups = append(ups, &proxy.Upstream{Name: "b", Prefix: "b", Open: b.open})
		}
		w := start(t, map[string]string{"scout": everything}, ups...)
		answer := w.client("scout").modern("resources/read", uriParams("issue://acme/1"), "{}")
		if read := len(a.calls()) > 0; read == several || len(b.calls()) > 0 || several != (denialOf(t, answer).Code == "unknown_tool") {
			t.Errorf("%v: %s", several, answer.Raw)
		}
		if events := w.events.of("decision"); several && !strings.Contains(events[len(events)-1].Link, "not known which of them has it") {
			t.Errorf("the event says %q", events[len(events)-1].Link)
		}
	}
}

// TestResourcesThatWaitAreListed: what is had once somebody approves is shown, as tools and prompts
// of which that is so are.
func TestResourcesThatWaitAreListed(t *testing.T) {
	s := &scripted{lists: map[string]string{
		"prompts/list":   `"prompts":[{"name":"it"}]`,
		"resources/list": `"resources":[{"uri":"note://it","name":"it"}]`, "resources/templates/list": `"resourceTemplates":[{"uriTemplate":"note://it/{x}","name":"it"}]`,
	}}
	record := strings.Replace(everything, "class: agent", "class: agent\napprove: [resource.read, prompt.get]", 1)
	w := start(t, map[string]string{"scout": record}, &proxy.Upstream{Name: "up", Prefix: "up", Open: s.open})
	c := w.client("scout")
	c.initialize("{}")
	for _, list := range []string{"prompts/list", "resources/list", "resources/templates/list"} {
		if a := c.request(list, "{}"); !strings.Contains(a.Raw, `it"`) {
			t.Errorf("%s: %s", list, a.Raw)
		}
	}
	if d := denialOf(t, c.request("resources/read", `{"uri":"note://it"}`)); d.Code != "requires_approval" || !strings.Contains(d.Hint, "takes resource.read out of approve:") {
		t.Errorf("%+v", d)
	}
}

// TestTemplatesOfSeveral: what several servers describe with one template nobody reads, so
// that none of them shows it.
func TestTemplatesOfSeveral(t *testing.T) {
	var ups []*proxy.Upstream
	for _, name := range []string{"one", "two", "three"} {
		s := &scripted{lists: map[string]string{"resources/templates/list": `"resourceTemplates":[{"uriTemplate":"notes:///{name}","name":"n"},{"uriTemplate":"` + name + `:///{name}","name":"n"}]`}}
		ups = append(ups, &proxy.Upstream{Name: name, Prefix: name, Open: s.open})
	}
	w := start(t, map[string]string{"scout": everything}, ups...)
	c := w.client("scout")
	if a := c.modern("resources/read", `{"uri":"notes:///x"}`, "{}"); denialOf(t, a).Code != "name_collision" {
		t.Error(a.Raw)
	}
	a := c.modern("resources/templates/list", "{}", "{}")
	for _, want := range []string{"one:///{name}", "two:///{name}", "three:///{name}"} {
		if strings.Count(a.Raw, want) != 1 {
			t.Errorf("%s: %s", want, a.Raw)
		}
	}
	if strings.Contains(a.Raw, "notes:///") {
		t.Errorf("it shows what nobody has: %s", a.Raw)
	}
}
