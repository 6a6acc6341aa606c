"""What runs by itself: when, how it went, what it would do now."""

import asyncio
import re
from collections.abc import Mapping

from memoryd.client.programs.memctl.table import count_text, duration_text, ms_text, to_one_line
from memoryd.client.programs.web.reports import parts
from memoryd.client.protocol import Job, JobHistory, JobRun, Jobs, PlannedStep, RunJob
from memoryd.client.transport.aio import AsyncClient

_LOOKS = {"done": "good", "failed": "bad", "interrupted": "warn", "quarantined": "bad", "paused": "warn"}
_HEADS = ("When", "Job", "Outcome", "Did", ">Took", "Undo")
_RUNS, _STEPS = 30, 100  # shown
_MEMORY = re.compile("[0-9a-f]{32}")


async def read_jobs(client: AsyncClient, query: Mapping[str, str]) -> parts.Part:
    """Return each job with what can be done with it, and the latest runs."""
    jobs, history = await asyncio.gather(client.call(Jobs()), client.call(JobHistory(limit=_RUNS)))
    runs = parts.remark("No job has run yet.")
    if history.runs:
        runs = parts.table("Runs", _HEADS, map(_show_run, history.runs))
    return ["div", ["div.grid", *(_show_job(job, jobs.at) for job in jobs.jobs)], parts.panel("Runs", runs)]


def _show_job(job: Job, now: float) -> parts.Part:
    last, rests = job.last, job.state in ("paused", "quarantined")
    ran: parts.Part = "never"
    if last:
        ran = ["span", parts.time(last.started_at), " ", _look(last.outcome), " ", parts.format_counts(last.counts)]
    turn, back = ("resume", "pause") if rests else ("pause", "resume")
    text, said = f"{turn.title()} {job.name}", f"{turn.title()}d {job.name}"
    plan = parts.emit(f"Plan {job.name}", "plan", job.name)
    change = parts.act(text, said, f"{turn}_job", {"name": job.name}, f"{back}_job")
    about = parts.facts([("next", _format_due(job, now)), ("last", ran), ("why", last.error if last else "")])
    return parts.panel(
        ["span", f"{job.name} ", _look(job.state)], parts.remark(job.about), about, ["div.acts", plan, change]
    )


def _format_due(job: Job, now: float) -> str:
    if not job.next_run_at:
        return "only when asked to"
    return "now" if job.next_run_at <= now else f"in {duration_text(job.next_run_at - now)}"


def _look(word: str) -> parts.Part:
    return parts.badge(word, _LOOKS.get(word, ""))


def _show_run(run: JobRun) -> list[parts.Part]:
    back = parts.undo("Undo", f"Undid the run of {run.job}", run.operation) if run.operation else None
    did = parts.format_counts(run.counts) or run.error or "–"
    return [parts.time(run.started_at), run.job, _look(run.outcome), did, f"{ms_text(run.took_ms)} ms", back]


async def read_plan(client: AsyncClient, query: Mapping[str, str]) -> parts.Part:
    """Return what a job would do now, step by step; what is applied is this plan."""
    job = query.get("job", "")
    plan = await client.call(RunJob(name=job, dry_run=True, limit=_STEPS))
    close = parts.emit("Close", "plan", "")
    if not plan.total:
        return parts.panel(f"Plan of {job}: nothing to do", ["div.acts", close])
    more, counts = plan.total - len(plan.steps), parts.format_counts(plan.counts)
    apply = parts.act("Apply", f"{job}: {counts}", "run_job", {"name": job, "plan": plan.plan})
    return parts.panel(
        f"Plan of {job}: {count_text(plan.total, 'step')}",
        parts.remark(f"{counts}. Nothing was changed yet. Each step is checked again when it is applied."),
        *map(_show_step, plan.steps),
        parts.remark(f"and {more:,} more") if more else None,
        ["div.acts", apply, close],
    )


def _show_step(step: PlannedStep) -> parts.Part:
    text = to_one_line(step.preview) or step.target
    target = parts.link(step.target, text) if _MEMORY.fullmatch(step.target) else text
    return ["div.hit", parts.badge(step.action), " ", target, ["br"], ["span.dim", step.reason]]
