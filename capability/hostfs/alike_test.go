package hostfs_test

import (
	"os"
	"path/filepath"
	"testing"

	"capgate/capability/hostfs"
)

// TestAlike: some servers open another spelling of a name that is not there, which
// may be a link to anywhere or the gateway's own folder (R-SEC-05).
func TestAlike(t *testing.T) {
	const composed, apart = "caf\u00e9", "cafe\u0301"
	base := dir(t, map[string]string{apart: "/", "B\u00fcro": "a"}, "a", "Keys", "plain", "both/"+composed, "both/"+apart,
		"many/\u1ec7", "many/\u1eb9\u0302")
	for path, want := range map[string]string{
		apart:                  "/",
		composed:               "/",
		composed + "/etc":      "/etc",
		"a/../" + composed:     "/",
		"Bu\u0308ro/x":         base + "/a/x",
		"a/" + composed:        base + "/a/" + composed,
		"\u212aeys/x":          base + "/Keys/x", // the sign of kelvin
		"Keyz":                 base + "/Keyz",
		"none/" + composed:     base + "/none/" + composed,
		"both/" + composed:     base + "/both/" + composed,
		"both/" + apart:        base + "/both/" + apart,
		"many/\u1ec7":          base + "/many/\u1ec7",
		"many/e\u0323\u0302":   "", // which of the two?
		"plain/x;y`z\u00e9K":   base + "/plain/x;y`z\u00e9K",
		"a/" + composed + "/.": base + "/a/" + composed,
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
	base := dir(t, nil, "a", "b", "cafe\u0301")
	if got, err := hostfs.Alike(base, "caf\u00e9", 4); err != nil || got != "cafe\u0301" {
		t.Error(got, err)
	}
	if got, err := hostfs.Alike(base, "caf\u00e9", 3); err == nil {
		t.Error(got)
	}
	if got, err := hostfs.Alike(base, "cafe", 3); err != nil || got != "" {
		t.Error(got, err)
	}
	if err := os.WriteFile(base+"/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, nothing := range []string{"/none", "/file"} {
		if got, err := hostfs.Alike(base+nothing, "caf\u00e9", 3); err == nil {
			t.Error(got)
		}
	}
}
