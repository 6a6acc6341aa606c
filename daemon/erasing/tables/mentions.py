"""Find everything that contains a text or belongs to a session, for an erase by text or session.

Apart from memories and turns these are skipped turns, rows of the extraction queue and the session's name in the
operation log (`OtherTraces`), in the database and in copies of it. Names of namespaces, tokens and folders are kept,
since they are no content.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import apsw
import msgspec

from memoryd.client.protocol import Mentioned
from memoryd.client.text_match import Wording
from memoryd.daemon.erasing.tables import erasing, neighbours
from memoryd.daemon.erasing.tables.neighbours import ChangedNeighbours, NeighbourTexts
from memoryd.daemon.store import erasures, feedback, rows, turns
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import DOCUMENTS
from memoryd.daemon.store.turns import StoredTurn

_AROUND = 60  # characters shown before and after a mention

_ERASED_SESSION = "erased"  # replaces the name of a session in the operation log
_TABLES = ("extraction", "skipped")


class Mention:
    """A text that is searched for in memories and turns."""

    def __init__(self, words: str) -> None:
        self.text = words
        self._words, self._quoted = Wording(words), Wording(words, is_json=True)

    def is_in(self, record: Row | StoredTurn | None) -> bool:
        """Return whether a memory or turn contains the text."""
        return self.find(record) is not None

    def is_in_text(self, text: str) -> bool:
        """Return whether a string contains the text."""
        return self._words.is_in(text)

    def find(self, record: Row | StoredTurn | None) -> tuple[str, str] | None:
        """Return the first part of a memory or turn that contains the text, and an excerpt of it."""
        for place, text in _list_texts(record):
            if found := (self._quoted if place == "metadata" else self._words).find(text):
                return place, _cut(text, *found)
        return None

    def describe_around(self, one: NeighbourTexts) -> Mentioned:
        """Return where the neighbours of a memory contain the text."""
        text = _cut(one.text, *(self._words.find(one.text) or (0, 0)))
        return Mentioned(id=one.id, place="neighbours", text=text, is_former=one.table == "history")


def _list_texts(record: Row | StoredTurn | None) -> Iterator[tuple[str, str]]:
    if isinstance(record, StoredTurn):
        yield from (("text", record.content), ("speaker", record.speaker))
        yield from (("session", record.session), ("files", record.files))
    elif record is not None:
        yield from (("text", record.content), ("summary", record.summary), ("key", record.key or ""))
        yield from (("feedback", vote.note) for vote in feedback.decode_votes(record.feedback))
        yield "session", _read_session(record) or ""
        yield "metadata", record.metadata


def _cut(text: str, begin: int, end: int) -> str:
    begin, end = max(0, begin - _AROUND), end + _AROUND
    return f"{'…' if begin else ''}{text[begin:end]}{'…' if end < len(text) else ''}"


def describe(id: str, mention: Mention, present: Row | StoredTurn | None, former: Row | StoredTurn | None) -> Mentioned:
    """Return where a memory contains a text: in its present state (None: it was deleted), else in its former one."""
    found = mention.find(present)
    place, text = found or mention.find(former) or ("text", "")
    return Mentioned(id=id, place=place, text=text, is_former=found is None, is_deleted=present is None)


def find_mentions(
    connection: apsw.Connection, mention: Mention, condition: str, values: Sequence[Any]
) -> tuple[list[str], list[str]]:
    """Return the ids of the memories within a condition that contain a text, and the paths of such files."""
    ids: list[str] = []
    files: dict[str, None] = {}
    for row in rows.iterate(connection, f"{condition} ORDER BY m.row", values):
        if row.tier == DOCUMENTS:
            files |= dict.fromkeys([row.path or ""] if mention.is_in(row) else [])
        elif mention.is_in(row):
            ids.append(row.id)
    return ids, list(files)


# Other traces --------------------------------------------------------------------------------------------------------


class OtherTraces(NamedTuple):
    """The traces, apart from memories and turns, of a session, of a text, or of a text within a session.

    `reached` are the numbers of namespaces (None: all), `after` and `before` limit the time. Without arguments it
    matches nothing.
    """

    session: str | None = None
    mention: Mention | None = None
    reached: frozenset[int] | None = None
    after: float | None = None
    before: float | None = None

    def sum_up(self, connection: apsw.Connection, ids: Iterable[str]) -> tuple[int, int]:
        """Return the numbers of skipped turns and of conversations waiting for extraction.

        The skipped turns include those that repeat the memories `ids`.
        """
        skipped, waiting = self._find(connection, "skipped"), self._find(connection, "extraction", "namespace, session")
        numbers = {number for (number,) in skipped} | erasing.find_skipped(connection, ids)
        return len(numbers), len(set(waiting))

    def is_in(self, connection: apsw.Connection) -> bool:
        """Return whether a database contains any of these traces."""
        return bool(
            any(self._find(connection, table) for table in _TABLES)
            or self._find_makers(connection)
            or self.find_neighbour_texts(connection, (), ())
            or self.find_ids(connection)
        )

    def find_ids(self, connection: apsw.Connection) -> list[str]:
        """Return the ids of matching memories and turns in a copy of the database, former states and files included.

        Empty if limited by namespace or time: then only the memories erased from the database are erased from copies.
        """
        if self == OtherTraces() or self != OtherTraces(self.session, self.mention):
            return []

        def matches(record: Row | StoredTurn | None) -> bool:
            is_said_there = self.session is None or _read_session(record) == self.session
            return is_said_there and (self.mention is None or self.mention.is_in(record))

        return [
            *(row.id for row in rows.iterate(connection, "TRUE", ()) if matches(row)),
            *(turn.key for turn in turns.read_all(connection) if matches(turn)),
            *(one.id for one in erasing.find_past(connection) if matches(one.held)),
        ]

    def erase(self, connection: apsw.Connection) -> None:
        """Erase the traces, but no memories and turns."""
        connection.pragma("secure_delete", True)
        erasures.note_sessions(connection, self._find_sessions(connection))
        for table in _TABLES:
            connection.executemany(f"DELETE FROM {table} WHERE id = ?", self._find(connection, table))
        makers = [(_ERASED_SESSION, name) for name in self._find_makers(connection)]
        connection.executemany("UPDATE operations SET session = ? WHERE session = ?", makers)
        given = connection.execute("SELECT id, session FROM given").fetchall()
        about = [(id,) for id, key in given if self._is_session(str(key).partition("\n")[2])]
        connection.executemany("DELETE FROM given WHERE id = ?", about)

    def find_neighbour_texts(
        self, connection: apsw.Connection, ids: Collection[str], texts: Sequence[str]
    ) -> dict[str, NeighbourTexts]:
        """Return by id the matching neighbour texts of memories and turns, except those of `ids`, without `texts`."""
        if self.mention is None:
            return {}
        keep, found, erased = neighbours.build_remover(texts), dict[str, NeighbourTexts](), set(ids)
        for one in neighbours.find(connection):
            if (
                one.id not in erased
                and one.id not in found
                and self._matches_neighbours(rest := one._replace(text=keep(one)))
            ):
                found[one.id] = rest
        return found

    def clear_neighbour_texts(self, connection: apsw.Connection) -> ChangedNeighbours:
        """Clear the neighbour texts of memories and turns that match."""
        if self.mention is None:
            return ChangedNeighbours([], set(), set())
        changed = neighbours.cut(connection, lambda one: "" if self._matches_neighbours(one) else one.text)
        erasures.note_sessions(connection, changed.sessions)
        return changed

    def _matches_neighbours(self, one: NeighbourTexts) -> bool:
        is_mentioned = self.mention is not None and self.mention.is_in_text(one.text)
        return is_mentioned and self._matches(one.namespace, one.session, one.text, one.created_at)

    def _find_sessions(self, connection: apsw.Connection) -> list[str]:
        """Return the sessions that the traces belong to."""
        said = [session for table in _TABLES for (session,) in self._find(connection, table, "session")]
        return [*said, *([self.session] if self.session and self == OtherTraces(self.session) else [])]

    def _find(self, connection: apsw.Connection, table: str, columns: str = "id") -> list[tuple[Any, ...]]:
        """Return columns of the matching rows of a table."""
        text, at = ("content", "at") if table == "skipped" else ("''", "queued_at")
        found: Iterable[Any] = connection.execute(
            f"SELECT namespace, session, {text}, {at}, {columns} FROM {table} WHERE namespace IS NOT NULL"
        )
        return [tuple(keys) for place, session, said, when, *keys in found if self._matches(place, session, said, when)]

    def _find_makers(self, connection: apsw.Connection) -> list[str]:
        """Return the sessions in the operation log that are to be erased as a whole."""
        names = connection.execute(
            "SELECT DISTINCT session FROM operations WHERE session NOT IN ('', ?)", (_ERASED_SESSION,)
        )
        return [str(name) for (name,) in names if self._is_session(str(name))]

    def _matches(self, namespace: int, session: str, text: str, at: float) -> bool:
        return (
            self != OtherTraces()
            and (self.session is None or session == self.session)
            and (self.mention is None or self.mention.is_in_text(session) or self.mention.is_in_text(text))
            and (self.reached is None or namespace in self.reached)
            and (self.after is None or at > self.after)
            and (self.before is None or at < self.before)
        )

    def _is_session(self, name: str) -> bool:
        """Return whether a session is to be erased as a whole."""
        if self == OtherTraces(self.session):
            return name == self.session
        return self == OtherTraces(None, self.mention) and self.mention is not None and self.mention.is_in_text(name)


def _read_session(record: Row | StoredTurn | None) -> str | None:
    if isinstance(record, StoredTurn):
        return record.session
    session = msgspec.json.decode(record.metadata).get("session") if record else None
    return session if isinstance(session, str) else None
