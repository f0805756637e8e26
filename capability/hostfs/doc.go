// Package hostfs is the file system of this machine as a [capability.FS]: it
// says where a path really leads, the way the kernel would walk it, and what lies there.
//
//	view := capability.View{Cwd: "/home/me/work", Home: "/home/me", FS: hostfs.FS{}}
//
// Use it for upstreams that run here. For one behind a URL it says nothing.
//
// Where a name is not there, and one that is the same text to Unicode is, the walk goes
// on with that one: some servers open it instead.
//
// # Limitations
//
// The walk is a snapshot: a link made between the decision and the upstream's
// own open is not seen. Hard links and bind mounts are names like any other. A
// path below /proc/self is that of this process, not of the upstream. What may
// be opened is left to the operating-system sandbox, which has none of these gaps.
// What takes too long to look up, as it lies hundreds of folders deep, is not found.
package hostfs
