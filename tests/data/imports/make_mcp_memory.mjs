// Makes memory.jsonl with the memory server of the MCP reference servers:
//   npm install @modelcontextprotocol/server-memory@2026.8.31 && rm -f memory.jsonl
//   node make_mcp_memory.mjs "$PWD/node_modules" "$PWD/memory.jsonl"
// It speaks to the server over stdio as an MCP client does.
import { pathToFileURL } from "node:url";
const [, , modules, path] = process.argv;
const load = (name) => import(pathToFileURL(`${modules}/@modelcontextprotocol/sdk/dist/esm/client/${name}`));
const { Client } = await load("index.js");
const { StdioClientTransport } = await load("stdio.js");
const client = new Client({ name: "sample", version: "1" });
await client.connect(new StdioClientTransport({
  command: "node",
  args: [`${modules}/@modelcontextprotocol/server-memory/dist/index.js`],
  env: { ...process.env, MEMORY_FILE_PATH: path },
}));
const call = (name, args) => client.callTool({ name, arguments: args });
await call("create_entities", { entities: [
  { name: "billing service", entityType: "service", observations: ["It is written in Go", "It listens on port 8443"] },
  { name: "platform team", entityType: "team", observations: ["It is on call from Monday to Friday"] },
  { name: "Größe – サイズ", entityType: "concept", observations: [] },
] });
await call("create_relations", { relations: [
  { from: "platform team", to: "billing service", relationType: "looks_after" },
] });
await call("add_observations", { observations: [
  { entityName: "billing service", contents: ["It keeps invoices for 10 years"] },
] });
await client.close();
