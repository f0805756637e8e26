package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capgate/config"
)

func TestFind(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	write(t, in("here/capgate.yml"), "")
	write(t, in("xdg/capgate/capgate.yml"), "")
	write(t, in("home/.config/capgate/capgate.yml"), "")
	write(t, in("dangling/x"), "")
	if err := os.Symlink("nowhere", in("dangling/capgate.yml")); err != nil {
		t.Fatal(err)
	}
	write(t, in("linked/x"), "")
	if err := errors.Join(os.Symlink("xdg", in("dotfiles")), os.Symlink("../xdg/capgate/capgate.yml", in("linked/capgate.yml"))); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, explicit, cwd, xdg, home, want string }{
		{"named", "other.yml", in("here"), in("xdg"), in("home"), in("here/other.yml")},
		{"named by its whole path", "/etc/capgate.yml", in("here"), in("xdg"), in("home"), "/etc/capgate.yml"},
		{"here", "", in("here"), in("empty"), in("home"), in("here/capgate.yml")},
		{"here and the user's", "", in("here"), in("xdg"), in("home"), "two"},
		{"here is where the user's is", "", in("xdg/capgate"), in("xdg"), in("home"), in("xdg/capgate/capgate.yml")},
		{"the user's", "", in("empty"), in("xdg"), in("home"), in("xdg/capgate/capgate.yml")},
		{"the user's, where no variable says so", "", in("empty"), "", in("home"), in("home/.config/capgate/capgate.yml")},
		{"a relative variable is none", "", in("empty"), "xdg", in("home"), in("home/.config/capgate/capgate.yml")},
		{"the variable alone counts when it is set", "", in("empty"), in("empty"), in("home"), ""},
		{"a link to nowhere is not passed over", "", in("dangling"), in("empty"), in("home"), in("dangling/capgate.yml")},
		{"nor is one beside the user's", "", in("dangling"), in("xdg"), in("home"), "two"},
		{"one by two names", "", in("xdg/capgate"), in("dotfiles"), in("home"), in("xdg/capgate/capgate.yml")},
		{"a link to the user's is another", "", in("linked"), in("xdg"), in("home"), "two"},
		{"a home that is no folder", "", in("here"), "", "/dev/null", in("here/capgate.yml")},
		{"none", "", in("empty"), "", in("empty"), ""},
		{"nothing known", "", "", "", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := config.Find(tc.explicit, tc.cwd, tc.xdg, tc.home)
			found := tc.want
			if found == "two" {
				found = ""
			}
			if got != found || (err == nil) != (found != "") || errors.Is(err, config.ErrNone) != (tc.want == "") {
				t.Errorf("Find = %q, %v; want %q", got, err, tc.want)
			}
			if list := config.Errors(err); err != nil && (len(list) != 1 || list[0].Hint == "") {
				t.Errorf("%v has no hint", err)
			}
		})
	}
}

// TestFindUnseen: of what cannot be looked at nobody says that it is there.
func TestFindUnseen(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "here/capgate.yml"), "")
	if err := os.Symlink(".config", filepath.Join(dir, ".config")); err != nil { // no way leads through it
		t.Fatal(err)
	}
	_, err := config.Find("", filepath.Join(dir, "here"), "", dir)
	if list := config.Errors(err); len(list) != 1 || list[0].Hint == "" || strings.Contains(list[0].Text, "there are two") || !strings.Contains(list[0].Text, "cannot be looked at") {
		t.Errorf("Find says %v", err)
	}
}
