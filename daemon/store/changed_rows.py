"""What a transaction changed, read back for subscribers to events. Nothing here runs without a subscriber.

The writer notes the ranges of row numbers that the transaction wrote in the history, in the journal of turns and in the
memories. After the commit, before the next transaction begins, it reads these rows on its own connection, so each
change is reported as it was.
"""

from typing import Any, NamedTuple

import apsw

from memoryd.daemon.store.tiers import DOCUMENTS, L0

TEXT_CHARS = 240
MAX_DETAILED = 300  # changes of one transaction that are reported one by one

_WATCHED = frozenset({"history", "turns", "memories"})
# A turn may be a side too, because undo puts turns back into L0.
_BEFORE = (
    "coalesce(h.before ->> '$.row.namespace', h.before ->> '$.moved.namespace', h.before ->> '$.turn.namespace'),"
    " iif(h.before ->> '$.turn.key' IS NULL,"
    f" coalesce(h.before ->> '$.row.tier', h.before ->> '$.moved.tier'), {L0!r}),"
    " coalesce(h.before ->> '$.row.type', h.before ->> '$.moved.type', h.before ->> '$.turn.role')"
)
_AFTER = f"coalesce(m.namespace, t.namespace), iif(t.key IS NULL, m.tier, {L0!r}), coalesce(m.type, t.role)"
_FROM = (
    " FROM history h JOIN operations o ON o.number = h.operation LEFT JOIN memories m ON m.id = h.memory"
    " LEFT JOIN turns t ON t.key = h.memory WHERE h.id BETWEEN ? AND ?"
)
_ONE_BY_ONE = (
    f"SELECT o.id, o.kind, h.memory, 1, {_BEFORE},"
    " substr(coalesce(h.before ->> '$.row.content', h.before ->> '$.turn.content',"
    f" iif(h.before ->> '$.moved' IS NULL, NULL, m.content)), 1, {TEXT_CHARS}),"
    f" {_AFTER}, substr(coalesce(m.content, t.content), 1, {TEXT_CHARS}){_FROM} ORDER BY h.id"
)
_COUNTED = (
    f"SELECT o.id, o.kind, '', count(*), {_BEFORE}, '', {_AFTER}, ''{_FROM}"
    " GROUP BY 1, 5, 6, 7, 9, 10, 11 ORDER BY min(h.id)"
)
_TURNS = (
    f"SELECT key, namespace, role, substr(content, 1, {TEXT_CHARS}) FROM turns WHERE id BETWEEN ? AND ? ORDER BY id"
)
_FILES = (
    f"SELECT namespace, path, count(*), substr(content, 1, {TEXT_CHARS}) FROM memories"
    f" WHERE row BETWEEN ? AND ? AND tier = {DOCUMENTS!r} GROUP BY 1, 2 ORDER BY min(row)"
)


class Side(NamedTuple):
    """A memory or turn as it was before a change, or as it is after it."""

    namespace: int
    tier: str
    type: str
    text: str


class RecordedChange(NamedTuple):
    """A change of one memory or turn, or the same change of `how_many`; that of an indexed file has a `path`."""

    before: Side | None
    after: Side | None
    id: str = ""
    by: str = ""
    operation: str | None = None
    how_many: int = 1
    path: str = ""
    at: float = 0.0  # when it was committed


class Written:
    """The ranges of row numbers that the current transaction wrote, by table."""

    def __init__(self) -> None:
        self._ranges: dict[str, tuple[int, int]] = {}

    def note(self, kind: int, table: str, row: int) -> None:
        """Record a row that SQLite wrote."""
        if kind == apsw.SQLITE_INSERT and table in _WATCHED:
            first, last = self._ranges.get(table, (row, row))
            self._ranges[table] = (min(first, row), max(last, row))

    def clear(self) -> None:
        """Forget the rows, for the next transaction."""
        self._ranges.clear()

    def read(self, connection: apsw.Connection) -> list[RecordedChange]:
        """Return the changes of the transaction, after its commit."""
        changes = self._read_recorded(connection)
        ids = {change.id for change in changes}
        if span := self._ranges.get("turns"):
            changes += [
                RecordedChange(None, Side(namespace, L0, role, text), key, "observe")
                for key, namespace, role, text in connection.execute(_TURNS, span)
                if key not in ids
            ]
        if span := self._ranges.get("memories"):
            changes += [
                RecordedChange(None, Side(namespace, DOCUMENTS, "", text), how_many=count, path=path)
                for namespace, path, count, text in connection.execute(_FILES, span)
            ]
        return changes

    def _read_recorded(self, connection: apsw.Connection) -> list[RecordedChange]:
        """Return the changes in the history: each from its former row to the former row of the memory's next change."""
        span = self._ranges.get("history")
        if span is None:
            return []
        detailed = span[1] - span[0] < MAX_DETAILED
        changes = [
            RecordedChange(_read_side(sides[:4]), _read_side(sides[4:]), id, by, operation, count)
            for operation, by, id, count, *sides in connection.execute(_ONE_BY_ONE if detailed else _COUNTED, span)
        ]
        if not detailed:
            return changes
        later: dict[str, RecordedChange] = {}
        for place in range(len(changes) - 1, -1, -1):
            if after := later.get(changes[place].id):
                changes[place] = changes[place]._replace(after=after.before)
            later[changes[place].id] = changes[place]
        return changes


def _read_side(values: list[Any]) -> Side | None:
    return None if values[0] is None else Side(*values)
