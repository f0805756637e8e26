package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"capgate/capability"
)

// Checks returns every check, in the order of its list.
func Checks() []Check {
	return []Check{
		{"invalid_config", capability.Error, "records and configuration that cannot be loaded", "mend it; until then its agent may do nothing", loaded("invalid_config")},
		{"unknown_verb", capability.Error, "verbs that are not in the catalogue", "capgate catalogue lists the verbs", loaded("unknown_verb")},
		{"invalid_grant", capability.Error, "entries that are no grants", "write verb{key=[value]} or verb: {key: [value]}", loaded("invalid_grant")},
		{"unknown_key", capability.Warning, "scope keys that the verb does not have", "capgate catalogue lists the keys of each verb", loaded("unknown_key")},
		{"wrong_type", capability.Warning, "scope values of the wrong type", "write text or a list of text", loaded("wrong_type")},
		{"invalid_value", capability.Warning, "scope values that cannot be read", "", loaded("invalid_value")},
		{"empty_scope", capability.Warning, "scopes that name nothing", "name what is meant, or remove the grant", loaded("empty_scope")},
		{"bare_grant", capability.Warning, "external verbs without a scope", "", loaded("bare_grant")},
		{"no_root", capability.Warning, "file and program grants without a sandbox root", "add in: to the grant, or sandbox: to the record or the configuration", loaded("no_root")},
		{"outside_root", capability.Warning, "grants outside the sandbox root", "move the grant inside the root, or widen sandbox: in the configuration", loaded("outside_root")},
		{"interpreter", capability.Warning, "interpreters named as programs", "", loaded("interpreter")},
		{"option", capability.Warning, "argv patterns that spell out what a wildcard never allows", "spell the whole call out, without wildcards", loaded("option")},
		{"shorthand_withheld", capability.Warning, "shorthand that a broken entry holds back", "mend the entry; until then the shorthand grants nothing for its resource", loaded("shorthand_withheld")},
		{"symlink", capability.Warning, "links in the folders of records, which are not followed", "put the record itself into the folder", loaded("symlink")},
		{"no_agent", capability.Warning, "files among the records that hold no agent", "", loaded("no_agent")},
		{"absent", capability.Warning, "programs, directories and certificates that are not there", "", loaded("absent")},
		{"unset_secret", capability.Note, "secrets that cannot be read from here", "", loaded("unset_secret")},
		{"no_agents", capability.Warning, "a configuration without agents", "write agents: ./agents", loaded("no_agents")},
		{"wide_sandbox", capability.Warning, "a sandbox root that is the whole file system", "name the folder that agents work in", loaded("wide_sandbox")},
		{"undeclared", capability.Warning, "upstreams that declare nothing", "write declares: with what the upstream may touch, or unmediated: true", loaded("undeclared")},
		{"clear_secret", capability.Warning, "credentials in clear in the configuration", "write {{secret:name}}, and say under secrets: where it comes from", loaded("clear_secret")},
		{"additional_arguments", capability.Warning, "mapped tools that pass on arguments without a role", "give the arguments roles", loaded("additional_arguments")},
		{"any_program", capability.Warning, "proc.exec without cmds: or patterns:, which is inert", "name the programs: cmds: [git, rg]", loaded("any_program")},
		{"clamped", capability.Warning, "roots that were narrowed at load", "write the root that is meant", loaded("clamped")},
		{"exceeds_parent", capability.Warning, "grants that an agent above does not allow", "grant it to the agent above as well, or remove it here", loaded("exceeds_parent")},
		{"missing_parent", capability.Error, "agents that hang from one that is not there", "name an agent that exists; until then nothing is allowed", loaded("missing_parent")},
		{"skill_hidden", capability.Warning, "skills that are hidden from everybody", "mend its SKILL.md, or take the skill out of the folder", loaded("skill_hidden")},
		{"skill_tool", capability.Warning, "tools of skills that nobody knows", "write the name that a client knows; until then nobody satisfies the skill", loaded("skill_tool")},
		{"skill_vouched", capability.Warning, "skills that somebody vouches for and that are others by now, or gone", "take the name out of skills.vouched:", loaded("skill_vouched")},
		{"skill_unsatisfied", capability.Warning, "skills that use others which are hidden", "mend the other skill, or leave it out", loaded("skill_unsatisfied")},
		{"skill_colon", capability.Warning, "programs of skills that are named by a slip", "", loaded("skill_colon")},
		{"skill_folder", capability.Warning, "folders of skills that cannot be read", "make the folder, or take it out of skills:", loaded("skill_folder")},
		{"skill_limit", capability.Error, "folders of skills that are over a limit", "name smaller folders", loaded("skill_limit")},
		{"skill_link", capability.Warning, "links in the folders of skills, which are not followed", "name the folder that it leads to under skills:", loaded("skill_link")},
		{"skill_mirror", capability.Warning, "mirrors of skills for agents that are not there", "make a record for the agent, or remove the mirror", loaded("skill_mirror")},
		{"provider_agent", capability.Warning, "providers for agents that are not there", "make a record for the agent, or take it out of agents:", loaded("provider_agent")},
		{"provider_tool", capability.Warning, "grants of provider tools that no provider has", "write the name of one that is there", loaded("provider_tool")},
		{"unserved", capability.Note, "tools of servers that are not there", "add the server to upstreams:, or remove the name", loaded("unserved")},
		{"skill_readable", capability.Warning, "grants to read where the skills are, hidden ones among them", "keep the skills outside of what agents read; those that are shown are read as skills", grantsOf(skillReadable)},
		{"skill_name", capability.Note, "skills that are not called what their folder is", "rename the folder", loaded("skill_name")},
		{"skill_prompt", capability.Note, "skills of one name, which are no prompts to who sees both", "give one of them another name", loaded("skill_prompt")},
		{"skill_format", capability.Note, "skills that are not in the protocol's list, as clients would refuse all others with them", "write them as the format says", loaded("skill_format")},
		{"own_files", capability.Error, "grants to write or run programs where the gateway keeps its own files", "keep records and configuration outside of every writable root; the gateway refuses to touch them in any case", grants(ownFiles)},
		{"writable_start", capability.Warning, "grants to write where servers are started", "start them elsewhere: cwd: of the upstream names a folder that no agent writes in", grants(writableStart)},
		{"project_code", capability.Note, "programs that run the project's own code", "the OS sandbox is the fence for what they do", grants(projectCode)},
		{"any_tool", capability.Error, "tool.invoke for every tool", "name the tools: tools: [files.*]", grants(anyTool)},
		{"any_host", capability.Warning, "net verbs on any public host", "name the hosts: hosts: [\"*.example.com\"]", grants(anyHost)},
		{"whole_disk", capability.Error, "grants on the whole file system", "name the folder: in: ~/project", grants(wholeDisk)},
		{"everything", capability.Error, "Rye's permission for everything", "name what is needed", grants(everything)},
		{"unasked", capability.Note, "grants that nothing here asks for", "remove that, or keep it for a mapping that names the verb", grants(unasked)},
		{"provider_scope_wider", capability.Warning, "hosts that a model's provider takes for more than was granted", "write subdomains: strict for the provider, or grant \"*.name\" where that is meant", widerAtProvider},
		{"local_name", capability.Note, "names that lead to this machine or network", "the address it leads to must be named as well", grants(localName)},
		{"unconfined", capability.Warning, "upstreams that run as the user of the gateway", "grants fence what is called, not what the program does; run only programs that you trust", upstreams(unconfined)},
		{"unmediated", capability.Error, "upstreams that are called although they declare nothing", "write declares: with what the upstream may touch", upstreams(unmediated)},
		{"toxic_flow", capability.Warning, "agents that could carry private data out at a stranger's word", "give the tools of one label to another agent, or require approval: approve: [TOOL]", toxicFlow},
		{"unpinned", capability.Warning, "upstreams whose tools may change unseen", "write pins: tofu, or pins: require", upstreams(unpinned)},
		{"unmapped", capability.Note, "upstreams without a mapping", "write mapping: with the name of one that says what the arguments mean", upstreams(unmapped)},
		{"exposed_key", capability.Warning, "keys of providers that the client of an agent finds by itself", "remove the key; set the agent's token in its place", exposedKeys},
		{"provider_relay", capability.Note, "gateways in the place of a provider", "make sure that it keeps to them; where it does not, approve: [provider.web_search, provider.web_fetch] in a record leaves both out", relays},
		{"readable_key", capability.Warning, "private keys that others may read", "chmod 600 makes it private", readableKeys},
		{"others_write", capability.Warning, "records, configuration, mappings and skills that others may write", "", loosePlaces},
		{"relative_paths", capability.Note, "upstreams whose relative paths are denied", "name files by their whole paths; or start the program itself, in the folder that cwd: names, with arguments that lead to what is there, and give it in env: what has a slash and is no path, as openai/gpt-4", upstreams(adrift)},
		{"repository_above", capability.Note, "upstreams from which git does not see the repository that they lie in", "where git should, write GIT_CEILING_DIRECTORIES: \"\" into env: of the upstream: it then reads and writes all of that repository", upstreams(within)},
		{"lossy_log", capability.Warning, "calls that are forwarded without a record", "write on_error: deny", lossyLog},
		{"backend", capability.Note, "the sandbox backend of this platform", "", backend},
	}
}

func ownFiles(s Subject, g *capability.Grant) string {
	switch g.Verb() {
	case "fs.write", "fs.delete", "proc.exec", "proc.eval":
	default:
		return ""
	}
	set, _ := capability.Compile([]capability.Spec{g.Spec()}, capability.Options{})
	for _, own := range s.Own {
		if capability.NewFence(own).Overlaps(set) {
			return fmt.Sprintf("%s covers %s", g, own.Dir)
		}
	}
	return ""
}

// skillReadable finds grants that open the files of hidden skills, as files.
func skillReadable(_ Subject, a Agent, g *capability.Grant) string {
	if g.Verb() != "fs.read" {
		return ""
	}
	set, _ := capability.Compile([]capability.Spec{g.Spec()}, capability.Options{})
	for _, dir := range a.Skills {
		if capability.NewFence(dir).Overlaps(set) {
			return fmt.Sprintf("%s reads the files in %s", g, dir.Dir)
		}
	}
	return ""
}

// writableStart finds grants to choose what a server is, the next time it is started.
func writableStart(s Subject, g *capability.Grant) string {
	if g.Verb() != "fs.write" {
		return ""
	}
	set, _ := capability.Compile([]capability.Spec{g.Spec()}, capability.Options{})
	for _, u := range s.Upstreams {
		for _, file := range u.Starts {
			if capability.NewFence(file).Overlaps(set) {
				return fmt.Sprintf("%s covers %s, which may say what runs as the upstream %s", g, file.Dir, u.Name)
			}
		}
	}
	return ""
}

func projectCode(_ Subject, g *capability.Grant) string {
	cmds, _ := g.Spec().Get("cmds")
	var found []string
	for _, c := range cmds.Values {
		if capability.RunsProject(c) {
			found = append(found, c)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return fmt.Sprintf("%s runs what the project says", strings.Join(found, ", "))
}

func anyTool(_ Subject, g *capability.Grant) string {
	if g.Verb() == "tool.invoke" && g.Wide() != "" {
		return fmt.Sprintf("%s calls every tool that has no mapping", g)
	}
	return ""
}

func anyHost(_ Subject, g *capability.Grant) string {
	if strings.HasPrefix(string(g.Verb()), "net.") && g.Wide() != "" {
		return fmt.Sprintf("%s reaches every public host", g)
	}
	return ""
}

func wholeDisk(_ Subject, g *capability.Grant) string {
	if strings.HasPrefix(string(g.Verb()), "fs.") && g.Wide() != "" {
		return fmt.Sprintf("%s is the whole file system", g)
	}
	return ""
}

func everything(_ Subject, g *capability.Grant) string {
	if g.Verb() != "rye.execute.tool" {
		return ""
	}
	if ids, _ := g.Spec().Get("ids"); len(ids.Values) != 1 || ids.Values[0] != "*" {
		return ""
	}
	return "every tool may be executed"
}

// unasked finds grants of another dialect's verbs that the gateway has no use for.
func unasked(_ Subject, g *capability.Grant) string {
	if why := g.Unasked(); why != "" {
		return fmt.Sprintf("%s holds what nothing here asks for: %s", g, why)
	}
	return ""
}

// localName finds hosts that are granted by a name which only this machine or
// network knows: the name is allowed, what it resolves to is not.
func localName(_ Subject, g *capability.Grant) string {
	for _, h := range g.Hosts() {
		if name := h.String(); strings.HasPrefix(name, "localhost") || strings.Contains(name, ".localhost") {
			return fmt.Sprintf("%s is granted by name", name)
		}
	}
	return ""
}

// widerAtProvider finds names that are granted without what is beneath them, where
// a provider has no way to say so.
func widerAtProvider(s Subject) []capability.Finding {
	var found []capability.Finding
	for _, a := range s.Agents {
		type place struct {
			pos capability.Pos
			by  string
		}
		granted := a.alone()
		names, places := map[place][]string{}, []place(nil)
		for _, name := range slices.Sorted(maps.Keys(a.Wider)) {
			pos, ok := granted[name]
			if !ok {
				pos = a.Pos // an agent above narrows what is granted to that name
			}
			at := place{pos, strings.Join(a.Wider[name], ", ")}
			if names[at] == nil {
				places = append(places, at)
			}
			names[at] = append(names[at], name)
		}
		for _, at := range places {
			text := fmt.Sprintf("%s: %s: by %s the names beneath are read as well", a.ID, strings.Join(names[at], ", "), at.by)
			found = append(found, capability.Finding{Pos: at.pos, Text: text})
		}
	}
	return found
}

// alone returns where names are granted without what is beneath them.
func (a Agent) alone() map[string]capability.Pos {
	at := map[string]capability.Pos{}
	for g := range a.Set.All() {
		pos := g.Spec().Pos
		if g.Inert() != "" || g.Verb() != "net.get" || pos.File == "" {
			continue
		}
		for _, h := range g.Hosts() {
			name, tree := h.Name()
			if _, before := at[name]; !before && name != "" && !tree && h.Port() == 0 {
				at[name] = pos
			}
		}
	}
	return at
}

// unconfined finds programs that the OS does not hold: there is no sandbox yet.
func unconfined(u Upstream) string {
	if !u.Program {
		return ""
	}
	return "runs unconfined: it may do whatever the user of the gateway may"
}

func unmediated(u Upstream) string {
	if !u.Unmediated {
		return ""
	}
	return "is unmediated: its tools are called by agents whose policy demands a declaration, and there is none"
}

// toxicFlow finds agents that read what is private and what strangers write, and can
// send: whoever writes what they read can have the one sent to him.
func toxicFlow(s Subject) []capability.Finding {
	var found []capability.Finding
	for _, a := range s.Agents {
		in, from, out := a.labelled("private_in"), a.labelled("untrusted_in"), a.labelled("public_out")
		if in != "" && from != "" && out != "" {
			found = append(found, capability.Finding{Pos: a.Pos, Text: fmt.Sprintf(
				"%s may read private data (%s), read what strangers write (%s) and send to the outside (%s)", a.ID, in, from, out)})
		}
	}
	return found
}

// labelled names the first of the agent's tools that has a label.
func (a Agent) labelled(label string) string {
	for _, t := range a.Labelled {
		if slices.Contains(t.Labels, label) {
			return t.Tool
		}
	}
	return ""
}

func unpinned(u Upstream) string {
	switch {
	case u.Unpinned:
		return "has pins: off: its tools may change between a look and a call"
	case len(u.Tools) > 0:
		return "has pins: off for " + strings.Join(u.Tools, ", ") + ", which may change between a look and a call"
	}
	return ""
}

func unmapped(u Upstream) string {
	if u.Mapped {
		return ""
	}
	return "has no mapping: each of its tools needs tool.invoke, and no argument is looked at but by that grant"
}

func adrift(u Upstream) string {
	if !u.Adrift {
		return ""
	}
	return "is called with whole paths only: its command does not say for sure what relative ones hang from"
}

func within(u Upstream) string {
	if u.Within == "" {
		return ""
	}
	return "is started below the top of the repository " + u.Within + ", in which git finds none from there"
}

func lossyLog(s Subject) []capability.Finding {
	if !s.Lossy {
		return nil
	}
	return []capability.Finding{{Pos: s.Guardrail, Text: "guardrail.on_error is continue: a call that cannot be recorded is forwarded all the same"}}
}

// backend says whether this machine has what a sandbox would need: there is none
// yet, so that nothing can be done about it. It is a note, as doctor --strict could
// not be passed otherwise.
func backend(s Subject) []capability.Finding {
	lacks := ""
	switch {
	case s.OS == "linux" && !s.Has("bwrap"):
		lacks = "bwrap is not installed"
	case s.OS == "darwin" && !s.Has("/usr/bin/sandbox-exec"):
		lacks = "/usr/bin/sandbox-exec is missing"
	case s.OS != "linux" && s.OS != "darwin":
		lacks = "there is no sandbox backend for " + s.OS
	default:
		return nil
	}
	return []capability.Finding{{Severity: capability.Note, Text: lacks + "; programs run unconfined for now in any case", Hint: "nothing to install: this version has no sandbox that would use it"}}
}
