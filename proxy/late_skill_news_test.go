package proxy_test

import (
	"strings"
	"testing"
	"time"
)

// TestUpdateOfSkillOfBefore: an agent is not told of a file that has changed, once it is not shown the skill any more.
func TestUpdateOfSkillOfBefore(t *testing.T) {
	granted := strings.Replace(anyReader, "capabilities:\n", "capabilities:\n  - net.get: { hosts: [example.com] }\n", 1)
	for name, record := range map[string]string{"taken": anyReader, "kept": strings.Replace(granted, "docs", "notes", 1)} {
		t.Run(name, func(t *testing.T) {
			s := newSkillServer(false, map[string]string{"skill://daily/SKILL.md": skillText("daily", "WebFetch(domain:example.com)", "Text.\n"), "skill://daily/more.txt": "more"})
			w := start(t, map[string]string{"scout": granted}, s.up(t))
			c := w.client("scout")
			c.initialize("{}")
			listSkills(t, c.request)
			const uri = "skill://files/daily/more.txt"
			if a := c.request("resources/subscribe", uriParams(uri)); a.Error != nil {
				t.Fatal(a.Raw)
			}
			s.mu.Lock()
			s.files = map[string]string{"skill://daily/SKILL.md": s.files["skill://daily/SKILL.md"], "skill://daily/more.txt": "less"}
			s.mu.Unlock()
			s.list(s.entries()...)
			s.first().Events.Notify("notifications/resources/updated", []byte(uriParams("skill://daily/more.txt")))
			rest := func() { until(t, "at rest", func() bool { return !w.server.Looks("scout") }) }
			time.Sleep(100 * time.Millisecond)
			rest()
			w.write("scout", record)
			w.adopt()
			rest()
			in, got := c.listen(), ""
			for end := time.After(500 * time.Millisecond); end != nil; {
				select {
				case one := <-in:
					got += one
				case <-end:
					end = nil
				}
			}
			if strings.Contains(got, uri) != (name == "kept") {
				t.Error(got)
			}
		})
	}
}
