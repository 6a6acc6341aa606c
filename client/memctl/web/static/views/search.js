// What a search finds and how; why a memory is missing; what an agent gets; what agents asked for lately.

import { call } from "../api.js";
import { about, badge, bar, Choice, count, dim, Empty, facts, fixed, go, Head, html, line, list, loading, ms, number, part, place, Places, problem, Safe, scope, short, show, table, tabs, time, useCall, useEffect, useKeys, useRef, useState } from "../ui.js";

const TABS = [["how", "How it was found"], ["context", "What an agent gets"], ["recent", "Recent searches"]];
const HINT = html`<p>Searching here leaves no mark: no access is counted.</p><p>Under <b>Recent searches</b> is what agents asked for and what they were given.</p>`;
const NONE = html`<p>Nothing was found.</p><p>Paste the id of a memory, or words of it, beside <b>Why not?</b></p>`;

export default function Search({ where }) {
  const given = Object.fromEntries(where.query), { q: query = "", ns: namespace = "", trace = "" } = given, limit = given.limit || "10";
  const [text, type] = useState(query), field = useRef(null);
  const seen = namespace && namespace !== "/" ? { namespace, reach: "visible" } : scope(namespace), asked = { query, limit: Number(limit), touch: false, ...seen };
  const run = useCall("explain", asked, Boolean(query) && !trace), kept = useCall("get_trace", { id: trace, reach: "all" }, Boolean(trace));
  const old = trace && kept.value, found = trace ? old && { trace: old, hits: old.candidates.filter((one) => !one.lost) } : query && run.value, error = trace ? kept.error : query && run.error;
  const at = old ? { namespace: old.namespace, reach: old.reach } : seen;
  const open = (change) => go(`/search?${new URLSearchParams(Object.entries({ ...given, ...change }).filter(([, value]) => value))}`);
  const tab = given.tab || (query || trace ? "how" : "recent"), ask = () => open({ q: text.trim(), trace: "", tab: tab === "context" ? tab : "" });
  useEffect(() => { if (!query && !trace) field.current?.focus(); }, []);
  useEffect(() => { type(query || old?.query || ""); }, [query, old]);
  const step = (by) => { const all = [...document.querySelectorAll(".hit a")]; all[Math.max(0, Math.min(all.length - 1, all.indexOf(document.activeElement) + by))]?.focus(); };
  useKeys({ j: () => step(1), k: () => step(-1), Escape: () => go("/search") });
  const hit = (one, index) => html`<${Safe}><article class="hit"><span class="score">${fixed(one.score, 2)}</span><a href=${`#/m/${one.id}`}><span class="clamp text">${line(one.content ?? one.preview)}</span></a>
    ${about(`${index + 1}.`, one.type && badge(one.type), one.namespace !== undefined && place(one.namespace), one.tier, one.created_at && time(one.created_at))}</article><//>`;

  return html`<${Head} title="Search"><${Places} value=${namespace} change=${(ns) => open({ ns, trace: "" })} /><${Choice} label="Results" value=${limit} change=${(value) => open({ limit: value, trace: "" })} options=${["5", "10", "20", "50"]} /><//>
    <div class="form bar-form"><input type="search" ref=${field} value=${text} placeholder="What should an agent find?" aria-label="Search memories" onInput=${(event) => type(event.target.value)} onKeyDown=${(event) => { if (event.key === "Enter") ask(); else if (event.key === "Escape") event.target.blur(); }} />
      <button class="main" onClick=${ask}>Search</button></div>
    <div class="split stack"><div class="list">
      ${old && html`<div class="hit">${about(badge(old.kind.replace("get_", "")), "as it was on", time(old.at), place(old.namespace), html`<button onClick=${() => open({ q: old.query, trace: "" })}>Search again now</button>`)}</div>`}
      ${error ? html`<div class="hit">${problem(error)}</div>` : found ? (found.hits.length ? list(found.hits, hit) : html`<${Empty}>${NONE}<//>`) : query || trace ? loading : html`<${Empty}>${HINT}<//>`}
    </div><div class="side">${tabs("About this search", TABS, tab, (key) => open({ tab: key }))}
      ${tab === "how" && (found ? html`<${Missing} key=${found.trace.query} trace=${found.trace} asked=${old ? { ...asked, query: old.query, ...at } : asked} /><${Safe}><${How} trace=${found.trace} /><//>` : !query && !trace && dim("Search for something first, or open one of the recent searches."))}
      ${tab === "context" && html`<${Context} task=${query || old?.query || ""} at=${at} />`}
      ${tab === "recent" && html`<${Recent} open=${(one) => go(`/search?trace=${one.id}`)} />`}</div></div>`;
}

const plain = (value) => (Array.isArray(value) ? value.join(", ") : typeof value === "object" ? JSON.stringify(value) : typeof value === "number" && !Number.isInteger(value) ? fixed(value) : String(value));
function How({ trace }) {
  const total = trace.stages.reduce((sum, stage) => sum + stage.took_ms, 0) || 1, [all, showAll] = useState(false), listed = all ? trace.candidates : trace.candidates.slice(0, 30);
  let from = 0;
  const stage = ({ name, took_ms: took, entered, left, notes }) => {
    const begun = from, said = Object.entries(notes).map(([key, value]) => `${key.replaceAll("_", " ")}: ${plain(value)}`).join(" · ");
    from += took / total;
    return html`<div class="stage"><span>${name}</span>${bar(took / total, begun)}<span class="right dim">${ms(took)}</span><span class=${`right change ${entered > left ? "lost" : "dim"}`}>${number(entered)} → ${number(left)}</span>${said && html`<span class="notes dim one" title=${said}>${said}</span>`}</div>`;
  };
  const candidate = (one) => [html`<a href=${`#/m/${one.id}`}>${line(one.preview) || short(one.id)}</a>`, fixed(one.similarity), fixed(one.bm25, 2), fixed(one.score), [one.lost ? "lost" : "", html`${one.lost || "found"} <span class="dim">${one.origins.length > 0 && `by ${one.origins.join(", ")}`}</span>`]];
  return html`${about(ms(trace.took_ms), trace.model || "no model: words only", `${place(trace.namespace)}, reach ${trace.reach}`, trace.degraded.length > 0 && badge(`left out: ${trace.degraded.join(", ")}`, "warn"))}
    ${part("Stages", trace.stages.map(stage))}
    ${part(`${count(trace.candidates.length, "candidate")}, ${number(trace.candidates.filter((one) => one.lost).length)} lost`, [table("Candidates", ["Memory", ">Cosine", ">BM25", ">Score", "Outcome"], listed.map(candidate)),
      listed.length < trace.candidates.length && html`<p class="acts"><button onClick=${() => showAll(true)}>Show all ${number(trace.candidates.length)}</button></p>`])}`;
}

// The memory by its id, or by words of it: then the nearest one is meant, and the others are offered.
function Missing({ asked, trace }) {
  const [text, type] = useState(""), [state, set] = useState({});
  const explain = async (id) => {
    try { return await call("why_not", { ...asked, id }); } catch (error) {
      if (error.code !== "not_found") throw error;
      const one = await call("get", { id, touch: false, reach: "all" });
      return { id: one.id, found: false, stage: one.tier === "L0" ? "tier" : "reach", reason: one.tier === "L0" ? "It is a turn in L0, which is found by itself." : `It is in ${place(one.namespace)}, and a search from ${place(asked.namespace)} does not see that. Shared with a namespace that encloses both, it is found.` };
    }
  };
  const judge = async (id, memory, others) => set({ why: await explain(id), was: trace.candidates.find((one) => one.id === id)?.lost, memory, others });
  const ask = async () => {
    const wanted = text.trim();
    try {
      if (/^[0-9a-f]{4,32}$/.test(wanted)) return await judge(wanted, null, []);
      const { hits } = await call("explain", { query: wanted, limit: 4, touch: false, reach: "all" });
      if (!hits.length) throw new Error("No memory is like that. It was not remembered, or it was deleted: see Today, and Tiers for what was skipped.");
      return await judge(hits[0].id, hits[0], hits.slice(1));
    } catch (error) { return set({ error }); }
  };
  const { why, was, memory, others, error } = state, ranked = (value, rank, digits) => fixed(value, digits) + (rank ? `, rank ${number(rank)}` : "");
  return html`<div class="form"><input type="search" value=${text} placeholder="a memory that is missing: its id, or words of it" aria-label="The memory that is missing" onInput=${(event) => type(event.target.value)} onKeyDown=${(event) => event.key === "Enter" && ask()} /><button onClick=${ask}>Why not?</button></div>
    ${error && problem(error)}
    ${why && html`<div role="status"><a href=${`#/m/${why.id}`} class="clamp">${line(memory?.content) || why.id}</a>
      <div class=${`verdict ${why.found ? "" : "lost"}`}>${why.found ? html`<b>Found, at rank ${why.rank}.</b>` : html`<b>Lost at: ${why.stage}</b><br />${why.reason}`}${was && html`<br />In the search as it was: ${was}`}</div>
      ${facts([["cosine", ranked(why.similarity, why.similarity_rank)], ["BM25", ranked(why.bm25, why.bm25_rank, 2)], ["score", fixed(why.score)], ["the last result has", fixed(why.last_hit_score)]])}</div>`}
    ${others?.length > 0 && part("Or do you mean", list(others, (one) => html`<button class="link" onClick=${() => judge(one.id, one, others.filter((other) => other !== one))}>${line(one.content).slice(0, 160)}</button>`))}`;
}

function Context({ task, at }) {
  const [budget, set] = useState(800), answer = useCall("get_context", { task, max_tokens: budget, touch: false, ...at }, Boolean(task));
  if (!task) return dim("Write a task into the search field: here is what an agent would be given for it.");
  return html`<div class="form"><label class="choice"><span>Budget in tokens</span><input type="number" min="16" max="20000" step="100" value=${budget} onChange=${(event) => set(Math.max(16, Math.min(20000, +event.target.value || 800)))} /></label></div>
    ${show(answer, (made) => html`${about(`${number(made.tokens)} of ${number(budget)} tokens`, count(made.ids.length, "memory", "memories"), made.omitted > 0 && `${number(made.omitted)} relevant did not fit`, `counted by ${made.tokenizer}`)}${bar(made.tokens / budget)}
      ${made.text ? html`<pre class="context text" tabindex="0" role="region" aria-label="The context">${made.text}</pre>` : dim("Nothing: no memory is relevant enough for this task.")}`)}`;
}

function Recent({ open }) {
  const [kind, choose] = useState("agents"), answer = useCall("traces", { limit: 100, reach: "all", kind: kind ? ["search", "get_context"] : [] });
  const entry = (one) => html`<button class="link" onClick=${() => open(one)}>${line(one.query).slice(0, 200)}</button>
    ${about(time(one.at), badge(one.kind.replace("get_", "")), place(one.namespace), one.token, one.session && `session ${line(one.session).slice(0, 24)}`, html`<span class=${one.given ? "" : "lost"}>${count(one.given, "memory", "memories")} given</span>`)}`;
  return html`<div class="form"><${Choice} label="Of" value=${kind} change=${choose} options=${[["agents", "agents and programs"], ["", "everyone, this page too"]]} /><button onClick=${answer.reload}>Reload</button></div>
    ${show(answer, ({ traces }) => { const shown = traces.filter((one) => one.touch || !kind); return shown.length ? html`<div class="recent">${list(shown, entry)}</div>` : dim("Nobody has searched since the daemon started."); })}`;
}
