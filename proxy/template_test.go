package proxy_test

import "testing"

// TestCompletionOfWhateverATemplateMayBecome: a server that completes a template tells of
// resources by their names, so that one grant of a single name, or of one level, is not
// enough.
func TestCompletionOfWhateverATemplateMayBecome(t *testing.T) {
	for _, tt := range []struct {
		grant, template string
		goesUp          int
	}{
		{`resource.read: { uris: ["notes:///x"] }`, "notes:///{name}", 0},
		{`resource.read: { uris: ["notes:///?"] }`, "notes:///{name}", 0},
		{`resource.read: { uris: ["notes:///**"] }`, "notes:///{name}", 1},
		{`fs.read: { in: /srv, paths: [x] }`, "file:///srv/{name}", 0},
		{`fs.read: { in: /srv, paths: ["*"] }`, "file:///srv/{name}", 1},
		{`fs.read: { in: /srv, paths: ["*"] }`, "file:///srv/{+name}", 0},
		{`fs.read: { in: /srv, paths: ["*"] }`, "file:///srv/{name*}", 0},
		{`fs.read: { in: /srv, paths: ["*"] }`, "file:///srv{/name}", 0},
		{`fs.read: { in: /srv, paths: ["*/*"] }`, "file:///srv/{+name}", 0},
		{`fs.read: { in: /srv, paths: ["*", "*/*"] }`, "file:///srv/{+name}", 0},
		{`fs.read: { in: /srv, paths: ["*/**"] }`, "file:///srv/{+name}", 0},
		{`fs.read: { in: /srv, paths: [.] }`, "file:///srv/{+name}", 1},
	} {
		t.Run(tt.grant+" "+tt.template, func(t *testing.T) {
			s := &scripted{lists: map[string]string{"resources/templates/list": `"resourceTemplates":[{"uriTemplate":"` + tt.template + `","name":"n"}]`}}
			up := files(t, s)
			w := start(t, map[string]string{"scout": "---\nclass: agent\ncapabilities:\n  - " + tt.grant + "\n---\n"}, up)
			a := w.client("scout").modern("completion/complete",
				`{"ref":{"type":"ref/resource","uri":"`+tt.template+`"},"argument":{"name":"name","value":"s"}}`, "{}")
			if n := len(s.calls()); n != tt.goesUp {
				t.Errorf("%d requests go up, want %d: %s", n, tt.goesUp, a.Raw)
			}
		})
	}
}
