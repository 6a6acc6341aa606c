"""What an erase is about beside ids: a text that is mentioned, and a session.

Beside memories and turns a session has turns that were skipped, rows of the extraction queue, and its name in the
operation log. `Beside` finds and erases these, in the database and in copies of it. Names of all else, such as
namespaces, tokens and folders, stay: they are not what somebody said.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import apsw
import msgspec

from memoryd.client.protocol import Mentioned
from memoryd.client.text_match import Wording
from memoryd.daemon.erasing.tables import erasing, neighbours
from memoryd.daemon.erasing.tables.neighbours import Around, ChangedAround
from memoryd.daemon.store import erasures, feedback, rows, turns
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import DOCUMENTS
from memoryd.daemon.store.turns import StoredTurn

_AROUND = 60  # characters shown before and after a mention

_GONE = "erased"  # is in the place of the session that made an operation
_BESIDE = ("extraction", "skipped")


class Mention:
    """Words that are looked for in memories and turns."""

    def __init__(self, words: str) -> None:
        self.text = words
        self._words, self._quoted = Wording(words), Wording(words, is_json=True)

    def is_in(self, record: Row | StoredTurn | None) -> bool:
        """Return whether a memory or turn mentions them."""
        return self.find(record) is not None

    def is_in_text(self, text: str) -> bool:
        """Return whether a text holds them."""
        return self._words.is_in(text)

    def find(self, record: Row | StoredTurn | None) -> tuple[str, str] | None:
        """Return in which part of a memory or turn they are first, and the text around them there."""
        for place, text in _list_texts(record):
            if found := (self._quoted if place == "metadata" else self._words).find(text):
                return place, _cut(text, *found)
        return None

    def describe_around(self, one: Around) -> Mentioned:
        """Return where what was said around a memory mentions them."""
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
    """Return where a memory, as it is (None: it was deleted) or as it was, mentions a text."""
    found = mention.find(present)
    place, text = found or mention.find(former) or ("text", "")
    return Mentioned(id=id, place=place, text=text, is_former=found is None, is_deleted=present is None)


def find_mentions(
    connection: apsw.Connection, mention: Mention, condition: str, values: Sequence[Any]
) -> tuple[list[str], list[str]]:
    """Return the ids of the memories that meet a condition and mention a text, and the paths of the files that do."""
    ids: list[str] = []
    files: dict[str, None] = {}
    for row in rows.iterate(connection, f"{condition} ORDER BY m.row", values):
        if row.tier == DOCUMENTS:
            files |= dict.fromkeys([row.path or ""] if mention.is_in(row) else [])
        elif mention.is_in(row):
            ids.append(row.id)
    return ids, list(files)


# What is beside memories and turns -----------------------------------------------------------------------------------


class Beside(NamedTuple):
    """What an erase takes beside memories and turns: of a session, of what mentions a text, or of both at once.

    `reached` are the numbers of namespaces (None: all), `after` and `before` bounds of the time. All left out: nothing.
    """

    session: str | None = None
    mention: Mention | None = None
    reached: frozenset[int] | None = None
    after: float | None = None
    before: float | None = None

    def sum_up(self, connection: apsw.Connection, ids: Iterable[str]) -> tuple[int, int]:
        """Return how many turns that were skipped, and how many conversations that wait for extraction.

        Skipped turns that go with memories of some ids are among them.
        """
        skipped, waiting = self._find(connection, "skipped"), self._find(connection, "extraction", "namespace, session")
        numbers = {number for (number,) in skipped} | erasing.find_skipped(connection, ids)
        return len(numbers), len(set(waiting))

    def is_in(self, connection: apsw.Connection) -> bool:
        """Return whether a database holds any of it."""
        return bool(
            any(self._find(connection, table) for table in _BESIDE)
            or self._find_makers(connection)
            or self.find_around(connection, (), ())
            or self.find_ids(connection)
        )

    def find_ids(self, connection: apsw.Connection) -> list[str]:
        """Return the ids of what a copy of the database has of it, former texts and parts of files included.

        Nothing where it is bounded by place or time: then a copy loses what the database does.
        """
        if self == Beside() or self != Beside(self.session, self.mention):
            return []

        def is_meant(record: Row | StoredTurn | None) -> bool:
            is_said_there = self.session is None or _read_session(record) == self.session
            return is_said_there and (self.mention is None or self.mention.is_in(record))

        return [
            *(row.id for row in rows.iterate(connection, "TRUE", ()) if is_meant(row)),
            *(turn.key for turn in turns.read_all(connection) if is_meant(turn)),
            *(one.id for one in erasing.find_past(connection) if is_meant(one.held)),
        ]

    def erase(self, connection: apsw.Connection) -> None:
        """Erase it, but for memories and turns."""
        connection.pragma("secure_delete", True)
        erasures.note_sessions(connection, self._find_sessions(connection))
        for table in _BESIDE:
            connection.executemany(f"DELETE FROM {table} WHERE id = ?", self._find(connection, table))
        makers = [(_GONE, name) for name in self._find_makers(connection)]
        connection.executemany("UPDATE operations SET session = ? WHERE session = ?", makers)
        given = connection.execute("SELECT id, session FROM given").fetchall()
        about = [(id,) for id, key in given if self._is_session(str(key).partition("\n")[2])]
        connection.executemany("DELETE FROM given WHERE id = ?", about)

    def find_around(self, connection: apsw.Connection, ids: Collection[str], texts: Sequence[str]) -> dict[str, Around]:
        """Return by id around which memories and turns it was said, but those of some ids, without some texts."""
        if self.mention is None:
            return {}
        keep, found, erased = neighbours.leave_out(texts), dict[str, Around](), set(ids)
        for one in neighbours.find(connection):
            if one.id not in erased and one.id not in found and self._is_around(rest := one._replace(text=keep(one))):
                found[one.id] = rest
        return found

    def forget_around(self, connection: apsw.Connection) -> ChangedAround:
        """Empty what was said around memories and turns where it is in that."""
        if self.mention is None:
            return ChangedAround([], set(), set())
        changed = neighbours.cut(connection, lambda one: "" if self._is_around(one) else one.text)
        erasures.note_sessions(connection, changed.sessions)
        return changed

    def _is_around(self, one: Around) -> bool:
        is_said = self.mention is not None and self.mention.is_in_text(one.text)
        return is_said and self._is_about(one.namespace, one.session, one.text, one.created_at)

    def _find_sessions(self, connection: apsw.Connection) -> list[str]:
        """Return the sessions of which it is."""
        said = [session for table in _BESIDE for (session,) in self._find(connection, table, "session")]
        return [*said, *([self.session] if self.session and self == Beside(self.session) else [])]

    def _find(self, connection: apsw.Connection, table: str, columns: str = "id") -> list[tuple[Any, ...]]:
        """Return columns of the rows of a table that are meant."""
        text, at = ("content", "at") if table == "skipped" else ("''", "queued_at")
        found: Iterable[Any] = connection.execute(
            f"SELECT namespace, session, {text}, {at}, {columns} FROM {table} WHERE namespace IS NOT NULL"
        )
        return [
            tuple(keys) for place, session, said, when, *keys in found if self._is_about(place, session, said, when)
        ]

    def _find_makers(self, connection: apsw.Connection) -> list[str]:
        """Return the sessions that made operations and are meant as a whole."""
        names = connection.execute("SELECT DISTINCT session FROM operations WHERE session NOT IN ('', ?)", (_GONE,))
        return [str(name) for (name,) in names if self._is_session(str(name))]

    def _is_about(self, namespace: int, session: str, text: str, at: float) -> bool:
        return (
            self != Beside()
            and (self.session is None or session == self.session)
            and (self.mention is None or self.mention.is_in_text(session) or self.mention.is_in_text(text))
            and (self.reached is None or namespace in self.reached)
            and (self.after is None or at > self.after)
            and (self.before is None or at < self.before)
        )

    def _is_session(self, name: str) -> bool:
        """Return whether a session is meant as a whole."""
        if self == Beside(self.session):
            return name == self.session
        return self == Beside(None, self.mention) and self.mention is not None and self.mention.is_in_text(name)


def _read_session(record: Row | StoredTurn | None) -> str | None:
    if isinstance(record, StoredTurn):
        return record.session
    session = msgspec.json.decode(record.metadata).get("session") if record else None
    return session if isinstance(session, str) else None
