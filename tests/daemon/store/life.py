"""A life of a store: operations of every kind in any order, and what each must leave, in plain dictionaries."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import msgspec

from memoryd.client.protocol import (
    Count,
    Erase,
    Get,
    History,
    List,
    NewMemory,
    NewTurn,
    Observe,
    Put,
    RunJob,
    Share,
    Tag,
)
from memoryd.daemon.conversations import observing
from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs.runner import Runner
from memoryd.daemon.memories import changing, erasing, keyed, reading, sharing
from memoryd.daemon.registry import finish
from memoryd.daemon.store.store import FILE_NAME
from workbench import LIMIT_S, Clock, add, add_many, delete, found, undo, update

PLACES = ("", "acme", "acme/api")
JOBS = ("sweep", "caps", "cluster", "expire", "optimize", "checkpoint", "trim")
GRACE_S = 31 * 86400.0
_STORED = (
    "SELECT m.id, m.content, n.name, coalesce(m.metadata ->> '$.tags', '[]'), m.key, m.expires_at, m.superseded_by"
    " FROM memories m JOIN namespaces n ON n.id = m.namespace"
    " UNION ALL SELECT t.key, t.content, n.name, '[]', NULL, NULL, NULL FROM turns t JOIN namespaces n"
    " ON n.id = t.namespace"
)


class Entry(NamedTuple):
    """What a memory or turn says."""

    content: str
    place: str
    tags: tuple[str, ...] = ()
    key: str | None = None
    expires_at: float | None = None
    successor: str | None = None


State = dict[str, Entry]
Images = dict[str, Entry | None]


class Done(NamedTuple):
    """An operation that can be taken back: what was there before it; `again` is what it took back itself."""

    number: int
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


class Life:
    """Operates on a core. `state` is what was acknowledged, `coming` what the operation under way leaves."""

    def __init__(self, core: Core, clock: Clock) -> None:
        self._core, self._clock, self._jobs = core, clock, Runner(core)
        self._dice = random.Random(0)
        self._number = 0
        self._past: list[Done] = []
        self._dead: dict[str, str | None] = {}  # deleted memories and what superseded them
        self.state: State = {}
        self.coming: State = {}
        self._new: Entry | None = None  # what is added by an operation that chooses the id itself
        self.steps = 0

    def close(self) -> None:
        """End the thread of jobs."""
        self._jobs.close()

    def do(self, name: str, seed: int) -> None:
        """Do one operation; whatever it raises is for the caller, who then calls `settle`."""
        self._number += 1
        self._dice = random.Random(f"{seed} {self._number}")  # no two texts are alike
        self.coming, self._new = self.state, None
        ACTIONS[name](self)
        self.state = self.coming
        self.steps += 1

    def settle(self) -> bool:
        """After an operation that failed: return whether it was done, which must be whole."""
        with self._core.store.reading() as connection:
            present = read_state(connection)
        assert self.is_possible(present)
        was_done = present != self.state
        self.state, self._past = present, []
        self._note_dead(self.coming)
        return was_done

    def is_possible(self, present: State) -> bool:
        """Return whether a store may hold this: what was acknowledged, and the operation under way or not."""
        if present in (self.state, self.coming):
            return True
        new = [id for id in present if id not in self.state]
        return len(new) == 1 and present == {**self.state, new[0]: self._new}

    def check(self) -> None:
        """Compare what is stored, searched, listed and counted with the dictionaries."""
        with self._core.store.reading() as connection:
            assert read_state(connection) == self.state
        alive = {id for id in self.state if self._is_alive(id)}
        for place in PLACES:
            inside = {id for id in alive if self.state[id].place == place and not self._is_turn(id)}
            page = reading.list_(self._core, List(namespace=place, reach="exact", limit=100))
            assert page.total == len(inside)
            assert {memory.id for memory in page.memories} <= inside
            counted = reading.count_memories(self._core, Count(namespace=place, reach="exact"))
            assert counted.count == len(inside)
        for id in self._dice.sample(sorted(self.state), min(2, len(self.state))):
            entry = self.state[id]
            hits = found(self._core, entry.content, limit=5)
            assert (entry.content in hits) == (id in alive), (id, entry)
            if not self._is_turn(id):
                assert reading.get(self._core, Get(id=id)).content == entry.content
                changes = list(reading.read_changes(self._core, History(id=id)))
                assert changes, id

    # What there is ---------------------------------------------------------------------------------------------------

    def _is_turn(self, id: str) -> bool:
        return id.startswith("bbbbbb")

    def _is_expired(self, entry: Entry) -> bool:
        return entry.expires_at is not None and entry.expires_at <= self._clock()

    def _is_alive(self, id: str) -> bool:
        entry = self.state[id]
        if self._is_expired(entry):
            return False
        later = entry.successor
        while later is not None:
            one = self.state.get(later)
            if one and not self._is_expired(one):
                return False
            later = one.successor if one else self._dead.get(later)
        return True

    def _choose(self, plain: bool = False, inner: bool = False) -> str | None:
        """Return a memory that is alive; a plain one has no key, does not expire and supersedes nothing."""
        taken = {entry.successor for entry in self.state.values()}
        wanted = [
            id
            for id, entry in sorted(self.state.items())
            if not self._is_turn(id)
            and self._is_alive(id)
            and not (plain and (entry.key or entry.expires_at or id in taken))
            and not (inner and not entry.place)
        ]
        return self._dice.choice(wanted) if wanted else None

    def _make_id(self, kind: str = "a") -> str:
        return f"{kind}{self._number:08x}{self._dice.getrandbits(96):024x}"[:32]

    def _write(self) -> str:
        return " ".join(f"word{self._dice.getrandbits(40):010x}" for _ in range(6)) + "."

    def _note_dead(self, after: State) -> None:
        self._dead |= {id: entry.successor for id, entry in self.state.items() if id not in after}

    def _leave(self, changes: Images) -> None:
        """Say what the operation leaves: None for what it deletes."""
        self.coming = {id: entry for id, entry in {**self.state, **changes}.items() if entry}  # type: ignore[misc]

    def _finish(self, number: int | None, changes: Images, again: Done | None = None) -> None:
        if number is not None:
            self._past.append(Done(number, {id: self.state.get(id) for id in changes}, again))
        self._note_dead(self.coming)

    # Operations ------------------------------------------------------------------------------------------------------

    def add(self) -> None:
        id, text, place = self._make_id(), self._write(), self._dice.choice(PLACES)
        expires_at = self._clock() + 3000.0 if self._dice.random() < 0.3 else None
        changes: Images = {id: Entry(text, place, expires_at=expires_at)}
        self._leave(changes)
        done = add(self._core, text, place, id=id, expires_at=expires_at, dedup=False)
        assert (done.id, done.outcome) == (id, "created")
        self._finish(done.operation, changes)

    def add_many(self) -> None:
        place = self._dice.choice(PLACES)
        made = [NewMemory(content=self._write(), id=self._make_id()) for _ in range(3)]
        changes: Images = {memory.id: Entry(memory.content, place) for memory in made if memory.id}
        self._leave(changes)
        done = add_many(self._core, made, place, dedup=False)
        [number] = done.operations
        self._finish(number, changes)

    def add_again(self) -> None:
        if (id := self._choose(plain=True)) is None:
            return
        entry = self.state[id]
        done = add(self._core, entry.content, entry.place)
        assert (done.id, done.outcome) == (id, "merged")
        self._finish(done.operation, {id: entry})

    def supersede(self) -> None:
        if (old := self._choose(plain=True)) is None:
            return
        id, text, entry = self._make_id(), self._write(), self.state[old]
        changes: Images = {id: Entry(text, entry.place), old: entry._replace(successor=id)}
        self._leave(changes)
        done = add(self._core, text, entry.place, id=id, supersedes=old, dedup=False)
        self._finish(done.operation, changes)

    def put(self) -> None:
        key, place, text = f"key {self._dice.randrange(4)}", self._dice.choice(PLACES), self._write()
        [id] = [one for one, entry in self.state.items() if (entry.place, entry.key) == (place, key)] or [None]
        changes: Images = {id: self.state[id]._replace(content=text, tags=())} if id else {}
        self._leave(changes)
        self._new = None if id else Entry(text, place, key=key)
        call = Put(key=key, memory=NewMemory(content=text), namespace=place)
        done = keyed.put(self._core, call).result(LIMIT_S)
        if id is None:  # the daemon chose it
            changes = {done.id: Entry(text, place, key=key)}
            self._leave(changes)
        self._finish(done.operation, changes)

    def update(self) -> None:
        if (id := self._choose()) is None:
            return
        changes: Images = {id: self.state[id]._replace(content=self._write())}
        self._leave(changes)
        done = update(self._core, id, content=changes[id].content)  # type: ignore[union-attr]
        self._finish(done.operation, changes)

    def tag(self) -> None:
        if (id := self._choose()) is None:
            return
        tag = f"tag {self._number}"
        entry = self.state[id]
        changes: Images = {id: entry._replace(tags=(*entry.tags, tag))}
        self._leave(changes)
        done = changing.tag(self._core, Tag(id=id, tags=[tag])).result(LIMIT_S)
        self._finish(done.operation, changes)

    def delete(self) -> None:
        if not self.state:
            return
        ids = self._dice.sample(sorted(self.state), min(len(self.state), self._dice.choice((1, 1, 3))))
        changes: Images = dict.fromkeys(ids)
        self._leave(changes)
        self._finish(delete(self._core, *ids).operation, changes)

    def share(self) -> None:
        if (id := self._choose(plain=True, inner=True)) is None:
            return
        entry = self.state[id]
        to = entry.place.rpartition("/")[0]
        changes: Images = {id: entry._replace(place=to)}
        self._leave(changes)
        done = sharing.share(self._core, Share(ids=[id], to=to, move=True)).result(LIMIT_S)
        self._finish(done.operation, changes)

    def undo(self) -> None:
        if not self._past:
            return
        last = self._past[-1]
        changes = dict(last.before)
        self._leave(changes)
        done = undo(self._core, last.number)
        assert done.undone == last.number
        del self._past[-1:]
        if last.again:
            self._finish(None, changes)
            self._past.append(last.again)
        else:
            self._finish(done.operation, changes, again=last)

    def observe(self) -> None:
        id, text, place = self._make_id("bbbbbb"), f"We decided that {self._write()}", self._dice.choice(PLACES)
        self._leave({id: Entry(text, place)})
        call = Observe(turns=[NewTurn(role="user", content=text, id=id)], namespace=place, session="s")
        assert observing.observe(self._core, call).result(LIMIT_S).accepted == 1
        self._past.clear()  # a turn that leaves L0 is another operation

    def erase(self) -> None:
        if not self.state:
            return
        id = self._dice.choice(sorted(self.state))
        self._leave({id: None})
        assert finish(erasing.erase(self._core, Erase(ids=[id], reach="all"))).count == 1
        self._past.clear()
        self._note_dead(self.coming)

    def wait(self) -> None:
        self._clock.advance(self._dice.choice((10.0, 2000.0, GRACE_S)))

    def job(self) -> None:
        name = self._dice.choice(JOBS)
        expired = [id for id, entry in self.state.items() if (entry.expires_at or 1e12) + 30 * 86400 <= self._clock()]
        self._leave(dict.fromkeys(expired) if name == "expire" else {})
        run = self._jobs.run(RunJob(name=name), lambda progress: None).result(LIMIT_S)
        if run.outcome == "failed":
            raise JobFailed(run.error)
        assert run.outcome == "done"
        self._past.clear()
        self._note_dead(self.coming)


class JobFailed(Exception):
    """A job ended with an error."""


ACTIONS: dict[str, Callable[[Life], None]] = {
    name: getattr(Life, name)
    for name in ("add add_many add_again supersede put update tag delete share undo observe erase wait job".split())
}
