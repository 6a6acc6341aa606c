// What happened, by operation, the latest first; each can be undone, or many at once. Runs of jobs are one line.

import { call, fail, undoAll } from "../api.js";
import { Places, scope, show, useCall, useEffect, useKeys, useMarks, useOn, useRef, useState } from "../hooks.js";
import { about, badge, button, choice, dim, empty, head, html, link, list } from "../parts.js";
import { PRIMARY, problem, Safe, time } from "../parts.js";
import { count, line, memories, number, place, plain, session, short, startOfDay, words } from "../text.js";

const PAGE = 100;
const STEPS = 50; // of an operation that are shown
const VALUE_CHARS = 60;
const KINDS = [
  ["add,add_many,complete_task,import", "added"],
  ["update,tag,feedback", "changed"],
  ["delete,forget,erase", "deleted"],
  ["share", "shared"],
  ["undo,redo", "undone"],
];
const DONE = {
  add: "added",
  add_many: "added",
  update: "changed",
  tag: "tagged",
  delete: "deleted",
  forget: "forgot",
  share: "shared",
  undo: "undid",
  redo: "did again",
  feedback: "rated",
  import: "imported",
};
const NOT_SO = "Nothing of this kind happened.";
const NOT_THEN = "Nothing of this kind happened on these days; choose others above.";
const EMPTY = html`<p>Nothing was remembered yet.</p>
  <p>Give your coding agent a memory with <code>memctl hooks install claude-code</code>, or add one by hand:
  ${" "}<code>memctl add "We deploy on Tuesdays"</code>. It appears here.</p>`;

// Spans of whole days, from the first one until before the last, counted from today.
function listSpans() {
  const monday = -((new Date().getDay() + 6) % 7);
  return {
    today: [0, 1],
    yesterday: [-1, 0],
    "this week": [monday, monday + 7],
    "last week": [monday - 7, monday],
    "the last 30 days": [-29, 1],
  };
}

// A day as its field has it: `2026-03-31`; in the local zone.
function dayAfter(days) {
  const day = new Date(startOfDay(Date.now(), days));
  return [day.getFullYear(), day.getMonth() + 1, day.getDate()].map((part) => String(part).padStart(2, "0")).join("-");
}

const spanOf = (name) => {
  const [first, end] = listSpans()[name] || [];
  return end === undefined ? {} : { from: dayAfter(first), to: dayAfter(end - 1) };
};
const nameSpan = ({ from, to }) =>
  Object.keys(listSpans()).find((name) => spanOf(name).from === from && spanOf(name).to === to) || "";

// The days of a filter as times of `operations`.
function timesOf({ from, to }) {
  const start = (day, days = 0) => startOfDay(new Date(`${day}T12:00`), days) / 1000;
  return { ...(from && { after: start(from) - 0.001 }), ...(to && { before: start(to, 1) }) };
}

const dateField = (label, value, change) =>
  html`<label class="choice"><span>${label}</span>
    <input type="date" value=${value || ""} onChange=${(event) => change(event.target.value || undefined)} /></label>`;

const dates = new Intl.DateTimeFormat("en-GB", { weekday: "long", day: "numeric", month: "long" });

// A part of a day: its name, where it begins and ends in seconds.
function dayPart(at) {
  const start = startOfDay(at * 1000);
  const hour = (hours) => new Date(start).setHours(hours) / 1000;
  const halves = [
    ["morning", hour(0), hour(12)],
    ["afternoon", hour(12), hour(18)],
    ["evening", hour(18), hour(24)],
  ];
  const [half, from, to] = halves.find(([, , end]) => at < end);
  const days = { [startOfDay(Date.now())]: "This", [startOfDay(Date.now(), -1)]: "Yesterday" };
  return { name: `${days[start] || `${dates.format(start)},`} ${half}`, from, to, entries: [] };
}

const holds = (operations, id) => operations.some((one) => one.id === id);
const isUndoable = (one) => !one.undone_by && one.kind !== "redo";

// The log as far as it was asked for, and the ids of what happened since.
function useLog(fields) {
  const [{ entries, more, error }, set] = useState({});
  const [fresh, setFresh] = useState([]);
  const key = JSON.stringify(fields);
  const latest = useRef();
  latest.current = key;
  const load = async (older = []) => {
    try {
      const { operations } = await call("operations", { ...fields, limit: PAGE, offset: older.length });
      if (latest.current !== key) return; // an answer to a former filter
      // What happened while this was asked for may not be in it.
      if (!older.length) setFresh((ids) => ids.filter((id) => !fresh.includes(id) && !holds(operations, id)));
      const added = operations.filter((one) => !holds(older, one.id));
      set({ entries: [...older, ...added], more: operations.length === PAGE });
    } catch (wrong) {
      set((before) => ({ ...before, error: wrong }));
    }
  };
  useEffect(() => {
    load();
  }, [key]);
  useOn("changed", () => load());
  useOn("event", ({ operation }) => {
    if (fields.before < Date.now() / 1000) return; // it is later than what is shown
    if (operation && !holds(entries || [], operation)) setFresh((ids) => [...new Set([...ids, operation])]);
  });
  return { entries, more, error, fresh, load };
}

export default function Activity({ where: { query } }) {
  const [ns, choose] = useState(query.get("ns") || "");
  const [kind, chooseKind] = useState("");
  const [days, chooseDays] = useState(spanOf(query.get("when")));
  const [open, toggle] = useState("");
  const fields = { ...scope(ns), kind: kind ? kind.split(",") : [], ...timesOf(days) };
  const log = useLog(fields);
  const { entries } = log;
  const marks = useMarks((index) => entries[index] && isUndoable(entries[index]) && entries[index].id);
  useEffect(() => marks.clear(), [ns, kind, days]);
  const markPart = async ({ from, to }, on) => {
    const found = await call("operations", { ...fields, limit: 1000, after: from - 0.001, before: to });
    marks.turn(
      found.operations.filter(isUndoable).map((one) => one.id),
      on,
    );
  };
  const undoMarked = () => {
    const latest = entries.map((one) => one.id).filter(marks.has);
    const older = marks.ids.filter((id) => !latest.includes(id));
    marks.clear();
    undoAll([...latest, ...older], `Undid ${count(marks.ids.length, "operation")}`);
  };
  useOn("undo-key", (asked) => {
    if (!marks.ids.length) return;
    asked.done = true;
    undoMarked();
  });
  useKeys({ Escape: () => (marks.ids.length ? marks.clear() : false) });

  const entry = ([one, index]) => {
    const box = marks.box(one.id, index, `Select operation ${short(one.id)}`, { disabled: !isUndoable(one) });
    const turn = () => toggle(open === one.id ? "" : one.id);
    return html`<${Safe} key=${one.id}><${Entry} one=${one} box=${box} open=${open === one.id} toggle=${turn} /><//>`;
  };
  const showGroup = ({ key, title, entries: own }) => {
    if (!title) return own.map(entry);
    const body = key === JOBS ? html`<${Runs} key=${own.at(-1)[0].id} entries=${own} draw=${entry} />` : own.map(entry);
    return html`<div class="group" key=${key}><h3>${title}</h3>${body}</div>`;
  };
  const whole = (part) => {
    const ids = part.entries.filter(([one]) => isUndoable(one));
    return ids.length > 0 && ids.every(([one]) => marks.has(one.id));
  };
  const showPart = (part) => {
    const mark = (event) => markPart(part, event.target.checked).catch(fail);
    return html`<section key=${part.name}><div class="day">
        <input type="checkbox" aria-label=${`Select all of ${part.name}`} checked=${whole(part)} onChange=${mark} />
        <h2>${part.name}</h2></div>${splitByWho(part.entries).map(showGroup)}</section>`;
  };
  const spans = Object.keys(listSpans());
  const filters = [
    html`<${Places} value=${ns} change=${choose} />`,
    choice("What", kind, chooseKind, KINDS, "all"),
    choice("When", nameSpan(days), (name) => chooseDays(spanOf(name)), spans, "any time"),
    dateField("from", days.from, (from) => chooseDays({ ...days, from })),
    dateField("to", days.to, (to) => chooseDays({ ...days, to })),
  ];
  return html`${head("Activity", ...filters)}
    <div class="scroll">
      ${log.fresh.length > 0 && button(`${number(log.fresh.length)} new`, () => log.load(), { class: "new main" })}
      ${log.error && problem(log.error)}
      ${entries?.length === 0 && empty(days.from || days.to ? NOT_THEN : ns || kind ? NOT_SO : EMPTY)}
      ${splitByDay(entries || []).map(showPart)}
      ${log.more && html`<p>${button("Show earlier", () => log.load(entries))}</p>`}</div>
    ${marks.bar("Selected operations", button("Undo selected (u)", undoMarked, PRIMARY))}`;
}

function splitByDay(entries) {
  const parts = [];
  entries.forEach((one, index) => {
    const found = dayPart(one.at);
    if (parts.at(-1)?.name !== found.name) parts.push(found);
    parts.at(-1).entries.push([one, index]);
  });
  return parts;
}

// The operations of a part of a day by who did them: each session with its own, then the rest, then jobs.
const JOBS = "jobs";

function splitByWho(entries) {
  const groups = new Map();
  for (const pair of entries) {
    const [one] = pair;
    const isJob = one.kind.startsWith("job:");
    const key = isJob ? JOBS : `${one.namespace} ${one.session}`;
    const title = isJob ? "Jobs" : one.session && `${session(one.session)} in ${place(one.namespace)}`;
    const group = groups.get(title ? key : "") || { key, title, entries: [] };
    group.entries.push(pair);
    groups.set(title ? key : "", group);
  }
  return [...groups.values()].sort((a, b) => (a.key === JOBS) - (b.key === JOBS));
}

// Runs of jobs in a line; all of them when it is opened.
function Runs({ entries, draw }) {
  const [isOpen, open] = useState(false);
  const moved = entries.reduce((sum, [one]) => sum + one.memories, 0);
  const names = [...new Set(entries.map(([one]) => words(one.kind.slice("job:".length))))].join(", ");
  const title = html`<span class="one">${count(entries.length, "run")} of ${names}: ${memories(moved)}</span>`;
  return html`${button(title, () => open(!isOpen), { class: "link what", "aria-expanded": isOpen, "data-row": "jobs" })}
    ${isOpen && entries.map(draw)}`;
}

// What an operation did first, asked for once.
const beginnings = {};

function useBeginning(id) {
  const [beginning, set] = useState(beginnings[id]);
  useEffect(() => {
    if (beginnings[id] !== undefined) return;
    const keep = ({ changes }) => set((beginnings[id] = line(changes[0]?.preview)));
    call("history", { operation: id, limit: 1, reach: "all" }).then(keep, () => {});
  }, [id]);
  return beginning;
}

function Entry({ one, box, open, toggle }) {
  const { id, undone_by: back } = one;
  const beginning = useBeginning(id);
  const many = memories(one.memories);
  const title = html`<span class="one">${beginning || many}</span>`;
  const facts = about(
    badge(DONE[one.kind] || words(one.kind.replace(":", " "))),
    one.memories > 1 && many,
    place(one.namespace),
    one.token,
    one.process,
    session(one.session),
    back && `undone by ${short(back)}`,
  );
  const turn = () => undoAll([back || id], `${back ? "Did again" : "Undid"} operation ${short(id)}`);
  return html`<article class=${`op ${back ? "undone" : ""}`}>${box}<span class="time dim">${time(one.at, true)}</span>
    <div>${button(title, toggle, { class: "link what", "aria-expanded": open, "data-row": true })}
      ${facts}${open && html`<${Steps} one=${one} />`}</div>
    <span class="acts">${one.kind !== "redo" && button(back ? "Do again" : "Undo", turn)}</span></article>`;
}

function Steps({ one }) {
  const more = one.memories - STEPS;
  return show(
    useCall("history", { operation: one.id, limit: STEPS, reach: "all" }),
    ({ changes }) =>
      html`<div class="steps">${list(changes, showStep)}${more > 0 && dim(`and ${number(more)} more`)}</div>`,
  );
}

function showStep(change) {
  const value = (one) => plain(one).slice(0, VALUE_CHARS);
  const changed = Object.entries(change.changed)
    .filter(([name]) => name !== "content")
    .map(([name, [was, is]]) => `${name}: ${value(was)} → ${value(is)}`);
  return html`${about(link(change.id, "", { class: "mono" }), badge(change.action), place(change.namespace))}
    <div class="text clamp">${change.preview}</div>
    ${change.action === "updated" && html`<div class="dim one">${changed.join(" · ")}</div>`}`;
}
