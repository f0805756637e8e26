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
