"""The command `backfill`: import past sessions of coding agents, or show what would be imported."""

from argparse import ArgumentParser, Namespace
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from memoryd.client.errors import Invalid
from memoryd.client.programs.backfill.finding import AutomatedSession, FoundSession, FoundSessions, SessionQuery, find
from memoryd.client.programs.backfill.placing import name_place
from memoryd.client.programs.backfill.sending import AgentPlace, BackfillOutcome, send
from memoryd.client.programs.memctl.arguments import Rare, add_secrets, parse_date
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import named_namespace, say_redacted
from memoryd.client.programs.memctl.output import make_printable, paint, print_note, show
from memoryd.client.programs.memctl.progress import ProgressBar
from memoryd.client.programs.memctl.sending import SHOWN, open_spool
from memoryd.client.programs.memctl.text_table import count_text, format_table
from memoryd.client.programs.sessions.agents import AGENTS
from memoryd.client.projects.project import project_root
from memoryd.client.protocol.backfill import Backfilled
from memoryd.client.times import iso

SOURCE = "backfill"


def _declare(parser: ArgumentParser) -> None:
    add = parser.add_argument
    names = ", ".join(AGENTS)
    add("--agent", action="append", choices=tuple(AGENTS), metavar="A", help=f"of this agent only: {names}")
    add("--project", metavar="DIR", help="what was said in this project only")
    add("--since", type=parse_date, metavar="DATE", help="what was said on this date or later")
    add("--dry-run", action="store_true", help="show what is there and would be left out; change nothing")
    add("--automated", action="store_true", help=Rare("sessions that a program ran, too"))
    add("--temporary", action="store_true", help=Rare("sessions in temporary folders, too"))
    add_secrets(parser)


class BackfillReport(NamedTuple):
    """Result of a run: a row per agent and project, the turns, those left out by reason, and unreadable files.

    `automated` are sessions that are left out because a program ran them, `unknown` counts unknown kinds of entries.
    """

    projects: list[dict[str, Any]]
    turns: Backfilled
    left_out: dict[str, int]
    problems: list[str]
    automated: list[AutomatedSession]
    unknown: dict[str, int]


def _backfill(args: Namespace) -> None:
    wanted = SessionQuery(
        args.agent or list(AGENTS),
        args.since,
        _find_project(args.project),
        named_namespace(args),
        args.automated,
        args.temporary,
    )
    made = run(args, wanted)
    value = {
        "projects": made.projects,
        "taken": made.turns.taken,
        "known": made.turns.known,
        "left_out": made.left_out,
        "automated": [one._asdict() for one in made.automated],
        "unknown": made.unknown,
        "problems": made.problems,
        "operation": made.turns.operation,
        "dry_run": args.dry_run,
    }
    show(args, value, lambda: report_text(made))


def run(args: Namespace, wanted: SessionQuery) -> BackfillReport:
    """Import the sessions that `wanted` selects; with `args.dry_run` only report them."""
    with open_spool() as spool:
        with ProgressBar("reading sessions", 1) as bar:
            bar.update(0)
            found = find(wanted, spool)
        sessions = sorted(found.sessions, key=lambda session: session.first)
        done = send(args, wanted, sessions, spool)
    for problem in found.problems[:SHOWN]:
        print_note(f"memctl: {problem}")
    if not args.dry_run:
        say_redacted(done.total.redacted)
    left_out = _sum_left_out(found, done)
    unknown = dict(found.unknown.most_common())
    return BackfillReport(_sum_up(found, done, wanted), done.total, left_out, found.problems, found.automated, unknown)


def _find_project(given: str | None) -> str:
    if given is None:
        return ""
    path = Path(given).expanduser().absolute()
    if not path.is_dir():
        raise Invalid(f"{given} is not a folder.")
    return project_root(path)


def _sum_up(found: FoundSessions, done: BackfillOutcome, wanted: SessionQuery) -> list[dict[str, Any]]:
    """Return a row for each agent and project."""
    groups: dict[AgentPlace, list[FoundSession]] = {}
    for session in found.sessions:
        root = session.roots[session.folder]
        place = wanted.namespace if wanted.namespace is not None else name_place(root, note=False)
        groups.setdefault((session.agent, place), []).append(session)
    return [
        {
            "agent": agent,
            "namespace": place,
            "sessions": len(sessions),
            "turns": sum(session.turns for session in sessions),
            "known": done.places.get((agent, place), Backfilled()).known,
            "first": min(session.first for session in sessions),
            "last": max(session.last for session in sessions),
            "size_bytes": sum(session.size for session in sessions),
        }
        for (agent, place), sessions in sorted(groups.items())
    ]


def _sum_left_out(found: FoundSessions, done: BackfillOutcome) -> dict[str, int]:
    """Return how many turns the readers and the daemon left out, by reason."""
    total = Counter(done.total.left_out)
    for counts in (*found.left_out.values(), *(session.left_out for session in found.sessions)):
        total.update(counts)
    return {reason: number for reason, number in total.most_common() if number}


def report_text(made: BackfillReport) -> str:
    """Return the text that describes the result of a run."""
    done = made.turns
    if not made.projects and not any(made.left_out.values()):
        return "No past sessions were found."
    lines = []
    if done.dry_run and made.projects:
        headers = ["AGENT", "PROJECT", "SESSIONS", "TURNS", "THERE", "FROM", "TO", "KB"]
        lines.append(format_table(headers, list(map(_format_row, made.projects)), flexible=1, right=(2, 3, 4, 7)))
    would = "Would take in" if done.dry_run else "Took in"
    known = f"; {done.known:,} there already" if done.known else ""
    lines.append(f"{would} {count_text(done.taken, 'turn')}{known}.")
    lines += [f"{number:,} left out: {reason}." for reason, number in made.left_out.items() if number]
    lines += _list_shown([f"Run by a program ({one.why}): {make_printable(one.begins)}" for one in made.automated])
    lines += _list_shown([f"Not known: {kind} ({count_text(n, 'time')})." for kind, n in made.unknown.items()])
    if done.operation:
        undo = paint(f"memctl undo {done.operation[:8]}", "cyan")
        lines.append(f"`{undo}` takes it back, `memctl erase --source {SOURCE}` erases it for good.")
    return "\n".join(lines)


def _list_shown(lines: list[str]) -> list[str]:
    more = len(lines) - SHOWN
    return [*lines[:SHOWN], f"… and {more} more."] if more > 0 else lines


def _format_row(row: dict[str, Any]) -> list[str]:
    days = [(iso(row[name]) or "")[:10] for name in ("first", "last")]
    numbers = [f"{row[name]:,}" for name in ("sessions", "turns", "known")]
    return [row["agent"], row["namespace"] or "/", *numbers, *days, f"{-(-row['size_bytes'] // 1024):,}"]


COMMANDS = {
    "backfill": Command(
        _declare,
        _backfill,
        "  memctl backfill --dry-run\n"
        "  memctl backfill --since 2026-01-01\n"
        "  memctl backfill --agent codex --project .",
    ),
}
