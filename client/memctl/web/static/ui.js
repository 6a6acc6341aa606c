// What the views share: times, numbers, badges, lists that stay smooth, texts as texts.

import { html, useEffect, useErrorBoundary, useLayoutEffect, useRef, useState } from "./vendor/htm-preact.js";
import { call, on, state } from "./api.js";

export { html, useEffect, useLayoutEffect, useRef, useState };

export const number = (value) => (value ?? 0).toLocaleString("en");
export const count = (many, one, more = `${one}s`) => `${number(many)} ${many === 1 ? one : more}`;
export const place = (namespace) => namespace || "(root)";
export const short = (id) => (id || "").slice(0, 8);
export const fixed = (value, digits = 3) => (value === null || value === undefined ? "–" : value.toFixed(digits));
export const bytes = (value) => (value >= 1e9 ? `${(value / 1e9).toFixed(1)} GB` : value >= 1e6 ? `${(value / 1e6).toFixed(1)} MB` : `${number(Math.round(value / 1e3))} kB`);
export const ms = (value) => (value >= 1000 ? `${(value / 1000).toFixed(1)} s` : value >= 10 ? `${Math.round(value)} ms` : `${value.toFixed(1)} ms`);
export const line = (text) => String(text ?? "").replace(/\s+/g, " ").trim();

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
export const startOfDay = (at, days = 0) => { const date = new Date(at); date.setHours(0, 0, 0, 0); date.setDate(date.getDate() + days); return date.getTime(); };
export function when(at) {
  if (!at) return "never";
  const time = at * 1000;
  if (time >= startOfDay(Date.now()) && time < startOfDay(Date.now(), 1)) return clock.format(time);
  return `${day.format(time)}, ${clock.format(time)}`;
}
export function span(seconds) {
  const value = Math.abs(seconds);
  const [size, unit] = value < 90 ? [1, "s"] : value < 5400 ? [60, "min"] : value < 172800 ? [3600, "h"] : [86400, "days"];
  return `${Math.round(value / size)} ${unit}`;
}
const iso = (at) => (at ? new Date(at * 1000).toISOString() : undefined);
export const time = (at) => html`<time datetime=${iso(at)} title=${iso(at)}>${when(at)}</time>`;
export const clockTime = (at) => html`<time datetime=${iso(at)} title=${iso(at)}>${clock.format(at * 1000)}</time>`;
export const badge = (text, kind = "") => html`<span class=${`badge ${kind}`}>${text}</span>`;
export const dim = (text) => html`<p class="dim">${text}</p>`;
export const Empty = ({ children }) => html`<div class="empty">${children}</div>`;
export const problem = (error) => html`<div class="problem" role="alert">${error.message}</div>`;
export const Head = ({ title, children }) => html`<header class="head"><h1>${title}</h1><div class="tools">${children}</div></header>`;
// A line of small facts; what is empty is left out.
export const about = (...parts) => html`<span class="about">${parts.filter((part) => part || part === 0).map((part) => (typeof part === "object" ? part : html`<span>${part}</span>`))}</span>`;
export const loading = html`<div class="loading">Loading…</div>`;
// An answer as soon as it is there, or why it is not.
export const show = (answer, draw) => (answer.error ? problem(answer.error) : answer.value ? draw(answer.value) : loading);
// A table; a head that begins with `>` is of numbers. A cell may be `[class, content]`.
export const table = (label, heads, rows) => html`<div class="wide" tabindex="0" role="region" aria-label=${label}><table><thead><tr>${heads.map((head) => html`<th class=${head[0] === ">" ? "right" : ""}>${head.replace(">", "")}</th>`)}</tr></thead>
  <tbody>${rows.map((cells) => html`<tr>${cells.map((cell, index) => html`<td class=${`${heads[index][0] === ">" ? "right" : ""} ${Array.isArray(cell) ? cell[0] : ""}`}>${Array.isArray(cell) ? cell[1] : cell}</td>`)}</tr>`)}</tbody></table></div>`;
export const tabs = (label, all, now, open) => html`<div class="tabs" role="tablist" aria-label=${label}>${all.map(([key, title]) => html`<button key=${key} role="tab" aria-selected=${now === key} onClick=${() => open(key)}>${title}</button>`)}</div>`;
export const facts = (pairs) => html`<dl class="facts">${pairs.filter((pair) => pair && pair[1] !== undefined && pair[1] !== "").map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
export const panel = (title, body) => html`<section class="panel"><h2>${title}</h2>${body}</section>`;
export const part = (title, body) => html`<section><h2 class="small">${title}</h2>${body}</section>`;
export const list = (items, draw) => html`<ul>${items.map((item, index) => html`<li key=${item.id ?? index}>${draw(item, index)}</li>`)}</ul>`;

// One record that cannot be shown does not take the others with it.
export function Safe({ children }) {
  const [error] = useErrorBoundary();
  return error ? problem({ message: `This cannot be shown: ${error.message}` }) : children;
}

// The answer to a call, again when its fields change, when the daemon is back, and on `reload`.
export function useCall(method, fields, wanted = true) {
  return useAnswer(() => call(method, fields), [method, JSON.stringify(fields)], wanted);
}
export function useAnswer(ask, depends, wanted = true) {
  const [shown, show] = useState({ value: null, error: null, loading: wanted });
  const [turn, again] = useState(0);
  const epoch = useEpoch();
  useEffect(() => {
    if (!wanted) return undefined;
    let current = true;
    show((before) => ({ ...before, loading: true }));
    ask().then((value) => current && show({ value, error: null, loading: false }), (error) => current && show((before) => ({ value: error.code === "unavailable" ? before.value : null, error, loading: false })));
    return () => { current = false; };
  }, [...depends, wanted, turn, epoch]);
  return { ...shown, reload: () => again((value) => value + 1), set: (value) => show({ value, error: null, loading: false }) };
}
export function useEpoch() {
  const [epoch, set] = useState(state.epoch);
  useEffect(() => on("online", () => set(state.epoch)), []);
  return epoch;
}
export const useOn = (name, act) => { const latest = useRef(act); latest.current = act; useEffect(() => on(name, (value) => latest.current(value)), [name]); };

// Keys of a view: `useKeys({ j: next })`; nothing while a person types.
export function useKeys(keys) {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    const press = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const act = latest.current[event.key];
      if (act) { event.preventDefault(); act(event); }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}
const isTyping = (target) => target instanceof HTMLElement && (target.matches("textarea, select") || (target.matches("input") && target.type !== "checkbox"));

export function Choice({ label, value, options, change, all }) {
  return html`<label class="choice"><span>${label}</span><select value=${value} onChange=${(event) => change(event.target.value)}>
    ${all && html`<option value="">${all}</option>`}
    ${options.map((option) => { const [key, text] = Array.isArray(option) ? option : [option, option]; return html`<option value=${key} selected=${key === value}>${text}</option>`; })}
  </select></label>`;
}
// The namespaces that hold something, as a choice; the root is written `/`.
export function Places({ value, change }) {
  const names = useNames();
  return html`<${Choice} label="Namespace" value=${value} change=${change} all="all" options=${names.map((name) => [name || "/", place(name)])} />`;
}
export const useNames = () => Object.keys(useStats()?.by_namespace || {});
export const useStats = () => useCall("stats", { reach: "all" }).value;
export const scope = (chosen) => (chosen ? { namespace: chosen === "/" ? "" : chosen, reach: "exact" } : { reach: "all" });

// A bar of how much of the largest.
export const bar = (share, from = 0) => html`<span class="bar" aria-hidden="true"><i style=${{ left: `${from * 100}%`, width: `${Math.max(share * 100, 0.6)}%` }}></i></span>`;

// The words that differ between two texts.
export function Diff({ before, after }) {
  return html`<p class="text diff">${words(String(before ?? ""), String(after ?? "")).map(([kind, text]) => (kind === "=" ? text : kind === "+" ? html`<ins>${text}</ins>` : html`<del>${text}</del>`))}</p>`;
}
function words(before, after) {
  const a = before.split(/(\s+)/), b = after.split(/(\s+)/);
  if (a.length * b.length > 4e6) return [["-", before], ["+", after]];
  const length = a.map(() => new Uint32Array(b.length + 1));
  length.push(new Uint32Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) length[i][j] = a[i] === b[j] ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
  const found = [];
  const put = (kind, text) => { const last = found.at(-1); if (last && last[0] === kind) last[1] += text; else found.push([kind, text]); };
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { put("=", a[i++]); j++; }
    else if (i < a.length && (j === b.length || length[i + 1][j] >= length[i][j + 1])) put("-", a[i++]);
    else put("+", b[j++]);
  }
  return found;
}

// A list of any length: only the rows in sight are in the page; `row(index)` returns one, of equal heights.
export function Rows({ total, height, row, label, at }) {
  const box = useRef(null);
  const [seen, look] = useState([0, 30]);
  const measure = () => {
    const node = box.current;
    if (!node) return;
    const first = Math.max(0, Math.floor(node.scrollTop / height) - 8);
    const last = Math.ceil((node.scrollTop + node.clientHeight) / height) + 8;
    look((before) => (before[0] === first && before[1] === last ? before : [first, last]));
  };
  useLayoutEffect(() => { const watch = new ResizeObserver(measure); watch.observe(box.current); return () => watch.disconnect(); }, []);
  useLayoutEffect(() => {
    const node = box.current;
    if (at === null || at === undefined || at < 0) return;
    if (at * height < node.scrollTop) node.scrollTop = at * height;
    else if ((at + 1) * height > node.scrollTop + node.clientHeight) node.scrollTop = (at + 1) * height - node.clientHeight;
    measure();
  }, [at]);
  const shown = [];
  for (let index = seen[0]; index < Math.min(total, seen[1]); index++) shown.push(html`<li key=${index} aria-setsize=${total} aria-posinset=${index + 1} style=${{ top: `${index * height}px`, height: `${height}px` }}><${Safe}>${row(index)}<//></li>`);
  return html`<div class="rows" ref=${box} onScroll=${measure} tabindex="-1"><ul aria-label=${label} style=${{ height: `${total * height}px` }}>${shown}</ul></div>`;
}

// Pages of `list` as they come into sight.
const PAGE = 100;
export function usePages(fields) {
  const key = JSON.stringify(fields), epoch = useEpoch();
  const kept = useRef({ key: "", pages: new Map() });
  const [shown, show] = useState({ total: null, error: null, turn: 0 });
  if (kept.current.key !== key + epoch) kept.current = { key: key + epoch, pages: new Map() };
  const load = (page) => {
    const { pages } = kept.current, mine = kept.current;
    if (pages.has(page)) return;
    pages.set(page, null);
    call("list", { ...fields, limit: PAGE, offset: page * PAGE }).then(
      (found) => { if (kept.current === mine) { pages.set(page, found.memories); show((before) => ({ total: found.total, error: null, turn: before.turn + 1 })); } },
      (error) => { if (kept.current === mine) { pages.delete(page); show((before) => ({ ...before, error })); } });
  };
  useEffect(() => load(0), [key, epoch, shown.again]);
  return {
    total: shown.total, error: shown.error,
    at: (index) => { const page = Math.floor(index / PAGE); if (!kept.current.pages.has(page)) queueMicrotask(() => load(page)); return kept.current.pages.get(page)?.[index % PAGE]; },
    reload: () => { kept.current = { ...kept.current, pages: new Map() }; show((before) => ({ ...before, again: (before.again || 0) + 1 })); },
  };
}
export const aboutMemory = (memory) => about(memory.pinned && badge("pinned", "pin"), badge(memory.type), place(memory.namespace), memory.tier, time(memory.created_at), memory.superseded_by && badge("superseded"));

export const go = (path) => { location.hash = path; };
export const copy = (text) => navigator.clipboard?.writeText(text);
