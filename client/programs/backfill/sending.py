"""Send past sessions to the daemon, one after another, in one operation that a later run can continue."""

from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec

from memoryd.client.errors import Conflict, Invalid
from memoryd.client.programs.backfill.finding import FoundSession, SessionQuery, read_turns
from memoryd.client.programs.backfill.placing import name_place
from memoryd.client.programs.hooks.answering import find_speaker
from memoryd.client.programs.memctl.link import client_for
from memoryd.client.programs.memctl.progress import ProgressBar
from memoryd.client.programs.sessions.building import Utterance
from memoryd.client.projects import known as projects
from memoryd.client.protocol.backfill import AROUND, Backfill, Backfilled, PastTurn
from memoryd.client.protocol.tiers import MAX_TURNS
from memoryd.client.transport import paths
from memoryd.client.transport.batches import split_batches, sum_kinds
from memoryd.client.transport.spawn import make_private
from memoryd.client.transport.sync import Client

DUPLICATE = "duplicate"  # as in the daemon's counts
AgentPlace = tuple[str, str]  # agent and namespace


class _Running(msgspec.Struct):
    """Content of the file `backfill.running`."""

    operation: str


class BackfillOutcome(msgspec.Struct):
    """Result of a run: in total, and by agent and namespace.

    `keys` identify the turns that a dry run would store, so that a repetition is counted once: see `Backfilled.keys`.
    """

    total: Backfilled
    places: dict[AgentPlace, Backfilled] = {}
    keys: set[tuple[str, str]] = set()


def send(args: Namespace, wanted: SessionQuery, sessions: Sequence[FoundSession], spool: IO[bytes]) -> BackfillOutcome:
    """Send the turns of sessions in order; with `args.dry_run` only ask the daemon what it would store."""
    done = BackfillOutcome(Backfilled(dry_run=args.dry_run))
    label = "looking" if args.dry_run else "backfill"
    with client_for(args) as client, ProgressBar(label, sum(session.turns for session in sessions)) as bar:
        operation = None if args.dry_run or not sessions else _ensure_operation(client)
        sent = 0
        for session in sessions:
            turns = read_turns(spool, session.place)
            if operation and wanted.namespace is None:
                turns = _drop_empty_projects(client, args, wanted, session, turns, done)
            for call in _build_calls(args, wanted, session, turns, args.dry_run):
                part = client.call(msgspec.structs.replace(call, operation=operation))
                _add(done, session, call, part)
                sent += len(call.turns) - call.before - call.after
                bar.update(sent)
    done.total.operation = operation if done.total.taken else None
    if operation:
        _running_path().unlink(missing_ok=True)
    return done


def _drop_empty_projects(
    client: Client,
    args: Namespace,
    wanted: SessionQuery,
    session: FoundSession,
    turns: list[Utterance],
    done: BackfillOutcome,
) -> list[Utterance]:
    """Leave out and count the turns of new projects in which nothing would be stored, so that they are not added."""
    new = {folder for folder, root in session.roots.items() if root and not projects.is_known(root)}
    if not new:
        return turns
    name_place.cache_clear()  # the name of a new project depends on those added since
    asked = (turn for turn in turns if turn.folder in new)
    parts = [(call, client.call(call)) for call in _build_calls(args, wanted, session, asked, dry_run=True)]
    needed = {call.namespace for call, part in parts if part.taken}
    for call, part in parts:
        if call.namespace not in needed:
            _add(done, session, call, part)
    return [
        turn for turn in turns if turn.folder not in new or name_place(session.roots[turn.folder], note=False) in needed
    ]


def _ensure_operation(client: Client) -> str:
    """Return the operation of an interrupted run, else a new one; its id is on disk before anything is sent."""
    path, operation = _running_path(), None
    with suppress(OSError, msgspec.MsgspecError, Invalid, Conflict):  # it was undone, or is of another database
        former = msgspec.json.decode(path.read_bytes(), type=_Running).operation
        operation = client.call(Backfill(operation=former)).operation
    operation = operation or client.call(Backfill()).operation or ""
    make_private(path.parent)
    path.write_bytes(msgspec.json.encode(_Running(operation)))
    return operation


def _running_path() -> Path:
    return paths.data_dir() / "backfill.running"


def _build_calls(
    args: Namespace, wanted: SessionQuery, session: FoundSession, turns: Iterable[Utterance], dry_run: bool
) -> Iterator[Backfill]:
    """Yield the calls that send a session: one or more per namespace, with some of the neighbouring turns in each."""
    speaker = find_speaker()
    places: dict[str, list[PastTurn]] = {}
    for turn in turns:
        place = (
            wanted.namespace
            if wanted.namespace is not None
            else name_place(session.roots[turn.folder], note=not dry_run)
        )
        places.setdefault(place, []).append(_build_turn(turn, speaker))
    for place, said in places.items():
        begin = 0
        for part in split_batches(said, MAX_TURNS - 2 * AROUND):
            end = begin + len(part)
            before, after = said[max(0, begin - AROUND) : begin], said[end : end + AROUND]
            yield Backfill(
                namespace=place,
                session=session.name,
                turns=[*before, *part, *after],
                before=len(before),
                after=len(after),
                dry_run=dry_run,
                allow_secrets=args.allow_secrets,
            )
            begin = end


def _build_turn(turn: Utterance, speaker: str) -> PastTurn:
    return PastTurn(
        role=turn.role,
        content=turn.content,
        created_at=turn.at,
        id=turn.id,
        speaker=speaker if turn.role == "user" else "",
        files=turn.files,
        folder=turn.folder,
        to_program=turn.to_program,
    )


def _add(done: BackfillOutcome, session: FoundSession, call: Backfill, part: Backfilled) -> None:
    for key in filter(None, part.keys):
        if (call.namespace, key) in done.keys:
            part.taken -= 1
            part.left_out[DUPLICATE] = part.left_out.get(DUPLICATE, 0) + 1
        done.keys.add((call.namespace, key))
    for total in (done.total, done.places.setdefault((session.agent, call.namespace), Backfilled())):
        total.taken += part.taken
        total.known += part.known
        total.left_out = dict(Counter(total.left_out) + Counter(part.left_out))
        total.redacted = sum_kinds((total.redacted, part.redacted))
