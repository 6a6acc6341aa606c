// The way to the daemon: the token of this tab, calls, events from one stream for all tabs, and what can be undone.

const listeners = new Map();
export const state = { token: "", online: true, opened: false, notice: "", epoch: 0 };

export function on(name, act) {
  if (!listeners.has(name)) listeners.set(name, new Set());
  listeners.get(name).add(act);
  return () => listeners.get(name).delete(act);
}
export function emit(name, value) {
  for (const act of listeners.get(name) || []) act(value);
}

class Failure extends Error {
  constructor(answer) {
    super(answer.message);
    this.code = answer.code;
    this.data = answer.data || {};
  }
}

// Signing in: the code of the address once, else what the tab kept, else what another tab of this page has.
const tabs = new BroadcastChannel("memoryd");
tabs.onmessage = ({ data }) => {
  if (data.kind === "ask" && state.token) tabs.postMessage({ kind: "token", token: state.token });
  else if (data.kind === "token" && !state.token) { keep(data.token); emit("signed-in"); }
  else if (data.kind === "stream") receive(data.name, data.value);
};

export async function signIn() {
  const code = new URLSearchParams(location.hash.slice(1)).get("open");
  if (code) {
    history.replaceState(null, "", "/");
    const answer = await fetch("/open", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(code) });
    if (answer.ok) keep((await answer.json()).token);
  }
  if (!state.token) state.token = sessionStorage.getItem("token") || "";
  if (!state.token) await askTabs();
  return Boolean(state.token);
}
function keep(token) {
  state.token = token;
  if (token) sessionStorage.setItem("token", token);
  else sessionStorage.removeItem("token");
}
function askTabs() {
  return new Promise((done) => {
    on("signed-in", done); // be it later: a busy tab may take its time
    tabs.postMessage({ kind: "ask" });
    setTimeout(done, 500);
  });
}

async function send(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { ...options, headers: { authorization: `Bearer ${state.token}`, ...options.headers } });
  } catch {
    throw new Failure({ code: "ended", message: "The page's process has ended; start it again with `memctl web`." });
  }
  if (answer.status === 401) { keep(""); emit("signed-out"); }
  return answer;
}
async function read(answer) {
  const { result, error, ...refusal } = await answer.json();
  if (!answer.ok || error) throw new Failure(error || refusal);
  return result;
}
export async function call(method, fields = {}) {
  const body = JSON.stringify({ method, ...fields });
  return read(await send("/api/call", { method: "POST", headers: { "content-type": "application/json" }, body }));
}
export const report = async (name) => read(await send(`/api/${name}`));

// Events. One tab leads: it holds the lock and the stream, and passes on what comes.
export function follow() {
  if (state.following) return;
  state.following = true;
  // Where another tab leads, its stream is open already: the next one that opens has missed something.
  navigator.locks.query().then(({ held }) => { state.opened ||= held.some((lock) => lock.name === "memoryd-stream"); });
  navigator.locks.request("memoryd-stream", async () => {
    for (;;) {
      try { await stream(); } catch { share("away", { message: "The page's process has ended; start it again with `memctl web`." }); }
      if (!state.token) { state.following = false; return; }
      await new Promise((done) => setTimeout(done, 700));
    }
  });
}
async function stream() {
  const answer = await send("/api/events");
  if (!answer.ok) throw new Error(String(answer.status));
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error("ended");
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const found = /^event: (\w+)\ndata: (.*)$/.exec(part);
      if (found) share(found[1], JSON.parse(found[2]));
    }
  }
}
function share(name, value) {
  tabs.postMessage({ kind: "stream", name, value });
  receive(name, value);
}
function receive(name, value) {
  if (name === "event") return emit("event", value);
  // A stream that opens again, be it another tab's, has missed what happened meanwhile.
  const online = name === "open", missed = online && state.opened;
  if (online === state.online && !missed) { state.opened = state.opened || online; return; }
  Object.assign(state, { online, opened: state.opened || online, notice: online ? "" : value.message, epoch: state.epoch + Number(online) });
  emit("online");
}

// What was done here and can be undone: each entry is the operations of one action, the latest last.
const done = [];
export function note(text, operations) {
  const entry = { text, operations: operations.filter(Boolean) };
  if (entry.operations.length) done.push(entry);
  emit("toast", { text, undo: entry.operations.length ? () => undo(entry) : null });
  emit("changed");
}
export async function undo(entry = done.at(-1)) {
  if (!entry) return say("Nothing was done here that could be undone.");
  const place = done.indexOf(entry);
  if (place >= 0) done.splice(place, 1);
  return undoAll(entry.operations, `Undone: ${entry.text}`);
}
// Operations are undone from the latest to the first; what cannot be is named, and the rest is undone.
export async function undoAll(operations, text) {
  const undone = [], refused = [];
  for (const operation of [...operations].sort((a, b) => b - a)) {
    try { undone.push((await call("undo", { operation })).operation); } catch (error) { refused.push(error.message); }
  }
  if (undone.length) note(text, undone);
  for (const message of new Set(refused.slice(0, 3))) fail(message);
  if (!undone.length) emit("changed");
}
export const say = (text) => emit("toast", { text });
export const fail = (error) => emit("toast", { text: String(error.message || error), bad: true });
// An action of a person: what it did can be undone, why it failed is shown.
export async function act(text, work) {
  try { note(text, await work()); return true; } catch (error) { fail(error); return false; }
}
