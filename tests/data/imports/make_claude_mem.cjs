// Makes claude-mem.db with claude-mem's own SessionStore. It needs bun, whose SQLite claude-mem uses:
//   npm install --ignore-scripts bun @oven/bun-linux-x64 && npm pack claude-mem@13.25.3 && tar xzf claude-mem-*.tgz
//   rm -f claude-mem.db && bun make_claude_mem.cjs ./package/plugin/sqlite/SessionStore.js claude-mem.db
// and, as each of its 80 tables and indexes takes a page at least:
//   sqlite3 claude-mem.db 'PRAGMA journal_mode = delete; PRAGMA page_size = 512; VACUUM'
const { SessionStore } = require(require("path").resolve(process.argv[2]));
const path = process.argv[3];
const store = new SessionStore(path);
const DAY = 86400000, FROM = Date.UTC(2026, 2, 1, 9);

function session(number, project) {
  const id = store.createSDKSession(`content-${number}`, project, "Help with the service");
  store.updateMemorySessionId(id, `memory-${number}`);
  store.saveUserPrompt(`content-${number}`, 1, "Why does the worker time out?");
  return `memory-${number}`;
}

const api = session(1, "api"), web = session(2, "web");
const observation = (type, title, narrative, facts, concepts, extra = {}) => ({
  type, title, subtitle: null, narrative, facts, concepts, files_read: ["src/worker.py"], files_modified: [], ...extra,
});
store.storeObservation(api, "api", observation("bugfix", "Worker timed out on large uploads",
  "The proxy closed the connection after 30 seconds; uploads now go in parts.",
  ["The proxy's limit is 30 seconds", "Parts have 8 MiB"], ["problem-solution", "gotcha"],
  { files_modified: ["src/upload.py"] }), 1, 100, FROM);
store.storeObservation(api, "api", observation("decision", "Valkey instead of Redis as the cache",
  "Its licence suits us, and the client library is the same.", ["Valkey 8 runs on port 6380"], ["trade-off"]), 2, 80, FROM + DAY);
store.storeObservation(web, "web", observation("discovery", "Größe der Bilder — 画像", "Images are served as AVIF.", [], ["what-changed"]),
  1, 20, FROM + 2 * DAY);
store.storeSummary(api, "api", { request: "Find why uploads time out", investigated: "Proxy and worker logs",
  learned: "The proxy has a limit of its own", completed: "Uploads go in parts", next_steps: "Raise the limit",
  files_read: ["nginx.conf"], files_edited: ["src/upload.py"], notes: null }, 3, 10, FROM + DAY / 2);
store.close();
