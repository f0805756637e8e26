package proxy

import "strings"

const (
	separator = "__"
	// longest is what clients leave of 128 bytes after their own prefix, which
	// is mcp__, the name they know the gateway by, and another separator.
	longest = 128 - len("mcp__"+"capgate"+separator)
)

// exposedName is the name that agents know something by: what stands before those of its server, and
// its own. Clients take a dot for an underscore, so that it is one from the start.
// What two of them claim, nobody has; the name is looked up in a table, and never
// taken apart again.
func exposedName(u *Upstream, name string) string {
	name = strings.ReplaceAll(name, ".", "_")
	if u.Prefix == "" {
		return name
	}
	return u.Prefix + separator + name
}

// validName says why a name cannot be shown to an agent, "" if it can.
func validName(name string) string {
	if name == "" || len(name) > longest {
		return "the name is empty, or too long for clients to take"
	}
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
		default:
			return "the name holds characters that clients do not take"
		}
	}
	return ""
}

// foldName is what two names have in common that some client confuses.
func foldName(name string) string { return strings.ToLower(name) }
