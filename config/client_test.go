package config_test

import (
	"slices"
	"testing"

	"capgate/capability"
	"capgate/config"
)

// TestClientFiles: the files of clients are out of reach, and so is to put a folder in
// the place of the one that a client looks into (R-SEC-09).
func TestClientFiles(t *testing.T) {
	fence := capability.NewFence().Hiding(config.ClientFiles()...)
	for text, want := range map[string]bool{
		"fs.read{path=.mcp.json}":                       true,
		"fs.read{path=home/.config/Code/User/mcp.json}": true,
		"fs.write{path=crush.json}":                     true,
		"fs.write{path=a/Capgate.yml}":                  true,
		"fs.write{path=a/capgate.yml.md}":               false,
		"fs.write{path=.qwen/settings.json}":            true,
		"fs.write{tree=.cursor}":                        true,
		"fs.write{tree=a/.vscode}":                      true,
		"fs.write{tree=.kiro}":                          true,
		"proc.exec{argv=[mv,a,.cursor],cwd=/w}":         true,
		"fs.read{path=.claude.json.backup}":             true,
		"fs.write{path=tui.json}":                       true,
		"fs.write{path=.opencode/tui.jsonc}":            true,
		"fs.read{path=.zed/settings.json}":              true,
		"fs.write{path=.amp/settings.json}":             true,
		"fs.write{path=.vscode/settings.json}":          false,
		"fs.read{path=.cursor/rules/a.md}":              false,
		"fs.write{path=.github/workflows/test.yml}":     false,
		"fs.read{glob=.github/workflows/*}":             false,
		"fs.write{tree=docs}":                           false,
		"fs.read{tree=src/amp}":                         false,
		"fs.write{path=src/goose}":                      false,
		"fs.write{tree=.config}":                        false,
		"proc.exec{argv=[rg,zed,src],cwd=/w}":           false,
		"proc.exec{argv=[git,checkout,amp],cwd=/w}":     false,
	} {
		need, err := capability.ParseRequirement(text, capability.View{Cwd: "/w"})
		if err != nil {
			t.Fatal(err)
		}
		if got := fence.Touches(need); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

// TestClientFolders: what clients start servers or code from may be read and not
// changed, and skills beside it are left to grants (R-SEC-09).
func TestClientFolders(t *testing.T) {
	fence := capability.NewFence().SealingNamed(config.ClientFolders()...)
	for text, want := range map[string]bool{
		"fs.write{path=.claude/agents/helper.md}":              true,
		"fs.write{path=a/.Claude-Plugin/plugin.json}":          true,
		"fs.write{path=.opencode/plugin/x.js}":                 true,
		"fs.write{path=.opencode/plugins/x.js}":                true,
		"fs.delete{path=.opencode/tool/x.js}":                  true,
		"fs.write{path=.opencode/tools/x.js}":                  true,
		"fs.write{path=.opencode/agent/x.md}":                  true,
		"fs.write{path=.opencode/agents/x.md}":                 true,
		"fs.write{path=.continue/mcpServers/x.yaml}":           true,
		"fs.write{path=.continue/agents/x.yaml}":               true,
		"fs.write{path=.continue/assistants/x.yaml}":           true,
		"fs.write{path=.claude/hooks/format.sh}":               true,
		"fs.write{path=.claude/workflows/x.js}":                true,
		"fs.write{path=.claude/scheduled_tasks.json}":          true,
		"fs.write{path=.claude/loop.md}":                       true,
		"fs.write{path=.cursor/hooks.json}":                    true,
		"fs.write{path=.cursor/hooks/x.sh}":                    true,
		"fs.write{path=.github/hooks/x.json}":                  true,
		"fs.write{path=.opencode/mode/x.md}":                   true,
		"fs.write{path=.opencode/modes/x.md}":                  true,
		"fs.write{path=.opencode/command/x.md}":                true,
		"fs.write{path=.gemini/commands/x.toml}":               true,
		"fs.write{path=.codex/hooks/x.sh}":                     true,
		"fs.write{path=.codex/rules/default.rules}":            true,
		"fs.write{path=.windsurf/hooks.json}":                  true,
		"fs.write{path=.factory/settings.json}":                true,
		"fs.write{path=.github/copilot/settings.json}":         true,
		"fs.write{path=.github/copilot-instructions.md}":       false,
		"fs.write{path=.windsurf/rules/a.md}":                  false,
		"fs.read{path=.claude/skills/a/SKILL.md}":              false,
		"fs.write{tree=.opencode}":                             true,
		"proc.exec{argv=[mv,a,.continue],cwd=/w}":              true,
		"fs.read{path=.claude/agents/helper.md}":               false,
		"fs.read{path=.opencode/plugin/x.js}":                  false,
		"fs.write{path=.claude/skills/a/SKILL.md}":             true,
		"fs.write{path=.claude/skills/a/agents/x.md}":          true,
		"fs.write{path=.opencode/skills/a/SKILL.md}":           false,
		"fs.write{path=.continue/rules/a.md}":                  false,
		"fs.write{path=.claude/commands/a.md}":                 true,
		"fs.write{path=.claude/settings.md}":                   false,
		"fs.write{path=.cursor/rules/a.mdc}":                   false,
		"fs.write{path=agents/helper.md}":                      false,
		"fs.write{path=src/hooks/use.ts}":                      false,
		"fs.write{path=launch.json}":                           false,
		"proc.exec{argv=[mkdir,.github/workflows]}":            false,
		"fs.write{path=plugin/x.js}":                           false,
		"fs.write{path=.github/workflows/test.yml}":            false,
		"fs.write{path=.git/config}":                           true,
		"fs.write{path=a/.GIT/hooks/pre-commit}":               true,
		"fs.write{path=.git/modules/a/config}":                 true,
		"fs.write{path=a/.git}":                                true, // it may say where the repository is
		"fs.delete{tree=.git}":                                 true,
		"proc.exec{argv=[tee,.git/commondir],cwd=/w}":          true,
		"proc.exec{argv=[mv,x,a/.git],cwd=/w}":                 true,
		"fs.read{path=.git/config}":                            false,
		"fs.write{path=.}":                                     false,
		"fs.write{tree=a}":                                     false,
		"fs.write{path=.gitignore}":                            false,
		"fs.write{path=.github/dependabot.yml}":                false,
		"proc.exec{argv=[ls,.git/hooks],cwd=/w}":               false,
		"proc.exec{argv=[git,status],cwd=/w}":                  false,
		"proc.exec{argv=[git,commit,-m,x,a],cwd=/w}":           false,
		"proc.exec{argv=[git,push,origin,a],cwd=/w}":           false,
		"proc.exec{argv=[git,clone,'https://h/x.git'],cwd=/w}": false,
	} {
		need, err := capability.ParseRequirement(text, capability.View{Cwd: "/w"})
		if err != nil {
			t.Fatal(err)
		}
		if got := fence.Touches(need); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

// TestClientPlaces: what clients keep in a home under names that mean something else
// elsewhere is out of reach there (R-SEC-09).
func TestClientPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		xdg, home, zed, plugins, backups string // "" where there is none
	}{
		"home":          {"", "/h", "/h/.config/zed/settings.json", "/h/.config/opencode/plugins", "/h/.claude/backups"},
		"xdg":           {"/x", "/h", "/x/zed/settings.json", "/x/opencode/plugins", "/h/.claude/backups"},
		"relative":      {"x", "/h", "/h/.config/zed/settings.json", "/h/.config/opencode/plugins", "/h/.claude/backups"},
		"no home":       {"/x", "", "/x/zed/settings.json", "/x/opencode/plugins", ""},
		"nothing known": {"", "", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			hidden, sealed := config.ClientPlaces(c.xdg, c.home)
			for place, list := range map[string][]string{c.zed: hidden, c.backups: hidden, c.plugins: sealed} {
				if place != "" && !slices.Contains(list, place) {
					t.Errorf("%s is not among %q", place, list)
				}
			}
			if c.zed == "" && len(hidden)+len(sealed) > 0 {
				t.Errorf("%q and %q", hidden, sealed)
			}
		})
	}
}
