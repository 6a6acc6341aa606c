// What a search finds and how; a result beside the others; why a memory is missing; what an agent gets; what agents asked.

import { Found, Recent, Trace, WhyNot } from "../found.js";
import { go, Places, scope, show, useCall, useEffect, useKeys, useRef, useReturn, useState } from "../hooks.js";
import { One, remove } from "../one.js";
import { about, aboutMemory, badge, bar, button, choice, dim, empty, field, head, html, list } from "../parts.js";
import { loading, PRIMARY, problem, row, Safe, tabs, time } from "../parts.js";
import { count, fixed, memories, number, place, words } from "../text.js";

const TABS = [
  ["how", "How it was found"],
  ["context", "What an agent gets"],
  ["recent", "Recent searches"],
];
const LIMITS = ["5", "10", "20", "50"];
const HINT = html`<p>Searching here leaves no mark: no access is counted.</p>
  <p>Under <b>Recent searches</b> is what agents asked for and what they were given.</p>`;
const NONE = html`<p>Nothing was found.</p><p>Paste the id of a memory, or words of it, beside <b>Why not?</b></p>`;
const NOT_LIKELY = "There is no likely result.";

// The search of an address: `q` and `ns` for a new one, or `trace` for one that is kept.
function useSearch({ q = "", ns = "", trace = "", limit = "10" }) {
  const seen = scope(ns, ns === "/" ? "exact" : "visible");
  const asked = { query: q, limit: Number(limit), ...seen };
  const now = useCall("search", { ...asked, explain: true, touch: false }, { wanted: Boolean(q && !trace) });
  const kept = useCall("get_trace", { id: trace, reach: "all" }, { wanted: Boolean(trace) });
  if (!trace) {
    const found = q && now.value && { ...now.value, trace: now.value.explanation };
    return { asked, found, error: now.error, old: null };
  }
  const old = kept.value;
  const found = old && { trace: old, hits: old.candidates.filter((one) => !one.lost) };
  const as = old && { query: old.query, limit: Number(limit), namespace: old.namespace, reach: old.reach };
  return { asked: as || asked, found, error: kept.error, old };
}

export default function Search({ where }) {
  const given = Object.fromEntries(where.query);
  const { q = "", trace = "", ns = "", limit = "10", m, why } = given;
  const search = useSearch(given);
  const isAsked = Boolean(q || trace);
  const open = (change) => {
    const next = { ...given, trace: "", why: "", m: "", ...change };
    go(`/search?${new URLSearchParams(Object.entries(next).filter(([, value]) => value))}`);
  };
  // One memory is read beside the results; the focus comes back to where it was.
  const read = (id) => open({ trace, why, m: id });
  const leave = () => {
    if (m) return read("");
    return why ? open({ trace }) : false;
  };
  const follow = (event) => {
    const [, id] = event.target.closest("a:not([data-leave])")?.hash.match(/^#\/m\/(\w+)$/) || [];
    if (!id || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    read(id);
  };
  const drop = async () => {
    const id = document.activeElement.dataset.row || m;
    if (id && (await remove([id])) && m === id) read("");
  };
  useReturn(m);
  useKeys({ Escape: leave, "#": drop });
  const beside = () =>
    html`<${Safe} key=${m}><${Beside} id=${m} trace=${search.found?.trace.id} close=${() => read("")} /><//>`;
  return html`${head(
    "Search",
    html`<${Places} value=${ns} change=${(value) => open({ ns: value })} />`,
    choice("Results", limit, (value) => open({ limit: value }), LIMITS),
  )}
    <${Question} query=${q || search.old?.query || ""} isAsked=${isAsked} ask=${(text) => open({ q: text.trim(), tab: given.tab === "context" ? "context" : "" })} />
    <div class=${`split stack ${m ? "read" : ""}`} onClick=${follow}>
      <div class="list">
        ${search.old && html`<${Kept} trace=${search.old} again=${() => open({ q: search.old.query })} />`}
        <${Results} search=${search} isAsked=${isAsked} chosen=${m} />
      </div>
      <div class="side">${m ? beside() : html`<${Aside} given=${given} search=${search} isAsked=${isAsked} open=${open} />`}</div>
    </div>`;
}

function Question({ query, isAsked, ask }) {
  const [text, type] = useState(query);
  const box = useRef();
  useEffect(() => type(query), [query]);
  useEffect(() => {
    if (!isAsked) box.current.focus();
  }, []);
  const more = { type: "search", ref: box, placeholder: "What should an agent find?" };
  return html`<div class="form bar-form">${field("Search memories", text, type, ask, more)}
    ${button("Search", () => ask(text), PRIMARY)}</div>`;
}

const Kept = ({ trace, again }) =>
  html`<div class="hit">${about(
    badge(words(trace.kind)),
    "as it was on",
    time(trace.at),
    place(trace.namespace),
    button("Search again now", again),
  )}</div>`;

// What is hardly likely is behind a button, but of a search that is kept.
function Results({ search: { found, error, old, asked }, isAsked, chosen }) {
  const [whole, showWhole] = useState();
  if (error) return html`<div class="hit">${problem(error)}</div>`;
  if (!found) return isAsked ? loading : empty(HINT);
  const isShown = (one) => old || whole === asked.query || one.confidence_word !== "unlikely";
  const likely = found.hits.filter(isShown);
  const hidden = found.hits.length - likely.length;
  const hit = (one, index) =>
    html`<article class=${`hit ${one.id === chosen ? "open" : ""}`}><span class="score">${fixed(one.score, 2)}</span>
      ${row(one.id, one.content ?? one.preview, { class: "clamp text" })}
      ${about(`${index + 1}.`, one.confidence_word, aboutMemory(one))}</article>`;
  return html`${likely.length ? list(likely, hit) : empty(hidden ? NOT_LIKELY : NONE)}
    ${
      hidden > 0 &&
      html`<div class="hit">
      ${button(`Show ${count(hidden, "less likely one")}`, () => showWhole(asked.query))}</div>`
    }`;
}

// First why it was found, then what it says and what was said around it.
const Beside = ({ id, trace, close }) =>
  html`${about(button("Close (Esc)", close), html`<a href=${`#/m/${id}`} data-leave="true">Open by itself</a>`)}
    ${trace && html`<${Found} trace=${trace} id=${id} />`}<${One} id=${id} close=${close} />`;

function Aside({ given, search, isAsked, open }) {
  const tab = given.tab || (isAsked ? "how" : "recent");
  const bodies = {
    how: () =>
      isAsked
        ? html`<${How} given=${given} search=${search} open=${open} />`
        : dim("Search for something first, or open one of the recent searches."),
    context: () => html`<${Context} asked=${search.asked} />`,
    recent: () => html`<${Recent} />`,
  };
  return html`${tabs("About this search", TABS, tab, (key) => open({ trace: given.trace, tab: key }))}${bodies[tab]()}`;
}

function How({ given: { trace, why }, search: { found, asked }, open }) {
  const [missing, write] = useState("");
  const ask = (of) => open({ trace, why: of.trim() });
  const more = { type: "search", placeholder: "id or words of a missing memory" };
  return (
    found &&
    html`<div class="form">${field("The memory that is missing", missing, write, ask, more)}
        ${button("Why not?", () => ask(missing))}</div>
      ${why && html`<${WhyNot} key=${why} of=${why} search=${asked} choose=${ask} />`}
      <${Trace} key=${found.trace.id} id=${found.trace.id} />`
  );
}

const [LEAST, MOST] = [16, 20_000]; // tokens

function Context({ asked: { query, namespace, reach } }) {
  const [budget, set] = useState(800);
  const fields = { task: query, max_tokens: budget, touch: false, namespace, reach };
  const answer = useCall("get_context", fields, { wanted: Boolean(query) });
  if (!query) return dim("Write a task into the search field: here is what an agent would be given for it.");
  const change = (event) => set(Math.max(LEAST, Math.min(MOST, Number(event.target.value) || 800)));
  const text = (made) =>
    html`<pre class="context text" tabindex="0" role="region" aria-label="The context">${made.text}</pre>`;
  return html`<div class="form"><label class="choice"><span>Budget in tokens</span>
      <input type="number" min=${LEAST} max=${MOST} step="100" value=${budget} onChange=${change} /></label></div>
    ${show(
      answer,
      (made) => html`${about(
        `${number(made.tokens)} of ${number(budget)} tokens`,
        memories(made.ids.length),
        made.omitted > 0 && `${number(made.omitted)} relevant did not fit`,
        `counted by ${made.tokenizer}`,
      )}${bar(made.tokens / budget)}
      ${made.text ? text(made) : dim("Nothing: no memory is relevant enough for this task.")}`,
    )}`;
}
