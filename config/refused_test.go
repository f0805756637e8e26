package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/config"
)

// refusal is one block of testdata/refused.txt: a file, and what is said of it.
type refusal struct{ in, want string }

func refusals(t *testing.T) []refusal {
	t.Helper()
	var list []refusal
	_, blocks, _ := strings.Cut(string(read(t, "testdata/refused.txt")), "\n\n")
	for block := range strings.SplitSeq(strings.TrimSpace(blocks), "\n\n") {
		in, want, ok := strings.Cut(block, "\n=> ")
		if !ok {
			t.Fatalf("nothing is said of %q", block)
		}
		list = append(list, refusal{in + "\n", strings.ReplaceAll(want, "\n=> ", "\n")})
	}
	return list
}

// TestRefused: nothing of the gateway's sections is taken to be wider than it is
// written, nor passed over.
func TestRefused(t *testing.T) {
	for _, tc := range refusals(t) {
		got := strings.ReplaceAll(strings.Join(wrong(t, tc.in, view()), "\n"), "capgate.yml:", "")
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("Parse(%q): the errors differ (-want +got):\n%s", tc.in, diff)
		}
	}
}

// TestEveryGatewayKey: a key of the schema that takes something else than text
// or a map refuses it, wherever it stands.
func TestEveryGatewayKey(t *testing.T) {
	for _, k := range config.Schema() {
		if !k.Served || !strings.Contains(k.Name, ".") || strings.HasPrefix(k.Name, "tests[]") {
			continue
		}
		var b strings.Builder
		parts := strings.Split(strings.ReplaceAll(k.Name, "*", "x"), ".")
		for depth, part := range parts {
			b.WriteString(strings.Repeat("  ", depth) + part + ":")
			if depth < len(parts)-1 {
				b.WriteString("\n")
			}
		}
		if got := wrong(t, b.String()+" [{}]\n", view()); len(got) == 0 {
			t.Errorf("%s takes a list with a map in it", k.Name)
		}
	}
}
