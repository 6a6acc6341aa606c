// How the daemon is: what is under way, what doctor finds with the commands that fix it (shown, not run), how quick it is.

import { readFindings } from "../api.js";
import { show, useAnswer, useCalls, useEffect } from "../hooks.js";
import { about, badge, bar, button, dim, facts, head, html, list, panel, table, time } from "../parts.js";
import { count, counts, duration, memories, ms, number, place, size } from "../text.js";

const AGAIN_MS = 2000;
const [METHODS, NAMESPACES] = [14, 30]; // shown
const LOOKS = { ok: "good", warn: "warn", fail: "bad" };
const WAITING = {
  rate: "Turns are rated",
  embed: "Turns get their vectors",
  compare: "Turns and memories are compared with what is saved",
  condense: "Long texts are condensed",
  summary: "Conversations that rest or end are summed up",
  extract: "Facts are drawn from conversations that rest or end",
};
const state = (text, good) => badge(text, text === good ? "good" : "warn");

export default function State({ menu }) {
  const progress = useCalls([["status"], ["jobs"], ["tiers", { reach: "all" }]]);
  const findings = useAnswer(readFindings, []);
  const machine = useCalls([["status"], ["stats", { reach: "all" }], ["list_tokens"], ["workspaces"]]);
  useEffect(() => {
    const beat = setInterval(() => document.hidden || progress.reload(), AGAIN_MS);
    return () => clearInterval(beat);
  }, []);
  const again = () => {
    findings.reload();
    machine.reload();
  };
  return html`${head("Health", button("Look again", again))}
    <div class="scroll">${menu}<div class="grid">${show(progress, showProgress)}${show(findings, showFindings)}${show(machine, showMachine)}</div></div>`;
}

// Under way -----------------------------------------------------------------------------------------------------------

// What is under way, each with how far it is as far as that is known.
function showProgress([status, { jobs, at }, { waiting, resting }]) {
  const running = jobs.filter((job) => job.state === "running");
  const queue = Object.entries({ ...waiting, ...resting }).filter(([, many]) => many);
  const steps = [
    ...listVectors(status),
    ...running.map((job) => showJob(job, at)),
    ...queue.map(([name, many]) => step(WAITING[name] || name, `${count(many, "turn")} to go`)),
  ];
  return panel("Under way", steps.length ? steps : dim("Nothing: everything that was stored can be found."));
}

const step = (title, far, share) =>
  html`<div class="hit said">${title}${share === undefined ? "" : bar(share)}${about(far)}</div>`;
const stepOf = (title, done, total) => step(title, `${number(done)} of ${number(total)}`, done / Math.max(total, 1));

function showJob(job, now) {
  const runs = duration(Math.max(now - (job.last_run_at || now), 0));
  return step(`The job ${job.name}: ${job.about}`, `for ${runs} now, at most ${duration(job.deadline_s)}`);
}

// How far the model is, and the vectors of texts.
function listVectors({ model, memories: total, pending_embeddings: waiting }) {
  const steps = [];
  const doing = { fetching: "fetched", loading: "loaded" }[model.state];
  if (doing) steps.push(step(`The model ${model.name} is being ${doing}`, "words find all meanwhile"));
  const all = model.reembedding;
  if (all) steps.push(stepOf("All texts get vectors of another model", all.done, all.total));
  if (waiting) steps.push(stepOf("Texts get their vectors", Math.max(total - waiting, 0), Math.max(total, waiting)));
  return steps;
}

// Findings ------------------------------------------------------------------------------------------------------------

function showFindings(found) {
  const wrong = found.filter((one) => one.state !== "ok");
  const checks = count(found.length, "check");
  const said = wrong.length ? `${wrong.length} of ${checks} found something.` : `${checks} found nothing.`;
  return panel("Findings", dim(said), wrong.map(showFinding));
}

const showFinding = (one) =>
  html`<p class="hit">${badge(one.state, LOOKS[one.state])} <b>${one.name}</b><br />${one.message}
    ${one.fix && html`<br /><code>${one.fix}</code>`}</p>`;

// The machine ---------------------------------------------------------------------------------------------------------

function showMachine([status, stats, { tokens }, { workspaces }]) {
  const largest = Object.entries(stats.by_namespace)
    .sort((a, b) => b[1] - a[1])
    .slice(0, NAMESPACES);
  const sizes = list(largest, ([name, many]) => html`${place(name)} <span class="dim">${number(many)}</span>`);
  const clients = stats.daemon?.clients || [];
  const noToken = dim("None binds an agent to a namespace: ", html`<code>memctl token add</code>`);
  const noFolder = dim("No folder of notes is indexed: ", html`<code>memctl workspace add PATH</code>`);
  return html`${panel("Daemon", showDaemon(status, stats))}${panel("How quick", showMethods(stats.methods))}
    ${panel("Namespaces", largest.length ? sizes : dim("None holds a memory."))}
    ${panel("Connected", list(clients, showClient))}
    ${panel("Tokens", tokens.length ? list(tokens, showToken) : noToken)}
    ${panel("Workspaces", workspaces.length ? list(workspaces, showWorkspace) : noFolder)}`;
}

function showDaemon(status, stats) {
  const { model, pending_embeddings: waiting } = status;
  const held = `${memories(status.memories)}${waiting ? `, ${number(waiting)} wait for a vector` : ""}`;
  return facts([
    ["version", status.version],
    ["runs for", duration(status.uptime_s)],
    ["model", [model.name, " ", state(model.state, "ready"), " ", model.error]],
    ["does not work", status.degraded.join(", ")],
    ["holds", held],
    ["RAM", size(status.rss_bytes)],
    ["database", [size(status.database_bytes), html`<br />`, html`<span class="dim">${status.data_dir}</span>`]],
    ["clock", status.clock?.state],
    ["waiting", counts(stats.daemon?.queues || {}) || "nothing"],
  ]);
}

function showMethods(methods) {
  const most = Object.entries(methods)
    .sort((a, b) => b[1].calls - a[1].calls)
    .slice(0, METHODS);
  const rows = most.map(([name, one]) => [name, number(one.calls), ms(one.p50_ms), ms(one.p95_ms), number(one.errors)]);
  return table("Latencies", ["Call", ">Calls", ">Median", ">95 %", ">Failed"], rows);
}

function showClient(one) {
  const more = [count(one.calls, "call"), one.token && `token ${one.token}`, one.subscriptions > 0 && "follows events"];
  return html`${one.name || `process ${one.pid}`} <span class="dim">${more.filter(Boolean).join(", ")}</span>`;
}

const showToken = (token) =>
  html`<b>${token.name}</b> ${badge(token.role)} ${place(token.namespace)} ${" "}
    <span class="dim">last used ${time(token.last_used_at)}</span>`;

const showWorkspace = (one) =>
  html`<b>${place(one.namespace)}</b> ${state(one.watching, "inotify")} ${count(one.files, "file")},
    ${" "}${count(one.chunks, "part")}<br /><span class="dim">${one.root}</span>`;
