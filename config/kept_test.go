package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"capgate/capability"
	"capgate/config"
)

// TestKept: where the state is can be read although the rest is wrong, and is not
// guessed where it is wrong itself.
func TestKept(t *testing.T) {
	for name, c := range map[string]struct {
		text, state, log string // "" for none
	}{
		"whole":           {"agents: ./agents\nstate: ./kept\n", "kept", "kept/events"},
		"elsewhere wrong": {"agnets: 3\nstate: ./kept\nupstreams: [x]\n", "kept", "kept/events"},
		"unwritten":       {"upstreams: 7\n", ".capgate", ".capgate/events"},
		"log":             {"x: 1\nguardrail: { log: ./log }\n", ".capgate", "log"},
		"twice":           {"state: ./a\nstate: ./b\n", "", ""},
		"wrong itself":    {"state: [a]\n", "", ""},
		"guardrail wrong": {"guardrail: { lgo: ./log }\n", "", ""},
		"no YAML":         {"{ state: a\n", "", ""},
		"no map":          {"- state\n", "", ""},
		"empty":           {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "capgate.yml")
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := config.Kept(file, capability.View{Cwd: dir})
			if c.state == "" {
				if err == nil {
					t.Errorf("the state is taken to be %s", got.State)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := filepath.Join(dir, c.state); got.State != want {
				t.Errorf("the state is %s, not %s", got.State, want)
			}
			if want := filepath.Join(dir, c.log); got.Guardrail.Log != want {
				t.Errorf("the log is %s, not %s", got.Guardrail.Log, want)
			}
		})
	}
}
