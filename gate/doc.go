// Package gate decides one requirement, one call, list entry, skill or provider tool,
// for one agent. It is the only caller of the decision in package
// capability: whatever asks what an agent may do, asks here.
//
// A [Gate] is built from a roster of agents and a fence around the gateway's own
// files. [Gate.Require] answers for one agent: is it known and its record sound,
// does its whole chain cover every requirement, is nothing behind the fence, and
// does somebody have to approve.
//
// [Gate.Skill] asks whether the same chain covers all that a skill requires. It
// decides who sees the skill, and nothing else.
//
// [Gate.Provider] returns what a model's provider may do for an agent: the hosts that
// its whole chain allows, and a decision on each tool that cannot be scoped.
//
// # Limitations
//
// Tool calls, declarations, pins and tickets come with the gateway. What stands
// here decides requirements that are already read.
//
// A skill that names a tool without a scope is satisfied by any use of its verb,
// perhaps one that only a call shows to end at the fence.
package gate
