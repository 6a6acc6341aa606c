// How the daemon is: what doctor finds with the commands that fix it (shown, not run), how quick it is, who is there.

import { report } from "../api.js";
import { Badge, Head, Loading, Problem, Time, bytes, copy, count, html, ms, number, place, span, useAnswer, useCall } from "../ui.js";
import { say } from "../api.js";

const LOOKS = { ok: "good", warn: "warn", fail: "bad" };

export default function Health() {
  const status = useCall("status", {}), stats = useCall("stats", { reach: "all" }), tokens = useCall("list_tokens", {}), spaces = useCall("workspaces", {});
  const found = useAnswer(() => report("doctor"), []);
  const reload = () => [status, stats, tokens, spaces, found].forEach((one) => one.reload());
  const now = status.value, all = stats.value, daemon = all?.daemon;
  const wrong = (found.value || []).filter((one) => one.state !== "ok");
  const quick = Object.entries(all?.methods || {}).sort((a, b) => b[1].calls - a[1].calls).slice(0, 14);
  return html`<${Head} title="Health"><button onClick=${reload}>Look again</button><//>
    <div class="scroll">${status.error && html`<${Problem} error=${status.error} />`}
      <div class="grid">
      <section class="panel"><h2>Findings</h2>${found.loading && html`<p class="dim">memctl doctor looks at everything…</p>`}${found.error && html`<${Problem} error=${found.error} />`}
        ${found.value && !found.loading && html`<p class="dim">${wrong.length ? `${number(wrong.length)} of ${count(found.value.length, "check")} found something.` : `All ${count(found.value.length, "check")} are well.`}</p>
        <ul>${wrong.map((one) => html`<li key=${one.name} class="hit"><${Badge} kind=${LOOKS[one.state]}>${one.state}<//> <b>${one.name}</b><br />${one.message}${one.fix && html`<br /><code>${one.fix}</code> <button class="link" onClick=${() => { copy(one.fix); say("Copied."); }}>copy</button>`}</li>`)}</ul>`}</section>
      ${now && html`<section class="panel"><h2>Daemon</h2><dl class="facts"><dt>version</dt><dd>${now.version}</dd><dt>runs for</dt><dd>${span(now.uptime_s)}</dd><dt>model</dt><dd>${now.model.name} <${Badge} kind=${now.model.state === "ready" ? "good" : "warn"}>${now.model.state}<//>${now.model.error && html`<br />${now.model.error}`}</dd>
        ${now.degraded.length > 0 && html`<dt>does not work</dt><dd class="lost">${now.degraded.join(", ")}</dd>`}<dt>memories</dt><dd>${number(now.memories)}${now.pending_embeddings > 0 ? `, ${number(now.pending_embeddings)} wait for a vector` : ""}</dd><dt>memory in use</dt><dd>${bytes(now.rss_bytes)}</dd><dt>database</dt><dd>${bytes(now.database_bytes)}<br /><span class="dim">${now.data_dir}</span></dd>
        <dt>clock</dt><dd>${now.clock?.state || "–"}</dd><dt>waiting</dt><dd>${Object.entries(daemon?.queues || {}).filter(([, many]) => many).map(([name, many]) => `${number(many)} ${name}`).join(", ") || "nothing"}</dd></dl></section>`}
      ${!now && !status.error && html`<${Loading} />`}
      ${all && html`<section class="panel"><h2>How quick</h2>${quick.length ? html`<div class="wide" tabindex="0" role="region" aria-label="Latencies"><table><thead><tr><th>Call</th><th class="right">Calls</th><th class="right">Median</th><th class="right">95 %</th><th class="right">Failed</th></tr></thead><tbody>${quick.map(([name, one]) => html`<tr key=${name}><td>${name}</td><td class="right">${number(one.calls)}</td><td class="right">${ms(one.p50_ms)}</td><td class="right">${ms(one.p95_ms)}</td><td class=${`right ${one.errors ? "lost" : ""}`}>${number(one.errors)}</td></tr>`)}</tbody></table></div>` : html`<p class="dim">Nothing was called yet.</p>`}</section>
      <section class="panel"><h2>Namespaces</h2>${Object.keys(all.by_namespace).length ? html`<ul class="facts">${Object.entries(all.by_namespace).slice(0, 30).map(([name, many]) => html`<li class="right" key=${name}>${number(many)}</li><li>${place(name)}</li>`)}</ul>` : html`<p class="dim">None holds a memory.</p>`}</section>`}
      ${daemon && html`<section class="panel"><h2>Connected</h2><ul>${daemon.clients.map((one) => html`<li key=${`${one.pid} ${one.since}`}>${one.name || `process ${one.pid}`} <span class="dim">${count(one.calls, "call")}${one.token ? `, token ${one.token}` : ""}${one.subscriptions ? ", follows events" : ""}</span></li>`)}</ul></section>`}
      ${tokens.value && html`<section class="panel"><h2>Tokens</h2>${tokens.value.tokens.length ? html`<ul>${tokens.value.tokens.map((one) => html`<li key=${one.name}><b>${one.name}</b> <${Badge}>${one.role}<//> ${place(one.namespace)} <span class="dim">last used <${Time} at=${one.last_used_at} /></span></li>`)}</ul>` : html`<p class="dim">None. <code>memctl token add</code> binds an agent to a namespace.</p>`}</section>`}
      ${spaces.value && html`<section class="panel"><h2>Workspaces</h2>${spaces.value.workspaces.length ? html`<ul>${spaces.value.workspaces.map((one) => html`<li key=${one.namespace}><b>${place(one.namespace)}</b> <${Badge} kind=${one.watching === "inotify" ? "good" : "warn"}>${one.watching}<//> ${count(one.files, "file")}, ${count(one.chunks, "part")}<br /><span class="dim">${one.root}</span></li>`)}</ul>` : html`<p class="dim">None. <code>memctl workspace add PATH</code> indexes a folder of notes.</p>`}</section>`}
      </div></div>`;
}
