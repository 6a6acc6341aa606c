"""The log of sessions, and the turns around a memory in its conversation."""

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
    recent = []
    for turn in core.active.list_turns(reached):
        is_wanted = turn.session and turn.session.startswith(span.session or "")
        if is_wanted and span.since <= turn.created_at < span.until:
            row = turns.to_row(turn)
            about = row.id, row.source, row.metadata, row.content
            recent.append(SessionEntry(row.namespace, turn.session, row.created_at, 1, *about))
    held = [*entries[::-1], *recent[::-1]]  # sorting by time is stable, so this keeps the order of arrival
    exact = [entry for entry in held if entry.session == call.session]
    if exact or (call.session is not None and len(call.session) < LEAST_PREFIX):
        held = exact
    groups: dict[tuple[int, str], list[SessionEntry]] = {}
    for entry in sorted(held, key=lambda entry: entry.created_at):
        groups.setdefault((entry.namespace, entry.session), []).append(entry)
    found = [
        _build_session(core.store.namespaces.name(namespace), session, entries)
        for (namespace, session), entries in groups.items()
    ]
    if path := call.path:
        end = f"/{path.removeprefix('./')}"
        found = [one for one in found if any(file == path or file.endswith(end) for file in one.files)]
    return SessionLog(sessions=sorted(found, key=lambda one: -one.ended_at)[: call.limit])


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
    active = core.active.list_turns(frozenset([row.namespace]))
    recent = [turns.to_row(turn) for turn in active if turn.session == (session or "")]
    both = [*before, *([row] if row.turns else []), *after, *recent]
    ordered = sorted({one.id: one for one in both}.values(), key=turns.sort_key)
    place = sum(turns.sort_key(one) < turns.sort_key(row) for one in ordered)
    return ordered[max(0, place - count) : place + count + (1 if row.turns else 0)]
