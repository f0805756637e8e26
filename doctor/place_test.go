package doctor_test

import (
	"io/fs"
	"strings"
	"testing"

	"capgate/capability"
	"capgate/doctor"
)

// TestLoose: what others could change of what decides is found, and only that.
func TestLoose(t *testing.T) {
	const user, other = 1000, 1001
	for _, c := range []struct {
		name string
		doctor.Place
		want string
	}{
		{"one's own", doctor.Place{Mode: 0o644, Owner: user, Group: 100}, ""},
		{"root's", doctor.Place{Mode: 0o644}, ""},
		{"another's", doctor.Place{Mode: 0o600, Owner: other, Group: other}, "the user 1001, to whom it belongs"},
		{"another's, above", doctor.Place{Mode: fs.ModeDir | 0o755, Owner: other, Group: other, Above: true}, ""},
		{"anybody's", doctor.Place{Mode: 0o666, Owner: user, Group: user}, "others may write to it: its mode is 0666"},
		{"only to be written", doctor.Place{Mode: 0o602, Owner: user, Group: user}, "others may write to it: its mode is 0602"},
		{"anybody's, above", doctor.Place{Mode: fs.ModeDir | 0o777, Above: true}, "others may write to it: its mode is 0777, which lets them"},
		{"umask 002", doctor.Place{Mode: 0o664, Owner: user, Group: user}, ""},
		{"root's, for the user", doctor.Place{Mode: 0o664, Group: user}, ""},
		{"the group of root", doctor.Place{Mode: 0o664, Owner: user}, ""},
		{"of a group", doctor.Place{Mode: 0o664, Owner: user, Group: 100}, "the group 100 may write to it: its mode is 0664"},
		{"as /tmp", doctor.Place{Mode: fs.ModeDir | fs.ModeSticky | 0o777}, ""},
		{"as /tmp, above", doctor.Place{Mode: fs.ModeDir | fs.ModeSticky | 0o777, Above: true}, ""},
		{"as /tmp, with records", doctor.Place{Mode: fs.ModeDir | fs.ModeSticky | 0o777, Listed: true}, "others may write to it: its mode is 0777"},
		{"as /tmp, of another", doctor.Place{Mode: fs.ModeDir | fs.ModeSticky | 0o777, Owner: other}, "the user 1001, to whom it belongs"},
	} {
		c.File = "x"
		found := doctor.Examine(doctor.Subject{Places: []doctor.Place{c.Place}, User: user, OS: "linux", Has: func(string) bool { return true }})
		switch {
		case c.want == "" && len(found) == 0:
		case c.want == "" || len(found) != 1 || !strings.HasPrefix(found[0].Text, c.want):
			t.Errorf("%s: %v", c.name, found)
		case found[0].Severity != capability.Warning || found[0].Code != "others_write" || found[0].Hint == "" || found[0].Pos.File != "x":
			t.Errorf("%s: %+v", c.name, found[0])
		}
	}
}

// TestLooseAlike: a checkout that anybody may write is one finding for each folder of the configuration.
func TestLooseAlike(t *testing.T) {
	all := func(file, under string, mode fs.FileMode) doctor.Place {
		return doctor.Place{File: file, Under: under, Mode: mode}
	}
	found := doctor.Loose([]doctor.Place{
		all("a", "", 0o666), all("b", "", 0o666), all("d/1", "d", 0o666), all("d/2", "d", 0o644), all("d/3", "d", 0o666), all("d/4", "d", 0o602), all("e/1", "e", 0o666),
	}, 0)
	var got []string
	for _, f := range found {
		got = append(got, f.Pos.File)
	}
	if strings.Join(got, " ") != "a b d/1 d/4 e/1" || !strings.HasSuffix(found[2].Text, "; 1 more beside it are alike") {
		t.Errorf("%v", found)
	}
}
