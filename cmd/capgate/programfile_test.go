package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capgate/capability"
	"capgate/capability/hostfs"
	"capgate/config"
)

// TestOwnProgram: the program that runs as the gateway may be read and not changed, also
// through a link to it (R-SEC-09).
func TestOwnProgram(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := t.TempDir() + "/capgate"
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	view := capability.View{Cwd: t.TempDir(), FS: hostfs.FS{}}
	sealed, err := sealing(&config.Config{}, view)
	if err != nil {
		t.Fatal(err)
	}
	around := fence(nil, sealed, view)
	for text, want := range map[string]bool{
		"fs.write{path=" + self + "}":       true,
		"fs.delete{path=" + link + "}":      true,
		"fs.read{path=" + self + "}":        false,
		"fs.write{path=" + self + ".other}": false,
	} {
		need, err := capability.ParseRequirement(text, view)
		if err != nil {
			t.Fatal(err)
		}
		if got := around.Touches(need); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

// TestLauncherFiles: doctor names the files that a program reads where it is started, and
// none for one that reads none.
func TestLauncherFiles(t *testing.T) {
	all := ".npmrc package.json node_modules pyproject.toml uv.toml .venv sitecustomize.py"
	for command, want := range map[string]string{
		"mcp-server-filesystem docs":      "",
		"/usr/local/bin/mcp-server-fetch": "",
		"npx -y @scope/server":            ".npmrc package.json node_modules",
		"env A=b npx@10 -y server":        ".npmrc package.json node_modules",
		"node dist/index.js":              "package.json node_modules",
		"python3.12 -m server":            "sitecustomize.py",
		"uvx server":                      "pyproject.toml uv.toml .venv sitecustomize.py",
		"uv run python server.py":         "pyproject.toml uv.toml .venv sitecustomize.py",
		"sh -c run":                       all,
		"./start.sh":                      all,
		"docker run mcp/filesystem":       all,
	} {
		s := &servers{cfg: &config.Config{}}
		found := s.launcherFiles(&config.Upstream{Command: strings.Fields(command), Cwd: "/w"})
		for i := range found {
			found[i] = filepath.Base(found[i])
		}
		if got := strings.Join(found, " "); got != want {
			t.Errorf("%s: %s", command, got)
		}
	}
}
