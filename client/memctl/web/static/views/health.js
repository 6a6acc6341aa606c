// How the daemon is: what doctor finds with the commands that fix it (shown, not run), how quick it is, who is there.

import { report, say } from "../api.js";
import { badge, bytes, copy, count, dim, facts, Head, html, line, list, ms, number, panel, place, show, span, table, time, useAnswer, useCall } from "../ui.js";

const LOOKS = { ok: "good", warn: "warn", fail: "bad" };
const some = (items, draw, none) => (items.length ? list(items, draw) : dim(none));

export default function Health() {
  const status = useCall("status", {}), stats = useCall("stats", { reach: "all" }), tokens = useCall("list_tokens", {}), spaces = useCall("workspaces", {}), shares = useCall("sharing", {}), conflicts = useCall("shared_conflicts", {});
  const found = useAnswer(() => report("doctor"), []), every = [status, stats, tokens, spaces, shares, conflicts, found];
  const waits = (all) => Object.entries(all?.daemon?.queues || {}).filter(([, many]) => many).map(([name, many]) => `${number(many)} ${name}`).join(", ");
  const finding = (one) => html`<p class="hit">${badge(one.state, LOOKS[one.state])} <b>${one.name}</b><br />${one.message}${one.fix && html`<br /><code>${one.fix}</code> <button class="link" onClick=${() => { copy(one.fix); say("Copied."); }}>copy</button>`}</p>`;
  const quick = (all) => Object.entries(all.methods).sort((a, b) => b[1].calls - a[1].calls).slice(0, 14).map(([name, one]) => [name, number(one.calls), ms(one.p50_ms), ms(one.p95_ms), [one.errors ? "lost" : "", number(one.errors)]]);
  return html`<${Head} title="Health"><button onClick=${() => every.forEach((one) => one.reload())}>Look again</button><//><div class="scroll"><div class="grid">
    ${panel("Findings", found.loading ? dim("memctl doctor looks…") : show(found, (all) => {
      const wrong = all.filter((one) => one.state !== "ok");
      return [dim(wrong.length ? `${number(wrong.length)} of ${count(all.length, "check")} found something.` : `All ${count(all.length, "check")} are well.`), list(wrong, finding)];
    }))}
    ${show(status, (now) => panel("Daemon", facts([["version", now.version], ["runs for", span(now.uptime_s)], ["model", html`${now.model.name} ${badge(now.model.state, now.model.state === "ready" ? "good" : "warn")}${now.model.error}`], ["does not work", now.degraded.join(", ")],
      ["memories", `${number(now.memories)}${now.pending_embeddings ? `, ${number(now.pending_embeddings)} wait for a vector` : ""}`], ["RAM", bytes(now.rss_bytes)], ["database", html`${bytes(now.database_bytes)}<br /><span class="dim">${now.data_dir}</span>`], ["clock", now.clock?.state], ["waiting", waits(stats.value) || "nothing"]])))}
    ${show(stats, (all) => [panel("How quick", quick(all).length ? table("Latencies", ["Call", ">Calls", ">Median", ">95 %", ">Failed"], quick(all)) : dim("Nothing was called yet.")),
      panel("Namespaces", some(Object.entries(all.by_namespace).slice(0, 30), ([name, many]) => html`${place(name)} <span class="dim">${number(many)}</span>`, "None holds a memory.")),
      all.daemon && panel("Connected", list(all.daemon.clients, (one) => html`${one.name || `process ${one.pid}`} <span class="dim">${count(one.calls, "call")}${one.token && `, token ${one.token}`}${one.subscriptions ? ", follows events" : ""}</span>`))])}
    ${tokens.value && panel("Tokens", some(tokens.value.tokens, (one) => html`<b>${one.name}</b> ${badge(one.role)} ${place(one.namespace)} <span class="dim">last used ${time(one.last_used_at)}</span>`, html`None. <code>memctl token add</code> binds an agent to a namespace.`))}
    ${spaces.value && panel("Workspaces", some(spaces.value.workspaces, (one) => html`<b>${place(one.namespace)}</b> ${badge(one.watching, one.watching === "inotify" ? "good" : "warn")} ${count(one.files, "file")}, ${count(one.chunks, "part")}<br /><span class="dim">${one.root}</span>`, html`None. <code>memctl workspace add PATH</code> indexes a folder of notes.`))}
    ${shares.value?.roots.length > 0 && panel("Shared with other machines", [list(shares.value.roots, (one) => html`<b>${place(one.root)}</b> ${badge(one.state, one.state === "ready" ? "good" : "warn")} ${one.error}<br /><span class="dim">${count(one.memories, "memory", "memories")}, ${number(one.waiting)} wait, ${number(one.conflicts)} in conflict</span>`),
      list(conflicts.value?.conflicts || [], (one) => html`<p class="hit">${badge("conflict", "warn")} <a href=${`#/m/${one.memory.id}`}>${line(one.memory.content)}</a><br />and <a href=${`#/m/${one.other.id}`}>${line(one.other.content)}</a></p>`)])}
  </div></div>`;
}
