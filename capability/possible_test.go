package capability_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/capability"
)

// possibilities reads needs with blanks: "fs.read path=#1; proc.exec cwd=#2 argv=#3".
// What has no part with a # is settled.
func possibilities(t testing.TB, v capability.View, text string) []capability.Possibility {
	t.Helper()
	var needs []capability.Possibility
	for one := range strings.SplitSeq(text, "; ") {
		if strings.HasPrefix(one, "known ") {
			needs = append(needs, capability.Possibility{Known: need(t, one[len("known "):])})
			continue
		}
		verb, rest, _ := strings.Cut(one, " ")
		n := capability.Possibility{Verb: capability.Verb(verb), View: v}
		for word := range strings.SplitSeq(rest, "|") {
			name, value, ok := strings.Cut(word, "=")
			if !ok {
				continue
			}
			p := capability.Part{Name: name, Text: value}
			if number, isBlank := strings.CutPrefix(value, "#"); isBlank {
				p.Text = ""
				p.Blank, _ = strconv.Atoi(number)
			}
			n.Parts = append(n.Parts, p)
		}
		needs = append(needs, n)
	}
	return needs
}

// many writes a list of patterns that no guess finds what they have in common with
// others: only their last one does.
func many(n int, format, last string) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(format, i))
	}
	return "[" + strings.Join(append(list, last), ",") + "]"
}

// TestPossible: the answers, with the value of each blank; "?" is one that is not
// known.
func TestPossible(t *testing.T) {
	odd := capability.View{Cwd: "/w/50%41"}
	nowhere := capability.View{}
	for _, tt := range []struct {
		name   string
		view   capability.View
		needs  string
		chain  []string // a set each, grants with spaces between
		want   string
		bounds string // a ceiling
	}{
		{name: "settled", needs: "known fs.read{path=a}; fs.read path=a; memory.read", chain: []string{"fs.read{paths=[a]} memory.read{keys=[\"*\"]}"}, want: "[]"},
		{name: "settled and denied", needs: "known fs.read{path=b}", chain: []string{"fs.read{paths=[a]}"}, want: "no"},
		{name: "settled and unreadable", needs: "fs.read path=", chain: []string{"fs.read{paths=[a]}"}, want: "no"},
		{name: "nobody", needs: "fs.read path=#1", want: "no"},
		{name: "nil link", needs: "fs.read path=#1", chain: []string{""}, want: "no"},
		{name: "inert", needs: "fs.read path=#1", chain: []string{"fs.read"}, want: "no"},
		{name: "one path", needs: "fs.read path=#1", chain: []string{"fs.read{paths=[a]}"}, want: "[[/w/a]]"},
		{name: "two roles", needs: "fs.read path=#1; fs.delete path=#1", chain: []string{"fs.read{paths=[\"a*\"]} fs.delete{paths=[\"*b\"]}"}, want: "[[/w/ab]]"},
		{name: "two roles apart", needs: "fs.read path=#1; fs.delete path=#1", chain: []string{"fs.read{paths=[a]} fs.delete{paths=[b]}"}, want: "no"},
		{name: "two blanks", needs: "fs.read path=#1; fs.delete path=#2", chain: []string{"fs.read{paths=[a]} fs.delete{paths=[b]}"}, want: "[[/w/a] [/w/b]]"},
		{name: "tree of globs together", needs: "fs.read tree=#1", chain: []string{"fs.read{paths=[\"a?\",\"a?/**\"]}"}, want: "[[/w/ax]]"},
		{name: "tree of segments", needs: "fs.read tree=#1", chain: []string{"fs.read{paths=[\"[a-m]*/**\",\"[n-z]*/**\"]}"}, want: "[[/w/ax/x]]"},
		{name: "tree of one kind of file", needs: "fs.read tree=#1", chain: []string{"fs.read{paths=[\"**/*.go\"]}"}, want: "no"},
		{name: "glob", needs: "fs.read glob=#1", chain: []string{"fs.read{paths=[\"*.go\"]}"}, want: "[[/w/x.go]]"},
		{name: "found late", needs: "fs.read path=#1; fs.write path=#1", chain: []string{"fs.read{paths=" + many(70, "a%d", "z") + "} fs.write{paths=[z]}"}, want: "[[/w/z]]"},
		{name: "a name nobody reads in one way", needs: "fs.read path=#1", chain: []string{"fs.read{paths=[\"a%41\"]}"}, want: "no"},
		{name: "a name like that or another", needs: "fs.read path=#1", chain: []string{"fs.read{paths=[\"{%41,b/c/d}\"]}"}, want: "[[/w/b/c/d]]"},
		{name: "a directory with such a name", view: odd, needs: "fs.read path=#1", chain: []string{"fs.read{in=\"/w/50%41\",paths=[a]}"}, want: "[[a]]"},
		{name: "such a directory itself", view: odd, needs: "fs.write path=#1", chain: []string{"fs.write{in=\"/w/50%41\",paths=[\"*\"]} fs.write{in=\"/w\",paths=[\"50%41\"]}"}, want: "[[x]]"},
		{name: "no directory", view: nowhere, needs: "fs.read path=#1", chain: []string{"fs.read{paths=[\"a%4*\"]}"}, want: "[[/w/a%4x]]"},
		{name: "capped", needs: "fs.read path=#1", chain: []string{"fs.read{in=/w,paths=[\"**a????????????????????????????????\"]}", "fs.read{in=/w,paths=[\"**[b-z]????????????????????????????????\"]}"}, want: "[?]"},

		{name: "URL", needs: "net.get url=#1; net.post url=#1", chain: []string{"net.get{hosts=[\"*\"]} net.post{hosts=[\"*.a.com:8443\"]}"}, want: "[[https://x.a.com:8443/]]"},
		{name: "URL on port 80", needs: "net.get url=#1", chain: []string{"net.get{hosts=[\"a.com:80\"]}"}, want: "[[http://a.com/]]"},
		{name: "apex", needs: "net.get url=#1", chain: []string{"net.get{hosts=[\"*.a.com\"]}", "net.get{hosts=[a.com]}"}, want: "[[https://a.com/]]"},
		{name: "public part of a range", needs: "net.get url=#1", chain: []string{"net.get{hosts=[\"*\"]}", "net.get{hosts=[\"10.0.0.0/7\"]}"}, want: "[[https://11.0.0.0/]]"},
		{name: "no public part", needs: "net.get url=#1", chain: []string{"net.get{hosts=[\"*\"]}", "net.get{hosts=[\"10.0.0.0/8\"]}"}, want: "no"},
		{name: "hosts apart", needs: "net.get url=#1", chain: []string{"net.get{hosts=[a.com]}", "net.get{hosts=[b.com]}"}, want: "no"},
		{name: "host and port", needs: "net.connect host=#1", chain: []string{"net.connect{hosts=[\"db.a.com:5432\"]}"}, want: "[[db.a.com:5432]]"},
		{name: "URL and host at once", needs: "net.get url=#1; net.put host=#1", chain: []string{"net.get{hosts=[\"*\"]} net.put{hosts=[\"*\"]}"}, want: "no"},
		{name: "URL and path at once", needs: "net.get url=#1; fs.read path=#1", chain: []string{"net.get{hosts=[\"*\"]} fs.read{in=/}"}, want: "no"},
		{name: "URL and resource", needs: "resource.read uri=#1; net.get url=#1", chain: []string{"net.get{hosts=[\"*.com\"]} resource.read{uris=[\"https://x.com/*\"]}"}, want: "[[https://x.com/]]"},

		{name: "path and key", needs: "fs.read path=#1; memory.read key=#1", chain: []string{"fs.read{paths=[notes]} memory.read{keys=[notes]}"}, want: "[[notes]]"},
		{name: "path and key apart", needs: "fs.read path=#1; memory.read key=#1", chain: []string{"fs.read{paths=[\"a*\"]} memory.read{keys=[\"b*\"]}"}, want: "[?]"},
		{name: "path and a key that cannot be", needs: "fs.read path=#1; memory.read key=#1", chain: []string{"fs.read{in=/w} memory.read{keys=[a]}", "fs.read{in=/w} memory.read{keys=[b]}"}, want: "no"},
		{name: "one value for two words", needs: "agent.update id=#1|path=#1", chain: []string{"agent.update{ids=[b],paths=[\"b/*\"]}"}, want: "[?]"},
		{name: "too many products", needs: "tool.invoke tool=#1|args.o=#2", chain: []string{
			"tool.invoke{tools=" + many(80, "a%d", "z") + ",args={o=" + many(80, "a%d", "z") + "}}",
			"tool.invoke{tools=[y,z],args={o=[y]}}",
		}, want: "[? ?]"},

		{name: "program", needs: "proc.exec argv=#1", chain: []string{"proc.exec{cmds=[ls]}"}, want: "[[ls x]]"},
		{name: "program by itself", needs: "proc.exec argv0=#1", chain: []string{"proc.exec{cmds=[ls]}"}, want: "[[ls]]"},
		{name: "any program", needs: "proc.exec cwd=#1|command=#2", chain: []string{"proc.exec{in=/w/a}"}, want: "[[/w/a] [x]]"},
		{name: "program elsewhere", needs: "proc.exec argv=#1|cwd=/x", chain: []string{"proc.exec{cmds=[ls]}"}, want: "no"},
		{name: "program nowhere", view: nowhere, needs: "proc.exec argv=#1", chain: []string{"proc.exec{cmds=[ls]}"}, want: "no"},
		{name: "program in an unreadable place", needs: "proc.exec argv=#1|cwd= ", chain: []string{"proc.exec{cmds=[ls]}"}, want: "no"},
		{name: "settled program", needs: "proc.exec cwd=#1|command=git status", chain: []string{"proc.exec{in=/w/a,patterns=[\"git_status\"]} proc.exec{in=/x,cmds=[ls]}"}, want: "[[/w/a]]"},
		{name: "settled argv", needs: "proc.exec cwd=#1|argv0=git|argv0=log", chain: []string{"proc.exec{in=/w/a,patterns=[\"git_status\"]} proc.exec{in=/w/b,cmds=[git]}"}, want: "[[/w/b]]"},
		{name: "subcommand", needs: "proc.exec argv=#1", chain: []string{"proc.exec{patterns=[\"git_*_--stat\"]}", "proc.exec{patterns=[\"git_show_**\"]}"}, want: "[[git show --stat]]"},
		{name: "some subcommand", needs: "proc.exec argv=#1", chain: []string{"proc.exec{patterns=[\"git_*\"]}"}, want: "git"},
		{name: "no subcommand helps", needs: "proc.exec argv=#1", chain: []string{"proc.exec{patterns=[\"git_*_--exec=?*\"]}"}, want: "[?]"},
		{name: "an option that is too much", needs: "proc.exec argv=#1", chain: []string{"proc.exec{patterns=[\"rg_--pre=*\"]}"}, want: "[?]"},
		{name: "spelt out by all", needs: "proc.exec argv=#1", chain: []string{"proc.exec{patterns=[\"git_-c_x\"]}", "proc.exec{in=/w}"}, want: "[[git -c x]]"},
		{name: "spelt out by one", needs: "proc.exec argv=#1", chain: []string{"proc.exec{patterns=[\"git_-c_x\"]}", "proc.exec{patterns=[\"git_**\",ls]}"}, want: "no"},
		{name: "outside the root in so many words", needs: "proc.exec argv=#1", chain: []string{"proc.exec{patterns=[\"cat_/etc/passwd\"]}"}, want: "no"},
		{name: "command line", needs: "proc.exec command=#1", chain: []string{"proc.exec{patterns=[\"make_{a,b}\"]}"}, want: "[[make b]]"},
		{name: "command line of plain words", needs: "proc.exec command=#1", chain: []string{"proc.exec{patterns=[\"make_;*\",\"make_ab*\"]}", "proc.exec{patterns=[\"make_*c\"]}"}, want: "[[make abc]]"},
		{name: "no word that is plain", needs: "proc.exec command=#1", chain: []string{"proc.exec{patterns=[\"make_;*\"]}"}, want: "no"},
		{name: "program without a directory", view: nowhere, needs: "proc.exec command=ls", chain: []string{"proc.exec{cmds=[ls]}"}, want: "no"},
		{name: "a place outside the root behind a wildcard", needs: "proc.exec argv=#1", chain: []string{"proc.exec{patterns=[\"foo_/etc*\"]}"}, want: "[?]"},
		{name: "program in a tree", needs: "proc.exec cwd=#1|argv=#2; fs.read tree=#1", chain: []string{"proc.exec{in=/w,cmds=[ls]} fs.read{paths=[\"a?\",\"a?/**\"]}"}, want: "[[/w/ax] [ls x]]"},
		{name: "shell", needs: "proc.eval command=#1", chain: []string{"proc.eval{in=/w}"}, want: "[[x]]"},
		{name: "shell elsewhere", needs: "proc.eval command=#1", chain: []string{"proc.eval{in=/x}"}, want: "no"},

		{name: "tool", needs: "tool.invoke tool=s.t|args.o=#1", chain: []string{"tool.invoke{tools=[\"s.*\"],args={o=[\"a*\"]}}", "tool.invoke{tools=[s.t],args={o=[\"*b\"]}}"}, want: "[[ab]]"},
		{name: "tool with an argument it lacks", needs: "tool.invoke tool=s.t", chain: []string{"tool.invoke{tools=[\"s.*\"],args={o=[\"a*\"]}}"}, want: "no"},
		{name: "other tool", needs: "tool.invoke tool=s.t|args.o=#1", chain: []string{"tool.invoke{tools=[s.u]}"}, want: "no"},
		{name: "tool and settled argument", needs: "tool.invoke tool=#1|args.o=ab", chain: []string{"tool.invoke{tools=[\"s.*\"],args={o=[\"a*\"]}}"}, want: "[[s.x]]"},
		{name: "tool within its ceiling", needs: "tool.invoke tool=#1", bounds: "tool.invoke{tools=[\"*.t\"]}", chain: []string{"tool.invoke{tools=[\"s.*\"]}"}, want: "[[s.t]]"},
		{name: "tool beyond its ceiling", needs: "tool.invoke tool=#1", bounds: "tool.invoke{tools=[u]}", chain: []string{"tool.invoke{tools=[\"s.*\"]}"}, want: "no"},
		{name: "item within a ceiling", needs: "rye.execute.tool id=#1", bounds: "tool.invoke{tools=[\"*.t\"]}", chain: []string{"rye.execute.tool{ids=[\"s.*\"]}"}, want: "[[s/t]]"},
		{name: "item", needs: "rye.load.tool id=#1", chain: []string{"rye.load.tool{ids=[\"a.?.*\"]}", "rye.load.tool{ids=[\"*.b.*\"]}"}, want: "[[a/b/x]]"},
		{name: "search for nothing", needs: "rye.search.tool; fs.read path=#1", chain: []string{"rye.search.tool{ids=[a]} fs.read{in=/w}"}, want: "[[/w]]"},
		{name: "agent", needs: "agent.grant id=#1", chain: []string{"agent.grant{id=[\"a*\"]}", "agent.grant{id=[\"*b\",\"agents/x\"]}"}, want: "[[agents/ab]]"},
		{name: "oneself", needs: "obs.query agent=#1", chain: []string{"obs.query"}, want: "[[self]]"},
		{name: "record", needs: "records.update path=#1|class=note", chain: []string{"records.update{paths=[\"a/*\"],classes=[note]}", "records.update{paths=[\"*/b\"]}"}, want: "[[a/b]]"},
		{name: "record of an agent", needs: "records.update path=#1|class=#2", chain: []string{"agent.update{ids=[a]} records.update{paths=[\"agents/*\"],classes=[agent]}"}, want: "[[agents/a] [x]]"},
		{name: "record and a key", needs: "records.update class=#1; memory.read key=#1", chain: []string{"agent.update memory.read{keys=[b]}"}, want: "no"},
		{name: "record with a dot behind a comma", needs: "records.update path=#1", chain: []string{"records.update{paths=[\"a,[.]\"]}"}, want: "[?]"},
		{name: "tools with an argument in common", needs: "tool.invoke tool=#1|args.o=#2; tool.invoke tool=#3|args.o=#2", chain: []string{"tool.invoke{tools=[a],args={o=[x]}}"}, want: "[[a] [x] [a]]"},
		{name: "record that is an agent", needs: "records.update class=Agent|path=#1", chain: []string{"agent.update"}, want: "[[x]]"},
		{name: "records of agents behind a wildcard", needs: "records.delete class=#1", chain: []string{"records.delete{classes=[\"agen[t]\"]}"}, want: "[?]"},
		{name: "records of agents alone", needs: "records.delete class=#1", chain: []string{"records.delete{classes=[agent]}"}, want: "no"},
		{name: "no word at all", needs: "memory.read key=#1", chain: []string{"memory.read{keys=[\"{,a}\"]}"}, want: "[[a]]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := view
			if tt.view.Cwd != "" || tt.name == "no directory" || tt.name == "program nowhere" || tt.name == "program without a directory" {
				v = tt.view
			}
			var chain, ceilings capability.Chain
			for _, grants := range tt.chain {
				var set *capability.Set
				if grants != "" {
					words := strings.Fields(grants)
					for i := range words {
						words[i] = strings.ReplaceAll(words[i], "_", " ")
					}
					set = compileBelow(t, words)
				}
				chain = append(chain, capability.Link{Set: set})
			}
			if tt.bounds != "" {
				ceilings = capability.Chain{{Set: compile(t, tt.bounds)}}
			}
			witness, ok := chain.Possible(ceilings, possibilities(t, v, tt.needs)...)
			got := "no"
			if ok {
				var words []string
				for _, w := range witness {
					if w == nil {
						words = append(words, "?")
					} else {
						words = append(words, fmt.Sprint(w))
					}
				}
				got = "[" + strings.Join(words, " ") + "]"
			}
			if tt.name == "some subcommand" {
				got = strings.Trim(strings.Fields(got)[0], "[")
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// compileBelow compiles grants that name their own root, and gives the others one.
func compileBelow(t testing.TB, texts []string) *capability.Set {
	t.Helper()
	var specs []capability.Spec
	for _, text := range texts {
		s, err := capability.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		if r := s.Verb[:2]; (r == "fs" || r == "pr") && !s.Bare {
			if _, ok := s.Get("in"); !ok && s.Verb != "prompt.get" {
				s = s.With("in", "/w")
			}
		}
		specs = append(specs, s)
	}
	set, _ := capability.Compile(specs, capability.Options{})
	return set
}
