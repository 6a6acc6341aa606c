"""Find the summaries and facts that were made of turns, and name these or their session in the metadata."""

from collections.abc import Iterable

import apsw
import msgspec

from memoryd.daemon.store import rows
from memoryd.daemon.store.rows import Row

# Later summaries of the session of a turn, and facts that name the turn.
_SUMMARIES = (
    "m.namespace = ? AND m.type = 'note' AND m.source = 'session_summary' AND m.metadata ->> '$.session' = ?"
    " AND m.created_at >= ?"
)
_FACTS = (
    "m.namespace = ? AND m.source = 'extraction' AND json_type(m.metadata, '$.turns') = 'array'"
    " AND EXISTS (SELECT 1 FROM json_each(m.metadata, '$.turns') t WHERE t.value = ?)"
)


def find_made(connection: apsw.Connection, said: Iterable[Row]) -> list[Row]:
    """Return the summaries and facts that were made of the given memories, if these are turns."""
    made: dict[str, Row] = {}
    for row in said:
        metadata = msgspec.json.decode(row.metadata) if row.turns else {}
        found = rows.select(connection, _FACTS, (row.namespace, row.id)) if row.turns else []
        if isinstance(session := metadata.get("session"), str):
            found += rows.select(connection, _SUMMARIES, (row.namespace, session, row.created_at))
        made |= {one.id: one for one in found}
    return list(made.values())
