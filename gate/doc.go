// Package gate decides one requirement, one call, list entry, skill or provider tool,
// for one agent. It is the only caller of the decision in package
// capability: whatever asks what an agent may do, asks here.
//
// A [Gate] is built from a roster of agents and a fence around the gateway's own
// files. [Gate.Require] answers for one agent: is it known and its record sound,
// does its whole chain cover every requirement, is nothing behind the fence, and
// does somebody have to approve. [Gate.Call] reads the requirements out of a tool's
// arguments first, and holds the call to what the tool's server declares.
//
// [Gate.Skill] asks whether the same chain covers all that a skill requires. It
// decides who sees the skill, and nothing else.
//
// [Gate.Provider] returns what a model's provider may do for an agent: the hosts that
// its whole chain allows, and a decision on each tool that cannot be scoped.
//
// # Limitations
//
// A skill that names a tool without a scope is satisfied by any use of its verb,
// perhaps one that only a call shows to end at the fence.
package gate
