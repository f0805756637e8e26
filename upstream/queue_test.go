package upstream_test

import (
	"testing"

	"capgate/upstream"
)

// TestQueueAgainstChance: whatever is asked, refused, left and read when, what is read is whole lines, each of them
// allowed at last, and nobody is asked about a line once its sender has left.
func TestQueueAgainstChance(t *testing.T) {
	for seed := range uint64(60) {
		if err := upstream.Queue(seed); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// TestLeftWhileBegun: nor is a line written of which nothing was when its sender left.
func TestLeftWhileBegun(t *testing.T) {
	if asked, stays := upstream.LeftWhileBegun(); asked > 0 || stays {
		t.Errorf("asked %d times, and stays: %t", asked, stays)
	}
}
