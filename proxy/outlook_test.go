package proxy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestOutlook: what an agent sees follows the lists and the policy, whatever was
// looked at before, and what is no longer listed is no longer remembered.
func TestOutlook(t *testing.T) {
	s := &scripted{}
	w := start(t, map[string]string{"scout": reader}, files(t, s))
	c := w.client("scout")
	c.initialize("{}")
	c.request("tools/list", "{}")
	sees := func(what string, listed []string, want ...string) {
		t.Helper()
		entries := make([]string, len(listed))
		for i, name := range listed {
			entries[i] = tool(name, "path")
		}
		s.relist("tools/list", `"tools":[`+strings.Join(entries, ",")+`]`)
		s.first().Events.Notify("notifications/tools/list_changed", nil)
		got := toolNames(t, c.request("tools/list", "{}"))
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: %q are shown, want %q", what, got, want)
		}
		if n := w.server.Foreseen("agents/scout"); n != len(listed) {
			t.Errorf("%s: %d of %d tools are remembered", what, n, len(listed))
		}
	}
	both := []string{"write_file", "read_text_file"}
	sees("at first", both, "files__read_text_file")
	sees("once more, in another order", []string{"read_text_file", "write_file"}, "files__read_text_file")
	sees("with one that no mapping covers", append(both, "x"), "files__read_text_file")
	sees("without the one", []string{"write_file"}, []string{}...)
	sees("with it again", both, "files__read_text_file")
	w.write("scout", "---\nclass: agent\ncapabilities:\n  - fs.write: { in: $ROOT, paths: [docs] }\n  - fs.read: { in: $ROOT, paths: [docs] }\n---\n")
	w.adopt()
	sees("with more grants", both, "files__read_text_file", "files__write_file")
	w.write("scout", "---\nclass: agent\ncapabilities: []\n---\n")
	w.adopt()
	sees("without any", both, []string{}...)
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprint("tool", i)
	}
	sees("of names made up", many, []string{}...)
	sees("of others", both, []string{}...)
}
