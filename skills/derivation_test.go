package skills_test

import (
	"strings"
	"testing"

	"capgate/skills"

	"github.com/google/go-cmp/cmp"
)

// options knows one upstream with a prefix, one whose tools have none, and a home.
func options() skills.Options {
	return skills.Options{Upstreams: []string{"files", "chrome-devtools", ""}, Home: "/home/u"}
}

// document writes a SKILL.md with one token.
func document(token string) []byte {
	quoted := "'" + strings.ReplaceAll(token, "'", "''") + "'"
	return []byte("---\nname: one\ndescription: one skill\nallowed-tools: [" + quoted + "]\n---\nDo it.\n")
}

// needs writes what a skill requires, an unknown thing with a ? in front.
func needs(s *skills.Skill) []string {
	var out []string
	for _, n := range s.Needs {
		text := n.String()
		if n.Unknown != "" {
			text = "? " + n.Unknown
		}
		out = append(out, text)
	}
	return out
}

// TestTokens is the table of what each token requires. A ? is a need that nobody
// satisfies, a verb by itself some use of it.
func TestTokens(t *testing.T) {
	for _, tt := range []struct{ token, want string }{
		{"WebFetch(domain:github.com)", "net.get{hosts=[github.com]}"},
		{"WebFetch(domain:GitHub.com.)", "net.get{hosts=[github.com]}"},
		{"WebFetch(domain:*.github.com)", "net.get{hosts=[*.github.com]}"},
		{"WebFetch(domain:*)", "net.get{hosts=[*]}"},
		{"WebFetch(domain:gith*b.com)", "? "},
		{"WebFetch(domain:)", "? "},
		{"WebFetch(github.com)", "? it takes domain: and a host"},
		{"WebFetch", "net.get"},
		{"web_fetch", "net.get"},
		{"webfetch", "net.get"},
		{"WebSearch", "net.get"},
		{"WebSearch(x)", "? it takes nothing in parentheses"},

		{"Read", "fs.read"},
		{"Grep", "fs.read"},
		{"read_file", "fs.read"},
		{"Read(src/**)", "fs.read{paths=[src/**]}"},
		{"Read(./src/a.go)", "fs.read{paths=[src/a.go]}"},
		{"Read(docs)", "fs.read{paths=[**/docs,**/docs/**]}"},
		{"Read(docs/)", "fs.read{paths=[**/docs,**/docs/**]}"},
		{"Read(*.md)", "fs.read{paths=[**/*.md]}"},
		{"Read(src/*)", "fs.read{paths=[src/*,src/*/**]}"}, // a folder that matches is all that is in it
		{"Read(//etc/*)", "fs.read{in=/,paths=[etc/*,etc/*/**]}"},
		{"Read(src/a*)", "fs.read{paths=[src/a*,src/a*/**]}"},
		{"Read(docs/*/api)", "fs.read{paths=[docs/*/api,docs/*/api/**]}"},
		{"Read(out*)", "fs.read{paths=[**/out*,**/out*/**]}"},
		{"Read(src/*.go)", "fs.read{paths=[src/*.go]}"}, // a file has an ending
		{"Read(a*/b*/**/*c*d*)", "fs.read{paths=[a*/b*/**/*c*d*,a*/b*/**/*c*d*/**]}"},
		{"Read(*a*b*c*d*e*f*g*h*)", "? the path holds more than 8 stars"},
		{"Read(src/*.d/)", "fs.read{paths=[src/*.d,src/*.d/**]}"},
		{"Read(*)", "fs.read{paths=[**]}"},
		{"Read(.)", "? "},
		{"Read(**)", "fs.read{paths=[**]}"},
		{"Read(//etc/passwd)", "fs.read{in=/,paths=[etc/passwd]}"},
		{"Read(~/notes/**)", "fs.read{in=/home/u,paths=[notes/**]}"},
		{"Read(/docs)", "? nothing says where that path begins"},
		{"Read(../up)", "? the path is not written in its plain form"},
		{"Read(a/../../up)", "? the path is not written in its plain form"},
		{"Read(//etc/../root)", "? the path is not written in its plain form"},
		{"Read(!secret)", "? the path holds characters that not everybody reads in one way"},
		{"Read([ab].txt)", "? the path holds characters that not everybody reads in one way"},
		{"Read(${HOME}/x)", "? the path holds characters that not everybody reads in one way"},
		{"Read({baseDir}/x)", "? nothing says where {baseDir} is"},
		{"Read()", "? it names no path"},
		{"Write", "fs.write; fs.read"},
		{"Edit(out/**)", "fs.write{paths=[out/**]}; fs.read{paths=[out/**]}"},
		{"apply_patch", "fs.write; fs.read"},

		{"Bash", "proc.eval"},
		{"Bash(*)", "proc.eval"},
		{"Bash(:*)", "proc.eval"},
		{"Bash()", "proc.eval"},
		{"run_shell_command", "proc.eval"},
		{"shell(git:*)", "proc.exec{cmds=[git]}"},
		{"Bash(git:*)", "proc.exec{cmds=[git]}"},
		{"Bash(git *)", "proc.exec{cmds=[git]}"},
		{"Bash(git log:*)", "proc.exec{patterns=[git log **]}"},
		{"Bash(git log *)", "proc.exec{patterns=[git log **]}"},
		{"Bash(git * main)", "proc.exec{cmds=[git]}"},
		{"Bash(git:* push)", "proc.eval"}, // the first word is git:*, a colon that means itself
		{"Bash(git status)", "proc.exec{patterns=[git status]}"},
		{"Bash(git)", "proc.exec{patterns=[git]}"},
		{"Bash(GIT_TERMINAL_PROMPT=0 git *)", "proc.exec{cmds=[git]}"},
		{"Bash(A=* git)", "proc.eval"},
		{"Bash(CI=true A= git *)", "proc.exec{cmds=[git]}"},
		{"Bash(LD_PRELOAD=/tmp/x.so git *)", "proc.eval"},
		{"Bash(PATH=1 git *)", "proc.eval"},
		{"Bash(GIT_DIR=1 git *)", "proc.eval"},
		{"Bash(HOME=0 git *)", "proc.eval"},
		{"Bash(GIT_CONFIG_GLOBAL=true git *)", "proc.eval"},
		{"Bash(A=1 GIT_PAGER=evil git log)", "proc.eval"},
		{"Bash(timeout git *)", "proc.exec{cmds=[git]}"},
		{"Bash(timeout 10 git *)", "proc.exec{patterns=[timeout 10 git **]}"},
		{"Bash(command -v:*)", "proc.exec{patterns=[command -v **]}"},
		{"Bash(eval:*)", "proc.eval"},
		{"Bash(. ./env.sh)", "proc.eval"},
		{"Bash(export LD_PRELOAD=x)", "proc.eval"},
		{"Bash(mkdir*)", "proc.eval"},
		{"Bash(python*bridge_monitor*)", "proc.eval"},
		{"Bash(* --version)", "proc.eval"},
		{"Bash(a && b)", "proc.eval"},
		{"Bash(a; b:*)", "proc.eval"},
		{"Bash(echo $(id))", "proc.eval"},
		{"Bash(python3 x.py *)", "proc.exec{patterns=[python3 x.py **]}"},
		{"Bash(python3:*)", "proc.eval"}, // an interpreter is bounded by nothing
		{"Bash(aws:s3:*)", "proc.exec{cmds=[aws:s3]}"},
		{"Bash(cmd:psql,cmd:mysql)", `proc.exec{patterns=["cmd:psql,cmd:mysql"]}`},
		{`Bash(find . -maxdepth 1 -name "X*")`, "proc.exec{patterns=[find . -maxdepth 1 -name **]}"},
		{`Bash(git commit -m "fix it":*)`, "proc.exec{patterns=[git commit -m **]}"}, // a text in quotes is one word to a shell
		{`Bash(git commit -m "fix" -q)`, "proc.exec{patterns=[git commit -m fix -q]}"},
		{`Bash("my prog" x:*)`, "proc.eval"},
		{`Bash("git" log "a" "b c" d)`, "proc.exec{patterns=[git log a **]}"},
		{"Bash({baseDir}/scanner.sh:*)", "? nothing says where {baseDir} is"},
		{"Bash(${ELSEWHERE}/x:*)", "? it holds a variable that nothing gives a value"},
		{"Bash(./x.sh *)", "? a program is named by a relative path, so that whoever chooses the folder chooses the program"},
		{"Bash(/opt/x/run *)", "proc.exec{cmds=[/opt/x/run]}; fs.read{in=/opt/x,paths=[run]}"},
		{"Bash(~/bin/x *)", "proc.exec{cmds=[/home/u/bin/x]}; fs.read{in=/home/u/bin,paths=[x]}"},

		{"mcp__files__read_text", "tool.invoke{tools=[files.read_text]}"},
		{"mcp__files", "tool.invoke{tools=[files.*]}"},
		{"mcp__files__*", "tool.invoke{tools=[files.*]}"},
		{"mcp__files__read_*", "tool.invoke{tools=[files.read_*]}"},
		{"mcp__files__*_text", "? the name of the tool is no plain name"},
		{"mcp__files__read Bash", "? the name of the tool is no plain name"}, // clients split it
		{"mcp__files__read...", "? the name of the tool is no plain name"},   // whose end some do not read
		{"mcp__files__read,Bash", "? the name of the tool is no plain name"},
		{"mcp__files__* Bash", "? the name of the tool is no plain name"},
		{"mcp__capgate__read Bash", "? the name of the tool is no plain name"},
		{"Mcp(files:read Bash)", "? the name of the tool is no plain name"},
		{"mcp__files__a/b.c", "tool.invoke{tools=[files.a/b.c]}"},
		{"mcp__chrome-devtools__*", "tool.invoke{tools=[chrome-devtools.*]}"},
		{"mcp__capgate__files__read_text", "tool.invoke{tools=[files.read_text]}"},
		{"mcp__capgate__files_read_text", "tool.invoke{tools=[files.read_text]}"},
		{"mcp__capgate__files___x", "? several upstreams could be meant"},
		{"mcp__capgate", "tool.invoke{tools=[*]}"},
		{"Mcp(*)", "? it does not say which server"},
		{"mcp__capgate__run", "tool.invoke{tools=[run]}"},
		{"mcp__plugin_p_capgate__files__read_text", "tool.invoke{tools=[files.read_text]}"},
		{"mcp__plugin_p_files__read_text", "? no upstream has that name"},
		{"mcp__serena__find_symbol", "? no upstream has that name"},
		{"mcp__", "? no upstream has that name"},
		{"mcp____x", "? no upstream has that name"},
		{"mcp__files__x(y)", "? it takes nothing in parentheses"},
		{"Mcp(files:read_text)", "tool.invoke{tools=[files.read_text]}"},
		{"Mcp(files)", "tool.invoke{tools=[files.*]}"},
		{"Mcp(serena:find)", "? no upstream has that name"},

		{"Task", "agent.create"},
		{"Agent(a, b)", "agent.create{id=[a,b]}"},
		{"Agent(plugin:reviewer)", "agent.create{id=[*]}"},
		{"Agent(../x, a)", "agent.create{id=[*]}"},
		{"Skill(*)", ""},
		{"Workflow(x:y)", "agent.create"},
		{"CronCreate", "? what it starts runs outside this gateway"},
		{"AskUserQuestion", ""},
		{"TodoWrite", ""},
		{"TaskStop", ""},
		{"TaskOutput", ""},
		{"ReportFindings", ""},
		{"update_plan", ""},
		{"Skill(other)", "? which skill that is cannot be told here"},
		{"Skill", ""},
		{"Skill(other *)", "? which skill that is cannot be told here"},
		{"Skill()", "? it does not say which skill"},
		{"Skill(../x)", "? it does not say which skill"},

		{"BashOutput", "proc.eval"},
		{"read_mcp_resource", "resource.read"},

		{"Frobnicate(*)", "? no such tool is known"},
		{"read ", "fs.read"},
		{"READ", "? no such tool is known"},
		{"ScheduleWakeup", "? what it starts runs outside this gateway"},
		{"SendUserFile", "fs.read"},
		{"ReadMcpResourceDirTool", "resource.read"},
		{"infsh", "? no such tool is known"},
		{"mcporter(silverbullet:*)", "? no such tool is known"},
		{"Azure MCP/documentation", "? no such tool is known"},
		{"Read, Write", "? no such tool is known"},
		{"Bash(git:*", "? its parentheses do not match"},
		{"Bash(git:*) x", "? its parentheses do not match"},
		{"Bash(git:*)(x)", "? its parentheses do not match"},
		{"Bash)", "? its parentheses do not match"},
		{"(git)", "? its parentheses do not match"},
	} {
		t.Run(tt.token, func(t *testing.T) {
			s := skills.Parse("one", document(tt.token), options())
			if s.Broken != "" {
				t.Fatal(s.Broken)
			}
			got := strings.Join(needs(s), "; ")
			if tt.want == "? " && strings.HasPrefix(got, "? ") {
				return // why, is said by another package
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if _, ok := s.Requires(); ok == strings.Contains(got, "? ") {
				t.Errorf("Requires says %v of %s", ok, got)
			}
		})
	}
}

// TestManifestOfUnknown: what a client does by itself for a server that it lacks counts also
// where servers that nobody knows do not.
func TestManifestOfUnknown(t *testing.T) {
	for entry, want := range map[string]string{
		"value: else":                             "",
		"value: else, command: sh":                "proc.eval",
		"value: else, url: 'http://else.example'": "? a client that lacks the server connects to its url, beside this gateway",
	} {
		dir := tree(t, map[string]string{"a/SKILL.md": md("a"), "a/agents/openai.yaml": "dependencies: {tools: [{type: mcp, " + entry + "}]}"})
		s, _ := skills.Load(skills.Options{IgnoreUnknown: true}, dir).Skill("a")
		if got := strings.Join(needs(s), "; "); got != want {
			t.Errorf("%s: %q, want %q", entry, got, want)
		}
	}
}
