package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capgate/config"
)

// TestTold: the folders that a program may hang relative paths from are found among its
// arguments, and where one may be overlooked, it is said that nobody knows (R-SEC-05).
func TestTold(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	for _, folder := range []string{"docs/in", "my notes", "my notes.d/later", "docker", "dist", "my notes.d/docs"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{filepath.Join(dir, "dist/index.js"), filepath.Join(home, "plan")} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("my notes.d/later", filepath.Join(dir, "current")); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{
		// What people write.
		"npx|-y|@modelcontextprotocol/server-filesystem|.":                  ".",
		"npx|-y|@modelcontextprotocol/server-filesystem@1.2|DIR":            ".",
		"npx|-y|server@latest|--port|8080|--level=info":                     "",
		"npx|-y|github:owner/repo#main|--url=https://a.example/b?c=1&d=[2]": "",
		"deno|run|-A|npm:@scope/server":                                     "",
		"uvx|mcp-server-git|--repository|DIR":                               ".",
		"uvx|--from|mcp-fs[all]>=1.2, <2|mcp-fs|.":                          ".",
		"npx|-y|@scope/server@>=2025.1 <2026|DIR":                           ".",
		"uvx|--with|httpx<0.28|--with=pydantic ~= 2|server":                 "",
		"uvx|--from|git+https://a.example/b/c@v1|server":                    "",
		"uv|--directory|docs|run|server.py":                                 "docs",
		"python3|server.py|stdio":                                           "",
		"python3|-m|server|--db-path|./later/notes.db":                      "",
		"node|dist/index.js":                                                "",
		"node|DIR/dist/later.js|~/plan":                                     "",
		"go|run|a.example/b/cmd@latest":                                     "",
		"env|A=b|node|dist/index.js":                                        "",
		"server|postgresql://u:p@a.example/b":                               "",
		"server|my notes":                                                   "my notes",
		"node|server.js|--db|DIR/later.sqlite|--config=./later/conf.json":   "",
		"server|--url|postgresql+asyncpg://u:p%40ss@a.example:5432/b?x=y":   "",
		"server|git@a.example:owner/repo.git|https://[::1]:80/mcp":          "",
		"server|HTTPS://a.example/mcp?features=docs,database&q=":            "",
		"server|sqlite:///later.db|--store=memory://|s3://bucket/docs":      "",
		"server|--temperature=.7|--count|-5|--model|gpt-4.1|--ext=.ts,.md":  "",
		"server|--include=**/*.{ts,tsx}|*.md|v1.2|--glob=src.d*":            "",
		"server|DIR/docker":                                                 "docker",
		// Folders in pieces, and below one another.
		"server|docs|in":                             "docs docs/in",
		"server|-Cdocs":                              "docs",
		"server|-CDIR/docs":                          "docs",
		"server|--dirs=docs,dist":                    "docs dist",
		"server|docs:dist:ro":                        "docs dist",
		"server|file://DIR/docs":                     "docs",
		`server|{"root": "docs"}`:                    "docs ?",
		"env|A=docs|node|index.js":                   "docs",
		"server|--root|in|--base|DIR/docs":           "docs docs/in",
		"server|current/../docs":                     "docs my notes.d/docs",
		"server|later|DIR/my notes.d|in":             "my notes.d my notes.d/later",
		"server|in/../in|docs":                       "docs docs/in",
		"server|DIR/docs/*.md|--glob=docs/**/in.txt": "docs",
		"server|--root=local://DIR/docs":             "docs",
		"server|dir+local://docs/in":                 "docs/in",
		"server|sqlite:///docs":                      "docs",
		"server|file://DIR/my%20notes.d":             "my notes.d",
		"server|docs%2fin":                           "docs/in",
		`server|docs\in`:                             "docs/in",
		`server|docs%5Cin`:                           "docs/in",
		// What may become one.
		"server|later/docs":               "?",
		"server|--root=./later":           "?",
		"server|DIR/later|DIR":            ". ?",
		"server|DIR/docs,/later":          "docs ?",
		"server|-C/later":                 "?",
		`server|\later`:                   "?",
		"server|~/later":                  "?",
		"server|~somebody":                "?",
		"server|./later.d":                "?",
		"server|DIR/my.project":           "?",
		"server|./.memory":                "?",
		"server|.memory":                  "?",
		"server|DIR/later.md/":            "?",
		"server|DIR/later.md%2f":          "?",
		"server|DIR/later/*.md":           "?",
		"server|DIR/docs/*":               "?",
		"server|DIR/d?cs.x/":              "?",
		"server|%2e%2e/later.d":           "?",
		"server|%2flater":                 "?",
		`server|..\later.d`:               "?",
		"server|osfs://later":             "?",
		"server|local:///later.d":         "?",
		"server|http:///later":            "?",
		"server|http:/later":              "?",
		"server|http://../later":          "?",
		"server|git+file:///later":        "?",
		"server|redis+unix://later/x":     "?",
		"server|https://a.example,/later": "?",
		"server|http://a/?root=/later":    "?",
		"server|http://a/?a=%2flater":     "?",
		"server|git@a:b /later":           "?",
		"server|file:///later":            "?",
		"server|[/later]":                 "?",
		"server|https://a.b /x":           "?",
		"server|a.example/b/cmd":          "?",
		"server|scope/server":             "?",
		"server|a b":                      "?",
		"server|a>/later":                 "?",
		"server|a<b;c":                    "?",
		"server|a= $PLACE":                "?",
		"server|a;b":                      "?",
		"server|--root=$PLACE":            "?",
		"bash|-lc|cd docs; exec server":   "docs ?",
		// What runs it in another place.
		"bash|start":                    "?",
		"/bin/sh|docs":                  "docs ?",
		"docker|run|-i|image":           "?",
		"sudo|-u|a|/usr/bin/podman|run": "?",
		"env|docker|run|image":          "docker ?",
		"op|run|--|ssh|host|server|DIR": ". ?",
		"kubectl|exec|pod|--|server":    "?",
		"flatpak|run|a.example.App":     "?",
		"wsl|server":                    "?",
		"chroot|docs|server":            "docs ?",
		"su|-c|server":                  "?",
		"CMD.exe|/c|npx":                "?",
		"finch|run|-i|image":            "?",
		"orb|-m|vm|server":              "?",
		"crictl|exec|c|server":          "?",
		"heroku|run|server":             "?",
		"nix|develop|-c|server":         "?",
		"env|doas|server":               "?",
	} {
		words := strings.Split(strings.ReplaceAll(command, "DIR", dir), "|")
		got := told(&config.Upstream{Command: words}, dir, home)
		for i, folder := range got {
			if got[i] = "?"; folder != "" {
				got[i], _ = filepath.Rel(dir, folder)
			}
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%s: got %q, want %q", command, got, want)
		}
	}
	if got := told(&config.Upstream{Command: []string{"server", "~/plan"}}, dir, ""); len(got) != 1 || got[0] != "" {
		t.Errorf("below a home that nobody knows: %q", got)
	}
}
