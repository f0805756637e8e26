package capability_test

import (
	"testing"

	"capgate/capability"
)

// TestLinkOfFolders: a link lies in a folder that is there, and beside what is not.
func TestLinkOfFolders(t *testing.T) {
	tree := newFileTree(t)
	v := tree.view()
	v.Cwd += "/src"
	spec, err := capability.ParseSpec("proc.exec{in=" + tree.root + ",cmds=[ln]}")
	if err != nil {
		t.Fatal(err)
	}
	set, _ := capability.Compile([]capability.Spec{spec}, capability.Options{})
	for line, want := range map[string]bool{
		"ln -s ../notes new":       true,
		"ln -s ../notes new -f":    true,
		"ln -s ../notes sub -f":    true,
		"ln -s ../notes sub":       true,
		"ln -s ../notes ..":        false,
		"ln -s ../x .. -f":         false,
		"ln -s ../../x ../new":     false,
		"ln -s ../x ../sub_link/y": true,
	} {
		r, err := capability.Exec(v, mustPath(t, v.Cwd), argv(line))
		if err != nil {
			t.Fatal(err)
		}
		if got := set.Decide(r).Allowed(); got != want {
			t.Errorf("%s: got %v, want %v", line, got, want)
		}
	}
}
