package proxy_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/capability"
	"capgate/gate"
	"capgate/proxy"
	"capgate/upstream"
)

// TestLookSkills: an operator sees which skills the agent is shown, the gateway's own and
// a server's, and of each of the others why it is not.
func TestLookSkills(t *testing.T) {
	w := start(t, map[string]string{"scout": anyReader}, newSkillServer(true, servedFiles()).up(t))
	w.bundles(ownSkills())
	c := w.client("scout")
	c.initialize("{}")
	want := skillURIs(listSkills(t, c.request))
	all, missing, err := w.server.LookSkills(t.Context(), "agents/scout")
	if err != nil || len(missing) > 0 {
		t.Fatal(missing, err)
	}
	var shown []string
	whose := map[string]string{}
	why := map[string]string{}
	for _, s := range all {
		if whose[s.URI] = s.Upstream; s.Visible {
			shown = append(shown, s.URI+"/SKILL.md")
			continue
		}
		why[s.URI] = s.Why
		for _, m := range s.Lacks.Missing {
			why[s.URI] += m.Need.String()
		}
	}
	slices.Sort(shown)
	slices.Sort(want)
	if diff := cmp.Diff(want, shown); diff != "" || len(want) < 4 {
		t.Errorf("shown to the agent (-) and to its operator (+):\n%s", diff)
	}
	const host = "net.get{hosts=[example.com]}"
	if diff := cmp.Diff(map[string]string{
		"skill://broken":               `the key "name" stands twice in the frontmatter`,
		"skill://secret":               host,
		"skill://outer":                host,
		"skill://outer/inner":          host,
		"skill://files/team/secret":    host,
		"skill://files/outer":          "a skill inside it is hidden",
		"skill://files/outer/in/inner": host,
		"repo://acme/x/skills/hid":     host,
	}, why); diff != "" {
		t.Error(diff)
	}
	if whose["skill://files/greet"] != "files" || whose["skill://notes"] != "" {
		t.Errorf("they belong to %v", whose)
	}
}

// TestLookWaits: agents are not kept waiting for a server that takes long to start, beside
// one that has answered. Who asks what it has is.
func TestLookWaits(t *testing.T) {
	s := newSkillServer(true, servedFiles())
	s.lists["tools/list"] = `"tools":[{"name":"slow","inputSchema":{"type":"object"}}]`
	up := s.up(t)
	started := make(chan struct{})
	up.Open = func(ctx context.Context, p proxy.Peer) (upstream.Conn, error) {
		select {
		case <-started:
			return s.open(ctx, p)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	w := start(t, map[string]string{"scout": anyReader}, up, &proxy.Upstream{Name: "well", Prefix: "well", Open: (&scripted{}).open})
	type looked struct {
		skills, tools int
		missing       []string
		err           error
	}
	seen := make(chan looked, 1)
	go func() {
		tools, missing, err := w.server.Look(t.Context(), "agents/scout")
		skills, more, errSkills := w.server.LookSkills(t.Context(), "agents/scout")
		seen <- looked{len(skills), len(tools), append(missing, more...), errors.Join(err, errSkills)}
	}()
	c := w.client("scout")
	c.initialize("{}")
	if n := len(listSkills(t, c.request)); n != 0 {
		t.Errorf("%d skills of a server that is not there yet", n)
	}
	select {
	case early := <-seen:
		t.Fatalf("it was not waited for: %+v", early)
	default:
	}
	close(started)
	if got := <-seen; got.err != nil || len(got.missing) > 0 || got.skills != 6 || got.tools != 1 {
		t.Errorf("there are %+v", got)
	}
}

// TestLookAtUnmapped: who has mapped a server and mistyped a tool is told why that
// tool needs tool.invoke.
func TestLookAtUnmapped(t *testing.T) {
	up := files(t, &scripted{lists: map[string]string{"tools/list": `"tools":[` + tool("read_text_fil", "path") + `,` + tool("write_file", "path") + `]`}})
	w := start(t, map[string]string{"scout": reader}, up)
	looked, _, err := w.server.Look(t.Context(), "agents/scout")
	if err != nil || len(looked) != 2 {
		t.Fatalf("%v, %d tools", err, len(looked))
	}
	for _, one := range looked {
		if unmapped := one.Name == "files__read_text_fil"; strings.Contains(one.Why, "no mapping covers it") != unmapped {
			t.Errorf("%s: %s", one.Name, one.Why)
		}
	}
}

// TestLookAtHidden: an operator is told of what each call lacks: a verb, more of one that is
// held, or the name of the tool in a toolset.
func TestLookAtHidden(t *testing.T) {
	up := files(t, &scripted{lists: map[string]string{"tools/list": `"tools":[` + tool("list_allowed_directories") + `,` + tool("write_file", "path", "content") + `]`}})
	w := start(t, map[string]string{"scout": reader, "bound": strings.Replace(reader, "class:", "toolset: [other.*]\nclass:", 1)}, up)
	for agent, want := range map[string]map[string]string{
		"scout": {
			"files__list_allowed_directories": "scope_violation: no call of it could be allowed: what is held of [fs.read] is not enough for any",
			"files__write_file":               "capability_absent: no call of it could be allowed: it may need [fs.write]",
		},
		"bound": {
			"files__list_allowed_directories": "scope_violation: no call of it is allowed by the toolset of agents/bound",
			"files__write_file":               "scope_violation: no call of it is allowed by the toolset of agents/bound",
		},
	} {
		looked, _, err := w.server.Look(t.Context(), "agents/"+agent)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, one := range looked {
			got[one.Name] = string(one.Code) + ": " + one.Why
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", agent, diff)
		}
	}
}

// TestLookAtDeclared: that a server declares too little is not said of what the agent holds.
func TestLookAtDeclared(t *testing.T) {
	up := files(t, &scripted{lists: map[string]string{"tools/list": `"tools":[` + tool("read_text_file", "path") + `]`}})
	up.Declared = gate.Declare(nil, capability.Options{})
	w := start(t, map[string]string{"scout": reader}, up)
	looked, _, err := w.server.Look(t.Context(), "agents/scout")
	if err != nil || len(looked) != 1 {
		t.Fatalf("%v, %d tools", err, len(looked))
	}
	const want = "no call of it could be allowed: what is declared of [fs.read] is not enough for any, see declares: of the upstream or its mapping"
	if one := looked[0]; one.Code != capability.ScopeViolation || one.Why != want {
		t.Errorf("%s: %s, not %s", one.Code, one.Why, want)
	}
}
