// Package proxy speaks MCP to agents: it recognises who is calling, has the gate
// decide, forwards what is allowed, and records what came of it.
//
// A [Server] holds the policy in force, the connections to the servers behind
// it and the sessions of agents. It answers over HTTP, where each request brings
// the agent's token, and over stdio, where whoever started the process said
// which agent it is for.
//
//	s := proxy.New(ctx, proxy.Options{Events: log, Log: slog.Default()})
//	s.Adopt(policy)
//	http.Serve(listener, s)
//
// A message is read once, strictly. What is decided on is what is forwarded: the
// arguments of a call go up as the bytes they came in, a result comes back as
// the bytes the server wrote. A denial contacts no server.
//
// A [Provider] is a model's vendor, reached at /provider/ and its name with the
// agent's token for a key. Package provider says what of a request goes up; the
// answer is passed on piece by piece.
//
// # Limitations
//
// A server may tell an agent in the text of a result whatever it likes; only
// definitions are looked at. Tasks of the 2025-11-25 revision are not carried.
// An event stream that breaks is not resumed: what was sent on it meanwhile is
// lost, except for the fact that lists have changed.
//
// Bodies of requests to providers are read whole before they go up. What a tool at a
// provider has read is seen in the answer, when the model has read it too. A key that
// a provider splits into several events of a stream is not found.
//
// A server's skill is what its SKILL.md says: other files of it that ask for tools
// are not read. A skill that is listed nowhere is not found, and of one that a server
// makes up as it is read only the SKILL.md is served.
package proxy
