package doctor_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/capability"
	"capgate/doctor"
)

func subject(t *testing.T, grants ...string) doctor.Subject {
	t.Helper()
	var specs []capability.Spec
	for i, text := range grants {
		s, err := capability.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		s.Pos = capability.Pos{File: "scout.md", Line: i + 1}
		specs = append(specs, s)
	}
	root := capability.Root{Dir: "/w", Real: "/w"}
	set, findings := capability.Compile(specs, capability.Options{Config: root, Unconfined: true})
	return doctor.Subject{
		Findings: findings,
		Agents:   []doctor.Agent{{ID: "agents/scout", Set: set, Skills: []capability.Root{{Dir: "/w/skills", Real: "/w/skills"}}}},
		Own:      []capability.Root{{Dir: "/w/agents", Real: "/w/agents"}},
		OS:       "linux",
		Has:      func(string) bool { return true },
	}
}

// TestExamine: each check finds its case, and only that (R-EGG-31).
func TestExamine(t *testing.T) {
	for _, c := range []struct{ grant, want string }{
		{"fs.reed", "error unknown_verb did you mean fs.read?"},
		{"fs.read{pathz=[x]}", "warning unknown_key did you mean paths?"},
		{"net.get{hosts={a=b}}", "warning wrong_type write text"},
		{"net.get{hosts=[\"a b\"]}", "warning invalid_value "},
		{"net.get{hosts=[]}", "warning empty_scope name what is meant"},
		{"net.get", "warning bare_grant write net.get"},
		{"fs.read{in=/etc}", "warning outside_root move the grant"},
		{"proc.exec{cmds=[sh]}", "warning interpreter say which calls"},
		{"fs.read{in=/}", "warning clamped write the root"},
		{"fs.write{in=/w}", "error own_files keep records"},
		{"fs.write{paths=[agents]}", "error own_files keep records"},
		{"fs.write{paths=[agents/*]}", "error own_files keep records"},
		{"fs.write{paths=[agents/scout.md]}", "error own_files keep records"},
		{"fs.write{paths=[\"**/*.md\"]}", "error own_files keep records"},
		{"fs.read{in=/w}", "warning skill_readable keep the skills"},
		{"fs.read{paths=[skills/a]}", "warning skill_readable keep the skills"},
		{"proc.eval{in=/w}", "error own_files keep records"},
		{"proc.exec{in=/w/src}", "warning any_program name the programs"},
		{"proc.exec{in=/w/src,cmds=[make]}", "note project_code the OS sandbox"},
		{"tool.invoke:*", "error any_tool name the tools"},
		{"net.get{hosts=[*]}", "warning any_host name the hosts"},
		{"rye.*", "error everything name what"},
		{"net.get{hosts=[localhost]}", "note local_name the address"},
	} {
		found := doctor.Examine(subject(t, c.grant))
		if len(found) != 1 && c.grant != "rye.*" && c.grant != "fs.read{in=/}" {
			t.Errorf("%s: %v", c.grant, found)
			continue
		}
		f := found[0]
		got := f.Severity.String() + " " + f.Code + " " + f.Hint
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got %s, want %s", c.grant, got, c.want)
		}
		if f.Pos.Line != 1 || f.Text == "" {
			t.Errorf("%s: %v", c.grant, f)
		}
	}
	for _, fine := range []string{
		"records.read", "fs.read{paths=[docs]}", "fs.write{paths=[out]}", "net.get{hosts=[*.github.com]}",
		"proc.exec{in=/w/src,cmds=[rg,jq]}", "tool.invoke:files.*", "rye.execute.tool.a.*", "memory.read:*",
	} {
		if found := doctor.Examine(subject(t, fine)); len(found) > 0 {
			t.Errorf("%s: %v", fine, found)
		}
	}
}

// TestUpstreams: what is said of a server is said of that server, and of no other.
func TestUpstreams(t *testing.T) {
	sound := doctor.Upstream{Name: "files", Pos: capability.Pos{File: "capgate.yml", Line: 7}, Mapped: true}
	for _, c := range []struct {
		change func(*doctor.Upstream)
		want   string
	}{
		{func(*doctor.Upstream) {}, ""},
		{func(u *doctor.Upstream) { u.Program = true }, "warning unconfined the upstream files runs unconfined"},
		{func(u *doctor.Upstream) { u.Mapped = false }, "note unmapped the upstream files has no mapping"},
		{func(u *doctor.Upstream) { u.Unmediated = true }, "error unmediated the upstream files is unmediated: its tools"},
		{func(u *doctor.Upstream) { u.Unpinned = true }, "warning unpinned the upstream files has pins: off: its tools"},
		{func(u *doctor.Upstream) { u.Within = "/w" }, "note repository_above the upstream files is started below the top of the repository /w"},
		{func(u *doctor.Upstream) { u.Adrift = true }, "note relative_paths the upstream files is called with whole paths only"},
		{func(u *doctor.Upstream) { u.Tools = []string{"read", "list"} }, "warning unpinned the upstream files has pins: off for read, list,"},
	} {
		u := sound
		c.change(&u)
		s := subject(t)
		s.Upstreams = []doctor.Upstream{{Name: "web", Mapped: true}, u}
		got := ""
		for _, f := range doctor.Examine(s) {
			got += f.Severity.String() + " " + f.Code + " " + f.Text
			if f.Pos != u.Pos || f.Hint == "" {
				t.Errorf("%+v: place or hint", f)
			}
		}
		if (c.want == "") != (got == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestWritableStart: who may write what a launcher reads chooses what it starts.
func TestWritableStart(t *testing.T) {
	for grant, want := range map[string]bool{
		"fs.write{in=/w/run}":                  true,
		"fs.write{in=/w/run,paths=[.npmrc]}":   true,
		"fs.write{in=/w/run,paths=[docs]}":     false,
		"fs.write{in=/w/run,paths=[\"*.md\"]}": false,
		"fs.read{in=/w/run,paths=[.npmrc]}":    false,
	} {
		s := subject(t, grant)
		s.Agents[0].Skills = nil
		s.Upstreams = []doctor.Upstream{{Name: "files", Mapped: true, Starts: []capability.Root{{Dir: "/w/run/.npmrc", Real: "/w/run/.npmrc"}}}}
		found := doctor.Examine(s)
		if want != (len(found) == 1 && found[0].Code == "writable_start" && strings.Contains(found[0].Text, "as the upstream files")) || !want && len(found) > 0 {
			t.Errorf("%s: %v", grant, found)
		}
	}
}

// TestToxicFlow: an agent whose tools carry all three labels together gets one finding,
// with a tool for each; who lacks one of them gets none.
func TestToxicFlow(t *testing.T) {
	read, web := doctor.Labelled{Tool: "files.read", Labels: []string{"private_in"}}, doctor.Labelled{Tool: "web.fetch", Labels: []string{"untrusted_in"}}
	mail := doctor.Labelled{Tool: "mail.send", Labels: []string{"public_out"}}
	all := doctor.Labelled{Tool: "mail.any", Labels: []string{"public_out", "private_in", "untrusted_in"}}
	for want, tools := range map[string][]doctor.Labelled{
		"(files.read) (web.fetch) (mail.send)": {read, web, mail, all},
		"(mail.any) (mail.any) (mail.any)":     {all, mail},
		"(files.read) (mail.any) (mail.any)":   {read, all},
	} {
		s := subject(t)
		s.Agents = append(s.Agents, doctor.Agent{ID: "agents/other", Pos: capability.Pos{File: "other.md"}, Labelled: tools})
		found := doctor.Examine(s)
		if len(found) != 1 || found[0].Code != "toxic_flow" || found[0].Severity != capability.Warning || found[0].Pos.File != "other.md" || found[0].Hint == "" {
			t.Errorf("%s: %v", want, found)
			continue
		}
		if names := strings.Join(regexp.MustCompile(`\([^)]*\)`).FindAllString(found[0].Text, -1), " "); names != want {
			t.Errorf("got %s, want %s", names, want)
		}
	}
	for _, fine := range [][]doctor.Labelled{nil, {read, web}, {web, mail}, {read, mail}} {
		s := subject(t)
		s.Agents[0].Labelled = fine
		if found := doctor.Examine(s); len(found) > 0 {
			t.Errorf("%v: %v", fine, found)
		}
	}
}

func TestLossyLog(t *testing.T) {
	s := subject(t)
	if found := doctor.Examine(s); len(found) > 0 {
		t.Errorf("a log that denies: %v", found)
	}
	s.Lossy = true
	if found := doctor.Examine(s); len(found) != 1 || found[0].Code != "lossy_log" || found[0].Severity != capability.Warning {
		t.Errorf("a log that goes on: %v", found)
	}
}

// TestBackend is what R-EGG-20 asks for.
func TestBackend(t *testing.T) {
	for _, c := range []struct {
		os   string
		has  bool
		want string
	}{
		{"linux", true, ""},
		{"linux", false, "bwrap is not installed"},
		{"darwin", true, ""},
		{"darwin", false, "/usr/bin/sandbox-exec is missing"},
		{"windows", true, "no sandbox backend for windows"},
		{"freebsd", true, "no sandbox backend for freebsd"},
	} {
		s := subject(t, "records.read")
		s.OS, s.Has = c.os, func(string) bool { return c.has }
		found := doctor.Examine(s)
		if (c.want == "") != (len(found) == 0) || len(found) > 0 && !strings.Contains(found[0].Text, c.want) {
			t.Errorf("%s %v: %v", c.os, c.has, found)
		}
		if len(found) > 0 && (found[0].Severity != capability.Note || !strings.Contains(found[0].Text, "run unconfined for now") || !strings.HasPrefix(found[0].Hint, "nothing to install")) {
			t.Errorf("%s: there is no sandbox yet: %v", c.os, found)
		}
	}
}

// TestChecks: the list can be printed: every check says what it is about, once.
func TestChecks(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range doctor.Checks() {
		if c.Code == "" || c.Title == "" || seen[c.Code] {
			t.Errorf("%+v", c)
		}
		seen[c.Code] = true
	}
}

// TestLoadCodes: whatever load can say, doctor passes on.
func TestLoadCodes(t *testing.T) {
	for _, code := range []string{
		"unknown_verb", "unknown_key", "wrong_type", "invalid_value", "empty_scope", "bare_grant", "no_root", "outside_root",
		"interpreter", "option", "clamped", "exceeds_parent", "missing_parent", "symlink", "shorthand_withheld", "no_agents", "no_agent",
		"wide_sandbox", "invalid_config", "invalid_grant", "undeclared", "clear_secret", "additional_arguments",
	} {
		s := subject(t)
		s.Findings = []capability.Finding{{Code: code, Severity: capability.Warning, Text: "something"}}
		if found := doctor.Examine(s); len(found) != 1 || found[0].Code != code || found[0].Hint == "" && code != "invalid_value" && code != "bare_grant" && code != "no_agent" && code != "interpreter" {
			t.Errorf("%s: %v", code, found)
		}
	}
}

// TestOrder: the worst comes first, then by place.
func TestOrder(t *testing.T) {
	var got []string
	for _, f := range doctor.Examine(subject(t, "net.get", "proc.exec{in=/w/src,cmds=[make]}", "tool.invoke:*", "fs.reed")) {
		got = append(got, f.Code)
	}
	if want := "any_tool unknown_verb bare_grant project_code"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// TestProviderScopeWider: a name that providers take for more than was granted is said once,
// with those that do, beside the grant that names it.
func TestProviderScopeWider(t *testing.T) {
	s := subject(t, "net.get{hosts=[*.example.com,a.example.com]}", "net.get{hosts=[github.com,b.example]}")
	s.Agents[0].Pos = capability.Pos{File: "record.md"}
	s.Agents[0].Wider = map[string][]string{"github.com": {"anthropic", "openai"}, "b.example": {"anthropic", "openai"}, "d.example": {"anthropic"}}
	var found []string
	for _, f := range doctor.Examine(s) {
		found = append(found, f.Pos.String()+" "+f.Code+" "+f.Text)
	}
	want := []string{
		"record.md provider_scope_wider agents/scout: d.example: by anthropic the names beneath are read as well",
		"scout.md:2 provider_scope_wider agents/scout: b.example, github.com: by anthropic, openai the names beneath are read as well",
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
}

// TestExposedKey: a key of a provider that an agent's client would find is a finding,
// any other is not.
func TestExposedKey(t *testing.T) {
	known := []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"}
	for _, c := range []struct {
		source string
		set    []string
		want   []string
	}{
		{"GATEWAY_KEY", nil, nil},
		{"", nil, nil},
		{"ANTHROPIC_API_KEY", nil, []string{"stands in ANTHROPIC_API_KEY"}},
		{"ANTHROPIC_API_KEY", known[:1], []string{"stands in ANTHROPIC_API_KEY"}},
		{"GATEWAY_KEY", known[1:], []string{"ANTHROPIC_AUTH_TOKEN is set"}},
	} {
		s := subject(t)
		s.Providers = []doctor.Provider{{Name: "anthropic", Source: c.source, Known: known, Set: c.set}}
		found := doctor.Examine(s)
		if len(found) != len(c.want) {
			t.Errorf("%+v: %v", c, found)
			continue
		}
		for i, want := range c.want {
			if f := found[i]; f.Code != "exposed_key" || f.Severity != capability.Warning || !strings.Contains(f.Text, want) || f.Hint == "" {
				t.Errorf("%+v: %v", c, f)
			}
		}
	}
}

// TestProviderRelay: a gateway in the place of a provider is noted.
func TestProviderRelay(t *testing.T) {
	s := subject(t)
	s.Providers = []doctor.Provider{{Name: "openai"}, {Name: "anthropic", Relay: "http://127.0.0.1:4000"}}
	found := doctor.Examine(s)
	if len(found) != 1 || found[0].Code != "provider_relay" || found[0].Severity != capability.Note || !strings.Contains(found[0].Text, "http://127.0.0.1:4000 in the place of anthropic") {
		t.Errorf("%v", found)
	}
}
