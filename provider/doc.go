// Package provider writes a set in each LLM provider's own words, and a request
// body accordingly.
//
// Some tools run at the provider of a model and not at the agent: web search, web
// fetch, code execution, connectors to MCP servers. A gateway does not see what
// they do. What it sees is the request that offers them, so that an agent's grants
// are enforced there: a tool that is not held is left out, one that is held carries
// the agent's hosts as the list of domains that the provider keeps to.
//
//	vendor, _ := provider.Lookup("anthropic")
//	place, err := vendor.Endpoint("POST", "/v1/messages", "beta=true")
//	out, changes, err := vendor.Rewrite(place, body, policy)
//
// The package is pure: it sends nothing. [Policy] says what an agent holds, by an
// [Authority] that asks its whole chain.
//
// # Limitations
//
// The text of a search goes to the search engine, whatever the list of domains is.
package provider
