// Package gate decides one requirement, and later one call, list entry, skill or
// provider tool, for one agent. It is the only caller of the decision in package
// capability: whatever asks what an agent may do, asks here.
//
// A [Gate] is built from a roster of agents and a fence around the gateway's own
// files. [Gate.Require] answers for one agent: is it known and its record sound,
// does its whole chain cover every requirement, is nothing behind the fence, and
// does somebody have to approve.
//
// # Limitations
//
// Tool calls, declarations, pins and tickets come with the gateway. What stands
// here decides requirements that are already read.
package gate
