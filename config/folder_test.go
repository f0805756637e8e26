package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/capability"
)

func TestWrongFolders(t *testing.T) {
	const (
		quote    = " | quote it if it is meant as text"
		absolute = " | write the absolute path, or ~/… for one below home"
	)
	for _, tc := range []struct{ in, want string }{
		{"agents: 5", "1:9: agents takes a folder or a list of folders, not a number" + quote},
		{"agents: 5.0", "1:9: agents takes a folder or a list of folders, not a number" + quote},
		{"agents: true", "1:9: agents takes a folder or a list of folders, not true or false" + quote},
		{"agents: 2026-01-01", "1:9: agents takes a folder or a list of folders, not a date" + quote},
		{"agents:", "1:8: agents takes a folder or a list of folders, and nothing is written"},
		{"agents: ''", "1:9: agents takes a folder or a list of folders, not an empty text"},
		{"agents: {a: b}", "1:9: agents takes a folder or a list of folders, not a map"},
		{"agents: []", "1:9: agents names no folder | write agents: [./agents]"},
		{"agents: [./a, 5]", "1:15: agents takes a folder, not a number" + quote},
		{"agents: [[./a]]", "1:10: agents takes a folder, not a list"},
		{"agents: [./a, a/]", `1:15: the folder "a/" stands twice | remove one of them`},

		{"sandbox: ~", `1:10: sandbox takes a folder or a map, and ~ alone is YAML for nothing | write "~" in quotes for the home folder`},
		{"sandbox: [a]", "1:10: sandbox takes a folder or a map, not a list"},
		{"sandbox: {}", "1:10: sandbox names no root | write sandbox: { root: ~/work }"},
		{"sandbox: {backend: auto}", "1:10: sandbox names no root | write sandbox: { root: ~/work }"},
		{"sandbox: {roof: a}", `1:11: "roof" is no key of sandbox | did you mean root?`},
		{"sandbox: {root: [a]}", "1:17: sandbox.root takes a folder, not a list"},
		{"sandbox: {root: a, backend: bwrap}", `1:29: backend "bwrap": not in this version | remove it, or write backend: auto`},
		{"sandbox: {root: a, backend: off}", `1:29: backend "off": not in this version | remove it, or write backend: auto`},
		{"sandbox: {root: a, backend: atuo}", `1:29: backend "atuo": not in this version | did you mean auto?`},
		{"sandbox: {root: a, backend: false}", "1:29: sandbox.backend takes auto, not true or false" + quote},
		{"sandbox: ../work", `1:10: sandbox: "../work" holds a .. segment` + absolute},
		{"sandbox: a/../../b", `1:10: sandbox: "a/../../b" holds a .. segment` + absolute},
		{"sandbox: ~bob/work", `1:10: sandbox: only one's own home is known, and "~bob/work" is another's | write ~/…, or the absolute path`},
		{"sandbox: $HOME/work", `1:10: sandbox: variables are not filled in, and "$HOME/work" holds one | write the folder itself, or ~/… for one below home`},
		{"sandbox: /srv/*", `1:10: sandbox: "/srv/*" is a glob where a directory must stand`},
		{"sandbox: ' a'", "1:10: sandbox: a directory is empty or begins or ends in a space"},

		{"state: [a]", "1:8: state takes a folder, not a list"},
		{"state: 0x1", "1:8: state takes a folder, not a number" + quote},
	} {
		want := []string{"capgate.yml:" + tc.want}
		if diff := cmp.Diff(want, wrong(t, tc.in+"\n", view())); diff != "" {
			t.Errorf("Parse(%q): the errors differ (-want +got):\n%s", tc.in, diff)
		}
	}
}

// Where nobody knows the home folder, nothing hangs from it.
func TestNoHome(t *testing.T) {
	want := []string{`capgate.yml:1:10: sandbox: nothing here says which folder is home, and "~/work" is below it | set HOME, or write the absolute path`}
	if diff := cmp.Diff(want, wrong(t, "sandbox: ~/work\n", capability.View{})); diff != "" {
		t.Errorf("the errors differ (-want +got):\n%s", diff)
	}
}
