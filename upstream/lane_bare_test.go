//go:build unix

package upstream_test

import (
	"testing"

	"capgate/upstream"
)

// TestLanesOfNoFile: a connection of which nobody can see whether its server has ended it is
// used once.
func TestLanesOfNoFile(t *testing.T) {
	s := newScript(t, plain)
	over, end := upstream.BareLanes(t, s.url)
	defer end()
	for range 2 {
		if got, err := post(t.Context(), t, over, s.url); got != "200 ok" || err != nil {
			t.Errorf("it is answered with %q, and %v", got, err)
		}
	}
	if n := s.conns.Load(); n != 2 {
		t.Errorf("%d connections were made", n)
	}
}
