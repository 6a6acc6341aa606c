"""The command `observe`: record turns of conversations, and pause or resume recording."""

import os
import shlex
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from memoryd.client import protocol
from memoryd.client.errors import Invalid
from memoryd.client.fields import new_turn
from memoryd.client.programs.memctl.arguments import Usage, add_secrets, parse_date
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.escapes import decode_json
from memoryd.client.programs.memctl.link import (
    describe_project,
    named_namespace,
    send,
    show_result,
)
from memoryd.client.programs.memctl.output import make_printable, paint, show
from memoryd.client.programs.memctl.text_table import count_text, format_table
from memoryd.client.protocol.tiers import MAX_TURNS
from memoryd.client.transport.batches import split_batches, sum_kinds

SESSIONS = 3  # how many paused sessions are shown, the latest; there may be many, since a pause outlives its session


# observe -------------------------------------------------------------------------------------------------------------


def _observe_arguments(parser: ArgumentParser) -> None:
    meaning = "the text (default: JSON lines on stdin); or `off`, `on`, `status`: pause, resume, show pauses"
    parser.add_argument("turns", nargs="*", metavar="TURN", help=meaning)
    parser.add_argument("--folder", metavar="DIR", help="with `off` and `on`: this folder and all below it")
    parser.add_argument("--role", default="user", metavar="R", help="who said it: user (the default), assistant …")
    add_secrets(parser)
    parser.add_argument("--session", default="", metavar="ID", help="the conversation that it belongs to")
    parser.add_argument("--created-at", type=parse_date, metavar="DATE", help="when it was said (default: now)")


def _observe(args: Namespace) -> None:
    if args.turns in (["off"], ["on"], ["status"]):
        _change_pauses(args)
        return
    if args.folder:
        raise Usage("--folder is for `memctl observe off` and `on`.")
    turns = _read_turns(args)
    parts = [send(args, protocol.Observe(turns=part, session=args.session)) for part in split_batches(turns, MAX_TURNS)]
    observed = _join(parts)
    show(args, observed, lambda: _observed_text(observed, turns, describe_project(args)))


def _read_turns(args: Namespace) -> list[protocol.NewTurn]:
    """Return the turns from the arguments, else from standard input."""
    spoken = [protocol.NewTurn(role=args.role, content=turn, created_at=args.created_at) for turn in args.turns]
    turns = spoken or [new_turn(item) for item in _json_lines(sys.stdin.buffer if sys.stdin else ())]
    if not turns:
        raise Usage("there are no turns: give some, or JSON lines with role and content on standard input.")
    return turns


def _change_pauses(args: Namespace) -> None:
    """Pause observing or resume it, by session, folder or namespace (none: everywhere); show all pauses."""
    kind, name = ("session", args.session) if args.session else ("namespace", named_namespace(args) or "")
    if args.folder:
        kind, name = "folder", os.path.realpath(args.folder)
        if args.turns == ["off"] and not os.path.isdir(name):
            raise Invalid(f"There is no folder {name}, so nothing is paused.")
    calls: dict[str, protocol.Call[protocol.Observing]] = {
        "off": protocol.PauseObserving(kind=kind, name=name),  # type: ignore[arg-type]
        "on": protocol.PauseObserving(kind=kind, name=name, resume=True),  # type: ignore[arg-type]
        "status": protocol.GetObserving(),
    }
    show_result(args, calls[args.turns[0]], _pauses_text)


def _pauses_text(pauses: protocol.Observing) -> str:
    only = f"Only {', '.join(pauses.only)} is observed; the settings say so ([observe] only)." if pauses.only else ""
    if not pauses.pauses:
        return make_printable(only) or "Everything is observed."
    is_all = any(pause.kind == "namespace" and not pause.name for pause in pauses.pauses)
    rest = "" if is_all or only else "Everything else is observed. "
    earlier = [pause for pause in pauses.pauses if pause.kind == "session"][:-SESSIONS]
    lines = [make_printable(only)] if only else []
    lines += [_pause_text(pause) for pause in pauses.pauses if pause not in earlier]
    if earlier:
        be = "is" if len(earlier) == 1 else "are"
        lines.append(
            f"{count_text(len(earlier), 'earlier session')} {be} paused too; `memctl observe status --json` lists them."
        )
    return "\n".join([*lines, f"{rest}Memories are still shown to agents."])


def _pause_text(pause: protocol.Pause) -> str:
    where = f"in the {pause.kind} {pause.name}" if pause.name else "everywhere"
    option = f" --{pause.kind} {shlex.quote(pause.name)}" if pause.name else ""
    end = f"`memctl observe on{option}` ends that." if pause.since else "the settings say so ([observe] never)."
    return f"Observing is paused {where}; {end}"


def _join(parts: list[protocol.Observed]) -> protocol.Observed:
    return protocol.Observed(
        turns=[turn for part in parts for turn in part],
        accepted=sum(part.accepted for part in parts),
        skipped=sum(part.skipped for part in parts),
        redacted=sum_kinds(part.redacted for part in parts),
    )


def _observed_text(observed: protocol.Observed, turns: list[protocol.NewTurn], where: str) -> str:
    lines = [f"Recorded {count_text(observed.accepted, 'turn')}{where}."]
    if observed.skipped:
        rows = []
        for result, turn in zip(observed, turns, strict=True):
            if result.outcome == "skipped":
                same = f" ({paint(result.same_as[:8], 'cyan')})" if result.same_as else ""
                rows.append([f"{result.reason}{same}", turn.content])
        lines += [f"Skipped {count_text(observed.skipped, 'turn')}:", format_table(["REASON", "TURN"], rows)]
    return "\n".join(lines)


def _json_lines(data: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the objects of JSON lines of standard input; raise `Invalid` naming the line."""
    for number, line in enumerate(data, start=1):
        if not line.strip():
            continue
        try:
            yield decode_json(line, dict[str, Any])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise Invalid(f"Line {number} of standard input is not a JSON object: {error}.") from None


COMMANDS = {
    "observe": Command(
        _observe_arguments,
        _observe,
        '  memctl observe "We moved the deploys to Tuesday" --session standup\n'
        '  memctl observe --role assistant "Deploys are on Tuesday" --session standup\n'
        "  memctl observe --session review < turns.jsonl",
    ),
}
