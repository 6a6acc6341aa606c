// A host on the TypeScript SDK: node agent.mjs COMMAND [ARG…] lists and calls every tool at once, prints what came as
// JSON. Its client checks structured content against each tool's schema by itself.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: "typescript", version: "1.0.0" });
await client.connect(new StdioClientTransport({ command, args, env: process.env }));

const text = (reply) => reply.content.map((part) => part.text).join("\n");
const call = (name, given) => client.callTool({ name, arguments: given });

const { tools } = await client.listTools();
const saved = await call("memory_save", { content: "The cache is Valkey", kind: "decision" });
const id = saved.structuredContent.id;
const replies = Object.fromEntries(
  await Promise.all(
    [
      ["memory_search", { query: "cache" }],
      ["memory_context", { task: "the cache is valkey" }],
      ["memory_get", { ids: [id] }],
      ["memory_update", { id, feedback: "useful" }],
      ["memory_forget", { ids: [id] }],
    ].map(async ([name, given]) => [name, await call(name, given)]),
  ),
);

const wrong = await call("memory_search", { query: "x", limit: 0 });
const unknown = await call("memory_eat", {}).then(() => "no error", (error) => error.code);

const abort = new AbortController();
const aborted = client
  .callTool({ name: "memory_search", arguments: { query: "cache" } }, undefined, { signal: abort.signal })
  .then(() => "answered", () => "cancelled");
abort.abort("the user changed their mind");

const out = {
  server: client.getServerVersion().name,
  tools: tools.map((tool) => tool.name),
  texts: Object.fromEntries(Object.entries({ memory_save: saved, ...replies }).map(([name, reply]) => [name, text(reply)])),
  errors: Object.values(replies).filter((reply) => reply.isError).length,
  found: replies.memory_search.structuredContent.memories.map((memory) => memory.text),
  wrong: [wrong.isError, text(wrong)],
  unknown,
  aborted: await aborted,
  afterwards: (await call("memory_get", { ids: [id] })).isError ?? false,
  resources: (await client.listResources()).resources.map((resource) => resource.uri),
  summary: (await client.readResource({ uri: "memory://summary" })).contents[0].text,
};
await client.close();
console.log(JSON.stringify(out));
