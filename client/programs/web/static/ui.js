// What the views share: numbers and times, parts of a page, answers to calls, lists of any length, selections.

import { h, html, useEffect, useErrorBoundary, useLayoutEffect, useRef, useState } from "./vendor/htm-preact.js";
import { call, emit, on, report, run, undoAll } from "./api.js";
import { useKeys } from "./keys.js";

export { html, useEffect, useKeys, useRef, useState };

// Texts.
export const number = (value) => (value ?? 0).toLocaleString("en");
export const count = (many, one, more = `${one}s`) => `${number(many)} ${many === 1 ? one : more}`;
export const memories = (many) => count(many, "memory", "memories");
export const place = (namespace) => namespace || "/";
export const short = (id) => (id || "").slice(0, 8);
export const fixed = (value, digits = 3) => value?.toFixed(digits) ?? "–";
export const line = (text) => String(text ?? "").replace(/\s+/g, " ").trim();
export const words = (name) => name.replaceAll("_", " ");
export const plain = (value) => (value === "" ? "–" : typeof value === "number" && !Number.isInteger(value) ? fixed(value) : value && typeof value === "object" ? JSON.stringify(value) : String(value ?? "–"));

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" }), weekday = new Intl.DateTimeFormat("en-GB", { weekday: "long" });
export const startOfDay = (at, days = 0) => { const date = new Date(at); date.setHours(0, 0, 0, 0); return date.setDate(date.getDate() + days); };
export function time(at, bare) {
  if (!at) return "never";
  const date = new Date(at * 1000), start = startOfDay(date), now = Date.now(), today = bare || start === startOfDay(now), name = start < startOfDay(now) && start > startOfDay(now, -7) ? weekday : day;
  return html`<time datetime=${date.toISOString()} title=${date.toISOString()}>${today ? "" : `${name.format(date)}, `}${clock.format(date)}</time>`;
}

// Parts of a page.
export const badge = (text, kind = "") => html`<span class=${`badge ${kind}`}>${text}</span>`;
export const dim = (text) => html`<p class="dim">${text}</p>`;
export const empty = (text) => html`<div class="empty">${text}</div>`;
export const problem = (error) => html`<div class="problem" role="alert">${error.message}</div>`;
export const head = (title, ...tools) => html`<header class="head"><h1>${title}</h1><div class="tools">${tools}</div></header>`;
export const button = (text, act, more) => html`<button onClick=${act} ...${more}>${text}</button>`;
export const danger = { class: "danger" }, main = { class: "main" };
export const link = (id, text, more) => html`<a href=${`#/m/${id}`} ...${more}>${line(text) || short(id)}</a>`;
export const field = (label, value, type, enter, more) => html`<input value=${value} placeholder=${label} aria-label=${label} onInput=${(event) => type(event.target.value)} onKeyDown=${(event) => event.key === "Enter" && enter(event.target.value)} ...${more} />`;
// A line of small facts; what is empty is left out.
export const about = (...parts) => html`<span class="about">${parts.filter((part) => part || part === 0).map((part) => (typeof part === "object" ? part : html`<span>${part}</span>`))}</span>`;
export const session = (name) => name && `session ${line(name).slice(0, 24)}`;
export const aboutMemory = (one) => about(one.pinned && badge("pinned", "pin"), one.type && badge(one.type), one.origin && `${one.origin}${one.confirmed_at ? ", confirmed" : ""}`, one.namespace !== undefined && place(one.namespace), one.tier, one.created_at && time(one.created_at), one.superseded_by && badge("superseded"));
export const tabs = (label, all, now, open) => html`<div class="tabs" role="tablist" aria-label=${label}>${all.map(([key, title]) => button(title, () => open(key), { role: "tab", "aria-selected": now === key }))}</div>`;
export const part = (title, body) => html`<section><h2 class="small">${title}</h2>${body}</section>`;
export const list = (items, draw) => html`<ul>${items.map((item, index) => html`<li key=${item.id ?? index}><${Safe}>${draw(item, index)}<//></li>`)}</ul>`;
export const bar = (share, from = 0) => html`<span class="bar" aria-hidden="true"><i style=${{ left: `${from * 100}%`, width: `${Math.max(share * 100, 0.6)}%` }}></i></span>`;
export const choice = (label, value, change, options, all) => html`<label class="choice"><span>${label}</span><select value=${value} onChange=${(event) => change(event.target.value)}>
  ${[...(all ? [["", all]] : []), ...options].map((option) => { const [key, text] = [option].flat(); return html`<option value=${key} selected=${key === value}>${text ?? key}</option>`; })}</select></label>`;
// What the page's process composed: a text, or a list of a name and its parts. A text never becomes markup.
const right = (heads, index) => (heads[index][0] === ">" ? "right" : "");
const NAMED = {
  time, bar, link: (id, text) => link(id, text, { "data-row": id }),
  go: (path, text) => html`<a href=${`#${path}`} data-row=${path}>${line(text)}</a>`,
  undo: (text, said, operation) => button(text, () => undoAll([operation], said)),
  emit: (text, name, value, look) => button(text, () => emit(name, value), { class: look }),
  act: (text, said, method, fields, back) => button(text, () => run(said, method, fields, back && (() => run(`Undone: ${said}`, back, fields)))),
  table: (label, heads, rows) => html`<div class="wide" tabindex="0" role="region" aria-label=${label}><table><thead><tr>${heads.map((text, index) => html`<th class=${right(heads, index)}>${text.replace(">", "")}</th>`)}</tr></thead>
    <tbody>${rows.map((cells) => html`<tr>${cells.map((cell, index) => html`<td class=${right(heads, index)}>${draw(cell)}</td>`)}</tr>`)}</tbody></table></div>`,
};
export function draw(part) {
  if (!Array.isArray(part)) return part;
  const [name, ...parts] = part, [tag, ...classes] = name.split(".");
  return NAMED[name]?.(...parts) ?? h(tag, { class: classes.join(" ") }, parts.map(draw));
}
// The namespaces that hold something, as a choice; the root is written `/`.
let stats = null; // of the last seconds: several parts of a view ask for them
const forgetStats = () => { stats = null; };
const readStats = () => {
  if (!stats) (stats = call("stats", { reach: "all" })).then(() => setTimeout(forgetStats, 3000), forgetStats);
  return stats;
};
export const useStats = () => useAnswer(readStats, []).value;
export const useNames = () => Object.keys(useStats()?.by_namespace || {}).map((name) => [name || "/", place(name)]);
export const Places = ({ value, change }) => choice("Namespace", value, change, useNames(), "all");
export const named = (chosen) => (chosen === "/" ? "" : chosen);
export const scope = (chosen, reach = "exact") => (chosen ? { namespace: named(chosen), reach } : { reach: "all" });

// One record that cannot be shown does not take the others with it.
export function Safe({ children }) {
  const [error] = useErrorBoundary();
  return error ? problem({ message: `This cannot be shown: ${error.message}` }) : children;
}

// The answer to a call: again when its fields change, after a change here, when the daemon is back, at events of `kinds`.
export const useCall = (method, fields, { wanted = true, kinds } = {}) => useAnswer(() => call(method, fields), [method, JSON.stringify(fields), wanted], kinds, wanted);
export function useAnswer(ask, depends, kinds = [], wanted = true) {
  const [answer, set] = useState({}), [turn, again] = useState(0), reload = () => again((value) => value + 1);
  useOn("changed", reload);
  useOn("event", ({ kind }) => kinds.includes(kind) && reload());
  useEffect(() => {
    let current = wanted;
    const settle = (found) => current && set(found);
    if (wanted) ask().then((value) => settle({ value }), (error) => settle((before) => ({ error, value: error.code && error.code !== "unavailable" ? undefined : before.value })));
    return () => { current = false; };
  }, [...depends, turn]);
  return { ...answer, reload, set: (value) => set({ value }) };
}
// A report of the page's process: again like the answer to a call.
export const useReport = (name, fields, kinds, wanted) => useAnswer(() => report(`${name}?${new URLSearchParams(fields)}`), [name, JSON.stringify(fields), wanted], kinds, wanted);
export const loading = html`<div class="loading">Loading…</div>`;
export const show = ({ value, error }, draw) => (value ? draw(value) : error ? problem(error) : loading);
export const Report = ({ name, fields, kinds }) => show(useReport(name, fields, kinds), draw);
export const useOn = (name, act) => { const latest = useRef(); latest.current = act; useEffect(() => on(name, (value) => latest.current(value)), [name]); };

// The focus comes back to the row of what was open; where a window is too narrow for both, it goes to what is open, too.
export function useReturn(id) {
  const before = useRef(), find = (what) => document.querySelector(`main ${what}`);
  useEffect(() => {
    if (id && !find(".list")?.checkVisibility()) find(".side :is(a, button)")?.focus();
    else if (before.current && !id) find(`.list [data-row="${CSS.escape(before.current)}"]`)?.focus();
    before.current = id;
  }, [id]);
}

// What is selected of a list: `box` is the check box of one, with Shift of all since the last one; `bar` what can be done.
export function useMarks(idAt) {
  const [marked, mark] = useState(new Set()), last = useRef(0), clear = () => mark(new Set());
  const turn = (ids, on) => mark((before) => { const after = new Set(before); for (const id of ids) if (on) after.add(id); else after.delete(id); return after; });
  const pick = (event, index) => {
    const [from, to] = [event.shiftKey ? last.current : index, index].sort((a, b) => a - b), ids = Array.from({ length: to - from + 1 }, (_, step) => idAt(from + step));
    turn(ids.filter(Boolean), event.target.checked);
    last.current = index;
  };
  return {
    ids: [...marked], turn, clear, has: (id) => marked.has(id),
    box: (id, index, label, more) => html`<input type="checkbox" aria-label=${label} checked=${marked.has(id)} onClick=${(event) => pick(event, index)} ...${more} />`,
    bar: (label, acts) => marked.size > 0 && html`<div class="bulk" role="toolbar" aria-label=${label}><b>${number(marked.size)} selected</b>${acts}${button("Clear", clear)}</div>`,
  };
}

// A list of any length: only the rows in sight are in the page; `row(index)` returns one, of equal heights.
export function Rows({ total, height, row, label }) {
  const box = useRef(), [[first, last], look] = useState([0, 30]);
  const measure = () => {
    const { scrollTop, clientHeight } = box.current, from = Math.max(0, Math.floor(scrollTop / height) - 8), to = Math.ceil((scrollTop + clientHeight) / height) + 8;
    look((before) => (before[0] === from && before[1] === to ? before : [from, to]));
  };
  useLayoutEffect(() => { const watch = new ResizeObserver(measure); watch.observe(box.current); return () => watch.disconnect(); }, []);
  const shown = [];
  for (let index = first; index < Math.min(total, last); index++) shown.push(html`<li key=${index} aria-setsize=${total} aria-posinset=${index + 1} style=${{ top: `${index * height}px`, height: `${height}px` }}><${Safe}>${row(index)}<//></li>`);
  return html`<div class="rows" ref=${box} onScroll=${measure} tabindex="-1"><ul aria-label=${label} style=${{ height: `${total * height}px` }}>${shown}</ul></div>`;
}

// Pages of `list` as they come into sight; while one is asked for again, what was there is shown.
const PAGE = 100;
export function usePages(fields) {
  const key = JSON.stringify(fields), kept = useRef({}), [shown, set] = useState({});
  if (kept.current.key !== key) kept.current = { key, rows: [], asked: new Set() };
  const load = (offset) => {
    const mine = kept.current, settle = (found) => kept.current.key === key && set({ key, ...found });
    if (mine.asked.has(offset)) return;
    mine.asked.add(offset);
    call("list", { ...fields, limit: PAGE, offset }).then(({ memories: found, total }) => { found.forEach((one, index) => { mine.rows[offset + index] = one; }); settle({ total }); }, (error) => settle({ ...shown, error }));
  };
  const reload = () => { kept.current = { ...kept.current, asked: new Set() }; load(0); };
  useOn("changed", reload);
  useEffect(() => load(0), [key]);
  const at = (index) => {
    const { rows, asked } = kept.current, start = index - (index % PAGE);
    let hole = start;
    if (asked.has(start)) while (rows[hole] && hole < index) hole++; // of large memories fewer come than asked for
    if (!asked.has(start) || !rows[hole]) load(hole);
    return rows[index];
  };
  return { at, reload, total: shown.key === key ? shown.total : undefined, error: shown.error };
}

export const go = (path) => { location.hash = path; };
export const copy = (text) => navigator.clipboard?.writeText(text);
