// What happened, by operation, the latest first; each can be undone, or many at once.

import { call, say, undoAll } from "../api.js";
import { Badge, Choice, Empty, Head, Loading, Places, Problem, Safe, Time, count, fixed, html, line, number, place, scope, short, startOfDay, useCall, useEpoch, useEffect, useKeys, useOn, useRef, useState } from "../ui.js";

const PAGE = 100;
const KINDS = [["", "all"], ["add,add_many,complete_task", "added"], ["update,tag,feedback", "changed"], ["delete,forget", "deleted"], ["share", "shared"], ["undo,redo", "undone"], ["job:sweep,job:consolidate,job:expire,job:caps,job:dream,promote", "by jobs"]];
const WORDS = { add: "added", add_many: "added", update: "changed", tag: "tagged", delete: "deleted", forget: "forgot", share: "shared", undo: "undid", redo: "did again", feedback: "rated", import: "imported" };
const word = (kind) => WORDS[kind] || kind.replace("job:", "job ").replaceAll("_", " ");

// The part of the day: its name and where it begins and ends, in seconds.
function part(at) {
  const time = at * 1000, start = startOfDay(time), today = startOfDay(Date.now()), noon = new Date(start).setHours(12);
  const name = start === today ? "This" : start === startOfDay(today, -1) ? "Yesterday" : new Intl.DateTimeFormat("en-GB", { weekday: "long", day: "numeric", month: "long" }).format(time);
  const evening = new Date(start).setHours(18);
  const [half, from, to] = time < noon ? ["morning", start, noon] : time < evening ? ["afternoon", noon, evening] : ["evening", evening, startOfDay(start, 1)];
  return { name: name === "This" ? `This ${half}` : name === "Yesterday" ? `Yesterday ${half}` : `${name}, ${half}`, from: from / 1000, to: to / 1000 };
}
// Who did it, as far as that is known.
const who = (operation) => [operation.token, operation.process, operation.session].filter(Boolean).join(" · ");

export default function Today() {
  const [namespace, choose] = useState(""), [kind, choosePart] = useState("");
  const [log, setLog] = useState({ list: null, more: false, error: null }), [fresh, setFresh] = useState(0);
  const [marked, mark] = useState(new Set()), [at, move] = useState(-1), [open, toggle] = useState(null);
  const stats = useCall("stats", { reach: "all" }), epoch = useEpoch(), seen = useRef(0);
  const fields = { ...scope(namespace), kind: kind ? kind.split(",") : [] };
  const key = JSON.stringify(fields);
  const load = async (offset = 0) => {
    try {
      const { operations } = await call("operations", { ...fields, limit: PAGE, offset });
      if (!offset) { setFresh(0); seen.current = operations[0]?.id || 0; }
      setLog((before) => ({ list: offset ? [...before.list, ...operations.filter((one) => !before.list.some((had) => had.id === one.id))] : operations, more: operations.length === PAGE, error: null }));
    } catch (error) { setLog((before) => ({ ...before, error })); }
  };
  useEffect(() => { mark(new Set()); load(); }, [key, epoch]);
  useOn("changed", () => load());
  useOn("event", (event) => { if (event.operation && event.operation > seen.current) { seen.current = event.operation; setFresh((many) => many + 1); } });

  const list = log.list || [];
  const undoable = (one) => !one.undone_by && one.kind !== "redo";
  const turn = (ids, on) => mark((before) => { const after = new Set(before); for (const id of ids) if (on) after.add(id); else after.delete(id); return after; });
  const markPart = async (section, on) => {
    try { const { operations } = await call("operations", { ...fields, limit: 1000, after: section.from - 0.001, before: section.to }); turn(operations.filter(undoable).map((one) => one.id), on); } catch (error) { say(error.message); }
  };
  const undoMarked = () => { const ids = [...marked]; mark(new Set()); undoAll(ids, `Undid ${count(ids.length, "operation")}`); };
  useEffect(() => { const press = (event) => { if (marked.size) { event.preventDefault(); undoMarked(); } }; document.addEventListener("undo-key", press); return () => document.removeEventListener("undo-key", press); });
  const step = (by) => { const next = Math.max(0, Math.min(list.length - 1, at + by)); move(next); document.querySelectorAll(".op .what")[next]?.focus(); };
  useKeys({ j: () => step(1), k: () => step(-1), x: () => list[at] && undoable(list[at]) && turn([list[at].id], !marked.has(list[at].id)), Escape: () => mark(new Set()) });

  const sections = [];
  list.forEach((one, index) => { const section = part(one.at), last = sections.at(-1); if (last?.name === section.name) last.list.push([one, index]); else sections.push({ ...section, list: [[one, index]] }); });
  return html`<${Head} title="Today">
      <${Places} value=${namespace} change=${choose} names=${Object.keys(stats.value?.by_namespace || {})} />
      <${Choice} label="What" value=${kind} change=${choosePart} options=${KINDS} /><//>
    <div class="scroll">
      ${fresh > 0 && html`<button class="new main" onClick=${() => load()}>${number(fresh)} new</button>`}
      ${log.error && html`<${Problem} error=${log.error} />`}
      ${!log.list && !log.error && html`<${Loading} />`}
      ${log.list && !list.length && html`<${Empty}><p>${namespace || kind ? "Nothing of this kind happened." : "Nothing was remembered yet."}</p>
        ${!namespace && !kind && html`<p>Give your coding agent a memory with <code>memctl hooks install claude-code</code>, or add one by hand: <code>memctl add "We deploy on Tuesdays"</code>. It appears here.</p>`}<//>`}
      ${sections.map((section) => html`<section key=${section.name}><div class="day">
          <input type="checkbox" aria-label=${`Select all of ${section.name}`} checked=${section.list.filter(([one]) => undoable(one)).length > 0 && section.list.every(([one]) => !undoable(one) || marked.has(one.id))} onChange=${(event) => markPart(section, event.target.checked)} />
          <h2>${section.name}</h2></div>
        ${section.list.map(([one, index]) => html`<${Safe} key=${one.id}><${Entry} one=${one} on=${marked.has(one.id)} at=${index === at} open=${open === one.id} mark=${(on) => turn([one.id], on)} focus=${() => move(index)} toggle=${() => toggle(open === one.id ? null : one.id)} undoable=${undoable(one)} /><//>`)}</section>`)}
      ${log.more && html`<p><button onClick=${() => load(list.length)}>Show earlier</button></p>`}
    </div>
    ${marked.size > 0 && html`<div class="bulk" role="toolbar" aria-label="Selected operations"><b>${number(marked.size)} selected</b><button class="main" onClick=${undoMarked}>Undo selected (u)</button><button onClick=${() => mark(new Set())}>Clear</button></div>`}`;
}

// What an operation did first, asked for once.
const beginnings = new Map();
function useBeginning(one) {
  const [text, show] = useState(beginnings.get(one.id) || "");
  useEffect(() => {
    if (beginnings.has(one.id)) return;
    call("operation", { operation: one.id, limit: 1, reach: "all" }).then(({ changes }) => { beginnings.set(one.id, line(changes[0]?.preview)); show(beginnings.get(one.id)); }, () => {});
  }, [one.id]);
  return text;
}

function Entry({ one, on, at, open, mark, focus, toggle, undoable }) {
  const beginning = useBeginning(one), by = who(one);
  return html`<article class=${`op ${one.undone_by ? "undone" : ""} ${at ? "at" : ""}`}>
    <input type="checkbox" aria-label=${`Select operation ${one.id}`} checked=${on} disabled=${!undoable} onChange=${(event) => mark(event.target.checked)} />
    <span class="time dim"><${Time} at=${one.at} /></span>
    <div><button class="link what" aria-expanded=${open} onFocus=${focus} onClick=${toggle}><span class="one">${beginning || count(one.memories, "memory", "memories")}</span></button>
      <span class="about"><${Badge}>${word(one.kind)}<//>${one.memories > 1 && html`<span>${count(one.memories, "memory", "memories")}</span>`}<span>${place(one.namespace)}</span>${by && html`<span>${by}</span>`}${one.undone_by && html`<span>undone by ${one.undone_by}</span>`}</span>
      ${open && html`<${Steps} one=${one} />`}</div>
    <span class="acts">${one.kind !== "redo" && html`<button onClick=${() => undoAll([one.undone_by || one.id], one.undone_by ? `Done again: operation ${one.id}` : `Undid operation ${one.id}`)}>${one.undone_by ? "Do again" : "Undo"}</button>`}</span>
  </article>`;
}

function Steps({ one }) {
  const { value, error } = useCall("operation", { operation: one.id, limit: 50, reach: "all" });
  if (error) return html`<${Problem} error=${error} />`;
  if (!value) return html`<${Loading} />`;
  return html`<ul class="steps">${value.changes.map((change) => html`<li key=${change.id}><a href=${`#/m/${change.id}`} class="mono">${short(change.id)}</a> <${Badge}>${change.action}<//> <span class="dim">${place(change.namespace)}</span>
    <div class="text clamp">${change.preview}</div>
    ${change.action === "updated" && html`<div class="dim one">${Object.entries(change.changed).filter(([name]) => name !== "content").map(([name, [was, is]]) => `${name}: ${shown(was)} → ${shown(is)}`).join(" · ")}</div>`}</li>`)}
    ${one.memories > 50 && html`<li class="dim">and ${number(one.memories - 50)} more</li>`}</ul>`;
}
const shown = (value) => (typeof value === "number" && !Number.isInteger(value) ? fixed(value, 2) : value === null || value === "" ? "–" : line(typeof value === "object" ? JSON.stringify(value) : value).slice(0, 60));
