package proxy

import (
	"fmt"
	"log/slog"

	"capgate/capability"
	"capgate/guardrail"
)

// maxOmitted is how many tools are known to have been said to be hidden.
const maxOmitted = 16 << 10

// omit records which tools nobody is shown until a person does something about it, each once for
// as long as it is for the same reason: who does not see a tool does not look for what hides it.
func (s *Server) omit(p *Policy, tools []*tool) {
	for _, t := range s.fresh(tools) {
		e := &guardrail.Event{
			Kind: guardrail.Notice, Upstream: t.up.Name, Tool: t.gate.Name, Code: string(t.blocked), Policy: p.Hash, Text: "the tool is hidden: " + t.why,
		}
		missed, fits := s.loud("upstream " + t.up.Name)
		if !fits {
			continue
		}
		if missed > 0 {
			e.Text = fmt.Sprintf("%s (%d before it were not recorded)", e.Text, missed)
		}
		s.inform(
			s.ctx, "a tool is hidden", slog.String("event", s.record(e)), slog.String("upstream", e.Upstream),
			slog.String("tool", e.Tool), slog.String("code", e.Code), slog.String("why", t.why),
		)
	}
}

// fresh are those of some tools that are hidden for another reason than was said last.
func (s *Server) fresh(tools []*tool) (fresh []*tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range tools {
		key := [2]string{t.up.Name, t.name}
		switch t.blocked {
		case capability.NameCollision, capability.ToolQuarantined, capability.ToolRejected:
		case "":
			delete(s.omitted, key)
			continue
		default:
			continue
		}
		if s.omitted[key] == t.why {
			continue
		}
		if len(s.omitted) >= maxOmitted {
			clear(s.omitted)
		}
		s.omitted[key] = t.why
		fresh = append(fresh, t)
	}
	return fresh
}
