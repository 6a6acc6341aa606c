// Where memories are and how turns moved; the turns in L0; what was not kept, and why; what other machines share.

import { run } from "../api.js";
import { about, badge, button, bytes, count, empty, fixed, head, html, line, link, listCounts, named, number, place, Places, scope, session, show, table, tabs, time, useCall, useState } from "../ui.js";

const MOVES = ["observed", "promoted", "dropped", "job", "moved"];
const HOOKS = html`No turn is in L0: nothing was observed lately. Hooks observe what is said to an agent: <code>memctl hooks install claude-code</code>.`;
const ABOUT = { L0: "the last turns of each namespace", hot: "what searches returned lately", L1: "recent: what was added, important turns", L2: "the rest, for good", documents: "parts of files in workspaces", L3: "shared with other machines" };
const card = (title, many, text) => html`<section class="panel tier"><h2 class="small">${title}</h2><b>${number(many)}</b>${text}</section>`;
const arrow = (many, text) => html`<div class="arrow"><b>${number(many)}</b>${text}</div>`;
const each = (counts) => Object.entries(counts).sort((a, b) => b[1] - a[1]).map(([name, many]) => html`<div class="dim">${number(many)} ${name}</div>`);
const sum = (counts) => Object.values(counts).reduce((all, many) => all + many, 0);

export default function Tiers() {
  const [chosen, choose] = useState(""), [tab, open] = useState("L0"), where = scope(chosen), name = named(chosen);
  const report = useCall("tiers", where, { kinds: MOVES }), turns = useCall(tab === "skipped" ? "skipped" : "turns", { ...where, limit: 200 }, { kinds: MOVES }), sharing = useCall("sharing", {});
  const observing = useCall("get_observing", {}), pauses = observing.value?.pauses || [], paused = pauses.some((one) => one.kind === "namespace" && one.name === name);
  const pause = (on, { kind, name }) => run(on ? "Observing is paused" : "Observing goes on", on ? "pause_observing" : "resume_observing", { kind, name }, () => pause(!on, { kind, name }));
  const turn = (one) => html`<article class="panel">${one.id ? link(one.id, one.content, { class: "clamp text", "data-row": one.id }) : html`<span class="clamp text">${line(one.content)}</span>`}
    ${about(one.reason && badge(one.reason, "warn"), badge(one.role), one.importance !== undefined && `${one.judged ? "" : "first guess: "}importance ${fixed(one.importance, 2)}`, one.speaker, place(one.namespace), session(one.session), time(one.created_at || one.at))}</article>`;
  const draw = ({ tiers, flows, waiting, heard, nodes, namespaces }) => {
    const of = Object.fromEntries(tiers.map((one) => [one.name, one])), begin = (text) => Object.fromEntries(Object.entries(flows).filter(([key]) => key.startsWith(text)).map(([key, many]) => [key.slice(text.length), many]));
    const tier = (key, more) => card(of[key].title || key, of[key].count, html`<div class="dim">${ABOUT[key]}${more}${of[key].ram_bytes > 1000 && `, ${bytes(of[key].ram_bytes)} in RAM`}</div>`);
    const skipped = begin("skipped: "), wait = { ...waiting, ...heard }, roots = sharing.value?.roots || [], total = (field) => roots.reduce((all, root) => all + root[field], 0);
    return html`<div class="flow">${arrow(flows.observed, "observed")}${tier("L0")}${arrow(sum(begin("gone: job:")), "became memories")}${tier("L1")}${arrow(of.L2.count, "older, or less important")}${tier("L2", `, ${count(nodes, "node")}`)}
        ${of.L3 && [arrow(total("pushed"), "pushed"), tier("L3", ` (${roots.map((root) => place(root.root)).join(", ")})`), arrow(total("pulled"), "pulled")]}</div>
      <div class="flow">${tier("hot")}${tier("documents")}${card("Not kept", sum(skipped), each(skipped))}${sum(wait) > 0 && card("Waiting", sum(wait), html`<div class="dim">${listCounts(wait)}</div>`)}
        ${total("waiting") + total("conflicts") > 0 && card("Not yet shared", total("waiting"), html`<div class="dim">changes wait; ${number(total("conflicts"))} in conflict: <a href="#/health">Health</a></div>`)}</div>
      ${tabs("Turns", [["L0", "Turns in L0"], ["skipped", "Skipped, and why"], ["places", "By namespace"]], tab, open)}
      ${tab === "places" ? table("By namespace", ["Namespace", ...tiers.map((one) => `>${one.name}`)], namespaces.slice(0, 200).map((one) => [place(one.namespace), ...tiers.map((other) => number(one.tiers[other.name]))]))
        : show(turns, (found) => (found.turns.length ? found.turns.map(turn) : empty(tab === "L0" ? HOOKS : "Nothing was skipped.")))}`;
  };
  return html`${head("Tiers", html`<${Places} value=${chosen} change=${choose} />`, !paused && button(`Pause observing ${name || "everywhere"}`, () => pause(true, { kind: "namespace", name })))}<div class="scroll">
    ${pauses.map((one) => html`<p class="panel about">Nothing is observed in ${one.kind === "namespace" && !one.name ? "any namespace" : `the ${one.kind} ${one.name}`}. ${one.since ? button("Observe again", () => pause(false, one)) : "The settings say so: [observe] never."}</p>`)}
    ${show(report, draw)}</div>`;
}
