package gate_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"capgate/agents"

	"capgate/capability"
	"capgate/gate"
	"capgate/mapping"
)

// skill is what a skill requires, in compact form.
type skill []string

func (s skill) Requires() (needs []capability.Spec, ok bool) {
	for _, text := range s {
		if text == "?" {
			return nil, false
		}
		spec, err := capability.ParseSpec(text)
		if err != nil {
			panic(err)
		}
		needs = append(needs, spec)
	}
	return needs, true
}

// TestSkill decides skills for the family of the other tests and some more.
func TestSkill(t *testing.T) {
	all := map[string]string{
		"rooted.md": `---
class: agent
sandbox: /w/p
capabilities:
  - fs.read: { paths: [docs, src] }
  - proc.exec: { cmds: [git] }
  - proc.exec: { in: /w/p/sub, cmds: [jq] }
  - net.get: { hosts: [github.com] }
  - agent.create: { id: ["x*"] }
---`,
		"loose.md": "---\nclass: agent\ncapabilities:\n  - fs.write: { in: /w }\n  - fs.read: { in: /w }\n  - proc.exec: { in: /w/agents, cmds: [rg] }\n  - proc.exec: { in: /w, cmds: [jq] }\n  - proc.eval: { in: /w/x }\n  - resource.read: { uris: [\"doc://*\"] }\n---\n",
		"wide.md":  "---\nclass: agent\nsandbox: /w/p\naccess: rw\ncapabilities:\n  - net.get: { hosts: [\"*\"] }\n---\n",
	}
	for name, text := range records {
		all[name] = text
	}
	g := gateOf(t, all)
	root := capability.Root{Dir: "/w/agents", Real: "/w/agents"}
	g.Fence = capability.NewFence(root)
	wide := *g
	wide.Wide = true
	for _, tt := range []struct {
		agent     string
		skill     skill
		some, all string // what is missing, in each mode; "" if the skill is satisfied
	}{
		{"scout", skill{}, "", ""},
		{"scout", skill{"?"}, "nobody", "nobody"},
		{"scout", skill{"net.get{hosts=[api.github.com]}"}, "", ""},
		{"scout", skill{"net.get{hosts=[github.com]}"}, "", ""},
		{"scout", skill{"net.get{hosts=[gitlab.com]}"}, "net.get", "net.get"},             // the parent has not got it
		{"scout", skill{"net.get{hosts=[\"*\"]}"}, "net.get", "net.get"},                  // nor this
		{"scout", skill{"net.get"}, "", "net.get"},                                        // some use
		{"scout", skill{"net.post"}, "net.post", "net.post"},                              // not held
		{"scout", skill{"net.get", "net.post"}, "net.post", "net.get net.post"},           // all of them count
		{"scout", skill{"tool.invoke{tools=[files.read]}"}, "", ""},                       //
		{"scout", skill{"tool.invoke{tools=[other.tool]}"}, "tool.invoke", "tool.invoke"}, // outside the toolset
		{"scout", skill{"tool.invoke{tools=[files.*]}"}, "", ""},                          //
		{"scout", skill{"tool.invoke{tools=[deploy.*]}"}, "tool.invoke", "tool.invoke"},   // only one of them is held
		{"rooted", skill{"fs.read{paths=[docs/**]}"}, "", ""},                             // relative to the root
		{"rooted", skill{"fs.read{paths=[\"**/docs\"]}"}, "fs.read", "fs.read"},           // at any depth
		{"rooted", skill{"fs.read{in=/,paths=[w/p/src/a.go]}"}, "", ""},                   //
		{"rooted", skill{"fs.read{in=/,paths=[etc/passwd]}"}, "fs.read", "fs.read"},       // no clamp makes it less
		{"rooted", skill{"fs.read"}, "", "fs.read"},                                       //
		{"rooted", skill{"proc.exec{cmds=[git]}"}, "", ""},                                //
		{"rooted", skill{"proc.exec{cmds=[jq]}"}, "", "proc.exec"},                        // in a folder below the root
		{"rooted", skill{"proc.exec{patterns=[\"git log **\"]}"}, "", ""},                 //
		{"rooted", skill{"proc.exec{cmds=[rm]}"}, "proc.exec", "proc.exec"},               //
		{"rooted", skill{"proc.eval"}, "proc.eval", "proc.eval"},                          //
		{"loose", skill{"fs.write{in=/w,paths=[agents/x.md]}"}, "fs.write", "fs.write"},   // behind the fence
		{"loose", skill{"fs.write{in=/w,paths=[agent/x.md]}"}, "", ""},
		{"loose", skill{"fs.read{in=/,paths=[w]}"}, "fs.read", "fs.read"}, // so is a part of this
		{"loose", skill{"fs.read{in=/,paths=[w/src]}"}, "", ""},
		{"loose", skill{"proc.exec{cmds=[rg]}"}, "proc.exec", "proc.exec"}, // only behind the fence
		{"loose", skill{"proc.exec{cmds=[jq]}"}, "", "proc.exec"},
		{"loose", skill{"proc.eval"}, "", "proc.eval"},
		{"loose", skill{"resource.read"}, "", "resource.read"},
		{"loose", skill{"prompt.get"}, "prompt.get", "prompt.get"},
		{"rooted", skill{"agent.create{id=[xy]}"}, "", ""},                                     //
		{"rooted", skill{"agent.create"}, "", "agent.create"},                                  //
		{"rooted", skill{"agent.create{id=[y]}"}, "agent.create", "agent.create"},              //
		{"wide", skill{"fs.read", "fs.write", "net.get"}, "", ""},                              //
		{"wide", skill{"fs.read{paths=[a]}"}, "", ""},                                          //
		{"wide", skill{"fs.delete"}, "fs.delete", "fs.delete"},                                 //
		{"broken", skill{}, "invalid_config", "invalid_config"},                                //
		{"nobody", skill{}, "unauthenticated", "unauthenticated"},                              //
		{"orphan", skill{"records.read"}, "records.read", "records.read"},                      // the parent is missing
		{"lead", skill{"fs.read{paths=[a]}"}, "fs.read", "fs.read"},                            // without a root a path is nowhere
		{"rooted", skill{"provider.web_search"}, "provider.web_search", "provider.web_search"}, //
	} {
		for mode, gate := range map[string]*gate.Gate{"some": g, "all": &wide} {
			want := map[string]string{"some": tt.some, "all": tt.all}[mode]
			got := gate.Skill(tt.agent, tt.skill)
			if text := missing(got); text != want {
				t.Errorf("%s, %v, %s: missing %q, want %q (%+v)", tt.agent, tt.skill, mode, text, want, got)
			}
			if got.Satisfied != (want == "") {
				t.Errorf("%s, %v, %s: satisfied is %v", tt.agent, tt.skill, mode, got.Satisfied)
			}
		}
	}
}

// TestSkillOfConfiguredRoot: what a skill needs hangs from where grants hang from, which
// is the configuration's root for an agent without one of its own.
func TestSkillOfConfiguredRoot(t *testing.T) {
	dir := t.TempDir()
	record := "---\nclass: agent\ncapabilities:\n  - fs.read: { paths: [docs] }\n---\n"
	if err := os.WriteFile(filepath.Join(dir, "scout.md"), []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	root := capability.Root{Dir: "/w", Real: "/w"}
	roster, err := agents.Load(agents.Options{Config: root, View: capability.View{Cwd: "/w"}}, dir)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate.Gate{Roster: roster, Fence: capability.NewFence()}
	for need, want := range map[string]bool{"fs.read{paths=[docs/**]}": true, "fs.read{paths=[src]}": false, "fs.read": true} {
		if got := g.Skill("scout", skill{need}); got.Satisfied != want {
			t.Errorf("%s: satisfied is %v (%+v)", need, got.Satisfied, got)
		}
	}
}

// missing writes the verbs of what is missing, or why nothing was compared.
func missing(s gate.Satisfaction) string {
	switch {
	case s.Satisfied:
		return ""
	case len(s.Missing) == 0 && s.Code == capability.CapabilityAbsent:
		return "nobody"
	case len(s.Missing) == 0:
		return string(s.Code)
	}
	var verbs []string
	for _, m := range s.Missing {
		verbs = append(verbs, m.Need.Verb)
	}
	return strings.Join(verbs, " ")
}

// TestSkillTool: a skill that names a tool needs what calls of the tool need.
func TestSkillTool(t *testing.T) {
	g := gateOf(t, map[string]string{
		"reader.md": "---\nclass: agent\ncapabilities:\n  - fs.read: { in: /w }\n---\n",
		"caller.md": "---\nclass: agent\ncapabilities:\n  - tool.invoke: { tools: [\"files.*\"] }\n---\n",
	})
	m, _, err := mapping.Parse("files.yml", []byte("server: files\ntools:\n  read: { path: fs.read }\n"))
	if err != nil {
		t.Fatal(err)
	}
	g.Tools = func(name string) *gate.Tool {
		own, ok := strings.CutPrefix(name, "files.")
		if !ok {
			return nil
		}
		return &gate.Tool{Name: name, Mapping: m.Tool(own), View: capability.View{Cwd: "/w"}}
	}
	for _, tt := range []struct {
		agent, tool string
		want        bool
	}{
		{"reader", "files.read", true}, // its mapping says what calls need
		{"caller", "files.read", false},
		{"reader", "files.other", false}, // no mapping: by its name
		{"caller", "files.other", true},
		{"caller", "files.*", true},
		{"reader", "files.*", false},
		{"caller", "else.tool", false},
	} {
		if got := g.Skill(tt.agent, skill{"tool.invoke{tools=[" + tt.tool + "]}"}); got.Satisfied != tt.want {
			t.Errorf("%s, %s: %v, want %v (%+v)", tt.agent, tt.tool, got.Satisfied, tt.want, got)
		}
	}
}

// TestSkillWithin: what narrows the records narrows the skills.
func TestSkillWithin(t *testing.T) {
	record := func(hosts string) map[string]string {
		return map[string]string{"scout.md": "---\nclass: agent\ncapabilities:\n  - net.get: { hosts: [" + hosts + "] }\n---\n"}
	}
	before, now := gateOf(t, record("github.com")), gateOf(t, record("github.com, gitlab.com"))
	now.Within = before
	for host, want := range map[string]bool{"github.com": true, "gitlab.com": false} {
		if got := now.Skill("scout", skill{"net.get{hosts=[" + host + "]}"}); got.Satisfied != want {
			t.Errorf("%s: %v", host, got.Satisfied)
		}
	}
}

// TestSkillNeverWidens: what an agent may do is the same before and after every skill
// was asked about (R-EGG-35).
func TestSkillNeverWidens(t *testing.T) {
	g, view := newGate(t)
	asked := []string{
		"net.get{url=https://api.github.com/}", "net.get{url=https://gitlab.com/}", "fs.read{path=src/a.go}", "fs.read{path=agents/scout.md}",
		"fs.write{path=src/a.go}", "tool.invoke{tool=files.read}", "tool.invoke{tool=other.tool}", "proc.eval{command=id}",
	}
	decide := func() (all []gate.Verdict) {
		for _, agent := range []string{"scout", "lead", "broken", "nobody"} {
			for _, text := range asked {
				need, err := capability.ParseRequirement(text, view)
				if err != nil {
					t.Fatal(err)
				}
				v := g.Require(agent, need)
				v.Needs = nil // pointers
				all = append(all, v)
			}
		}
		return all
	}
	before := decide()
	for _, agent := range []string{"scout", "lead", "broken", "nobody"} {
		for _, s := range []skill{{"net.get{hosts=[gitlab.com]}"}, {"proc.eval"}, {"tool.invoke{tools=[other.tool]}"}, {"fs.read{in=/w/agents}"}, {}} {
			g.Skill(agent, s)
		}
	}
	for i, v := range decide() {
		if v.Decision.Effect != before[i].Decision.Effect || v.Decision.Code != before[i].Decision.Code || v.Why != before[i].Why {
			t.Errorf("%s: %v before, %v after", asked[i%len(asked)], before[i], v)
		}
	}
}

// TestSkillLaw (R-EGG-34): over random grants and needs, a skill is satisfied exactly
// when each of its needs is, and a need with a scope only when every single thing that
// the scope allows could be done.
func TestSkillLaw(t *testing.T) {
	hosts := []string{"a.com", "b.a.com", "c.b.a.com", "d.com", "*.a.com", "*.b.a.com", "*"}
	paths := []string{"docs", "src", "src/x", "src/**", "src/*.go", "docs/a.md", "**"}
	cmds := []string{"git", "jq", "rg"}
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(list []string) string { return list[rng.IntN(len(list))] }
	spec := func() string {
		switch rng.IntN(4) {
		case 0:
			return "net.get{hosts=[" + strconv.Quote(pick(hosts)) + "]}"
		case 1:
			return "fs.read{paths=[" + strconv.Quote(pick(paths)) + "]}"
		case 2:
			return "proc.exec{cmds=[" + pick(cmds) + "]}"
		}
		return pick([]string{"net.get", "fs.read", "proc.exec", "fs.write"})
	}
	const rounds = 300
	satisfied := 0
	for range rounds {
		var grants strings.Builder
		for range 1 + rng.IntN(3) {
			if g := spec(); strings.Contains(g, "{") {
				grants.WriteString("  - '" + g + "'\n")
			}
		}
		g := gateOf(t, map[string]string{"one.md": "---\nclass: agent\nsandbox: /w\ncapabilities:\n  - tool.invoke:x\n" + grants.String() + "---\n"})
		needs := skill{spec(), spec()}
		got := g.Skill("one", needs)
		each := g.Skill("one", needs[:1]).Satisfied && g.Skill("one", needs[1:]).Satisfied
		if got.Satisfied != each {
			t.Fatalf("%v for %s: %v together, %v one by one", needs, grants.String(), got.Satisfied, each)
		}
		if got.Satisfied {
			satisfied++
		}
		proveSatisfied(t, g, needs, got)
		if t.Failed() {
			t.Fatalf("the grants are\n%s", grants.String())
		}
	}
	if satisfied < rounds/20 {
		t.Errorf("only %d of %d were satisfied, which proves little", satisfied, rounds)
	}
}

// proveSatisfied holds an answer against single things that could be done.
func proveSatisfied(t *testing.T, g *gate.Gate, needs skill, got gate.Satisfaction) {
	t.Helper()
	for _, m := range got.Missing {
		if thing := anyAllowed(t, g, m.Need); m.Need.Bare && thing != "" {
			t.Errorf("%s is missing, and %s is allowed", m.Need, thing)
		}
	}
	for _, need := range needs {
		for _, thing := range things(need) {
			r, err := capability.ParseRequirement(thing, capability.View{Cwd: "/w"})
			if err != nil {
				t.Fatal(err)
			}
			if v := g.Require("one", r); got.Satisfied && !v.Decision.Allowed() {
				t.Errorf("%v is satisfied and %s is denied: %v", needs, thing, v.Decision)
			}
		}
	}
}

// things are single requirements that a need with a scope allows, out of a small world.
func things(need string) []string {
	spec, err := capability.ParseSpec(need)
	if err != nil {
		panic(err)
	}
	if spec.Bare {
		return nil
	}
	set, _ := capability.Compile([]capability.Spec{spec}, capability.Options{Agent: capability.Root{Dir: "/w", Real: "/w"}})
	var allowed []string
	for _, text := range world() {
		r, err := capability.ParseRequirement(text, capability.View{Cwd: "/w"})
		if err != nil {
			panic(err)
		}
		if set.Decide(r).Allowed() {
			allowed = append(allowed, text)
		}
	}
	return allowed
}

// anyAllowed finds a use of a verb that is allowed, "" if there is none.
func anyAllowed(t *testing.T, g *gate.Gate, need capability.Spec) string {
	t.Helper()
	for _, text := range world() {
		r, err := capability.ParseRequirement(text, capability.View{Cwd: "/w"})
		if err != nil {
			t.Fatal(err)
		}
		if string(r.Verb()) == need.Verb && g.Require("one", r).Decision.Allowed() {
			return text
		}
	}
	return ""
}

// world is a few things that can be asked for.
func world() (world []string) {
	for _, host := range []string{"a.com", "b.a.com", "c.b.a.com", "x.c.b.a.com", "d.com", "e.org"} {
		world = append(world, "net.get{url=https://"+host+"/}")
	}
	for _, file := range []string{"docs", "docs/a.md", "docs/b/c", "src", "src/x", "src/x/y.go", "src/z.go", "src/z/z.go", "else"} {
		world = append(world, "fs.read{path="+file+"}")
	}
	for _, argv := range []string{"git,status", "git,log,-1", "jq,.", "rg,x", "ls"} {
		world = append(world, "proc.exec{argv=["+argv+"]}")
	}
	return world
}

// BenchmarkSkill is what one skill costs in a list, for an agent under another.
func BenchmarkSkill(b *testing.B) {
	dir := b.TempDir()
	for name, text := range records {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	roster, err := agents.Load(agents.Options{Config: capability.Root{Dir: "/w", Real: "/w"}, View: capability.View{Cwd: "/w"}}, dir)
	if err != nil {
		b.Fatal(err)
	}
	g := &gate.Gate{Roster: roster, Fence: capability.NewFence(capability.Root{Dir: "/w/agents", Real: "/w/agents"})}
	s := skill{"fs.read", "net.get{hosts=[api.github.com]}", "fs.write{in=/w,paths=[src/**]}", "tool.invoke{tools=[files.read]}"}
	for b.Loop() {
		if got := g.Skill("scout", s); !got.Satisfied {
			b.Fatal(got)
		}
	}
}
