// The frame of the page: navigation, keys, what was just done, whether the daemon answers.

import { button, go, html, loading, Safe, useEffect, useKeys, useOn, useState } from "./ui.js";
import { render } from "./vendor/htm-preact.js";
import { emit, follow, signIn, state, undo } from "./api.js";
import { hold, release } from "./keys.js";

const VIEWS = [
  ["today", "Today", "what happened"],
  ["search", "Search", "what is found, and why"],
  ["memory", "Memory", "read, correct, delete"],
  ["tiers", "Tiers", "where memories are"],
  ["topics", "Topics", "what they are about"],
  ["jobs", "Jobs", "what runs by itself"],
  ["health", "Health", "how the daemon is"],
];
const KEYS = [
  ["1 – 7", "the views"], ["/", "search"], ["j  k", "next, previous"], ["Enter", "open"], ["x", "select"], ["e", "edit"], ["p", "pin"],
  ["#", "delete"], ["u", "undo"], ["Esc", "leave a field, close, clear"], ["t", "light or dark"], ["?", "these keys"],
];

function route() {
  const [path, query] = location.hash.slice(2).split("?"), [name, id] = path.split("/");
  const view = name === "m" ? "memory" : VIEWS.some(([known]) => known === name) ? name : "today";
  return { view, id, query: new URLSearchParams(query) };
}
// The rows of a view are what has `data-row` and is in sight; the focus is where a person is.
function step(by) {
  const rows = [...document.querySelectorAll("main [data-row]")].filter((row) => row.checkVisibility()), at = rows.indexOf(document.activeElement);
  rows[Math.max(0, Math.min(rows.length - 1, at + by))]?.focus();
}
// Each view is fetched once. Of a search what was found is shown again; who comes to it by `/` writes.
const NONE = () => html`<p class="empty">This view could not be loaded: does memctl web still run?</p>`;
const fetched = {}, last = { search: "/search" };
const fetchView = (name) => import(`./views/${name}.js`).then((module) => { fetched[name] = module.default; }, () => { fetched[name] = NONE; });
function open(name) {
  const path = last[name] || `/${name}`;
  if (location.hash === `#${path}`) return;
  hold();
  go(path);
}
let seeks = false;
const findField = () => document.querySelector("main input[type=search]");
function seek() {
  const field = findField();
  if (field) return field.select();
  seeks = true;
  return open("search");
}

function App() {
  const [signed, sign] = useState(null), [help, showHelp] = useState(false), [where, move] = useState(route()), [, draw] = useState(0), View = fetched[where.view];
  useOn("signed", (known) => { sign(known); if (known) follow(); });
  useOn("online", () => draw((turn) => turn + 1));
  useEffect(() => { signIn(); addEventListener("hashchange", () => { const next = route(); if (next.view === "search") last.search = location.hash.slice(1); move(next); }); }, []);
  useEffect(() => {
    document.title = `${VIEWS.find(([name]) => name === where.view)[1]} · memoryd`;
    document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [where.view, signed]);
  useEffect(() => {
    if (!signed) return;
    if (!View) fetchView(where.view).then(() => draw((turn) => turn + 1));
    else release(() => { if (seeks) findField()?.select(); seeks = false; });
  }, [where, signed, View]);
  // Those that most go to next are fetched while nobody waits for them.
  useEffect(() => { if (signed) setTimeout(() => ["search", "memory"].forEach((name) => fetched[name] || fetchView(name)), 1000); }, [signed]);
  useKeys({
    ...Object.fromEntries(VIEWS.map(([name], index) => [index + 1, () => open(name)])),
    "/": seek, "?": () => showHelp(!help), t: turnTheme, j: () => step(1), k: () => step(-1),
    x: () => document.activeElement.closest("li, article")?.querySelector("input[type=checkbox]")?.click(),
    u: () => { const asked = { done: false }; emit("undo-key", asked); if (!asked.done) undo(); }, // a view may undo what is selected
  }, 0);
  if (signed === null) return null;
  if (!signed) return html`<main class="out"><h1>memoryd</h1><p>This tab is not signed in. Run <code>memctl web</code> in a terminal: it opens the page.</p></main>`;
  const icon = (text, act, name, key) => button(text, act, { class: "plain", title: `${name} (${key})`, "aria-label": name });
  return html`
    <nav aria-label="Views"><a class="name" href="#/today"><img src="/static/icon.svg" alt="" width="20" height="20" />memoryd</a>
      ${VIEWS.map(([name, title, about], index) => html`<a href=${`#${last[name] || `/${name}`}`} aria-current=${where.view === name ? "page" : undefined} title=${about}><kbd aria-hidden="true">${index + 1}</kbd>${title}</a>`)}
      <span class="grow"></span>${icon("◐", turnTheme, "Light or dark", "t")}${icon("?", () => showHelp(true), "Keys", "?")}</nav>
    <main tabindex="-1">
      ${!state.online && html`<div class="away" role="status">${state.notice || "The daemon does not answer."} What is shown may be old; it goes on by itself.</div>`}
      ${View ? html`<${Safe} key=${where.view}><${View} where=${where} /><//>` : loading}
    </main><${Toasts} />
    ${help && html`<dialog ref=${(dialog) => dialog?.open === false && dialog.showModal()} onClose=${() => showHelp(false)} aria-label="Keys"><h2>Keys</h2>
      <dl>${KEYS.map(([key, does]) => html`<dt><kbd>${key}</kbd></dt><dd>${does}</dd>`)}</dl>${button("Close", () => showHelp(false))}</dialog>`}`;
}

function Toasts() {
  const [toasts, show] = useState([]), close = (toast) => show((before) => before.filter((other) => other !== toast));
  useOn("toast", (toast) => {
    show((before) => [...before.slice(-2), toast]);
    setTimeout(() => close(toast), toast.bad ? 12000 : 9000);
  });
  return html`<div class="toasts" role="status" aria-live="polite">${toasts.map((toast) => html`<div class=${`toast ${toast.bad ? "bad" : ""}`}><span>${toast.text}</span>
    ${toast.undo && button("Undo", () => { close(toast); toast.undo(); })}${button("×", () => close(toast), { class: "plain", "aria-label": "Close" })}</div>`)}</div>`;
}

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
}
function turnTheme() {
  setTheme(getComputedStyle(document.documentElement).colorScheme === "dark" ? "light" : "dark");
  localStorage.setItem("theme", document.documentElement.dataset.theme);
  dispatchEvent(new Event("theme"));
}
setTheme(localStorage.getItem("theme"));
hold();
render(html`<${App} />`, document.getElementById("page"));
