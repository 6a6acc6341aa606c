// What runs by itself: when, how it went, what it would do now; a plan is applied as it was shown, and undone as a whole.

import { call, emit, fail, note, undoAll } from "../api.js";
import { Badge, Head, Loading, Problem, Time, count, html, line, ms, number, short, span, useCall, useOn, useState } from "../ui.js";

const LOOKS = { done: "good", failed: "bad", interrupted: "warn", quarantined: "bad", paused: "warn" };
const counts = (run) => Object.entries(run.counts).filter(([, many]) => many).map(([name, many]) => `${number(many)} ${name.replaceAll("_", " ")}`).join(", ");

export default function Jobs({ where }) {
  const name = where.rest[0] || "", jobs = useCall("jobs", {}), history = useCall("job_history", { limit: 30, ...(name ? { name } : {}) });
  const [plan, show] = useState(null), [busy, work] = useState("");
  const reload = () => { jobs.reload(); history.reload(); };
  useOn("changed", reload);
  useOn("event", (event) => event.kind === "job" && reload());
  const attempt = async (text, what) => { work(text); try { await what(); } catch (error) { fail(error); } work(""); reload(); };
  const dryRun = (job) => attempt(job.name, async () => show(await call("run_job", { name: job.name, dry_run: true, limit: 200 })));
  const apply = () => attempt(plan.job, async () => { const run = await call("run_job", { name: plan.job, plan: plan.plan }); show(null); done(run); });
  const done = (run) => (run.operation ? note(`${run.job}: ${counts(run) || run.outcome}`, [run.operation]) : emit("toast", { text: `${run.job}: ${run.outcome}${counts(run) ? `, ${counts(run)}` : ", nothing to do"}` }));
  const pause = (job) => attempt(job.name, () => call(job.state === "paused" || job.state === "quarantined" ? "resume_job" : "pause_job", { name: job.name }));
  const { value, error } = jobs;
  return html`<${Head} title="Jobs" />
    <div class="scroll">${error && html`<${Problem} error=${error} />`}${!value && !error && html`<${Loading} />`}
      ${plan && html`<section class="panel" role="region" aria-label="Plan"><h2>Plan of ${plan.job}: ${plan.total ? count(plan.total, "step") : "nothing to do"}</h2>
        ${plan.total > 0 && html`<p class="dim">${counts(plan)}. Nothing was changed yet. Each step is checked again when it is applied.</p>`}
        <ul>${plan.steps.slice(0, 100).map((step, index) => html`<li key=${index} class="hit"><${Badge}>${step.action}<//> <a href=${`#/m/${step.target}`}>${line(step.preview) || short(step.target)}</a><br /><span class="dim">${step.reason}</span></li>`)}</ul>
        ${plan.total > 100 && html`<p class="dim">and ${number(plan.total - 100)} more</p>`}
        <div class="acts">${plan.total > 0 && html`<button class="main" disabled=${Boolean(busy)} onClick=${apply}>Apply</button>`}<button onClick=${() => show(null)}>Close</button></div></section>`}
      ${value && html`<div class="grid">${value.jobs.map((job) => html`<section class="panel" key=${job.name}><h2>${job.name} <${Badge} kind=${LOOKS[job.state] || ""}>${job.state}<//></h2><p class="dim">${job.about}</p>
        <dl class="facts"><dt>next</dt><dd>${job.next_run_at ? (job.next_run_at <= value.at ? "now" : `in ${span(job.next_run_at - value.at)}`) : "only when asked to"}</dd>
          <dt>last</dt><dd>${job.last ? html`<${Time} at=${job.last.started_at} /> <${Badge} kind=${LOOKS[job.last.outcome] || ""}>${job.last.outcome}<//> ${counts(job.last)}` : "never"}</dd>${job.last?.error && html`<dt>why</dt><dd class="lost">${job.last.error}</dd>`}</dl>
        <div class="acts"><button disabled=${Boolean(busy)} onClick=${() => dryRun(job)}>${busy === job.name ? "Planning…" : "Plan"}</button><button onClick=${() => pause(job)}>${job.state === "paused" || job.state === "quarantined" ? "Resume" : "Pause"}</button></div></section>`)}</div>`}
      ${history.value && html`<section class="panel"><h2>Runs</h2>${!history.value.runs.length && html`<p class="dim">No job has run yet.</p>`}
        ${history.value.runs.length > 0 && html`<div class="wide" tabindex="0" role="region" aria-label="Runs"><table><thead><tr><th>When</th><th>Job</th><th>Outcome</th><th>Did</th><th class="right">Took</th><th></th></tr></thead><tbody>${history.value.runs.map((run) => html`<tr key=${run.run}><td><${Time} at=${run.started_at} /></td><td>${run.job}</td><td><${Badge} kind=${LOOKS[run.outcome] || ""}>${run.outcome}<//></td><td>${counts(run) || run.error || "–"}</td><td class="right">${ms(run.took_ms)}</td>
          <td>${run.operation && html`<button onClick=${() => undoAll([run.operation], `Undid the run of ${run.job}`)}>Undo</button>`}</td></tr>`)}</tbody></table></div>`}</section>`}
    </div>`;
}
