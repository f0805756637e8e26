package config

import (
	"time"

	"go.yaml.in/yaml/v3"
)

// Limits is what limits: bounds. None of it is ever zero.
type Limits struct {
	Call              time.Duration // for an upstream to answer a call
	Start             time.Duration // for an upstream to start and shake hands
	Body              int           // bytes of one message of an agent
	Answer            int           // bytes of one message of an upstream
	CallsPerMinute    int           // of one agent
	UpstreamProcesses int           // at once
	Sessions          int           // of one agent, at once
}

// The limits that stand unless others are written.
const (
	defaultCall              = 60 * time.Second
	defaultStart             = 60 * time.Second
	defaultBody              = 32 << 20
	defaultAnswer            = 64 << 20
	defaultCallsPerMinute    = 600
	defaultUpstreamProcesses = 64
	defaultSessions          = 1000
)

func defaultLimits() Limits {
	return Limits{
		Call: defaultCall, Start: defaultStart, Body: defaultBody, Answer: defaultAnswer,
		CallsPerMinute: defaultCallsPerMinute, UpstreamProcesses: defaultUpstreamProcesses, Sessions: defaultSessions,
	}
}

// limitKeys is the table of limits:.
func limitKeys() []key[Limits] {
	return append(patienceKeys("limits."), []key[Limits]{
		{
			name: "body", takes: "a size", help: "how large a message of an agent may be, 32MiB unless written",
			read: func(r *reader, n *yaml.Node, l *Limits) { r.size(n, "limits.body", &l.Body) },
		},
		{
			name: "calls_per_minute", takes: "a number", help: "how many calls an agent may make, 600 unless written",
			read: func(r *reader, n *yaml.Node, l *Limits) { r.count(n, "limits.calls_per_minute", &l.CallsPerMinute) },
		},
		{
			name: "upstream_processes", takes: "a number", help: "how many servers may run here at once, 64 unless written",
			read: func(r *reader, n *yaml.Node, l *Limits) {
				r.count(n, "limits.upstream_processes", &l.UpstreamProcesses)
			},
		},
		{
			name: "sessions", takes: "a number", help: "how many sessions an agent may have open at once, 1000 unless written",
			read: func(r *reader, n *yaml.Node, l *Limits) { r.count(n, "limits.sessions", &l.Sessions) },
		},
	}...)
}

// patienceKeys is the table of the limits of a single upstream, which are among
// those of the gateway too.
func patienceKeys(above string) []key[Limits] {
	return []key[Limits]{
		{
			name: "call", takes: "a duration", help: "how long a call may take, 60s unless written",
			read: func(r *reader, n *yaml.Node, l *Limits) { r.wait(n, above+"call", &l.Call) },
		},
		{
			name: "start", takes: "a duration", help: "how long a server may take to start, 60s unless written",
			read: func(r *reader, n *yaml.Node, l *Limits) { r.wait(n, above+"start", &l.Start) },
		},
		{
			name: "answer", takes: "a size", help: "how large a message of a server may be, 64MiB unless written",
			read: func(r *reader, n *yaml.Node, l *Limits) { r.size(n, above+"answer", &l.Answer) },
		},
	}
}

func (r *reader) limits(n *yaml.Node, c *Config) { fill(r, n, "limits", limitKeys(), &c.Limits) }
