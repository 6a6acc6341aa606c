"""The `jobs` commands: list background jobs and their runs, run one by hand or as a dry run, pause and resume."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial

from memoryd.client import methods
from memoryd.client.programs.memctl.arguments import add_optional, parse_limit
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import client_for, show_result
from memoryd.client.programs.memctl.output import complain, paint, show, undo_text
from memoryd.client.programs.memctl.progress import ProgressBar
from memoryd.client.programs.memctl.text_table import count_text, format_table, ms_text
from memoryd.client.protocol import Call, Job, JobList, JobRun, PlannedStep, Progress, SkippedStep
from memoryd.client.times import iso
from memoryd.client.transport.sync import Client

ALL = "all"
PAGE = 1000  # how many steps of a plan are fetched per call
SHOWN = 50
ID_DIGITS = 8
_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))
_COLOURS = {"done": "green", "failed": "red", "interrupted": "yellow", "quarantined": "red", "paused": "yellow"}


# list ----------------------------------------------------------------------------------------------------------------


def _declare_list(parser: ArgumentParser) -> None:
    add_optional(parser, "name", "list the latest runs of this job")


def _list(args: Namespace) -> None:
    if args.name is None:
        show_result(args, methods.jobs(), _list_text, lambda page: page.jobs)
    else:
        show_result(args, methods.jobs(args.name), _runs_text, lambda page: page.runs)


def _list_text(page: JobList) -> str:
    rows = []
    for job in page.jobs:
        last = job.last
        every = format_span(job.every_s) if job.every_s else "–"
        began = f"{format_span(max(0.0, page.at - last.started_at))} ago" if last else "never"
        ended = [last.outcome, format_duration(last)] if last else ["", ""]
        did = _outcome_text(last) if last else job.about
        wait_s = None if job.next_run_at is None else job.next_run_at - page.at
        then = "–" if wait_s is None else f"in {format_span(wait_s)}" if wait_s >= 1 else "now"
        rows.append([job.name, job.state, every, began, *ended, then, did])
    return format_table(["JOB", "STATE", "EVERY", "LAST RUN", "OUTCOME", "TOOK", "NEXT", "DID"], rows, right=(2, 5))


def format_span(seconds: float) -> str:
    """Return a span of time in its largest unit: `5 min`."""
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size), _UNITS[-1])
    return f"{seconds / size:.0f} {unit}"


def format_duration(run: JobRun) -> str:
    """Return how long a run took."""
    return f"{run.took_ms / 1000:.1f} s" if run.took_ms >= 1000 else f"{ms_text(run.took_ms)} ms"


def _outcome_text(run: JobRun) -> str:
    return "; ".join(filter(None, [counts_text(run.counts), run.error])) or "nothing to do"


def counts_text(counts: dict[str, int]) -> str:
    """Return counts as text: `12 moved, 3 skipped`."""
    return ", ".join(f"{number:,} {name}" for name, number in counts.items() if number)


# run -----------------------------------------------------------------------------------------------------------------


def _declare_run(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a job of `memctl jobs list`")
    parser.add_argument("--dry-run", action="store_true", help="only show what it would do")
    parser.add_argument("--plan", metavar="ID", help="apply exactly this plan of a dry run")
    parser.add_argument(
        "--limit", type=parse_limit, default=SHOWN, metavar="N", help=f"steps of a plan shown (default: {SHOWN})"
    )


def _run(args: Namespace) -> int:
    with client_for(args) as client, ProgressBar(args.name) as progress:

        def show_progress(event: Progress) -> None:
            label = args.name if event.stage == "apply" else f"{args.name}: {event.stage}"
            progress.update(event.done, event.total, label)

        run = client.call(methods.run_job(args.name, dry_run=args.dry_run, plan=args.plan), show_progress)
        if args.dry_run:
            _fetch_steps(client, run, run.total if args.json else args.limit)
    if args.dry_run:
        show(args, run, lambda: _plan_text(run, args.limit))
        return 0
    show(args, run, lambda: _run_text(run))
    return complain(f"The job {run.job} failed: {run.error}", 1) if run.outcome == "failed" else 0


def _fetch_steps(client: Client, run: JobRun, number: int) -> None:
    """Fetch further steps of a plan that does not fit into one reply."""
    while len(run.steps) < min(number, run.total):
        part = client.call(methods.run_job(run.job, dry_run=True, plan=run.plan, offset=len(run.steps), limit=PAGE))
        if not part.steps:
            return
        run.steps += part.steps


def _plan_text(run: JobRun, limit: int) -> str:
    if run.counts.keys() <= {"note"} and not run.more:  # a job's own notes change no memories
        return f"{run.job} would do nothing now."
    more = "; there is more to do than a plan contains" if run.more else ""
    head = f"{run.job} would do {count_text(run.total, 'step')} ({counts_text(run.counts)}){more}. Nothing was changed."
    steps = run.steps[:limit]
    rows = [[step.action, _format_target(step), step.reason, step.preview] for step in steps]
    lines = [head, format_table(["ACTION", "TARGET", "REASON", "TEXT"], rows)] if rows else [head]
    if run.total > len(steps):
        lines.append(f"… and {run.total - len(steps):,} more (--limit N shows more, --json all)")
    command = paint(f"memctl jobs run {run.job} --plan {run.plan}", "cyan")
    return "\n".join([*lines, f"`{command}` applies it."])


def _format_target(step: PlannedStep | SkippedStep) -> str:
    is_id = len(step.target) == 32 and " " not in step.target
    return step.target[:ID_DIGITS] if is_id else step.target


def _run_text(run: JobRun) -> str:
    what = counts_text(run.counts) or "nothing to do"
    lines = [f"{run.job} {paint(run.outcome, _COLOURS.get(run.outcome, 'dim'))} in {format_duration(run)}: {what}."]
    if run.outcome == "interrupted":
        lines.append(run.error)
    if run.skipped:
        rows = [[step.action, _format_target(step), step.reason] for step in run.skipped]
        lines.append(format_table(["SKIPPED", "TARGET", "REASON"], rows[:SHOWN]))
        if len(rows) > SHOWN:
            lines.append(f"… and {len(rows) - SHOWN:,} more")
    if run.operation is not None:
        lines.append(f"{undo_text(run.operation)} takes it back.")
    return "\n".join(lines)


# pause and resume ----------------------------------------------------------------------------------------------------


def _declare_names(parser: ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="NAME", help=f"jobs, or `{ALL}`")


def _change_each(build: Callable[[str], Call[Job]], sentence: str, args: Namespace) -> None:
    with client_for(args) as client:
        names = [job.name for job in client.jobs().jobs] if args.names == [ALL] else args.names
        jobs = [client.call(build(name)) for name in names]
    show(args, jobs, lambda: sentence.format(", ".join(job.name for job in jobs)))


def _runs_text(page: JobList) -> str:
    rows = []
    for run in page.runs:
        how = [run.outcome, format_duration(run), (run.operation or "")[:8]]
        rows.append([f"{run.run}", iso(run.started_at) or "", run.job, run.by, *how, _outcome_text(run)])
    return format_table(["RUN", "AT", "JOB", "BY", "OUTCOME", "TOOK", "OP", "DID"], rows, "No runs.", right=(0, 5))


COMMANDS = {
    "jobs list": Command(_declare_list, _list, "  memctl jobs list\n  memctl jobs list trim --json"),
    "jobs run": Command(
        _declare_run,
        _run,
        "  memctl jobs run trim\n  memctl jobs run trim --dry-run\n  memctl jobs run trim --plan 3f9ac1d2",
    ),
    "jobs pause": Command(
        _declare_names,
        partial(_change_each, methods.pause_job, "Paused: {}; `memctl jobs resume` lets them run again."),
        "  memctl jobs pause backup\n  memctl jobs pause all",
    ),
    "jobs resume": Command(
        _declare_names, partial(_change_each, methods.resume_job, "Resumed: {}."), "  memctl jobs resume all"
    ),
}
