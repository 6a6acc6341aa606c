"""A life of a store: operations of every kind in any order, and what each must leave, in plain dictionaries."""

import random
from collections.abc import Callable

import pytest
from past import ACTIVE, KEPT, Done, Entry, Images, Past, State, has_key_twice, read_state

from memoryd.client.errors import Conflict, MemorydError
from memoryd.client.protocol import (
    Consolidate,
    Erase,
    Get,
    History,
    KeyedEntry,
    List,
    NewMemory,
    NewTurn,
    Observe,
    Put,
    RunJob,
    Share,
    Tag,
)
from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs.runner import Runner
from memoryd.daemon.jobs.table import list_jobs
from memoryd.daemon.memories import reading
from workbench import LIMIT_S, Clock, add, add_many, ask, delete, found, undo, update

PLACES = ("", "acme", "acme/api")
JOBS = [name for name in ("sweep", "caps", "cluster", "expire", "maintain", "trim") if name in list_jobs()]
GRACE_S = 31 * 86400.0


class Life:
    """Operates on a core. `state` is what was acknowledged, `coming` what the operation under way leaves."""

    def __init__(self, core: Core, clock: Clock) -> None:
        self._core, self._clock, self._jobs = core, clock, Runner(core)
        self._dice = random.Random(0)
        self._number = 0
        self._past = Past()
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
        self._past.note(self.state, self.coming)
        self.state = self.coming
        self.steps += 1

    def settle(self) -> bool:
        """After an operation that failed: return whether it was done, which must be whole."""
        with self._core.store.reading() as connection:
            present = read_state(connection)
        assert self.is_possible(present)
        was_done = present != self.state
        self._past.note(self.state, present)
        self._past.done.clear()
        self._note_dead(self.coming)
        self.state = present
        return was_done

    def is_possible(self, present: State) -> bool:
        """Return whether a store may hold this: what was acknowledged, and the operation under way or not."""
        if present in (self.state, self.coming):
            return True
        new = [id for id in present if id not in self.state]
        return len(new) == 1 and present == {**self.state, new[0]: self._new}

    def check(self) -> None:
        """Compare what is stored, searched, listed, counted and in histories with the dictionaries."""
        with self._core.store.reading() as connection:
            assert read_state(connection) == self.state
        alive = {id for id in self.state if self._is_alive(id)}
        for place in PLACES:
            inside = {id for id in alive if self.state[id].place == place and self.state[id].turn != ACTIVE}
            page = ask(self._core, List(namespace=place, reach="exact", limit=100))
            assert page.total == len(inside)
            assert {memory.id for memory in page.memories} <= inside
        texts = {self.state[id].content for id in alive}
        for id in self._dice.sample(sorted(self.state), min(2, len(self.state))):
            entry = self.state[id]
            hits = found(self._core, entry.content, limit=50)  # a vector may still be made
            assert (entry.content in hits) == (entry.content in texts), (id, entry)
            if entry.turn != ACTIVE:
                assert reading.get(self._core, Get(id=id)).content == entry.content
        for id in self._dice.sample(sorted(self._past.said), min(2, len(self._past.said))):
            changes = list(ask(self._core, History(id=id)))
            assert self._past.agrees(id, changes), (id, self._past.said[id], changes)

    # What there is ---------------------------------------------------------------------------------------------------

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
        """Return a memory that is alive; a plain one has no key, was no turn, does not expire, supersedes nothing."""
        taken = {entry.successor for entry in self.state.values()}
        wanted = [
            id
            for id, entry in sorted(self.state.items())
            if entry.turn != ACTIVE
            and self._is_alive(id)
            and not (plain and (entry.key or entry.expires_at or entry.turn or id in taken))
            and not (inner and not entry.place)
        ]
        return self._dice.choice(wanted) if wanted else None

    def _find_equal(self, content: str, place: str) -> list[str]:
        wanted = [id for id, entry in self.state.items() if (entry.content, entry.place) == (content, place)]
        return [id for id in wanted if self._is_alive(id)]

    def _make_id(self, kind: str = "a") -> str:
        return f"{kind}{self._number:08x}{self._dice.getrandbits(96):024x}"[:32]

    def _write(self) -> str:
        return " ".join(f"word{self._dice.getrandbits(40):010x}" for _ in range(6)) + "."

    def _note_dead(self, after: State) -> None:
        self._dead |= {id: entry.successor for id, entry in self.state.items() if id not in after}

    def _leave(self, changes: Images) -> None:
        """Say what the operation leaves: None for what it deletes."""
        self.coming = {id: entry for id, entry in {**self.state, **changes}.items() if entry}  # type: ignore[misc]

    def _finish(self, operation: str | None, changes: Images) -> None:
        if operation is not None:
            self._past.add(operation, {id: self.state.get(id) for id in changes})
        self._note_dead(self.coming)

    def _finish_run(self, operation: str | None) -> None:
        """Note an operation that says itself which memories it concerns."""
        if operation is not None:
            detail = ask(self._core, History(operation=operation, limit=1000))
            self._finish(operation, dict.fromkeys(change.id for change in detail.changes))
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
        [operation] = done.operations
        self._finish(operation, changes)

    def add_again(self) -> None:
        """Add what is there already: it lasts as long as the one that lasts longer."""
        if (id := self._choose()) is None:
            return
        entry = self.state[id]
        if entry.key or entry.turn or self._find_equal(entry.content, entry.place) != [id]:
            return
        changes: Images = {id: entry._replace(expires_at=None)}
        self._leave(changes)
        done = add(self._core, entry.content, entry.place)
        assert (done.id, done.outcome) == (id, "merged")
        self._finish(done.operation, changes)

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
        call = Put(entries=[KeyedEntry(key=key, memory=NewMemory(content=text))], namespace=place)
        done = ask(self._core, call)
        if id is None:  # the daemon chose it
            changes = {str(done.results[0].id): Entry(text, place, key=key)}
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
        done = ask(self._core, Tag(id=id, tags=[tag]))
        self._finish(done.operation, changes)

    def delete(self) -> None:
        if not self.state:
            return
        ids = self._dice.sample(sorted(self.state), min(len(self.state), self._dice.choice((1, 1, 3))))
        changes: Images = dict.fromkeys(ids)
        self._leave(changes)
        self._finish(delete(self._core, *ids).operation, changes)

    def share(self) -> None:
        self._share(move=True)

    def copy(self) -> None:
        self._share(move=False)

    def _share(self, move: bool) -> None:
        """Share a memory; what says the same there already takes it in."""
        if (id := self._choose(plain=True, inner=True)) is None:
            return
        entry = self.state[id]
        to = entry.place.rpartition("/")[0]
        changes: Images = {id: entry._replace(place=to)} if move else {}
        for same in (equal := self._find_equal(entry.content, to)):
            merged = self.state[same]._replace(tags=entry.tags or self.state[same].tags, expires_at=None)
            changes = {id: entry._replace(successor=same), same: merged} if move else {same: merged}
        if len(equal) > 1:
            return
        self._leave(changes)
        self._new = None if changes else entry._replace(place=to, successor=None)
        done = ask(self._core, Share(ids=[id], to=to, move=move))
        [shared] = done.memories
        assert shared.outcome == ("merged" if equal else "moved" if move else "copied")
        if self._new:
            changes = {shared.id: self._new}
            self._past.copies[shared.id] = id
            self._leave(changes)
        self._finish(done.operation, changes)

    def undo(self) -> None:
        if self._past.done:
            self._take_back(self._past.done[-1])

    def undo_any(self) -> None:
        if self._past.done:
            self._take_back(self._dice.choice(self._past.done))

    def _take_back(self, old: Done) -> None:
        """Undo an operation, or find it refused because what it did was changed since."""
        self._leave(old.before)
        if self._past.has_changed_since(old) or has_key_twice(self.coming):
            self.coming = self.state
            with pytest.raises(Conflict):
                undo(self._core, old.operation)
            return
        done = undo(self._core, old.operation)
        assert done.undone == old.operation
        self._past.take_back(old, done.operation, {id: self.state.get(id) for id in old.before})
        self._note_dead(self.coming)

    def observe(self) -> None:
        id, text, place = self._make_id("bbbbbb"), f"We decided that {self._write()}", self._dice.choice(PLACES)
        self._leave({id: Entry(text, place, turn=ACTIVE)})
        call = Observe(turns=[NewTurn(role="user", content=text, id=id)], namespace=place, session="s")
        assert ask(self._core, call).accepted == 1

    def erase(self) -> None:
        if not self.state:
            return
        id = self._dice.choice(sorted(self.state))
        every = {id, *self._past.find_copies(id)}
        self._leave(dict.fromkeys(every))
        erased = ask(self._core, Erase(ids=[id], reach="all"))
        assert (erased.count, {id, *erased.derived} >= every & self.state.keys()) == (1, True)
        self._past.done.clear()
        self._past.note(self.state, self.coming)
        self._past.forget(every)
        self._note_dead(self.coming)

    def consolidate(self) -> None:
        turns = {id: entry._replace(turn=KEPT) for id, entry in self.state.items() if entry.turn == ACTIVE}
        self._leave({**turns})
        try:
            call = Consolidate(reach="all")
            done = ask(self._core, call, report=lambda progress: None, jobs=self._jobs)
        except MemorydError as error:
            raise JobFailed(error.message) from None
        assert done.promoted == len(turns)
        self._finish_run(done.operation)

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
        self._finish_run(run.operation)
        if name == "trim":
            self._past.done.clear()


class JobFailed(Exception):
    """A job ended with an error."""


ACTIONS: dict[str, Callable[[Life], None]] = {
    name: getattr(Life, name)
    for name in (
        "add add_many add_again supersede put update tag delete share copy undo undo_any observe erase wait consolidate"
        " job"
    ).split()
}
