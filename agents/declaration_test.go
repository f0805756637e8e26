package agents_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"capgate/agents"
)

// TestDeclaration reads what a tool declares: R-ETH-01, R-ETH-02.
func TestDeclaration(t *testing.T) {
	tests := []struct{ text, want string }{
		{"{}", "[]"},
		{
			"{ network: { allowedHosts: ['api.weather.gov'] }, secrets: ['WEATHER_API_KEY'] }",
			"[net.get{hosts=[api.weather.gov]} net.post{hosts=[api.weather.gov]} net.put{hosts=[api.weather.gov]} net.delete{hosts=[api.weather.gov]} secret.use{names=[WEATHER_API_KEY]}]",
		},
		{
			"fs_reach: { read: [\".\"], write: [\".\"] }\nnetwork: { allowedHosts: [] }\nprocess: { allowedBinaries: [] }\nsecrets: []",
			"[fs.read{paths=[.]} fs.write{paths=[.]}]",
		},
		{"fs_reach: { write: [out, /srv/x, ~/y] }", "[fs.write{paths=[out]} fs.write{in=/srv/x} fs.write{in=~/y}]"},
		{"storage: { scope: agent, kind: kv }\nprocess: { allowedBinaries: [git] }", "[memory.read{keys=[agent/*]} memory.write{keys=[agent/*]} proc.exec{cmds=[git]}]"},
		{"[]", "f:1:1: a declaration is a map of categories, not a list; write {} for a tool that touches nothing"},
		{"null", "f:1:1: a declaration is a map of categories, not nothing; write {} for a tool that touches nothing"},
		{"netwrok: {}", `f:1:1: "netwrok" is no category of a declaration; did you mean network?`},
		{"tools: {}", `f:1:1: "tools" is no category of a declaration; it is one of network, secrets, storage, fs_reach, process`},
		{"secrets: []\nsecrets: []", `f:2:1: the key "secrets" stands twice; it stands in line 1 already`},
		{"secrets: &a []", `f:1:10: anchors and aliases have no place in a record; write the value out, or quote it: "*"`},
		{"network: { allowedHosts: [5] }", "f:1:27: network.allowedHosts: takes names, not a number"},
		{"network: []", "f:1:10: network: takes a map, not a list"},
		{"storage: []", "f:1:10: storage: takes a map, not a list"},
		{"storage: { scope: a, kind: kv, ttl: 5 }", `f:1:32: "ttl" is no key of storage; its keys are scope, kind`},
		{"secrets: ['']", "f:1:11: secrets: holds a name that is empty or has control characters"},
	}
	for _, tt := range tests {
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(tt.text), &doc); err != nil {
			t.Fatal(err)
		}
		got, findings, err := agents.Declaration(doc.Content[0], "f")
		text := fmt.Sprint(got)
		if err != nil {
			text = err.Error()
			if invalid := (*agents.Invalid)(nil); !errors.As(err, &invalid) {
				t.Errorf("%s: got a %T", tt.text, err)
			}
		}
		if text != tt.want || len(findings) > 0 {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.text, text, tt.want)
		}
		for _, s := range got {
			if s.Pos.File != "f" || s.Pos.Line == 0 {
				t.Errorf("%s: %s has no place", tt.text, s)
			}
		}
	}
	if _, _, err := agents.Declaration(nil, "f"); err == nil || !strings.Contains(err.Error(), "nothing is declared") {
		t.Errorf("got %v", err)
	}
}
