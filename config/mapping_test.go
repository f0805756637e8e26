package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/capability"
	"capgate/config"
	"capgate/mapping"
)

// library writes a configuration and its folder of mappings, and loads both.
func library(t *testing.T, upstreams string, files map[string]string) (string, map[string]*mapping.Mapping, error) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "capgate.yml"), "agents: a\nmappings: [./m]\n"+upstreams+"\n")
	for name, text := range files {
		write(t, filepath.Join(dir, "m", name), text)
	}
	c, _, err := config.Load(filepath.Join(dir, "capgate.yml"), capability.View{Cwd: "/"})
	if err != nil {
		t.Fatal(err)
	}
	all, _, err := config.LoadMappings(c)
	return dir, all, err
}

const own = "server: own\ntools:\n  peek: { path: fs.read }\n"

func TestLoadMappings(t *testing.T) {
	_, all, err := library(t, "upstreams: { a: { command: [x], declares: {}, mapping: own }, b: { command: [x], declares: {}, mapping: filesystem } }", map[string]string{
		"own.yml": own, "README.md": "# these", ".own.yml.swp": "\x00", "old/own.yml": own,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all["own"].Tool("peek") == nil || all["filesystem"].Tool("read_file") == nil {
		t.Errorf("the mappings are %v", all)
	}
	all, _, err = config.LoadMappings(&config.Config{})
	if err != nil || len(all) != 0 {
		t.Errorf("without folders and servers the mappings are %v, %v", all, err)
	}
}

// TestUndeclared: a server is undeclared only when nothing is written of it or of a tool of it, and
// its mapping declares nothing either.
func TestUndeclared(t *testing.T) {
	for in, want := range map[string]bool{
		"{command: [x]}":                             true,
		"{command: [x], mapping: memory}":            true,
		"{command: [x], tools: {y: {pins: off}}}":    true,
		"{command: [x], mapping: filesystem}":        false,
		"{command: [x], declares: {}}":               false,
		"{command: [x], tools: {y: {declares: {}}}}": false,
		"{command: [x], unmediated: true}":           false,
		"{builtin: net}":                             false,
	} {
		c := parse(t, "agents: a\nupstreams: {a: "+in+"}\n")
		all, _, err := config.LoadMappings(c)
		if err != nil {
			t.Fatal(err)
		}
		f, got := c.Upstreams[0].Undeclared(all[c.Upstreams[0].Mapping])
		if got != want || f.Code != "undeclared" || f.Pos != pos(2, 13) || f.Hint == "" {
			t.Errorf("%s: %v, %+v", in, got, f)
		}
	}
}

func TestWrongMappings(t *testing.T) {
	const uses = "upstreams: { a: { command: [x], declares: {}, mapping: own } }"
	for name, tc := range map[string]struct {
		upstreams string
		files     map[string]string
		want      []string
	}{
		"no folder": {"", nil, []string{"m: the folder of mappings cannot be read: no such file or directory"}},
		"twice": {"", map[string]string{"a.yml": own, "b.yml": own}, []string{
			`m/b.yml: the name "own" is taken by DIR/m/a.yml | give it another name with server:`,
		}},
		"a built-in one": {"", map[string]string{"a.yml": "server: filesystem\ntools: {}\n"}, []string{
			`m/a.yml: the name "filesystem" is taken by a built-in mapping | give it another name with server:`,
		}},
		"broken": {"", map[string]string{"a.yml": "server: x\ntools:\n  y: { z: fs.reed }\n", "b.yml": "tols: {}\n"}, []string{
			`m/a.yml:3:11: "fs.reed" is no role | did you mean fs.read?`,
			`m/b.yml:1:1: "tols" is no key of a mapping | did you mean tools?`,
		}},
		"broken and in use": {uses, map[string]string{"a.yml": strings.Replace(own, "tools", "tols", 1)}, []string{
			`m/a.yml:2:1: "tols" is no key of a mapping | did you mean tools?`,
		}},
		"broken and another meant": {uses, map[string]string{"a.yml": strings.Replace(own, "own", "owl", 1), "b.yml": "tols: {}\n"}, []string{
			`capgate.yml:3:56: there is no mapping "own" | did you mean owl?`,
			`m/b.yml:1:1: "tols" is no key of a mapping | did you mean tools?`,
		}},
		"another suffix": {uses, map[string]string{"own.yaml": own}, []string{
			`m/own.yaml: a mapping is a .yml file, and this one would not be read | name it own.yml`,
		}},
		"unknown": {uses, map[string]string{"a.yml": strings.Replace(own, "own", "owl", 1)}, []string{
			`capgate.yml:3:56: there is no mapping "own" | did you mean owl?`,
		}},
		"large": {"", map[string]string{"a.yml": strings.Repeat("# ten million bytes\n", 1<<19)}, []string{
			`m/a.yml: the mapping is over 1048576 bytes`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, all, err := library(t, tc.upstreams, tc.files)
			var got []string
			for _, e := range config.Errors(err) {
				line := e.Error()
				if e.Hint != "" {
					line += " | " + e.Hint
				}
				got = append(got, strings.ReplaceAll(strings.TrimPrefix(line, dir+"/"), dir, "DIR"))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || all != nil {
				t.Errorf("the errors differ (-want +got):\n%s", diff)
			}
		})
	}
}

// A link in the folder may lead to where an agent can write.
func TestLinkedMapping(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "real.yml"), own)
	if err := os.Mkdir(filepath.Join(dir, "m"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "real.yml"), filepath.Join(dir, "m", "own.yml")); err != nil {
		t.Fatal(err)
	}
	_, _, err := config.LoadMappings(&config.Config{Mappings: []string{filepath.Join(dir, "m")}})
	if err == nil || !strings.HasSuffix(err.Error(), "own.yml: this is not a regular file") {
		t.Errorf("a link is %v", err)
	}
}
