"""The log of sessions, and the turns around a memory in its conversation."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from memoryd.client.protocol import GetLog, LoggedOutcome, LoggedSession, SessionLog
from memoryd.daemon.conversations import summarising, tasks
from memoryd.daemon.conversations.tables import sessions
from memoryd.daemon.conversations.tables.session_names import LEAST_PREFIX
from memoryd.daemon.conversations.tables.sessions import SessionEntry, SessionSpan
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories.changing import visible_condition
from memoryd.daemon.registry import handles
from memoryd.daemon.store import namespaces, turns
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.turns import resolve_row

_END_OF_TIME = 1e15
_decode = msgspec.json.Decoder(dict[str, Any]).decode


@handles(GetLog)
def read_log(core: Core, call: GetLog) -> SessionLog:
    """Return the sessions of a time span, the latest first."""
    reached = core.store.namespaces.reach(namespaces.check(call.namespace), call.reach)
    span = SessionSpan(call.since or 0.0, _END_OF_TIME if call.until is None else call.until, call.session)
    sources = summarising.SOURCE, tasks.SOURCE
    with core.store.reading() as connection:
        entries = sessions.find_entries(connection, span, sources, visible_condition(core, call), core.clock())
    recent = [_build_entry(turn) for turn in core.active.list_turns(reached) if turn.session and _is_in(span, turn)]
    held = [*entries[::-1], *recent[::-1]]  # sorting by time is stable, so this keeps the order of arrival
    exact = [entry for entry in held if entry.session == call.session]
    if exact or (call.session is not None and len(call.session) < LEAST_PREFIX):
        held = exact
    found = _group(core, sorted(held, key=lambda entry: entry.created_at))
    shown = (one for one in found if not call.path or any(_is_file(path, call.path) for path in one.files))
    return SessionLog(sessions=sorted(shown, key=lambda one: -one.ended_at)[: call.limit])


def _is_in(span: SessionSpan, turn: turns.StoredTurn) -> bool:
    return span.since <= turn.created_at < span.until and turn.session.startswith(span.session or "")


def _build_entry(turn: turns.StoredTurn) -> SessionEntry:
    row = turns.to_row(turn)
    return SessionEntry(row.namespace, turn.session, row.created_at, 1, row.id, row.source, row.metadata, row.content)


def _is_file(path: str, wanted: str) -> bool:
    return path == wanted or path.endswith(f"/{wanted.removeprefix('./')}")


def _group(core: Core, entries: Iterable[SessionEntry]) -> Iterator[LoggedSession]:
    """Yield the sessions of entries, which are sorted by time."""
    groups: dict[tuple[int, str], list[SessionEntry]] = {}
    for entry in entries:
        groups.setdefault((entry.namespace, entry.session), []).append(entry)
    for (namespace, session), held in groups.items():
        yield _build_session(core.store.namespaces.name(namespace), session, held)


def _build_session(namespace: str, session: str, held: list[SessionEntry]) -> LoggedSession:
    said = [entry for entry in held if entry.turns]
    summaries = [entry.content for entry in held if entry.source == summarising.SOURCE]
    about = {entry.id: _decode(entry.metadata) for entry in held}
    asked = next((entry.content for entry in said if about[entry.id].get("role") == "user"), "")
    return LoggedSession(
        namespace=namespace,
        session=session,
        began_at=held[0].created_at,
        ended_at=held[-1].created_at,
        turns=sum(entry.turns for entry in said),
        asked=asked,
        summary=summaries[-1].partition("\n")[2] if summaries else "",
        files=list(dict.fromkeys(path for entry in said for path in about[entry.id].get("files", []))),
        outcomes=[
            LoggedOutcome(id=entry.id, outcome=str(about[entry.id].get("outcome", "")), content=entry.content)
            for entry in held
            if entry.source == tasks.SOURCE
        ],
    )


# One conversation ----------------------------------------------------------------------------------------------------


def find_around(core: Core, connection: Connection, row: Row, count: int, condition: str) -> list[Row]:
    """Return a turn (for a fact, its first source) with at most `count` turns before and after it."""
    said = _decode(row.metadata).get("turns")
    if isinstance(said, list) and said and row.turns == 0:
        row = resolve_row(connection, said[0], condition)
    session = _decode(row.metadata).get("session")
    before, after = sessions.find_around(connection, row, session, count)
    both = [*before, *([row] if row.turns else []), *after, *_list_recent(core, row, session)]
    ordered = sorted({one.id: one for one in both}.values(), key=_sort_key)
    place = next((n for n, one in enumerate(ordered) if _sort_key(one) >= _sort_key(row)), len(ordered))
    return ordered[max(0, place - count) : place + count + (1 if row.turns else 0)]


def _list_recent(core: Core, row: Row, session: str | None) -> list[Row]:
    """Return the turns of a conversation that are still in L0."""
    active = core.active.list_turns(frozenset([row.namespace]))
    return [turns.to_row(turn) for turn in active if turn.session == (session or "")]


def _sort_key(row: Row) -> tuple[float, bool, int]:
    """Return the sort key of a turn in its conversation; turns in L0 come after those that have left it."""
    return row.created_at, row.row < 0, abs(row.row)
