package proxy_test

import (
	"context"
	"testing"

	"capgate/upstream"
)

// TestReadIsPrivate (R-SEC-16): what one agent may read is kept for nobody else, whatever its
// server says, and not for longer than that says.
func TestReadIsPrivate(t *testing.T) {
	for sent, want := range map[string]string{
		`{"contents":[],"resultType":"complete","cacheScope":"public","ttlMs":5000}`: `{"contents":[],"resultType":"complete","cacheScope":"private","ttlMs":5000}`,
		`{"contents":[],"resultType":"complete","ttlMs":5000}`:                       `{"cacheScope":"private","contents":[],"resultType":"complete","ttlMs":5000}`,
		`{"contents":[],"resultType":"complete","cacheScope":"public"}`:              `{"ttlMs":0,"contents":[],"resultType":"complete","cacheScope":"private"}`,
		`{"contents":[],"resultType":"complete"}`:                                    `{"ttlMs":0,"cacheScope":"private","contents":[],"resultType":"complete"}`,
	} {
		s := &scripted{
			info:  upstream.Info{Modern: true, Version: "2026-07-28"},
			lists: map[string]string{"resources/list": `"resources":[{"uri":"db://a","name":"a"}]`},
		}
		s.reply = func(context.Context, upstream.Request, upstream.Sink) (upstream.Answer, error) {
			return upstream.Answer{Type: "complete", Result: []byte(sent)}, nil
		}
		w := start(t, map[string]string{"scout": "---\nclass: agent\ncapabilities:\n  - resource.read: { uris: [\"db://*\"] }\n---\n"}, files(t, s))
		if a := w.client("scout").modern("resources/read", `{"uri":"db://a"}`, "{}"); string(a.Result) != want {
			t.Errorf("%s:\n%s\nwant\n%s", sent, a.Raw, want)
		}
	}
}
