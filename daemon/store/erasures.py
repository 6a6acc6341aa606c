"""Records of erased texts: their ids in the history, and digests of the names of their sessions."""

import hashlib
from collections.abc import Collection, Iterable, Sequence

import apsw
import msgspec

from memoryd.daemon.store import database_settings, history, rows, turns
from memoryd.daemon.store.rows import Row

_SESSIONS = "erased_sessions"  # setting: a JSON list
_MOST_NOTED = 10_000


def find_erased(connection: apsw.Connection, prefixes: Iterable[str]) -> list[str]:
    """Return the erased ids that begin with one of these prefixes: copies may still contain them."""
    sql = (
        "SELECT h.memory FROM history h JOIN operations o ON o.number = h.operation"
        f" WHERE o.kind = '{history.ERASE}' AND h.memory >= ? AND h.memory < ?"
    )
    return [str(id) for prefix in prefixes for (id,) in connection.execute(sql, rows.id_range(prefix))]


def find_all_erased(connection: apsw.Connection) -> list[str]:
    """Return all erased ids that were not stored again: after an interrupted erase, copies may still contain them."""
    sql = (
        "SELECT DISTINCT h.memory FROM history h JOIN operations o ON o.number = h.operation"
        f" WHERE o.kind = '{history.ERASE}' AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.id = h.memory)"
        " AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.key = h.memory)"
    )
    return [str(id) for (id,) in connection.execute(sql)]


def note_sessions(connection: apsw.Connection, sessions: Iterable[str]) -> None:
    """Record the sessions from which something is erased, by digests of their names, so that no backfill reads them.

    An empty name represents texts without a session.
    """
    note_digests(connection, sorted({digest(session) for session in sessions}))


def note_digests(connection: apsw.Connection, digests: Sequence[str]) -> None:
    """Record the sessions from which something is erased, given as digests of their names."""
    noted = read_noted(connection)
    if new := [one for one in digests if one not in noted]:
        database_settings.put(connection, _SESSIONS, msgspec.json.encode([*noted, *new][-_MOST_NOTED:]).decode())


def select_erased(connection: apsw.Connection, ids: Iterable[str]) -> set[str]:
    """Return the given ids that belong to erased memories or turns, as far as the history goes back."""
    sql = (
        "SELECT 1 FROM history h JOIN operations o ON o.number = h.operation"
        f" WHERE h.memory = ? AND o.kind = '{history.ERASE}'"
    )
    return {id for id in ids if connection.execute(sql, (id,)).get}


def was_erased_from(connection: apsw.Connection, session: str) -> bool:
    """Return whether something was erased from a session."""
    return bool(session) and digest(session) in read_noted(connection)


def find_suspect(connection: apsw.Connection, records: Collection[Row]) -> set[str]:
    """Return the ids of imported memories whose neighbours may contain a text that was erased here.

    They are turns of sessions from which something was erased and, if anything was erased, turns without a session.
    """
    noted = set(read_noted(connection))
    was_erased = "SELECT 1 FROM operations WHERE kind = ? LIMIT 1"
    if not noted and connection.execute(was_erased, (history.ERASE,)).get is None:
        return set()
    sessions = {record.id: turns.read_session(record) for record in records if record.neighbours}
    return {id for id, session in sessions.items() if not session or digest(session) in noted}


def read_noted(connection: apsw.Connection) -> list[str]:
    """Return the digests of the sessions from which something was erased."""
    return msgspec.json.decode(database_settings.read(connection, _SESSIONS) or "[]", type=list[str])


def digest(session: str) -> str:
    """Return the digest of a session's name."""
    return hashlib.sha256(session.encode()).hexdigest()[:32]
