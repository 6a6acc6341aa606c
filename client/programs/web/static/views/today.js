// What happened, by operation, the latest first; each can be undone, or many at once. And what agents were given.

import { call, fail, undoAll } from "../api.js";
import { about, badge, button, choice, count, dim, empty, go, head, html, line, link, list, main, memories, number, place, Places, plain, problem, Report, Safe, scope, session, short, show, startOfDay, tabs, time, useCall, useEffect, useKeys, useMarks, useOn, useRef, useState, words } from "../ui.js";
import { Changed } from "./memory.js";

const PAGE = 100;
const KINDS = [["add,add_many,complete_task,import", "added"], ["update,tag,feedback", "changed"], ["delete,forget,erase", "deleted"], ["share", "shared"], ["undo,redo", "undone"]];
const DONE = { add: "added", add_many: "added", update: "changed", tag: "tagged", delete: "deleted", forget: "forgot", share: "shared", undo: "undid", redo: "did again", feedback: "rated", import: "imported" };
const dates = new Intl.DateTimeFormat("en-GB", { weekday: "long", day: "numeric", month: "long" });
const EMPTY = html`<p>Nothing was remembered yet.</p><p>Give your coding agent a memory with <code>memctl hooks install claude-code</code>, or add one by hand: <code>memctl add "We deploy on Tuesdays"</code>. It appears here.</p>`;

// A part of a day: its name, where it begins and ends in seconds.
function dayPart(at) {
  const start = startOfDay(at * 1000), hour = (hours) => new Date(start).setHours(hours) / 1000;
  const [half, from, to] = at < hour(12) ? ["morning", hour(0), hour(12)] : at < hour(18) ? ["afternoon", hour(12), hour(18)] : ["evening", hour(18), hour(24)];
  const name = [["This", 0], ["Yesterday", -1]].find(([, days]) => start === startOfDay(Date.now(), days))?.[0] || `${dates.format(start)},`;
  return { name: `${name} ${half}`, from, to, entries: [] };
}
const holds = (operations, id) => operations.some((one) => one.id === id);
const undoable = (one) => !one.undone_by && one.kind !== "redo";

const TABS = [["did", "What happened"], ["given", "What agents were given"]];
const SETTLED = html`<p>Nothing is open: no saved memory seems to be changed by anything said or saved later.</p>`;
export default function Today({ where: { query } }) {
  const tab = query.get("tab") || "did", [ns, choose] = useState(""), changes = useCall("list_changes", scope(ns, ns === "/" ? "exact" : "subtree"), { kinds: ["observed", "created", "updated", "deleted"] }), open = changes.value?.total;
  const all = tabs("Today", [...TABS, ["changes", open ? `What holds now (${number(open)})` : "What holds now"]], tab, (key) => go(key === "did" ? "/today" : `/today?tab=${key}`));
  if (tab === "changes") return html`${head("Today", html`<${Places} value=${ns} change=${choose} />`)}<div class="scroll">${all}${show(changes, ({ memories: open }) => (open.length ? list(open, change) : empty(SETTLED)))}</div>`;
  return tab === "given" ? html`<${Given} ns=${ns} choose=${choose} tabs=${all} />` : html`<${Done} ns=${ns} choose=${choose} tabs=${all} />`;
}

const change = (one) => html`<article class="hit" key=${one.id}>${link(one.id, one.content, { class: "text", "data-row": one.id })}${about(time(one.created_at), place(one.namespace))}<${Changed} memory=${one} /></article>`;

// Useful, wrong, never again: what the last one would do is asked below the list.
function Given({ ns, choose, tabs: all }) {
  const [asked, ask] = useState(""), box = useRef();
  useOn("never", ask);
  useOn("changed", () => ask(""));
  useKeys({ Escape: () => (asked ? ask("") : false) });
  useEffect(() => { if (asked) box.current.focus(); }, [asked]);
  return html`${head("Today", html`<${Places} value=${ns} change=${choose} />`)}<div class="scroll">${all}<${Report} name="given" fields=${scope(ns, ns === "/" ? "exact" : "subtree")} kinds=${["observed", "created"]} /></div>
    ${asked && html`<div class="bulk" role="region" aria-label="Never again" tabindex="-1" ref=${box}><${Report} name="never" fields=${Object.fromEntries(new URLSearchParams(asked))} /></div>`}`;
}

function Done({ ns, choose, tabs: all }) {
  const [kind, chooseKind] = useState(""), [{ entries, more, error }, setLog] = useState({}), [fresh, setFresh] = useState([]), [open, toggle] = useState("");
  const fields = { ...scope(ns), kind: kind ? kind.split(",") : [] }, marks = useMarks((index) => entries[index] && undoable(entries[index]) && entries[index].id);
  const load = async (older = []) => {
    try {
      const { operations } = await call("operations", { ...fields, limit: PAGE, offset: older.length });
      // What happened while this was asked for may not be in it.
      if (!older.length) setFresh((ids) => ids.filter((id) => !fresh.includes(id) && !holds(operations, id)));
      setLog({ entries: [...older, ...operations.filter((one) => !holds(older, one.id))], more: operations.length === PAGE });
    } catch (wrong) { setLog((before) => ({ ...before, error: wrong })); }
  };
  useEffect(() => { marks.clear(); load(); }, [ns, kind]);
  useOn("changed", () => load());
  useOn("event", ({ operation }) => { if (operation && !holds(entries || [], operation)) setFresh((ids) => [...new Set([...ids, operation])]); });
  const markPart = ({ from, to }, on) => call("operations", { ...fields, limit: 1000, after: from - 0.001, before: to }).then((found) => marks.turn(found.operations.filter(undoable).map((one) => one.id), on), fail);
  const undoMarked = () => {
    const latest = entries.map((one) => one.id).filter(marks.has), older = marks.ids.filter((id) => !latest.includes(id));
    marks.clear();
    undoAll([...latest, ...older], `Undid ${count(marks.ids.length, "operation")}`);
  };
  useOn("undo-key", (asked) => { if (marks.ids.length) { asked.done = true; undoMarked(); } });
  useKeys({ Escape: () => (marks.ids.length ? marks.clear() : false) });

  const parts = [];
  entries?.forEach((one, index) => { const found = dayPart(one.at); if (parts.at(-1)?.name !== found.name) parts.push(found); parts.at(-1).entries.push([one, index]); });
  const whole = (part) => { const ids = part.entries.filter(([one]) => undoable(one)); return ids.length > 0 && ids.every(([one]) => marks.has(one.id)); };
  const entry = ([one, index]) => html`<${Safe} key=${one.id}><${Entry} one=${one} box=${marks.box(one.id, index, `Select operation ${short(one.id)}`, { disabled: !undoable(one) })} open=${open === one.id} toggle=${() => toggle(open === one.id ? "" : one.id)} /><//>`;
  return html`${head("Today", html`<${Places} value=${ns} change=${choose} />`, choice("What", kind, chooseKind, KINDS, "all"))}
    <div class="scroll">${all}${fresh.length > 0 && button(`${number(fresh.length)} new`, () => load(), { class: "new main" })}${error && problem(error)}
      ${entries?.length === 0 && empty(ns || kind ? "Nothing of this kind happened." : EMPTY)}
      ${parts.map((part) => html`<section key=${part.name}><div class="day"><input type="checkbox" aria-label=${`Select all of ${part.name}`} checked=${whole(part)} onChange=${(event) => markPart(part, event.target.checked)} /><h2>${part.name}</h2></div>${part.entries.map(entry)}</section>`)}
      ${more && html`<p>${button("Show earlier", () => load(entries))}</p>`}</div>
    ${marks.bar("Selected operations", button("Undo selected (u)", undoMarked, main))}`;
}

// What an operation did first, asked for once.
const beginnings = {};
function Entry({ one, box, open, toggle }) {
  const { id, undone_by: back } = one, [beginning, set] = useState(beginnings[id]), many = memories(one.memories);
  useEffect(() => { beginnings[id] ?? call("operation", { operation: id, limit: 1, reach: "all" }).then(({ changes }) => set((beginnings[id] = line(changes[0]?.preview))), () => {}); }, [id]);
  return html`<article class=${`op ${back ? "undone" : ""}`}>${box}<span class="time dim">${time(one.at, true)}</span>
    <div>${button(html`<span class="one">${beginning || many}</span>`, toggle, { class: "link what", "aria-expanded": open, "data-row": true })}
      ${about(badge(DONE[one.kind] || words(one.kind.replace(":", " "))), one.memories > 1 && many, place(one.namespace), one.token, one.process, session(one.session), back && `undone by ${short(back)}`)}${open && html`<${Steps} one=${one} />`}</div>
    <span class="acts">${one.kind !== "redo" && button(back ? "Do again" : "Undo", () => undoAll([back || id], `${back ? "Did again" : "Undid"} operation ${short(id)}`))}</span></article>`;
}

function Steps({ one }) {
  const changed = (change) => Object.entries(change.changed).filter(([name]) => name !== "content").map(([name, [was, is]]) => `${name}: ${plain(was).slice(0, 60)} → ${plain(is).slice(0, 60)}`).join(" · ");
  const step = (change) => html`${about(link(change.id, "", { class: "mono" }), badge(change.action), place(change.namespace))}<div class="text clamp">${change.preview}</div>${change.action === "updated" && html`<div class="dim one">${changed(change)}</div>`}`;
  return show(useCall("operation", { operation: one.id, limit: 50, reach: "all" }), ({ changes }) => html`<div class="steps">${list(changes, step)}${one.memories > 50 && dim(`and ${number(one.memories - 50)} more`)}</div>`);
}
