package capability_test

import (
	"strings"
	"testing"

	"capgate/capability"
)

// TestPlain: to who expands nothing, a path with wildcards is the name that it is, and one pattern of it does.
func TestPlain(t *testing.T) {
	for plain, want := range map[bool]string{true: `fs.read{paths=["app/\\[id\\]/p"]}`, false: `fs.read{paths=["app/\\[id\\]/p",app/[id]/p]}`} {
		p, err := capability.View{Cwd: "/w", Plain: plain}.Path("app/[id]/p")
		if err != nil {
			t.Fatal(err)
		}
		root := capability.Root{Dir: "/w", Real: "/w"}
		need := capability.File("fs.read", p)
		spec, ok := need.Smallest(root)
		if !ok || spec.String() != want {
			t.Errorf("plain %t: got %s", plain, spec)
		}
		set, _ := capability.Compile([]capability.Spec{{Verb: "fs.read", Scope: []capability.Param{{Key: "paths", Values: []string{`app/\[id\]/p`}}}}}, capability.Options{Agent: root})
		if set.Decide(need).Allowed() != plain {
			t.Errorf("plain %t: %s", plain, set.Decide(need))
		}
	}
}

// TestSmallest: the edit that is proposed allows what was asked for, and says no
// more than that.
func TestSmallest(t *testing.T) {
	root := capability.Root{Dir: "/w", Real: "/w"}
	for _, c := range []struct {
		text string
		root capability.Root
		want string
	}{
		{"fs.read{path=docs/a.md}", root, "fs.read{paths=[docs/a.md]}"},
		{"fs.read{path=.}", root, "fs.read{in=/w}"},
		{"fs.read{path=app/[id]/page.tsx}", root, `fs.read{paths=["app/\\[id\\]/page.tsx",app/[id]/page.tsx]}`},
		{`fs.read{tree="[id]"}`, root, ""}, // all that is beside it is not what was asked for
		{`fs.read{tree="app/what?"}`, root, ""},
		{`fs.read{tree="/srv/a/[id]"}`, root, ""},
		{"fs.read{tree=docs}", root, "fs.read{paths=[docs]}"},
		{"fs.read{path=docs/a%20b}", root, `fs.read{paths=[docs/a%20b,docs/a b]}`},
		{"fs.read{path=@docs/a:1}", root, "fs.read{paths=[@docs/a:1,docs/a:1,@docs/a,docs/a]}"},
		{"fs.read{path=/etc/a%20b}", root, `fs.read{in=/etc,paths=[a%20b,a b]}`},
		{"fs.read{tree=a%20b}", root, `fs.read{paths=[a%20b,a b]}`},
		{"fs.read{path=x%03d.png}", root, ""}, // any number
		{"fs.read{path=docs/#1}", root, ""},   // a grant of docs as well would be of all that is in it
		{"fs.read{path=docs/}", root, "fs.read{paths=[docs]}"},
		{"fs.read{path=/etc/a;/usr}", root, "fs.read{in=/etc/a;,paths=[usr]}"},
		{"fs.read{path=/etc/passwd}", root, "fs.read{in=/etc,paths=[passwd]}"},
		{"fs.read{path=/etc/passwd}", capability.Root{}, "fs.read{in=/etc,paths=[passwd]}"},
		{"fs.read{path=/etc}", root, "fs.read{in=/,paths=[etc]}"},
		{"fs.read{path=/}", root, "fs.read{in=/}"},
		{"fs.read{tree=/srv/x}", root, "fs.read{in=/srv/x}"},
		{"net.get{url=https://api.github.com/x}", root, "net.get{hosts=[api.github.com]}"},
		{"net.get{url=https://api.github.com:8443/x}", root, "net.get{hosts=[api.github.com:8443]}"},
		{"net.connect{host=db.example.com:443}", root, "net.connect{hosts=[db.example.com:443]}"},
		{"proc.exec{argv=[git,status]}", root, "proc.exec{cmds=[git]}"},
		{"proc.exec{argv=[git,status],cwd=/srv}", root, "proc.exec{in=/srv,cmds=[git]}"},
		{"proc.exec{argv=[git,diff,../x],cwd=src}", root, "proc.exec{cmds=[git]}"},
		{"proc.exec{argv=[git,diff,../x],cwd=src}", capability.Root{}, ""},
		{"proc.exec{argv=[git,diff,../x]}", root, ""},
		{"proc.exec{argv=[sh,-c,@/x]}", root, ""},
		{"proc.exec{argv=[sh,x.sh]}", root, "proc.exec{patterns=[sh x.sh]}"},
		{"proc.exec{argv=[sh,\"a b\"]}", root, ""},
		{"proc.exec{command=\"git log | sh\"}", root, ""},
		{"proc.eval{command=\"git log | sh\"}", root, "proc.eval{in=/w}"},
		{"proc.eval{command=ls,cwd=/srv}", root, "proc.eval{in=/srv}"},
		{"tool.invoke{tool=github.issue,args={owner=acme}}", root, "tool.invoke{tools=[github.issue],args={owner=[acme]}}"},
		{"memory.read{key=a*b}", root, `memory.read{keys=["a\\*b"]}`},
		{"memory.read", root, "memory.read{keys=[*]}"},
		{"tool.invoke{args={owner=acme}}", root, "tool.invoke{tools=[*],args={owner=[acme]}}"},
		{"agent.grant{id=scout}", root, "agent.grant{id=[agents/scout]}"},
		{"records.read", root, "records.read"},
		{"records.update{class=inbox}", root, "records.update{classes=[inbox]}"},
		{"net.get{url=ftp://github.com/}", root, ""},
	} {
		r := need(t, c.text)
		spec, ok := r.Smallest(c.root)
		if got := spec.String(); ok != (c.want != "") || ok && got != c.want {
			t.Errorf("%s: got %s %v, want %s", c.text, got, ok, c.want)
			continue
		}
		if !ok {
			continue
		}
		set, findings := capability.Compile([]capability.Spec{spec}, capability.Options{Agent: c.root})
		if inside := strings.Contains(c.text, "=/etc") || strings.Contains(c.text, "=/srv") || strings.Contains(c.text, "=/}"); inside && !c.root.IsZero() {
			continue // the root clamps it, which the caller finds by trying
		}
		if d := set.Decide(r); !d.Allowed() || len(findings) > 0 {
			t.Errorf("%s: %s does not allow it: %s %v", c.text, spec, d, findings)
		}
	}
}
