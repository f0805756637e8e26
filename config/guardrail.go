package config

import "go.yaml.in/yaml/v3"

// Guardrail is how decisions are recorded.
type Guardrail struct {
	Log      string // the folder of the event log, absolute
	Continue bool   // what cannot be recorded is forwarded all the same
	HMAC     bool   // targets are recorded as keyed hashes
	Fsync    string // none, interval or always
}

// defaultLog is where events go, below the state, when nothing is said of it.
const defaultLog = "events"

const fsyncInterval = "interval"

// guardrailKeys is the table of guardrail:.
func guardrailKeys() []key[Guardrail] {
	return []key[Guardrail]{
		{
			name: "log", takes: aFolder, help: "where decisions are recorded, events in the state folder unless written",
			read: func(r *reader, n *yaml.Node, g *Guardrail) {
				dir, _ := r.folder(n, "guardrail.log", aFolder)
				g.Log = dir.Dir
			},
		},
		{
			name: "on_error", takes: "deny or continue", help: "what becomes of a call that cannot be recorded, deny unless written",
			read: func(r *reader, n *yaml.Node, g *Guardrail) {
				g.Continue = r.word(n, "guardrail.on_error", "deny", "continue") == "continue"
			},
		},
		{
			name: "targets", takes: "clear or hmac", help: "how paths and hosts are recorded: as they are, or as keyed hashes",
			read: func(r *reader, n *yaml.Node, g *Guardrail) {
				g.HMAC = r.word(n, "guardrail.targets", "clear", "hmac") == "hmac"
			},
		},
		{
			name: "fsync", takes: "none, interval or always", help: "when a record is made to outlive a crash of the machine, interval unless written",
			read: func(r *reader, n *yaml.Node, g *Guardrail) {
				g.Fsync = r.word(n, "guardrail.fsync", "none", fsyncInterval, "always")
			},
		},
	}
}

func (r *reader) guardrail(n *yaml.Node, c *Config) {
	fill(r, n, "guardrail", guardrailKeys(), &c.Guardrail)
}
