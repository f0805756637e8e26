package proxy

import (
	"context"
	"fmt"
	"slices"

	"capgate/capability"
)

// Shown is one tool as an operator sees it: under its names, and why an agent
// does not see it, if that is so.
type Shown struct {
	Name     string            `json:"name"`     // what agents call it
	Tool     string            `json:"tool"`     // among capabilities
	Upstream string            `json:"upstream"` // whose it is
	Visible  bool              `json:"visible"`
	Code     capability.Code   `json:"code,omitempty"` // why it is hidden
	Why      string            `json:"why,omitempty"`  // the same in words
	Verbs    []capability.Verb `json:"verbs"`          // what calls of it may need
	Risk     capability.Risk   `json:"risk"`           // of the riskiest of them
	Bytes    int               `json:"bytes"`          // of its definition
}

// Look fetches the tools of every server for an agent, and says of each whether
// the agent sees it. Missing names the servers that did not answer.
func (s *Server) Look(ctx context.Context, agent string) (tools []Shown, missing []string, err error) {
	t, err := s.tenant(agent)
	if err != nil {
		return nil, nil, err
	}
	cat, err := t.catalogue(ctx)
	if err != nil {
		return nil, nil, err
	}
	for i := range cat.sources {
		if cat.sources[i].versions[toolList] == 0 {
			missing = append(missing, cat.sources[i].up.Name)
		}
	}
	for _, one := range cat.tools {
		tools = append(tools, cat.show(agent, one))
	}
	slices.SortFunc(tools, func(a, b Shown) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return tools, missing, nil
}

func (c *catalogue) show(agent string, t *tool) Shown {
	one := Shown{Name: t.exposed, Tool: t.gate.Name, Upstream: t.up.Name, Verbs: t.gate.Mapping.Surface(), Bytes: len(t.raw)}
	for _, v := range one.Verbs {
		if e, ok := capability.Lookup(v); ok {
			one.Risk = max(one.Risk, e.Risk)
		}
	}
	switch {
	case t.blocked != "":
		one.Code, one.Why = t.blocked, t.why
	case !c.policy.Gate.Visible(agent, t.gate):
		one.Code, one.Why = capability.CapabilityAbsent, fmt.Sprintf("no call of it could be allowed: it may need %v", one.Verbs)
	default:
		one.Visible = true
	}
	return one
}
