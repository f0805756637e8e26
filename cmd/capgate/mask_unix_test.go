//go:build unix

package main

import "syscall"

// usualMask has what tests write be writable by its owner alone, whoever runs them.
func usualMask() { syscall.Umask(0o022) }
