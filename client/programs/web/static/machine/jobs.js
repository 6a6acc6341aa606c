// What runs by itself: when, how it went, what it would do now; a plan is applied as it was shown, and undone as a whole.

import { run, undoAll } from "../api.js";
import { show, useCall, useState } from "../hooks.js";
import { badge, button, dim, facts, head, html, panel, row, table, time } from "../parts.js";
import { count, counts, duration, ms, number } from "../text.js";

const LOOKS = { done: "good", failed: "bad", interrupted: "warn", quarantined: "bad", paused: "warn" };
const HEADS = ["When", "Job", "Outcome", "Did", ">Took", "Undo"];
const [RUNS, STEPS] = [30, 100]; // shown
const look = (word) => badge(word, LOOKS[word] || "");

export default function Jobs({ menu }) {
  const [planned, plan] = useState("");
  const answer = useCall("jobs", { limit: RUNS }, { kinds: ["job"] });
  return html`${head("Health")}<div class="scroll">${menu}
    ${planned && html`<${Plan} key=${planned} job=${planned} close=${() => plan("")} />`}
    ${show(
      answer,
      ({ jobs, at, runs }) => html`<div class="grid">${jobs.map((job) => showJob(job, at, plan))}</div>
      ${panel("Runs", runs.length ? table("Runs", HEADS, runs.map(showRun)) : dim("No job has run yet."))}`,
    )}</div>`;
}

function showJob(job, now, plan) {
  const { name, last } = job;
  const ran = last && [time(last.started_at), " ", look(last.outcome), " ", counts(last.counts)];
  const rests = ["paused", "quarantined"].includes(job.state);
  const turn = (method, back, said) =>
    run(`${said} ${name}`, method, { name }, () => turn(back, method, said === "Paused" ? "Resumed" : "Paused"));
  const pause = () => turn("pause_job", "resume_job", "Paused");
  const resume = () => turn("resume_job", "pause_job", "Resumed");
  return panel(
    html`${name} ${look(job.state)}`,
    dim(job.about),
    facts([
      ["next", showDue(job, now)],
      ["last", ran || "never"],
      ["why", last?.error],
    ]),
    html`<div class="acts">${button(`Plan ${name}`, () => plan(name))}
      ${rests ? button(`Resume ${name}`, resume) : button(`Pause ${name}`, pause)}</div>`,
  );
}

function showDue(job, now) {
  if (!job.next_run_at) return "only when asked to";
  return job.next_run_at <= now ? "now" : `in ${duration(job.next_run_at - now)}`;
}

function showRun(one) {
  const undo = () => undoAll([one.operation], `Undid the run of ${one.job}`);
  const did = counts(one.counts) || one.error || "–";
  return [
    time(one.started_at),
    one.job,
    look(one.outcome),
    did,
    ms(one.took_ms),
    one.operation && button("Undo", undo),
  ];
}

// What a job would do now, step by step.
function Plan({ job, close }) {
  const answer = useCall("run_job", { name: job, dry_run: true, limit: STEPS });
  return show(answer, ({ plan, total, counts: numbers, steps }) => {
    if (!total) return panel(`Plan of ${job}: nothing to do`, html`<div class="acts">${button("Close", close)}</div>`);
    const apply = () => run(`${job}: ${counts(numbers)}`, "run_job", { name: job, plan });
    const more = total - steps.length;
    return panel(
      `Plan of ${job}: ${count(total, "step")}`,
      dim(`${counts(numbers)}. Nothing was changed yet. Each step is checked again when it is applied.`),
      steps.map(showStep),
      more > 0 && dim(`and ${number(more)} more`),
      html`<div class="acts">${button("Apply", apply)}${button("Close", close)}</div>`,
    );
  });
}

function showStep({ action, target, preview, reason }) {
  const text = preview || target;
  const isMemory = /^[0-9a-f]{32}$/.test(target);
  return html`<div class="hit">${badge(action)} ${isMemory ? row(target, text) : text}<br /><span class="dim">${reason}</span></div>`;
}
