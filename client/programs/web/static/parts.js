// Parts of a page: functions that return elements. A text is never markup, so a memory is inert in each of them.

import { html, useErrorBoundary } from "./vendor/htm-preact.js";
import { line, place, short, startOfDay } from "./text.js";

export { html };

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const date = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const weekday = new Intl.DateTimeFormat("en-GB", { weekday: "long" });

function dayName(at) {
  const day = startOfDay(at);
  const today = startOfDay(Date.now());
  if (day === today) return "";
  return day < today && day > startOfDay(Date.now(), -7) ? `${weekday.format(at)}, ` : `${date.format(at)}, `;
}

// A time in seconds; with `bare` without its day.
export function time(at, bare) {
  if (!at) return "never";
  const when = new Date(at * 1000);
  const text = `${bare ? "" : dayName(when)}${clock.format(when)}`;
  return html`<time datetime=${when.toISOString()} title=${when.toISOString()}>${text}</time>`;
}

// One record that cannot be shown does not take the others with it.
export function Safe({ children }) {
  const [error] = useErrorBoundary();
  return error ? problem({ message: `This cannot be shown: ${error.message}` }) : children;
}

export const badge = (text, kind = "") => html`<span class=${`badge ${kind}`}>${text}</span>`;
export const dim = (...text) => html`<p class="dim">${text}</p>`;
export const empty = (text) => html`<div class="empty">${text}</div>`;
export const problem = (error) => html`<div class="problem" role="alert">${error.message}</div>`;
export const loading = html`<div class="loading">Loading…</div>`;

export const head = (title, ...tools) =>
  html`<header class="head"><h1>${title}</h1><div class="tools">${tools}</div></header>`;
export const section = (title, ...body) => html`<section><h2 class="small">${title}</h2>${body}</section>`;
export const panel = (title, ...body) => html`<section class="panel"><h2>${title}</h2>${body}</section>`;
export const fold = (title, ...body) => html`<details><summary>${title}</summary>${body}</details>`;

export const button = (text, act, more) => html`<button onClick=${act} ...${more}>${text}</button>`;
export const DANGER = { class: "danger" };
export const PRIMARY = { class: "main" };

export const link = (id, text, more) => html`<a href=${`#/m/${id}`} ...${more}>${line(text) || short(id)}</a>`;
// A link that j and k stop at.
export const row = (id, text, more) => link(id, text, { "data-row": id, ...more });

export const field = (label, value, type, enter, more) =>
  html`<input value=${value} placeholder=${label} aria-label=${label}
    onInput=${(event) => type(event.target.value)}
    onKeyDown=${(event) => event.key === "Enter" && enter(event.target.value)} ...${more} />`;

// A choice of options, each a text or a pair of a key and a text; `all` is that of no choice.
export function choice(label, value, change, options, all) {
  const pairs = [...(all ? [["", all]] : []), ...options].map((option) =>
    Array.isArray(option) ? option : [option, option],
  );
  const entries = pairs.map(([key, text]) => html`<option value=${key} selected=${key === value}>${text}</option>`);
  return html`<label class="choice"><span>${label}</span>
    <select value=${value} onChange=${(event) => change(event.target.value)}>${entries}</select></label>`;
}

export function tabs(label, all, now, open) {
  const entry = ([key, title]) => button(title, () => open(key), { role: "tab", "aria-selected": now === key });
  return html`<div class="tabs" role="tablist" aria-label=${label}>${all.map(entry)}</div>`;
}

// A line of small facts; what is empty is left out.
export function about(...facts) {
  const shown = facts.filter((fact) => fact || fact === 0);
  return html`<span class="about">${shown.map((fact) => (typeof fact === "object" ? fact : html`<span>${fact}</span>`))}</span>`;
}

export const origin = (memory) => `${memory.origin}${memory.confirmed_at ? ", confirmed" : ""}`;

export const aboutMemory = (memory) =>
  about(
    memory.pinned && badge("pinned", "pin"),
    memory.type && badge(memory.type),
    memory.origin && origin(memory),
    memory.namespace !== undefined && place(memory.namespace),
    memory.tier,
    memory.created_at && time(memory.created_at),
    memory.superseded_by && badge("superseded"),
  );

export const list = (items, draw) =>
  html`<ul>${items.map((item, index) => html`<li key=${item.id ?? index}><${Safe}>${draw(item, index)}<//></li>`)}</ul>`;

// Names with their values; what is empty is left out.
export function facts(pairs) {
  const shown = pairs.filter(([, value]) => value);
  return html`<dl class="facts">${shown.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}

// A table; a head that begins with `>` is of numbers.
export function table(label, heads, rows) {
  const look = heads.map((text) => (text.startsWith(">") ? "right" : ""));
  const cells = (texts) => texts.map((text, index) => html`<td class=${look[index]}>${text}</td>`);
  return html`<div class="wide" tabindex="0" role="region" aria-label=${label}><table>
    <thead><tr>${heads.map((text, index) => html`<th class=${look[index]}>${text.replace(">", "")}</th>`)}</tr></thead>
    <tbody>${rows.map((texts) => html`<tr>${cells(texts)}</tr>`)}</tbody></table></div>`;
}

// A bar of a share from 0 to 1.
export function bar(share, from = 0) {
  const style = { left: `${from * 100}%`, width: `${Math.max(share * 100, 0.6)}%` };
  return html`<span class="bar" aria-hidden="true"><i style=${style}></i></span>`;
}
