package mapping_test

import (
	"fmt"
	"strings"
	"testing"

	"capgate/mapping"
)

// TestRoles: what a tool needs is known before there is a call, argument by argument.
func TestRoles(t *testing.T) {
	m, _, err := mapping.Parse("a.yml", []byte(`server: a
tools:
  read: { path: fs.read, head: free }
  move: { source: [fs.read, fs.delete], destination: fs.write }
  edit: { "edits[*].file.path": fs.write, "a\\.b": { verb: fs.read, optional: true } }
  fetch: { url: { verb: net, method: method }, headers: { headers: [Accept] }, key: secret }
  run: { command: proc.eval, cwd: { in: proc.eval }, env: { env: proc.eval } }
  search: { requires: [ { net.get: api.github.com } ], q: free }
  change: { id: { verb: records.update, dim: path } }
  nothing: { q: free }
`))
	if err != nil {
		t.Fatal(err)
	}
	for tool, want := range map[string]string{
		"read":    "path [fs.read]",
		"move":    "source [fs.read]; source [fs.delete]; destination [fs.write]",
		"edit":    `edits[*].file.path [fs.write]; a\.b [fs.read] optional`,
		"fetch":   "url [net.get net.post net.put net.delete]; key [secret.use] handle optional",
		"run":     "command [proc.eval]; cwd [proc.eval] optional",
		"search":  "= net.get{host=[api.github.com]} [net.get]",
		"change":  "id [agent.update records.update]",
		"nothing": "",
		"unknown": "",
	} {
		var got []string
		for _, r := range m.Tool(tool).Roles() {
			text := fmt.Sprint(r.Argument, " ", r.Verbs)
			if r.Fixed != "" {
				text = fmt.Sprint(r.Argument, "= ", r.Fixed, " ", r.Verbs)
			}
			if r.Handle {
				text += " handle"
			}
			if r.Optional {
				text += " optional"
			}
			got = append(got, text)
		}
		if text := strings.Join(got, "; "); text != want {
			t.Errorf("%s: got %q, want %q", tool, text, want)
		}
	}
}
