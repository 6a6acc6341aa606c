"""Pauses, during which no turns are observed: of sessions, of namespaces and folders with all inside them."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import apsw
import msgspec

from memoryd.client.errors import Conflict
from memoryd.client.protocol import Pause, PauseKind
from memoryd.daemon.store import settings
from memoryd.daemon.store.writer import Transaction

_ENDED = "ended_pauses"  # setting: a JSON list
_MOST_ENDED = 1000
_MOST_UNHEARD = 10_000  # sessions whose last prompt fell into a pause
_KEEP = (
    "INSERT INTO pauses (kind, name, since) VALUES (?, ?, ?)"
    " ON CONFLICT DO UPDATE SET since = min(since, excluded.since)"
)


class TurnPlace(NamedTuple):
    """Where turns were said; what is not known is empty."""

    namespace: str
    session: str
    folder: str


class _EndedPause(msgspec.Struct, omit_defaults=True):
    """A pause that was resumed: what was said from `since` on and before `until` is not observed later either."""

    kind: PauseKind
    name: str
    since: float
    until: float
    is_hidden: bool = False  # a version before erased names of pauses: it is a digest


class PauseRecord(NamedTuple):
    """The pauses that a database holds: those in force, and those that were resumed."""

    made: list[Pause]
    ended: list[_EndedPause]


def read_record(connection: apsw.Connection) -> PauseRecord:
    """Return the pauses of a database."""
    return PauseRecord(_read(connection), _read_ended(connection))


def carry_over(connection: apsw.Connection, record: PauseRecord) -> list[str]:
    """Keep in another database what is paused or was; return what is paused in it for that alone.

    A pause of that database which was resumed since, by the record, is not in force again.
    """
    copied = read_record(connection)
    sql = "DELETE FROM pauses WHERE kind = ? AND name = ? AND since = ?"
    connection.executemany(sql, [(one.kind, one.name, one.since) for one in record.ended])
    connection.executemany(_KEEP, [(one.kind, one.name, one.since) for one in record.made])
    if new := [one for one in record.ended if one not in copied.ended]:
        _put_ended(connection, [*copied.ended, *new])
    there = {(one.kind, one.name) for one in copied.made}
    return [one.name or "/" for one in record.made if (one.kind, one.name) not in there]


class Pauses:
    """The pauses that were made, and those of the settings, which begin with `/` or `~` where they name a folder.

    With `only`, everywhere outside of the places that it names is paused.
    """

    def __init__(self, connection: apsw.Connection, never: Sequence[str], only: Sequence[str] = ()) -> None:
        self._never = [_read_place(name) for name in never]
        self._only = [_read_place(name) for name in only]
        self._made = _read(connection)
        self._ended = _read_ended(connection)
        self._unheard: dict[tuple[str, str], str] = {}

    def note_prompt(self, place: TurnPlace, unheard: str | None) -> None:
        """Note, in RAM alone, why the last prompt of a session was not heard, if so: its answer is left out, too."""
        key = (place.namespace, place.session)
        self._unheard.pop(key, None)
        if unheard:
            self._unheard[key] = unheard
            for oldest in list(self._unheard)[:-_MOST_UNHEARD]:
                self._unheard.pop(oldest, None)

    def find_unheard(self, place: TurnPlace) -> str | None:
        """Return why the last prompt of a session was not heard, None if it was."""
        return self._unheard.get((place.namespace, place.session))

    def list_all(self) -> list[Pause]:
        """Return all of them, those of the settings last."""
        return [*self._made, *self._never]

    def list_only(self) -> list[str]:
        """Return the places outside of which nothing is observed; none: there is no such limit."""
        return [place.name or "/" for place in self._only]

    def is_paused(self, place: TurnPlace) -> bool:
        """Return whether turns are not observed at a place now."""
        return self._is_outside(place) or any(_is_within(place, pause) for pause in self.list_all())

    def hides(self, place: TurnPlace, at: float) -> bool:
        """Return whether what was said at a time is not to be taken in now: it is paused there, or was then."""
        return self.is_paused(place) or self.silences(place, at)

    def _is_outside(self, place: TurnPlace) -> bool:
        return bool(self._only) and not any(_is_within(place, one) for one in self._only)

    def silences(self, place: TurnPlace, at: float) -> bool:
        """Return whether something was said in a pause, one that is over too."""
        if self._is_outside(place):
            return True
        if any((one.since is None or one.since <= at) and _is_within(place, one) for one in self.list_all()):
            return True
        return any(one.since <= at < one.until and _is_within(place, one) for one in self._ended)

    def put(self, transaction: Transaction, kind: str, name: str, now: float) -> list[Pause]:
        """Pause observing, if it is not; return all pauses."""
        values = (kind, _normalise(kind, name), now)
        transaction.connection.execute("INSERT OR IGNORE INTO pauses (kind, name, since) VALUES (?, ?, ?)", values)
        return self.follow(transaction)

    def remove(self, transaction: Transaction, kind: str, name: str, now: float) -> list[Pause]:
        """Observe again; return all pauses."""
        connection, values = transaction.connection, (kind, _normalise(kind, name))
        sql = "DELETE FROM pauses WHERE kind = ? AND name = ? RETURNING kind, name, since"
        removed: Any = connection.execute(sql, values).fetchall()
        ending = [_EndedPause(was, place, since, now) for was, place, since in removed]
        if ending:
            _put_ended(connection, [*_read_ended(connection), *ending])
        return self.follow(transaction)

    def spread(self, transaction: Transaction, namespace: str, to: str) -> None:
        """Let what is paused or was in a namespace be so in another; raise `Conflict` if only the settings say it."""
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
        """Take over what a transaction made of the pauses; return those in force."""
        made, ended = _read(transaction.connection), _read_ended(transaction.connection)

        def take_over() -> None:
            self._made, self._ended = made, ended

        transaction.after_commit(take_over)
        return [*made, *self._never]


def _put_ended(connection: apsw.Connection, ended: Sequence[_EndedPause]) -> None:
    settings.put(connection, _ENDED, msgspec.json.encode(ended[-_MOST_ENDED:]).decode())


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:32]


def _read(connection: apsw.Connection) -> list[Pause]:
    cursor: Any = connection.execute("SELECT kind, name, since FROM pauses ORDER BY since, kind, name")
    return [Pause(kind=kind, name=name, since=since) for kind, name, since in cursor]


def _read_ended(connection: apsw.Connection) -> list[_EndedPause]:
    return msgspec.json.decode(settings.read(connection, _ENDED) or "[]", type=list[_EndedPause])


def _read_place(name: str) -> Pause:
    """Return a folder or namespace of the settings."""
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
