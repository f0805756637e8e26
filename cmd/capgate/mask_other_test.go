//go:build !unix

package main

func usualMask() {}
