package proxy_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"capgate/capability"
	"capgate/mapping"
	"capgate/proxy"
)

// listedKind is what one resource has: grants, roles, and the values that tell
// the grants apart.
type listedKind struct{ grants, roles, values []string }

func listedKinds() map[string]listedKind {
	return map[string]listedKind{
		"fs": {
			[]string{
				`fs.read: { in: /w }`, `fs.read: { in: /w, paths: [a] }`, `fs.read: { in: /w/a }`, `fs.write: { in: /w, paths: ["*.go"] }`,
				`fs.write: { in: /w/a, paths: ["**"] }`, `fs.write: { in: /w, paths: [b] }`, `fs.delete: { in: /w, paths: ["a/*"] }`,
			},
			[]string{`fs.read`, `fs.write`, `fs.delete`, `[fs.read, fs.write]`, `[fs.read, fs.delete]`, `{verb: fs.read, tree: true}`},
			[]string{`"/w"`, `"a"`, `"/w/b"`, `"/w/a/x"`, `"/w/x.go"`, `"/w/a/x.go"`, `"/w/a/b/x"`},
		},
		"net": {
			[]string{
				`net.get: { hosts: [a.com] }`, `net.get: { hosts: ["*.b.com"] }`, `net.post: { hosts: [b.com] }`, `net.delete: { hosts: ["*.b.com", a.com] }`,
				`net.get: { hosts: ["10.0.0.0/8"] }`,
			},
			[]string{`net.get`, `net.post`, `{verb: net, method: m}`, `{verb: net, method: m, default: POST}`, `[net.get, net.delete]`},
			[]string{`"https://a.com/"`, `"https://b.com/"`, `"https://x.b.com/"`, `"http://10.0.0.1/"`},
		},
		"key": {
			[]string{`memory.write: { keys: [k] }`, `memory.read: { keys: ["k*"] }`, `memory.read: { keys: ["*x"] }`, `memory.write: { keys: [j] }`},
			[]string{`memory.write`, `memory.read`, `[memory.write, memory.read]`},
			[]string{`"k"`, `"kx"`, `"j"`, `"x"`},
		},
	}
}

// listedTool is a random tool: its mapping, and the arguments that are tried.
type listedTool struct {
	roles  map[string]string
	values map[string][]string
}

func pickOne[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

func newListedTool(r *rand.Rand) listedTool {
	x := listedTool{map[string]string{}, map[string][]string{}}
	kinds := listedKinds()
	for _, name := range []string{"p", "q", "o.p"}[:1+r.IntN(3)] {
		k := kinds[pickOne(r, []string{"fs", "fs", "net", "key"})]
		role, at, values := pickOne(r, k.roles), name, slices.Clone(k.values)
		if r.IntN(4) == 0 {
			at += "[*]"
			values = []string{`[]`}
			for _, v := range k.values {
				values = append(values, `[`+v+`]`, `[`+v+`,`+k.values[0]+`]`)
			}
		}
		if !strings.HasPrefix(role, "[") && !strings.Contains(role, "method") && r.IntN(3) == 0 {
			role = strings.TrimSuffix(strings.TrimPrefix(role, "{"), "}")
			if !strings.Contains(role, "verb") {
				role = "verb: " + role
			}
			role = `{` + role + `, optional: true}`
		}
		if strings.Contains(role, "method") {
			if strings.HasPrefix(name, "o.") {
				x.values["o.m"] = []string{`"GET"`, `"POST"`, `"delete"`}
			} else {
				x.values["m"] = []string{`"GET"`, `"POST"`, `"delete"`}
			}
		}
		x.roles[at], x.values[name] = role, values
	}
	if r.IntN(5) == 0 {
		x.roles["requires"] = pickOne(r, []string{`["fs.read{path=a}"]`, `["net.get{host=a.com}"]`, `["memory.write{key=k}"]`, `["memory.read{key=kx}"]`})
	}
	if r.IntN(3) == 0 {
		x.roles["text"], x.values["text"] = "free", []string{`""`}
	}
	return x
}

// calls is how many there are of the tool.
func (x listedTool) calls() int {
	n := 1
	for _, values := range x.values {
		n *= 1 + len(values)
	}
	return n
}

// callable reports whether one of all calls of the tool is allowed.
func (x listedTool) callable(try func(args string) bool) (string, bool) {
	names := slices.Sorted(maps.Keys(x.values))
	var all func(names []string, own, inner string) (string, bool)
	all = func(names []string, own, inner string) (string, bool) {
		if len(names) == 0 {
			args := own
			if inner != "" {
				args = strings.TrimPrefix(args+`,"o":{`+inner[1:]+`}`, ",")
			}
			args = `{` + strings.TrimPrefix(args, ",") + `}`
			return args, try(args)
		}
		if args, ok := all(names[1:], own, inner); ok {
			return args, true
		}
		for _, v := range x.values[names[0]] {
			with, within := own, inner
			if name, ok := strings.CutPrefix(names[0], "o."); ok {
				within += `,"` + name + `":` + v
			} else {
				with += `,"` + names[0] + `":` + v
			}
			if args, ok := all(names[1:], with, within); ok {
				return args, true
			}
		}
		return "", false
	}
	return all(names, "", "")
}

// listedRecord is a random record.
func listedRecord(r *rand.Rand, parent string) string {
	var b strings.Builder
	b.WriteString("---\nclass: agent\n" + parent + "capabilities:\n")
	kinds := listedKinds()
	for range 2 + r.IntN(6) {
		fmt.Fprintf(&b, "  - %s\n", pickOne(r, kinds[pickOne(r, []string{"fs", "fs", "net", "key"})].grants))
	}
	if r.IntN(2) == 0 {
		fmt.Fprintf(&b, "  - %s\n", pickOne(r, []string{
			`tool.invoke: { tools: ["s.u"] }`, `tool.invoke: { tools: ["s.*"], args: { p: [k] } }`, `tool.invoke: { tools: ["other.*"] }`, `tool.invoke: { tools: [s.t0] }`,
		}))
	}
	b.WriteString("---\n")
	return b.String()
}

// listedCase is a gateway before one server whose tools are random, for an agent
// whose record is.
type listedCase struct {
	w     *world
	tools map[string]listedTool
	text  string // of records and mapping, for who reads of a failure
}

func newListedCase(t *testing.T, seed uint64) listedCase {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 7))
	c := listedCase{tools: map[string]listedTool{}}
	lines := []string{"server: s", "tools:"}
	for i := range 4 {
		x := newListedTool(r)
		const most = 500
		if x.calls() > most {
			continue
		}
		name := fmt.Sprint("t", i)
		var roles []string
		for _, at := range slices.Sorted(maps.Keys(x.roles)) {
			roles = append(roles, fmt.Sprintf("%q: %s", at, x.roles[at]))
		}
		c.tools[name] = x
		lines = append(lines, "  "+name+": { "+strings.Join(roles, ", ")+" }")
	}
	c.tools["u"] = listedTool{nil, map[string][]string{"p": {`"k"`, `"j"`}}} // which no mapping covers
	yml := strings.Join(lines, "\n") + "\n"
	if len(c.tools) == 1 {
		yml = "server: s\ntools: {}\n"
	}
	m, _, err := mapping.Parse("s.yml", []byte(yml))
	if err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, yml)
	}
	records := map[string]string{}
	parent := ""
	if r.IntN(3) == 0 {
		parent = "parent: lead\n"
		records["lead"] = listedRecord(r, "")
	}
	records["scout"] = listedRecord(r, parent)
	c.text = records["lead"] + records["scout"] + yml
	var defs []string
	for name := range c.tools {
		defs = append(defs, tool(name))
	}
	s := &scripted{lists: map[string]string{"tools/list": `"tools":[` + strings.Join(defs, ",") + `]`}, quiet: true}
	u := &proxy.Upstream{Name: "s", Prefix: "s", Mapping: m, View: capability.View{Cwd: "/w"}, Pins: proxy.Off, Open: s.open}
	c.w = startWith(t, proxy.Options{Limits: proxy.Limits{Calls: 1 << 30}}, records, u)
	return c
}

// ask makes a request of the stateless era without a network in between.
func (c listedCase) ask(method, name, params string) string {
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
	r.Header = http.Header{
		"Authorization": {"Bearer " + c.w.tokens["scout"]}, "Content-Type": {"application/json"}, "Accept": {"application/json"},
		"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {method},
	}
	if name != "" {
		r.Header["Mcp-Name"] = []string{name}
	}
	w := httptest.NewRecorder()
	c.w.server.ServeHTTP(w, r)
	return w.Body.String()
}

// TestListing: a tool is shown exactly when some call of it is allowed.
func TestListing(t *testing.T) {
	const seeds = 300
	tools, shown, idle := 0, 0, 0
	for seed := range uint64(seeds) {
		c := newListedCase(t, seed)
		list := c.ask("tools/list", "", "")
		for name, x := range c.tools {
			args, callable := x.callable(func(args string) bool {
				answer := c.ask("tools/call", "s__"+name, `"name":"s__`+name+`","arguments":`+args+`,`)
				if !strings.Contains(answer, `"result":`) {
					t.Fatalf("seed %d: %s %s: %s", seed, name, args, answer)
				}
				return !strings.Contains(answer, `"capgate/denial"`)
			})
			visible := strings.Contains(list, `"s__`+name+`"`)
			tools++
			if visible {
				shown++
			}
			switch {
			case callable && !visible:
				t.Errorf("seed %d: %s is hidden, and callable with %s\n%s", seed, name, args, c.text)
			case visible && !callable:
				idle++
				t.Logf("seed %d: %s is shown, and no call of it is allowed\n%s", seed, name, c.text)
			}
		}
	}
	t.Logf("%d tools, %d shown, %d of them for nothing", tools, shown, idle)
	if most := tools / 200; idle > most {
		t.Errorf("%d of %d tools are shown of which no call is allowed, at most %d are meant", idle, tools, most)
	}
}
