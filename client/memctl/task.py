"""task done, task failed, session end: what came of tasks and sessions."""

from argparse import ArgumentParser, Namespace
from functools import partial
from typing import Literal

from memoryd.client.memctl.arguments import add_reach, add_secrets
from memoryd.client.memctl.commands import Command
from memoryd.client.memctl.link import show_result
from memoryd.client.memctl.memories import added_text, read_content
from memoryd.client.memctl.output import show
from memoryd.client.memctl.progress import send_with_bar
from memoryd.client.methods import complete_task, end_session
from memoryd.client.protocol import SessionEnded

_NAMES = {"extract": "facts are drawn out of it", "summary": "it is summed up"}


def _declare_task(parser: ArgumentParser) -> None:
    parser.add_argument("output", metavar="OUTPUT", help="what came of it; `-` reads standard input")
    parser.add_argument("--task", default="", metavar="TEXT", help="what was to be done")
    add_secrets(parser)
    parser.add_argument("--session", default="", metavar="ID", help="the conversation that it belongs to")
    add_reach(parser)


def _send_outcome(outcome: Literal["completed", "failed"], args: Namespace) -> None:
    call = complete_task(outcome, read_content(args.output), task=args.task, session=args.session)
    show_result(args, call, lambda added: added_text(args, added))


def _declare_end(parser: ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", help="the conversation that is over")
    parser.add_argument("--wait", action="store_true", help="return when its summary and its facts can be found")
    add_reach(parser)


def _end_session(args: Namespace) -> None:
    ended = send_with_bar(args, end_session(args.session, args.wait), "session end")
    show(args, ended, lambda: _ended_text(ended, args.wait))


def _ended_text(ended: SessionEnded, has_waited: bool) -> str:
    if not ended.waiting:
        return "All of this session is there." if has_waited else "Nothing new was observed in this session."
    return f"In the background: {', '.join(_NAMES.get(kind, kind) for kind in ended.waiting)}."


COMMANDS = {
    "task done": Command(
        _declare_task,
        partial(_send_outcome, "completed"),
        '  memctl task done "Valkey 8 runs in staging" --task "add a cache"',
    ),
    "task failed": Command(
        _declare_task,
        partial(_send_outcome, "failed"),
        '  memctl task failed "The driver lacks cluster mode" --task "add a cache"',
    ),
    "session end": Command(_declare_end, _end_session, "  memctl session end work-17 --namespace acme/api --wait"),
}
