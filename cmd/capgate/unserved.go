package main

import (
	"fmt"
	"slices"
	"strings"

	"capgate/agents"
	"capgate/capability"
)

// unserved are the grants and toolsets that name tools of no server, or a tool as agents see it,
// or by the name of its server where that does not stand before its tools. They give nothing, and are
// mostly mistyped. A tool that is granted to whoever uses wrap has no server before its name.
func (w *world) unserved() (all []capability.Finding) {
	var known []string
	free := false
	for _, u := range w.cfg.Upstreams {
		free = free || u.Prefix == ""
		known = append(known, u.Prefix)
	}
	for _, p := range w.cfg.Providers {
		for _, c := range p.Connectors {
			known = append(known, c.Name)
		}
	}
	if len(known) == 0 {
		return nil // the records are for wrap
	}
	if free {
		known = nil // any name may be of it
	}
	for ag := range w.roster.All() {
		all = append(all, w.unservedBy(ag, known)...)
	}
	return all
}

func (w *world) unservedBy(ag *agents.Agent, known []string) (all []capability.Finding) {
	say := func(at capability.Pos, who string, names []string) {
		for _, name := range names {
			text, hint := w.misnamed(name)
			if text == "" && known != nil {
				text, hint = astray(name, known)
			}
			if text != "" {
				all = append(all, capability.Finding{Code: "unserved", Severity: capability.Note, Pos: at, Text: who + " names " + text, Hint: hint})
			}
		}
	}
	if ag.Err != nil {
		return nil
	}
	for g := range ag.Set.All() {
		spec := g.Spec()
		if tools, ok := spec.Get("tools"); ok && g.Verb() == "tool.invoke" && g.Inert() == "" && spec.Pos.File == ag.File {
			say(spec.Pos, g.String(), tools.Values)
		}
	}
	say(capability.Pos{File: ag.File}, "toolset:", ag.Record.Toolset)
	return all
}

// misnamed says how the tool that a name, or a pattern of names, calls by its server is named instead,
// "" if nothing is wrong with that. A pattern of everything is not advised: it would be one of all servers.
func (w *world) misnamed(name string) (text, hint string) {
	instead, how := w.cfg.Otherwise(name)
	if instead == "" {
		return "", ""
	}
	up, _, _ := strings.Cut(name, ".")
	hint = "write " + instead
	if strings.ContainsAny(instead[:1], wildcards) {
		hint = "name its tools as the server does"
	}
	return fmt.Sprintf("%q, and the tools of the upstream %q are named %s", name, up, how), hint
}

const wildcards = `*?[{\`

// astray says what is wrong with the name of a tool, or a pattern of names, "" if nothing is.
func astray(name string, known []string) (text, hint string) {
	if up, tool, ok := strings.Cut(name, exposedSeparator); ok && slices.Contains(known, up) {
		return fmt.Sprintf("%q as agents see it", name), "write " + up + "." + tool
	}
	up, _, ok := strings.Cut(name, ".")
	if !ok || strings.ContainsAny(up, wildcards) || slices.Contains(known, up) {
		return "", ""
	}
	return fmt.Sprintf("tools of %q, which is no upstream", up), nearest(up, known)
}
