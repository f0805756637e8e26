//go:build unix

package main

import "syscall"

// ownersOnly has what is made from now on be the owner's alone, until it is undone.
func ownersOnly() (undo func()) {
	mask := syscall.Umask(0o177)
	return func() { syscall.Umask(mask) }
}
