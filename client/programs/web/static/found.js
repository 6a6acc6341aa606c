// How a search came to its results, and why a memory is missing among them. The sentences are the daemon's.

import { show, useCall } from "./hooks.js";
import { about, badge, bar, button, dim, facts, fold, html, list, row, section, table, time } from "./parts.js";
import { count, fixed, memories, ms, number, place, plain, session, words } from "./text.js";

const TOLD = 10; // results whose reasons are told
const HEADS = ["Memory", ">Similarity", ">BM25", ">Score", "Outcome"];

function sentence({ outcome, reasons }) {
  const text = [outcome, ...reasons].join("; ");
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;
}

// In words first; folded, its stages and all candidates.
export const Trace = ({ id }) => show(useCall("get_trace", { id, reach: "all" }), showTrace);

function showTrace(trace) {
  const hits = trace.candidates.filter((one) => !one.lost);
  const told = hits
    .slice(0, TOLD)
    .map((one) => html`<div class="hit said">${row(one.id, one.preview)}${dim(sentence(one))}</div>`);
  const line = about(
    ms(trace.took_ms),
    trace.model || "no model",
    `${place(trace.namespace)}, reach ${trace.reach}`,
    trace.degraded.length > 0 && badge(`left out: ${trace.degraded.join(", ")}`, "warn"),
  );
  return html`<p>${describe(trace, hits)}</p>${told}${fold("Stages", line, showStages(trace.stages))}
    ${
      trace.candidates.length > 0 &&
      fold(
        `All candidates: ${number(trace.candidates.length)}`,
        table("Candidates", HEADS, trace.candidates.map(showCandidate)),
      )
    }`;
}

// What was looked for, how, and what came of it.
function describe(trace, hits) {
  const notes = Object.assign({}, ...trace.stages.map((stage) => stage.notes));
  const ways = [notes.words?.length && `words (${plain(notes.words)})`, notes.vectors && "meaning"].filter(Boolean);
  const how = ways.length ? `Searched by ${ways.join(" and by ")}` : "There was nothing to compare the query with";
  const shown = hits.filter((one) => one.confidence_word !== "unlikely").length;
  return `${how}: ${count(trace.candidates.length, "candidate")}, ${number(hits.length)} found, ${number(shown)} shown.`;
}

function showStages(stages) {
  const total = stages.reduce((sum, stage) => sum + stage.took_ms, 0) || 1;
  let begin = 0;
  return stages.map((stage) => {
    const from = begin;
    begin += stage.took_ms / total;
    const notes = Object.entries(stage.notes)
      .map(([name, value]) => `${words(name)}: ${plain(value)}`)
      .join(" · ");
    const change = stage.entered > stage.left ? "lost" : "dim";
    return html`<div class="stage"><span>${stage.name}</span>${bar(stage.took_ms / total, from)}
      <span class="right dim">${ms(stage.took_ms)}</span>
      <span class=${`right change ${change}`}>${number(stage.entered)} → ${number(stage.left)}</span>
      ${notes && html`<span class="notes dim">${notes}</span>`}</div>`;
  });
}

function showCandidate(one) {
  const by = one.origins.length > 0 && html`<span class="dim"> by ${one.origins.join(", ")}</span>`;
  const outcome = html`<span class=${one.lost ? "lost" : ""}>${one.outcome}</span>${by}`;
  return [row(one.id, one.preview), fixed(one.similarity), fixed(one.bm25, 2), fixed(one.score), outcome];
}

// Why a kept search found one memory, or where it lost it.
export function Found({ trace, id }) {
  return show(useCall("get_trace", { id: trace, reach: "all" }), ({ candidates }) => {
    const one = candidates.find((candidate) => candidate.id === id);
    return one ? html`<div class="verdict">${sentence(one)}</div>` : dim("This search did not find it.");
  });
}

// Why the memory `of`, an id or words of it, is not among the results of a search; `choose` asks the same of another.
export function WhyNot({ of, search, choose }) {
  return show(useCall("why_not", { id: of, touch: false, ...search }), (why) => {
    const look = why.found || why.shown_with ? "verdict" : "verdict lost";
    const others = list(why.others, (one) => button(one.text, () => choose(one.id), { class: "link" }));
    return html`<${Meant} id=${why.id} /><div class=${look}>${why.said.map((text) => html`<p>${text}</p>`)}</div>
      ${facts(Object.entries(why.figures))}${why.others.length > 0 && section("Or do you mean", others)}`;
  });
}

function Meant({ id }) {
  const { value } = useCall("get", { id, touch: false, reach: "all" });
  return value ? row(id, value.content.slice(0, 400)) : null;
}

// What agents and programs asked for lately; looks of a person are left out.
const ASKED = { kind: ["search", "get_context", "get_unasked"], limit: 100, reach: "all" };
const NONE_KEPT =
  "No recent searches: the list is cleared when the daemon ends and when something is erased or redacted.";

export const Recent = () =>
  show(useCall("traces", ASKED), ({ traces }) => {
    const asked = traces.filter((one) => one.touch);
    return asked.length ? html`<div class="recent">${list(asked, showAsked)}</div>` : dim(NONE_KEPT);
  });

function showAsked(one) {
  const came = `${memories(one.given)} ${one.kind === "search" ? "found" : "given"}`;
  return html`<a href=${`#/search?trace=${one.id}`} data-row=${one.id}>${one.query.slice(0, 200)}</a>
    ${about(
      time(one.at),
      badge(words(one.kind.replace("get_", ""))),
      place(one.namespace),
      one.token,
      session(one.session),
      html`<span class=${one.given ? "" : "lost"}>${came}</span>`,
    )}`;
}
