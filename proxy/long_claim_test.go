package proxy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"capgate/capability"
	"capgate/upstream"
)

// slower reports whether four times as much takes more than nine times as long, and half a second.
func slower(t *testing.T, took func(times int) time.Duration) bool {
	const tries = 3 // a machine has its bad moments
	for n := range tries {
		one, four := took(1), took(4)
		if four < 9*one+500*time.Millisecond {
			return false
		}
		t.Logf("try %d: %v, and %v of four times as much", n, one, four)
	}
	return true
}

// TestLongClaims: what a server calls its skills and prompts takes no time, however long it is,
// and however deep.
func TestLongClaims(t *testing.T) {
	files := map[string]string{}
	for i := range 12 {
		name := fmt.Sprintf("s%d", i)
		files["skill://"+name+"/SKILL.md"] = skillText(name, "", "Fine.\n")
	}
	deep := func(segments int) string {
		return `{"uri":"skill://x` + strings.Repeat("/a", segments) + `/SKILL.md","frontmatter":{"name":"a","description":"x"},"resources":[]}`
	}
	if slower(t, func(times int) time.Duration {
		s := newSkillServer(true, files)
		s.list(append(s.entries(), deep(times*32<<10), deep(100))...)
		s.lists["prompts/list"] = `"prompts":[{"name":"` + strings.Repeat("_", times*256<<10) + `"},{"name":"` + strings.Repeat("ab", times*128<<10) + `"}]`
		w := start(t, map[string]string{"scout": anyReader}, s.up(t))
		begun := time.Now()
		if n := strings.Count(w.client("scout").modern("skills/list", "{}", "{}").Raw, `"frontmatter"`); n != len(files) {
			t.Errorf("%d skills", n)
		}
		return time.Since(begun)
	}) {
		t.Error("it takes longer the longer it is")
	}
}

// TestManyDeepClaims: nor where they lie, however many there are.
func TestManyDeepClaims(t *testing.T) {
	if slower(t, func(times int) time.Duration {
		s := newSkillServer(true, map[string]string{"skill://a/SKILL.md": skillText("a", "", "Fine.\n")})
		all := s.entries()
		for i := range 1000 {
			all = append(all, fmt.Sprintf(`{"uri":"wiki://h%d%s/SKILL.md"}`, i, strings.Repeat("/a", times*500)))
		}
		s.list(all...)
		w := start(t, map[string]string{"scout": anyReader, "other": anyReader}, s.up(t))
		w.client("scout").modern("tools/list", "{}", "{}")
		begun := time.Now()
		if a := w.client("other").modern("skills/list", "{}", "{}"); !mentions(a, `"frontmatter"`) {
			t.Errorf("%.200s", a.Raw)
		}
		return time.Since(begun)
	}) {
		t.Error("it takes longer the deeper it is")
	}
}

// TestManyClaims: nor does what describes resources, or refers within a schema, beside however
// many skills. What cannot be held against all of them is not there.
func TestManyClaims(t *testing.T) {
	var flawed []string
	for i := range 1000 {
		flawed = append(flawed, fmt.Sprintf(`{"uri":"wiki://h/q%d/SKILL.md","frontmatter":{"name":"a","description":"x"},"resources":[]}`, i))
	}
	many := func(n int, one func(i int) string) string {
		list := make([]string, n)
		for i := range list {
			list[i] = one(i)
		}
		return strings.Join(list, ",")
	}
	template := func(uri string) string { return `{"name":"a","uriTemplate":"` + uri + `"}` }
	lists := map[string][2]string{
		"one long template":    {"resources/templates/list", `"resourceTemplates":[` + template(strings.Repeat("{a}", 1<<20)+"zz") + `]`},
		"many short templates": {"resources/templates/list", `"resourceTemplates":[` + many(40_000, func(i int) string { return template(fmt.Sprintf("{a}{b}7{c}zz%d", i)) }) + `]`},
		"references to nothing": {"tools/list", `"tools":[` + many(8, func(i int) string {
			return fmt.Sprintf(`{"name":"a%d","inputSchema":{"type":"object","$defs":{"x":[%s]},"$ref":"#%s"}}`, i, many(15, func(int) string { return `{"$id":"x"}` }), strings.Repeat("/", 200<<10))
		}) + `]`},
		"references far into a list": {"tools/list", `"tools":[{"name":"a","inputSchema":{"type":"object","x":[` + many(40_000, func(int) string { return "1" }) + `],"y":[` +
			many(250, func(i int) string { return fmt.Sprintf(`{"$ref":"#/x/%d"}`, 39_000+i) }) + `]}}]`},
		"anchors of one name": {"tools/list", `"tools":[{"name":"a","inputSchema":{"type":"object","x":[` +
			many(4000, func(int) string { return `{"$anchor":"x"},{"$ref":"#x"}` }) + `]}}]`},
	}
	for name, list := range lists {
		t.Run(name, func(t *testing.T) {
			s := newSkillServer(true, map[string]string{"skill://a/SKILL.md": skillText("a", "", "Fine.\n")})
			s.list(append(s.entries(), flawed...)...)
			s.lists[list[0]] = list[1]
			w := start(t, map[string]string{"scout": anyReader, "other": anyReader}, s.up(t))
			w.client("scout").modern("tools/list", "{}", "{}")
			begun := time.Now()
			if a := w.client("other").modern("tools/list", "{}", "{}"); a.Error != nil || time.Since(begun) > 10*time.Second {
				t.Errorf("after %v: %.200s", time.Since(begun), a.Raw)
			}
		})
	}
}

// TestTemplatesBesideManyClaims: what there is no time to hold against all of them is not there.
func TestTemplatesBesideManyClaims(t *testing.T) {
	s := newSkillServer(true, map[string]string{"skill://a/SKILL.md": skillText("a", "", "Fine.\n")})
	all := s.entries()
	for i := range 1000 {
		all = append(all, fmt.Sprintf(`{"uri":"wiki://h/q%d/SKILL.md"}`, i))
	}
	s.list(all...)
	templates := []string{`{"name":"long","uriTemplate":"other://h/` + strings.Repeat("x", 8<<10) + `{a}"}`}
	for i := range 2000 {
		templates = append(templates, fmt.Sprintf(`{"name":"t%d","uriTemplate":"other://h/%d/{a}"}`, i, i))
	}
	s.lists["resources/templates/list"] = `"resourceTemplates":[` + strings.Join(templates, ",") + `]`
	c := start(t, map[string]string{"scout": anyReader}, s.up(t)).client("scout")
	if a := c.modern("resources/templates/list", "{}", "{}"); !mentions(a, `"t0"`) || mentions(a, `"t1999"`, `"long"`) {
		t.Errorf("%.300s", a.Raw)
	}
}

// TestClaimedPlaces: what lies in the folder of a skill that is shown to nobody is no resource,
// however deep that is.
func TestClaimedPlaces(t *testing.T) {
	s := newSkillServer(true, map[string]string{"skill://a/SKILL.md": skillText("a", "", "Fine.\n")})
	deep := "wiki://h" + strings.Repeat("/d", 100)
	for _, root := range []string{"wiki://h/q", deep} {
		s.list(append(s.entries(), `{"uri":"`+root+`/SKILL.md","frontmatter":{"name":"a","description":"x"},"resources":[]}`)...)
		s.lists["resources/list"] = `"resources":[{"name":"in","uri":"` + root + `/in"},{"name":"further","uri":"` + root + `/further/in/` + strings.Repeat("e/", 100) + `it"},{"name":"beside","uri":"wiki://h/beside"}]`
		s.lists["resources/templates/list"] = `"resourceTemplates":[{"name":"into","uriTemplate":"` + root + `/{f}.md"},{"name":"away","uriTemplate":"wiki://h/else/{f}.txt"},{"name":"all","uriTemplate":"wiki://h/{+f}"}]`
		w := start(t, map[string]string{"scout": anyReader}, s.up(t))
		c := w.client("scout")
		if a := c.modern("resources/list", "{}", "{}"); mentions(a, `"in"`, `"further"`) || !mentions(a, `"beside"`) {
			t.Errorf("%.20s: %s", root, a.Raw)
		}
		if a := c.modern("resources/templates/list", "{}", "{}"); mentions(a, `"into"`) || !mentions(a, `"away"`) {
			t.Errorf("%.20s: %s", root, a.Raw)
		}
		c.modern("completion/complete", `{"ref":{"type":"ref/resource","uri":"wiki://h/{+f}"},"argument":{"name":"f","value":""}}`, "{}")
		if calls := s.calls(); slices.ContainsFunc(calls, func(r upstream.Request) bool { return r.Method == "completion/complete" }) {
			t.Errorf("%.20s: what is in it is told", root)
		}
	}
}

// TestLongOddClaims: nor is anything of the scheme of a skill whose URI servers read in different ways, however long that is.
func TestLongOddClaims(t *testing.T) {
	s := newSkillServer(true, map[string]string{"skill://a/SKILL.md": skillText("a", "", "Fine.\n")})
	for _, root := range []string{"wiki://h/q//.." + strings.Repeat("/d", 100), "wiki://h/q//" + strings.Repeat("d", 5000), "wiki://h/q?" + strings.Repeat("d", 9000)} {
		s.list(append(s.entries(), `{"uri":"`+root+`/SKILL.md","frontmatter":{"name":"q","description":"x"},"resources":[]}`)...)
		s.files["wiki://h/q/in.md"] = hiddenText
		s.lists["resources/list"] = `"resources":[{"name":"in","uri":"wiki://h/q/in.md"},{"name":"beside","uri":"repo://h/beside"}]`
		c := start(t, map[string]string{"scout": anyReader}, s.up(t)).client("scout")
		if a := c.modern("resources/list", "{}", "{}"); mentions(a, `"in"`) || !mentions(a, `"beside"`) {
			t.Errorf("%.20s: %s", root, a.Raw)
		}
		if a := c.modern("resources/read", uriParams("wiki://h/q/in.md"), "{}"); a.Error == nil || strings.Contains(a.Raw, hiddenText) {
			t.Errorf("%.20s: %s", root, a.Raw)
		}
	}
}

// TestOddlySpelledClaims: nor is what lies beside a SKILL.md that the server spells in another
// way, or that lies at the top.
func TestOddlySpelledClaims(t *testing.T) {
	s := newSkillServer(true, map[string]string{"skill://a/SKILL.md": skillText("a", "", "Fine.\n")})
	for claim, folder := range map[string]string{
		"wiki://h/q/skill.md": "wiki://h/q", "wiki://h/q/Skill.md": "wiki://h/q", "wiki://h/q/SKILL.md/": "wiki://h/q", "wiki://h/q/SKILL.md?v=1": "wiki://h/q",
		"wiki://h/q/SKILL.md#x": "wiki://h/q", "wiki://h/q/SKILL%2Emd": "wiki://h/q", "wiki://h/q%2FSKILL.md": "wiki://h/q", "wiki://h/q/SKILL.md ": "wiki://h/q",
		`wiki://h/q\\SKILL.md`: "wiki://h/q", "wiki://h/q?x/SKILL.md": "wiki://h/q?x", "wiki://h/q?x/../SKILL.md": "wiki://h", "wiki:///SKILL.md": "wiki://h",
		"wiki://;/SKILL.md": "wiki://;", "wiki://q:80/SKILL.md": "wiki://q:80",
		"wiki://h/caf\u00e9/SKILL.md": "wiki://h/cafe\u0301", "wiki://h/cafe%CC%81/SKILL.md": "wiki://h/caf%C3%A9", "wiki://h/\u212b/SKILL.md": "wiki://h/a\u030a",
		"wiki://h/\u0130/SKILL.md": "wiki://h/i\u0307", "wiki://h/\u1f80/SKILL.md": "wiki://h/\u03b1\u0313\u0345",
	} {
		s.list(append(s.entries(), `{"uri":"`+claim+`","frontmatter":{"name":"q","description":"x"},"resources":[]}`)...)
		s.files[folder+"/in.md"] = hiddenText
		s.lists["resources/list"] = `"resources":[{"name":"in","uri":"` + folder + `/in.md"},{"name":"beside","uri":"repo://h/beside"},{"name":"above","uri":"wiki://else"}]`
		w := start(t, map[string]string{"scout": anyReader}, s.up(t))
		c := w.client("scout")
		if a := c.modern("resources/list", "{}", "{}"); mentions(a, `"in"`) || !mentions(a, `"beside"`) || mentions(a, `"above"`) == (claim == "wiki:///SKILL.md" || !capability.ReadURI(strings.TrimSuffix(claim, "/SKILL.md")).Plain()) {
			t.Errorf("%s: %s", claim, a.Raw)
		}
		if a := c.modern("resources/read", uriParams(folder+"/in.md"), "{}"); a.Error == nil || strings.Contains(a.Raw, hiddenText) {
			t.Errorf("%s: %s", claim, a.Raw)
		}
	}
	s.files["wiki://h/SKILL.md"] = skillText("h", "", "Fine.\n")
	s.files["wiki://h/q/in.md"] = hiddenText
	s.list(append(s.entries(), `{"uri":"wiki://h/q/skill.md","frontmatter":{"name":"q","description":"x"},"resources":[]}`)...)
	c := start(t, map[string]string{"scout": anyReader}, s.up(t)).client("scout")
	if a := c.modern("resources/read", uriParams("wiki://h/q/in.md"), "{}"); a.Error == nil || strings.Contains(a.Raw, hiddenText) {
		t.Errorf("as a file of the skill around it: %s", a.Raw)
	}
}

// TestClaimsWithoutMarks: nor what a server that leaves out marks, or what is not ASCII, takes for something in them.
func TestClaimsWithoutMarks(t *testing.T) {
	s := newSkillServer(true, map[string]string{"skill://a/SKILL.md": skillText("a", "", "Fine.\n")})
	s.list(append(s.entries(), `{"uri":"wiki://h/my-q/SKILL.md","frontmatter":{"name":"q","description":"x"},"resources":[]}`)...)
	uris := map[string]bool{
		"wiki://h/my_q/in.md": true, "wiki://h/!my-q/in.md": true, "wiki://h/my-q%D0%B6/in.md": true, "wiki://h,my-q/in.md": true, "wiki://h/%D0%B6/my-q/in.md": true,
		"wiki://h/x/SKILL'.md": true, "wiki://h/x/SKILL_.md": true, "wiki://h/x/SKILL%D0%B6.md": true,
		"wiki://h/my/in.md": false, "wiki://h/%D0%B6/in.md": false, "wiki://h/q/in.md": false, "wiki://h/x/SKILLS.md": false,
	}
	for uri := range uris {
		s.files[uri] = hiddenText
	}
	c := start(t, map[string]string{"scout": anyReader}, s.up(t)).client("scout")
	for uri, secluded := range uris {
		if a := c.modern("resources/read", uriParams(uri), "{}"); mentions(a, hiddenText) == secluded {
			t.Errorf("%s: %s", uri, a.Raw)
		}
	}
}

// TestClaimsOfThisMachine: localhost in a file: URI is as good as no host to most who read it, so
// that neither is a way around the other, whatever of the disk the agent may read.
func TestClaimsOfThisMachine(t *testing.T) {
	hosts := []string{"", "localhost", "LocalHost"}
	for _, claimed := range hosts {
		s := newSkillServer(true, map[string]string{"skill://a/SKILL.md": skillText("a", "", "Fine.\n")})
		s.list(append(s.entries(), `{"uri":"file://`+claimed+`/srv/q/SKILL.md","frontmatter":{"name":"q","description":"x"},"resources":[]}`)...)
		c := start(t, map[string]string{"scout": "---\nclass: agent\ncapabilities:\n  - fs.read: { in: /, paths: [srv] }\n---\n"}, s.up(t)).client("scout")
		for _, host := range hosts {
			in, beside := "file://"+host+"/srv/q/in.md", "file://"+host+"/srv/beside.md"
			s.files[in], s.files[beside] = hiddenText, "beside"
			if a := c.modern("resources/read", uriParams(in), "{}"); a.Error == nil || mentions(a, hiddenText) {
				t.Errorf("%s, of a skill at %q: %s", in, claimed, a.Raw)
			}
			if a := c.modern("resources/read", uriParams(beside), "{}"); a.Error != nil {
				t.Errorf("%s: %s", beside, a.Raw)
			}
		}
	}
}
