package capability_test

import (
	"slices"
	"strings"
	"testing"

	"capgate/capability"
)

// compiled is a set of the grants of a text, with spaces between them.
func compiled(t *testing.T, o capability.Options, grants string) *capability.Set {
	t.Helper()
	var specs []capability.Spec
	for text := range strings.FieldsSeq(grants) {
		s, err := capability.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		specs = append(specs, s)
	}
	set, _ := capability.Compile(specs, o)
	return set
}

func texts(grants []*capability.Grant) string {
	all := make([]string, len(grants))
	for i, g := range grants {
		all[i] = g.String()
	}
	return strings.Join(all, " ")
}

// TestRemaining: what is whole is allowed by every link, of a part something is, and
// what no call could use is not there.
func TestRemaining(t *testing.T) {
	for _, c := range []struct {
		verb              capability.Verb
		own               string
		above             []string
		wantWhole, wanted string
	}{
		{"fs.read", "fs.read{in=/w}", nil, "fs.read{in=/w}", ""},
		{"fs.read", "fs.write{in=/w}", nil, "", ""},
		{"fs.read", "fs.read{in=/w,paths=[]} fs.read{in=/v}", nil, "fs.read{in=/v}", ""},
		{"fs.read", "fs.read{in=/w}", []string{"fs.read{in=/}"}, "fs.read{in=/w}", ""},
		{"fs.read", "fs.read{in=/w}", []string{"fs.read{in=/w/docs}"}, "", "fs.read{in=/w}"},
		{"fs.read", "fs.read{in=/w,paths=[a]} fs.read{in=/v}", []string{"fs.read{in=/w}"}, "fs.read{in=/w,paths=[a]}", ""},
		{"fs.read", "fs.read{in=/w,paths=[*.go]}", []string{"fs.read{in=/w,paths=[*.py]}"}, "", ""},
		{"fs.read", "fs.read{in=/w}", []string{"fs.read{in=/w}", "fs.write{in=/w}"}, "", ""},
		{"fs.read", "fs.read{in=/w,paths=[a,b]}", []string{"fs.read{in=/w,paths=[a]}", "fs.read{in=/w,paths=[b]}"}, "", ""},
		{"net.get", "net.get{hosts=[*.a.com]}", []string{"net.get{hosts=[*]}"}, "net.get{hosts=[*.a.com]}", ""},
		{"net.get", "net.get{hosts=[*.a.com]}", []string{"net.get{hosts=[b.a.com]}"}, "", "net.get{hosts=[*.a.com]}"},
		{"net.get", "net.get{hosts=[10.0.0.0/8]}", []string{"net.get{hosts=[*]}"}, "", ""},
		{"net.connect", "net.connect{hosts=[a.com:22]}", []string{"net.connect{hosts=[a.com:23]}"}, "", ""},
		{"proc.exec", "proc.exec{in=/w,cmds=[git,rg]}", []string{"proc.exec{in=/,cmds=[git]}"}, "", "proc.exec{in=/w,cmds=[git,rg]}"},
		{"proc.exec", "proc.exec{in=/w,cmds=[git]}", []string{"proc.exec{in=/v,cmds=[git]}"}, "", ""},
		{"proc.eval", "proc.eval{in=/w}", []string{"proc.eval{in=/w/a}"}, "", "proc.eval{in=/w}"},
		{"proc.eval", "proc.eval{in=/w}", []string{"proc.eval{in=/v}"}, "", ""},
		{"memory.read", "memory.read{keys=[a*]}", []string{"memory.read{keys=[ab]}"}, "", "memory.read{keys=[a*]}"},
		{"memory.read", "memory.read{keys=[a*]}", []string{"memory.read{keys=[b*]}"}, "", ""},
		{"records.update", "records.update", []string{"records.update{classes=[note]}"}, "", "records.update"},
		{
			"tool.invoke", "tool.invoke{tools=[gh.*],args={owner=[acme]}}",
			[]string{"tool.invoke{tools=[*],args={owner=[acme,x],repo=[a]}}"},
			"", "tool.invoke{tools=[gh.*],args={owner=[acme]}}",
		},
		{"tool.invoke", "tool.invoke{tools=[gh.*],args={owner=[acme]}}", []string{"tool.invoke{tools=[*],args={owner=[x]}}"}, "", ""},
		{"resource.read", "rye.load.knowledge.docs.*", []string{"resource.read{uris=[**]}"}, "rye.load.knowledge{ids=[docs.*]}", ""},
		{"tool.invoke", "rye.execute.tool.gh.*", []string{"tool.invoke{tools=[*]}"}, "rye.execute.tool{ids=[gh.*]}", ""},
	} {
		chain := capability.Chain{{Set: compiled(t, capability.Options{}, c.own)}}
		for _, above := range c.above {
			chain = append(chain, capability.Link{Set: compiled(t, capability.Options{}, above)})
		}
		whole, part := chain.Remaining(c.verb)
		if got, also := texts(whole), texts(part); got != c.wantWhole || also != c.wanted {
			t.Errorf("%s of %s under %q: whole %q, part %q, want %q and %q", c.verb, c.own, c.above, got, also, c.wantWhole, c.wanted)
		}
	}
	if whole, part := capability.Chain(nil).Remaining("fs.read"); whole != nil || part != nil {
		t.Error("the chain that allows nothing leaves something")
	}
}

// TestRemainingBounded: of many grants not all are held against the chain, and those
// that are not are never said to be whole.
func TestRemainingBounded(t *testing.T) {
	many := compiled(t, capability.Options{}, strings.Repeat("fs.read{in=/w} ", 1)+manyGrants(100))
	whole, part := capability.Chain{{Set: many}, {Set: many}}.Remaining("fs.read")
	if len(whole) != 64 || len(part) != 37 {
		t.Errorf("%d whole, %d in part", len(whole), len(part))
	}
}

func manyGrants(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("fs.read{in=/v/" + strings.Repeat("x", i+1) + "} ")
	}
	return b.String()
}

// TestGrantLimited: a grant says which arguments of a tool it limits.
func TestGrantLimited(t *testing.T) {
	set := compiled(t, capability.Options{}, "tool.invoke{tools=[gh.*],args={owner=[acme],repo=[a]}} tool.invoke:other.x fs.read{in=/w}")
	var got []string
	for g := range set.All() {
		args, ok := g.Limited("gh.create")
		if ok {
			got = append(got, args...)
		}
		if args, ok := g.Limited("other.x"); ok && args != nil {
			t.Errorf("%s limits %q", g, args)
		}
	}
	if !slices.Equal(got, []string{"owner", "repo"}) {
		t.Errorf("got %q", got)
	}
}

// TestUnlimited: a grant is unlimited when nothing that its verb is about is outside.
func TestUnlimited(t *testing.T) {
	for text, want := range map[string]bool{
		"fs.read{in=/}": true, "fs.read{in=/,paths=[**]}": true, "fs.read{in=/w}": false, "fs.read{in=/,paths=[etc]}": false,
		"records.create": true, "records.create{classes=[note]}": false, "net.get{hosts=[*]}": false,
		"proc.exec{in=/w}": false, "proc.eval{in=/w}": false, "obs.append": true, "obs.query": false,
	} {
		for g := range compiled(t, capability.Options{}, text).All() {
			if g.Unlimited() != want {
				t.Errorf("%s: %v", text, !want)
			}
		}
	}
}
