package proxy_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"capgate/proxy"
)

// TestGrantTakenWhileAsked: what a server asked something about goes up with the
// answer only if the policy that is in force by then allows it.
func TestGrantTakenWhileAsked(t *testing.T) {
	for name, record := range map[string]string{
		"taken": strings.ReplaceAll(reader, "docs", "notes"),
		"kept":  strings.ReplaceAll(reader, "docs]", "docs, more]"),
	} {
		t.Run(name, func(t *testing.T) {
			s := questioner(true, "elicitation/create", `{"message":"?"}`)
			up := files(t, s)
			up.MayAsk = []string{"elicitation"}
			w := start(t, map[string]string{"scout": reader}, up)
			c := w.client("scout")
			c.initialize(`{"elicitation":{}}`)
			in := c.open(t.Context(), t, http.MethodPost, `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}}`)
			var asked struct{ ID any }
			if err := json.Unmarshal([]byte(in.next()), &asked); err != nil || asked.ID == nil {
				t.Fatal(asked, err)
			}
			w.write("scout", record)
			w.adopt()
			if resp := c.post(`{"jsonrpc":"2.0","id":` + quoted(asked.ID) + `,"result":{"action":"accept"}}`); resp.StatusCode != http.StatusAccepted {
				t.Fatal(resp.StatusCode)
			}
			var a said
			if a.Raw = in.next(); json.Unmarshal([]byte(a.Raw), &a) != nil {
				t.Fatal(a.Raw)
			}
			calls, decisions := s.calls(), w.events.of("decision")
			if name == "kept" {
				if !strings.Contains(a.Raw, `"heard":{"action":"accept"}`) || len(calls) != 2 || len(decisions) != 2 {
					t.Errorf("%d calls, decided %d times: %s", len(calls), len(decisions), a.Raw)
				}
				return
			}
			if d := denialOf(t, a); d.Code != "scope_violation" || len(calls) != 1 {
				t.Errorf("%d calls: %s", len(calls), a.Raw)
			}
		})
	}
}

// TestStateIsOfOneServer: what one server gave an agent to bring back does not go to
// another that has taken over its name.
func TestStateIsOfOneServer(t *testing.T) {
	for _, modern := range []bool{false, true} {
		old, other := questioner(modern, "elicitation/create", `{"message":"?"}`), questioner(modern, "elicitation/create", `{"message":"?"}`)
		of := func(name string, s *scripted) *proxy.Upstream {
			up := files(t, s)
			up.Name, up.Prefix, up.MayAsk = name, "", []string{"elicitation"}
			return up
		}
		w := start(t, map[string]string{"scout": reader}, of("old", old))
		args := `"name":"read_text_file","arguments":{"path":"` + w.root + `/docs/a"}`
		c := w.client("scout")
		in := inputOf(t, c.modern("tools/call", `{`+args+`}`, `{"elicitation":{}}`))
		w.ups = []*proxy.Upstream{of("other", other)}
		w.adopt()
		a := c.modern("tools/call", `{`+args+`,"inputResponses":{"k":{"action":"accept"},"ask-1":{"action":"accept"}},"requestState":"`+in.RequestState+`"}`, `{"elicitation":{}}`)
		if n := len(other.calls()); n != 0 || a.Error == nil || strings.Contains(a.Raw, "heard") {
			t.Errorf("server modern %v: %d calls of the other: %s", modern, n, a.Raw)
		}
	}
}

// TestStateIsOfTheServerAsItWas: nor does it go to what is written in that server's place
// under the same name, at another address or with less that it may ask.
func TestStateIsOfTheServerAsItWas(t *testing.T) {
	for _, now := range []struct {
		identity string
		mayAsk   []string
	}{
		{"as it was", []string{"elicitation"}},
		{"another address", []string{"elicitation"}},
		{"may not ask", nil},
	} {
		s := questioner(true, "elicitation/create", `{"message":"?"}`)
		up, next := files(t, s), files(t, s)
		up.Identity, up.MayAsk = "as it was", []string{"elicitation"}
		next.Identity, next.MayAsk = now.identity, now.mayAsk
		w := start(t, map[string]string{"scout": reader}, up)
		args := `"name":"files__read_text_file","arguments":{"path":"` + w.root + `/docs/a"}`
		c := w.client("scout")
		in := inputOf(t, c.modern("tools/call", `{`+args+`}`, `{"elicitation":{}}`))
		w.ups = []*proxy.Upstream{next}
		w.adopt()
		a := c.modern("tools/call", `{`+args+`,"inputResponses":{"k":{"action":"accept"}},"requestState":"`+in.RequestState+`"}`, `{"elicitation":{}}`)
		if same := now.identity == up.Identity; strings.Contains(a.Raw, "heard") != same || (len(s.calls()) == 2) != same {
			t.Errorf("%s: %d calls: %s", now.identity, len(s.calls()), a.Raw)
		}
	}
}
