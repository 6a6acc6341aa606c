// What happened, by operation, the latest first; each can be undone, or many at once.

import { call, fail, undoAll } from "../api.js";
import { about, badge, Choice, clockTime, count, dim, Empty, fixed, Head, html, line, list, number, place, Places, problem, Safe, scope, short, show, startOfDay, useCall, useEffect, useEpoch, useKeys, useOn, useRef, useState } from "../ui.js";

const PAGE = 100;
const KINDS = [["", "all"], ["add,add_many,complete_task,import", "added"], ["update,tag,feedback", "changed"], ["delete,forget,erase", "deleted"], ["share", "shared"], ["undo,redo", "undone"]];
const WORDS = { add: "added", add_many: "added", update: "changed", tag: "tagged", delete: "deleted", forget: "forgot", share: "shared", undo: "undid", redo: "did again", feedback: "rated", import: "imported" };
const dates = new Intl.DateTimeFormat("en-GB", { weekday: "long", day: "numeric", month: "long" });
const EMPTY = html`<p>Nothing was remembered yet.</p><p>Give your coding agent a memory with <code>memctl hooks install claude-code</code>, or add one by hand: <code>memctl add "We deploy on Tuesdays"</code>. It appears here.</p>`;

// A part of a day: its name, where it begins and ends in seconds.
function dayPart(at) {
  const start = startOfDay(at * 1000), today = startOfDay(Date.now()), hour = (hours) => new Date(start).setHours(hours) / 1000;
  const [half, from, to] = at < hour(12) ? ["morning", hour(0), hour(12)] : at < hour(18) ? ["afternoon", hour(12), hour(18)] : ["evening", hour(18), hour(24)];
  return { name: start === today ? `This ${half}` : start === startOfDay(today, -1) ? `Yesterday ${half}` : `${dates.format(start)}, ${half}`, from, to, entries: [] };
}
const undoable = (one) => !one.undone_by && one.kind !== "redo";
const value = (it) => (typeof it === "number" && !Number.isInteger(it) ? fixed(it, 2) : line(typeof it === "object" && it ? JSON.stringify(it) : it).slice(0, 60) || "–");

export default function Today() {
  const [namespace, choose] = useState(""), [kind, chooseKind] = useState(""), [log, setLog] = useState({ list: null, more: false, error: null });
  const [fresh, setFresh] = useState(0), [marked, mark] = useState(new Set()), [at, move] = useState(-1), [open, toggle] = useState(null);
  const epoch = useEpoch(), seen = useRef(0), fields = { ...scope(namespace), kind: kind ? kind.split(",") : [] }, entries = log.list || [];
  const load = async (offset = 0) => {
    try {
      const { operations } = await call("operations", { ...fields, limit: PAGE, offset });
      if (!offset) { setFresh(0); seen.current = operations[0]?.id || 0; }
      setLog((before) => ({ list: offset ? [...before.list, ...operations.filter((one) => one.id < before.list.at(-1).id)] : operations, more: operations.length === PAGE, error: null }));
    } catch (error) { setLog((before) => ({ ...before, error })); }
  };
  useEffect(() => { mark(new Set()); load(); }, [namespace, kind, epoch]);
  useOn("changed", () => load());
  useOn("event", ({ operation }) => { if (operation > seen.current) { seen.current = operation; setFresh((many) => many + 1); } });

  const turn = (ids, on) => mark((before) => { const after = new Set(before); for (const id of ids) if (on) after.add(id); else after.delete(id); return after; });
  const markPart = async ({ from, to }, on) => {
    try { turn((await call("operations", { ...fields, limit: 1000, after: from - 0.001, before: to })).operations.filter(undoable).map((one) => one.id), on); } catch (error) { fail(error); }
  };
  const undoMarked = () => { const ids = [...marked]; mark(new Set()); undoAll(ids, `Undid ${count(ids.length, "operation")}`); };
  useEffect(() => { const press = (event) => { if (marked.size) { event.preventDefault(); undoMarked(); } }; document.addEventListener("undo-key", press); return () => document.removeEventListener("undo-key", press); });
  const step = (by) => { const next = Math.max(0, Math.min(entries.length - 1, at + by)); move(next); document.querySelectorAll(".op .what")[next]?.focus(); };
  useKeys({ j: () => step(1), k: () => step(-1), x: () => entries[at] && undoable(entries[at]) && turn([entries[at].id], !marked.has(entries[at].id)), Escape: () => mark(new Set()) });

  const parts = [];
  entries.forEach((one, index) => { const part = dayPart(one.at); if (parts.at(-1)?.name !== part.name) parts.push(part); parts.at(-1).entries.push([one, index]); });
  const all = (part) => part.entries.some(([one]) => undoable(one)) && part.entries.every(([one]) => !undoable(one) || marked.has(one.id));
  return html`<${Head} title="Today"><${Places} value=${namespace} change=${choose} /><${Choice} label="What" value=${kind} change=${chooseKind} options=${KINDS} /><//>
    <div class="scroll">${fresh > 0 && html`<button class="new main" onClick=${() => load()}>${number(fresh)} new</button>`}${log.error && problem(log.error)}
      ${log.list && !entries.length && html`<${Empty}>${namespace || kind ? "Nothing of this kind happened." : EMPTY}<//>`}
      ${parts.map((part) => html`<section key=${part.name}><div class="day"><input type="checkbox" aria-label=${`Select all of ${part.name}`} checked=${all(part)} onChange=${(event) => markPart(part, event.target.checked)} /><h2>${part.name}</h2></div>
        ${part.entries.map(([one, index]) => html`<${Safe} key=${one.id}><${Entry} one=${one} on=${marked.has(one.id)} at=${index === at} open=${open === one.id} mark=${(on) => turn([one.id], on)} focus=${() => move(index)} toggle=${() => toggle(open === one.id ? null : one.id)} /><//>`)}</section>`)}
      ${log.more && html`<p><button onClick=${() => load(entries.length)}>Show earlier</button></p>`}</div>
    ${marked.size > 0 && html`<div class="bulk" role="toolbar" aria-label="Selected operations"><b>${number(marked.size)} selected</b><button class="main" onClick=${undoMarked}>Undo selected (u)</button><button onClick=${() => mark(new Set())}>Clear</button></div>`}`;
}

// What an operation did first, asked for once.
const beginnings = new Map();
function useBeginning({ id }) {
  const [text, set] = useState(beginnings.get(id) || "");
  useEffect(() => { if (!beginnings.has(id)) call("operation", { operation: id, limit: 1, reach: "all" }).then(({ changes }) => { beginnings.set(id, line(changes[0]?.preview)); set(beginnings.get(id)); }, () => {}); }, [id]);
  return text;
}

function Entry({ one, on, at, open, mark, focus, toggle }) {
  const beginning = useBeginning(one), many = count(one.memories, "memory", "memories"), back = one.undone_by;
  return html`<article class=${`op ${back ? "undone" : ""} ${at ? "at" : ""}`}>
    <input type="checkbox" aria-label=${`Select operation ${one.id}`} checked=${on} disabled=${!undoable(one)} onChange=${(event) => mark(event.target.checked)} /><span class="time dim">${clockTime(one.at)}</span>
    <div><button class="link what" aria-expanded=${open} onFocus=${focus} onClick=${toggle}><span class="one">${beginning || many}</span></button>
      ${about(badge(WORDS[one.kind] || one.kind.replace(":", " ")), one.memories > 1 && many, place(one.namespace), one.token, one.process, one.session && `session ${line(one.session).slice(0, 24)}`, back && `undone by ${back}`)}${open && html`<${Steps} one=${one} />`}</div>
    <span class="acts">${one.kind !== "redo" && html`<button onClick=${() => undoAll([back || one.id], `${back ? "Did again" : "Undid"} operation ${one.id}`)}>${back ? "Do again" : "Undo"}</button>`}</span></article>`;
}

function Steps({ one }) {
  const changed = (change) => Object.entries(change.changed).filter(([name]) => name !== "content").map(([name, [was, is]]) => `${name}: ${value(was)} → ${value(is)}`).join(" · ");
  return show(useCall("operation", { operation: one.id, limit: 50, reach: "all" }), ({ changes }) => html`<div class="steps">${list(changes, (change) => html`${about(html`<a href=${`#/m/${change.id}`} class="mono">${short(change.id)}</a>`, badge(change.action), place(change.namespace))}
    <div class="text clamp">${change.preview}</div>${change.action === "updated" && html`<div class="dim one">${changed(change)}</div>`}`)}${one.memories > 50 && dim(`and ${number(one.memories - 50)} more`)}</div>`);
}
