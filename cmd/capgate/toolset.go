package main

import (
	"fmt"
	"strings"

	"capgate/agents"
	"capgate/capability"
	"capgate/wire"
)

// forbidden is what one toolset takes away, whatever is granted.
type forbidden struct {
	By    string   `json:"by"`    // whose toolset it is
	But   []string `json:"but"`   // the only tools it leaves
	Tools []string `json:"tools"` // of those it takes away, the ones that mappings name
}

// forbids says what the toolsets of an agent, and of those above it, take away.
func (w *world) forbids(id string, line agents.Lineage) []forbidden {
	var all []forbidden
	at := map[string]int{}
	for i, ceiling := range line.Ceilings {
		f := forbidden{By: "toolset of " + ceiling.Name, But: []string{}, Tools: []string{}}
		for g := range ceiling.Set.All() {
			if tools, ok := g.Spec().Get("tools"); ok && g.Inert() == "" {
				f.But = append(f.But, tools.Values...)
			}
		}
		all, at[f.By] = append(all, f), i
	}
	if len(all) == 0 {
		return nil
	}
	for _, u := range w.policy.Upstreams {
		for _, name := range u.Mapping.Names() {
			t := u.Tool(name)
			// A toolset is asked before anything else of a call is.
			if i, ok := at[w.gate.Call(id, t, wire.Value{}).Why]; ok {
				all[i].Tools = append(all[i].Tools, t.Name)
			}
		}
	}
	return all
}

// text says it in a line of what the agent may do.
func (f forbidden) text(id string) string {
	const most = 6 // names of tools in a line
	text := "every tool"
	if len(f.But) > 0 {
		text += " but " + strings.Join(f.But, ", ")
	}
	if own := "toolset of " + id; f.By != own {
		text += ", by the " + f.By
	}
	if n := min(most, len(f.Tools)); n > 0 {
		text += "; among them " + strings.Join(f.Tools[:n], ", ")
		if more := len(f.Tools) - n; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
	}
	return text
}

// outside says what of a grant to call tools a toolset takes away, "" for nothing.
func outside(g *capability.Grant, ceilings []capability.Link) string {
	if g.Verb() != "tool.invoke" || g.Inert() != "" {
		return ""
	}
	one, _ := capability.Compile([]capability.Spec{g.Spec()}, capability.Options{})
	for _, ceiling := range ceilings {
		if gaps := ceiling.Set.Covers(one); len(gaps) > 0 {
			return fmt.Sprintf("the toolset of %s does not allow %s", ceiling.Name, gapText(gaps[0]))
		}
	}
	return ""
}
