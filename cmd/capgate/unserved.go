package main

import (
	"fmt"
	"slices"
	"strings"

	"capgate/agents"
	"capgate/capability"
)

// unserved are the grants and toolsets that name tools of no server, or a tool as agents see it.
// They give nothing, and are mostly mistyped. A tool that is granted to whoever uses wrap has
// no server before its name.
func (w *world) unserved() (all []capability.Finding) {
	var known []string
	for _, u := range w.cfg.Upstreams {
		if u.Prefix == "" {
			return nil // any name may be of it
		}
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
	for ag := range w.roster.All() {
		all = append(all, unservedBy(ag, known)...)
	}
	return all
}

func unservedBy(ag *agents.Agent, known []string) (all []capability.Finding) {
	say := func(at capability.Pos, who string, names []string) {
		for _, name := range names {
			if text, hint := astray(name, known); text != "" {
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

// astray says what is wrong with the name of a tool, or a pattern of names, "" if nothing is.
func astray(name string, known []string) (text, hint string) {
	if up, tool, ok := strings.Cut(name, exposedSeparator); ok && slices.Contains(known, up) {
		return fmt.Sprintf("%q as agents see it", name), "write " + up + "." + tool
	}
	up, _, ok := strings.Cut(name, ".")
	if !ok || strings.ContainsAny(up, `*?[{\`) || slices.Contains(known, up) {
		return "", ""
	}
	return fmt.Sprintf("tools of %q, which is no upstream", up), nearest(up, known)
}
