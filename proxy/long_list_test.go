package proxy_test

import (
	"strings"
	"sync"
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
					goes := anew && route == call // by what was known; what is no tool may be of a skill by now
					if took := time.Since(begun); took > limit+4*time.Second || failed == goes {
						t.Errorf("%s beside %q, anew %t: took %s: %s", route, beside, anew, took, a.Raw)
					}
				})
			}
		}
	}
}

// TestManyWaitForOneList: of several calls that wait for the same list in vain, each is told why.
func TestManyWaitForOneList(t *testing.T) {
	for _, beside := range []string{"other", ""} { // by the prefix of another server
		synctest.Test(t, func(t *testing.T) {
			s := &scripted{slow: time.Minute}
			up := files(t, s)
			s.lists["prompts/list"] = `"prompts":[{"name":"p"}]`
			w := start(t, map[string]string{"scout": everything}, up, &proxy.Upstream{Name: "other", Prefix: beside, Open: new(scripted).open})
			var calls sync.WaitGroup
			for range 8 {
				calls.Go(func() {
					for _, route := range []string{`tools/call {"name":"files__read_text_file","arguments":{}}`, `prompts/get {"name":"files__p"}`} {
						method, params, _ := strings.Cut(route, " ")
						if a := w.client("scout").modern(method, params, "{}"); denialOf(t, a).Code != "upstream_failed" {
							t.Errorf("beside %q: %s", beside, a.Raw)
						}
					}
				})
			}
			calls.Wait()
		})
	}
}
