// The frame of the page: navigation, keys, what was just done, whether the daemon answers.

import { go, html, Safe, useEffect, useKeys, useOn, useState } from "./ui.js";
import { render } from "./vendor/htm-preact.js";
import { follow, signIn, state, undo } from "./api.js";

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
  ["#", "delete"], ["u", "undo"], ["Esc", "close, clear"], ["t", "light or dark"], ["?", "these keys"],
];
const loaded = new Map();
const load = (name) => { if (!loaded.has(name)) loaded.set(name, import(`./views/${name}.js`)); return loaded.get(name); };

function route() {
  const [path, query] = location.hash.slice(2).split("?");
  const [name, ...rest] = path.split("/").map(decodeURIComponent);
  const view = name === "m" ? "memory" : VIEWS.some(([known]) => known === name) ? name : "today";
  return { view, rest, query: new URLSearchParams(query), key: name === "m" ? "memory" : view };
}

function App() {
  const [signed, sign] = useState(null), [help, showHelp] = useState(false);
  const [where, move] = useState(route()), [View, show] = useState(null), [, draw] = useState(0);
  useEffect(() => { signIn().then((known) => { sign(known); if (known) follow(); }); }, []);
  useEffect(() => { const changed = () => move(route()); addEventListener("hashchange", changed); return () => removeEventListener("hashchange", changed); }, []);
  useEffect(() => { document.title = `${VIEWS.find(([name]) => name === where.view)[1]} · memoryd`; load(where.view).then((found) => show(() => found.default)); }, [where.view]);
  useEffect(() => document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }), [where.view, signed]);
  useOn("signed-out", () => sign(false));
  useOn("signed-in", () => { sign(true); follow(); });
  useOn("online", () => draw((turn) => turn + 1));
  useKeys({
    ...Object.fromEntries(VIEWS.map(([name], index) => [String(index + 1), () => go(`/${name}`)])),
    "/": () => { const field = document.querySelector("main input[type=search]"); if (field) { field.focus(); field.select(); } else go("/search"); },
    "?": () => showHelp((shown) => !shown),
    t: turnTheme,
    u: () => document.dispatchEvent(new CustomEvent("undo-key", { cancelable: true })) && undo(),
    Escape: () => showHelp(false),
  });
  if (signed === null) return null;
  if (!signed) return html`<main class="out"><h1>memoryd</h1><p>This tab is not signed in. Run <code>memctl web</code> in a terminal: it opens the page.</p></main>`;
  return html`
    <nav aria-label="Views"><a class="name" href="#/today"><img src="/static/icon.svg" alt="" width="20" height="20" />memoryd</a>
      ${VIEWS.map(([name, title, about], index) => html`<a key=${name} href=${`#/${name}`} aria-current=${where.view === name ? "page" : undefined} title=${about}><kbd aria-hidden="true">${index + 1}</kbd>${title}</a>`)}
      <span class="grow"></span>
      <button class="plain" onClick=${turnTheme} title="Light or dark (t)" aria-label="Light or dark">◐</button>
      <button class="plain" onClick=${() => showHelp(true)} title="Keys (?)" aria-label="Keys">?</button></nav>
    <main tabindex="-1">
      ${!state.online && html`<div class="away" role="status">${state.notice || "The daemon does not answer."} What is shown may be old; it goes on by itself.</div>`}
      ${View && html`<${Safe} key=${where.key}><${View} where=${where} /><//>`}
    </main>
    <${Toasts} />
    ${help && html`<${Help} close=${() => showHelp(false)} />`}`;
}

function Help({ close }) {
  useEffect(() => { document.querySelector(".help button").focus(); }, []);
  return html`<div class="cover" onClick=${close}><div class="help" role="dialog" aria-modal="true" aria-label="Keys" onClick=${(event) => event.stopPropagation()}>
    <h2>Keys</h2><dl>${KEYS.map(([key, does]) => html`<dt><kbd>${key}</kbd></dt><dd>${does}</dd>`)}</dl><button onClick=${close}>Close</button></div></div>`;
}

function Toasts() {
  const [toasts, show] = useState([]);
  useOn("toast", (toast) => {
    const one = { ...toast, id: Math.random() };
    show((before) => [...before.slice(-2), one]);
    setTimeout(() => show((before) => before.filter((other) => other !== one)), toast.bad ? 12000 : 9000);
  });
  const close = (toast) => show((before) => before.filter((other) => other !== toast));
  return html`<div class="toasts" role="status" aria-live="polite">${toasts.map((toast) => html`<div key=${toast.id} class=${`toast ${toast.bad ? "bad" : ""}`}><span>${toast.text}</span>
    ${toast.undo && html`<button onClick=${() => { close(toast); toast.undo(); }}>Undo</button>`}<button class="plain" aria-label="Close" onClick=${() => close(toast)}>×</button></div>`)}</div>`;
}

function turnTheme() {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", document.documentElement.dataset.theme);
  dispatchEvent(new Event("theme"));
}
const theme = localStorage.getItem("theme");
if (theme) document.documentElement.dataset.theme = theme;
render(html`<${App} />`, document.getElementById("page"));
