package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"capgate/capability"
	"capgate/config"
	"capgate/proxy"
)

// collide says of a call that several tools claim the name that agents see its tool by, as far as they
// have been seen. Where no gateway has run yet, nothing is looked for.
func (c *explainedCall) collide(x *explanation) {
	k := c.world.kept()
	if _, err := os.Stat(k.state); err != nil {
		return
	}
	rows, err := k.pinned(nil)
	if err != nil {
		x.Note = "whether other tools claim the name of this one is not known: " + err.Error()
		return
	}
	var claim []string
	shown := ""
	for _, u := range k.upstreams {
		if u.Name == c.upstream {
			shown = exposed(u, c.own())
		}
	}
	if k.mode(c.upstream, c.own()) == proxy.Off { // it is never in the rows
		claim = append(claim, c.tool.Name)
	}
	for _, row := range rows {
		i := slices.IndexFunc(k.upstreams, func(u config.Upstream) bool { return u.Name == row.Upstream })
		if i < 0 || strings.Contains(row.Tool, ":") || k.mode(row.Upstream, row.Tool) == proxy.Off {
			continue // it is no tool, or nobody keeps up what is known of it
		}
		if u := k.upstreams[i]; strings.EqualFold(exposed(u, row.Tool), shown) {
			claim = append(claim, among(u, row.Tool))
		}
	}
	if len(claim) < 2 {
		return
	}
	x.Decision, x.Code, x.Grant, x.Source = capability.Deny.String(), string(capability.NameCollision), "", ""
	x.Why = fmt.Sprintf("several tools claim the name %s: %s, as far as was seen", shown, several(claim))
	x.Blocked, x.Note = "no grant changes that", "where the server lists but one of them by now, it is called"
}

// exposed is the name by which agents see a tool of an upstream.
func exposed(u config.Upstream, own string) string {
	own = strings.ReplaceAll(own, ".", "_")
	if u.Prefix == "" {
		return own
	}
	return u.Prefix + exposedSeparator + own
}

// among is its name among capabilities.
func among(u config.Upstream, own string) string {
	if u.Prefix == "" {
		return own
	}
	return u.Prefix + "." + own
}

// several writes some names, and counts the rest.
func several(names []string) string {
	const most = 3
	slices.Sort(names)
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
