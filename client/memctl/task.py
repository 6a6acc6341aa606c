"""task done, task failed, session end: what came of tasks and sessions."""

from argparse import ArgumentParser, Namespace
from functools import partial
from typing import Literal

from memoryd.client.errors import NotFound
from memoryd.client.memctl.arguments import add_reach, add_secrets
from memoryd.client.memctl.commands import Command
from memoryd.client.memctl.link import named_namespace, send, show_result
from memoryd.client.memctl.memories import added_text, read_content
from memoryd.client.memctl.output import show
from memoryd.client.memctl.progress import send_with_bar
from memoryd.client.methods import complete_task, end_session, get_log
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
    known = send(args, get_log(session=args.session, limit=1)).sessions
    if not known:
        raise NotFound(f"There is no session {args.session}; `memctl log` lists them.", {"session": args.session})
    if named_namespace(args) is None:
        args.namespace = known[0].namespace or "/"
    ended = send_with_bar(args, end_session(args.session, args.wait), "session end")
    show(args, ended, lambda: _ended_text(ended, args))


def _ended_text(ended: SessionEnded, args: Namespace) -> str:
    if not ended.waiting:
        if not args.wait:
            return "Nothing new was observed in this session."
        if any(one.summary for one in send(args, get_log(session=args.session, limit=1)).sessions):
            return f"What there is to sum up is summed up; `memctl log --session {args.session}` shows it."
        return "This session has no summary: it is too short for one, or its summary was deleted with one of its turns."
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
