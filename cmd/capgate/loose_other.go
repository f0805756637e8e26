//go:build !unix

package main

import "capgate/doctor"

// places are none where a mode says nothing of who may write.
func (w *world) places() []doctor.Place { return nil }

// ownUser is nobody.
func ownUser() int { return -1 }
