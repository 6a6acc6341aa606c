"""Determine which memories are superseded, and by which memory.

`superseded_by` names the successor of a memory, which may have a successor itself, and so on. A memory is superseded
while one of these successors exists and has not expired, even if the caller cannot see the successor. When the last
successor is deleted or expires, the memory becomes valid again; when one is restored or its expiry is moved, the memory
is superseded again. This is computed from the rows, so nothing is written for it. Triggers keep a deleted successor in
`deleted_successors`, so that its predecessors are superseded by its own successor. They also break cycles, in which all
memories would hide each other.

`SUPERSEDED` answers in SQL, at one time; `find_nearest` returns what `arrays/columns` needs to answer in RAM.
"""

from collections.abc import Iterable, Sequence

import apsw
import msgspec

from memoryd.daemon.store.rows import Row

UNEXPIRED = "({m}.expires_at IS NULL OR {m}.expires_at > ? OR {m}.pinned)"  # the parameter is the time
# The nearest successor of the memory `m` that exists and meets a condition.
_LATER = (
    "WITH RECURSIVE later (id) AS (SELECT m.superseded_by UNION SELECT coalesce("
    "(SELECT n.superseded_by FROM memories n WHERE n.id = later.id),"
    " (SELECT d.superseded_by FROM deleted_successors d WHERE d.id = later.id)) FROM later WHERE later.id IS NOT NULL)"
    " SELECT {column} FROM later CROSS JOIN memories s ON s.id = later.id WHERE {condition} LIMIT 1"
)
_BY = f"({_LATER.format(column='s.id', condition=UNEXPIRED.format(m='s'))})"
SUPERSEDED = f"(m.superseded_by IS NOT NULL AND {_BY} IS NOT NULL)"  # the parameter is the time

_SUCCESSORS = (
    f"SELECT m.row, {_BY} FROM memories m WHERE m.superseded_by IS NOT NULL"
    " AND m.row IN (SELECT value FROM json_each(?))"
)
_NEAREST = f"SELECT m.row, ({_LATER.format(column='s.row', condition='TRUE')}) FROM memories m"
# The index contains only the few superseded memories, so the start reads no other row, which may be damaged.
_NEAREST_OF_ALL = f"{_NEAREST} INDEXED BY memories_superseded WHERE m.superseded_by IS NOT NULL ORDER BY m.row DESC"
# The same for some rows, even deleted ones, and for the memories that have one of these as nearest successor.
_NEAREST_AROUND = (
    "WITH RECURSIVE changed (row) AS (SELECT value FROM json_each(?)), named (id) AS ("
    "SELECT m.id FROM changed CROSS JOIN memories m USING (row)"
    " UNION SELECT d.id FROM changed CROSS JOIN deleted_successors d USING (row)"
    " UNION SELECT d.id FROM named CROSS JOIN deleted_successors d ON d.superseded_by = named.id)"
    f" {_NEAREST} WHERE m.superseded_by IS NOT NULL AND m.row IN (SELECT row FROM changed"
    " UNION SELECT p.row FROM named CROSS JOIN memories p ON p.superseded_by = named.id) ORDER BY m.row DESC"
)


def read_in_force(connection: apsw.Connection, records: Iterable[Row], now: float) -> dict[int, str]:
    """Return the id of the memory that supersedes each of these memories, by row; leave out those not superseded."""
    numbers = [row.row for row in records if row.superseded_by is not None]
    if not numbers:
        return {}
    return {row: by for row, by in connection.execute(_SUCCESSORS, (now, _encode_json(numbers))) if by is not None}


def find_nearest(connection: apsw.Connection, numbers: Sequence[int] | None) -> list[tuple[int, int | None]]:
    """Return (row, row of its nearest existing successor) of the rows `numbers` and of the memories they supersede.

    None for `numbers` means all. Newer rows come first, so most successors come before their predecessors.
    """
    sql, values = (_NEAREST_OF_ALL, ()) if numbers is None else (_NEAREST_AROUND, (_encode_json(numbers),))
    return list(connection.execute(sql, values))


def _encode_json(numbers: Sequence[int]) -> str:
    return msgspec.json.encode(numbers).decode()
