"""Offer to import the past sessions of an agent after `hooks install`."""

import sys
from argparse import ArgumentParser, BooleanOptionalAction, Namespace

from memoryd.client.programs.backfill.backfill import report_text, run
from memoryd.client.programs.backfill.finding import SessionQuery
from memoryd.client.programs.memctl.link import named_namespace
from memoryd.client.programs.memctl.output import print_note
from memoryd.client.programs.memctl.text_table import count_text
from memoryd.client.programs.sessions.agents import AGENTS
from memoryd.client.projects.project import project_root


def declare(parser: ArgumentParser) -> None:
    """Declare the option that answers the offer in advance."""
    told = "take in its past sessions too, or do not (default: ask, on a terminal)"
    parser.add_argument("--backfill", action=BooleanOptionalAction, help=told)


def offer(args: Namespace) -> None:
    """Import the past sessions of an agent if the user agrees; without a terminal nothing is asked or imported."""
    agent = AGENTS.get(args.agent)
    files = agent.list_files() if agent and args.backfill is not False else []
    if agent is None or not files:
        return
    if args.backfill is None and not _is_wanted(f"{agent.title} has left {count_text(len(files), 'file')}"):
        print_note(f"memctl: its past sessions: memctl backfill --agent {args.agent} --dry-run")
        return
    options = {"dry_run": False, "allow_secrets": False}
    project = project_root(args.project) if args.project else ""
    wanted = SessionQuery([args.agent], None, project, named_namespace(args))
    print_note(report_text(run(Namespace(**{**vars(args), **options}), wanted)))


def _is_wanted(found: str) -> bool:
    if not (sys.stdin and sys.stdin.isatty()):
        return False
    print_note(f"{found} of past sessions. Take in what was said there? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")
