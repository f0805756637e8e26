package skills

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"capgate/capability"
)

// rule says what a tool of some agent requires.
type rule struct {
	names string // as the agents know it, with spaces between
	verbs string // that some use of is required when nothing narrows it; "" for none

	// scope says what stands in the parentheses; nil: nothing may. It returns the
	// scope of each verb, or why nobody can satisfy the token.
	scope func(d *derivation, verbs []string, spec string) ([]capability.Spec, string)

	// refuse says why nobody can satisfy the token whatever stands in it.
	refuse string
}

// leaves is why nobody has a tool that starts something where capgate does not see it.
const leaves = "what it starts runs outside this gateway"

// rules is the table of every tool whose requirement is known, by name. A tool that is not
// in it is unknown, and nobody satisfies what is unknown.
var rules = byName([]rule{
	{names: "WebFetch web_fetch webfetch", verbs: "net.get", scope: (*derivation).domain},
	{names: "WebSearch google_web_search websearch web_search", verbs: "net.get"},

	{names: "Read Grep Glob LS LSP NotebookRead", verbs: "fs.read", scope: (*derivation).paths},
	{names: "read_file read_many_files list_directory grep_search read grep glob list lsp view view_image", verbs: "fs.read", scope: (*derivation).paths},
	{names: "SendUserFile", verbs: "fs.read"},
	{names: "Write Edit MultiEdit NotebookEdit", verbs: "fs.write fs.read", scope: (*derivation).paths},
	{names: "write_file replace apply_patch write edit", verbs: "fs.write fs.read", scope: (*derivation).paths},

	{names: "Bash PowerShell Monitor run_shell_command bash shell Shell exec_command", verbs: "proc.eval", scope: (*derivation).command},
	{names: "BashOutput KillBash KillShell", verbs: "proc.eval"},

	{names: "ListMcpResourcesTool ReadMcpResourceTool ReadMcpResourceDirTool ListMcpResources ReadMcpResource", verbs: "resource.read"},
	{names: "list_mcp_resources read_mcp_resource", verbs: "resource.read"},

	{names: "Task Agent task", verbs: "agent.create", scope: (*derivation).agents},
	{names: "Workflow SendMessage", verbs: "agent.create", scope: (*derivation).anyAgent},
	{names: "ScheduleWakeup RemoteTrigger CronCreate CronDelete CronList CronUpdate", refuse: leaves},

	{names: "AskUserQuestion TodoWrite TodoRead TaskCreate TaskUpdate TaskList TaskGet ExitPlanMode EnterPlanMode ToolSearch"},
	{names: "TaskOutput TaskStop ReportFindings"}, // of what was started by other tools
	{names: "ask_user write_todos todowrite todoread question activate_skill update_plan"},
})

// Tokens that are more than a name.
const (
	skillTool = "Skill"
	agentTool = "Agent"
	mcpTool   = "Mcp"
	mcpPrefix = "mcp__"
)

func byName(list []rule) map[string]rule {
	all := map[string]rule{}
	for _, r := range list {
		for _, name := range strings.Fields(r.names) {
			all[name] = r
		}
	}
	return all
}

// foldedTools are the names of the tools as they are where case does not count.
var foldedTools = foldedNames(rules)

func foldedNames(rules map[string]rule) map[string]bool {
	all := map[string]bool{oneCase(skillTool): true}
	for name := range rules {
		all[oneCase(name)] = true
	}
	return all
}

// isKnown reports whether a token is one of a tool that some agent has.
func isKnown(token string) bool {
	t, _ := parseTool(token)
	_, ok := rules[t.name]
	return ok || t.name == skillTool || t.name == mcpTool || strings.HasPrefix(t.name, mcpPrefix)
}

// isLoose reports whether a token that is no known tool may be one for others: they
// split it elsewhere, heed no case, and a star is all there is.
func isLoose(token string) bool {
	t, _ := parseTool(token)
	words := strings.FieldsFunc(t.name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-/.:", r)
	})
	isOne := func(word string) bool {
		return word != t.name && isKnown(word) || foldedTools[strings.TrimRight(oneCase(word), ".")] // what ... ends is a text to some
	}
	return strings.Contains(t.name, "*") || slices.ContainsFunc(words, isOne)
}

// derivation turns the tokens of one skill into needs.
type derivation struct {
	place
	opts  Options
	names []string // the skills that are used by name

	findings []capability.Finding
}

// warn says of a token what its author would want to know.
func (d *derivation) warn(code, token, text, hint string) {
	d.findings = append(d.findings, capability.Finding{
		Code: "skill_" + code, Severity: capability.Warning, Text: fmt.Sprintf("%q: %s", clip(token), text), Hint: hint,
	})
}

// needs returns what tokens require, each thing once.
func (d *derivation) needs(tokens []string) []Need {
	var needs []Need
	seen := map[string]bool{}
	for _, token := range tokens {
		if seen[token] {
			continue
		}
		seen[token] = true
		specs, why := d.token(token)
		for i := 0; i < len(specs) && why == ""; i++ {
			why = empty(specs[i])
		}
		if why != "" {
			needs = append(needs, d.unknown(token, why)...)
			continue
		}
		for _, spec := range specs {
			needs = append(needs, Need{Token: token, Spec: spec})
		}
	}
	return needs
}

// Why a token is unknown, rather than wrong.
const (
	noTool   = "no such tool is known"
	noServer = "no upstream has that name"
)

const noScope = "it takes nothing in parentheses"

// unknown is the need of a token that nobody can satisfy.
func (d *derivation) unknown(token, why string) []Need {
	d.warn("tool", token, why, d.hint(token))
	if d.opts.IgnoreUnknown && (why == noTool || why == noServer) && !isLoose(token) {
		return nil
	}
	return []Need{{Token: token, Unknown: why}}
}

// empty says why a spec asks for nothing, "" if it asks for something: a scope that
// allows nothing as written would be covered by every set.
func empty(spec capability.Spec) string {
	if spec.Bare {
		return ""
	}
	set, _ := capability.Compile([]capability.Spec{spec}, capability.Options{Agent: capability.Root{Dir: "/", Real: "/"}})
	for g := range set.All() {
		return g.Inert()
	}
	return "no grant stands for it"
}

// token returns what one token requires, or why nobody can satisfy it.
func (d *derivation) token(token string) (specs []capability.Spec, unknown string) {
	t, ok := parseTool(token)
	switch {
	case !ok:
		return nil, "its parentheses do not match"
	case t.name == skillTool:
		return d.skill(t)
	case t.name == mcpTool:
		server, name, _ := strings.Cut(t.spec, ":")
		return d.invoke(server, name)
	case strings.HasPrefix(t.name, mcpPrefix) && t.scoped:
		return nil, noScope
	case strings.HasPrefix(t.name, mcpPrefix):
		return d.mounted(strings.TrimPrefix(t.name, mcpPrefix))
	}
	r, ok := rules[t.name]
	verbs := strings.Fields(r.verbs)
	switch {
	case !ok:
		return nil, noTool
	case r.refuse != "":
		return nil, r.refuse
	case !t.scoped:
		return bare(verbs), ""
	case r.scope == nil:
		return nil, noScope
	}
	return r.scope(d, verbs, t.spec)
}

// hint says what a mistyped token may have meant.
func (d *derivation) hint(token string) string {
	t, _ := parseTool(token)
	if _, known := rules[t.name]; known {
		return ""
	}
	if near := capability.Closest(t.name, append(slices.Sorted(maps.Keys(rules)), skillTool)); near != "" && near != t.name {
		return "did you mean " + near + "?"
	}
	return ""
}

// bare asks for some use of each verb.
func bare(verbs []string) []capability.Spec {
	var specs []capability.Spec
	for _, v := range verbs {
		specs = append(specs, capability.Spec{Verb: v, Bare: true})
	}
	return specs
}

// scoped asks for all that a value of a key allows, of each verb.
func scoped(verbs []string, key string, values ...string) []capability.Spec {
	var specs []capability.Spec
	for _, v := range verbs {
		specs = append(specs, capability.Spec{Verb: v}.With(key, values...))
	}
	return specs
}

// domain reads WebFetch(domain:github.com). A host is written as in a grant; that
// *.github.com leaves out the name itself for some agents asks for a little more.
func (d *derivation) domain(verbs []string, spec string) ([]capability.Spec, string) {
	host, ok := strings.CutPrefix(spec, "domain:")
	if !ok {
		return nil, "it takes domain: and a host"
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if _, err := capability.ParseHost(host); err != nil {
		return nil, err.Error()
	}
	return scoped(verbs, "hosts", host), ""
}

// agents reads Agent(reviewer, tester). Clients have agents that are called as none of ours is,
// as those of a plugin are: who may start every agent may start these.
func (d *derivation) agents(verbs []string, spec string) ([]capability.Spec, string) {
	var ids []string
	for _, name := range strings.FieldsFunc(spec, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
		if capability.AgentID(name) == "" {
			return scoped(verbs, "id", anyName), ""
		}
		ids = append(ids, name)
	}
	if len(ids) == 0 {
		return bare(verbs), ""
	}
	return scoped(verbs, "id", ids...), ""
}

// anyName stands for every agent, in grants and where nobody knows which one it is.
const anyName = "*"

// anyAgent asks for some use of the verbs whatever stands in the parentheses.
func (d *derivation) anyAgent(verbs []string, _ string) ([]capability.Spec, string) {
	return bare(verbs), ""
}

// skill reads Skill(name) and Skill(name *). What the skill requires is found when
// every skill is known.
func (d *derivation) skill(t tool) ([]capability.Spec, string) {
	if !t.scoped || t.spec == anyName {
		return nil, "" // whichever it uses is shown for what that one requires
	}
	name := strings.TrimSpace(strings.TrimSuffix(strings.TrimSuffix(t.spec, "*"), ":"))
	if !isName(name) {
		return nil, "it does not say which skill"
	}
	d.names = append(d.names, name)
	return nil, ""
}

// mounted reads what follows mcp__: a server and one of its tools, all its tools, or
// capgate itself as the client knows it and the name that it shows.
func (d *derivation) mounted(text string) ([]capability.Spec, string) {
	own := shown(text)
	found := d.readings(text, "__")
	for name := range d.readings(own, "__", "_") {
		found[name] = true
	}
	if own != "" && len(found) == 0 && (own == "*" || slices.Contains(d.opts.Upstreams, "")) {
		found[own] = true
	}
	switch len(found) {
	case 0:
		return nil, noServer
	case 1:
		for name := range found {
			return invoked(name)
		}
	}
	return nil, "several upstreams could be meant"
}

// mountName is what clients know capgate itself by.
const mountName = "capgate"

// shown is the name that capgate shows a tool by, * where all of them are meant, and
// "" where another server is.
func shown(text string) string {
	rest, ok := strings.CutPrefix(text+"__", mountName+"__")
	if plugin, is := strings.CutPrefix(text+"__", "plugin_"); is {
		_, rest, ok = strings.Cut(plugin, "_"+mountName+"__")
	}
	name := strings.TrimSuffix(rest, "__")
	switch {
	case !ok:
		return ""
	case name == "":
		return "*"
	}
	return name
}

// readings returns the names among capabilities that a text can stand for: an
// upstream alone, or one and its tool behind a separator.
func (d *derivation) readings(text string, seps ...string) map[string]bool {
	found := map[string]bool{}
	for _, up := range d.opts.Upstreams {
		rest, ok := strings.CutPrefix(text, up)
		if !ok || up == "" {
			continue
		}
		if rest == "" {
			found[up+".*"] = true
		}
		for _, sep := range seps {
			if tool, ok := strings.CutPrefix(rest, sep); ok && tool != "" {
				found[up+"."+tool] = true
				if !strings.HasPrefix(tool, "_") { // else it could be of either separator
					break
				}
			}
		}
	}
	return found
}

// invoke reads a server and one of its tools that stand apart.
func (d *derivation) invoke(server, name string) ([]capability.Spec, string) {
	switch {
	case server == "" || strings.Contains(server, "*"):
		return nil, "it does not say which server"
	case !slices.Contains(d.opts.Upstreams, server):
		return nil, noServer
	}
	if name == "" {
		name = "*"
	}
	return invoked(server + "." + name)
}

// invoked asks for the tools of a name, which may end in a star. A star anywhere
// else, and what means more to a grant than to a client, is not understood.
func invoked(name string) ([]capability.Spec, string) {
	if strings.HasSuffix(name, "...") || strings.ContainsFunc(strings.TrimSuffix(name, "*"), func(r rune) bool { return r > unicode.MaxASCII || !isWordRune(r) && r != '/' }) {
		return nil, "the name of the tool is no plain name"
	}
	return scoped([]string{"tool.invoke"}, "tools", name), ""
}
