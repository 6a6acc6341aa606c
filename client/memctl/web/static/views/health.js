// How the daemon is: what doctor finds with the commands that fix it (shown, not run), how quick it is, who is there.

import { report, run, say } from "../api.js";
import { badge, button, bytes, copy, count, dim, facts, head, html, link, list, listCounts, memories, ms, number, panel, place, show, span, state, table, time, useAnswer, useCall } from "../ui.js";

const LOOKS = { ok: "good", warn: "warn", fail: "bad" };
const some = (items, draw, none) => (items.length ? list(items, draw) : dim(none));
const finding = (one) => html`<p class="hit">${badge(one.state, LOOKS[one.state])} <b>${one.name}</b><br />${one.message}${one.fix && html`<br /><code>${one.fix}</code> ${button("copy", () => { copy(one.fix); say("Copied."); }, { class: "link" })}`}</p>`;
const findings = (all) => {
  const wrong = all.filter((one) => one.state !== "ok");
  return [dim(wrong.length ? `${number(wrong.length)} of ${count(all.length, "check")} found something.` : `All ${count(all.length, "check")} are well.`), list(wrong, finding)];
};
const latencies = (methods) => Object.entries(methods).sort((a, b) => b[1].calls - a[1].calls).slice(0, 14).map(([name, one]) => [name, number(one.calls), ms(one.p50_ms), ms(one.p95_ms), [one.errors && "lost", number(one.errors)]]);
const daemon = (now, stats) => facts([["version", now.version], ["runs for", span(now.uptime_s)], ["model", html`${now.model.name} ${state(now.model.state, "ready")} ${now.model.error}`], ["does not work", now.degraded.join(", ")],
  ["memories", `${number(now.memories)}${now.pending_embeddings ? `, ${number(now.pending_embeddings)} wait for a vector` : ""}`], ["RAM", bytes(now.rss_bytes)], ["database", html`${bytes(now.database_bytes)}<br /><span class="dim">${now.data_dir}</span>`],
  ["clock", now.clock?.state], ["waiting", listCounts(stats?.daemon?.queues || {}) || "nothing"]]);
const caller = (one) => html`${one.name || `process ${one.pid}`} <span class="dim">${count(one.calls, "call")}${one.token && `, token ${one.token}`}${one.subscriptions ? ", follows events" : ""}</span>`;
const token = (one) => html`<b>${one.name}</b> ${badge(one.role)} ${place(one.namespace)} <span class="dim">last used ${time(one.last_used_at)}</span>`;
const workspace = (one) => html`<b>${place(one.namespace)}</b> ${state(one.watching, "inotify")} ${count(one.files, "file")}, ${count(one.chunks, "part")}<br /><span class="dim">${one.root}</span>`;
const root = (one) => html`<b>${place(one.root)}</b> ${state(one.state, "ready")} ${one.error}<br /><span class="dim">${memories(one.memories)}, ${number(one.waiting)} wait, ${number(one.conflicts)} in conflict</span>`;
// Two versions of a memory: the first to reach the server, and the other one.
const conflict = ({ memory, other, machine, author }) => {
  const keep = (text, fields) => button(text, () => run("Resolved the conflict", "resolve_conflict", fields));
  return html`<div class="hit">${badge("conflict", "warn")} ${link(memory.id, memory.content)}<br />and, by ${author || "this machine"}${machine && ` on ${machine}`}, ${link(other.id, other.content)}
    <div class="acts">${keep("Keep the first", { id: memory.id })}${keep("Keep the second", { id: other.id })}${keep("Keep both", { id: memory.id, both: true })}</div></div>`;
};

export default function Health() {
  const status = useCall("status", {}), stats = useCall("stats", { reach: "all" }), tokens = useCall("list_tokens", {}), spaces = useCall("workspaces", {}), shares = useCall("sharing", {}), conflicts = useCall("shared_conflicts", {});
  const found = useAnswer(() => report("doctor"), []), every = [status, stats, tokens, spaces, shares, conflicts, found], none = (text, command) => html`${text} <code>${command}</code>`;
  return html`${head("Health", button("Look again", () => every.forEach((one) => one.reload())))}<div class="scroll"><div class="grid">
    ${panel("Findings", show(found, findings))}
    ${show(status, (now) => panel("Daemon", daemon(now, stats.value)))}
    ${show(stats, (all) => [panel("How quick", table("Latencies", ["Call", ">Calls", ">Median", ">95 %", ">Failed"], latencies(all.methods))),
      panel("Namespaces", some(Object.entries(all.by_namespace).slice(0, 30), ([name, many]) => html`${place(name)} <span class="dim">${number(many)}</span>`, "None holds a memory.")), all.daemon && panel("Connected", list(all.daemon.clients, caller))])}
    ${tokens.value && panel("Tokens", some(tokens.value.tokens, token, none("None. This binds an agent to a namespace:", "memctl token add")))}
    ${spaces.value && panel("Workspaces", some(spaces.value.workspaces, workspace, none("None. This indexes a folder of notes:", "memctl workspace add PATH")))}
    ${shares.value?.roots.length > 0 && panel("Shared with other machines", [list(shares.value.roots, root), list(conflicts.value?.conflicts || [], conflict)])}
  </div></div>`;
}
