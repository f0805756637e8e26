package capability_test

import (
	"strings"
	"testing"

	"capgate/capability"
)

// TestReason: the denial of a program says which word can be read as a path, in the form
// in which it was asked for, or that it is where it would run (R-EGG-33).
func TestReason(t *testing.T) {
	const within = "which is outside what is held (held for"
	long := strings.Repeat("é", 400)
	set := compile(t, "proc.exec{in=/w,cmds=[git]}")
	for text, want := range map[string]string{
		"proc.exec{argv=[ls,/x]}":                                            within, // the program is what is not held
		"proc.exec{argv=[git,-c,x,/y]}":                                      "held: naming the program does not cover this: git \"-c\" is not among",
		"proc.exec{argv=[git,log],cwd=/etc}":                                 "held: the directory that it would run in is outside /w (held for",
		"proc.exec{argv=[git,log,--,../y]}":                                  "held: the word ../y can be read as a path, which is outside /w (held for",
		"proc.exec{argv=[git,log,@/c]}":                                      "held: the word @/c can be read as the path /c, which is outside /w (held for",
		"proc.exec{argv=[git,log,a/b,/b]}":                                   "held: the word /b can be read as a path, which is outside /w (held for",
		"proc.exec{argv=[git,commit,-m,\"a b,/x\"]}":                         `held: the word "a b,/x" can be read as the path /x, which is outside /w (held for`,
		"proc.exec{argv=[git,log,--grep=~foo]}":                              "which no grant can cover: the word --grep=~foo names another user's home (held for",
		"proc.exec{argv=[git,log,\"" + long + "=/x\"]}":                      "é… can be read as the path /x, which is",
		"proc.exec{argv=[git,log,\"=/x" + strings.Repeat("/é", 200) + "\"]}": "…, which is outside /w (held for",
		"proc.exec{argv=[git,log,\"a\u202e=/\u202eb\"]}":                     "held: the word a\uFFFD=/\uFFFDb can be read as the path /\uFFFDb, which",
	} {
		if got := set.Decide(need(t, text)).String(); !strings.Contains(got, want) {
			t.Errorf("%.60s: %s, want %s", text, got, want)
		}
	}
	resource := compile(t, `resource.read{uris=["docs://*.md","docs://team-*"]}`)
	for text, want := range map[string]string{
		`resource.read{uri="docs://a?.md"}`:     `held: no wildcard stands for its ? or #, but a star at the end: servers may look at nothing from there on. \? is a query's (held for`,
		`resource.read{uri="docs://a#.md"}`:     "held: no wildcard stands for",
		`resource.read{uri="docs://team-a@b"}`:  "held: no wildcard behind what a host begins with stands for its @: servers may look at nothing before it (held for",
		`resource.read{uri="docs://a:80/x.md"}`: "held: no wildcard stands for its : behind the scheme, but a star at the end: servers may split there (held for",
		`resource.read{uri="docs://a.txt"}`:     within,
		`resource.read{uri="docs://a?x"}`:       within,
		`resource.read{uri="notes://u@a"}`:      within,
	} {
		if got := resource.Decide(need(t, text)).String(); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	above := capability.Chain{{Set: compile(t, "proc.exec{in=/w/src,cmds=[git]}", "proc.exec{in=/w,cmds=[git]}")}, {Name: "parent", Set: compile(t, "proc.exec{in=/v,cmds=[git]}")}}
	beyond := need(t, "proc.exec{argv=[git,-c,x,log]}")
	if got := set.Decide(beyond).Reason(); !strings.HasPrefix(got, "naming the program does not cover this: git") {
		t.Errorf("what an option does is not told: %q", got)
	}
	if got := set.Decide(beyond).Vague().String(); strings.Contains(got, "naming the program") {
		t.Errorf("what must not be shown is quoted: %s", got)
	}
	if d := above.Decide(need(t, "proc.exec{argv=[git,log,--,../y],cwd=src}")); d.Allowed() || d.Reason() != "" {
		t.Errorf("what stands above is told: %s", d)
	}
	about := resource.Decide(need(t, "resource.read{uri=docs://a.txt}")).About(need(t, `resource.read{uri="docs://{x}"}`))
	if got := about.String(); about.Allowed() || !strings.Contains(got, "docs://{x}") || strings.Contains(got, "a.txt") {
		t.Errorf("a denial of what contains it: %s", got)
	}
	stray := set.Decide(need(t, "proc.exec{argv=[git,log,--grep=/x]}"))
	if got := stray.Vague().String(); !strings.Contains(got, within) {
		t.Error(got)
	}
	if got := stray.Quoting([]string{"some"}); !strings.HasSuffix(got, "outside /w (held for proc.exec: some)") {
		t.Error(got)
	}
}

// TestReasonOfArguments: the denial of a tool that is granted says which of its arguments is limited.
func TestReasonOfArguments(t *testing.T) {
	tool := compile(
		t, "tool.invoke{tools=[a.x]}", "tool.invoke{tools=[gh.issue],args={owner=[acme],label=[bug],state=[open]}}", "tool.invoke{tools=[\"gh.*\"],args={owner=[acme,me],repo=[r]}}",
	)
	for text, want := range map[string]string{
		"tool.invoke{tool=gh.issue,args={owner=acme,label=bug,state=shut}}": "held: args: limits the argument state to other values (held for",
		"tool.invoke{tool=gh.issue,args={owner=acme,label=bug}}":            "held: args: limits the argument state, which is not given as a plain value (held for",
		"tool.invoke{tool=gh.pr,args={owner=evil}}":                         "held: args: limits the argument owner to other values (held for",
		"tool.invoke{tool=gh.pr,args={repo=r}}":                             "held: args: limits the argument owner, which is not given as a plain value (held for",
		"tool.invoke{tool=c.x,args={owner=acme}}":                           "which is outside what is held (held for",
	} {
		if got := tool.Decide(need(t, text)).String(); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestReasonOfGrants: it says what is wrong with the grant that was meant for the program,
// and speaks of the one that comes closest.
func TestReasonOfGrants(t *testing.T) {
	const (
		within   = "which is outside what is held (held for"
		straying = "held: the word /etc/x can be read as a path, which is outside /w (held for"
	)
	for text, want := range map[string]string{
		"proc.exec{in=/w,cmds=[sed]}": "held: the grant that names sed is not in effect, as sed stands under cmds:, where it bounds nothing; " +
			"patterns: must say which calls of sed are meant (held for proc.exec: nothing that is in effect)",
		"proc.exec{in=/w,cmds=[\"sed -n 1,20p\"]}":        "as \"sed -n 1,20p\" stands under cmds:, where it bounds nothing; patterns: must say which calls of sed",
		"proc.exec{in=/w,cmds=[sed,\"npx tsc\"]}":         "the grant that names sed is not in effect, as sed stands",
		"proc.exec{in=/w,cmds=[\"npx tsc\",sed]}":         "the grant that names sed is not in effect, as \"npx tsc\" stands",
		"proc.exec{in=/w,cmds=[sed],patterns=[\"rg *\"]}": "the grant that names sed is not in effect, as sed stands",
		"proc.exec{in=/w,cmds=[rg,python3]}":              within,
		"proc.exec{in=/w,patterns=[\"sed [\"]}":           within,
		"proc.exec{in=/w,patterns=[\"sed -n *\"]}":        straying,
		"proc.exec{in=/w,patterns=[\"sed -n /etc/x\"]}":   straying,
		"proc.exec{in=/w}":                                straying,
		"proc.exec{in=[/v,/w,/x],patterns=[\"sed **\"]}":  straying,
		"proc.exec{in=/w,patterns=[\"sed -i *\"]}":        within,
		"proc.exec{in=/v,patterns=[\"sed **\"]}":          "held: the directory that it would run in is outside /v (held for",
	} {
		spec, err := capability.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		set, _ := capability.Compile([]capability.Spec{spec}, capability.Options{})
		if got := set.Decide(need(t, "proc.exec{argv=[sed,-n,/etc/x]}")).String(); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestReasonFenced: so does the denial by the fence, and how the path lies to what is kept,
// of which it names nothing.
func TestReasonFenced(t *testing.T) {
	const kept = "which is kept by the gateway or its clients: no grant opens it"
	fence := capability.NewFence(capability.Root{Dir: "/w/capgate.yml", Real: "/w/capgate.yml"}).
		Sealing(capability.Root{Dir: "/w/dist/index.js", Real: "/w/dist/index.js"}).Hiding(".mcp.json", ".claude/settings.json").SealingNamed(".git")
	for text, want := range map[string]string{
		"fs.write{path=dist/index.js}":                         kept,
		"proc.exec{argv=[tar,czf,out.tgz,src]}":                kept + " (the directory that it would run in holds what is kept)",
		"proc.eval{command=ls,cwd=.git}":                       kept + " (the directory that it would run in is kept)",
		"proc.exec{argv=[cp,a,.]}":                             kept + " (the word . can be read as a path, which holds what is kept)",
		"proc.exec{argv=[rm,-rf,src,dist]}":                    kept + " (the word dist can be read as a path, which holds what is kept)",
		"proc.exec{argv=[cp,x,--to=dist/index.js]}":            kept + " (the word --to=dist/index.js can be read as the path dist/index.js, which is kept)",
		"proc.exec{argv=[tree,-a,-I,.git]}":                    kept + " (the word .git can be read as a path, which is kept)",
		"proc.exec{argv=[rg,.mcp.json,src]}":                   kept + " (the word .mcp.json can be read as a path, which is kept)",
		"proc.exec{argv=[rg,x,.claude]}":                       kept + " (the word .claude can be read as a path, which holds what is kept)",
		"proc.exec{argv=[split,a,capgate.y],cwd=.}":            kept + " (the word capgate.y can be read as a path, which begins the name of what is kept)",
		"proc.exec{argv=[split,a,.],cwd=x}":                    kept + " (the word . can be read as a path, which begins the name of what is kept)",
		"proc.exec{argv=[gunzip,capgate.yml.gz]}":              kept + " (what the program makes of its words can be read as the path capgate.yml, which is kept)",
		"proc.exec{argv=[git,log,--,.mcp.jso?],cwd=x}":         kept + " (the glob .mcp.jso? can stand for what is kept)",
		"proc.exec{argv=[git,log,--,\":/capgate.yml\"],cwd=x}": kept + " (the word :/capgate.yml can be read as the path ./capgate.yml, which is kept)",
		"proc.exec{argv=[wget,http://h/%2Emcp.json],cwd=x}":    "can be read as the path http://.mcp.json, which is kept)",
	} {
		r := need(t, text)
		if d := fence.Deny(r); !fence.Touches(r) || !strings.HasSuffix(d.String(), want) {
			t.Errorf("%s: %s, want %s", text, d, want)
		}
	}
	if d := fence.Deny(need(t, "proc.exec{argv=[ls]}")); d.Reason() != "" {
		t.Errorf("what does not reach there is denied for %s", d)
	}
}
