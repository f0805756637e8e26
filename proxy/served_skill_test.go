package proxy_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"capgate/proxy"
	"capgate/skills"
	"capgate/upstream"
)

// skillServer is a server with skills: its files by URI. What it says of them can be
// tampered with.
type skillServer struct {
	*scripted
	mu      sync.Mutex
	files   map[string]string
	tampers map[string]string // what is served in place of a file
}

const skillAbilities = `{"tools":{},"prompts":{},"resources":{"subscribe":true},"completions":{},"extensions":{"io.modelcontextprotocol/skills":{}}}`

// newSkillServer makes a server of either era that speaks the extension.
func newSkillServer(modern bool, files map[string]string) *skillServer {
	s := &skillServer{scripted: &scripted{}, files: files, tampers: map[string]string{}}
	s.info = upstream.Info{Version: "2025-11-25", Capabilities: []byte(skillAbilities)}
	if modern {
		s.info.Version, s.info.Modern = "2026-07-28", true
	}
	s.reply = s.read
	s.lists = map[string]string{}
	s.list(s.entries()...)
	return s
}

// entries is what the server lists: one skill for each SKILL.md.
func (s *skillServer) entries() []string {
	var all []string
	for uri, text := range s.files {
		root, ok := strings.CutSuffix(uri, "/SKILL.md")
		if !ok {
			continue
		}
		var list []string
		for at, data := range s.files {
			if strings.HasPrefix(at, root+"/") {
				list = append(list, manifestEntry(at, data))
			}
		}
		slices.Sort(list)
		name, _, _ := strings.Cut(text[strings.Index(text, "name: ")+6:], "\n")
		all = append(all, fmt.Sprintf(`{"uri":%q,"frontmatter":{"name":%q,"description":"About %s."},"resources":[%s]}`, uri, name, name, strings.Join(list, ",")))
	}
	slices.Sort(all)
	return all
}

func manifestEntry(uri, data string) string {
	sum := sha256.Sum256([]byte(data))
	return fmt.Sprintf(`{"uri":%q,"digest":"sha256:%s","size":%d}`, uri, hex.EncodeToString(sum[:]), len(data))
}

// list sets what the server lists.
func (s *skillServer) list(entries ...string) {
	s.scripted.mu.Lock()
	defer s.scripted.mu.Unlock()
	s.lists["skills/list"] = `"resultType":"complete","skills":[` + strings.Join(entries, ",") + `]`
}

func (s *skillServer) tamper(uri, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tampers[uri] = text
}

// read answers resources/read.
func (s *skillServer) read(_ context.Context, r upstream.Request, _ upstream.Sink) (upstream.Answer, error) {
	var p struct{ URI string }
	if err := json.Unmarshal(r.Params, &p); err != nil || r.Method != "resources/read" {
		return upstream.Answer{Result: []byte(`{}`)}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok := s.tampers[p.URI]
	if ok && strings.HasPrefix(text, `{"contents"`) {
		return upstream.Answer{Result: []byte(text)}, nil
	}
	if !ok {
		text, ok = s.files[p.URI]
	}
	if !ok {
		return upstream.Answer{Error: []byte(`{"code":-32602,"message":"nothing there"}`)}, nil
	}
	content := fmt.Sprintf(`"blob":%q`, base64.StdEncoding.EncodeToString([]byte(text)))
	if utf8.ValidString(text) {
		content = `"text":` + string(mustJSON(text))
	}
	result := fmt.Sprintf(`{"contents":[{"annotations":{"x":1.0}, "uri" : %q,"mimeType":"text/x",%s}]}`, p.URI, content)
	if s.info.Modern {
		return upstream.Answer{Result: []byte(`{"resultType":"complete","ttlMs":9,"cacheScope":"public",` + result[1:]), Type: "complete"}, nil
	}
	return upstream.Answer{Result: []byte(result)}, nil
}

func (s *skillServer) up(t *testing.T) *proxy.Upstream {
	t.Helper()
	if _, ok := s.lists["tools/list"]; !ok {
		s.lists["tools/list"] = `"tools":[]`
	}
	return files(t, s.scripted)
}

// changed says that the lists of the server are others.
func (s *skillServer) changed() {
	s.scripted.mu.Lock()
	peers := slices.Clone(s.peers)
	s.scripted.mu.Unlock()
	for _, p := range peers {
		p.Events.Notify("notifications/resources/list_changed", nil)
	}
}

// anyReader may read any resource of any server, but not reach the host that hidden
// skills fetch from.
const anyReader = `---
class: agent
capabilities:
  - fs.read: { in: $ROOT, paths: [docs] }
  - resource.read: { uris: ["**"] }
  - prompt.get: { names: ["**"] }
---
`

func servedFiles() map[string]string {
	return map[string]string{
		"skill://greet/SKILL.md":            skillText("greet", "Read", "Greet <&>\u2028.\n"),
		"skill://greet/more/words.txt":      "hello",
		"skill://greet/more/tune.bin":       "\xff\x00",
		"skill://team/secret/SKILL.md":      skillText("secret", "WebFetch(domain:example.com)", hiddenText),
		"skill://team/secret/more/a.md":     hiddenText,
		"skill://outer/SKILL.md":            skillText("outer", "", "Outer.\n"),
		"skill://outer/in/inner/SKILL.md":   skillText("inner", "WebFetch(domain:example.com)", hiddenText),
		"repo://acme/x/skills/own/SKILL.md": skillText("own", "", "Own.\n"),
		"repo://acme/x/skills/hid/SKILL.md": skillText("hid", "WebFetch(domain:example.com)", hiddenText),
		"repo://acme/x/skills/hid/a.md":     hiddenText,
		"repo://acme/x/README":              "readme",
	}
}

// TestServedSkills: skills of a server under URIs of their own, in all four
// combinations of eras, byte for byte and with whatever the server adds.
func TestServedSkills(t *testing.T) {
	for _, modern := range []bool{false, true} {
		s := newSkillServer(modern, servedFiles())
		s.lists["resources/list"] = `"resources":[{"uri":"skill://greet/SKILL.md","name":"x"},{"uri":"skill://team/secret/more/a.md","name":"secret"},` +
			`{"uri":"repo://acme/x/skills/hid/a.md","name":"secret"},{"uri":"repo://acme/x/README","name":"readme"}]`
		w := start(t, map[string]string{"scout": anyReader}, s.up(t))
		inEras(t, w, "scout", func(t *testing.T, do ask) {
			list := listSkills(t, do)
			if diff := cmp.Diff([]string{"repo://acme/x/skills/own/SKILL.md", "skill://files/greet/SKILL.md"}, skillURIs(list)); diff != "" {
				t.Fatal(diff)
			}
			got := verify(t, do, list[1])
			for uri, text := range got {
				if want := servedFiles()["skill://"+strings.TrimPrefix(uri, "skill://files/")]; text != want {
					t.Errorf("%s is %q, want %q", uri, text, want)
				}
			}
			if len(got) != 3 {
				t.Errorf("read are %d files", len(got))
			}
			if diff := cmp.Diff("Read", list[1].Frontmatter["allowed-tools"]); diff != "" {
				t.Errorf("the frontmatter is not that of the file: %s", diff)
			}
			a := do("resources/read", uriParams("skill://files/greet/more/words.txt"))
			if !strings.Contains(a.Raw, `{"annotations":{"x":1.0}, "uri" : "skill://files/greet/more/words.txt","mimeType":"text/x","text":"hello"}`) {
				t.Errorf("what the server adds is lost: %s", a.Raw)
			}
			if strings.Contains(a.Raw, `"public"`) || strings.Count(a.Raw, "resultType") > 1 {
				t.Errorf("the result is %s", a.Raw)
			}
			if a := do("prompts/get", `{"name":"files__greet"}`); !strings.Contains(a.Raw, `"text":"Greet <&>`) {
				t.Errorf("the prompt is %s", a.Raw)
			}
			if a := do("resources/read", uriParams("repo://acme/x/README")); string(fileOf(t, a, "repo://acme/x/README")) != "readme" {
				t.Errorf("what is no skill: %s", a.Raw)
			}
			if a := do("resources/list", "{}"); strings.Contains(a.Raw, "secret") || !strings.Contains(a.Raw, "README") || strings.Contains(a.Raw, `"skill://greet`) {
				t.Errorf("the resources are %s", a.Raw)
			}
		})
	}
}

// servedRoutes are requests that would show something of a server's hidden skills.
func servedRoutes() (all []string) {
	for _, uri := range []string{
		"skill://files/team/secret/SKILL.md", "skill://team/secret/SKILL.md", "skill://files/team/secret/more/a.md", "skill://team/secret/more/a.md",
		"skill://files/outer/SKILL.md", "skill://files/outer/in/inner/SKILL.md", "skill://files/greet/../team/secret/SKILL.md", "skill://greet/SKILL.md",
		"skill://files/greet/%2e%2e/team/secret/SKILL.md", "SKILL://team/secret/SKILL.md", "skill:team/secret/SKILL.md", "skill%3a//team/secret/SKILL.md",
		"skill://files/team/secret/_manifest", "skill://index.json", "skill://files/index.json",
		"repo://acme/x/skills/hid/SKILL.md", "repo://acme/x/skills/hid/a.md", "REPO://acme/x/skills/hid/a.md", "repo://ACME/x/skills/hid/a.md", "repo://acme/x/./skills/hid/a.md",
		"repo://acme/x/skills/own/../hid/a.md", "repo://acme/x/skills/%68id/a.md", "repo://acme/x/skills/%2568id/a.md", "repo://acme//x/skills/hid/a.md",
		"repo:/acme/x/skills/hid/a.md", "repo://acme/x\\skills/hid/a.md", "repo://acme/x/skills/hid/a.md?x", "repo://acme/x/skills/hid/a.md#x", "repo://acme/x/skills/hid",
		"repo://acme/x/skills/own/unlisted.md", "repo://acme/x/skills/other/SKILL.md", "repo://acme/x/sk\tills/hid/a.md",
		"repo://acme/x/?/../skills/hid/a.md", "repo://acme/x/#/../skills/hid/a.md", "repo://acme/x/ſkills/hid/a.md", "repo://acme/x/skills/hid./a.md", "repo://acme/x/skills/hid;v=1/a.md",
		"repo://acme/x/skills/own/..;/hid/a.md", "repo://acme/x/skills/hid/..;/a.md", "repo://acme/x/skills/hid::$INDEX_ALLOCATION/a.md", "repo://acme:80/x/skills/hid/a.md", "repo:x://acme/x/skills/hid/a.md", "repo://acme/x/skills/hid/a.md://x", "repo://me@acme/x/skills/hid/a.md",
	} {
		for _, method := range []string{"resources/read", "skills/get", "resources/directory/read", "resources/subscribe"} {
			all = append(all, method+` {"uri":`+string(mustJSON(uri))+`}`)
		}
	}
	for _, name := range []string{"files__secret", "files__outer", "files__inner", "secret", "files__hid"} {
		all = append(all, `prompts/get {"name":"`+name+`"}`)
	}
	for _, template := range []string{"skill://{name}/{+path}", "{+uri}", "repo://acme/{+path}", "repo://acme/x/skills/{path}/a.md"} {
		all = append(all, `completion/complete {"ref":{"type":"ref/resource","uri":"`+template+`"},"argument":{"name":"path","value":""}}`)
	}
	return all
}

// TestHiddenServedSkills: a skill of a server that the agent does not satisfy is not
// to be had by any URI, although the agent may read every resource. The server is
// asked nothing.
func TestHiddenServedSkills(t *testing.T) {
	s := newSkillServer(true, servedFiles())
	s.lists["resources/templates/list"] = `"resourceTemplates":[{"uriTemplate":"skill://{name}/{+path}","name":"t"},{"uriTemplate":"{+uri}","name":"t"},{"uriTemplate":"repo://acme/{+path}","name":"t"},` +
		`{"uriTemplate":"repo://acme/x/skills/{path}/a.md","name":"t"}]`
	w := start(t, map[string]string{"scout": anyReader}, s.up(t))
	c := w.client("scout")
	c.initialize("{}")
	if n := len(listSkills(t, c.request)); n != 2 {
		t.Fatalf("%d skills", n)
	}
	before := len(s.calls())
	for _, route := range servedRoutes() {
		method, params, _ := strings.Cut(route, " ")
		if a := c.request(method, params); a.Error == nil || a.Error.Code != -32602 || strings.Contains(a.Raw, hiddenText) {
			t.Errorf("%s: %s", route, a.Raw)
		}
	}
	if a := c.request("resources/templates/list", "{}"); mentions(a, "{+path}", "{+uri}") {
		t.Errorf("the templates are %s", a.Raw)
	}
	if calls := s.calls(); len(calls) != before {
		t.Errorf("the server was asked %v", calls[before:])
	}
	for _, uri := range []string{"repo://acme/x/skills/hid/a.md", "skill://team/secret/SKILL.md"} {
		s.tamper("repo://acme/x/README", `{"contents":[{"uri":"repo://acme/x/README","text":"readme"},{"uri":"`+uri+`","text":"`+hiddenText+`"}]}`)
		if a := c.request("resources/read", uriParams("repo://acme/x/README")); a.Error == nil || strings.Contains(a.Raw, hiddenText) {
			t.Errorf("in another resource: %s", a.Raw)
		}
	}
	if last := w.events.of("decision"); last[len(last)-1].Decision != "deny" {
		t.Errorf("recorded is %+v", last[len(last)-1])
	}
}

// TestFilesOfInnerSkills: a skill that lists files of one inside it, though not its
// SKILL.md, shows them only to those who see that one.
func TestFilesOfInnerSkills(t *testing.T) {
	for tools, want := range map[string]int{"Read": 2, "WebFetch(domain:example.com)": 0, "Bash(": 0} {
		s := newSkillServer(true, map[string]string{
			"skill://outer/SKILL.md":           skillText("outer", "", "Outer.\n"),
			"skill://outer/in/inner/SKILL.md":  skillText("inner", tools, "Inner.\n"),
			"skill://outer/in/inner/more/a.md": hiddenText,
		})
		entries := s.entries()
		i := slices.IndexFunc(entries, func(e string) bool { return strings.Contains(e, `"name":"outer"`) })
		entries[i] = strings.Replace(entries[i], manifestEntry("skill://outer/in/inner/SKILL.md", s.files["skill://outer/in/inner/SKILL.md"])+",", "", 1)
		s.list(entries...)
		c := start(t, map[string]string{"scout": anyReader}, s.up(t)).client("scout")
		c.initialize("{}")
		if got := listSkills(t, c.request); len(got) != want {
			t.Errorf("%s: %d skills, want %d", tools, len(got), want)
		}
		if a := c.request("resources/read", uriParams("skill://files/outer/in/inner/more/a.md")); (a.Error == nil) != (want > 0) || strings.Contains(a.Raw, hiddenText) != (want > 0) {
			t.Errorf("%s: %s", tools, a.Raw)
		}
	}
}

// TestOperatorIsToldWhy: the event of a refusal says what is missing, and the agent
// is not told.
func TestOperatorIsToldWhy(t *testing.T) {
	s := newSkillServer(true, servedFiles())
	w := start(t, map[string]string{"scout": anyReader}, s.up(t))
	w.bundles(ownSkills())
	c := w.client("scout")
	c.initialize("{}")
	for uri, want := range map[string]string{
		"skill://secret/SKILL.md":            "net.get{hosts=[example.com]}",
		"skill://secret/more/a.md":           "net.get{hosts=[example.com]}",
		"skill://files/team/secret/SKILL.md": "net.get{hosts=[example.com]}",
		"skill://files/outer/SKILL.md":       "a skill inside it is hidden",
		"skill://broken/SKILL.md":            "stands twice",
		"skill://nosuch/SKILL.md":            "no skill has a file of that URI",
	} {
		a := c.request("resources/read", uriParams(uri))
		last := w.events.of("decision")
		if e := last[len(last)-1]; e.Decision != "deny" || !strings.Contains(e.Link, want) {
			t.Errorf("%s: recorded is %+v", uri, e)
		}
		if strings.Contains(a.Raw, "net.get") || strings.Contains(a.Raw, "inside") {
			t.Errorf("%s: the agent is told %s", uri, a.Raw)
		}
	}
}

// TestServedSkillsWithFlaws: an entry that is not as it must be hides its skill, and
// no other. Skill good is there each time.
func TestServedSkillsWithFlaws(t *testing.T) {
	const root = "skill://flawed"
	text := skillText("flawed", "", hiddenText)
	self := manifestEntry(root+"/SKILL.md", text)
	entry := func(resources string) string {
		return fmt.Sprintf(`{"uri":"%s/SKILL.md","frontmatter":{"name":"flawed","description":"About flawed."},"resources":%s}`, root, resources)
	}
	with := func(uri string) string { return entry("[" + self + "," + manifestEntry(uri, hiddenText) + "]") }
	many := []string{self}
	for i := range 512 {
		many = append(many, manifestEntry(fmt.Sprintf("%s/%d.md", root, i), ""))
	}
	sum := strings.Repeat("0", 64)
	for name, entries := range map[string][]string{
		"no list of files":                  {strings.Replace(entry(`[]`), `,"resources":[]`, "", 1)},
		"no file":                           {entry(`[]`)},
		"something else":                    {entry(`"static"`)},
		"not itself":                        {entry("[" + manifestEntry(root+"/a.md", hiddenText) + "]")},
		"itself twice":                      {entry("[" + self + "," + self + "]")},
		"too many files":                    {entry("[" + strings.Join(many, ",") + "]")},
		"too many bytes":                    {entry("[" + self + `,{"uri":"` + root + `/b","digest":"sha256:` + sum + `","size":16777200}]`)},
		"a negative size":                   {entry("[" + self + `,{"uri":"` + root + `/b","digest":"sha256:` + sum + `","size":-1}]`)},
		"half a byte":                       {entry("[" + self + `,{"uri":"` + root + `/b","digest":"sha256:` + sum + `","size":1.5}]`)},
		"no size":                           {entry("[" + self + `,{"uri":"` + root + `/b","digest":"sha256:` + sum + `"}]`)},
		"no digest":                         {entry("[" + self + `,{"uri":"` + root + `/b","size":1}]`)},
		"another hash":                      {entry("[" + self + `,{"uri":"` + root + `/b","digest":"sha1:` + sum + `","size":1}]`)},
		"a digest in capitals":              {entry("[" + self + `,{"uri":"` + root + `/b","digest":"sha256:` + strings.Repeat("A", 64) + `","size":1}]`)},
		"a file of another":                 {with("skill://good/SKILL.md")},
		"a file beside":                     {with("skill://flawed-not/a.md")},
		"a file that moves":                 {with(root + "/../good/a.md")},
		"a file that is hidden":             {with(root + "/%2e%2e/good/a.md")},
		"a folder":                          {with(root + "/a/")},
		"a plugin":                          {with(root + "/in/.claude-plugin/a.md")},
		"a manifest that is not there":      {with(root + "/agents/openai.yaml")},
		"a query":                           {with(root + "/a?b")},
		"a nested skill that is not listed": {with(root + "/in/SKILL.md")},
		"the same, in another case":         {with(root + "/in/sKiLL.mD")},
		"twice in the list":                 {entry("[" + self + "]"), entry("[" + self + "]")},
		"another case":                      {entry("[" + self + "]"), strings.ReplaceAll(entry("["+self+"]"), "skill://flawed", "skill://Flawed")},
		"another name":                      {strings.Replace(entry("["+self+"]"), `"name":"flawed"`, `"name":"good"`, 1)},
		"another description":               {strings.Replace(entry("["+self+"]"), "About flawed.", "About something else.", 1)},
		"another digest":                    {strings.Replace(entry("["+self+"]"), self[strings.Index(self, "sha256:"):][:14], "sha256:0000000", 1)},
		"another size":                      {strings.Replace(entry("["+self+"]"), `"size":`, `"size":1`, 1)},
		"a URI that moves":                  {strings.ReplaceAll(entry("["+self+"]"), root, "skill://x/../flawed")},
		"a URI without a name":              {strings.ReplaceAll(entry("["+self+"]"), root+"/", "skill://")},
		"two names for a key":               {strings.Replace(entry("["+self+"]"), `"uri"`, `"URI":"x","uri"`, 1)},
		"a NUL":                             {strings.Replace(entry("["+self+"]"), "About flawed.", `\u0000`, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSkillServer(true, map[string]string{"skill://good/SKILL.md": skillText("good", "", "Good.\n"), root + "/SKILL.md": text, root + "/in/SKILL.md": text, root + "/a.md": hiddenText})
			good := s.entries()[slices.IndexFunc(s.entries(), func(e string) bool { return strings.Contains(e, "skill://good") })]
			s.list(append(entries, good)...)
			w := start(t, map[string]string{"scout": anyReader}, s.up(t))
			c := w.client("scout")
			c.initialize("{}")
			want := []string{"skill://files/good/SKILL.md"}
			if diff := cmp.Diff(want, skillURIs(listSkills(t, c.request))); diff != "" {
				t.Error(diff)
			}
			for _, file := range []string{"SKILL.md", "a.md", "in/SKILL.md", "b"} {
				if a := c.request("resources/read", uriParams("skill://files/flawed/"+file)); a.Error == nil || strings.Contains(a.Raw, hiddenText) {
					t.Errorf("%s: %s", file, a.Raw)
				}
			}
		})
	}
}

// TestServedSkillsWithManifests: a server's skill requires what its manifest says, as one
// of the gateway's own does. The manifest is bound to its digest, and read once.
func TestServedSkillsWithManifests(t *testing.T) {
	const root, depends = "skill://needy", "dependencies: { tools: [{ type: mcp, value: %s }] }\n"
	s := newSkillServer(true, map[string]string{root + "/SKILL.md": skillText("needy", "", hiddenText), root + "/agents/openai.yaml": fmt.Sprintf(depends, "files")})
	w := start(t, map[string]string{"scout": anyReader, "boss": strings.Replace(anyReader, "capabilities:\n", "capabilities:\n  - tool.invoke: { tools: [files.*] }\n", 1)}, s.up(t))
	w.skills = skills.Load(skills.Options{Upstreams: []string{"files"}})
	w.adopt()
	shown := func(agent string, want ...string) {
		t.Helper()
		c := w.client(agent)
		c.initialize("{}")
		if diff := cmp.Diff(want, skillURIs(listSkills(t, c.request))); diff != "" {
			t.Errorf("%s: %s", agent, diff)
		}
		if a := c.request("resources/read", uriParams("skill://files/needy/SKILL.md")); (a.Error == nil) != (len(want) > 0) {
			t.Errorf("%s: %s", agent, a.Raw)
		}
	}
	shown("scout")
	shown("boss", "skill://files/needy/SKILL.md")
	for _, text := range []string{fmt.Sprintf(depends, "others"), "dependencies: [\n", "dependencies: { tools: 5 }\n"} {
		s.mu.Lock()
		s.files[root+"/agents/openai.yaml"] = text
		s.mu.Unlock()
		s.list(s.entries()...)
		s.changed()
		shown("boss")
	}
	s.tamper(root+"/agents/openai.yaml", "{}")
	s.changed()
	shown("boss")
}

// TestServedSkillsAreBounded: what a server makes the gateway read of its skills, and
// keep, ends where it is too much, and not when all of it was read.
func TestServedSkillsAreBounded(t *testing.T) {
	const count, size, most = 80, 400 << 10, 8 << 20
	own := map[string]string{}
	for i := range count {
		name := fmt.Sprintf("s%d", i)
		own["skill://"+name+"/SKILL.md"] = skillText(name, "", strings.Repeat("x", size))
	}
	for name, drafts := range map[string]bool{"the extension": false, "drafts": true} {
		t.Run(name, func(t *testing.T) {
			s := newSkillServer(false, own)
			if drafts {
				s.info.Capabilities = []byte(serverAbilities)
				delete(s.lists, "skills/list")
				var all []string
				for uri := range own {
					all = append(all, fmt.Sprintf(`{"uri":%q,"name":"x"}`, uri))
				}
				s.lists["resources/list"] = `"resources":[` + strings.Join(all, ",") + `]`
			}
			w := start(t, map[string]string{"scout": anyReader}, s.up(t))
			c := w.client("scout")
			c.initialize("{}")
			if a := c.request("skills/list", "{}"); strings.Contains(a.Raw, "skill://files") {
				t.Errorf("over the limit it lists %.200s", a.Raw)
			}
			reads := 0
			for _, r := range s.calls() {
				if r.Method == "resources/read" {
					reads++
				}
			}
			if limit := 2 * (most/size + 8); reads > limit {
				t.Errorf("%d files were read, %d are too many", reads, limit)
			}
		})
	}
}

// TestServedNeedsAreBounded: what a server's skills require is held against what each
// agent holds, which ends where it is too much. Those that come first are shown.
func TestServedNeedsAreBounded(t *testing.T) {
	const each, count = 250, 12
	own := map[string]string{"skill://first/SKILL.md": skillText("first", "", "x"), "skill://last/SKILL.md": skillText("last", "", "x")}
	for i := range count {
		var tools []string
		for n := range each {
			tools = append(tools, fmt.Sprintf("Read(src/a%d)", n))
		}
		name := fmt.Sprintf("i%d", i)
		own["skill://"+name+"/SKILL.md"] = skillText(name, strings.Join(tools, " "), "x")
	}
	s := newSkillServer(false, own)
	w := start(t, map[string]string{"scout": anyReader}, s.up(t))
	c := w.client("scout")
	c.initialize("{}")
	if got, want := skillURIs(listSkills(t, c.request)), []string{"skill://files/first/SKILL.md"}; !slices.Equal(got, want) {
		t.Errorf("%v are listed, want %v", got, want)
	}
	if a := c.request("resources/read", uriParams("skill://files/last/SKILL.md")); a.Error == nil {
		t.Errorf("one that was not read is served: %s", a.Raw)
	}
}
