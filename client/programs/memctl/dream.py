"""The command `dream`: put MEMORY.md of workspaces in order."""

from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Sequence

from memoryd.client.programs.memctl.arguments import Usage, add_optional
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.notes import resolve_place
from memoryd.client.programs.memctl.output import columns, complain, paint, show
from memoryd.client.programs.memctl.progress import send_with_bar
from memoryd.client.programs.memctl.source_file import short_path
from memoryd.client.programs.memctl.text_table import count_text, shorten, to_one_line
from memoryd.client.protocol.dreams import Dream, DreamReport, DreamStep, Dreamt

_TIMEOUT_S = 600.0  # without progress; a language model may take minutes
_STYLES = {"take": "green", "outdated": "red", "repeat": "yellow"}


def _declare(parser: ArgumentParser) -> None:
    about = "a workspace: its namespace or a path inside; left out: all workspaces with daily files"
    add_optional(parser, "place", about)
    parser.add_argument(
        "--force", action="store_true", help="process all files again, and permit that MEMORY.md loses more than half"
    )
    allow = "permit dreams of the workspace, this one and later ones, to write MEMORY.md; otherwise they only propose"
    parser.add_argument("--allow", action=BooleanOptionalAction, help=allow)
    parser.add_argument("--undo", action="store_true", help="restore MEMORY.md to before the latest dream")


def _run(args: Namespace) -> int:
    if args.undo and args.place is None:
        raise Usage("--undo needs the workspace: its namespace or a path inside.")
    call = Dream(
        place=None if args.place is None else resolve_place(args.place),
        force=args.force,
        undo=args.undo,
        allow=args.allow,
    )
    done = send_with_bar(args, call, "dream", "dream: {}", _TIMEOUT_S)
    show(args, done.dreams, lambda: _text(done))
    refused = [report for report in done.dreams if report.outcome == "refused"]
    return complain(f"{refused[0].place}: {refused[0].problem}", 1) if refused else 0


def _text(done: Dreamt) -> str:
    return "\n\n".join(map(_report_text, done.dreams)) or "No workspace has daily files (memory/YYYY-MM-DD.md)."


def _report_text(report: DreamReport) -> str:
    lines = [f"{paint(report.place, 'bold')}: {_outcome_text(report)}"]
    alike: dict[tuple[str, str, str], list[DreamStep]] = {}
    for step in report.steps:
        alike.setdefault((step.action, step.text, step.kept), []).append(step)
    lines += [_format_step(steps) for steps in alike.values()]
    if report.passing:
        lines.append(f"  {count_text(report.passing, 'note')} left in the daily files.")
    if report.diary:
        lines.append(f"Diary: {short_path(report.diary)}")
    return "\n".join(lines)


def _outcome_text(report: DreamReport) -> str:
    sizes = f"{report.chars_before:,} → {report.chars_after:,} characters, by {report.by}"
    where = short_path(report.path)
    match report.outcome:
        case "written":
            return f"{where} put in order ({sizes}). `memctl dream {report.place} --undo` takes it back."
        case "planned":
            done = f"{where} would be put in order ({sizes}). Nothing was changed."
            return f"{done}\n{report.problem}" if report.problem else done
        case "undone":
            return f"{where} is as it was before the dream."
        case "unchanged":
            return report.problem or "It is in order; nothing was changed."
        case _:
            return report.problem


def _format_step(steps: Sequence[DreamStep]) -> str:
    step = steps[0]
    more = f" and {len(steps) - 1} more" if len(steps) > 1 else ""
    kept = f" → {step.kept}" if step.kept not in ("", step.text) else ""
    why = f"; {step.reason}" if step.action == "outdated" and step.reason else ""
    remark = f"({step.source}{more}{why})"
    text = shorten(to_one_line(step.text + kept), max(30, columns() - len(remark) - 12))
    return f"{paint(f'  {step.action:8} ', _STYLES[step.action])}{text} {remark}"


COMMANDS = {
    "dream": Command(
        _declare,
        _run,
        "  memctl dream\n  memctl dream notes --allow\n  memctl dream notes --undo",
    )
}
