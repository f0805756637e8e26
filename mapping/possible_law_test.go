package mapping_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"capgate/capability"
	"capgate/mapping"
	"capgate/wire"
)

func pick[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

// The alphabet of the law. The values of a kind hold one of everything that the
// grants of the kind tell apart.
var (
	lawGrants = map[string][]string{
		"fs": {
			"fs.read{in=/w}", "fs.read{in=/w,paths=[a]}", "fs.read{in=/w,paths=[\"a/*\",b]}", "fs.read{in=/w/a}", "fs.write{in=/w,paths=[\"*.go\",\"**/x\"]}",
			"fs.write{in=/w,paths=[a/b]}", "fs.write{in=/w/a,paths=[\"**\"]}", "fs.delete{in=/w/a,paths=[\"*\",\"*/**\"]}", "fs.delete{in=/w,paths=[b,\"{a,b}/x\"]}", "fs.write{in=/w}",
		},
		"net": {
			"net.get{hosts=[a.com]}", "net.get{hosts=[\"*.b.com\",a.com]}", "net.post{hosts=[\"*.com\"]}", "net.get{hosts=[\"*\"]}", "net.put{hosts=[\"10.0.0.0/8\"]}",
			"net.post{hosts=[b.com,\"10.0.0.0/16:80\"]}", "net.delete{hosts=[\"*:8443\"]}", "net.get{hosts=[\"*:8443\"]}",
		},
		"proc": {
			"proc.exec{in=/w,cmds=[ls]}", "proc.exec{in=/w/a,cmds=[rg,git]}", "proc.exec{in=/w,patterns=[git status]}", "proc.exec{in=/w/a,patterns=[\"git log *\"]}",
			"proc.exec{in=/w,patterns=[\"rg **\",\"git -c x\"]}", "proc.eval{in=/w/a}", "proc.eval{in=/w}", "proc.exec{in=/x}",
		},
		"key": {
			"memory.write{keys=[k]}", "memory.write{keys=[\"k*\"]}", "memory.read{keys=[\"*k\",j]}", "memory.read{keys=[\"*\"]}", "resource.read{uris=[\"k?\",kk]}",
			"secret.use{names=[k]}",
		},
		"uri": {
			"resource.read{uris=[\"db://k*\"]}", "resource.read{uris=[\"*://x\",kk]}", "fs.read{in=/w,paths=[a,b]}", "net.get{hosts=[a.com]}",
			"net.get{hosts=[\"*.b.com\"]}", "memory.read{keys=[\"*k\",\"f*\"]}", "memory.read{keys=[\"https://a.com/\",\"file:///w/a\"]}",
		},
		"records": {
			"records.update{classes=[note]}", "records.update{paths=[\"a/*\"]}", "records.update{classes=[\"n*\"],paths=[a/b,\"agents/*\"]}", "agent.update{ids=[a]}", "agent.update",
			"records.update", "records.update{classes=[agent]}",
		},
		"tool": {
			"tool.invoke{tools=[s.t]}", "tool.invoke{tools=[\"s.*\"],args={p=[k,j]}}", "tool.invoke{tools=[s.t],args={q.r=[k]}}", "tool.invoke{tools=[\"*\"],args={p=[k],o.p=[\"*\"]}}",
			"tool.invoke{tools=[s.u]}", "rye.execute.tool{ids=[s.t]}", "tool.invoke{tools=[\"*\"],args={Accept=[x],q=[\"k*\"]}}",
		},
	}
	lawRoles = map[string][]any{
		"fs": {"fs.read", "fs.write", "fs.delete", long{"verb": "fs.read", "tree": true}, long{"verb": "fs.write", "tree": true}, long{"verb": "fs.read", "glob": true}},
		"net": {
			"net.get", "net.post", long{"verb": "net", "method": "m"}, long{"verb": "net", "method": "m", "default": "POST"}, long{"verb": "net.put", "as": "host"},
		},
		"proc": {"proc.exec", "proc.exec", long{"in": "proc.exec"}, "proc.eval", long{"in": "proc.eval"}, long{"argv0": "proc.exec"}, long{"argv": "proc.exec"}, long{"env": "proc.exec"}},
		"key":  {"memory.write", "memory.read", "secret"},
		"uri":  {"resource.read", "resource.read", "resource.read", "memory.read"},
		"records": {
			long{"verb": "records.update", "dim": "class"}, long{"verb": "records.update", "dim": "path"}, long{"verb": "agent.update", "dim": "id"},
		},
		"tool": {"tool.invoke", "free", "free", long{"headers": []string{"Accept"}}},
	}
	lawValues = map[string][]any{
		"fs": {
			"/w", "a", "/w/a", "/w/b", "/w/x", "/w/x.go", "/w/a/a", "/w/a/b", "/w/a/x", "/w/a/x.go", "/w/b/x", "/w/a/b/x", "/w/a/a/x",
			"/w/a/b/x.go", "/x", "./b",
		},
		"net": {
			"https://a.com/", "https://b.com/", "https://x.b.com/", "https://x.com/", "http://10.0.0.0/", "http://10.0.0.0:8443/", "https://example.com/", "https://example.com:8443/",
			"https://a.com:8443/", "https://x.b.com:8443/", "http://10.0.0.0:80/", "10.0.0.0", "10.0.0.0:80", "a.com", "https://b.com:8443/",
		},
		"proc": {
			"ls", "git status", "git log x", "rg", "x", "git", "rg x",
			[]string{"ls"},
			[]string{"git", "status"},
			[]string{"git", "log", "x"},
			[]string{"rg"},
			[]string{"git"},
			[]string{"git", "-c", "x"},
			[]string{},
			[]string{"status"},
			[]string{"log", "x"},
			[]string{"x"},
			[]string{"-c", "x"},
			"/w", "/w/a", "/x",
			long{},
		},
		"key": {"k", "kk", "j", "kx", "x", "xk", "f", "https://a.com/", "file:///w/a"},
		"uri": {
			"kk", "db://k", "db://kk", "db://k@x", "db://x", "db://k://x", "DB://k", "x://x", "k", "j", "f", "file:/w/a", "file:///w", "file:///w/a", "file:///w/b", "file:///w/x", "file:///w/a/a",
			"file:///w/a/b", "file:///w/a/x", "file:///w/a/x.go", "file:///w/b/x", "file:///x", "https://a.com/", "https://b.com/", "https://x.b.com/", "https://x.com/",
			"http://10.0.0.0/", "http://10.0.0.0:8443/", "https://example.com/", "https://example.com:8443/", "https://a.com:8443/", "https://x.b.com:8443/", "http://10.0.0.0:80/",
		},
		"records": {"note", "n", "a/b", "a/x", "agents/a", "agent", "agents/x", "a", "x", "agents/b"},
		"tool":    {"s.t", "s.u", "k", "j", "x", long{"r": "k"}, long{"Accept": "x"}, []any{"k", long{"r": "k"}}},
	}
	lawMethods  = []any{"GET", "POST", "put", "DELETE", "PATCH", "k", "/w/a"}
	lawRequires = []any{"fs.read{path=a}", "net.get{host=a.com}", "memory.write{key=k}", "tool.invoke{tool=s.t}", "memory.read"}
)

type long = map[string]any

// puzzle is a random tool, with the arguments that are tried one by one.
type puzzle struct {
	tool   map[string]any
	values map[string][]any // by argument, without those that are absent
}

func lawPuzzle(r *rand.Rand, kinds []string) puzzle {
	p := puzzle{tool: map[string]any{}, values: map[string][]any{}}
	names := []string{"p", "q", "o.p", "m"}
	for i := range 1 + r.IntN(3) {
		kind := pick(r, kinds)
		p.argument(r, names[i], kind)
	}
	if r.IntN(5) == 0 {
		p.tool["requires"] = []any{pick(r, lawRequires)}
	}
	if r.IntN(8) == 0 {
		p.tool["additional"] = "free"
		p.anything()
	}
	for _, name := range []string{"m", "o.m"} {
		object, _, _ := strings.Cut(name, "m")
		if !p.names(object) {
			continue
		}
		p.values[name] = append(p.values[name], lawMethods...)
		if _, ok := p.tool[name]; !ok && r.IntN(4) == 0 {
			p.tool[name] = pick(r, []any{"memory.write", "fs.read", "free"})
		}
	}
	return p
}

// names reports whether an argument beside those of an object names the method of
// one of them.
func (p puzzle) names(object string) bool {
	for name, role := range p.tool {
		text, err := json.Marshal(role)
		if err == nil && strings.HasPrefix(name, "o.") == (object == "o.") && strings.Contains(string(text), `"method"`) {
			return true
		}
	}
	return false
}

// anything adds what a tool that takes all arguments can be given.
func (p puzzle) anything() {
	for name, value := range map[string]any{"p": "k", "q": "k", "q.r": "k", "Accept": "x"} {
		p.values[name] = append(p.values[name], value)
	}
	if _, ok := p.values["o.p"]; !ok {
		p.values["o.p"] = []any{"k"}
	}
}

func (p puzzle) argument(r *rand.Rand, name, kind string) {
	role := p.role(r, kind)
	values := slices.Clone(lawValues[kind])
	if r.IntN(4) == 0 {
		second := kind
		if r.IntN(6) == 0 {
			second = pick(r, []string{"fs", "key", "net"})
			values = append(values, lawValues[second]...)
		}
		if two := p.role(r, second); role != any("free") && two != any("free") {
			role = []any{role, two}
		}
	}
	switch r.IntN(5) {
	case 0:
		p.tool[name+"[*]"] = role
		values = arrays(values)
	case 1:
		p.tool[name] = role
		p.tool[name+"[*]"] = p.role(r, kind)
		values = append(values, arrays(values)...)
	default:
		p.tool[name] = role
	}
	p.values[name] = values
}

func arrays(values []any) []any {
	list := []any{[]any{nil}}
	for _, v := range values {
		list = append(list, []any{v})
	}
	return list
}

func (p puzzle) role(r *rand.Rand, kind string) any {
	role := pick(r, lawRoles[kind])
	if m, ok := role.(string); ok && strings.Contains(m, ".") {
		role = long{"verb": m}
	}
	m, ok := role.(long)
	if !ok || m["method"] != nil {
		return role
	}
	m = cloneLong(m)
	switch r.IntN(4) {
	case 0:
		m["optional"] = true
	case 1:
		m["default"] = pick(r, lawValues[kind])
	}
	return m
}

func cloneLong(m long) long {
	c := long{}
	for k, v := range m {
		c[k] = v
	}
	return c
}

// brute tries all arguments.
func (p puzzle) brute(names []string, args map[string]any, allowed func(args map[string]any) bool) bool {
	if len(names) == 0 {
		return allowed(args)
	}
	if p.brute(names[1:], args, allowed) {
		return true
	}
	for _, v := range p.values[names[0]] {
		with := cloneLong(args)
		if object, member, ok := strings.Cut(names[0], "."); ok {
			inner, _ := with[object].(long)
			inner = cloneLong(inner)
			inner[member] = v
			with[object] = inner
		} else {
			with[names[0]] = v
		}
		if p.brute(names[1:], with, allowed) {
			return true
		}
	}
	return false
}

func lawSet(t testing.TB, grants []string) *capability.Set {
	t.Helper()
	var specs []capability.Spec
	for _, text := range grants {
		spec, err := capability.ParseSpec(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		specs = append(specs, spec)
	}
	set, _ := capability.Compile(specs, capability.Options{})
	return set
}

// allowed decides one call as the gate does.
func (c *lawCase) allowed(args []byte) bool {
	doc, err := wire.Parse(args)
	if err != nil || slices.ContainsFunc(c.tool.Verbs(), func(choice []capability.Verb) bool { return !slices.ContainsFunc(choice, c.chain.Holds) }) {
		return false
	}
	c.call.Args = doc.Root()
	needs, err := c.tool.Require(c.call)
	if err != nil || len(needs) == 0 {
		return false
	}
	name, _ := capability.Keyed("tool.invoke", capability.Word{Dim: "tool", Value: c.call.Name})
	for _, need := range append(needs, mapping.Need{Requirement: name}) {
		q := need.Requirement
		if q != name && !c.chain.Decide(q).Allowed() {
			return false
		}
		if q.Verb() == "tool.invoke" && slices.ContainsFunc(c.ceilings, func(l capability.Link) bool { return !l.Set.Decide(q).Allowed() }) {
			return false
		}
	}
	return true
}

// lawCase is one case of the law.
type lawCase struct {
	puzzle
	text            []byte
	tool            *mapping.Tool
	call            mapping.Call
	held            [][]string
	chain, ceilings capability.Chain
}

func (c *lawCase) link(t testing.TB, grants []string) capability.Link {
	t.Helper()
	c.held = append(c.held, grants)
	return capability.Link{Set: lawSet(t, grants)}
}

// newLawCase makes a case, and reports false if it is none: the tool cannot be
// written, or has too many calls.
func newLawCase(t testing.TB, r *rand.Rand) (c lawCase, ok bool) {
	t.Helper()
	kinds := []string{pick(r, []string{"fs", "fs", "net", "proc", "proc", "key", "uri", "uri", "records", "tool"})}
	if r.IntN(2) == 0 {
		kinds = append(kinds, pick(r, []string{"fs", "net", "key", "tool"}))
	}
	c.puzzle = lawPuzzle(r, kinds)
	c.text, _ = json.Marshal(map[string]any{"server": "s", "tools": map[string]any{"t": c.puzzle.tool}})
	m, _, err := mapping.Parse("m", c.text)
	if err != nil {
		return c, false
	}
	c.tool = m.Tool("t")
	if r.IntN(12) == 0 {
		c.tool = nil
		c.anything()
	}
	kinds = append(kinds, "tool", "fs", "net")
	for i := range pick(r, []int{1, 1, 2, 3}) {
		var grants []string
		if i > 0 && r.IntN(2) == 0 {
			grants = slices.Clone(c.held[0]) // as a parent holds what its child does
		}
		for range 2 + r.IntN(7) {
			grants = append(grants, pick(r, lawGrants[pick(r, kinds)]))
		}
		c.chain = append(c.chain, c.link(t, grants))
	}
	if r.IntN(4) == 0 {
		c.ceilings = append(c.ceilings, c.link(t, []string{"tool.invoke{tools=[" + pick(r, []string{"s.t", "\"s.*\"", "s.u"}) + "]}"}))
	}
	c.call = mapping.Call{Name: "s.t", View: capability.View{Cwd: pick(r, []string{"/w", "/w", "/w/a", "/x", ""}), Home: "/h"}}
	calls := 1
	for _, values := range c.values {
		calls *= 1 + len(values)
	}
	const most = 1200
	return c, calls <= most
}

// checkPossible is the law: a tool is shown exactly when some call of it is
// allowed.
func checkPossible(t testing.TB, seed uint64) (possible, unknown bool) {
	t.Helper()
	c, ok := newLawCase(t, rand.New(rand.NewPCG(seed, 3)))
	if !ok {
		return false, false
	}
	var called []byte
	want := c.brute(slices.Sorted(maps.Keys(c.values)), long{}, func(args map[string]any) bool {
		data, err := json.Marshal(args)
		called = data
		return err == nil && c.allowed(data)
	})
	args, got := c.tool.Possible(c.call, c.chain, c.ceilings)
	why := ""
	switch {
	case got && args != "" && !c.allowed([]byte(args)):
		why = args + " is not allowed"
	case want && !got:
		why = "hidden, and callable with " + string(called)
	case got && args != "" && !want:
		why = "the alphabet lacks " + args
	}
	if why != "" {
		t.Fatalf("seed %d: %s\nfor %v from %q: %s", seed, c.text, c.held, c.call.View.Cwd, why)
	}
	return got, got && !want
}

func TestPossibleLaw(t *testing.T) {
	possible, unknown := 0, 0
	const seeds = 3000
	for seed := range uint64(seeds) {
		p, u := checkPossible(t, seed)
		if p {
			possible++
		}
		if u {
			unknown++
		}
	}
	t.Logf("%d of %d possible, %d shown although nothing was found", possible, seeds, unknown)
	if most := seeds / 400; unknown > most {
		t.Errorf("%d tools were shown of which no call is allowed, at most %d are meant", unknown, most)
	}
}

func FuzzPossibleLaw(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { checkPossible(t, seed) })
}
