package proxy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// unseen and seen are agents that hold nothing, and something, at a server called files.
const (
	unseen = "---\nclass: agent\ncapabilities:\n  - fs.read: { in: $ROOT, paths: [none] }\n---\n"
	seen   = "---\nclass: agent\ncapabilities:\n  - tool.invoke: { tools: [files.read_text_file] }\n---\n"
)

// TestUnseenServerSaysNothing: a server of which an agent is shown nothing tells its session nothing and asks it
// nothing, even if it may ask others, and does once the agent is shown something of it.
func TestUnseenServerSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{}
		up := files(t, s)
		up.MayAsk, up.Mapping = []string{"elicitation"}, nil
		w := start(t, map[string]string{"scout": unseen}, up)
		c := w.client("scout")
		c.initialize(`{"elicitation":{}}`)
		c.request("tools/list", "{}")
		in := c.listen()
		hears := func() (got string) {
			s.newest().Events.Notify("notifications/message", []byte(`{"level":"error","data":"a log"}`))
			s.newest().Events.Notify("notifications/elicitation/complete", []byte(`{"elicitationId":"a page"}`))
			go func() {
				_, _ = s.newest().Events.Ask(t.Context(), "elicitation/create", []byte(`{"message":"a question"}`))
			}()
			for one := soon(in); one != ""; one = soon(in) {
				got += one
			}
			return got
		}
		if got := hears(); got != "" {
			t.Error(got)
		}
		w.write("scout", seen)
		w.adopt()
		time.Sleep(time.Minute)
		got := hears()
		for _, want := range []string{"a log", "a page", "a question"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s is not in %s", want, got)
			}
		}
	})
}

// TestUnseenServerIsAnsweredNothing: nor is it told what the agent answers, if it was asked before.
func TestUnseenServerIsAnsweredNothing(t *testing.T) {
	for name, record := range map[string]string{"taken": unseen, "kept": seen + "More.\n"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scripted{}
				up := files(t, s)
				up.MayAsk, up.Mapping = []string{"elicitation"}, nil
				w := start(t, map[string]string{"scout": seen}, up)
				c := w.client("scout")
				c.initialize(`{"elicitation":{}}`)
				c.request("tools/list", "{}")
				in, answer := c.listen(), make(chan string, 1)
				go func() {
					got, err := s.newest().Events.Ask(t.Context(), "elicitation/create", []byte(`{"message":"?"}`))
					answer <- fmt.Sprint(string(got), err)
				}()
				soon(in)
				w.write("scout", record)
				w.adopt()
				c.post(`{"jsonrpc":"2.0","id":"capgate-1","result":{"action":"accept","content":{"x":"secret"}}}`)
				if got := <-answer; strings.Contains(got, "secret") != (name == "kept") {
					t.Error(got)
				}
			})
		})
	}
}

// TestUnseenServerAskedBefore: what it asked while nobody listened is not put once the agent is shown nothing of it.
func TestUnseenServerAskedBefore(t *testing.T) {
	for name, record := range map[string]string{"taken": unseen, "kept": seen + "More.\n"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scripted{}
				up := files(t, s)
				up.MayAsk, up.Mapping = []string{"elicitation"}, nil
				w := start(t, map[string]string{"scout": seen}, up)
				c := w.client("scout")
				c.initialize(`{"elicitation":{}}`)
				c.request("tools/list", "{}")
				go func() {
					_, _ = s.newest().Events.Ask(t.Context(), "elicitation/create", []byte(`{"message":"a question"}`))
				}()
				time.Sleep(time.Second)
				w.write("scout", record)
				w.adopt()
				time.Sleep(time.Minute)
				in, got := c.listen(), ""
				for one := soon(in); one != ""; one = soon(in) {
					got += one
				}
				if strings.Contains(got, "a question") != (name == "kept") {
					t.Error(got)
				}
			})
		})
	}
}

// TestQuestionTakenBack: what a server has asked while nobody listened, and does not wait for any more, is not put.
func TestQuestionTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{}
		up := files(t, s)
		up.MayAsk = []string{"elicitation"}
		w := start(t, map[string]string{"scout": reader}, up)
		c := w.client("scout")
		c.initialize(`{"elicitation":{}}`)
		c.request("tools/list", "{}")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.newest().Events.Ask(ctx, "elicitation/create", []byte(`{"message":"a question"}`)); err == nil {
			t.Error("it is answered")
		}
		in := c.listen()
		if got := soon(in) + soon(in); got != "" {
			t.Error(got)
		}
	})
}

// TestQuestionNotPut: a server is told that what it asked is not put, once the agent is shown nothing of it.
func TestQuestionNotPut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{}
		up := files(t, s)
		up.MayAsk, up.Mapping = []string{"elicitation"}, nil
		w := start(t, map[string]string{"scout": seen}, up)
		c := w.client("scout")
		c.initialize(`{"elicitation":{}}`)
		c.request("tools/list", "{}")
		answer := make(chan error, 1)
		go func() {
			_, err := s.newest().Events.Ask(t.Context(), "elicitation/create", []byte(`{"message":"a question"}`))
			answer <- err
		}()
		time.Sleep(time.Second)
		w.write("scout", unseen)
		w.adopt()
		time.Sleep(time.Second)
		c.listen()
		select {
		case <-answer:
		case <-time.After(time.Minute):
			t.Error("it waits for an answer that nobody will give")
		}
	})
}
