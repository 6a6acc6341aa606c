// The way to the daemon: the token of this tab, calls, events from one stream for all tabs, and what can be undone.

const listeners = {};
const ENDED = "The page's process has ended; start it again with `memctl web`.";
export const state = { token: sessionStorage.getItem("token") || "", online: true, opened: false, notice: "" };

export function on(name, act) {
  const acts = (listeners[name] ||= new Set()).add(act);
  return () => acts.delete(act);
}

export function emit(name, value) {
  for (const act of listeners[name] || []) act(value);
}

// Signing in: the code of the address once, else what the tab kept, else what another tab of this page has.
const tabs = new BroadcastChannel("memoryd");
tabs.onmessage = ({ data: { name, value, token } }) => {
  if (name) receive(name, value);
  else if (!token && state.token) tabs.postMessage({ token: state.token });
  else if (token && !state.token) keep(token);
};
function keep(token) {
  state.token = token;
  sessionStorage.setItem("token", token);
  emit("signed", Boolean(token));
}

export async function signIn() {
  const code = new URLSearchParams(location.hash.slice(1)).get("open");
  if (code) {
    history.replaceState(null, "", "/");
    const answer = await send("/open", code);
    if (answer.ok) return keep((await answer.json()).token);
  }
  if (state.token) return keep(state.token);
  tabs.postMessage({});
  setTimeout(() => emit("signed", Boolean(state.token)), 500); // a busy tab may answer later
}

async function send(path, body) {
  const headers = { authorization: `Bearer ${state.token}`, "content-type": "application/json" };
  const answer = await fetch(path, body ? { headers, method: "POST", body: JSON.stringify(body) } : { headers }).catch(
    () => {
      throw new Error(ENDED);
    },
  );
  if (answer.status === 401) keep("");
  return answer;
}

async function parse(answer) {
  const said = await answer.json().catch(() => ({ message: `The page's process answered with ${answer.status}.` }));
  if (!answer.ok) throw Object.assign(new Error(), said);
  return said;
}

function unwrap({ result, error }) {
  if (error) throw Object.assign(new Error(), error);
  return result;
}

const read = async (answer) => unwrap(await parse(answer));
export const call = async (method, fields) => read(await send("/api/call", { method, ...fields }));

// The answers to several calls, given as pairs of a method and its fields, by one request.
export async function callAll(calls) {
  const answers = await parse(
    await send(
      "/api/call",
      calls.map(([method, fields]) => ({ method, ...fields })),
    ),
  );
  return (answers.error ? [answers] : answers).map(unwrap);
}

export const readFindings = async () => read(await send("/api/doctor")); // what doctor says

// Events. One tab leads: it holds the lock and the stream, and passes on what comes.
let following = false;
export async function follow() {
  if (following) return;
  following = true;
  // Where another tab leads, its stream is open already: the next one that opens has missed something.
  const { held } = await navigator.locks.query();
  state.opened ||= held.some(({ name }) => name === "memoryd-stream");
  await navigator.locks.request("memoryd-stream", async () => {
    while (state.token) {
      await stream().catch(() => share("away", { message: ENDED }));
      await new Promise((done) => setTimeout(done, 700));
    }
  });
  following = false;
}

async function stream() {
  const answer = await send("/api/events");
  if (!answer.ok) throw new Error(answer.status);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { value, done } = await reader.read();
    if (done) throw new Error("ended");
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const [, name, data] = /^event: (\w+)\ndata: (.*)$/.exec(part) || [];
      if (name) share(name, JSON.parse(data));
    }
  }
}

function share(name, value) {
  tabs.postMessage({ name, value });
  receive(name, value);
}

function receive(name, value) {
  if (name === "event") return emit("event", value);
  // A stream that opens again, be it another tab's, has missed what happened meanwhile.
  const online = name === "open";
  const turned = online !== state.online;
  const missed = online && (state.opened || turned);
  Object.assign(state, { online, opened: state.opened || online, notice: value.message });
  if (turned) emit("online");
  if (missed) emit("changed");
}

// What was done here and can be undone, the latest last: `back` undoes it and says so with a text.
const done = [];
function note(text, back) {
  const entry = { text, back };
  if (back) done.push(entry);
  emit("toast", { text, undo: back && (() => undo(entry)) });
  emit("changed");
}

export function undo(entry = done.at(-1)) {
  if (!entry) return say("Nothing was done here that could be undone.");
  if (done.includes(entry)) done.splice(done.indexOf(entry), 1);
  return entry.back(`Undone: ${entry.text}`);
}

export const own = new Set(); // operations that this tab began: their events are no news to it
export function noteAll(text, operations) {
  for (const operation of operations) own.add(operation);
  note(text, operations.length ? (said) => undoAll([...operations].reverse(), said) : null);
}

// Operations are undone, the latest first. One is refused while what changed the same later is in effect, so those are
// tried again; what cannot be undone is named.
export async function undoAll(operations, text) {
  const undone = [];
  const refused = new Set();
  for (let left = operations, before = Infinity; left.length < before;) {
    const again = [];
    refused.clear();
    for (const operation of left) {
      await call("undo", { operation }).then(
        (answer) => undone.push(answer.operation),
        (error) => {
          refused.add(error.message);
          again.push(operation);
        },
      );
    }
    [left, before] = [again, left.length];
  }
  if (undone.length) noteAll(text, undone);
  else emit("changed");
  [...refused].slice(0, 2).forEach(fail);
}

export const say = (text) => emit("toast", { text });
export const fail = (error) => emit("toast", { text: error.message || error, bad: true });
// A call of a person: the answer, or nothing when it failed. What it did can be undone, by its operation or by `back`.
export async function run(text, method, fields, back) {
  try {
    const answer = await call(method, fields);
    if (back) note(text, back);
    else noteAll(text, method === "erase" ? [] : [answer.operation].filter(Boolean)); // which nothing brings back
    return answer;
  } catch (error) {
    fail(error);
  }
}
