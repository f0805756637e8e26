// Drives the SDK of OpenAI with nothing but the variables that its users set.
import { createRequire } from "node:module";
const { default: OpenAI } = createRequire(process.env.SDKS + "/")("openai");

const say = (what, value) => console.log(JSON.stringify({ what, value }));
const client = new OpenAI({ maxRetries: 0 });
const ask = { model: "m", input: "hello" };
const chat = { model: "m", messages: [{ role: "user", content: "hello" }] };

say("plain", (await client.responses.create(ask)).output_text);
let words = [];
for await (const e of await client.responses.create({ ...ask, stream: true }))
  if (e.type === "response.output_text.delta") words.push(e.delta);
say("stream", words.join("|"));
say("chat", (await client.chat.completions.create(chat)).choices[0].message.content);
words = [];
for await (const e of await client.chat.completions.create({ ...chat, stream: true })) words.push(e.choices[0]?.delta.content);
say("chat stream", words.join("|"));
const tools = [{ type: "function", name: "mine", parameters: {}, strict: false }, { type: "web_search" }, { type: "code_interpreter", container: { type: "auto" } }];
say("tools", (await client.responses.create({ ...ask, tools }).asResponse()).headers.get("x-capgate-provider-tools"));
for (const [what, call] of Object.entries({
  error: () => client.responses.create({ ...ask, model: "fail" }),
  streamed: async () => { for await (const _ of await client.chat.completions.create({ ...chat, model: "fail", stream: true })); },
  stored: () => client.responses.create({ ...ask, prompt: { id: "pmpt_1" } }),
  batches: () => client.batches.list(),
  stranger: () => new OpenAI({ maxRetries: 0, apiKey: "sk-mine" }).responses.create(ask),
}))
  try { await call(); say(what, "no error"); } catch (e) { say(what, `${e.status} ${e.constructor.name} ${e.message}`); }
say("models", (await client.models.list()).data[0].id);
