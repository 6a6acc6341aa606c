"""Which turns are there already, as they were observed when they were said."""

from typing import Any

import apsw

_SAID = (
    "SELECT id FROM memories WHERE content_hash = ?1 AND turns = 1 AND source <> ?3 AND metadata ->> '$.session' = ?2"
    " UNION ALL SELECT key FROM turns WHERE content_hash = ?1 AND session = ?2 LIMIT 1"
)


def find(connection: apsw.Connection, session: str, key: bytes, source: str) -> str | None:
    """Return the id of a turn or memory of a session with this text that has another source, None for none."""
    found: Any = connection.execute(_SAID, (key, session, source)).get if session else None
    return None if found is None else str(found)
