"""Pauses: sessions, namespaces and folders (with everything inside them) whose turns are not recorded."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import apsw
import msgspec

from memoryd.client.errors import Conflict
from memoryd.client.protocol import Pause, PauseKind
from memoryd.daemon.store import database_settings
from memoryd.daemon.store.writer import Transaction

_ENDED = "ended_pauses"  # setting: a JSON list
_MOST_ENDED = 1000
_MOST_IGNORED = 10_000  # sessions whose ignored prompts are remembered
_KEEP = (
    "INSERT INTO pauses (kind, name, since) VALUES (?, ?, ?)"
    " ON CONFLICT DO UPDATE SET since = min(since, excluded.since)"
)


class TurnPlace(NamedTuple):
    """The place that turns come from; unknown parts are empty."""

    namespace: str
    session: str
    folder: str


class _EndedPause(msgspec.Struct, omit_defaults=True):
    """A pause that has ended: turns from `since` until before `until` are not recorded later either."""

    kind: PauseKind
    name: str
    since: float
    until: float
    is_hidden: bool = False  # the name was erased by an earlier version, and is a digest


class PauseRecord(NamedTuple):
    """The pauses of a database: those in force, and those that have ended."""

    made: list[Pause]
    ended: list[_EndedPause]


def read_record(connection: apsw.Connection) -> PauseRecord:
    """Return the pauses of a database."""
    return PauseRecord(_read(connection), _read_ended(connection))


def carry_over(connection: apsw.Connection, record: PauseRecord) -> list[str]:
    """Merge a record of pauses into another database; return the places that are paused there only because of it.

    A pause of that database which has ended according to the record is removed.
    """
    copied = read_record(connection)
    sql = "DELETE FROM pauses WHERE kind = ? AND name = ? AND since = ?"
    connection.executemany(sql, [(one.kind, one.name, one.since) for one in record.ended])
    connection.executemany(_KEEP, [(one.kind, one.name, one.since) for one in record.made])
    if new := [one for one in record.ended if one not in copied.ended]:
        _put_ended(connection, [*copied.ended, *new])
    paused_before = {(one.kind, one.name) for one in copied.made}
    return [one.name or "/" for one in record.made if (one.kind, one.name) not in paused_before]


class Pauses:
    """The pauses in the database, and those of the settings: `never`, and with `only` everything outside its places.

    A place in the settings that begins with `/` or `~` is a folder, any other one a namespace.
    """

    def __init__(self, connection: apsw.Connection, never: Sequence[str], only: Sequence[str] = ()) -> None:
        self._never = [_read_place(name) for name in never]
        self._only = [_read_place(name) for name in only]
        self._made = _read(connection)
        self._ended = _read_ended(connection)
        self._ignored_prompts: dict[tuple[str, str], str] = {}

    def note_prompt(self, place: TurnPlace, ignored: str | None) -> None:
        """Remember, in RAM only, why the last prompt of a session was ignored, so that its answer is ignored too."""
        key = (place.namespace, place.session)
        self._ignored_prompts.pop(key, None)
        if ignored:
            self._ignored_prompts[key] = ignored
            for oldest in list(self._ignored_prompts)[:-_MOST_IGNORED]:
                self._ignored_prompts.pop(oldest, None)

    def find_ignored_prompt(self, place: TurnPlace) -> str | None:
        """Return why the last prompt of a session was ignored, None if it was recorded."""
        return self._ignored_prompts.get((place.namespace, place.session))

    def list_all(self) -> list[Pause]:
        """Return all pauses in force, those of the settings last."""
        return [*self._made, *self._never]

    def list_only(self) -> list[str]:
        """Return the only places where turns are recorded; an empty list means everywhere."""
        return [place.name or "/" for place in self._only]

    def is_paused(self, place: TurnPlace) -> bool:
        """Return whether recording is paused at a place now."""
        return self._is_outside(place) or any(_is_within(place, pause) for pause in self.list_all())

    def hides(self, place: TurnPlace, at: float) -> bool:
        """Return whether turns of a time must not be recorded: the place is paused now, or was at that time."""
        return self.is_paused(place) or self.covers(place, at)

    def _is_outside(self, place: TurnPlace) -> bool:
        return bool(self._only) and not any(_is_within(place, one) for one in self._only)

    def covers(self, place: TurnPlace, at: float) -> bool:
        """Return whether a time falls into a pause of the place, present or past."""
        if self._is_outside(place):
            return True
        if any((one.since is None or one.since <= at) and _is_within(place, one) for one in self.list_all()):
            return True
        return any(one.since <= at < one.until and _is_within(place, one) for one in self._ended)

    def put(self, transaction: Transaction, kind: str, name: str, now: float) -> list[Pause]:
        """Add a pause unless it exists; return all pauses."""
        values = (kind, _normalise(kind, name), now)
        transaction.connection.execute("INSERT OR IGNORE INTO pauses (kind, name, since) VALUES (?, ?, ?)", values)
        return self.follow(transaction)

    def remove(self, transaction: Transaction, kind: str, name: str, now: float) -> list[Pause]:
        """End a pause and keep its interval; return all pauses."""
        connection, values = transaction.connection, (kind, _normalise(kind, name))
        sql = "DELETE FROM pauses WHERE kind = ? AND name = ? RETURNING kind, name, since"
        removed: Any = connection.execute(sql, values).fetchall()
        ending = [_EndedPause(was, place, since, now) for was, place, since in removed]
        if ending:
            _put_ended(connection, [*_read_ended(connection), *ending])
        return self.follow(transaction)

    def spread(self, transaction: Transaction, namespace: str, to: str) -> None:
        """Copy the pauses of a namespace, present and past, to another; raise `Conflict` for one in the settings."""
        old, new = TurnPlace(namespace, "", ""), TurnPlace(to, "", "")
        connection = transaction.connection
        for pause in self.list_all():
            if not (_is_within(old, pause) and not _is_within(new, pause)):
                continue
            if pause.since is None:
                raise Conflict(
                    f"`never` of [observe] in the settings names {pause.name}; put {to} there, too, before the project"
                    " has that name.",
                )
            connection.execute(_KEEP, ("namespace", to, pause.since))
        known = _read_ended(connection)
        coming = [
            msgspec.structs.replace(one, name=to) for one in known if _is_within(old, one) and not _is_within(new, one)
        ]
        _put_ended(connection, [*known, *(one for one in coming if one not in known)])
        self.follow(transaction)

    def follow(self, transaction: Transaction) -> list[Pause]:
        """Reload the pauses after a transaction has changed them; return those in force."""
        made, ended = _read(transaction.connection), _read_ended(transaction.connection)

        def take_over() -> None:
            self._made, self._ended = made, ended

        transaction.after_commit(take_over)
        return [*made, *self._never]


def _put_ended(connection: apsw.Connection, ended: Sequence[_EndedPause]) -> None:
    database_settings.put(connection, _ENDED, msgspec.json.encode(ended[-_MOST_ENDED:]).decode())


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:32]


def _read(connection: apsw.Connection) -> list[Pause]:
    cursor: Any = connection.execute("SELECT kind, name, since FROM pauses ORDER BY since, kind, name")
    return [Pause(kind=kind, name=name, since=since) for kind, name, since in cursor]


def _read_ended(connection: apsw.Connection) -> list[_EndedPause]:
    return msgspec.json.decode(database_settings.read(connection, _ENDED) or "[]", type=list[_EndedPause])


def _read_place(name: str) -> Pause:
    """Return the pause of a folder or namespace that the settings name."""
    kind: PauseKind = "folder" if name.startswith(("/", "~")) else "namespace"
    return Pause(kind=kind, name=_normalise(kind, name))


def _normalise(kind: str, name: str) -> str:
    if kind == "folder":
        return os.path.normpath(os.path.expanduser(name))
    return name.strip("/") if kind == "namespace" else name


def _is_within(place: TurnPlace, pause: Pause | _EndedPause) -> bool:
    if isinstance(pause, _EndedPause) and pause.is_hidden:
        return pause.name in map(_digest, _list_around(place, pause.kind))
    return pause.name in _list_around(place, pause.kind)


def _list_around(place: TurnPlace, kind: PauseKind) -> Iterator[str]:
    """Yield the names of all pauses of a kind that a place would be in."""
    if kind == "session":
        yield place.session
        return
    name = place.namespace if kind == "namespace" else os.path.normpath(place.folder) if place.folder else ""
    while name.strip("/"):
        yield name
        name = name.rpartition("/")[0]
    if kind == "namespace":
        yield ""
    elif place.folder.startswith("/"):
        yield "/"
