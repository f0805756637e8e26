//go:build !unix

package builtin_test

import "testing"

func makeSpecial(t *testing.T, _ string) {
	t.Helper()
	skip(t, "pipes", "a directory holds no pipes and sockets here")
}
