// What a search finds and how; why a memory is missing; what an agent gets; what agents asked for lately.

import { call } from "../api.js";
import { Badge, Bar, Choice, Empty, Head, Loading, Places, Problem, Safe, Time, count, fixed, go, html, isTyping, line, ms, number, place, scope, short, useCall, useEffect, useKeys, useRef, useState } from "../ui.js";

const TABS = [["how", "How it was found"], ["missing", "Why not?"], ["context", "What an agent gets"], ["recent", "Recent searches"]];
const NAMES = { embed: "vector of the query", candidates: "words and vectors", hot: "hot buffer", active: "turns in L0", fuse: "scores", cues: "cues", expand: "graph", cut: "floors", rank: "order", diversify: "variety", clean: "repeats, limit", postprocess: "processors" };

export default function Search({ where }) {
  const given = Object.fromEntries(where.query), trace = given.trace || "";
  const [text, type] = useState(given.q || ""), field = useRef(null);
  const query = given.q || "", namespace = given.ns || "", limit = Number(given.limit) || 10;
  const asked = { query, limit, touch: false, ...scope(namespace), ...(namespace && namespace !== "/" ? { reach: "visible" } : {}) };
  const run = useCall("explain", asked, Boolean(query) && !trace);
  const kept = useCall("get_trace", { id: trace, reach: "all" }, Boolean(trace));
  const stats = useCall("stats", { reach: "all" });
  const open = (change) => { const next = new URLSearchParams(Object.entries({ ...given, ...change }).filter(([, value]) => value)); go(`/search?${next}`); };
  const tab = given.tab || (query || trace ? "how" : "recent");
  useEffect(() => { if (!query && !trace) field.current?.focus(); }, []);
  useEffect(() => { type(query || kept.value?.query || ""); }, [query, kept.value]);
  const found = trace ? kept.value && { trace: kept.value, hits: kept.value.candidates.filter((one) => !one.lost) } : query ? run.value : null;
  const error = trace ? kept.error : query ? run.error : null;
  const step = (by) => { const all = [...document.querySelectorAll(".hit a")]; all[Math.max(0, Math.min(all.length - 1, all.indexOf(document.activeElement) + by))]?.focus(); };
  useKeys({ j: () => step(1), k: () => step(-1), Escape: () => go("/search") });

  return html`<${Head} title="Search"><${Places} value=${namespace} change=${(ns) => open({ ns, trace: "" })} names=${Object.keys(stats.value?.by_namespace || {})} />
      <${Choice} label="Results" value=${String(limit)} change=${(value) => open({ limit: value, trace: "" })} options=${["5", "10", "20", "50"]} /><//>
    <div class="scroll form" style=${{ flex: "none", paddingBottom: 0 }}><input type="search" ref=${field} value=${text} placeholder="What should an agent find?" aria-label="Search memories" onInput=${(event) => type(event.target.value)}
      onKeyDown=${(event) => { if (event.key === "Enter") open({ q: text.trim(), trace: "", tab: tab === "recent" || tab === "missing" ? "" : tab }); else if (event.key === "Escape" && isTyping(event.target)) event.target.blur(); }} />
      <button class="main" onClick=${() => open({ q: text.trim(), trace: "", tab: "" })}>Search</button></div>
    <div class="split stack"><div class="list">
      ${trace && kept.value && html`<div class="hit about"><${Badge}>${kept.value.kind.replace("get_", "") || "search"}<//><span>as it was on</span><${Time} at=${kept.value.at} /><span>${place(kept.value.namespace)}</span><button onClick=${() => open({ q: kept.value.query, trace: "" })}>Search again now</button></div>`}
      ${error && html`<div class="hit"><${Problem} error=${error} /></div>`}
      ${!found && !error && (query || trace ? html`<${Loading} />` : html`<${Empty}><p>Searching here leaves no mark: no access is counted.</p><p>Under <b>Recent searches</b> is what agents asked for and what they were given.</p><//>`)}
      ${found && !found.hits.length && html`<${Empty}><p>Nothing was found.</p><p>Paste the id of a memory, or words of it, under <b>Why not?</b></p><//>`}
      ${found?.hits.map((hit, index) => html`<${Safe} key=${hit.id}><article class="hit"><span class="score">${fixed(hit.score, 2)}</span><a href=${`#/m/${hit.id}`}><span class="clamp text">${line(hit.content ?? hit.preview)}</span></a>
        <span class="about"><span>${index + 1}.</span>${hit.type && html`<${Badge}>${hit.type}<//>`}${hit.namespace !== undefined && html`<span>${place(hit.namespace)}</span>`}<span>${hit.tier}</span>${hit.created_at && html`<${Time} at=${hit.created_at} />`}</span></article><//>`)}
    </div><div class="side">
      <div class="tabs" role="tablist" aria-label="About this search">${TABS.map(([key, title]) => html`<button key=${key} role="tab" aria-selected=${tab === key} onClick=${() => open({ tab: key })}>${title}</button>`)}</div>
      ${tab === "how" && (found ? html`<${Safe}><${How} trace=${found.trace} /><//>` : !error && html`<p class="dim">Search for something first.</p>`)}
      ${tab === "missing" && html`<${Missing} trace=${found?.trace} asked=${found ? (trace ? { query: found.trace.query, limit: 10, touch: false, namespace: found.trace.namespace, reach: found.trace.reach } : asked) : null} />`}
      ${tab === "context" && html`<${Context} task=${query || found?.trace.query || ""} place=${trace && found ? { namespace: found.trace.namespace, reach: found.trace.reach } : { ...scope(namespace), ...(namespace && namespace !== "/" ? { reach: "visible" } : {}) }} />`}
      ${tab === "recent" && html`<${Recent} open=${(one) => go(`/search?trace=${one.id}`)} />`}
    </div></div>`;
}

function How({ trace }) {
  const total = trace.stages.reduce((sum, stage) => sum + stage.took_ms, 0) || 1, [all, showAll] = useState(false);
  let from = 0;
  const lost = trace.candidates.filter((one) => one.lost);
  const listed = all ? trace.candidates : trace.candidates.slice(0, 30);
  return html`<p class="about"><span>${ms(trace.took_ms)}</span><span>${trace.model || "no model: words only"}</span><span>${place(trace.namespace)}, reach ${trace.reach}</span>${trace.degraded.length > 0 && html`<${Badge} kind="warn">left out: ${trace.degraded.join(", ")}<//>`}</p>
    <section><h3>Stages</h3>${trace.stages.map((stage) => { const begun = from; from += stage.took_ms / total; const fell = stage.entered - stage.left;
      return html`<div class="stage" key=${stage.name} title=${NAMES[stage.name] || ""}><span>${stage.name}</span><${Bar} from=${begun} part=${stage.took_ms / total} /><span class="right dim">${ms(stage.took_ms)}</span><span class=${`right change ${fell > 0 ? "lost" : "dim"}`}>${number(stage.entered)} → ${number(stage.left)}</span>
        ${Object.keys(stage.notes).length > 0 && html`<span class="notes dim one" title=${notes(stage)}>${notes(stage)}</span>`}</div>`; })}</section>
    <section><h3>${count(trace.candidates.length, "candidate")}, ${number(lost.length)} lost</h3><div class="wide" tabindex="0" role="region" aria-label="Candidates"><table><thead><tr><th>Memory</th><th class="right">Cosine</th><th class="right">BM25</th><th class="right">Score</th><th>Outcome</th></tr></thead>
      <tbody>${listed.map((one) => html`<tr key=${one.id}><td><a href=${`#/m/${one.id}`}>${line(one.preview) || short(one.id)}</a></td><td class="right">${fixed(one.similarity)}</td><td class="right">${fixed(one.bm25, 2)}</td><td class="right">${fixed(one.score)}</td><td class=${one.lost ? "lost" : ""}>${one.lost || "found"}${one.origins.length > 0 && html` <span class="dim">by ${one.origins.join(", ")}</span>`}</td></tr>`)}</tbody></table></div>
      ${listed.length < trace.candidates.length && html`<p><button onClick=${() => showAll(true)}>Show all ${number(trace.candidates.length)}</button></p>`}</section>`;
}
const notes = (stage) => Object.entries(stage.notes).map(([key, value]) => `${key}: ${Array.isArray(value) ? value.join(", ") : typeof value === "object" ? JSON.stringify(value) : typeof value === "number" && !Number.isInteger(value) ? fixed(value) : value}`).join(" · ");

// The memory by its id, or by words of it: then the nearest one is meant, and the others are offered.
function Missing({ asked, trace }) {
  const [text, type] = useState(""), [state, show] = useState(null);
  if (!asked) return html`<p class="dim">Search for something first, or open one of the recent searches.</p>`;
  const judge = async (id) => {
    const was = trace?.candidates.find((one) => one.id === id);
    return { why: await call("why_not", { ...asked, id }), was };
  };
  const ask = async () => {
    const wanted = text.trim();
    if (!wanted) return;
    try {
      if (/^[0-9a-f]{4,32}$/.test(wanted)) return show({ ...(await judge(wanted)), others: [] });
      const { hits } = await call("explain", { query: wanted, limit: 4, touch: false, reach: "all" });
      if (!hits.length) return show({ error: { message: "No memory is like that. It was not remembered, or it was deleted: look under Today and Tiers (skipped)." } });
      return show({ ...(await judge(hits[0].id)), memory: hits[0], others: hits.slice(1) });
    } catch (error) { return show({ error }); }
  };
  const other = async (memory) => { try { show({ ...(await judge(memory.id)), memory, others: state.others.filter((one) => one !== memory) }); } catch (error) { show({ error }); } };
  const why = state?.why;
  return html`<p class="dim">Why is a memory not among the results of “${asked.query}”?</p>
    <div class="form"><input type="search" value=${text} placeholder="id, or words of the memory" aria-label="The memory that is missing" onInput=${(event) => type(event.target.value)} onKeyDown=${(event) => event.key === "Enter" && ask()} /><button onClick=${ask}>Why not?</button></div>
    ${state?.error && html`<${Problem} error=${state.error} />`}
    ${why && html`<div role="status"><p><a href=${`#/m/${why.id}`} class="clamp">${line(state.memory?.content) || why.id}</a></p>
      <div class=${`verdict ${why.found ? "" : "lost"}`}>${why.found ? html`<b>Found, at rank ${why.rank}.</b>` : html`<b>Lost at: ${why.stage}</b><br />${why.reason}`}${state.was?.lost && html`<br />In the search as it was: ${state.was.lost}`}</div>
      <dl class="facts"><dt>cosine</dt><dd>${fixed(why.similarity)}${why.similarity_rank ? `, rank ${number(why.similarity_rank)}` : ""}</dd><dt>BM25</dt><dd>${fixed(why.bm25, 2)}${why.bm25_rank ? `, rank ${number(why.bm25_rank)}` : ""}</dd><dt>score</dt><dd>${fixed(why.score)}</dd><dt>the last result has</dt><dd>${fixed(why.last_hit_score)}</dd></dl></div>`}
    ${state?.others?.length > 0 && html`<section><h3>Or do you mean</h3><ul>${state.others.map((one) => html`<li key=${one.id}><button class="link" onClick=${() => other(one)}>${line(one.content).slice(0, 160)}</button></li>`)}</ul></section>`}`;
}

function Context({ task, place: at }) {
  const [budget, set] = useState(800);
  const { value, error } = useCall("get_context", { task, max_tokens: budget, touch: false, ...at }, Boolean(task));
  if (!task) return html`<p class="dim">Write a task into the search field: here is what an agent would be given for it.</p>`;
  return html`<div class="form"><label class="choice"><span>Budget in tokens</span><input type="number" min="16" max="20000" step="100" value=${budget} onChange=${(event) => set(Math.max(16, Math.min(20000, Number(event.target.value) || 800)))} /></label></div>
    ${error && html`<${Problem} error=${error} />`}
    ${value && html`<p class="about"><span>${number(value.tokens)} of ${number(budget)} tokens</span><span>${count(value.ids.length, "memory", "memories")}</span>${value.omitted > 0 && html`<span>${number(value.omitted)} relevant did not fit</span>`}<span>counted by ${value.tokenizer}</span></p>
      <${Bar} part=${value.tokens / budget} />
      ${value.text ? html`<pre class="context text" tabindex="0" aria-label="The context">${value.text}</pre>` : html`<p class="dim">Nothing: no memory is relevant enough for this task.</p>`}`}`;
}

function Recent({ open }) {
  const [kind, choose] = useState("agents");
  const { value, error, reload } = useCall("traces", { limit: 50, reach: "all", kind: kind === "agents" ? ["search", "get_context"] : [] });
  if (error) return html`<${Problem} error=${error} />`;
  if (!value) return html`<${Loading} />`;
  const shown = value.traces.filter((one) => one.touch || !kind);
  return html`<div class="form"><${Choice} label="Of" value=${kind} change=${choose} options=${[["agents", "agents and programs"], ["", "everyone, with this page"]]} /><button onClick=${reload}>Reload</button></div>
    ${!shown.length && html`<p class="dim">Nobody has searched since the daemon started.</p>`}
    <ul>${shown.map((one) => html`<li key=${one.id} class="recent"><button class="link" onClick=${() => open(one)}>${line(one.query).slice(0, 200)}</button>
      <span class="about"><${Time} at=${one.at} /><${Badge}>${one.kind.replace("get_", "")}<//><span>${place(one.namespace)}</span>${one.token && html`<span>${one.token}</span>`}${one.session && html`<span>session ${line(one.session).slice(0, 24)}</span>`}<span class=${one.given ? "" : "lost"}>${count(one.given, "memory", "memories")} given</span></span></li>`)}</ul>`;
}
