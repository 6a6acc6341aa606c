// Where memories are and how turns moved; the turns in L0; what was not kept, and why.

import { call, fail } from "../api.js";
import { about, badge, bytes, count, Empty, fixed, Head, html, line, number, place, Places, scope, short, show, table, tabs, time, useCall, useOn, useState } from "../ui.js";

const under = (flows, begin) => Object.entries(flows).filter(([name]) => name.startsWith(begin)).sort((a, b) => b[1] - a[1]);
const sum = (flows, begin) => under(flows, begin).reduce((all, [, many]) => all + many, 0);
const card = (title, many, text) => html`<section class="panel tier"><h2 class="small">${title}</h2><b>${number(many)}</b>${text}</section>`;
const arrow = (many, text) => html`<div class="arrow"><b>${number(many)}</b>${text}</div>`;
const HOOKS = html`No turn is in L0: nothing was observed lately. Hooks observe what is said to an agent: <code>memctl hooks install claude-code</code>.`;

export default function Tiers() {
  const [namespace, choose] = useState(""), [shown, open] = useState("L0"), where = scope(namespace);
  const report = useCall("tiers", where), turns = useCall(shown === "skipped" ? "skipped" : "turns", { ...where, limit: 200 });
  const observing = useCall("get_observing", {}), pauses = observing.value?.pauses || [], paused = pauses.some((one) => one.kind === "namespace" && one.name === (namespace === "/" ? "" : namespace));
  const pause = async (method, { kind, name }) => { try { observing.set(await call(method, { kind, name })); } catch (error) { fail(error); } };
  useOn("changed", report.reload);
  useOn("event", (event) => { if (["observed", "promoted", "dropped", "job", "moved"].includes(event.kind)) { report.reload(); turns.reload(); } });
  return html`<${Head} title="Tiers"><${Places} value=${namespace} change=${choose} />${!paused && html`<button onClick=${() => pause("pause_observing", { kind: "namespace", name: namespace === "/" ? "" : namespace })}>Pause observing ${namespace && namespace !== "/" ? namespace : "everywhere"}</button>`}<//><div class="scroll">
    ${pauses.map((one) => html`<p class="panel about">Nothing is observed in ${one.kind === "namespace" && !one.name ? "any namespace" : `the ${one.kind} ${one.name}`}. ${one.since ? html`<button onClick=${() => pause("resume_observing", one)}>Observe again</button>` : "The settings say so: [observe] never."}</p>`)}
    ${show(report, ({ tiers, flows, waiting, nodes, namespaces }) => {
    const of = Object.fromEntries(tiers.map((tier) => [tier.name, tier]));
    const tier = (name, text) => card(of[name].title || name, of[name].count, about(text, of[name].limit > 0 && `at most ${number(of[name].limit)} of a namespace`, of[name].ram_bytes > 0 && `${bytes(of[name].ram_bytes)} in RAM`));
    const each = (pairs) => pairs.slice(0, 4).map(([name, many]) => about(number(many), name.replace("skipped: ", "")));
    const busy = Object.entries(waiting).filter(([, many]) => many);
    return html`<div class="flow">${arrow(flows.observed || 0, "observed")}${tier("L0", "the last turns of each namespace")}${arrow(sum(flows, "gone: job:"), "became memories")}
        ${tier("L1", "recent: what was added, important turns")}${arrow(of.L2.count, "older, or less important")}${tier("L2", `registry with ${count(nodes, "node")}`)}</div>
      <div class="flow">${tier("hot", "what searches returned lately")}${tier("documents", "parts of files in workspaces")}${card("Not kept", sum(flows, "skipped: "), each(under(flows, "skipped: ")))}
        ${busy.length > 0 && card("Waiting", busy.reduce((all, [, many]) => all + many, 0), each(busy))}</div>
      ${tabs("Turns", [["L0", "Turns in L0"], ["skipped", "Skipped, and why"], ["places", "By namespace"]], shown, open)}
      ${shown === "places" ? table("By namespace", ["Namespace", ...tiers.map(({ name }) => `>${name}`)], namespaces.slice(0, 200).map((one) => [place(one.namespace), ...tiers.map(({ name }) => number(one.tiers[name]))]))
        : show(turns, (found) => (found.turns.length ? found.turns.map((turn) => html`<article class="panel">${turn.id ? html`<a class="clamp text" href=${`#/m/${turn.id}`}>${line(turn.content)}</a>` : html`<span class="clamp text">${line(turn.content)}</span>`}
          ${about(turn.reason && badge(turn.reason, "warn"), badge(turn.role), turn.importance !== undefined && `${turn.judged ? "" : "first guess: "}importance ${fixed(turn.importance, 2)}`, turn.speaker, place(turn.namespace), turn.session && `session ${short(turn.session)}`, time(turn.created_at || turn.at))}</article>`)
          : html`<${Empty}>${shown === "L0" ? HOOKS : "Nothing was skipped."}<//>`))}`;
  })}</div>`;
}
