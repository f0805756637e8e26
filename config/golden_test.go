package config_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The whole of what a user is told about a file with many mistakes, in the order
// of its lines.
func TestListing(t *testing.T) {
	const golden = "testdata/mistakes.golden"
	got := strings.Join(wrong(t, string(read(t, "testdata/mistakes.yml")), view()), "\n") + "\n"
	if diff := cmp.Diff(string(read(t, golden)), got); diff != "" {
		t.Errorf("the listing differs (-want +got):\n%s", diff)
	}
}
