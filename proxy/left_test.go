package proxy_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"capgate/proxy"
	"capgate/upstream"
)

// TestLeftSessionsMakeRoom: where no more servers may run, the session that has one and that nobody
// has used for the longest gives way. One that is in use, or was just now, stays.
func TestLeftSessionsMakeRoom(t *testing.T) {
	s := &scripted{}
	up := files(t, s)
	up.MayAsk = []string{"elicitation"}
	inBubble(t, map[string]string{"scout": reader, "boss": reader}, []*proxy.Upstream{up}, func(t *testing.T, b *bubble) {
		list := func(agent, session string) string {
			return b.do(agent, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Mcp-Session-Id", session).Body.String()
		}
		var sessions []string
		for _, agent := range []string{"scout", "boss", "scout", "scout"} {
			sessions = append(sessions, b.open(agent))
			list(agent, sessions[len(sessions)-1])
		}
		used, left := sessions[0], sessions[2:]
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		b.stream(ctx, "scout", used)
		room, idle := s.peers[0].Room, s.peers[len(s.peers)-1].Room
		if room() {
			t.Error("room is made of what was used just now")
		}
		time.Sleep(2 * time.Minute)
		list("scout", left[0])
		if idle() {
			t.Error("room is made for a session that has been left for as long")
		}
		if !room() || room() {
			t.Error("room is made of another session than one")
		}
		synctest.Wait()
		for session, want := range map[string]bool{used: true, left[0]: true, left[1]: false} {
			if got := list("scout", session); strings.Contains(got, "read_text_file") != want {
				t.Errorf("of %v: %s", sessions, got)
			}
		}
		if got := list("boss", sessions[1]); !strings.Contains(got, "read_text_file") || s.closed.Load() != 1 {
			t.Errorf("%d ended: %s", s.closed.Load(), got)
		}
	})
}

// TestJustUsedMakesNoRoom: a session whose call took long has been used until it was answered.
func TestJustUsedMakesNoRoom(t *testing.T) {
	s := &scripted{reply: func(context.Context, upstream.Request, upstream.Sink) (upstream.Answer, error) {
		time.Sleep(3 * time.Minute)
		return upstream.Answer{Result: []byte(`{"content":[]}`)}, nil
	}}
	up := files(t, s)
	up.MayAsk, up.Timeout = []string{"elicitation"}, 10*time.Minute
	inBubble(t, map[string]string{"scout": reader}, []*proxy.Upstream{up}, func(t *testing.T, b *bubble) {
		session := b.open("scout")
		got := b.do("scout", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files__read_text_file","arguments":{"path":"`+b.root+`/docs/a"}}}`,
			"Mcp-Session-Id", session).Body.String()
		b.open("scout")
		if !strings.Contains(got, `"content":[]`) || s.peers[1].Room() {
			t.Errorf("room is made of what was answered just now: %s", got)
		}
	})
}

// TestEndedServersMakeNoRoom: nobody's session ends for a place that its server has left already.
func TestEndedServersMakeNoRoom(t *testing.T) {
	s := &scripted{}
	up := files(t, s)
	up.MayAsk = []string{"elicitation"}
	inBubble(t, map[string]string{"scout": reader}, []*proxy.Upstream{up}, func(t *testing.T, b *bubble) {
		first, second := b.open("scout"), b.open("scout")
		synctest.Wait()
		must(t, s.conns[0].Close())
		time.Sleep(2 * time.Minute)
		b.open("scout")
		if room := s.peers[2].Room; !room() || room() {
			t.Error("room is made of another session than the one with a server")
		}
		synctest.Wait()
		for session, want := range map[string]int{first: http.StatusOK, second: http.StatusNotFound} {
			if got := b.do("scout", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Mcp-Session-Id", session).Code; got != want {
				t.Errorf("%d, not %d", got, want)
			}
		}
	})
}

// TestRoomForSomebody: where nobody waits for a server, as when lists are looked at again, nobody's
// session ends for it.
func TestRoomForSomebody(t *testing.T) {
	s, during := &scripted{}, false
	s.reply = func(context.Context, upstream.Request, upstream.Sink) (upstream.Answer, error) {
		during = s.peers[len(s.peers)-1].Room()
		return upstream.Answer{Result: []byte(`{"content":[]}`)}, nil
	}
	up := files(t, s)
	up.MayAsk = []string{"elicitation"}
	inBubble(t, map[string]string{"scout": reader}, []*proxy.Upstream{up}, func(t *testing.T, b *bubble) {
		b.open("scout")
		b.open("scout")
		time.Sleep(2 * time.Minute)
		a := &abandoned{bubble: b, t: t}
		if got := a.call("a", ""); !during {
			t.Errorf("no room is made: %s", got)
		}
		if s.peers[len(s.peers)-1].Room() {
			t.Error("room is made for nobody")
		}
	})
}

// TestServersElsewhereMakeNoRoom: a session whose servers run on other machines has no place to leave.
func TestServersElsewhereMakeNoRoom(t *testing.T) {
	s := &scripted{}
	up := files(t, s)
	up.MayAsk, up.Process = []string{"elicitation"}, false
	inBubble(t, map[string]string{"scout": reader}, []*proxy.Upstream{up}, func(t *testing.T, b *bubble) {
		left := b.open("scout")
		synctest.Wait()
		time.Sleep(2 * time.Minute)
		b.open("scout")
		if s.peers[1].Room() {
			t.Error("a session ends for a place that it does not have")
		}
		if got := b.do("scout", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Mcp-Session-Id", left).Code; got != http.StatusOK {
			t.Errorf("the session is answered by %d", got)
		}
	})
}
