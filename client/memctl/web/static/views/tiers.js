// Where memories are and how turns moved; the turns in L0; what was not kept, and why.

import { Badge, Choice, Empty, Head, Loading, Places, Problem, Time, bytes, count, fixed, html, line, number, place, scope, short, useCall, useOn, useState } from "../ui.js";

const under = (flows, begin) => Object.entries(flows).filter(([name]) => name.startsWith(begin)).sort((a, b) => b[1] - a[1]);
const sum = (flows, begin) => under(flows, begin).reduce((all, [, many]) => all + many, 0);

export default function Tiers() {
  const [namespace, choose] = useState(""), [shown, show] = useState("L0");
  const where = scope(namespace), report = useCall("tiers", where);
  const turns = useCall("turns", { ...where, limit: 200 }, shown === "L0"), skipped = useCall("skipped", { ...where, limit: 200 }, shown === "skipped");
  const names = useCall("stats", { reach: "all" });
  useOn("changed", report.reload);
  useOn("event", (event) => { if (["observed", "promoted", "dropped", "job", "moved"].includes(event.kind)) { report.reload(); turns.reload(); } });
  const { value, error } = report;
  if (error) return html`<${Head} title="Tiers" /><div class="scroll"><${Problem} error=${error} /></div>`;
  if (!value) return html`<${Head} title="Tiers" /><${Loading} />`;
  const by = Object.fromEntries(value.tiers.map((tier) => [tier.name, tier])), flows = value.flows;
  const waiting = Object.entries({ ...value.waiting }).filter(([, many]) => many);
  return html`<${Head} title="Tiers"><${Places} value=${namespace} change=${choose} names=${Object.keys(names.value?.by_namespace || {})} /><//>
    <div class="scroll">
      <div class="flow">
        <div class="arrow"><b>${number(flows.observed || 0)}</b>observed</div>
        <${Tier} tier=${by.L0} about="the last turns of each conversation" />
        <div class="arrow"><b>${number(sum(flows, "gone: job:"))}</b>became memories</div>
        <${Tier} tier=${by.L1} about="recent: what was added, important turns" />
        <div class="arrow"><b>${number(by.L2.count)}</b>aged, or less important</div>
        <${Tier} tier=${by.L2} about=${`registry with ${count(value.nodes, "node")}`} />
      </div>
      <div class="flow"><${Tier} tier=${by.hot} about="what searches returned lately" /><${Tier} tier=${by.documents} about="parts of files in workspaces" />
        <section class="panel tier"><h3>Not kept</h3><b>${number(sum(flows, "skipped: "))}</b>${under(flows, "skipped: ").slice(0, 4).map(([name, many]) => html`<span class="about"><span>${number(many)}</span><span>${name.slice(9)}</span></span>`)}</section>
        ${waiting.length > 0 && html`<section class="panel tier"><h3>Waiting</h3>${waiting.map(([name, many]) => html`<span class="about"><span>${number(many)}</span><span>${name}</span></span>`)}</section>`}</div>
      <div class="tabs" role="tablist" aria-label="Turns">${[["L0", "Turns in L0"], ["skipped", "Skipped, and why"], ["places", "By namespace"]].map(([key, title]) => html`<button key=${key} role="tab" aria-selected=${shown === key} onClick=${() => show(key)}>${title}</button>`)}</div>
      ${shown === "L0" && html`<${List} answer=${turns} none=${html`No turn is in L0: nothing was observed lately. Hooks observe what is said to an agent: <code>memctl hooks install claude-code</code>.`} about=${(turn) => html`<${Badge}>${turn.role}<//><span>${turn.judged ? "" : "first guess "}importance ${fixed(turn.importance, 2)}</span>${turn.speaker && html`<span>${turn.speaker}</span>`}<span>${place(turn.namespace)}</span>${turn.session && html`<span>session ${short(turn.session)}</span>`}<${Time} at=${turn.created_at} />`} />`}
      ${shown === "skipped" && html`<${List} answer=${skipped} none="Nothing was skipped." about=${(turn) => html`<${Badge} kind="warn">${turn.reason}<//><span>${turn.role}</span><span>${place(turn.namespace)}</span><${Time} at=${turn.at} />`} />`}
      ${shown === "places" && html`<div class="wide" tabindex="0" role="region" aria-label="By namespace"><table><thead><tr><th>Namespace</th>${value.tiers.map((tier) => html`<th class="right" key=${tier.name}>${tier.name}</th>`)}</tr></thead><tbody>${value.namespaces.slice(0, 200).map((one) => html`<tr key=${one.namespace}><td>${place(one.namespace)}</td>${value.tiers.map((tier) => html`<td class="right" key=${tier.name}>${number(one.tiers[tier.name] || 0)}</td>`)}</tr>`)}</tbody></table></div>`}
    </div>`;
}

const Tier = ({ tier, about }) => html`<section class="panel tier"><h3>${tier.title || tier.name}</h3><b>${number(tier.count)}</b><span class="about"><span>${about}</span>${tier.limit > 0 && html`<span>at most ${number(tier.limit)} of a namespace</span>`}${tier.ram_bytes > 0 && html`<span>${bytes(tier.ram_bytes)} in RAM</span>`}</span></section>`;

function List({ answer, about, none }) {
  if (answer.error) return html`<${Problem} error=${answer.error} />`;
  if (!answer.value) return html`<${Loading} />`;
  if (!answer.value.turns.length) return html`<${Empty}>${none}<//>`;
  return html`<ul>${answer.value.turns.map((turn, index) => html`<li class="panel" key=${turn.id || index}>${turn.id ? html`<a class="clamp text" href=${`#/m/${turn.id}`}>${line(turn.content)}</a>` : html`<span class="clamp text">${line(turn.content)}</span>`}<span class="about">${about(turn)}</span></li>`)}</ul>`;
}
