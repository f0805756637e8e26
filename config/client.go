package config

// ClientFiles are the names of the files that tell clients which servers to use, with
// which tokens. Whoever could read them would be another agent, and whoever could
// write them would go past the gateway. A name has its folder before it where it means
// something else elsewhere.
func ClientFiles() []string {
	return []string{
		".mcp.json", "mcp.json", "managed-mcp.json", // Claude Code, Cursor, VS Code, Kiro, LM Studio and others
		".claude.json", ".claude/settings.json", ".claude/settings.local.json",
		"claude_desktop_config.json",
		".codex/config.toml",
		".gemini/settings.json",
		"mcp-config.json",                              // Copilot
		"mcp_config.json",                              // Windsurf
		"mcp_settings.json", "cline_mcp_settings.json", // Roo, Cline
		"opencode.json", "opencode.jsonc", ".opencode.json", // opencode
		".zed/settings.json", "zed/settings.json",
		"goose/config.yaml",
		"mcporter.json", "mcporter.jsonc",
	}
}
