// What runs by itself: when, how it went, what it would do now; a plan is applied as it was shown, and undone as a whole.

import { call, fail, run, undoAll } from "../api.js";
import { badge, button, count, dim, facts, head, html, link, list, listCounts, main, ms, number, panel, show, span, table, time, useCall, useState } from "../ui.js";

const LOOKS = { done: "good", failed: "bad", interrupted: "warn", quarantined: "bad", paused: "warn" };
const look = (text) => badge(text, LOOKS[text]);
const due = (job, at) => (!job.next_run_at ? "only when asked to" : job.next_run_at <= at ? "now" : `in ${span(job.next_run_at - at)}`);

export default function Jobs() {
  const jobs = useCall("jobs", {}, { kinds: ["job"] }), history = useCall("job_history", { limit: 30 }, { kinds: ["job"] }), [plan, open] = useState(null), [busy, work] = useState("");
  const attempt = async (name, what) => { work(name); await what; work(""); };
  const dryRun = ({ name }) => attempt(name, call("run_job", { name, dry_run: true, limit: 200 }).then(open, fail));
  const apply = () => attempt(plan.job, run(`${plan.job}: ${listCounts(plan.counts)}`, "run_job", { name: plan.job, plan: plan.plan }).then((found) => found && open(null)));
  const step = (one) => html`<div class="hit">${badge(one.action)} ${link(one.target, one.preview)}<br /><span class="dim">${one.reason}</span></div>`;
  const card = (job, at) => {
    const { name, last } = job, rests = job.state === "paused" || job.state === "quarantined", turn = rests ? "Resume" : "Pause";
    return panel(html`${name} ${look(job.state)}`, html`${dim(job.about)}
      ${facts([["next", due(job, at)], ["last", last ? html`${time(last.started_at)} ${look(last.outcome)} ${listCounts(last.counts)}` : "never"], ["why", last?.error]])}
      <div class="acts">${button(busy === name ? "Planning…" : "Plan", () => dryRun(job), { disabled: busy, "aria-label": `Plan ${name}` })}${button(turn, () => run(`${turn}d ${name}`, rests ? "resume_job" : "pause_job", { name }), { "aria-label": `${turn} ${name}` })}</div>`);
  };
  const row = (one) => [time(one.started_at), one.job, look(one.outcome), listCounts(one.counts) || one.error || "–", ms(one.took_ms), one.operation && button("Undo", () => undoAll([one.operation], `Undid the run of ${one.job}`))];
  return html`${head("Jobs")}<div class="scroll">
    ${plan && panel(`Plan of ${plan.job}: ${plan.total ? count(plan.total, "step") : "nothing to do"}`, html`
      ${plan.total > 0 && dim(`${listCounts(plan.counts)}. Nothing was changed yet. Each step is checked again when it is applied.`)}${list(plan.steps.slice(0, 100), step)}${plan.total > 100 && dim(`and ${number(plan.total - 100)} more`)}
      <div class="acts">${plan.total > 0 && button("Apply", apply, { ...main, disabled: busy })}${button("Close", () => open(null))}</div>`)}
    ${show(jobs, (all) => html`<div class="grid">${all.jobs.map((job) => card(job, all.at))}</div>`)}
    ${show(history, ({ runs }) => panel("Runs", runs.length ? table("Runs", ["When", "Job", "Outcome", "Did", ">Took", "Undo"], runs.map(row)) : dim("No job has run yet.")))}</div>`;
}
