// What a search finds and how; a result beside the others; why a memory is missing; what an agent gets; what agents asked.

import { about, aboutMemory, badge, bar, button, choice, count, dim, empty, field, fixed, go, head, html, link, list, loading, main, memories, number, place, Places, problem, Report, Safe, scope, show, tabs, time, useCall, useEffect, useKeys, useOn, useRef, useReturn, useState, words } from "../ui.js";
import { One, remove } from "./memory.js";

const TABS = [["how", "How it was found"], ["context", "What an agent gets"], ["recent", "Recent searches"]];
const HINT = html`<p>Searching here leaves no mark: no access is counted.</p><p>Under <b>Recent searches</b> is what agents asked for and what they were given.</p>`;
const NONE = html`<p>Nothing was found.</p><p>Paste the id of a memory, or words of it, beside <b>Why not?</b></p>`;
const search = { type: "search" };

export default function Search({ where }) {
  const given = Object.fromEntries(where.query), { q: query = "", ns = "", trace: id = "", limit = "10" } = given, [text, type] = useState(query), box = useRef();
  const seen = scope(ns, ns === "/" ? "exact" : "visible"), wanted = { query, limit: +limit, touch: false, ...seen };
  const run = useCall("explain", wanted, { wanted: Boolean(query && !id) }), kept = useCall("get_trace", { id, reach: "all" }, { wanted: Boolean(id) });
  const old = id && kept.value, found = old ? { trace: old, hits: old.candidates.filter((one) => !one.lost) } : query && !id && run.value, error = (id ? kept : run).error;
  const at = old ? { namespace: old.namespace, reach: old.reach } : seen, tab = given.tab || (query || id ? "how" : "recent");
  const open = (change) => go(`/search?${new URLSearchParams(Object.entries({ ...given, trace: "", why: "", m: "", ...change }).filter(([, value]) => value))}`), ask = (asked) => open({ q: asked.trim(), tab: tab === "context" ? tab : "" });
  // One memory is read beside the results; the focus comes back to where it was.
  const read = (m) => open({ trace: id, why: given.why, m }), leave = () => read("");
  const follow = (event) => {
    const [, one] = event.target.closest("a:not([data-leave])")?.hash.match(/^#\/m\/(\w+)$/) || [];
    if (!one || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    read(one);
  };
  const [whole, showWhole] = useState(), likely = found && (old || whole === query ? found.hits : found.hits.filter((one) => one.confidence_word !== "unlikely")), less = found ? found.hits.length - likely.length : 0;
  const [missing, write] = useState(""), why = (of) => open({ trace: id, why: of.trim() });
  useOn("why", (one) => open({ trace: id, why: one }));
  useEffect(() => { if (!query && !id) box.current.focus(); }, []);
  useEffect(() => { type(query || old?.query || ""); }, [query, old?.query]);
  useReturn(given.m);
  const drop = async (one) => one && (await remove([one])) && given.m === one && leave();
  useKeys({ Escape: () => given.m ? leave() : given.why ? open({ trace: id }) : false, "#": () => drop(document.activeElement.dataset.row || given.m) });
  const hit = (one, index) => html`<article class=${`hit ${one.id === given.m ? "open" : ""}`}><span class="score">${fixed(one.score, 2)}</span>${link(one.id, one.content ?? one.preview, { class: "clamp text", "data-row": one.id })}${about(`${index + 1}.`, one.confidence_word, aboutMemory(one))}</article>`;

  return html`${head("Search", html`<${Places} value=${ns} change=${(value) => open({ ns: value })} />`, choice("Results", limit, (value) => open({ limit: value }), ["5", "10", "20", "50"]))}
    <div class="form bar-form">${field("Search memories", text, type, ask, { ...search, ref: box, placeholder: "What should an agent find?" })}${button("Search", () => ask(text), main)}</div>
    <div class=${`split stack ${given.m ? "read" : ""}`} onClick=${follow}><div class="list">
      ${old && html`<div class="hit">${about(badge(words(old.kind)), "as it was on", time(old.at), place(old.namespace), button("Search again now", () => open({ q: old.query })))}</div>`}
      ${error ? html`<div class="hit">${problem(error)}</div>` : found ? html`${likely.length ? list(likely, hit) : empty(less ? "Nothing was found that is likely to be meant." : NONE)}${less > 0 && html`<div class="hit">${button(`Show ${count(less, "less likely one")}`, () => showWhole(query))}</div>`}` : query || id ? loading : empty(HINT)}
    </div><div class="side">${given.m ? html`<${Safe} key=${given.m}><${Beside} id=${given.m} trace=${found?.trace.id} close=${leave} /><//>` : html`${tabs("About this search", TABS, tab, (key) => open({ trace: id, tab: key }))}
      ${tab === "how" && (found ? html`<div class="form">${field("The memory that is missing", missing, write, why, { ...search, placeholder: "a memory that is missing: its id, or words of it" })}${button("Why not?", () => why(missing))}</div>
        ${given.why && html`<${Report} name="why" fields=${{ of: given.why, trace: id, query, limit, ...seen }} />`}<${Report} name="trace" fields=${{ id: found.trace.id }} />` : !query && !id && dim("Search for something first, or open one of the recent searches."))}
      ${tab === "context" && html`<${Context} task=${query || old?.query} at=${at} />`}
      ${tab === "recent" && html`<${Report} name="recent" />`}`}</div></div>`;
}

// One memory in full: first why it was found, then what it says and what was said around it.
const Beside = ({ id, trace, close }) => html`${about(button("Close (Esc)", close), html`<a href=${`#/m/${id}`} data-leave="true">Open by itself</a>`)}
  ${trace && html`<${Report} name="found" fields=${{ trace, id }} />`}<${One} id=${id} close=${close} />`;

function Context({ task, at }) {
  const [budget, set] = useState(800), answer = useCall("get_context", { task, max_tokens: budget, touch: false, ...at }, { wanted: Boolean(task) });
  if (!task) return dim("Write a task into the search field: here is what an agent would be given for it.");
  return html`<div class="form"><label class="choice"><span>Budget in tokens</span><input type="number" min="16" max="20000" step="100" value=${budget} onChange=${(event) => set(Math.max(16, Math.min(20000, +event.target.value || 800)))} /></label></div>
    ${show(answer, (made) => html`${about(`${number(made.tokens)} of ${number(budget)} tokens`, memories(made.ids.length), made.omitted > 0 && `${number(made.omitted)} relevant did not fit`, `counted by ${made.tokenizer}`)}${bar(made.tokens / budget)}
      ${made.text ? html`<pre class="context text" tabindex="0" role="region" aria-label="The context">${made.text}</pre>` : dim("Nothing: no memory is relevant enough for this task.")}`)}`;
}
