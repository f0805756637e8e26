// Command capgate puts one gateway in front of MCP servers and gives each agent
// exactly the authority that its record says. This package is flags, wiring and
// exit codes; what it says on the terminal follows the rules in ui.go.
//
// # Limitations
//
// The gateway itself is not part of this version: the commands here read, explain,
// check and change authority.
package main
