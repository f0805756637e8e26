package proxy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capgate/capability"
	"capgate/capability/hostfs"
)

// TestHintsTellNothingOfFiles: what a denial asks for is as the path was written, whether or not something is there, and
// wherever a link leads.
func TestHintsTellNothingOfFiles(t *testing.T) {
	up := hinted(t, &scripted{})
	w := start(t, map[string]string{"scout": scoped("capabilities:\n  - fs.read: { paths: [docs] }\n  - net.get: { hosts: [example.org] }\n")}, up)
	for _, dir := range []string{"docs", "secret/real"} {
		must(t, os.MkdirAll(filepath.Join(w.root, dir), 0o700))
	}
	must(t, os.WriteFile(filepath.Join(w.root, "secret", "file"), nil, 0o600))
	for name, to := range map[string]string{"secret/in": "real", "secret/out": "/etc", "secret/loop": "loop", "docs/out": "../secret/file"} {
		must(t, os.Symlink(to, filepath.Join(w.root, name)))
	}
	up.View = capability.View{Cwd: w.root, FS: hostfs.FS{}}
	w.adopt()
	c := w.client("scout")
	c.initialize("{}")
	const asked = "stay within what is held, or ask the operator for: capgate agents grant scout 'fs.read{paths=[secret/"
	for _, name := range []string{"nothing", "file", "real", "in", "out", "loop", "out/passwd", "in/x", "nothing/x", "file/x", "nothing/../x", "real/../x", "in/../x", "file/../x"} {
		last := filepath.Clean(name)
		for method, params := range map[string]string{
			"tools/call":     `{"name":"up__read","arguments":{"path":"` + w.root + `/secret/` + name + `"}}`,
			"resources/read": `{"uri":"file://` + w.root + `/secret/` + last + `"}`,
		} {
			if d := denialOf(t, c.request(method, params)); d.Hint != asked+last+"]}'" {
				t.Errorf("%s of %s: %s", method, name, d.Hint)
			}
		}
	}
	for _, name := range []string{"nothing", "out"} { // besides what is denied first
		d := denialOf(t, c.request("tools/call", `{"name":"up__fetch","arguments":{"url":"https://example.com/","path":"`+w.root+`/secret/`+name+`"}}`))
		if !strings.HasSuffix(d.Hint, " 'net.get{hosts=[example.com]}' 'fs.read{paths=[secret/"+name+"]}'") {
			t.Error(d.Hint)
		}
	}
	d := denialOf(t, c.request("tools/call", `{"name":"up__read","arguments":{"path":"`+w.root+`/docs/out"}}`))
	if !strings.HasSuffix(d.Hint, "or ask the operator, who finds the reason in the event") { // it may be read as it is written
		t.Error(d.Hint)
	}
}
