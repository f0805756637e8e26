package capability_test

import (
	"strings"
	"testing"

	"capgate/capability"
)

// TestParseSpec: what is written comes back as it is, whatever form it had.
func TestParseSpec(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"records.read", "records.read"},
		{" net.get{hosts=[*.github.com,api.anthropic.com]} ", "net.get{hosts=[*.github.com,api.anthropic.com]}"},
		{"net.get{hosts=*.github.com}", "net.get{hosts=*.github.com}"},
		{"net.get { hosts = [ a.com , b.com ] }", "net.get{hosts=[a.com,b.com]}"},
		{"proc.exec{in=~/Work,cmds=[rg,jq]}", "proc.exec{in=~/Work,cmds=[rg,jq]}"},
		{"fs.read{paths=[src/{a,b}/*.go,[a-z].md]}", `fs.read{paths=[src/{a,b}/*.go,"[a-z].md"]}`},
		{`fs.read{paths=["a,b","c]d","e\"f","g\\h"," i "]}`, `fs.read{paths=["a,b","c]d","e\"f","g\\h"," i "]}`},
		{`fs.read{paths=[]}`, `fs.read{paths=[]}`},
		{`fs.read{}`, `fs.read{}`},
		{"net.post{hosts=[[::1]:9000]}", `net.post{hosts=["[::1]:9000"]}`},
		{"tool.invoke{tools=[a.b],args={owner=[acme],repo=x}}", "tool.invoke{tools=[a.b],args={owner=[acme],repo=x}}"},
		{"tool.invoke{args={}}", "tool.invoke{args={}}"},
		{"fs.write:/home/agent/workspace/**", "fs.write{in=/home/agent/workspace,paths=[**]}"},
		{"fs.write:/**", "fs.write{in=/,paths=[**]}"},
		{"fs.write:/x", `fs.write{in=/,paths=["\\x"]}`},
		{"fs.read:notes/*", "fs.read{paths=[notes/*]}"},
		{"fs.read:notes", `fs.read{paths=["\\notes"]}`},
		{"tool.invoke:*", "tool.invoke{tools=[*]}"},
		{"secret.use:a:b", "secret.use{names=[a:b]}"},
		{"net.connect:api.example.com:443", "net.connect{hosts=[api.example.com:443]}"},
		{"frobnicate.it:x", "frobnicate.it"},
		{"rye.execute.tool.rye.file-system.*", "rye.execute.tool{ids=[rye.file-system.*]}"},
		{"rye.execute.tool.rye/file-system/*", "rye.execute.tool{ids=[rye.file-system.*]}"},
		{"rye.search.directive", "rye.search.directive"},
		{"rye.execute.*", "rye.execute.*"},
		{"rye.*", "rye.*"},
		{"rye.load.tool{ids=[a.*]}", "rye.load.tool{ids=[a.*]}"},
	} {
		spec, err := capability.ParseSpec(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got := spec.String(); got != c.want {
			t.Errorf("%s: got %s, want %s", c.text, got, c.want)
		}
		again, err := capability.ParseSpec(spec.String())
		if err != nil || !again.Equal(spec) {
			t.Errorf("%s reads back as %s, %v", spec, again, err)
		}
	}
}

func TestParseSpecRefuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "names no verb"},
		{"   ", "names no verb"},
		{"Net.get", "is no verb"},
		{"netget", "is no verb"},
		{".get", "is no verb"},
		{"net.", "is no verb"},
		{"net..get", "is no verb"},
		{"*", "is no verb"},
		{"!net.get", "is no verb"},
		{"net.get\x00", "control characters"},
		{"net.get\xff", "invalid UTF-8"},
		{"net.get{", "key=value"},
		{"net.get{hosts}", "key=value"},
		{"net.get{=x}", "key=value"},
		{"net.get{hosts=}", "a value is missing"},
		{"net.get{hosts=[a", "missing after \"a\""},
		{"net.get{hosts=[a,]}", "a value is missing"},
		{"net.get{hosts=[a]", "missing after \"hosts\""},
		{"net.get{hosts=[a]}x", "after the closing brace"},
		{"net.get{hosts=[\"a]}", "closing quote"},
		{"net.get{hosts=[a],hosts=[b]}", "stands twice"},
		{"tool.invoke{a={b={c={d={e=f}}}}}", "nest deeper"},
		{"tool.invoke:", "nothing after the colon"},
		{"fs.read: /a", "write fs.read{paths=[…]}"},
		{"fs.read: { in: /a, paths: [b] }", "a blank after the colon"},
		{"net.get: [a.b]", "write net.get{hosts=[…]}"},
		{"records.read:x", "takes no scope after a colon"},
		{"proc.exec:git", "takes no scope after a colon"},
		{"fs.read:/a/", "ends in a slash"},
		{"fs.read:/a/[", "fs.read"},
		{"rye.execute", "is no Rye string"},
		{"rye.run.tool.x", "is no Rye action"},
		{"rye.execute.thing.x", "is no Rye item type"},
		{"rye.execute.*.x", "is no Rye item type"},
		{"rye.execute.tool.a b", "is no Rye id pattern"},
		{"rye.execute.tool.[ab]", "is no Rye id pattern"},
		{"rye.execute.tool.a:{", "is no Rye id pattern"},
		{"rye.execute.thing:{id=x}", "is no Rye item type"},
		{"net.get{hosts=[" + strings.Repeat("a,", 2000) + "a]}", "more than 1024 values"},
		{"net.get{hosts=[" + strings.Repeat("a", 70_000) + "]}", "bytes"},
		{strings.Repeat("é", 40) + ".x", "…"},
		{"x" + strings.Repeat("é", 40) + ".x", "…"},
	} {
		_, err := capability.ParseSpec(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: got %v, want %q", c.text, err, c.want)
		}
	}
}

func FuzzParseSpec(f *testing.F) {
	for _, s := range []string{
		"net.get{hosts=[*.github.com,api.anthropic.com]}", "fs.write:/home/*/x", "rye.load.tool.a.*",
		`fs.read{paths=["a,b",{x,y}/[a-z]]}`, "tool.invoke{tools=[a],args={o=[b],p=c}}",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		spec, err := capability.ParseSpec(text)
		if err != nil {
			return
		}
		again, err := capability.ParseSpec(spec.String())
		if err != nil {
			t.Fatalf("%q prints as %q: %v", text, spec, err)
		}
		if again.String() != spec.String() {
			t.Fatalf("%q prints as %q, then as %q", text, spec, again)
		}
		// A token may carry a root of its own; its printed form hangs from the
		// agent's. Compiled without any root, both mean the same.
		one, _ := capability.Compile([]capability.Spec{spec}, capability.Options{})
		two, _ := capability.Compile([]capability.Spec{again}, capability.Options{})
		if a, b := strings.Join(describe(one), "\n"), strings.Join(describe(two), "\n"); a != b {
			t.Fatalf("%q compiles to %s, read back to %s", text, a, b)
		}
	})
}

// TestPermissions: Rye's XML blocks become the strings of its table (R-RYE-04).
func TestPermissions(t *testing.T) {
	for _, c := range []struct{ xml, want string }{
		{"<permissions><execute><tool>rye.file-system.*</tool></execute></permissions>", "rye.execute.tool{ids=[rye.file-system.*]}"},
		{"<permissions><execute><tool>rye.agent.threads.thread_directive</tool></execute></permissions>", "rye.execute.tool{ids=[rye.agent.threads.thread_directive]}"},
		{"<permissions><search><directive>*</directive></search></permissions>", "rye.search.directive{ids=[*]}"},
		{"<permissions><load><knowledge>agency-kiwi.*</knowledge></load></permissions>", "rye.load.knowledge{ids=[agency-kiwi.*]}"},
		{"<permissions>*</permissions>", "rye.*"},
		{"<permissions>\n  <execute>*</execute>\n  <!-- all of it --> <search>*</search></permissions>", "rye.execute.*|rye.search.*"},
		{"<permissions/>", ""},
		{"<permissions><load><tool>a/b</tool><tool>c</tool></load></permissions>", "rye.load.tool{ids=[a.b]}|rye.load.tool{ids=[c]}"},
		{"<permissions><load><tool>a&amp;b</tool></load></permissions>", "error: is no Rye id pattern"},
		{"<permissions><execute><tool>a/<![CDATA[*]]></tool></execute></permissions>", "error: is a second text in <tool>"},
		{"<permissions><execute><tool>a/<!-- x -->*</tool></execute></permissions>", "error: is a second text in <tool>"},
		{"<permissions>all</permissions>", "error: does not belong here"},
		{"<permissions><execute>x</execute></permissions>", "error: does not belong here"},
		{"<permissions><run>*</run></permissions>", "error: <run> does not belong here"},
		{"<permissions><execute><file>x</file></execute></permissions>", "error: <file> does not belong here"},
		{"<permissions><execute><tool><b>x</b></tool></execute></permissions>", "error: <b> does not belong here"},
		{"<permissions x='1'/>", "error: takes no attributes"},
		{"<permissions xmlns='a'/>", "error: takes no attributes"},
		{"<permissions>*</permissions><permissions>*</permissions>", "error: does not belong here"},
		{"<permissions>*", "error: unexpected EOF"},
		{"<permissions>&e;</permissions>", "error: invalid character entity"},
		{"<!DOCTYPE x [<!ENTITY e '*'>]><permissions>*</permissions>", "error: only elements and text"},
		{"<?xml version='1.0'?><permissions>*</permissions>", "error: only elements and text"},
		{"x<permissions>*</permissions>", "error: does not belong here"},
		{"", "error: no <permissions> block"},
		{strings.Repeat(" ", 300_000), "error: over 262144 bytes"},
	} {
		specs, err := capability.ParsePermissions(c.xml)
		var got []string
		for _, s := range specs {
			got = append(got, s.String())
		}
		text := strings.Join(got, "|")
		if want, isError := strings.CutPrefix(c.want, "error: "); isError {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%.80s: got %s, %v, want error %q", c.xml, text, err, want)
			}
		} else if err != nil || text != c.want {
			t.Errorf("%.80s: got %s, %v, want %s", c.xml, text, err, c.want)
		}
	}
}

func FuzzPermissions(f *testing.F) {
	f.Add("<permissions><execute><tool>a.*</tool></execute><search>*</search></permissions>")
	f.Add("<permissions>*</permissions>")
	f.Fuzz(func(t *testing.T, block string) {
		specs, err := capability.ParsePermissions(block)
		if err != nil {
			return
		}
		for _, s := range specs {
			if again, err := capability.ParseSpec(s.String()); err != nil || !again.Equal(s) {
				t.Fatalf("%q gives %s, which reads back as %s, %v", block, s, again, err)
			}
		}
	})
}

func TestClosest(t *testing.T) {
	words := []string{"paths", "in", "hosts", "cmds", "patterns"}
	for word, want := range map[string]string{
		"pathz": "paths", "path": "paths", "ptahs": "paths", "host": "hosts", "paths": "paths", "cmd": "cmds",
		"xyzzy": "", "": "", "completely-different": "",
	} {
		if got := capability.Closest(word, words); got != want {
			t.Errorf("Closest(%q) = %q, want %q", word, got, want)
		}
	}
}
