package proxy_test

import (
	"cmp"
	"strings"
	"testing"

	"capgate/proxy"
)

// TestUnreadableIsAnswered: a client waits for the answer to what it has asked, also where
// that cannot be read or is too long. Only an id that no reader sees otherwise is used.
func TestUnreadableIsAnswered(t *testing.T) {
	w := startWith(t, proxy.Options{Limits: proxy.Limits{Body: 8 << 10}}, map[string]string{"scout": reader}, files(t, &scripted{}))
	web := w.client("scout")
	web.initialize(`{}`)
	call := func(arguments string) string {
		return `{"method":"tools/call","params":{"name":"files__read_text_file","arguments":` + arguments + `},"jsonrpc":"2.0","id":7}`
	}
	last := strings.Repeat("x", 9<<10)
	for name, c := range map[string]struct{ text, id string }{
		"cut emoji":           {call(`{"path":"\ud83d"}`), `7`},
		"NUL":                 {call(`{"path":"\u0000"}`), `7`},
		"twice":               {call(`{"path":"a","Path":"b"}`), `7`},
		"endless number":      {call(`{"path":1e400}`), `7`},
		"no number":           {call(`{"path":NaN}`), `7`},
		"not UTF-8":           {call("{\"path\":\"\xff\"}"), `7`},
		"id within":           {call(`{"id":8,"path":["\ud83d",{"id":9}]}`), `7`},
		"id in a text":        {call(`{"path":"\ud83d\",\"id\":8,\"","a":"{[","b":"\\"}`), `7`},
		"id as a text":        {`{"jsonrpc": "2.0", "id" : "a,b}" , "method":"ping","params":{"a":"\u0000"} }`, `"a,b}"`},
		"unknown member":      {`{"jsonrpc":"2.0","extra":1,"id":7,"method":"ping"}`, `7`},
		"too long":            {call(`{"path":"` + last + `"}`), `7`},
		"too long, id first":  {`{"jsonrpc":"2.0","id":"first","method":"ping","params":{"a":"` + last + `"}}`, `"first"`},
		"long name":           {`{"` + last + `":1,"jsonrpc":"2.0","id":7,"method":"ping"}`, `7`},
		"id far behind":       {`{"jsonrpc":"2.0","id":` + strings.Repeat(" ", 300) + `7,"method":"ping","a":NaN}`, `7`},
		"id before blanks":    {`{"jsonrpc":"2.0","id":7` + strings.Repeat(" ", 300) + `8,"method":"ping"}`, ``},
		"two ids, far apart":  {`{` + strings.Repeat(" ", 300) + `"id":7,"id":8,"method":"ping"}`, ``},
		"two ids":             {`{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}`, ``},
		"another case":        {`{"jsonrpc":"2.0","id":7,"ID":8,"method":"ping"}`, ``},
		"escaped":             {`{"jsonrpc":"2.0","id":7,"\u0069d":8,"method":"ping"}`, ``},
		"id that is no id":    {`{"jsonrpc":"2.0","id":{"a":7},"method":"ping","params":{"a":"\u0000"}}`, ``},
		"id cut":              {`{"jsonrpc":"2.0","id":"\ud83d","method":"ping"}`, ``},
		"long id":             {`{"jsonrpc":"2.0","id":"` + last + `","method":"ping"}`, ``},
		"broken off":          {`{"jsonrpc":"2.0","id":7,"method":"ping"`, ``},
		"two messages":        {`{"jsonrpc":"2.0","id":7,"method":"ping"}{"jsonrpc":"2.0","id":8,"method":"ping"}`, ``},
		"batch":               {`[{"jsonrpc":"2.0","id":7,"method":"ping"}]`, ``},
		"answer":              {`{"jsonrpc":"2.0","id":7,"result":{"a":"\u0000"}}`, ``},
		"notification":        {`{"jsonrpc":"2.0","method":"notifications/progress","params":{"id":7,"a":"\u0000"}}`, ``},
		"text around":         {`id "id":7,{"id":7}`, ``},
		"text":                {`"id":7`, ``},
		"only what closes":    {`}}{"id":7}`, ``},
		"number with a point": {`{"jsonrpc":"2.0","id":7.5,"method":"ping"}`, ``},
	} {
		code := "malformed_request"
		if len(c.text) > 8<<10 {
			code = "limit_exceeded"
		}
		answer, answered := w.talk(c.text)[cmp.Or(c.id, "null")]
		if !answered || answer.Error == nil {
			t.Errorf("%s over stdio: not answered under the id %q", name, c.id)
		} else if got := denialOf(t, answer).Code; got != code {
			t.Errorf("%s over stdio: %s", name, got)
		}
		a := take(t, web.post(c.text))
		if len(c.text) < 8<<10 && string(a.ID) != cmp.Or(c.id, "null") {
			t.Errorf("%s over HTTP: %s, want the id %q", name, a.Raw, c.id)
		}
		if got, all := denialOf(t, a).Code, w.events.of("refusal"); got != code || all[len(all)-1].Code != code {
			t.Errorf("%s over HTTP: %s, and %s in the event", name, got, all[len(all)-1].Code)
		}
	}
}
