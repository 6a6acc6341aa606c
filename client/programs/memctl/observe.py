"""observe, seed: turns of conversations from the command line, from standard input, from a file."""

import os
import shlex
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from memoryd.client import protocol
from memoryd.client.errors import Invalid
from memoryd.client.fields import new_memory, new_turn
from memoryd.client.programs.memctl.arguments import Usage, add_secrets, parse_date
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.escapes import decode_json
from memoryd.client.programs.memctl.link import (
    client_for,
    describe_project,
    named_namespace,
    namespace_of,
    say_redacted,
    send,
    show_result,
)
from memoryd.client.programs.memctl.output import make_printable, paint, show
from memoryd.client.programs.memctl.progress import ProgressBar
from memoryd.client.programs.memctl.table import count_text, format_table
from memoryd.client.protocol.tiers import MAX_TURNS
from memoryd.client.times import is_past
from memoryd.client.transport.batches import split_batches, sum_kinds

PER_CALL = 200  # lines of a seed
SHOWN = 5  # namespaces of a seed
SESSIONS = 3  # paused ones that are shown: a pause of a session outlives it


# observe -------------------------------------------------------------------------------------------------------------


def _observe_arguments(parser: ArgumentParser) -> None:
    meaning = "what was said (default: JSON lines on stdin); or `off`, `on`, `status`: pause, resume, show pauses"
    parser.add_argument("turns", nargs="*", metavar="TURN", help=meaning)
    parser.add_argument("--folder", metavar="DIR", help="with `off` and `on`: for this folder and all below it")
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
    """Return the turns that the arguments or standard input give."""
    spoken = [protocol.NewTurn(role=args.role, content=turn, created_at=args.created_at) for turn in args.turns]
    turns = spoken or [new_turn(item) for item in _json_lines("standard input", _read_stdin())]
    if not turns:
        raise Usage("there are no turns: give some, or JSON lines with role and content on standard input.")
    return turns


def _read_stdin() -> Iterable[bytes]:
    return sys.stdin.buffer if sys.stdin else ()


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


# seed ----------------------------------------------------------------------------------------------------------------


class SeedLine(NamedTuple):
    """One line of a seed and its place; lines of one place are sent together."""

    place: tuple[str, str, bool]  # namespace, session, whether it is a turn
    item: protocol.NewTurn | protocol.NewMemory


def _seed_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="JSON lines: turns (role, content) or memories; `-` reads stdin")
    parser.add_argument("--session", default="", metavar="ID", help="the conversation of turns that name none")
    add_secrets(parser)


def _seed(args: Namespace) -> None:
    name, data = ("standard input", _read_stdin()) if args.file == "-" else (args.file, _read_file(args.file))
    here = namespace_of(args)
    lines = [_line(args, here, name, number, item) for number, item in enumerate(_json_lines(name, data), start=1)]
    if not lines:
        raise Invalid(f"There is nothing in {name}.")
    report = protocol.Seeded(turns=0, created=0, merged=0)
    with client_for(args) as client, ProgressBar("seed", len(lines)) as progress:
        number_sent = 0
        for call, size in _build_calls(lines):

            def on_progress(event: protocol.Progress, before: int = number_sent) -> None:
                progress.update(before + event.done)

            call = msgspec.structs.replace(call, allow_secrets=args.allow_secrets)
            _add(report, client.call(call, on_progress))
            number_sent += size
            progress.update(number_sent)
    say_redacted(report.redacted)
    memories = (line.item for line in lines if isinstance(line.item, protocol.NewMemory))
    expired = sum(is_past(one.expires_at) and not one.pinned for one in memories)
    show(args, report, lambda: _seeded_text(report, _describe_places(lines), expired))


def _read_file(path: str) -> list[bytes]:
    try:
        return Path(path).read_bytes().splitlines()
    except OSError as error:
        raise Invalid(f"The file {path} cannot be read: {error.strerror}.") from None


def _json_lines(name: str, data: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the objects of JSON lines; raise `Invalid` naming the line."""
    for number, line in enumerate(data, start=1):
        if not line.strip():
            continue
        try:
            yield decode_json(line, dict[str, Any])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            hint = ""
            if name.endswith(".md"):
                hint = " For a text: `memctl add - < FILE` adds it, `memctl workspace add FOLDER` keeps files in view."
            raise Invalid(f"Line {number} of {name} is not a JSON object: {error}.{hint}") from None


def _line(args: Namespace, here: str, name: str, number: int, item: dict[str, Any]) -> SeedLine:
    namespace = str(item.pop("namespace", here))
    session = str(item.pop("session", args.session))
    try:
        if "role" in item:
            return SeedLine((namespace, session, True), new_turn(item))
        return SeedLine((namespace, "", False), new_memory({**item, "origin": "import"}))
    except Invalid as error:
        raise Invalid(f"Line {number} of {name}: {error.message}") from None


def _build_calls(lines: list[SeedLine]) -> Iterator[tuple[protocol.Seed, int]]:
    """Yield the calls that send the lines in their order, and how many lines each has."""
    for (namespace, session, is_turn), group in groupby(lines, key=lambda line: line.place):
        for part in split_batches([line.item for line in group], PER_CALL):
            field = "turns" if is_turn else "memories"
            yield protocol.Seed(namespace=namespace, session=session, **{field: part}), len(part)  # type: ignore[arg-type]


def _add(total: protocol.Seeded, part: protocol.Seeded) -> None:
    total.redacted = sum_kinds((total.redacted, part.redacted))
    for name in ("turns", "created", "merged", "skipped"):
        setattr(total, name, getattr(total, name) + getattr(part, name))


def _describe_places(lines: list[SeedLine]) -> str:
    """Return where the lines of a seed are kept; nothing where a token says it."""
    names = list(dict.fromkeys(line.place[0].strip("/") for line in lines))
    if names == [""]:
        return "" if os.environ.get("MEMORYD_TOKEN") else " at /"
    return f" in {make_printable(', '.join(name or '/' for name in names[:SHOWN]))}{' …' * (len(names) > SHOWN)}"


def _seeded_text(report: protocol.Seeded, where: str, expired: int) -> str:
    parts = [
        f"{count_text(report.turns, 'turn')} taken in" if report.turns else "",
        f"{count_text(report.created, 'memory')} created" if report.created else "",
        f"{report.merged:,} merged into others" if report.merged else "",
        f"{report.skipped:,} known already" if report.skipped else "",
    ]
    said = f"{expired:,} of them expired already: no search finds these, `memctl list --all-states` shows them."
    return f"Seeded{where}: {', '.join(filter(None, parts))}." + (f"\n{said}" if expired else "")


COMMANDS = {
    "observe": Command(
        _observe_arguments,
        _observe,
        '  memctl observe "We moved the deploys to Tuesday" --session standup\n'
        '  memctl observe --role assistant "Deploys are on Tuesday" --session standup\n'
        "  memctl observe --session review < turns.jsonl",
    ),
    "seed": Command(
        _seed_arguments,
        _seed,
        "  memctl seed history.jsonl --namespace acme/api\n"
        """  echo '{"content": "We use Valkey", "type": "decision"}' | memctl seed -""",
    ),
}
