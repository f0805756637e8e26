package guardrail_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"capgate/guardrail"

	"github.com/google/go-cmp/cmp"
)

// clockwork is a clock that each look moves on by a second.
func clockwork(from time.Time) func() time.Time {
	return func() time.Time { from = from.Add(time.Second); return from }
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// TestReadMerges: three processes, two at the same time.
func TestReadMerges(t *testing.T) {
	_, dir := start(t, guardrail.Options{Clock: clockwork(noon.Add(-time.Hour))})
	one, _ := start(t, guardrail.Options{Dir: dir, Clock: clockwork(noon)})
	two, _ := start(t, guardrail.Options{Dir: dir, Clock: clockwork(noon.Add(500 * time.Millisecond))})
	for n := range 5 {
		record(t, one, decision(2*n))
		record(t, two, decision(2*n+1))
	}
	var got []string
	for _, e := range events(t, dir, guardrail.Filter{}) {
		got = append(got, e.Call)
	}
	want := "c-0 c-1 c-2 c-3 c-4 c-5 c-6 c-7 c-8 c-9"
	if strings.Join(got, " ") != want {
		t.Errorf("%v", got)
	}
}

func TestFilter(t *testing.T) {
	l, dir := start(t, guardrail.Options{Clock: clockwork(noon)})
	deny := decision(2)
	deny.Decision, deny.Code, deny.Agent = "deny", "scope_violation", "lead"
	deny.Text = `"agent":"scout"` // what a filter must not take for the agent
	record(t, l, decision(1))
	record(t, l, outcome(1))
	ref := record(t, l, deny)
	record(t, l, guardrail.Event{Kind: guardrail.Notice, Text: "reload", Agent: "sc\u202eout", Session: "s-2"})
	l.Close()
	for _, c := range []struct {
		f    guardrail.Filter
		want string
	}{
		{guardrail.Filter{}, "decision outcome decision notice"},
		{guardrail.Filter{Agent: "scout"}, "decision outcome"},
		{guardrail.Filter{Agent: "sc\u202eout"}, "notice"},
		{guardrail.Filter{Agent: "Scout"}, ""},
		{guardrail.Filter{Agent: "sco"}, ""},
		{guardrail.Filter{Kind: "decision"}, "decision decision"},
		{guardrail.Filter{Kind: "begin"}, ""},
		{guardrail.Filter{Decision: "deny"}, "decision"},
		{guardrail.Filter{Code: "scope_violation"}, "decision"},
		{guardrail.Filter{Tool: "files__read", Kind: "outcome"}, "outcome"},
		{guardrail.Filter{Call: "c-1"}, "decision outcome"},
		{guardrail.Filter{Session: "s-2"}, "notice"},
		{guardrail.Filter{Ref: ref}, "decision"},
		{guardrail.Filter{Ref: strings.ToUpper(ref[:8])}, "decision"},
		{guardrail.Filter{Ref: "x"}, ""},
		{guardrail.Filter{Since: noon.Add(5 * time.Second)}, "decision notice"},
		{guardrail.Filter{Limit: 2}, "decision notice"},
		{guardrail.Filter{Limit: 9}, "decision outcome decision notice"},
		{guardrail.Filter{Agent: "scout", Limit: 1}, "outcome"},
	} {
		var got []string
		for _, e := range events(t, dir, c.f) {
			got = append(got, e.Kind)
		}
		if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%+v: %s", c.f, diff)
		}
	}
}

// TestReadDamaged: the damage is said in its place, the rest is shown.
func TestReadDamaged(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "events")
	closed(t, dir, 3, guardrail.Options{})
	name := files(t, dir)[0]
	rewrite(t, name, append(bytes.Replace(contents(t, name), []byte("/srv/data"), []byte("/etc/data"), 1), `{"seq"`...))
	for _, limit := range []int{0, 10} {
		var errs []string
		n := 0
		for _, err := range guardrail.Read(dir, guardrail.Filter{Limit: limit}) {
			if n++; err != nil {
				n--
				errs = append(errs, err.Error())
			}
		}
		if n != 5 || len(errs) != 2 || !strings.Contains(errs[0], ":2: the line was changed") || !strings.Contains(errs[1], ":9: the last 6 bytes") {
			t.Errorf("%d events, %q", n, errs)
		}
	}
	for range guardrail.Read(dir, guardrail.Filter{}) {
		break // and nothing is left open or running
	}
	for _, err := range guardrail.Read(dir+"?", guardrail.Filter{}) {
		if err == nil {
			t.Error("read nothing")
		}
	}
}

func TestTail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, dir := start(t, guardrail.Options{})
		defer l.Close()
		record(t, l, decision(0))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		got := make(chan string, 100)
		ended := make(chan bool)
		go func() {
			for e, err := range guardrail.Tail(ctx, dir, guardrail.Filter{Kind: guardrail.Decision}) {
				got <- fmt.Sprint(e.Call, err)
			}
			close(ended)
		}()
		synctest.Wait()
		look := func(want ...string) {
			t.Helper()
			time.Sleep(200 * time.Millisecond)
			synctest.Wait()
			for _, w := range want {
				select {
				case g := <-got:
					if g != w {
						t.Errorf("%s, want %s", g, w)
					}
				default:
					t.Errorf("%s did not come", w)
				}
			}
			if len(got) > 0 {
				t.Errorf("too much: %s", <-got)
			}
		}
		look()
		record(t, l, decision(1))
		record(t, l, outcome(1))
		record(t, l, decision(2))
		look("c-1<nil>", "c-2<nil>")
		other, _ := start(t, guardrail.Options{Dir: dir})
		defer other.Close()
		record(t, other, decision(3))
		time.Sleep(time.Millisecond)
		record(t, l, decision(4))
		look("c-3<nil>", "c-4<nil>")
		look()
		cancel()
		<-ended
	})
}

func TestTailLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, dir := start(t, guardrail.Options{})
		defer l.Close()
		ended := make(chan int)
		go func() {
			n := 0
			for range guardrail.Tail(t.Context(), dir, guardrail.Filter{Limit: 2}) {
				n++
			}
			ended <- n
		}()
		synctest.Wait()
		for n := range 5 {
			record(t, l, decision(n))
		}
		if n := <-ended; n != 2 {
			t.Errorf("%d events", n)
		}
	})
	for _, err := range guardrail.Tail(t.Context(), "/dev/null", guardrail.Filter{}) {
		if err == nil {
			t.Error("followed nothing")
		}
	}
}
