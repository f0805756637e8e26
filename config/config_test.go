package config_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"capgate/capability"
	"capgate/config"
)

// file is the name that tests give to what they parse.
const file = "/srv/gate/capgate.yml"

// served is what the file may hold.
const served = "listen, agents, skills, sandbox, state, upstreams, mappings, secrets, providers, limits, guardrail, introspection, tests"

// view is the machine that tests parse on.
func view() capability.View { return capability.View{Cwd: "/srv", Home: "/home/me"} }

// plain is a directory that no link leads to.
func plain(dir string) capability.Root { return capability.Root{Dir: dir, Real: dir} }

func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	c, findings, err := config.Parse(file, []byte(text), view())
	if err != nil {
		t.Fatalf("Parse(%q) = %v", text, err)
	}
	for _, f := range findings {
		if f.Severity > capability.Note && f.Code != "no_agents" {
			t.Errorf("Parse(%q) finds %v", text, f)
		}
	}
	return c
}

// wrong lists what is wrong with a file, one line each: place, text, hint.
func wrong(t *testing.T, text string, v capability.View) []string {
	t.Helper()
	c, findings, err := config.Parse(file, []byte(text), v)
	if err == nil {
		return nil
	}
	if c != nil || findings != nil {
		t.Errorf("Parse(%.40q) loads something of a file with errors", text)
	}
	return listing(err)
}

func listing(err error) []string {
	var list []string
	for _, e := range config.Errors(err) {
		line := strings.TrimPrefix(e.Error(), path.Dir(file)+"/")
		if e.Hint != "" {
			line += " | " + e.Hint
		}
		list = append(list, line)
	}
	return list
}

func TestParse(t *testing.T) {
	whole := config.Config{
		File: file, State: "/srv/gate/.capgate", Listen: config.Listen{Address: "127.0.0.1:8420"},
		Limits: config.Limits{
			Call: time.Minute, Start: time.Minute, Body: 32 << 20, Answer: 64 << 20,
			CallsPerMinute: 600, UpstreamProcesses: 64, Sessions: 1000,
		},
		Guardrail: config.Guardrail{Log: "/srv/gate/.capgate/events", Fsync: "interval"},
	}
	with := func(change func(c *config.Config)) *config.Config {
		c := whole
		change(&c)
		return &c
	}
	for _, tc := range []struct {
		name, in string
		want     *config.Config
	}{
		{"nothing said", "{}\n", with(func(*config.Config) {})},
		{"one folder", "agents: ./agents\n", with(func(c *config.Config) {
			c.Agents = []string{"/srv/gate/agents"}
		})},
		{"folders", "agents: [a/b, ~/b, /c/]\n", with(func(c *config.Config) {
			c.Agents = []string{"/srv/gate/a/b", "/home/me/b", "/c"}
		})},
		{"the file's own folder", "sandbox: .\n", with(func(c *config.Config) { c.Sandbox = plain("/srv/gate") })},
		{"home", "sandbox: \"~\"\n", with(func(c *config.Config) { c.Sandbox = plain("/home/me") })},
		{"sandbox as a map", "sandbox: {root: ~/work, backend: auto}\n", with(func(c *config.Config) {
			c.Sandbox = plain("/home/me/work")
		})},
		{"state", "state: /var/lib/capgate\n", with(func(c *config.Config) {
			c.State, c.Guardrail.Log = "/var/lib/capgate", "/var/lib/capgate/events"
		})},
		{"no tests", "tests: []\n", with(func(*config.Config) {})},
		{"CRLF", "agents: ./agents\r\nstate: ./s\r\n", with(func(c *config.Config) {
			c.Agents, c.State, c.Guardrail.Log = []string{"/srv/gate/agents"}, "/srv/gate/s", "/srv/gate/s/events"
		})},
		{"a document with its marks", "---\nstate: ./s\n...\n", with(func(c *config.Config) {
			c.State, c.Guardrail.Log = "/srv/gate/s", "/srv/gate/s/events"
		})},
		{"letters beyond ASCII", "state: ./größe/配置 # Ω\n", with(func(c *config.Config) {
			c.State, c.Guardrail.Log = "/srv/gate/größe/配置", "/srv/gate/größe/配置/events"
		})},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.want.Hash = sha256.Sum256([]byte(tc.in))
			if diff := cmp.Diff(tc.want, parse(t, tc.in)); diff != "" {
				t.Errorf("Parse(%q) differs (-want +got):\n%s", tc.in, diff)
			}
		})
	}
}

// linked is a file system in which some directories are links.
type linked map[string]string

func (l linked) Real(dir string) (string, error) {
	place, ok := l[dir]
	switch {
	case !ok:
		return dir, nil
	case place == "":
		return "", errors.New("a loop")
	case place == "another's":
		return "", fmt.Errorf("resolve %s: %w", dir, fs.ErrPermission)
	}
	return place, nil
}

func (linked) List(string) ([]fs.DirEntry, error) { return nil, nil }

func TestLinks(t *testing.T) {
	v := view()
	v.FS = linked{"/srv/gate/work": "/data", "/srv/gate/b": "/srv/gate/a", "/srv/gate/loop": "", "/srv/gate/all": "/"}
	c, _, err := config.Parse(file, []byte("sandbox: ./work\n"), v)
	if err != nil || c.Sandbox != (capability.Root{Dir: "/srv/gate/work", Real: "/data"}) {
		t.Errorf("the sandbox is %v, %v", c.Sandbox, err)
	}
	for in, want := range map[string]string{
		"agents: [./a, ./b]\n": `capgate.yml:1:15: the folder "./b" stands twice | remove one of them`,
		"sandbox: ./loop\n":    `capgate.yml:1:10: sandbox: the directory "./loop" cannot be resolved`,
	} {
		if got := wrong(t, in, v); !cmp.Equal(got, []string{want}) {
			t.Errorf("Parse(%q) says %q, want %q", in, got, want)
		}
	}
	_, findings, err := config.Parse(file, []byte("agents: ./a\nsandbox: ./all\n"), v)
	if err != nil || len(findings) != 1 || findings[0].Code != "wide_sandbox" {
		t.Errorf("a link to the whole file system finds %v, %v", findings, err)
	}
}

func TestFindings(t *testing.T) {
	for in, want := range map[string][]string{
		"agents: ./a\n":             nil,
		"state: ./s\n":              {"no_agents"},
		"agents: ./a\nsandbox: /\n": {"wide_sandbox"},
	} {
		_, findings, err := config.Parse(file, []byte(in), view())
		var codes []string
		for _, f := range findings {
			codes = append(codes, f.Code)
			if f.Severity != capability.Warning || f.Pos.File != file || f.Text == "" || f.Hint == "" {
				t.Errorf("the finding %+v is incomplete", f)
			}
		}
		if err != nil || !cmp.Equal(codes, want) {
			t.Errorf("Parse(%q) finds %v, %v; want %v", in, codes, err, want)
		}
	}
}

func TestOwn(t *testing.T) {
	c := parse(t, "agents: [./agents, ~/agents]\nstate: ./state\n")
	v := view()
	v.FS = linked{"/srv/gate/state": "/data/state", "/home/me/agents": "/data/agents"}
	own, err := c.Own(v)
	if err != nil {
		t.Fatal(err)
	}
	fence := capability.NewFence(own...)
	for _, tc := range []struct {
		path string
		want bool
	}{
		{file, true},
		{"/srv/gate/agents/scout.md", true},
		{"/home/me/agents/scout.md", true},
		{"/srv/gate/state/log", true},
		{"/data/state/log", true},
		{"/data/agents/scout.md", true},
		{"/data/other", false},
		{"/srv/gate/main.go", false},
	} {
		need, err := capability.ParseRequirement("fs.read{path="+tc.path+"}", view())
		if err != nil {
			t.Fatal(err)
		}
		if got := fence.Touches(need); got != tc.want {
			t.Errorf("the fence touches %s: %v, want %v", tc.path, got, tc.want)
		}
	}
	v.FS = linked{"/srv/gate/state": ""}
	if _, err := c.Own(v); err == nil || err.Error() != "find the gateway's own /srv/gate/state: a loop" {
		t.Errorf("a folder that cannot be found is %v", err)
	}
	v.FS = linked{"/srv/gate/state": "another's"}
	_, err = c.Own(v)
	if all := config.Errors(err); len(all) != 1 || !strings.HasSuffix(all[0].Text, "permission denied") || !strings.Contains(all[0].Hint, "as the user to whom /srv/gate/state belongs") {
		t.Errorf("a folder of somebody else is %v", err)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "capgate.yml"), "agents: ./agents\n")
	write(t, filepath.Join(dir, "broken.yml"), "agnets: ./agents\n")
	write(t, filepath.Join(dir, "large.yml"), strings.Repeat("# ten million bytes\n", 1<<19))
	v := capability.View{Cwd: dir, Home: "/home/me"}
	for _, name := range []string{"capgate.yml", "./capgate.yml", filepath.Join(dir, "capgate.yml"), "../" + filepath.Base(dir) + "/capgate.yml"} {
		c, _, err := config.Load(name, v)
		if err != nil || len(c.Agents) != 1 || c.Agents[0] != dir+"/agents" || c.File != dir+"/capgate.yml" {
			t.Errorf("Load(%q) = %+v, %v", name, c, err)
		}
	}
	for name, want := range map[string]string{
		"broken.yml": `broken.yml:1:1: "agnets" is no key of capgate.yml`,
		"large.yml":  "large.yml: the file is over 4 MiB",
		"absent.yml": "absent.yml: there is no such file",
		".":          ".: this is not a regular file",
		os.DevNull:   os.DevNull + ": this is not a regular file", // as a pipe would be, which nobody may ever write to
		"a\x00b":     "a\x00b: the file cannot be read: invalid argument",
	} {
		if _, _, err := config.Load(name, v); err == nil || err.Error() != want {
			t.Errorf("Load(%q) says %v, want %s", name, err, want)
		}
	}
	if os.Getuid() != 0 { // root reads everything
		write(t, filepath.Join(dir, "secret.yml"), "agents: ./agents\n")
		if err := os.Chmod(filepath.Join(dir, "secret.yml"), 0); err != nil {
			t.Fatal(err)
		}
		if _, _, err := config.Load("secret.yml", v); err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("Load of an unreadable file says %v", err)
		}
	}
}

// A file whose place is not known cannot be fenced off, and nothing could hang
// from it.
func TestNowhere(t *testing.T) {
	_, _, err := config.Parse("capgate.yml", []byte("agents: ./agents\n"), capability.View{})
	want := []string{
		`capgate.yml: nobody can tell where this file is | name it by its absolute path`,
		`capgate.yml:1:9: agents: "./agents" is relative, and nothing here says to what`,
	}
	if diff := cmp.Diff(want, listing(err)); diff != "" {
		t.Errorf("the errors differ (-want +got):\n%s", diff)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestErrors(t *testing.T) {
	_, _, err := config.Parse(file, []byte("agnets: 5\nstate: 5\n"), view())
	for _, tc := range []struct {
		name string
		err  error
		want int
	}{
		{"none", nil, 0},
		{"another's", errors.New("x"), 0},
		{"one", &config.Error{Text: "x"}, 1},
		{"a file's", err, 2},
		{"wrapped", fmt.Errorf("load: %w", err), 2},
		{"one wrapped", fmt.Errorf("load: %w", &config.Error{Text: "x"}), 1},
		{"joined with others", errors.Join(errors.New("x"), err), 2},
	} {
		if got := config.Errors(tc.err); len(got) != tc.want {
			t.Errorf("%s: there are %d errors, want %d", tc.name, len(got), tc.want)
		}
	}
	if got := (&config.Error{Text: "x"}).Error(); got != "x" {
		t.Errorf("an error of no place is %q", got)
	}
}
