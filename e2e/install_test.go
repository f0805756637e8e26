//go:build unix

package e2e_test

import (
	"os"
	"path/filepath"
	"testing"
)

// Where .ci/e2e-setup puts what is driven.
const (
	node             = "node/node_modules/node/bin/node"
	conformance      = "conf/node_modules/.bin/conformance"
	everythingServer = "bin/everything-server" // of the Go SDK, for the suite
	everythingClient = "bin/everything-client"
	serverFilesystem = "servers/node_modules/.bin/mcp-server-filesystem"
	serverEverything = "servers/node_modules/.bin/mcp-server-everything"
	serverMemory     = "servers/node_modules/.bin/mcp-server-memory"
	inspector        = "insp/node_modules/.bin/inspector"
	claude           = "claude/node_modules/.bin/claude"
	codex            = "codex/node_modules/.bin/codex"
	opencode         = "opencode/node_modules/.bin/opencode"
	mcporter         = "mcporter/node_modules/.bin/mcporter"
)

// kit is the folder that .ci/e2e-setup fills.
func kit() string {
	if dir := os.Getenv("CAPGATE_E2E"); dir != "" {
		return dir
	}
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		cache = filepath.Join(os.Getenv("HOME"), ".cache") // on every system, as the script has it
	}
	return filepath.Join(cache, "capgate-e2e")
}

// installed is the path of a program of the kit. A test whose program is missing
// is skipped by the name of it.
func installed(t *testing.T, program string) string {
	t.Helper()
	file := filepath.Join(kit(), filepath.FromSlash(program))
	if _, err := os.Stat(file); err != nil {
		unavailable(t, program+" is not installed: .ci/e2e-setup does it")
	}
	return file
}

// unavailable ends a test that cannot run here.
func unavailable(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CAPGATE_REQUIRE") == "all" {
		t.Fatal(why)
	}
	t.Skip(why)
}
