// Command capgate puts one gateway in front of MCP servers and gives each agent
// exactly the authority that its record says. This package is flags, wiring and
// exit codes; what it says on the terminal follows the rules in ui.go.
//
// # Limitations
//
// A command reads the whole configuration and all records, however little of them it
// needs.
package main
