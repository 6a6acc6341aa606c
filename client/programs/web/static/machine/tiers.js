// Where memories are and how turns moved; the turns in L0; what was not kept, and why; where observing is paused.

import { run } from "../api.js";
import { named, Places, scope, show, useCall, useCalls, useState } from "../hooks.js";
import { about, badge, button, empty, head, html, row, table, tabs, time } from "../parts.js";
import { count, counts, number, place, session, size } from "../text.js";

const TABS = [
  ["L0", "Turns in L0"],
  ["skipped", "Skipped, and why"],
  ["places", "By namespace"],
];
const ABOUT = {
  L0: "the last turns of each namespace",
  hot: "what searches returned lately",
  L1: "recent: what was added, important turns",
  L2: "the rest, for good",
  documents: "parts of files in workspaces",
};
const SHOWN = 200;
const KINDS = ["observed", "promoted", "dropped", "job", "moved"];
const NO_TURNS = html`No turn is in L0: nothing was observed lately. Hooks observe what is said to an agent:
  ${" "}<code>memctl hooks install claude-code</code>`;

export default function Tiers({ menu }) {
  const [ns, choose] = useState("");
  const [tab, open] = useState("L0");
  const answer = useCalls([["tiers", scope(ns)], ["get_observing"]], { kinds: KINDS });
  const body = { L0: Turns, skipped: Skipped }[tab];
  return html`${head("Health", html`<${Places} value=${ns} change=${choose} />`)}
    <div class="scroll">${menu}${show(
      answer,
      ([report, observing]) => html`${showPauses(observing, named(ns))}${showFlow(report)}
      ${tabs("Turns", TABS, tab, open)}${body ? html`<${body} fields=${{ ...scope(ns), limit: SHOWN }} />` : showPlaces(report)}`,
    )}</div>`;
}

// Pauses --------------------------------------------------------------------------------------------------------------

function turn({ kind, name }, resume = false) {
  const said = resume ? "Observing is resumed" : "Observing is paused";
  return run(said, "pause_observing", { kind, name, resume }, () => turn({ kind, name }, !resume));
}

function showPauses({ pauses, only }, namespace) {
  const here = { kind: "namespace", name: namespace };
  const isPaused = pauses.some(({ kind, name }) => kind === here.kind && name === here.name);
  return html`${pauses.map(showPause)}
    ${only.length > 0 && html`<p class="panel about">Only ${only.join(", ")} is observed: the settings, [observe] only.</p>`}
    ${
      !isPaused &&
      html`<p class="acts">
      ${button(`Pause observing ${namespace || "everywhere"}`, () => turn(here))}</p>`
    }`;
}

function showPause(pause) {
  const where = pause.name ? `the ${pause.kind} ${pause.name}` : "any namespace";
  const end = pause.since ? button("Observe again", () => turn(pause, true)) : "The settings say so: [observe] never.";
  return html`<p class="panel about">Nothing is observed in ${where}. ${end}</p>`;
}

// The flow ------------------------------------------------------------------------------------------------------------

const sum = (numbers) => Object.values(numbers).reduce((total, many) => total + many, 0);

function beginning(flows, start) {
  const found = Object.entries(flows).filter(([name]) => name.startsWith(start));
  return Object.fromEntries(found.map(([name, many]) => [name.slice(start.length), many]));
}

const arrow = (many, text) => html`<div class="arrow"><b>${number(many)}</b>${text}</div>`;
const card = (title, many, ...more) =>
  html`<section class="panel tier"><h2 class="small">${title}</h2><b>${number(many)}</b>
    ${more.map((text) => html`<div class="dim">${text}</div>`)}</section>`;

function showTier(tier, more = "") {
  const ram = tier.ram_bytes > 1000 ? `, ${size(tier.ram_bytes)} in RAM` : "";
  return card(tier.title || tier.name, tier.count, `${ABOUT[tier.name]}${more}${ram}`);
}

function showFlow({ tiers, flows, nodes, waiting, resting }) {
  const { L0, hot, L1, L2, documents } = Object.fromEntries(tiers.map((tier) => [tier.name, tier]));
  const skipped = beginning(flows, "skipped: ");
  const reasons = Object.entries(skipped).sort((a, b) => b[1] - a[1]);
  const queue = { ...waiting, ...resting };
  return html`<div class="flow">${arrow(flows.observed || 0, "observed")}${showTier(L0)}
      ${arrow(sum(beginning(flows, "gone: job:")), "became memories")}${showTier(L1)}
      ${arrow(L2.count, "older, or less important")}${showTier(L2, `, ${count(nodes, "node")}`)}</div>
    <div class="flow">${showTier(hot)}${showTier(documents)}
      ${card("Not recorded", sum(skipped), ...reasons.map(([reason, many]) => `${number(many)} ${reason}`))}
      ${sum(queue) > 0 && card("Waiting", sum(queue), counts(queue))}</div>`;
}

// Lists ---------------------------------------------------------------------------------------------------------------

function Turns({ fields }) {
  return show(useCall("turns", fields, { kinds: KINDS }), ({ turns }) =>
    turns.length ? turns.map(showTurn) : empty(NO_TURNS),
  );
}

function showTurn(one) {
  const rated = `${one.judged ? "" : "first guess: "}importance ${one.importance.toFixed(2)}`;
  return html`<article class="panel" key=${one.id}>${row(one.id, one.content)}
    ${about(badge(one.role), rated, one.speaker, place(one.namespace), session(one.session), time(one.created_at))}</article>`;
}

function Skipped({ fields }) {
  return show(useCall("turns", { ...fields, skipped: true }, { kinds: KINDS }), ({ skipped }) =>
    skipped.length ? skipped.map(showSkipped) : empty("Nothing was skipped."),
  );
}

const showSkipped = (one) =>
  html`<article class="panel"><span class="clamp text">${one.content}</span>
    ${about(badge(one.reason, "warn"), badge(one.role), place(one.namespace), session(one.session), time(one.at))}</article>`;

function showPlaces({ tiers, namespaces }) {
  const names = tiers.map((tier) => tier.name);
  const rows = namespaces
    .slice(0, SHOWN)
    .map((one) => [place(one.namespace), ...names.map((name) => number(one.tiers[name]))]);
  return table("By namespace", ["Namespace", ...names.map((name) => `>${name}`)], rows);
}
