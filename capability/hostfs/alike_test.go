package hostfs_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"capgate/capability/hostfs"
)

// TestAlike: some servers open another spelling of a name that is not there, which
// may be a link to anywhere or the gateway's own folder (R-SEC-05).
func TestAlike(t *testing.T) {
	const composed, apart = "caf\u00e9", "cafe\u0301"
	base := dir(t, map[string]string{apart: "/", "B\u00fcro": "a"}, "a", "Keys", "plain", "both/"+composed, "both/"+apart)
	for path, want := range map[string]string{
		apart:                "/",
		apart + "/etc":       "/etc",
		composed:             "",
		composed + "/etc":    "",
		"Bu\u0308ro/x":       "",
		"a/" + composed:      base + "/a/" + composed,
		"\u212aeys/x":        "", // the sign of kelvin
		"Keyz":               base + "/Keyz",
		"none/" + composed:   base + "/none/" + composed,
		"both/" + composed:   base + "/both/" + composed,
		"plain/x;y`z\u00e9K": base + "/plain/x;y`z\u00e9K",
	} {
		got, err := hostfs.FS{}.Real(base + "/" + path)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%+q: got %q, %v", path, got, err)
		}
	}
	if os.Getuid() == 0 {
		return // may read everything
	}
	if err := os.Chmod(filepath.Join(base, "plain"), 0o300); err != nil {
		t.Fatal(err)
	}
	if got, err := (hostfs.FS{}).Real(base + "/plain/" + composed); err == nil {
		t.Errorf("a folder that cannot be listed: %q", got)
	}
}

// TestAlikeMany: what cannot be compared with everything that is there is not
// resolved.
func TestAlikeMany(t *testing.T) {
	base := dir(t, nil, "many")
	for i := range 1<<14 + 1 {
		if err := os.Symlink("x", base+"/many/"+strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := (hostfs.FS{}).Real(base + "/many/caf\u00e9"); err == nil {
		t.Error(got)
	}
	if _, err := (hostfs.FS{}).Real(base + "/many/cafe"); err != nil {
		t.Error(err)
	}
}
