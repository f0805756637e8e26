// Package provider writes a set in each LLM provider's own words, and a request
// body accordingly.
//
// Some tools run at the provider of a model and not at the agent: web search, web
// fetch, code execution, connectors to MCP servers. A gateway does not see what
// they do. What it sees is the request that offers them, so that an agent's grants
// are enforced there: a tool that is not held is left out, one that is held carries
// the agent's hosts as the list of domains that the provider keeps to, and one that
// takes no such list needs a grant of its own, provider.<name>.
//
//	vendor, _ := provider.Lookup("anthropic")
//	place, err := vendor.Endpoint("POST", "/v1/messages", "beta=true")
//	out, changes, err := vendor.Rewrite(place, body, policy) // out is what may go up
//	watch := vendor.Watch(policy)                            // sees what the tools did
//
// [Policy] says what an agent holds, by an [Authority] that asks its whole chain.
// [Vendor.Translate] is the same for who writes requests: each tool of a vendor as
// the agent may ask for it. The package is pure: it sends nothing.
//
// A body is read by tables in which every member of a request, every block and every
// type has a rule; what has none is refused, unless the operator vouches for it by
// name. Within a block of a known type, members that no vendor reads pass; within an item
// of OpenAI's, if they are neither lists nor objects. Only the bytes that change are
// replaced, and a request that nothing is wrong with goes up as it came.
//
// # Limitations
//
// The text of a search goes to the search engine, whatever the list of domains is.
// Where a redirect leads that a provider follows is not known. No provider's list
// has a way to say one name without those beneath it: unless the policy is strict,
// such a name goes up and a [Wider] change says so.
//
// A request that refers to what the provider keeps (earlier responses, prompts,
// caches, batches) is refused, as that cannot be judged. So is content of types that
// are newer than this package.
//
// A body is read as strictly as an MCP message, but for what no decision depends on:
// texts, inputs and results of tools, schemas and metadata may hold an escaped NUL, and
// names that differ only in case. The tables of these places are a list: anywhere else,
// as in the name or the type of a tool, either refuses the whole request. The same name
// twice in one object is refused wherever it stands.
//
// The id of a container of Anthropic goes up for whoever holds provider.code_execution.
// Whose container it is cannot be told, so that agents who share a key share them.
// At OpenAI a conversation in which code has run goes on without code_interpreter,
// as that would go on in the container that the conversation names.
//
// What OpenAI keeps of an answer, it finds again by the ids in the items of an
// input: those of reasoning, of searches and of sounds are not refused, as clients
// send every answer back. They cannot be guessed.
//
// Agents who share a key share what its account keeps: how much of a prompt was cached,
// and how near a limit of the account is. A request whose token is revoked while its
// provider is dialled still goes up.
//
// That OpenRouter's engines keep to their lists is their word, as is every other
// provider's. The names beneath one that a container may reach are not documented
// by OpenAI; they are taken to be included.
//
// A [Watch] sees what a response shows, after the model has read it. It is a record
// and no fence.
//
// Endpoints that sign requests, as those of Bedrock, and Vertex AI are not served.
package provider
