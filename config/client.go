package config

import "path"

// ClientFiles are the names of the files that tell clients which servers to use, with
// which tokens. Whoever could read them would be another agent, and whoever could
// write them would go past the gateway. A name has its folder before it where it means
// something else elsewhere, or where the folder is what a client looks for: put in its
// place as a whole, it would bring a file along. What capgate itself is told by where it
// is started is one of them.
func ClientFiles() []string {
	return []string{
		FileName,
		".mcp.json", "mcp.json", "managed-mcp.json", // Claude Code, Cursor, VS Code, Kiro, LM Studio and others
		".cursor/mcp.json", ".vscode/mcp.json", ".kiro/settings/mcp.json", ".roo/mcp.json", ".amazonq/mcp.json",
		".claude.json", ".claude.json.backup", ".claude/settings.json", ".claude/settings.local.json",
		"claude_desktop_config.json",
		".codex/config.toml",
		".gemini/settings.json", "gemini-extension.json", ".qwen/settings.json",
		".crush.json", "crush.json",
		"mcp-config.json",                              // Copilot
		"mcp_config.json",                              // Windsurf
		"mcp_settings.json", "cline_mcp_settings.json", // Roo, Cline
		"opencode.json", "opencode.jsonc", ".opencode.json", // opencode
		"tui.json", "tui.jsonc", // opencode's: they name plugins
		".zed/settings.json",
		".amp/settings.json", ".amp/settings.jsonc",
		".continue/config.yaml", ".continue/config.json",
		"mcporter.json", "mcporter.jsonc",
	}
}

// ClientFolders are those from which clients start servers, or run code, without a
// question, and files that tell them to. What lies in them may be read, as a review does;
// whoever could change it would go past the gateway.
func ClientFolders() []string {
	return []string{
		".claude/agents", ".claude/plugins", ".claude-plugin", // their files may name servers and hooks
		".claude/hooks", ".claude/workflows", ".claude/shell-snapshots", ".claude/session-env",
		".claude/routines", ".claude/scheduled_tasks.json", ".claude/loop.md", ".claude/launch.json",
		".claude/commands", ".claude/skills", // commands in their texts run as soon as one is called
		".opencode/command", ".opencode/commands", ".gemini/commands", ".qwen/commands",
		".cursor/hooks", ".cursor/hooks.json",
		".codex/hooks", ".codex/hooks.json", ".codex/rules",
		".github/hooks", ".github/copilot/settings.json",
		".windsurf/hooks", ".windsurf/hooks.json",
		".factory/settings.json", ".factory/settings.local.json", ".factory/hooks", ".factory/hooks.json",
		".factory/commands", ".factory/droids",
		".augment/settings.json", ".pi/extensions",
		".codebuddy/settings.json", ".codebuddy/settings.local.json", ".codebuddy/agents", ".codebuddy/commands",
		".opencode/plugin", ".opencode/plugins", ".opencode/tool", ".opencode/tools",
		".opencode/agent", ".opencode/agents", ".opencode/mode", ".opencode/modes",
		".continue/mcpServers", ".continue/agents", ".continue/assistants",
		".git", // hooks and configuration of a repository are programs, to whoever calls git next
	}
}

// ClientPlaces are where clients keep the like below the user's home, or xdg
// ($XDG_CONFIG_HOME), under names that mean something else elsewhere: what is out of reach,
// as tokens are in it, and what may be read.
func ClientPlaces(xdg, home string) (hidden, sealed []string) {
	if path.IsAbs(home) {
		hidden = append(hidden, path.Join(home, ".claude/backups")) // of .claude.json
	}
	dir := configDir(xdg, home)
	if dir == "" {
		return hidden, nil
	}
	for _, name := range []string{"zed/settings.json", "goose/config.yaml", "amp/settings.json", "amp/settings.jsonc"} {
		hidden = append(hidden, path.Join(dir, name))
	}
	for _, name := range []string{"plugin", "plugins", "tool", "tools", "agent", "agents", "mode", "modes", "command", "commands"} {
		sealed = append(sealed, path.Join(dir, "opencode", name))
	}
	return hidden, sealed
}
