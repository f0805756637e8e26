// Package builtin holds the servers that run inside the gateway: files and the
// web, for whoever has nothing but this binary.
//
//	conn, err := builtin.Open("fs", builtin.Options{Name: "files", Root: root, Decide: decide})
//	m, err := builtin.Mapping("fs")
//
// They are upstreams like any other: a [Mapping] says what a call requires, the
// gate decides, and only then do they see the call. But where a server elsewhere
// may touch another thing than was decided on, these ask again, at the moment of
// use, for the very thing they are about to touch:
//
//   - a path is followed first and decided on by where it leads; what is then
//     opened must be that, as the kernel says of the open file, before a byte of it
//     is read, written or cut off;
//   - what is made or replaced is made in a directory that is held open and was
//     checked in the same way; a file is replaced whole, by renaming;
//   - an entry that a list or a search would show is decided on like a read of it,
//     and left out when it is denied, so that what is listed can be read. A search
//     needs the whole tree besides, and follows no link;
//   - each hop of a redirect and each address of a host are decided on, and that
//     address is dialled, so that a name cannot lead elsewhere a moment later.
//
// A denial is the error of Call, a [*capability.Denied] that shows the path or host
// as the call wrote it, never where it leads. What else goes wrong is the result
// of the call, with isError, in a sentence for the agent.
//
// Devices, pipes, sockets and the kernel's own file systems are never opened. A
// file that runs with the rights of its owner is not written to, one with several
// names is replaced and not extended.
//
// # Limitations
//
// Names are what is decided on: a hard link or a bind mount that is made elsewhere
// is a file like any other. Whoever may rename directories beneath the root can
// move one while a call is between the last look at it and the write: the write
// then lands in the same directory, under its new name. Beneath a path that may be
// deleted with all that is in it, nothing is looked at again while it goes: files that may
// not be deleted by themselves are looked for before, but below node_modules.
//
// A file that is replaced belongs to the user of the gateway afterwards, with the
// permission bits it had and without its attributes and access lists. One that is
// made or extended is there half written if the machine stops; so may be a file
// that begins with ".capgate-", which was to be renamed.
//
// A call that hangs in the file system, on a dead network mount, is not ended by
// its time. Outside Linux, where an open file is cannot be asked; its path is
// followed a second time instead, which must lead to the same file. Systems that
// ignore case know a file by names that the decision takes for others.
//
// A host that may be reached may send its answer anywhere else once it has it, and
// what a request says in its URL, its headers or its body reaches it. An agent
// sees which host a redirect points to when that is denied: it is part of an
// answer that the agent may have. Only HTTP/1.1 is spoken, and nothing compressed
// is unpacked.
package builtin
