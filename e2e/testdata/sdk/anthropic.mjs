// Drives the SDK of Anthropic with nothing but the variables that its users set.
import { createRequire } from "node:module";
const { default: Anthropic } = createRequire(process.env.SDKS + "/")("@anthropic-ai/sdk");

const say = (what, value) => console.log(JSON.stringify({ what, value }));
const client = new Anthropic({ maxRetries: 0 });
const ask = { model: "m", max_tokens: 16, messages: [{ role: "user", content: "hello" }] };

say("plain", (await client.messages.create(ask)).content[0].text);
let words = [];
for await (const e of await client.messages.create({ ...ask, stream: true }))
  if (e.type === "content_block_delta") words.push(e.delta.text);
say("stream", words.join("|"));
say("helper", (await client.messages.stream(ask).finalMessage()).content[0].text);
const mine = { name: "mine", input_schema: { type: "object" } };
const search = { type: "web_search_20250305", name: "web_search", max_uses: 3 };
const run = { type: "code_execution_20250825", name: "code_execution" };
const answer = client.messages.create({ ...ask, tools: [mine, search, run] });
say("tools", (await answer.asResponse()).headers.get("x-capgate-provider-tools"));
say("runner", (await client.beta.messages.toolRunner({ ...ask, tools: [] })).content[0].text);
for (const [what, call] of Object.entries({
  error: () => client.messages.create({ ...ask, model: "fail" }),
  streamed: async () => { for await (const _ of await client.messages.create({ ...ask, model: "fail", stream: true })); },
  batches: () => client.messages.batches.create({ requests: [] }),
  stranger: () => new Anthropic({ maxRetries: 0, apiKey: "sk-ant-mine" }).messages.create(ask),
}))
  try { await call(); say(what, "no error"); } catch (e) { say(what, `${e.status} ${e.constructor.name} ${e.message}`); }
say("models", (await client.models.list()).data[0].id);
