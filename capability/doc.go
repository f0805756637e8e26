// Package capability decides whether a set of grants covers a requirement. It is
// pure: no I/O, no clock, no state.
//
// A grant is a verb and a scope, net.get{hosts=[*.github.com]}. It is written as a
// [Spec], in any of four dialects, and compiled with others into a [Set]:
//
//	specs := []capability.Spec{…}                     // ParseSpec, or a record's YAML
//	set, findings := capability.Compile(specs, opts)  // never fails; says what is inert
//
// What a call needs is a [Requirement]: a verb and the concrete thing it touches,
// with every way that thing may be read. [File], [Net], [Exec], [Shell] and [Keyed]
// make one, [ParseRequirement] reads one as people write it.
//
//	d := set.Decide(need)                             // or Chain.Decide
//	if !d.Allowed() { … d.Code, d.String(), d.Held() }
//
// A decision is a value. Its zero value denies, and so does whatever cannot be
// read. A [Chain] asks everything that must agree: the agent, the agents above
// it, a ceiling. [Set.Covers] compares whole sets: what may be passed on, what a
// policy test promises.
//
// A path is read through a [View], which says where an upstream runs and shows,
// through [FS], where links lead; the real form of that is package hostfs.
//
// # Limitations
//
// What a server does with an argument after the decision is beyond this package:
// a link that is put in place between the decision and the use, a name that
// resolves to another address later, a program that does more than its arguments
// say. The sandbox and its egress are for that.
//
// A link is followed where the gateway runs. For a server that runs elsewhere
// there is no file-system view, and its paths are judged as text alone.
//
// Program options are judged by what is known of git, rg, jq, find, tar and some
// more. For a program without a rule, naming it allows whatever its arguments can
// make it do inside its root.
//
// Git runs the hooks and the configuration of the repository it works in, finds
// that repository above the root as well as below it, and a cloned one can hold
// another as plain files. Archives can leave links that a later call follows, and
// a program that goes through folders by itself (diff, cp -r, grep -r) follows
// what it finds there. Arguments say nothing of that; the sandbox is for it.
//
// Names of hosts are judged as names. Two-label names that only an internal
// network knows look public until they are resolved.
//
// [Set.Covers] stays on the safe side of exact in two places, which its comment
// names, and where its work is capped.
package capability
