package agents

import (
	"strings"

	"capgate/capability"
)

// renderSpec writes a grant as one entry of a capabilities: list, on one line.
func renderSpec(s capability.Spec) string {
	if s.Bare {
		return renderText(s.Verb)
	}
	return s.Verb + ": " + renderScope(s.Scope)
}

func renderScope(scope []capability.Param) string {
	if len(scope) == 0 {
		return "{}"
	}
	parts := make([]string, len(scope))
	for i, p := range scope {
		parts[i] = renderText(p.Key) + ": "
		switch {
		case p.IsMap:
			parts[i] += renderScope(p.Args)
		case len(p.Values) == 1 && (p.Single || p.Key == "in"):
			parts[i] += renderText(p.Values[0])
		default:
			parts[i] += renderList(p.Values)
		}
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}

func renderList(values []string) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = renderText(v)
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// renderText writes text so that YAML reads it back as the same text, in quotes
// wherever there could be a doubt.
func renderText(v string) string {
	const (
		letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		inside  = letters + "0123456789_-./*"
	)
	first := strings.TrimPrefix(v, "~/") // a tilde alone is nothing, in front of a path it is text
	isWord := first != "" && strings.Contains(letters+"/_", first[:1]) && strings.Trim(first, inside) == ""
	switch strings.ToLower(v) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n":
		isWord = false
	}
	if isWord {
		return v
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(v) + `"`
}
