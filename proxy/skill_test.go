package proxy_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/proxy"
	"capgate/skills"
)

// fetcher is an agent that may reach one host besides.
const fetcher = `---
class: agent
capabilities:
  - fs.read: { in: $ROOT, paths: [docs] }
  - net.get: { hosts: [example.com] }
---
`

const hiddenText = "WORDS-THAT-NOBODY-SEES"

func skillText(name, tools, body string) string {
	if tools != "" {
		tools = "allowed-tools: " + tools + "\n"
	}
	return "---\nname: " + name + "\ndescription: About " + name + ".\n" + tools + "---\n" + body
}

// ownSkills are the files of the gateway's own skills. One agent of two satisfies
// those that fetch.
func ownSkills() map[string]string {
	return map[string]string{
		"notes/SKILL.md":                  skillText("notes", "", "# Notes\r\n<&>\n"),
		"notes/references/guide.md":       "the guide",
		"notes/references/odd name&%.txt": "odd",
		"notes/picture.png":               "\x89PNG\x00\xff",
		"team/deep/review/SKILL.md":       skillText("review", "Read", "Review.\n"),
		"secret/SKILL.md":                 skillText("secret", "WebFetch(domain:example.com)", hiddenText),
		"secret/more/a.md":                hiddenText,
		"outer/SKILL.md":                  skillText("outer", "", "Outer.\n"),
		"outer/inner/SKILL.md":            skillText("inner", "WebFetch(domain:example.com)", hiddenText),
		"broken/SKILL.md":                 "---\nname: broken\nname: broken\n---\n" + hiddenText,
	}
}

// bundles writes skills into a folder and reads them.
func (w *world) bundles(files map[string]string) {
	w.t.Helper()
	dir := filepath.Join(w.root, "skills")
	if err := os.RemoveAll(dir); err != nil {
		w.t.Fatal(err)
	}
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	w.skills = skills.Load(skills.Options{}, dir)
	w.adopt()
}

// skilled is a gateway with skills of its own and two agents.
func skilled(t *testing.T, ups ...*proxy.Upstream) *world {
	w := start(t, map[string]string{"scout": reader, "boss": fetcher}, ups...)
	w.bundles(ownSkills())
	return w
}

// ask makes a request in one of the eras.
type ask func(method, params string) said

// inEras runs a test for an agent in each era.
func inEras(t *testing.T, w *world, agent string, run func(t *testing.T, do ask)) {
	t.Helper()
	t.Run("legacy", func(t *testing.T) {
		c := w.client(agent)
		c.initialize("{}")
		run(t, c.request)
	})
	t.Run("modern", func(t *testing.T) {
		c := w.client(agent)
		run(t, func(method, params string) said { return c.modern(method, params, "{}") })
	})
}

// skillEntry is an entry of skills/list.
type skillEntry struct {
	URI         string
	Frontmatter map[string]any
	Resources   json.RawMessage
}

func (e skillEntry) files(t *testing.T) map[string]skillFileEntry {
	t.Helper()
	var list []skillFileEntry
	if err := json.Unmarshal(e.Resources, &list); err != nil {
		t.Fatalf("%s: %v", e.Resources, err)
	}
	files := map[string]skillFileEntry{}
	for _, f := range list {
		files[f.URI] = f
	}
	if len(files) != len(list) {
		t.Errorf("%s: a file stands there twice", e.URI)
	}
	return files
}

type skillFileEntry struct {
	URI, Digest string
	Size        int
}

// listSkills pages through skills/list.
func listSkills(t *testing.T, do ask) []skillEntry {
	t.Helper()
	a := do("skills/list", "{}")
	var r struct {
		Skills                             []skillEntry
		NextCursor, ResultType, CacheScope string
		TTL                                *int `json:"ttlMs"`
	}
	if err := json.Unmarshal(a.Result, &r); err != nil {
		t.Fatalf("%s: %v", a.Raw, err)
	}
	if r.NextCursor != "" || r.ResultType != "complete" || r.CacheScope != "private" || r.TTL == nil {
		t.Errorf("the list says of itself %s", a.Raw)
	}
	return r.Skills
}

func skillURIs(list []skillEntry) []string {
	var uris []string
	for _, e := range list {
		uris = append(uris, e.URI)
	}
	return uris
}

// fileOf is the file in the answer to a resources/read.
func fileOf(t *testing.T, a said, uri string) []byte {
	t.Helper()
	var r struct {
		Contents []struct {
			URI        string
			Text, Blob *string
		}
	}
	if err := json.Unmarshal(a.Result, &r); err != nil || len(r.Contents) != 1 || r.Contents[0].URI != uri {
		t.Fatalf("%s: %v", a.Raw, err)
	}
	one := r.Contents[0]
	switch {
	case one.Text != nil && one.Blob == nil:
		return []byte(*one.Text)
	case one.Text == nil && one.Blob != nil:
		data, err := base64.StdEncoding.DecodeString(*one.Blob)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	t.Fatalf("neither text nor bytes: %s", a.Raw)
	return nil
}

func uriParams(uri string) string { return fmt.Sprintf(`{"uri":%q}`, uri) }

// verify reads every file of a skill and compares it with its entry.
func verify(t *testing.T, do ask, e skillEntry) map[string]string {
	t.Helper()
	read := map[string]string{}
	for uri, f := range e.files(t) {
		data := fileOf(t, do("resources/read", uriParams(uri)), uri)
		sum := sha256.Sum256(data)
		if f.Digest != "sha256:"+hex.EncodeToString(sum[:]) || f.Size != len(data) {
			t.Errorf("%s is not what its entry says", uri)
		}
		read[uri] = string(data)
	}
	return read
}

// TestSkillsAreServed: what an agent satisfies it finds by every route, byte for
// byte.
func TestSkillsAreServed(t *testing.T) {
	w := skilled(t, files(t, &scripted{}))
	inEras(t, w, "scout", func(t *testing.T, do ask) {
		list := listSkills(t, do)
		want := []string{"skill://notes/SKILL.md", "skill://team/deep/review/SKILL.md"}
		if diff := cmp.Diff(want, skillURIs(list)); diff != "" {
			t.Fatal(diff)
		}
		own := ownSkills()
		if diff := cmp.Diff(map[string]string{
			"skill://notes/SKILL.md": own["notes/SKILL.md"], "skill://notes/references/guide.md": "the guide",
			"skill://notes/references/odd%20name&%25.txt": "odd", "skill://notes/picture.png": own["notes/picture.png"],
		}, verify(t, do, list[0])); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(map[string]any{"name": "review", "description": "About review.", "allowed-tools": "Read"}, list[1].Frontmatter); diff != "" {
			t.Error(diff)
		}
		var got struct{ Skill skillEntry }
		if a := do("skills/get", uriParams(list[0].URI)); json.Unmarshal(a.Result, &got) != nil || !cmp.Equal(got.Skill, list[0]) {
			t.Errorf("skills/get answers %s", a.Raw)
		}
	})
	events := w.events.of("decision")
	if last := events[len(events)-1]; last.Decision != "allow" || last.Method != "resources/read" || !strings.HasPrefix(last.Tool, "skill://notes/") {
		t.Errorf("reading is recorded as %+v", last)
	}
	if n := len(w.events.of("outcome")); n != len(events) {
		t.Errorf("%d decisions and %d outcomes", len(events), n)
	}
}

// TestSkillFolders reads folders of skills.
func TestSkillFolders(t *testing.T) {
	w := skilled(t)
	inEras(t, w, "scout", func(t *testing.T, do ask) {
		for folder, want := range map[string]string{
			"skill://notes": `picture.png image/png skill://notes/picture.png
references inode/directory skill://notes/references
notes text/markdown skill://notes/SKILL.md`,
			"skill://notes/references": `guide.md text/markdown skill://notes/references/guide.md
odd name&%.txt text/plain skill://notes/references/odd%20name&%25.txt`,
			"skill://team": `deep inode/directory skill://team/deep`,
		} {
			a := do("resources/directory/read", uriParams(folder))
			var r struct {
				Resources              []struct{ URI, Name, MimeType string }
				ResultType, CacheScope string
			}
			if err := json.Unmarshal(a.Result, &r); err != nil || r.ResultType != "complete" || r.CacheScope != "private" {
				t.Fatalf("%s: %v", a.Raw, err)
			}
			var lines []string
			for _, x := range r.Resources {
				lines = append(lines, x.Name+" "+x.MimeType+" "+x.URI)
			}
			slices.SortFunc(lines, func(a, b string) int {
				return strings.Compare(strings.ToLower(a[strings.LastIndex(a, "/"):]), strings.ToLower(b[strings.LastIndex(b, "/"):]))
			})
			if diff := cmp.Diff(want, strings.Join(lines, "\n")); diff != "" {
				t.Errorf("%s: %s", folder, diff)
			}
		}
		if a := do("resources/directory/read", `{"uri":"skill://notes","cursor":"x"}`); a.Error == nil || a.Error.Code != -32602 {
			t.Errorf("a page that there is not: %s", a.Raw)
		}
	})
}

// TestSkillsWithoutTheExtension: the same skills as resources and prompts.
func TestSkillsWithoutTheExtension(t *testing.T) {
	w := skilled(t)
	inEras(t, w, "scout", func(t *testing.T, do ask) {
		var r struct {
			Resources         []struct{ URI, Name, Description, MimeType string }
			ResourceTemplates []struct{ URITemplate, Name string }
			Prompts           []struct{ Name, Description string }
			Messages          []struct {
				Role    string
				Content struct{ Type, Text string }
			}
		}
		for _, method := range []string{"resources/list", "resources/templates/list", "prompts/list"} {
			if a := do(method, "{}"); json.Unmarshal(a.Result, &r) != nil {
				t.Fatal(a.Raw)
			}
		}
		if diff := cmp.Diff([]struct{ URI, Name, Description, MimeType string }{
			{"skill://notes/SKILL.md", "notes", "About notes.", "text/markdown"},
			{"skill://team/deep/review/SKILL.md", "review", "About review.", "text/markdown"},
		}, r.Resources); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]struct{ URITemplate, Name string }{{"skill://notes/{+file}", "notes"}}, r.ResourceTemplates); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]struct{ Name, Description string }{{"notes", "About notes."}, {"review", "About review."}}, r.Prompts); diff != "" {
			t.Error(diff)
		}
		if a := do("prompts/get", `{"name":"notes","arguments":{}}`); json.Unmarshal(a.Result, &r) != nil || len(r.Messages) != 1 ||
			r.Messages[0].Role != "user" || r.Messages[0].Content.Type != "text" || r.Messages[0].Content.Text != "# Notes\r\n<&>\n" {
			t.Errorf("the prompt is %s", a.Raw)
		}
		if a := do("prompts/get", `{"name":"notes","arguments":{"x":"y"}}`); denialOf(t, a).Code != "malformed_arguments" {
			t.Errorf("a prompt with arguments: %s", a.Raw)
		}
	})
}

// TestSkillsAreCompleted completes the paths of a skill's files.
func TestSkillsAreCompleted(t *testing.T) {
	w := skilled(t)
	inEras(t, w, "scout", func(t *testing.T, do ask) {
		var r struct{ Completion struct{ Values []string } }
		a := do("completion/complete", `{"ref":{"type":"ref/resource","uri":"skill://notes/{+file}"},"argument":{"name":"file","value":"references/"}}`)
		if json.Unmarshal(a.Result, &r) != nil || !cmp.Equal(r.Completion.Values, []string{"references/guide.md", "references/odd%20name&%25.txt"}) {
			t.Errorf("completed is %s", a.Raw)
		}
		a = do("completion/complete", `{"ref":{"type":"ref/prompt","name":"notes"},"argument":{"name":"x","value":""}}`)
		if a.Error != nil || !strings.Contains(a.Raw, `"values":[]`) {
			t.Errorf("completed is %s", a.Raw)
		}
	})
}

// TestSkillsFollowGrants: a change of the record is felt at the next request, and
// told; so is one of the skills.
func TestSkillsFollowGrants(t *testing.T) {
	w := skilled(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := w.client("boss")
	c.initialize("{}")
	if a := c.request("resources/read", uriParams("skill://secret/SKILL.md")); a.Error != nil {
		t.Fatal(a.Raw)
	}
	c.request("skills/list", "{}")
	for _, uri := range []string{"skill://notes/SKILL.md", "skill://notes/references/guide.md"} {
		if a := c.request("resources/subscribe", uriParams(uri)); a.Error != nil {
			t.Fatal(a.Raw)
		}
	}
	if a := c.request("resources/subscribe", uriParams("skill://broken/SKILL.md")); a.Error == nil {
		t.Errorf("what is hidden can be watched: %s", a.Raw)
	}
	session := c.open(ctx, t, http.MethodGet, "")
	listener := c.open(ctx, t, http.MethodPost,
		`{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"promptsListChanged":true,"resourcesListChanged":true,`+
			`"resourceSubscriptions":["skill://notes/references/guide.md","skill://broken/SKILL.md"]},"_meta":{`+modernMeta+`}}}`,
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen")
	if ack := listener.next(); !strings.Contains(ack, `"resourceSubscriptions":["skill://notes/references/guide.md"]`) {
		t.Fatal(ack)
	}
	hear := func(s *events, want ...string) {
		t.Helper()
		var got []string
		for range want {
			got = append(got, s.next())
		}
		for _, text := range want {
			if !slices.ContainsFunc(got, func(g string) bool { return strings.Contains(g, text) }) {
				t.Errorf("heard is %q, not %s", got, text)
			}
		}
	}
	w.write("boss", reader)
	w.adopt()
	hear(session, "prompts/list_changed", "resources/list_changed")
	hear(listener, "prompts/list_changed", "resources/list_changed")
	if a := c.request("resources/read", uriParams("skill://secret/SKILL.md")); a.Error == nil || strings.Contains(a.Raw, hiddenText) {
		t.Errorf("the grant is gone: %s", a.Raw)
	}
	changed := ownSkills()
	changed["notes/references/guide.md"] = "another guide"
	w.bundles(changed)
	hear(session, "resources/list_changed", `resources/updated","params":{"uri":"skill://notes/references/guide.md"`)
	hear(listener, "resources/list_changed", `"uri":"skill://notes/references/guide.md"`)
	list := listSkills(t, c.request)
	if got := verify(t, c.request, list[0]); got["skill://notes/references/guide.md"] != "another guide" {
		t.Errorf("read is %q", got)
	}
}

// TestSkillsAreAnnounced: whoever could have skills is told of the extension, whoever
// could not is not.
func TestSkillsAreAnnounced(t *testing.T) {
	const extension = `"extensions":{"io.modelcontextprotocol/skills":{"directoryRead":true}}`
	plain := &scripted{}
	plain.info.Capabilities = []byte(`{"tools":{}}`)
	for _, with := range []bool{true, false} {
		w := start(t, map[string]string{"scout": reader}, files(t, plain))
		if with {
			w.bundles(ownSkills())
		}
		c := w.client("scout")
		hello, discovered := c.initialize("{}"), c.modern("server/discover", "{}", "{}")
		for _, a := range []said{hello, discovered} {
			if strings.Contains(a.Raw, extension) != with || strings.Contains(a.Raw, `"resources":{`) != with || strings.Contains(a.Raw, `"prompts":{`) != with {
				t.Errorf("with skills: %v; said is %s", with, a.Raw)
			}
		}
	}
}

// TestSkillsOverStdio lists and reads over a pipe.
func TestSkillsOverStdio(t *testing.T) {
	w := skilled(t)
	var in, out bytes.Buffer
	fmt.Fprintln(&in, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	for i, route := range []string{
		`skills/list {}`, `resources/read {"uri":"skill://notes/references/guide.md"}`, `resources/read {"uri":"skill://secret/SKILL.md"}`,
	} {
		method, params, _ := strings.Cut(route, " ")
		fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", i+1, method, params)
	}
	if err := w.server.Stdio(t.Context(), "agents/scout", &in, &out); err != nil {
		t.Fatal(err)
	}
	answers := map[string]said{}
	for line := range strings.Lines(out.String()) {
		var a said
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatal(err)
		}
		a.Raw = line
		answers[string(a.ID)] = a
	}
	if got := skillURIs(listSkills(t, func(string, string) said { return answers["1"] })); len(got) != 2 {
		t.Errorf("listed are %q", got)
	}
	if got := fileOf(t, answers["2"], "skill://notes/references/guide.md"); string(got) != "the guide" {
		t.Errorf("read is %q", got)
	}
	if a := answers["3"]; a.Error == nil || a.Error.Code != -32602 || strings.Contains(out.String(), hiddenText) {
		t.Errorf("what is hidden: %s", a.Raw)
	}
}
