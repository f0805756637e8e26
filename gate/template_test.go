package gate_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"capgate/capability"
	"capgate/gate"
	"capgate/mapping"
)

// What may stand in the place of an expression of a template, by its operator.
var expansions = map[byte][]string{
	'+': {"a", "b", "docs", "a/b", "b/c/a", "a/b/c"},
	'#': {"#a", "#a/b"},
	'/': {"/a", "/b", "/a/b"},
	'?': {"?q=a", "?q=b"},
	'&': {"&z=a"},
	'.': {".a", ".b"},
	'x': {"a", "b", "c.d", "ab", "docs", "notes", "file", "https"},
}

// expanded returns what a template may become.
func expanded(template string) []string {
	literal, rest, ok := strings.Cut(template, "{")
	if !ok {
		return []string{template}
	}
	expression, rest, _ := strings.Cut(rest, "}")
	texts := expansions[expression[0]]
	if strings.HasSuffix(expression, "*") {
		texts = append(texts[:len(texts):len(texts)], expansions['+']...)
	}
	var all []string
	for _, more := range expanded(rest) {
		for _, text := range texts {
			all = append(all, literal+text+more)
		}
	}
	return all
}

// TestTemplatesPromise: whoever may complete a template may read all that it may become, and a template
// is shown of which something may be read, under random mappings, records and templates.
func TestTemplatesPromise(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	entries := []string{"docs://a", "docs://a/*", "docs://b*", "docs://a#q*", "docs://a/b/c", "docs", "notes", "notes://a/*", "docs:///*"}
	needs := []string{"memory.read", "{ requires: [memory.read] }", "resource.read", "{ requires: [ { resource.read: x://y } ] }"}
	grants := []string{
		`resource.read: { uris: ["*"] }`, `resource.read: { uris: ["docs://*"] }`, `resource.read: { uris: ["docs://a*"] }`, `resource.read: { uris: ["docs://*/b"] }`,
		`resource.read: { uris: ["docs://a/**"] }`, `resource.read: { uris: ["Docs://b*"] }`, `resource.read: { uris: ["{docs,notes}://a*"] }`, `resource.read: { uris: ["docs://a?q=*"] }`, `memory.read: { keys: ["*"] }`, `memory.read: { keys: ["a/*"] }`,
		`memory.read: { keys: ["*/b"] }`, `rye.load.knowledge: { ids: ["s.*"] }`, `rye.load.knowledge: { ids: ["s.docs.*"] }`, `rye.load.knowledge: { ids: ["s.docs.a.?"] }`,
		"fs.read: { in: /w }", `net.get: { hosts: ["*"] }`,
	}
	complete, shown := 0, 0
	for range 250 {
		text, used := "server: s\ntools: {}\nresources:\n", map[string]bool{}
		for range 3 {
			if entry := pick(entries...); !used[entry] {
				used[entry] = true
				text += fmt.Sprintf("  %s: %s\n", entry, pick(needs...))
			}
		}
		m, _, err := mapping.Parse("m.yml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		held := []string{pick(grants...), pick(grants...), pick(grants...)}[r.IntN(3):]
		o := outlookOn{gateOf(t, map[string]string{"a.md": record(held...)}), &gate.Resources{Name: "s", Item: "s", Mapping: m, View: capability.View{Cwd: "/w"}}}
		for range 8 {
			template := pick("docs://", "docs://", "DOCS://", "notes://", "{x}://", "https://a.com/", "d{x}://") + pick("{x}", "{+x}", "a{?q}", "a/{x}", "?q={x}", "{x*}")
			template += pick("", "", "/", "b", ".md") + pick("", "{x}", "{#f}", "{/p}", "{.e}", "{&z}")
			c, s, wrong := o.wrong(template)
			if complete, shown = complete+c, shown+s; wrong != "" {
				t.Errorf("%s\n%s%s", wrong, text, strings.Join(held, "\n"))
			}
		}
	}
	if complete < 100 || shown < 1000 {
		t.Errorf("only %d templates may be completed, and %d are shown: the test has lost its teeth", complete, shown)
	}
}

// outlookOn is what an agent has of the resources of one server.
type outlookOn struct {
	*gate.Gate
	of *gate.Resources
}

// wrong says what is not as it should be with a template, and whether it may be completed and is shown.
func (o outlookOn) wrong(template string) (complete, shown int, wrong string) {
	if o.TemplateVerdict("agents/a", o.of, template).Decision.Allowed() {
		complete = 1
	}
	if o.Template("agents/a", o.of, template) {
		shown = 1
	}
	for _, uri := range expanded(template) {
		v := o.Resource("agents/a", o.of, uri)
		switch allowed := v.Decision.Allowed(); {
		case v.Refused == nil && !allowed && complete > 0:
			return complete, shown, fmt.Sprintf("%s may be completed, and %s not read: %s", template, uri, v.Decision)
		case allowed && shown == 0:
			return complete, shown, fmt.Sprintf("%s is not shown, and %s may be read", template, uri)
		}
	}
	return complete, shown, ""
}
