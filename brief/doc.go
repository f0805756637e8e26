// Package brief reads and writes what answers at once without a word to Go's scheduler:
// after a pause it takes the scheduler longer to be told of a system call than the call
// takes, as a thread that watches over such calls is woken for each.
//
//	s := brief.NewSocket(conn) // short pieces on it cost less
//	p := brief.NewPipe(stdout) // of a program, likewise
//	f := brief.NewFile(log)    // so does a line, while the disk is quick
//
// What comes on a socket can be read to memory that is lent when it is there, so that one on
// which nothing comes needs none.
//
// Sockets never block, and pipes that do are left alone. A write to a file may: it goes to
// memory, and has to wait where there is too much for the disk in it. Who waits unannounced
// has everybody wait. So only a write that follows another at once goes without a word, and one
// that took long is followed by a hundred times as long in which the scheduler is told. Files on
// other machines, which may wait for ever, are written as ever.
//
// # Limitations
//
// A disk that stands still while lines follow each other stops the whole process until it goes on.
//
// Only Linux on amd64 and arm64 is served. Elsewhere, and where a sanitizer looks for races,
// all is read and written by package net and package os.
package brief
