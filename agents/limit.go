package agents

import (
	"slices"
	"strings"
)

// limit are words that limit an agent elsewhere and mean nothing here, with what to write instead. A word stands
// for those that end in what it may be about as well, as deny for deniedTools.
type limit struct {
	words   []string
	instead string
}

func limits() []limit {
	return []limit{
		{
			[]string{
				"deny", "denies", "denied", "denylist", "disallow", "disallows", "disallowed", "forbid", "forbids", "forbidden", "block", "blocks", "blocked",
				"blocklist", "blacklist", "exclude", "excludes", "excluded", "prohibit", "prohibits", "prohibited", "ban", "banned", "except",
			},
			"what nothing grants is denied: leave it out of capabilities:",
		},
		{
			[]string{
				"requireapproval", "requiresapproval", "requireapprovals", "requireapprovalfor", "approvalrequired", "needsapproval", "approval", "approvals",
				"ask", "askfor", "confirm", "confirmation", "requireconfirmation", "requiresconfirmation",
			},
			"write approve: with what is to be asked for",
		},
		{
			[]string{
				"allow", "allows", "allowed", "allowlist", "whitelist", "grant", "grants", "granted", "permit", "permits", "permitted", "permission",
				"restrict", "restricts", "restricted", "restriction", "restrictions", "limit", "limits", "readonly",
			},
			"write capabilities: with what it may do",
		},
		{[]string{"root", "roots", "in"}, "write sandbox: with the folder, or in: in an entry of capabilities:"},
		{[]string{"ceiling", "ceilings"}, "write parent: with the agent above, or toolset: with the tools that it may call"},
		{
			[]string{"expires", "expiresat", "expiresin", "expire", "expiry", "expiration", "validuntil", "validfrom", "notafter", "notbefore", "ttl"},
			"nothing here ends by itself: take the record away when it is to end",
		},
		{
			[]string{"disabled", "disable", "enabled", "enable", "suspended", "suspend", "revoked", "revoke"},
			"write capabilities: [] for an agent that may do nothing, or take the record away",
		},
	}
}

// limiting returns what to write instead of a key whose author meant to limit the agent by it, however it is written.
func limiting(key string) (instead string, ok bool) {
	plain := strings.NewReplacer("-", "", "_", "", " ", "", ".", "").Replace(strings.ToLower(key))
	for _, about := range []string{"", "tools", "tool", "actions", "commands", "capabilities", "hosts", "domains", "paths", "verbs"} {
		word, found := strings.CutSuffix(plain, about)
		if !found {
			continue
		}
		for _, l := range limits() {
			if slices.Contains(l.words, word) {
				return l.instead, true
			}
		}
	}
	for _, begin := range []string{"deny", "denied", "disallow", "forbid", "prohibit", "allowed", "restrict"} { // what no prose begins with
		if strings.HasPrefix(plain, begin) {
			return limits()[0].instead, true
		}
	}
	return "", false
}
