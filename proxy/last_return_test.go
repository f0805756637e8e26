package proxy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"capgate/proxy"
)

// TestUpdateOfBeforeAndAfter: an agent that does not listen is told of a resource once its server is reached in another
// way, also where the server has told of it before.
func TestUpdateOfBeforeAndAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{lists: map[string]string{"resources/list": `"resources":[{"uri":"notes:///a","name":"a"}]`}}
		w := start(t, map[string]string{"scout": fmt.Sprintf(notesReader, "*")}, &proxy.Upstream{Name: "notes", Prefix: "notes", Open: s.open})
		c := w.client("scout")
		c.initialize(`{}`)
		c.request("resources/list", "{}")
		c.request("resources/subscribe", uriParams("notes:///a"))
		s.newest().Events.Notify("notifications/resources/updated", []byte(uriParams("notes:///a")))
		time.Sleep(time.Second)
		w.ups = []*proxy.Upstream{{Name: "notes", Prefix: "notes", Open: s.open, Identity: "another"}}
		w.adopt()
		time.Sleep(time.Minute)
		s.newest().Events.Notify("notifications/resources/updated", []byte(uriParams("notes:///a")))
		time.Sleep(time.Minute)
		in := c.listen()
		var got string
		for one := soon(in); one != ""; one = soon(in) {
			got += one
		}
		if n := strings.Count(got, "notes:///a"); n != 1 {
			t.Errorf("it is told %d times: %s", n, got)
		}
	})
}

// TestProcessOfAgentThatReturns: the process of an agent whose record was gone for a while works again.
func TestProcessOfAgentThatReturns(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprint(shared), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				up := files(t, &scripted{})
				up.Shared = shared
				w := start(t, map[string]string{"scout": reader, "boss": reader}, up)
				p := w.process(t.Context(), "scout")
				call := func() string {
					return p.say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"files__read_text_file","arguments":{"path":"` + w.root + `/docs/a"},"_meta":{` + modernMeta + `}}}`)
				}
				if got := call(); !strings.Contains(got, "done") {
					t.Error(got)
				}
				must(t, os.Remove(filepath.Join(w.dir, "scout.md")))
				w.adopt()
				time.Sleep(time.Hour)
				if got := call(); strings.Contains(got, "done") {
					t.Error(got)
				}
				w.write("scout", reader)
				w.adopt()
				if got := call(); !strings.Contains(got, "done") {
					t.Error(got)
				}
				if got := p.say(`{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"_meta":{` + modernMeta + `}}}`); !strings.Contains(got, "read_text_file") {
					t.Error(got)
				}
				p.close()
				<-p.ended
			})
		})
	}
}
