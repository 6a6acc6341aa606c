// The frame of the page: navigation, keys, what was just done, whether the daemon answers.

import { emit, follow, signIn, state, undo } from "./api.js";
import { go, useEffect, useKeys, useOn, useState } from "./hooks.js";
import { hold, release } from "./keys.js";
import { button, html, loading, Safe } from "./parts.js";
import { render } from "./vendor/htm-preact.js";

const VIEWS = [
  ["project", "Project", "what holds in a project"],
  ["search", "Search", "what is found, and why"],
  ["memory", "Memory", "read, correct, delete"],
  ["activity", "Activity", "what happened"],
  ["health", "Health", "the daemon, its tiers, jobs and topics"],
];
const FIRST = VIEWS[0][0];
const KEYS = [
  [`1 – ${VIEWS.length}`, "the views"],
  ["/", "search"],
  ["j  k", "next, previous"],
  ["Enter", "open"],
  ["x", "select"],
  ["e", "edit"],
  ["p  c", "pin, confirm"],
  ["#", "delete"],
  ["u", "undo"],
  ["Esc", "leave a field, close, clear"],
  ["t", "light or dark"],
  ["?", "these keys"],
];

// The address after `#`: `/VIEW?QUERY`, or `/m/ID` of one memory.
function route() {
  const [path, query] = location.hash.slice(2).split("?");
  const [name, id] = path.split("/");
  const isKnown = VIEWS.some(([known]) => known === name);
  const view = name === "m" ? "memory" : isKnown ? name : FIRST;
  return { view, id, query: new URLSearchParams(query) };
}

// The rows of a view are what has `data-row` and is in sight; the focus is where a person is.
function step(by) {
  const rows = [...document.querySelectorAll("main [data-row]")].filter((row) => row.checkVisibility());
  const next = rows.indexOf(document.activeElement) + by;
  rows[Math.max(0, Math.min(rows.length - 1, next))]?.focus();
}

// Each view is fetched once.
const fetched = {};
const Missing = () => html`<p class="empty">This view could not be loaded: does memctl web still run?</p>`;

async function fetchView(name) {
  try {
    fetched[name] = (await import(`./views/${name}.js`)).default;
  } catch {
    fetched[name] = Missing;
  }
}

// A search and a project are shown again as they were left.
const last = {};
const addressOf = (name) => last[name] || `/${name}`;

function open(name) {
  if (location.hash === `#${addressOf(name)}`) return;
  hold();
  go(addressOf(name));
}

let seeks = false; // who comes to the search by `/` writes
const findField = () => document.querySelector("main input[type=search]");

function seek() {
  const field = findField();
  if (field) return field.select();
  seeks = true;
  return open("search");
}

function mark() {
  document.activeElement.closest("li, article")?.querySelector("input[type=checkbox]")?.click();
}

// A view may undo what is selected there.
function undoHere() {
  const asked = { done: false };
  emit("undo-key", asked);
  if (!asked.done) undo();
}

function App() {
  const [signed, sign] = useState(state.token ? true : null);
  const [help, showHelp] = useState(false);
  const [where, move] = useState(route());
  const [, draw] = useState(0);
  const redraw = () => draw((turn) => turn + 1);
  const View = fetched[where.view];
  useOn("signed", (known) => {
    sign(known);
    if (known) follow();
  });
  useOn("online", redraw);
  useEffect(() => {
    if (state.token) follow();
    addEventListener("hashchange", () => {
      const next = route();
      if (["search", "project"].includes(next.view)) last[next.view] = location.hash.slice(1);
      move(next);
    });
  }, []);
  useEffect(() => {
    document.title = `${VIEWS.find(([name]) => name === where.view)[1]} · memoryd`;
    document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [where.view, signed]);
  useEffect(() => {
    if (!signed) return;
    if (!View) {
      fetchView(where.view).then(redraw);
      return;
    }
    release(() => {
      if (seeks) findField()?.select();
      seeks = false;
    });
  }, [where, signed, View]);
  // Those that most go to next are fetched while nobody waits for them.
  useEffect(() => {
    if (signed) setTimeout(() => ["search", "memory"].forEach((name) => fetched[name] || fetchView(name)), 1000);
  }, [signed]);
  useKeys(
    {
      ...Object.fromEntries(VIEWS.map(([name], index) => [index + 1, () => open(name)])),
      "/": seek,
      "?": () => showHelp(!help),
      t: turnTheme,
      j: () => step(1),
      k: () => step(-1),
      x: mark,
      u: undoHere,
    },
    0,
  );
  if (signed === null) return null;
  if (!signed) return SIGNED_OUT;
  return html`<${Navigation} view=${where.view} help=${() => showHelp(true)} />
    <main tabindex="-1">
      ${!state.online && html`<${Away} />`}
      ${View ? html`<${Safe} key=${where.view}><${View} where=${where} /><//>` : loading}
    </main>
    <${Toasts} />
    ${help && html`<${Help} close=${() => showHelp(false)} />`}`;
}

const SIGNED_OUT = html`<main class="out"><h1>memoryd</h1>
  <p>This tab is not signed in. Run <code>memctl web</code> in a terminal: it opens the page.</p></main>`;

function Away() {
  const notice = state.notice || "The daemon does not answer.";
  return html`<div class="away" role="status">${notice} What is shown may be old; it goes on by itself.</div>`;
}

function Navigation({ view, help }) {
  const entry = ([name, title, about], index) =>
    html`<a href=${`#${addressOf(name)}`} aria-current=${view === name ? "page" : undefined} title=${about}>
      <kbd aria-hidden="true">${index + 1}</kbd>${title}</a>`;
  const icon = (text, act, name, key) =>
    button(text, act, { class: "plain", title: `${name} (${key})`, "aria-label": name });
  return html`<nav aria-label="Views">
    <a class="name" href=${`#${addressOf(FIRST)}`}><img src="/static/icon.svg" alt="" width="20" height="20" />memoryd</a>
    ${VIEWS.map(entry)}
    <span class="grow"></span>
    ${icon("◐", turnTheme, "Light or dark", "t")}${icon("?", help, "Keys", "?")}
  </nav>`;
}

function Help({ close }) {
  const show = (dialog) => dialog?.open === false && dialog.showModal();
  return html`<dialog ref=${show} onClose=${close} aria-label="Keys"><h2>Keys</h2>
    <dl>${KEYS.map(([key, does]) => html`<dt><kbd>${key}</kbd></dt><dd>${does}</dd>`)}</dl>
    ${button("Close", close)}</dialog>`;
}

const GOOD_MS = 9000; // that a notice stays
const BAD_MS = 12000;

function Toasts() {
  const [toasts, show] = useState([]);
  const close = (toast) => show((before) => before.filter((other) => other !== toast));
  useOn("toast", (toast) => {
    show((before) => [...before.slice(-2), toast]);
    setTimeout(() => close(toast), toast.bad ? BAD_MS : GOOD_MS);
  });
  const undoToast = (toast) => {
    close(toast);
    toast.undo();
  };
  const entry = (toast) =>
    html`<div class=${`toast ${toast.bad ? "bad" : ""}`}><span>${toast.text}</span>
      ${toast.undo && button("Undo", () => undoToast(toast))}
      ${button("×", () => close(toast), { class: "plain", "aria-label": "Close" })}</div>`;
  return html`<div class="toasts" role="status" aria-live="polite">${toasts.map(entry)}</div>`;
}

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
}

function turnTheme() {
  setTheme(getComputedStyle(document.documentElement).colorScheme === "dark" ? "light" : "dark");
  localStorage.setItem("theme", document.documentElement.dataset.theme);
}

setTheme(localStorage.getItem("theme"));
hold();
await Promise.all([signIn(), fetchView(route().view)]);
render(html`<${App} />`, document.getElementById("page"));
