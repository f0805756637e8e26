package proxy

import "capgate/upstream"

// What an entry of a list takes, with all that is made of it: so much, and so many times its bytes.
const (
	itemWeight = 4 << 10
	byteWeight = 3
)

func weigh(items []item) (weight int) {
	for _, it := range items {
		weight += itemWeight + byteWeight*len(it.raw)
	}
	return weight
}

// bear refuses a list that has grown where there is no room for it beside the others that the agent
// and its sessions have of the server, which may be as much as messages: it may fill each.
func (l *line) bear(k listKind, items []item) error {
	weight := weigh(items) - l.lists[k].weighs()
	if weight <= 0 {
		return nil
	}
	agent := l.tenant.whole()
	for _, t := range append(agent.inner(), agent) {
		t.mu.Lock()
		other := t.lines[l.up().Name]
		t.mu.Unlock()
		if other != nil {
			weight += other.weight()
		}
	}
	if weight > l.tenant.server.limits.Bulk {
		return &upstream.Failed{Upstream: l.up().Name, Text: "has lists for which there is no room beside those that the agent's sessions have", Unsent: true}
	}
	return nil
}

func (l *line) weight() (weight int) {
	for k := range l.lists {
		weight += l.lists[k].weighs()
	}
	return weight
}

func (g *listing) weighs() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.weight
}
