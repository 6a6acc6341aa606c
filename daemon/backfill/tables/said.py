"""Find turns of a past session that were recorded while it ran, or that were deleted since."""

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
    """Return the id of a session's turn or memory with this text and another source, None if there is none."""
    found: Any = connection.execute(_SAID, (key, session, source)).get if session else None
    return None if found is None else str(found)


def was_deleted(connection: apsw.Connection, session: str, text_key: bytes) -> bool:
    """Return whether the history has a deleted turn of a session with this text (its vector's key)."""
    return connection.execute(_DELETED, (text_key, session)).get is not None
