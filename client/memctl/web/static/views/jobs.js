// What runs by itself: when, how it went, what it would do now; a plan is applied as it was shown, and undone as a whole.

import { call, emit, fail, note, undoAll } from "../api.js";
import { badge, count, dim, facts, Head, html, line, list, ms, number, panel, short, show, span, table, time, useCall, useOn, useState } from "../ui.js";

const LOOKS = { done: "good", failed: "bad", interrupted: "warn", quarantined: "bad", paused: "warn" };
const counts = (run) => Object.entries(run.counts).filter(([, many]) => many).map(([name, many]) => `${number(many)} ${name.replaceAll("_", " ")}`).join(", ");
const rests = (job) => job.state === "paused" || job.state === "quarantined";

export default function Jobs() {
  const jobs = useCall("jobs", {}), history = useCall("job_history", { limit: 30 });
  const [plan, open] = useState(null), [busy, work] = useState("");
  const reload = () => { jobs.reload(); history.reload(); };
  useOn("changed", reload);
  useOn("event", (event) => event.kind === "job" && reload());
  const attempt = async (name, what) => { work(name); try { await what(); } catch (error) { fail(error); } work(""); reload(); };
  const dryRun = (job) => attempt(job.name, async () => open(await call("run_job", { name: job.name, dry_run: true, limit: 200 })));
  const apply = () => attempt(plan.job, async () => {
    const run = await call("run_job", { name: plan.job, plan: plan.plan }), did = `${run.job}: ${counts(run) || run.outcome}`;
    open(null);
    if (run.operation) note(did, [run.operation]); else emit("toast", { text: did });
  });
  const due = (job, at) => (!job.next_run_at ? "only when asked to" : job.next_run_at <= at ? "now" : `in ${span(job.next_run_at - at)}`);
  return html`<${Head} title="Jobs" /><div class="scroll">
    ${plan && panel(`Plan of ${plan.job}: ${plan.total ? count(plan.total, "step") : "nothing to do"}`, html`
      ${plan.total > 0 && dim(`${counts(plan)}. Nothing was changed yet. Each step is checked again when it is applied.`)}
      ${list(plan.steps.slice(0, 100), (step) => html`<div class="hit">${badge(step.action)} <a href=${`#/m/${step.target}`}>${line(step.preview) || short(step.target)}</a><br /><span class="dim">${step.reason}</span></div>`)}
      ${plan.total > 100 && dim(`and ${number(plan.total - 100)} more`)}
      <div class="acts">${plan.total > 0 && html`<button class="main" disabled=${Boolean(busy)} onClick=${apply}>Apply</button>`}<button onClick=${() => open(null)}>Close</button></div>`)}
    ${show(jobs, (all) => html`<div class="grid">${all.jobs.map((job) => panel(html`${job.name} ${badge(job.state, LOOKS[job.state])}`, html`${dim(job.about)}
      ${facts([["next", due(job, all.at)], ["last", job.last ? html`${time(job.last.started_at)} ${badge(job.last.outcome, LOOKS[job.last.outcome])} ${counts(job.last)}` : "never"], ["why", job.last?.error]])}
      <div class="acts"><button disabled=${Boolean(busy)} aria-label=${`Plan ${job.name}`} onClick=${() => dryRun(job)}>${busy === job.name ? "Planning…" : "Plan"}</button>
        <button aria-label=${`${rests(job) ? "Resume" : "Pause"} ${job.name}`} onClick=${() => attempt(job.name, () => call(rests(job) ? "resume_job" : "pause_job", { name: job.name }))}>${rests(job) ? "Resume" : "Pause"}</button></div>`))}</div>`)}
    ${show(history, ({ runs }) => panel("Runs", runs.length ? table("Runs", ["When", "Job", "Outcome", "Did", ">Took", "Undo"], runs.map((run) => [time(run.started_at), run.job, badge(run.outcome, LOOKS[run.outcome]), counts(run) || run.error || "–", ms(run.took_ms),
      run.operation && html`<button onClick=${() => undoAll([run.operation], `Undid the run of ${run.job}`)}>Undo</button>`])) : dim("No job has run yet.")))}</div>`;
}
