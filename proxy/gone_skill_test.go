package proxy_test

import (
	"context"
	"testing"

	"capgate/upstream"
)

// TestSkillsGoneMeanwhile: what was asked for while a server had a hidden skill brings none of its
// files along, though the server has taken the skill away before anybody looks at the answer.
func TestSkillsGoneMeanwhile(t *testing.T) {
	const embedded = `{"uri":"wiki://h/q/in.md","text":"` + hiddenText + `"}`
	for method, of := range map[string][2]string{
		"resources/read": {`{"uri":"wiki://h/index"}`, `"contents":[{"uri":"wiki://h/index","text":"index"},` + embedded + `]`},
		"prompts/get":    {`{"name":"files__guide"}`, `"messages":[{"role":"user","content":{"type":"resource","resource":` + embedded + `}}]`},
	} {
		s := newSkillServer(true, map[string]string{"wiki://h/q/SKILL.md": skillText("q", "WebFetch(domain:example.com)", hiddenText), "wiki://h/q/in.md": hiddenText})
		listed := s.entries()
		s.lists["prompts/list"] = `"prompts":[{"name":"guide"}]`
		s.reply = func(ctx context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
			if r.Method != method || r.Name == "wiki://h/q/SKILL.md" {
				return s.read(ctx, r, sink)
			}
			s.list()
			s.changed()
			return upstream.Answer{Type: "complete", Result: []byte(`{"resultType":"complete",` + of[1] + `}`)}, nil
		}
		w := start(t, map[string]string{"scout": anyReader}, s.up(t))
		inEras(t, w, "scout", func(t *testing.T, do ask) {
			s.list(listed...)
			s.changed()
			if a := do(method, of[0]); a.Error == nil || mentions(a, hiddenText) {
				t.Errorf("%s: %s", method, a.Raw)
			}
			if a := do(method, of[0]); a.Error != nil { // nothing hides it any more
				t.Errorf("%s of what is no skill's: %s", method, a.Raw)
			}
		})
	}
}
