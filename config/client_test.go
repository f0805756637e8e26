package config_test

import (
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
		"fs.write{path=.vscode/settings.json}":          false,
		"fs.read{path=.cursor/rules/a.md}":              false,
		"fs.write{path=.github/workflows/test.yml}":     false,
		"fs.read{glob=.github/workflows/*}":             false,
		"fs.write{tree=docs}":                           false,
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
		"fs.write{path=.claude/agents/helper.md}":     true,
		"fs.write{path=a/.Claude-Plugin/plugin.json}": true,
		"fs.write{path=.opencode/plugin/x.js}":        true,
		"fs.write{path=.opencode/plugins/x.js}":       true,
		"fs.delete{path=.opencode/tool/x.js}":         true,
		"fs.write{path=.opencode/tools/x.js}":         true,
		"fs.write{path=.opencode/agent/x.md}":         true,
		"fs.write{path=.opencode/agents/x.md}":        true,
		"fs.write{path=.continue/mcpServers/x.yaml}":  true,
		"fs.write{path=.continue/agents/x.yaml}":      true,
		"fs.write{path=.continue/assistants/x.yaml}":  true,
		"fs.write{tree=.opencode}":                    true,
		"proc.exec{argv=[mv,a,.continue],cwd=/w}":     true,
		"fs.read{path=.claude/agents/helper.md}":      false,
		"fs.read{path=.opencode/plugin/x.js}":         false,
		"fs.write{path=.claude/skills/a/SKILL.md}":    false,
		"fs.write{path=.claude/skills/a/agents/x.md}": false,
		"fs.write{path=.opencode/skills/a/SKILL.md}":  false,
		"fs.write{path=.continue/rules/a.md}":         false,
		"fs.write{path=agents/helper.md}":             false,
		"fs.write{path=plugin/x.js}":                  false,
		"fs.write{path=.github/workflows/test.yml}":   false,
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
