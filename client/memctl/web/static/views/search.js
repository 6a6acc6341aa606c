// What a search finds and how; why a memory is missing; what an agent gets; what agents asked for lately.

import { call } from "../api.js";
import { about, aboutMemory, badge, bar, button, choice, count, dim, empty, facts, field, fixed, go, head, html, line, link, list, loading, main, memories, ms, number, part, place, Places, plain, problem, Safe, scope, session, short, show, table, tabs, time, useCall, useEffect, useKeys, useRef, useState, words } from "../ui.js";

const TABS = [["how", "How it was found"], ["context", "What an agent gets"], ["recent", "Recent searches"]];
const HINT = html`<p>Searching here leaves no mark: no access is counted.</p><p>Under <b>Recent searches</b> is what agents asked for and what they were given.</p>`;
const NONE = html`<p>Nothing was found.</p><p>Paste the id of a memory, or words of it, beside <b>Why not?</b></p>`;
const search = { type: "search" };

export default function Search({ where }) {
  const given = Object.fromEntries(where.query), { q: query = "", ns = "", trace: id = "", limit = "10" } = given, [text, type] = useState(query), box = useRef();
  const seen = scope(ns, ns === "/" ? "exact" : "visible"), asked = { query, limit: +limit, touch: false, ...seen };
  const run = useCall("explain", asked, { wanted: Boolean(query && !id) }), kept = useCall("get_trace", { id, reach: "all" }, { wanted: Boolean(id) });
  const old = id && kept.value, found = old ? { trace: old, hits: old.candidates.filter((one) => !one.lost) } : query && !id && run.value, error = (id ? kept : run).error;
  const at = old ? { namespace: old.namespace, reach: old.reach } : seen, tab = given.tab || (query || id ? "how" : "recent");
  const open = (change) => go(`/search?${new URLSearchParams(Object.entries({ ...given, trace: "", ...change }).filter(([, value]) => value))}`), ask = () => open({ q: text.trim(), tab: tab === "context" ? tab : "" });
  useEffect(() => { if (!query && !id) box.current.focus(); }, []);
  useEffect(() => { type(query || old?.query || ""); }, [query, old]);
  useKeys({ Escape: () => go("/search") });
  const hit = (one, index) => html`<article class="hit"><span class="score">${fixed(one.score, 2)}</span>${link(one.id, one.content ?? one.preview, { class: "clamp text", "data-row": one.id })}${about(`${index + 1}.`, aboutMemory(one))}</article>`;

  return html`${head("Search", html`<${Places} value=${ns} change=${(value) => open({ ns: value })} />`, choice("Results", limit, (value) => open({ limit: value }), ["5", "10", "20", "50"]))}
    <div class="form bar-form">${field("Search memories", text, type, ask, { ...search, ref: box, placeholder: "What should an agent find?" })}${button("Search", ask, main)}</div>
    <div class="split stack"><div class="list">
      ${old && html`<div class="hit">${about(badge(words(old.kind)), "as it was on", time(old.at), place(old.namespace), button("Search again now", () => open({ q: old.query })))}</div>`}
      ${error ? html`<div class="hit">${problem(error)}</div>` : found ? (found.hits.length ? list(found.hits, hit) : empty(NONE)) : query || id ? loading : empty(HINT)}
    </div><div class="side">${tabs("About this search", TABS, tab, (key) => open({ trace: id, tab: key }))}
      ${tab === "how" && (found ? html`<${Missing} key=${found.trace.query} trace=${found.trace} asked=${{ ...asked, query: found.trace.query, ...at }} /><${Safe}><${How} trace=${found.trace} /><//>` : !query && !id && dim("Search for something first, or open one of the recent searches."))}
      ${tab === "context" && html`<${Context} task=${query || old?.query} at=${at} />`}
      ${tab === "recent" && html`<${Recent} />`}</div></div>`;
}

function How({ trace }) {
  const total = trace.stages.reduce((sum, stage) => sum + stage.took_ms, 0) || 1, [most, showMost] = useState(30), all = trace.candidates;
  let from = 0;
  const stage = ({ name, took_ms: took, entered, left, notes }) => {
    const begun = from, said = Object.entries(notes).map(([key, value]) => `${words(key)}: ${[value].flat().map(plain).join(", ")}`).join(" · ");
    from += took / total;
    return html`<div class="stage"><span>${name}</span>${bar(took / total, begun)}<span class="right dim">${ms(took)}</span><span class=${`right change ${entered > left ? "lost" : "dim"}`}>${number(entered)} → ${number(left)}</span>${said && html`<span class="notes dim one" title=${said}>${said}</span>`}</div>`;
  };
  const candidate = (one) => [link(one.id, one.preview), fixed(one.similarity), fixed(one.bm25, 2), fixed(one.score), [one.lost && "lost", html`${one.lost || "found"} <span class="dim">${one.origins.length > 0 && `by ${one.origins.join(", ")}`}</span>`]];
  return html`${about(ms(trace.took_ms), trace.model || "no model: words only", `${place(trace.namespace)}, reach ${trace.reach}`, trace.degraded.length > 0 && badge(`left out: ${trace.degraded.join(", ")}`, "warn"))}
    ${part("Stages", trace.stages.map(stage))}
    ${part(`${count(all.length, "candidate")}, ${number(all.filter((one) => one.lost).length)} lost`, all.length > 0 && [table("Candidates", ["Memory", ">Cosine", ">BM25", ">Score", "Outcome"], all.slice(0, most).map(candidate)),
      most < all.length && html`<p class="acts">${button(`Show all ${number(all.length)}`, () => showMost(all.length))}</p>`])}`;
}

// The memory by its id, or by words of it: then the nearest one is meant, and the others are offered.
function Missing({ asked, trace }) {
  const [text, type] = useState(""), [{ why, one, others = [], error }, set] = useState({});
  const explain = async (id) => {
    try { return await call("why_not", { ...asked, id }); } catch (wrong) {
      if (wrong.code !== "not_found") throw wrong;
      const { tier, namespace, ...memory } = await call("get", { id, touch: false, reach: "all" });
      return { ...memory, ...(tier === "L0" ? { stage: "tier", reason: "It is a turn in L0, which is found by itself." }
        : { stage: "reach", reason: `It is in ${place(namespace)}, and a search from ${place(asked.namespace)} does not see that. Shared with a namespace that encloses both, it is found.` }) };
    }
  };
  const judge = async (id, hits) => set({ why: await explain(id), one: hits.find((hit) => hit.id === id), others: hits.filter((hit) => hit.id !== id) });
  const ask = async () => {
    const wanted = text.trim();
    try {
      if (/^[0-9a-f]{4,32}$/.test(wanted)) return await judge(wanted, []);
      const { hits } = await call("explain", { query: wanted, limit: 4, touch: false, reach: "all" });
      if (!hits.length) throw new Error("No memory is like that. It was not remembered, or it was deleted: see Today, and Tiers for what was skipped.");
      await judge(hits[0].id, hits);
    } catch (wrong) { set({ error: wrong }); }
  };
  const ranked = (value, rank, digits) => fixed(value, digits) + (rank ? `, rank ${number(rank)}` : ""), was = why && trace.candidates.find((other) => other.id === why.id)?.lost;
  return html`<div class="form">${field("The memory that is missing", text, type, ask, { ...search, placeholder: "a memory that is missing: its id, or words of it" })}${button("Why not?", ask)}</div>
    ${error && problem(error)}
    ${why && html`<div role="status">${link(why.id, (one || why).content || why.id, { class: "clamp" })}
      <div class=${`verdict ${why.found ? "" : "lost"}`}>${why.found ? html`<b>Found, at rank ${why.rank}.</b>` : html`<b>Lost at: ${why.stage}</b><br />${why.reason}`}${was && html`<br />In the search as it was: ${was}`}</div>
      ${facts([["cosine", ranked(why.similarity, why.similarity_rank)], ["BM25", ranked(why.bm25, why.bm25_rank, 2)], ["score", fixed(why.score)], ["the last result has", fixed(why.last_hit_score)]])}</div>`}
    ${others.length > 0 && part("Or do you mean", list(others, (other) => button(line(other.content).slice(0, 160), () => judge(other.id, [other, ...others]), { class: "link" })))}`;
}

function Context({ task, at }) {
  const [budget, set] = useState(800), answer = useCall("get_context", { task, max_tokens: budget, touch: false, ...at }, { wanted: Boolean(task) });
  if (!task) return dim("Write a task into the search field: here is what an agent would be given for it.");
  return html`<div class="form"><label class="choice"><span>Budget in tokens</span><input type="number" min="16" max="20000" step="100" value=${budget} onChange=${(event) => set(Math.max(16, Math.min(20000, +event.target.value || 800)))} /></label></div>
    ${show(answer, (made) => html`${about(`${number(made.tokens)} of ${number(budget)} tokens`, memories(made.ids.length), made.omitted > 0 && `${number(made.omitted)} relevant did not fit`, `counted by ${made.tokenizer}`)}${bar(made.tokens / budget)}
      ${made.text ? html`<pre class="context text" tabindex="0" role="region" aria-label="The context">${made.text}</pre>` : dim("Nothing: no memory is relevant enough for this task.")}`)}`;
}

function Recent() {
  const [kind, choose] = useState("agents"), answer = useCall("traces", { limit: 100, reach: "all", kind: kind ? ["search", "get_context"] : [] });
  const entry = (one) => html`${button(line(one.query).slice(0, 200), () => go(`/search?trace=${one.id}`), { class: "link" })}
    ${about(time(one.at), badge(words(one.kind)), place(one.namespace), one.token, session(one.session), html`<span class=${one.given ? "" : "lost"}>${memories(one.given)} given</span>`)}`;
  return html`<div class="form">${choice("Of", kind, choose, [["agents", "agents and programs"], ["", "everyone, this page too"]])}${button("Reload", answer.reload)}</div>
    ${show(answer, ({ traces }) => { const shown = traces.filter((one) => one.touch || !kind); return shown.length ? html`<div class="recent">${list(shown, entry)}</div>` : dim("Nobody has searched since the daemon started."); })}`;
}
