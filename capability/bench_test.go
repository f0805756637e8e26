package capability_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"capgate/capability"
)

// grantsOf writes n grants of each kind, of which only the last covers what the
// benchmarks ask for.
func grantsOf(n int) []string {
	list := make([]string, 0, n)
	for i := range n {
		switch i % 5 {
		case 0:
			list = append(list, fmt.Sprintf("net.get{hosts=[host%d.example.com,*.zone%d.example.org]}", i, i))
		case 1:
			list = append(list, fmt.Sprintf("fs.read{in=/w,paths=[dir%d,src%d/**/*.go]}", i, i))
		case 2:
			list = append(list, fmt.Sprintf("proc.exec{in=/w,cmds=[tool%d]}", i))
		case 3:
			list = append(list, fmt.Sprintf("tool.invoke{tools=[server.tool%d]}", i))
		case 4:
			list = append(list, fmt.Sprintf("memory.read{keys=[key%d]}", i))
		}
	}
	return append(list,
		"net.get{hosts=[*.github.com]}", "fs.read{in=/w,paths=[docs]}", "proc.exec{in=/w,cmds=[git]}",
		"tool.invoke{tools=[github.create_issue]}", "memory.read{keys=[notes]}", "fs.read{in=/w,paths=[web/*.html]}")
}

// asked is what the benchmarks and the allocation test ask, and what is right.
var asked = []struct {
	name, text string
	allowed    bool
}{
	{"net", "net.get{url=https://api.github.com/repos}", true},
	{"net-deny", "net.get{url=https://api.github.com.evil.example/}", false},
	{"fs", "fs.read{path=docs/guide/intro.md}", true},
	{"fs-glob", "fs.read{path=web/index.html}", true},
	{"fs-deny", "fs.read{path=secret/key}", false},
	{"proc", "proc.exec{argv=[git,status,--short]}", true},
	{"proc-deny", "proc.exec{argv=[curl,https://evil.example]}", false},
	{"tool", "tool.invoke{tool=github.create_issue}", true},
	{"tool-deny", "tool.invoke{tool=github.delete_repo}", false},
	{"key", "memory.read{key=notes}", true},
}

func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{50, 10, 1000, 100_000} {
		set := compile(b, grantsOf(n)...)
		for _, c := range asked {
			r := need(b, c.text)
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if set.Decide(r).Allowed() != c.allowed {
						b.Fatal("wrong decision")
					}
				}
			})
		}
	}
}

// TestDecideAllocs: a decision allocates nothing, allowed or denied.
func TestDecideAllocs(t *testing.T) {
	set := compile(t, grantsOf(50)...)
	chain := capability.Chain{{Set: set}, {Name: "parent", Set: set}}
	for _, c := range asked {
		r := need(t, c.text)
		if set.Decide(r).Allowed() != c.allowed {
			t.Fatalf("%s: %s", c.name, set.Decide(r))
		}
		if n := testing.AllocsPerRun(200, func() { chain.Decide(r) }); n != 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
}

func BenchmarkCovers(b *testing.B) {
	parent := compile(b, grantsOf(50)...)
	for _, c := range []struct{ name, grant string }{
		{"host", "net.get{hosts=[api.github.com]}"},
		{"host-no", "net.get{hosts=[*]}"},
		{"path", "fs.read{in=/w,paths=[docs/a]}"},
		{"path-no", "fs.read{in=/w}"},
		{"glob", "fs.read{in=/w,paths=[src6/a/*.go]}"},
		{"program", "proc.exec{in=/w,cmds=[git]}"},
		{"tool", "tool.invoke{tools=[github.create_issue],args={owner=[acme]}}"},
	} {
		child := compile(b, c.grant)
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				parent.Covers(child)
			}
		})
	}
}

// BenchmarkCoversWorst compares products that nothing but searching can tell apart,
// each row of one with many of the other: what it costs is bounded by the effort of
// one comparison, which ends in a no.
func BenchmarkCoversWorst(b *testing.B) {
	parent, child := products(b, 60, "t%d.*x", "*%d*"), products(b, 60, "t%d.*yx", "*%d*z*")
	for b.Loop() {
		parent.Covers(child)
	}
}

// products is a grant of so many tools and so many values of an argument.
func products(tb testing.TB, n int, tool, value string) *capability.Set {
	tb.Helper()
	list := func(form string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(form, 10+i))
		}
		return strings.Join(all, ",")
	}
	return compile(tb, "tool.invoke{tools=["+list(tool)+"],args={a=["+list(value)+"]}}")
}

// TestCoversBounded: two sets of products are compared with one effort for all of
// them. Where it ends the answer is no; what is plain is found all the same.
func TestCoversBounded(t *testing.T) {
	parent, child := products(t, 60, "t%d.*x", "*%d*"), products(t, 60, "t%d.*yx", "*%d*z*")
	if gaps := parent.Covers(child); len(gaps) != 1 || gaps[0].Witness != "" {
		t.Errorf("the comparison has come to an end: %v", gaps)
	}
	if gaps := parent.Covers(products(t, 2, "t%d.*yx", "*%d*z*")); len(gaps) != 0 {
		t.Errorf("a few rows are not found to be within it: %v", gaps)
	}
	if gaps := parent.Covers(products(t, 16, "t%d.*x", "*%d*")); len(gaps) != 0 {
		t.Errorf("what is written there is not within it: %v", gaps)
	}
}

func BenchmarkCompile(b *testing.B) {
	var specs []capability.Spec
	for _, text := range grantsOf(44) {
		s, err := capability.ParseSpec(text)
		if err != nil {
			b.Fatal(err)
		}
		specs = append(specs, s)
	}
	for b.Loop() {
		capability.Compile(specs, capability.Options{})
	}
}

// TestCoversAtSize: lists as long as anybody writes them are compared to the end.
func TestCoversAtSize(t *testing.T) {
	list := func(n int, form string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = strconv.Quote(strings.ReplaceAll(form, "#", strconv.Itoa(i)))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	for name, c := range map[string]struct{ giver, child string }{
		"names":                   {"tool.invoke{tools=" + list(1000, "s.t#") + "}", "tool.invoke{tools=" + list(1000, "s.t#") + "}"},
		"patterns":                {"tool.invoke{tools=" + list(1000, "s#.*") + "}", "tool.invoke{tools=" + list(1000, "s#.*") + "}"},
		"names within patterns":   {"tool.invoke{tools=" + list(60, "s#.*") + "}", "tool.invoke{tools=" + list(60, "s#.list_*") + "}"},
		"names of many servers":   {"tool.invoke{tools=" + list(200, "s#.*") + "}", "tool.invoke{tools=" + list(200, "s#.list") + "}"},
		"arguments":               {"tool.invoke{tools=[a.*],args={o=" + list(200, "x#") + "}}", "tool.invoke{tools=[a.b],args={o=" + list(200, "x#") + "}}"},
		"ids":                     {"rye.load.knowledge{ids=" + list(200, "kb.a#.*") + "}", "rye.load.knowledge{ids=" + list(200, "kb.a#.x.y") + "}"},
		"paths":                   {"fs.read{in=/w,paths=" + list(500, "src#/**/*.go") + "}", "fs.read{in=/w,paths=" + list(500, "src#/a/*.go") + "}"},
		"files":                   {"fs.read{in=/w,paths=" + list(1000, "src#") + "}", "fs.read{in=/w,paths=" + list(1000, "src#/a.go") + "}"},
		"calls":                   {"proc.exec{in=/w,patterns=" + list(200, "ls log# **") + "}", "proc.exec{in=/w,patterns=" + list(200, "ls log# -n *") + "}"},
		"hosts":                   {"net.get{hosts=" + list(1000, "*.h#.example.com") + "}", "net.get{hosts=" + list(1000, "a.h#.example.com") + "}"},
		"paths that several hold": {"fs.read{in=/w,paths=" + list(50, "s#/{a,b}/**") + "}", "fs.read{in=/w,paths=" + list(50, "s#/[ab]/*.go") + "}"},
	} {
		if gaps := compileAnywhere(t, []string{c.giver}).Covers(compileAnywhere(t, []string{c.child})); len(gaps) > 0 {
			t.Errorf("%s: %d gaps, the first with the witness %q", name, len(gaps), gaps[0].Witness)
		}
	}
}
