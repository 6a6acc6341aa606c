"""Offer to import the past sessions of an agent after `hooks install`."""

from argparse import ArgumentParser, BooleanOptionalAction, Namespace

from memoryd.client.programs.backfill.backfill import report_text, run
from memoryd.client.programs.backfill.finding import SessionQuery
from memoryd.client.programs.memctl.link import named_namespace
from memoryd.client.programs.memctl.output import agrees, print_note
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
    left = f"{agent.title} has left {count_text(len(files), 'file')} of past sessions."
    if args.backfill is None and not agrees(f"{left} Take in what was said there?"):
        print_note(f"memctl: its past sessions: memctl backfill --agent {args.agent} --dry-run")
        return
    options = {"dry_run": False, "allow_secrets": False}
    project = project_root(args.project) if args.project else ""
    wanted = SessionQuery([args.agent], None, project, named_namespace(args))
    print_note(report_text(run(Namespace(**{**vars(args), **options}), wanted)))
