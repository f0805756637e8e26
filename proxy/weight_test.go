package proxy_test

import (
	"strings"
	"testing"

	"capgate/proxy"
)

// TestListsOfSessions: each session with a server that may ask has lists of its own, for which
// there is so much room as one agent may take.
func TestListsOfSessions(t *testing.T) {
	long := strings.Replace(tool("read_text_file", "path"), "A tool.", strings.Repeat("x", 100<<10), 1)
	up := files(t, &scripted{lists: map[string]string{"tools/list": `"tools":[` + long + `]`}})
	up.MayAsk = []string{"elicitation"}
	notes := files(t, &scripted{lists: map[string]string{"tools/list": `"tools":[` + long + `]`}})
	notes.Name, notes.Prefix, notes.MayAsk = "notes", "notes", up.MayAsk
	w := startWith(t, proxy.Options{Limits: proxy.Limits{Body: 1 << 20, Bulk: 2 << 20}}, map[string]string{"scout": reader, "other": reader}, up, notes)
	has := func(c *client) bool { // the lists of both
		listed := c.request("tools/list", "{}").Raw
		return strings.Contains(listed, `"files__read_text_file"`) && strings.Contains(listed, `"notes__read_text_file"`)
	}
	session := func(agent string) (*client, bool) {
		c := w.client(agent)
		c.initialize(`{}`)
		return c, has(c)
	}
	var open []*client
	for len(open) < 20 {
		c, ok := session("scout")
		if !ok {
			break
		}
		open = append(open, c)
	}
	if len(open) < 4 || len(open) == 20 { // half of that with the lists of both counted together
		t.Errorf("%d sessions have lists of 100 KiB of two servers, where there are 2 MiB for each", len(open))
	}
	if _, ok := session("other"); !ok {
		t.Error("another agent has no room")
	}
	if !has(open[0]) {
		t.Error("who had the list does not have it any more")
	}
	for _, c := range open {
		c.delete()
	}
	if _, ok := session("scout"); !ok {
		t.Error("there is no room when the sessions have ended")
	}
}
