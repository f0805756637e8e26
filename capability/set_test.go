package capability_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/capability"
)

// compile reads grants in compact form, with everything below /w.
func compile(t testing.TB, texts ...string) *capability.Set {
	t.Helper()
	var specs []capability.Spec
	for _, text := range texts {
		s, err := capability.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		specs = append(specs, s)
	}
	set, _ := capability.Compile(specs, capability.Options{Config: capability.Root{Dir: "/w", Real: "/w"}})
	return set
}

var view = capability.View{Cwd: "/w", Home: "/home/u"}

func need(t testing.TB, text string) *capability.Requirement {
	t.Helper()
	r, err := capability.ParseRequirement(text, view)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return r
}

// TestZeroDenies: what is left out denies.
func TestZeroDenies(t *testing.T) {
	r := need(t, "records.read")
	var set *capability.Set
	for name, d := range map[string]capability.Decision{
		"zero decision": {},
		"nil set":       set.Decide(r),
		"empty set":     compile(t).Decide(r),
		"empty chain":   capability.Chain{}.Decide(r),
		"nil link":      capability.Chain{{}}.Decide(r),
		"denial":        capability.Denial(capability.InvalidConfig, r),
	} {
		if d.Allowed() || d.Effect.String() != "deny" {
			t.Errorf("%s: %v", name, d)
		}
	}
	if set.Holds("records.read") || len(slices.Collect(set.All())) > 0 || (capability.Chain{}).Holds("records.read") {
		t.Error("nothing holds something")
	}
}

// TestChain: every link must agree, and a child never sees beyond its own (R-RYE-12, R-SEC-02).
func TestChain(t *testing.T) {
	child := compile(t, "net.get{hosts=[*]}", "fs.read{paths=[docs]}", "records.read")
	parent := compile(t, "net.get{hosts=[*.github.com]}", "records.read")
	chain := capability.Chain{{Set: child}, {Name: "parent agents/lead", Set: parent}}
	for _, c := range []struct{ text, want string }{
		{"net.get{url=https://api.github.com/}", "allow"},
		{"net.get{url=https://example.org/}", "deny scope_violation"},
		{"fs.read{path=docs/a}", "deny scope_violation"},
		{"net.post{url=https://api.github.com/}", "deny capability_absent"},
		{"records.read", "allow"},
	} {
		d := chain.Decide(need(t, c.text))
		got := strings.TrimSpace(d.Effect.String() + " " + string(d.Code))
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.text, got, c.want)
		}
		if strings.Contains(d.String(), "lead") || strings.Contains(d.String(), "*.github.com") {
			t.Errorf("%s: the denial speaks of another agent: %s", c.text, d)
		}
	}
	if d := chain.Decide(need(t, "net.get{url=https://example.org/}")); d.Link() != "parent agents/lead" {
		t.Errorf("link %q", d.Link())
	}
	if !chain.Holds("net.get") || chain.Holds("net.post") {
		t.Error("Holds")
	}
}

// TestDecisionText: a denial names the verb, what was asked for, and what is
// held for that verb, and nothing else (R-EGG-33). This is R-RYE-13.
func TestDecisionText(t *testing.T) {
	set := compile(t, "fs.read{paths=[docs]}", "fs.read{in=/elsewhere}", "net.get", "records.read", "tool.invoke:x")
	for _, c := range []struct{ text, want string }{
		{"fs.read{path=docs/a}", "allowed by fs.read{in=/w,paths=[docs]}"},
		{"fs.read{path=/etc/passwd}", "scope_violation: this needs fs.read /etc/passwd, which is outside what is held (held for fs.read: fs.read{in=/w,paths=[docs]})"},
		{"fs.write{path=a}", "capability_absent: this needs fs.write a, and no grant of fs.write is held"},
		{"net.get{url=https://github.com/x}", "scope_violation: this needs net.get github.com:443, which is outside what is held (held for net.get: nothing that is in effect)"},
		{"net.get{url=https://u:secret@github.com/}", "scope_violation: this needs net.get (the URL carries a user name), which no grant can cover (held for net.get: nothing that is in effect)"},
		{"tool.invoke{tool=y}", "scope_violation: this needs tool.invoke y, which is outside what is held (held for tool.invoke: tool.invoke{tools=[x]})"},
	} {
		if got := set.Decide(need(t, c.text)).String(); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.text, got, c.want)
		}
	}
	kept := "scope_violation: this needs fs.read a, which is kept by the gateway or its clients: no grant opens it"
	if d := capability.NewFence().Deny(need(t, "fs.read{path=a}")); d.Allowed() || d.String() != kept {
		t.Errorf("got %s, want %s", d, kept)
	}
	program := compile(t, "proc.exec{in=/w,cmds=[git]}")
	for text, want := range map[string]string{
		"proc.exec{argv=[git,-c,x,log]}":                            "held: naming the program does not cover this: git \"-c\" is not among",
		"proc.exec{argv=[ls,\"a\u202eb\"]}":                         "this needs proc.exec ls a\uFFFDb,",
		"proc.exec{argv=[ls,\"" + strings.Repeat("é", 400) + "\"]}": "…, which is outside",
	} {
		if got := program.Decide(need(t, text)).String(); !strings.Contains(got, want) {
			t.Errorf("%.60s: %s, want %s", text, got, want)
		}
	}
	if got, want := capability.Denial(capability.RequiresApproval, need(t, "records.read")).String(), "requires_approval: this needs records.read"; got != want {
		t.Error(got)
	}
	d := set.Decide(need(t, "fs.read{path=/etc/passwd}"))
	if err := error(&capability.Denied{Decision: d}); err.Error() != d.String() {
		t.Error(err)
	}
	for code, want := range map[capability.Code]string{
		capability.UnknownTool:             "unknown_tool",
		capability.SelfModification:        "self_modification: an agent never changes its own authority, not even to narrow it",
		capability.ExceedsGrantorAuthority: "exceeds_grantor_authority: what is passed on must be within what is held",
	} {
		if got := capability.Denial(code, nil).String(); got != want {
			t.Error(got)
		}
	}
}

// TestNearest: the grant that a denial points to is the one that comes closest,
// and one in effect before one that is inert.
func TestNearest(t *testing.T) {
	set := compile(t, "net.get", "net.get{hosts=[*.github.com]}", "net.get{hosts=[api.example.org]}", "fs.delete")
	for text, want := range map[string]string{
		"net.get{url=https://github.community/}": "net.get{hosts=[*.github.com]}",
		"net.get{url=https://example.org/}":      "net.get{hosts=[api.example.org]}",
		"fs.delete{path=x}":                      "fs.delete",
	} {
		if g := set.Decide(need(t, text)).Nearest(); g == nil || g.String() != want {
			t.Errorf("%s: got %v, want %s", text, g, want)
		}
	}
	if g := set.Decide(need(t, "fs.read{path=x}")).Nearest(); g != nil {
		t.Errorf("nearest to nothing: %s", g)
	}
}

// TestFence: the gateway's own files are out of reach, whatever is granted (R-SEC-09).
func TestFence(t *testing.T) {
	fence := capability.NewFence(capability.Root{Dir: "/w/.capgate", Real: "/real/state"}, capability.Root{Dir: "/w/capgate.yml", Real: "/w/capgate.yml"})
	for text, want := range map[string]bool{
		"fs.read{path=.capgate/events}":            true,
		"fs.read{path=capgate.yml}":                true,
		"fs.read{path=/real/state/x}":              true,
		"fs.write{path=capgate.yml}":               true,
		"fs.read{tree=.}":                          true,
		"fs.read{tree=docs}":                       false,
		"fs.read{glob=docs/**}":                    false,
		"fs.read{glob=**/events}":                  true,
		"fs.read{path=.}":                          false,
		"fs.read{path=capgate.yml.bak}":            false,
		"fs.read{path=Capgate.YML}":                true,
		"fs.read{path=/W/.CAPGATE/events}":         true,
		"fs.read{path=.CapGate/}":                  true,
		"fs.read{glob=.CAP*/**}":                   true,
		"fs.read{tree=/W}":                         true,
		"fs.read{path=.CAPGATE/\u00e9}":            true,
		"fs.read{path=.capgat\u00e9}":              false,
		"fs.delete{path=/W}":                       true,
		"fs.delete{path=/w/}":                      true,
		"fs.read{path=/real/State2}":               false,
		"fs.delete{path=.}":                        true,
		"fs.write{path=/}":                         true,
		"fs.delete{path=docs}":                     false,
		"proc.exec{argv=[cat,.capgate/tokens]}":    true,
		"proc.exec{argv=[cat,docs/a]}":             false,
		"proc.eval{command=ls,cwd=.capgate}":       true,
		"proc.eval{command=ls}":                    false,
		"net.get{url=https://github.com/.capgate}": false,
		"records.read":                             false,
	} {
		if got := fence.Touches(need(t, text)); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

// TestFenceOverlaps: a grant reaches behind the fence when some of what it allows
// lies there, whatever name that has.
func TestFenceOverlaps(t *testing.T) {
	fence := capability.NewFence(capability.Root{Dir: "/w/agents", Real: "/real/agents"})
	for grant, want := range map[string]bool{
		"fs.write{in=/w}":                       true,
		"fs.write{in=/w,paths=[agents]}":        true,
		"fs.write{in=/w,paths=[agents/x.md]}":   true,
		"fs.write{in=/w,paths=[\"**/*.md\"]}":   true,
		"fs.write{in=/w,paths=[docs]}":          false,
		"fs.write{in=/real,paths=[agents]}":     false, // inert: outside the root
		"proc.eval{in=/w}":                      true,
		"proc.exec{in=/w/agents/sub,cmds=[ls]}": true,
		"proc.exec{in=/w/docs,cmds=[ls]}":       false,
		"net.get{hosts=[*]}":                    false,
		"records.update":                        false,
	} {
		if got := fence.Overlaps(compile(t, grant)); got != want {
			t.Errorf("%s: got %v, want %v", grant, got, want)
		}
	}
}

func TestParseRequirementRefuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"fs.reed{path=x}", "did you mean fs.read?"},
		{"frobnicate.everything", "is no verb"},
		{"fs.read", "names one of path, tree, glob"},
		{"fs.read{path=a,tree=b}", "names one of"},
		{"fs.read{paths=[a]}", "does not belong"},
		{"fs.read{path=[a,b]}", "names one thing"},
		{"net.get{hosts=[a]}", "does not belong"},
		{"net.get", "names one of url, host"},
		{"net.get{url=}", "a value is missing"},
		{"net.get{url=\"\"}", "is empty"},
		{"net.get{host=\"a\u0085\"}", "control characters"},
		{"proc.exec{cwd=/}", "names one of argv, command"},
		{"proc.exec{argv=[]}", "the value"},
		{"proc.exec{argv=[a],cwd=\"\"}", "the value"},
		{"proc.exec{command=\"\"}", "the value"},
		{"proc.eval{command=\" \"}", "is no command line"},
		{"tool.invoke{tool=a,args={o=[a,b]}}", "takes one value"},
		{"tool.invoke{name=a}", "does not belong"},
		{"agent.grant{id=../x}", "is no agent id"},
		{"agent.grant{id=self}", "is no agent id"},
		{"records.update{path=a/../b,class=x}", "no canonical record path"},
		{"memory.read{key=" + strings.Repeat("a", 5000) + "}", "4096 bytes"},
	} {
		_, err := capability.ParseRequirement(c.text, view)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s: got %v, want %q", c.text, err, c.want)
		}
	}
}

// TestKeyedMisuse: a mapping that asks for words where there are none is told.
func TestKeyedMisuse(t *testing.T) {
	for _, c := range []struct {
		verb  capability.Verb
		words []capability.Word
	}{
		{"net.get", nil},
		{"no.verb", nil},
		{"memory.read", []capability.Word{{Dim: "name", Value: "x"}}},
		{"memory.read", []capability.Word{{Dim: "args.x", Value: "x"}}},
		{"rye.execute.tool", nil},
		{"agent.update", []capability.Word{{Dim: "path", Value: "a/../b"}}},
		{"memory.read", []capability.Word{{Dim: "key", Value: "a"}, {Dim: "key", Value: "secret"}}},
		{"tool.invoke", []capability.Word{{Dim: "tool", Value: "a"}, {Dim: "args.o", Value: "x"}, {Dim: "args.o", Value: "y"}}},
	} {
		_, err := capability.Keyed(c.verb, c.words...)
		if _, ok := errors.AsType[*capability.Malformed](err); !ok {
			t.Errorf("%s %v: %v", c.verb, c.words, err)
		}
	}
}

// TestKeyedLong: what is too long with the mark that patterns are compared by is told
// without it.
func TestKeyedLong(t *testing.T) {
	for long, want := range map[int]string{510: "", 511: "is too long", 513: "longer than 512 bytes"} {
		_, findings := capability.Compile([]capability.Spec{{
			Verb: "memory.read", Scope: []capability.Param{{Key: "keys", Values: []string{strings.Repeat("k", long)}}},
		}}, capability.Options{})
		got := ""
		for _, f := range findings {
			got += f.Text
		}
		if !strings.Contains(got, want) || want == "" && got != "" || strings.Contains(got, "=/") {
			t.Errorf("%d: %q", long, got)
		}
	}
}

func TestBeyond(t *testing.T) {
	set := compile(t, "proc.exec{in=/w}")
	r := capability.Beyond("proc.exec", "the call sets environment variables")
	if d := set.Decide(r); d.Allowed() || d.Code != capability.ScopeViolation || r.Opaque() == "" || r.String() != "proc.exec" {
		t.Errorf("%s", d)
	}
}

// TestManyPaths: a call that names more paths than can be looked at is denied, quickly.
func TestManyPaths(t *testing.T) {
	argv := [][]string{{"cat"}, {"ln", "-s", "../x", "../y"}, {"git", "log"}, {"git", "log"}}
	for i := range 500 {
		argv[0] = append(argv[0], "a=b=c=d=e=f=g=h")
		argv[1] = append(argv[1], fmt.Sprintf("d%d/f", i))
		argv[2], argv[3] = append(argv[2], ":/x"), append(argv[3], "a*b/?c")
	}
	for _, words := range argv {
		r, err := capability.Exec(view, mustPath(t, "/w/a/b/c"), words)
		if err != nil {
			t.Fatal(err)
		}
		if d := compile(t, "proc.exec{in=/w}").Decide(r); d.Allowed() || !strings.Contains(r.Opaque(), "more paths") {
			t.Error(d)
		}
	}
	empty, err := capability.Exec(view, capability.Path{}, []string{"ls"})
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := empty.Smallest(capability.Root{}); ok {
		t.Error(s)
	}
}

// TestCatalogue: one table, and what everything else reads from it (R-EGG-06).
func TestCatalogue(t *testing.T) {
	var got []string
	for _, e := range capability.Catalogue() {
		if r := e.Verb.Resource(); r == "rye" || r == "provider" {
			continue
		}
		var keys []string
		for _, k := range e.Keys {
			keys = append(keys, k.Name)
		}
		got = append(got, strings.TrimSpace(e.Risk.String()+" "+string(e.Verb)+" "+strings.Join(keys, ",")))
	}
	want := []string{
		"low agent.discover", "low memory.read keys", "low obs.append", "low prompt.get names",
		"low records.create classes", "low records.read",
		"medium agent.update id,ids,paths", "medium fs.read in,paths", "medium memory.write keys", "medium net.get hosts",
		"medium obs.query agents", "medium records.update classes,paths", "medium resource.read uris", "medium tool.invoke tools,args",
		"high agent.create id", "high agent.delete id,ids", "high agent.grant id", "high fs.delete in,paths", "high fs.write in,paths",
		"high net.connect hosts", "high net.delete hosts", "high net.post hosts", "high net.put hosts",
		"high proc.eval in", "high proc.exec in,cmds,patterns", "high records.delete classes", "high sandbox.exec", "high secret.use names",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("catalogue (-want +got):\n%s", diff)
	}
	if fs, _ := capability.Lookup("fs.read"); !fs.External() || fs.Bare() {
		t.Error("fs.read")
	}
	if rec, _ := capability.Lookup("records.read"); rec.External() || !rec.Bare() {
		t.Error("records.read")
	}
}

// TestProviderVerbs: a provider tool that cannot be scoped is never a default,
// and nothing else grants it (R-EGG-36).
func TestProviderVerbs(t *testing.T) {
	set := compile(t, "provider.web_search", "net.get{hosts=[*]}")
	if d := set.Decide(need(t, "provider.web_search")); !d.Allowed() {
		t.Error(d)
	}
	if d := set.Decide(need(t, "provider.code_execution")); d.Code != capability.CapabilityAbsent {
		t.Error(d)
	}
}

func TestGrantAccessors(t *testing.T) {
	set := compile(t, "net.get{hosts=[a.com,b.com]}", "fs.read{paths=[x]}", "records.read", "records.read")
	got := slices.Collect(set.All())
	if len(got) != 3 {
		t.Fatalf("%d grants", len(got))
	}
	if hosts := got[0].Hosts(); len(hosts) != 2 || got[0].Verb() != "net.get" || got[0].Risk() != capability.Medium {
		t.Errorf("%v", got[0])
	}
	if got[1].Root().Dir != "/w" || got[1].Spec().Verb != "fs.read" {
		t.Errorf("%v", got[1].Root())
	}
	for range set.All() { // an early stop
		break
	}
	if by := set.ByRisk(); by[0].Verb() != "records.read" {
		t.Errorf("%v first", by[0])
	}
}

// TestFindingText is what R-EGG-32 asks for.
// TestWide: what is wider than it may look is marked.
func TestWide(t *testing.T) {
	for text, wide := range map[string]bool{
		"net.get{hosts=[*]}": true, "net.get{hosts=[*:443]}": true, "net.get{hosts=[*.example.com]}": false,
		"tool.invoke:*": true, "tool.invoke:a.*": false, "tool.invoke{tools=[*],args={o=[x]}}": false,
		"proc.exec{in=/w}": true, "proc.exec{in=/w,cmds=[ls]}": false, "fs.read{in=/w}": false, "net.get": false,
	} {
		for g := range compile(t, text).All() {
			if (g.Wide() != "") != wide {
				t.Errorf("%s: %q", text, g.Wide())
			}
		}
	}
	for _, text := range []string{"fs.read{in=/}", "fs.read{in=/,paths=[.]}", "fs.read:/**"} {
		for g := range compileAnywhere(t, []string{text}).All() {
			if g.Wide() == "" {
				t.Errorf("%s is the whole disk", text)
			}
		}
	}
}

func TestFindingText(t *testing.T) {
	f := capability.Finding{Code: "c", Severity: capability.Warning, Pos: capability.Pos{File: "f.md", Line: 3, Col: 2}, Text: "t", Hint: "h"}
	if got := f.String(); got != "f.md:3:2: warning: t [c]; h" {
		t.Error(got)
	}
	f = capability.Finding{Code: "c", Severity: capability.Error, Text: "t"}
	if got := f.String(); got != "error: t [c]" {
		t.Error(got)
	}
	if got := (capability.Pos{File: "f", Line: 3}).String(); got != "f:3" {
		t.Error(got)
	}
	data, err := json.Marshal(struct {
		S capability.Severity
		R capability.Risk
	}{capability.Note, capability.High})
	if err != nil || string(data) != `{"S":"note","R":"high"}` {
		t.Errorf("%s %v", data, err)
	}
	if len(capability.Codes()) != 21 || capability.Codes()[0] != capability.CapabilityAbsent {
		t.Error("codes")
	}
	for d, want := range map[capability.Dialect]string{capability.Egghead: "egghead", capability.Scarab: "scarab", capability.Rye: "rye", capability.Ethos: "ethos"} {
		if d.String() != want {
			t.Error(d)
		}
	}
}
