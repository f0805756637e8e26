package capability_test

import (
	"testing"

	"capgate/capability"
)

// TestFencePathspecs: git names files by magic, from the top of its work tree and by globs
// whose stars cross slashes (R-SEC-09).
func TestFencePathspecs(t *testing.T) {
	fence := capability.NewFence(capability.Root{Dir: "/w/agents", Real: "/w/agents"}, capability.Root{Dir: "/srv/x.toml", Real: "/srv/x.toml"}).
		Sealing(capability.Root{Dir: "/w/dist/index.js", Real: "/w/dist/index.js"}).
		Hiding(".mcp.json", ".claude/settings.json", "capgate.yml").SealingNamed(".claude/agents", ".git")
	for line, want := range map[string]bool{
		"checkout evil -- :(top).mcp.json":                 true,
		"checkout evil -- :(top,attr:a\\)b).mcp.json":      true,
		"checkout evil -- :(top).claude/settings.json":     true,
		"checkout evil -- :(top).claude/agents/a)b.md":     true,
		"checkout evil -- :/.mcp.json":                     true,
		"checkout evil -- ://.mcp.json":                    true,
		"checkout evil -- :!.mcp.json":                     true,
		"checkout evil -- ::.mcp.json":                     true,
		"checkout evil -- :(.mcp.json":                     false,
		"checkout evil -- :(glob)sub/../.mcp.json":         true,
		"checkout evil -- :(glob)../../.mcp.json":          true,
		"checkout evil -- :(top)agents/a.md":               true,
		"checkout evil -- :/dist/index.js":                 true,
		"rm -f :(top).mcp.json":                            true,
		"show HEAD -- :(icase).MCP.json":                   true,
		"diff HEAD~1 -- :!x :^y :(glob).mcp.json":          true,
		"-C .. diff HEAD~1 -- :(top).mcp.json":             true,
		"restore --source=evil -- .mcp.jso?":               true,
		"restore --source=evil .mcp.jso[n-n]":              true,
		"restore --source=evil .mcp.jso[[:alpha:]]":        true,
		"restore --source=evil .mcp.jso[!]x]":              true,
		"restore --source=evil .mcp.jso[^\\]]":             true,
		"restore --source=evil \\.mcp.json":                true,
		"restore --source=evil .claude*settings.json":      true,
		"restore --source=evil .claude\\/settings.j*":      true,
		"restore --source=evil *settings.json":             true,
		"restore --source=evil a*settings.json":            true,
		"restore --source=evil a?.mcp.json":                true,
		"restore --source=evil .claud?/*":                  true,
		"restore --source=evil .claud?":                    true,
		"restore --source=evil .cl*/agents/a.md":           true,
		"restore --source=evil .claude/ag*.md":             true,
		"restore --source=evil :(top).m*":                  true,
		"restore --source=evil :(top)agen?s/a.md":          true,
		"restore --source=evil :(attr:a,exclude,x).mc*":    true,
		"restore --source=evil ../agen?s/a.md":             true,
		"restore --source=evil ../di*.js":                  true,
		"restore --source=evil /w/sub/.mcp.jso?":           true,
		"restore --source=evil /w/agen?s/a.md":             true,
		"restore --source=evil -- -d/.mcp.jso?":            true,
		"show HEAD -- .mcp.jso?":                           true,
		"show HEAD -- *mcp.json":                           true,
		"show HEAD -- *.mcp.json":                          true,
		"show HEAD -- *.m*":                                true,
		"show HEAD -- *.claud?":                            true,
		"show HEAD -- .claude/*.json":                      true,
		"show HEAD -- *.json":                              false,
		"show HEAD -- **/*.jso?":                           false,
		"show HEAD -- package*.json":                       false,
		"checkout main -- :(top)*.toml":                    false,
		"checkout main -- src/*.md":                        false,
		"status -v .mcp.jso?":                              true,
		"log --author=x.*json":                             false,
		"diff -- src":                                      false,
		"diff -- :!vendor":                                 false,
		"diff -- . :!*.json":                               false,
		"diff -- . :(exclude)*.json":                       false,
		"diff -- .claude/agents/*":                         false,
		"diff -- :(top).claude/agents/a.md":                false,
		"log -- :(top)src":                                 false,
		"log -- :/":                                        false,
		"log :/fix␣the␣thing":                              false,
		"checkout -- .":                                    false,
		"checkout -- *":                                    false,
		"checkout -- **/*":                                 false,
		"checkout -- src/*":                                false,
		"checkout -- *.go":                                 false,
		"checkout -- **/*_test.go":                         false,
		"checkout -- src*/a?.md":                           false,
		"checkout -- :(top)*.go":                           false,
		"checkout -- app/[id]/page.tsx":                    false,
		"checkout -- app/[id/page.tsx":                     false,
		"checkout -- app/[[:id/page.tsx":                   false,
		"checkout -- .mcp.jso\\?":                          false,
		"checkout -- .mcp.json\\":                          false,
		"rm --cached *.pyc":                                false,
		"add *.go":                                         false,
		"add *.json":                                       false,
		"commit -m say␣what␣*.json␣is␣for␣in␣*.json":       false,
		"grep -n from.*json":                               false,
		"ls-files *.json":                                  false,
		"show HEAD:src/a.go":                               false,
		"show :0:src/a.go":                                 false,
		"push origin :gone":                                false,
		"fetch origin +refs/heads/*:refs/remotes/origin/*": false,
		"branch --list feat/*":                             false,
		"restore --source=evil /srv/x.tom?":                true,
		"restore --source=evil :(top)x.toml ?x":            false,
	} {
		r, err := capability.Exec(view, mustPath(t, "/w/sub"), append([]string{"git"}, argv(line)...))
		if err != nil {
			t.Fatal(err)
		}
		if got := fence.Touches(r); got != want {
			t.Errorf("%s: got %v, want %v", line, got, want)
		}
	}
}
