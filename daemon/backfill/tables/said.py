"""Which turns are there already, as they were observed when they were said, and which were deleted."""

from typing import Any

import apsw

_SAID = (
    "SELECT id FROM memories WHERE content_hash = ?1 AND turns = 1 AND source <> ?3 AND metadata ->> '$.session' = ?2"
    " UNION ALL SELECT key FROM turns WHERE content_hash = ?1 AND session = ?2 LIMIT 1"
)

_DELETED = (
    "SELECT 1 FROM history h JOIN operations o ON o.number = h.operation WHERE h.text_hash = ? AND o.kind = 'delete'"
    " AND o.undone_by IS NULL"
    " AND coalesce(h.before ->> '$.turn.session', (h.before ->> '$.row.metadata') ->> '$.session') = ? LIMIT 1"
)


def find(connection: apsw.Connection, session: str, key: bytes, source: str) -> str | None:
    """Return the id of a turn or memory of a session with this text that has another source, None for none."""
    found: Any = connection.execute(_SAID, (key, session, source)).get if session else None
    return None if found is None else str(found)


def was_deleted(connection: apsw.Connection, session: str, text_key: bytes) -> bool:
    """Return whether a turn of a session with this text (the key of its vector) was deleted, as far as history goes."""
    return connection.execute(_DELETED, (text_key, session)).get is not None
