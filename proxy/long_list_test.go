package proxy_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"capgate/proxy"
)

// TestCallsWaitForListsAsForAnswers: a call waits no longer for the lists of a server that hangs than
// for an answer of it, be it new or one that was started anew. Besides, it waits for what others have.
func TestCallsWaitForListsAsForAnswers(t *testing.T) {
	const limit = 5 * time.Second
	const call = `tools/call {"name":"files__read_text_file","arguments":{"path":"$ROOT/docs/a"}}`
	for _, route := range []string{call, `prompts/get {"name":"files__p"}`, `resources/read {"uri":"note:///a"}`} {
		for _, beside := range []string{"other", ""} { // by the prefix of another server
			for _, anew := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					s, other := &scripted{}, &scripted{}
					up := files(t, s)
					up.Timeout = limit
					s.lists["prompts/list"] = `"prompts":[{"name":"p"}]`
					s.lists["resources/list"] = `"resources":[{"uri":"note:///a","name":"a"}]`
					w := start(t, map[string]string{"scout": everything}, up, &proxy.Upstream{Name: "other", Prefix: beside, Open: other.open})
					c := w.client("scout")
					ask := func(route string) said {
						method, params, _ := strings.Cut(strings.ReplaceAll(route, "$ROOT", w.root), " ")
						return c.modern(method, params, "{}")
					}
					if anew {
						ask("tools/list {}")
						must(t, s.hangsUp())
						time.Sleep(time.Second)
					}
					s.takes(time.Minute)
					if anew {
						ask(call) // starts it
					}
					begun := time.Now()
					a := ask(route)
					failed := strings.Contains(a.Raw, "upstream_failed")
					if took := time.Since(begun); took > limit+4*time.Second || !anew && !failed && !strings.HasPrefix(route, "resources") {
						t.Errorf("%s beside %q, anew %t: took %s: %s", route, beside, anew, took, a.Raw)
					}
				})
			}
		}
	}
}
