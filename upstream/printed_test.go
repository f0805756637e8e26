package upstream_test

import (
	"strings"
	"testing"

	"capgate/upstream"
)

// printed are answers to a call that hold what programs print, and whether they are
// passed on.
func printed() []struct {
	member string
	passed bool
} {
	return []struct {
		member string
		passed bool
	}{
		{`"result":{"content":[{"type":"text","text":"a\u0000"},{"type":"text","text":"\ud800 b"}]}`, true},
		{`"result":{"content":[{"type":"resource","resource":{"uri":"f:/a","text":"\u0000"}}]}`, true},
		{`"result":{"structuredContent":{"Path":1,"PATH":2,"in":[{"\u0000":"\udc00"}]},"content":[]}`, true},
		{`"result":{"content":[],"isError":true}`, true},
		{`"result":{"content":[],"isError":false}`, true},
		{`"result":{"content":[],"isError":"true"}`, true},
		{`"result":{"content":[],"isError":1}`, true},
		{`"result":{"content":[],"isError":{}}`, true},
		{`"result":{"content":[],"isError":0}`, true},
		{`"result":{"content":[],"isError":-0.0}`, true},
		{`"result":{"content":[],"isError":null}`, true},
		{`"result":{"content":[],"isError":""}`, true},
		{`"result":{"content":[],"isError":"False"}`, true},
		{`"error":{"code":-32000,"message":"\u0000","data":{"Path":1,"PATH":"\ud800"}}`, true},
		{`"error":{"code":-32042,"message":"","data":{"Path":1,"PATH":2}}`, false},
		{`"error":{"code":-32042,"message":"\u0000","data":{}}`, false},
		{`"error":{"code":1,"message":"","x":{"a":1,"A":2}}`, false},
		{`"error":{"code":1,"message":"","data":1,"Data":2}`, false},
		{`"result":{"content":[],"Content":[]}`, false},
		{`"result":{"structuredContent":{"a":1},"StructuredContent":{}}`, false},
		{`"result":{"structuredContent":{"a":1,"b":{"c":1,"\u0063":2}}}`, false},
		{`"result":{"content":[{"type":"text","text":"a","Text":"b"}]}`, false},
		{`"result":{"content":[{"type":"resource","resource":{"uri":"f:/a","URI":"f:/b","text":""}}]}`, false},
		{`"result":{"content":[{"type":"resource","resource":{"uri":"f:/a\u0000","text":""}}]}`, false},
		{`"result":{"content":[{"type":"resource_link","uri":"f:/a","name":"\ud800"}]}`, false},
		{`"result":{"content":{"text":"\u0000"}}`, false},
		{`"result":{"content":[],"_meta":{"a":1,"A":2}}`, false},
		{`"result":{"content":[],"_Meta":{"capgate/denial":{}}}`, false},
		{`"result":{"content":[],"resultType":"\u0000"}`, false},
		{`"result":{"inputRequests":{"a":{"method":"x","Method":"y"}},"resultType":"input_required"}`, false},
		{`"result":{},"Result":{"content":[]}`, false},
		{`"result":{"content":[]},"x":"\u0000"`, false},
	}
}

// saysFailed reports whether an answer is one of a tool that failed, as clients take it that
// are not strict.
func saysFailed(member string) bool {
	said, ok := strings.CutPrefix(member, `"result":{"content":[],"isError":`)
	switch strings.TrimSuffix(said, "}") {
	case "false", "0", "-0.0", "null", `""`, `"False"`:
		return false
	}
	return ok
}

// TestPrinted: what programs print comes as it was written where nothing is read, and
// fails the call anywhere else.
func TestPrinted(t *testing.T) {
	conn := started(t, program(t, "plain"), upstream.Options{})
	for i, p := range printed() {
		answer, err := conn.Call(t.Context(), tool("print", i), nil)
		_, want, _ := strings.Cut(p.member, ":")
		switch got := string(answer.Result) + string(answer.Error); {
		case p.passed && (err != nil || got != want):
			t.Errorf("%s: got %s, %v", p.member, got, err)
		case answer.Failed != saysFailed(p.member):
			t.Errorf("%s: the tool failed: %v", p.member, answer.Failed)
		case !p.passed && !strings.Contains(failureOf(t, err).Error(), "answered with what cannot be read"):
			t.Errorf("%s: %v", p.member, err)
		}
	}
	for _, method := range []string{"prompts/get", "resources/read", "initialize", "tools/list"} {
		answer, err := conn.Call(t.Context(), upstream.Request{Method: method, Params: []byte(`{"print":true}`)}, nil)
		if err == nil {
			t.Errorf("%s: %s", method, answer.Result)
		}
	}
}
