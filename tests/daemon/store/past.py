"""What a life of a store must remember: what was there, which operations can be taken back, what histories say."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import msgspec

from memoryd.client.protocol import Change
from memoryd.daemon.store.store import FILE_NAME
from memoryd.daemon.store.tiers import L0

ACTIVE, KEPT = "active", "kept"  # a turn in L0; one that is a memory by now
_STORED = (
    "SELECT m.id, m.content, n.name, coalesce(m.metadata ->> '$.tags', '[]'), m.key, m.expires_at, m.superseded_by,"
    f" iif(m.type = 'turn', '{KEPT}', '') FROM memories m JOIN namespaces n ON n.id = m.namespace"
    f" UNION ALL SELECT t.key, t.content, n.name, '[]', NULL, NULL, NULL, '{ACTIVE}' FROM turns t"
    " JOIN namespaces n ON n.id = t.namespace"
)


class Entry(NamedTuple):
    """What a memory or turn says."""

    content: str
    place: str
    tags: tuple[str, ...] = ()
    key: str | None = None
    expires_at: float | None = None
    successor: str | None = None
    turn: str = ""


State = dict[str, Entry]
Images = dict[str, Entry | None]


class Done(NamedTuple):
    """An operation that can be taken back: what was there before it; `again` is what it took back itself."""

    number: int  # their order
    operation: str
    before: Images
    again: "Done | None" = None


def read_state(connection: Any) -> State:
    """Return what a database holds; raise for an id that is there twice."""
    rows = connection.execute(_STORED).fetchall()
    state = {
        id: Entry(content, place, tuple(msgspec.json.decode(tags)), *rest) for id, content, place, tags, *rest in rows
    }
    assert len(state) == len(rows), "something is there twice"
    return state


def read_file(folder: Path) -> State:
    """Return what the next start finds in a folder, and that its pages agree."""
    connection = apsw.Connection(str(folder / FILE_NAME))
    try:
        assert connection.execute("PRAGMA quick_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        return read_state(connection)
    finally:
        connection.close()


class Past:
    """The operations of a life in their order, and what each memory said in turn (None: it was not there)."""

    def __init__(self) -> None:
        self.done: list[Done] = []
        self._count = 0
        self.said: dict[str, list[str | None]] = defaultdict(list)
        self.copies: dict[str, str] = {}  # and what they were made of

    def add(self, operation: str, before: Images, again: Done | None = None) -> None:
        """Note an operation."""
        self._count += 1
        self.done.append(Done(self._count, operation, before, again))

    def has_changed_since(self, done: Done) -> bool:
        """Return whether a later operation concerns what this one did; one that was taken back since then does not."""
        later = [one for one in self.done if one.number > done.number and not one.before.keys().isdisjoint(done.before)]
        return any(one.again is None or one.again.number < done.number for one in later)

    def take_back(self, done: Done, operation: str, before: Images) -> None:
        """Note that an operation was taken back by another one."""
        self.done.remove(done)
        if done.again:
            self.done = sorted([*self.done, done.again])
        else:
            self.add(operation, before, done)

    def note(self, before: State, after: State) -> None:
        """Note what an operation or a job did to what memories say."""
        for id in before.keys() | after.keys():
            old, new = _content(before.get(id)), _content(after.get(id))
            if old != new:
                self.said[id].append(new)

    def forget(self, ids: Iterable[str]) -> None:
        """Forget what was erased."""
        for id in ids:
            self.said.pop(id, None)

    def find_copies(self, id: str) -> set[str]:
        """Return what was copied from a memory, and from that."""
        found: set[str] = set()
        new = {id}
        while new:
            found |= new
            new = {copy for copy, origin in self.copies.items() if origin in new}
        return found - {id}

    def agrees(self, id: str, changes: Iterable[Change]) -> bool:
        """Return whether a history says what is known; its beginning may be forgotten after a year."""
        found = [
            None if change.action == "deleted" else change.changed["content"][1]
            for change in changes
            if (change.action == "deleted" or "content" in change.changed) and not _is_of_turn(change)
        ]
        return self.said[id][len(self.said[id]) - len(found) :] == found


def _is_of_turn(change: Change) -> bool:
    """Return whether something came or went as a turn of L0, whose time there is not noted here."""
    return change.action != "updated" and L0 in change.changed.get("tier", ())


def _content(entry: Entry | None) -> str | None:
    return None if entry is None or entry.turn == ACTIVE else entry.content


def has_key_twice(state: Mapping[str, Entry]) -> bool:
    """Return whether two memories of a place have one key, which must not be."""
    keys = [(entry.place, entry.key) for entry in state.values() if entry.key]
    return len(keys) > len(set(keys))
