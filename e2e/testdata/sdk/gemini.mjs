// Drives the SDK of Google with nothing but the variables that its users set.
import { createRequire } from "node:module";
const { GoogleGenAI } = createRequire(process.env.SDKS + "/")("@google/genai");

const say = (what, value) => console.log(JSON.stringify({ what, value }));
const client = new GoogleGenAI({});
const ask = { model: "m", contents: "hello" };

say("plain", (await client.models.generateContent(ask)).text);
let words = [];
for await (const e of await client.models.generateContentStream(ask)) words.push(e.text);
say("stream", words.join("|"));
const tools = [{ functionDeclarations: [{ name: "mine" }] }, { googleSearch: {} }, { codeExecution: {} }, { urlContext: {} }];
say("tools", (await client.models.generateContent({ ...ask, config: { tools } })).sdkHttpResponse.headers["x-capgate-provider-tools"]);
for (const [what, call] of Object.entries({
  error: () => client.models.generateContent({ ...ask, model: "fail" }),
  cache: () => client.models.generateContent({ ...ask, config: { cachedContent: "cachedContents/1" } }),
  files: () => client.files.list(),
  cut: async () => { for await (const _ of await client.models.generateContentStream({ ...ask, model: "cut" })); },
  stranger: () => new GoogleGenAI({ apiKey: "AIza-mine" }).models.generateContent(ask),
}))
  try { await call(); say(what, "no error"); } catch (e) { say(what, `${e.status} ${e.constructor.name} ${e.message}`); }
say("models", (await client.models.list()).page[0].name);
