"""Plays the events of the workload on a core, as the daemon's handlers would, and keeps the books.

After each event everything that runs in the background has come to rest: the judge, the marks of a search, embedding.
So the same events give the same state, however the threads take turns.
"""

from collections.abc import Callable
from typing import Any

from events import Ask, Edit, Event, Forget, Note, Share, TakeBack, Talk
from ledger import DAY_S, Books, Known

from memoryd.client.errors import Conflict, MemorydError, NotFound
from memoryd.client.protocol import (
    Delete,
    Get,
    Hit,
    NewTurn,
    Observe,
    RunJob,
    Search,
    Undo,
    Update,
)
from memoryd.client.protocol import Share as ShareCall
from memoryd.daemon.conversations import judging
from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs.runner import Runner
from memoryd.daemon.memories import changing, reading, sharing
from memoryd.daemon.store.namespaces import list_enclosing
from workbench import LIMIT_S, Clock, ask, wait_until

GRACE_DAYS = {"task_completion": 7.0, "session_summary": 3.0}
_TOLD = (
    "SELECT m.id FROM memories m JOIN namespaces n ON n.id = m.namespace WHERE n.name = ? AND m.turns > 0"
    " AND m.superseded_by IS NULL"
)
# What is shared is an answer, and soon: the link to the copy is there when the sweep makes it part of a pair.
_ANSWERS = f"{_TOLD} AND m.tier = 'L1' AND json_extract(m.metadata, '$.answers') IS NOT NULL"


class Player:
    """One run; `books` and the open undo steps outlive a restart of the core."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.books = clock, Books()
        self.failures: list[str] = []  # what was wrong at once
        self.searches = 0
        self._latest: dict[str, list[tuple[int, Callable[[], None]]]] = {}
        self.core: Core
        self.runner: Runner

    def begin(self, core: Core) -> None:
        """Go on with a core that was just started."""
        self.core, self.runner = core, Runner(core)
        self.runner.start()

    def play(self, event: Event) -> None:
        """Carry out one event at its time."""
        self.clock.now = max(self.clock.now, event.at)
        match event:
            case Talk():
                self._observe(event.namespace, event.session, [(say.id, say.role, say.text) for say in event.turns])
            case Note():
                self._add(event)
            case Ask():
                self._ask(event)
            case Edit():
                self._edit(event)
            case Forget():
                self._forget(event)
            case Share():
                self._share(event)
            case TakeBack():
                self._take_back(event.namespace)
        self.settle()

    def settle(self) -> None:
        """Let everything in the background come to its end."""
        self.core.effects.flush()
        while judging.step(self.core):
            pass
        wait_until(lambda: self.core.embedding.count_pending() == 0)

    def run(self, *jobs: str) -> list[Any]:
        """Run jobs (none given: all that are due, as the scheduler does); return how they went."""
        runs = []
        due = [job.name for job in self.runner.list().jobs if job.next_run_at and job.next_run_at <= self.clock.now]
        for name in jobs or due:
            call = RunJob(name=name, by="hand" if jobs else "scheduler")
            runs.append(self.runner.run(call, lambda event: None).result(LIMIT_S))
            if runs[-1].outcome != "done":
                self.failures.append(f"job {name}: {runs[-1].error}")
            self.settle()
        return runs

    # Events ----------------------------------------------------------------------------------------------------------

    def _observe(self, namespace: str, session: str, said: list[tuple[str, str, str]]) -> None:
        turns = [NewTurn(role=role, content=text, id=id) for id, role, text in said]
        reply = ask(self.core, Observe(turns=turns, namespace=namespace, session=session))
        self.books.observed[namespace] += len(said)
        for (id, _, text), outcome in zip(said, reply, strict=True):
            if outcome.outcome == "accepted":
                self.books.turns[id] = Known(namespace, text)
            else:
                self.books.refused[namespace, outcome.reason] += 1

    def _add(self, event: Note) -> None:
        added = ask(self.core, event.make_call())
        end = self.clock.now + GRACE_DAYS[event.source] * DAY_S if event.source in GRACE_DAYS else None
        if added.outcome == "created":
            self.books.notes[event.id] = Known(event.namespace, event.text)
            if end is not None and not event.pinned:
                self.books.ends[event.id] = end
            return
        self.books.alias[event.id] = added.id
        self._check_merge(added.id, event.namespace)
        self.books.ends.pop(added.id, None)
        if (ends := reading.get(self.core, Get(id=added.id)).expires_at) is not None:
            self.books.ends[added.id] = ends

    def _check_merge(self, id: str, namespace: str) -> None:
        if any(known.namespace != namespace for known in self._known(id)):
            self.failures.append(f"a note of {namespace} was merged into {id[:8]} of another")

    def _ask(self, event: Ask) -> None:
        call = Search(query=event.question, namespace=event.namespace, session=event.session, limit=event.limit)
        hits = ask(self.core, call).hits
        self.core.effects.flush()
        self.searches += 1
        self.check_hits(hits, event.namespace)
        if event.repeats and hits:
            text = f"As we know: {hits[0].content}" if self.searches % 2 else hits[0].content
            id = f"{self.searches:032x}"
            self._observe(event.namespace, event.session, [(id, "assistant", text)])

    def check_hits(self, hits: list[Hit], namespace: str) -> None:
        """Note hits that were said where the asker does not see."""
        for hit in hits:
            places = {hit.namespace, *(known.namespace for known in self._known(hit.id))}
            if not places <= set(list_enclosing(namespace)):
                self.failures.append(f"a search from {namespace} found {hit.id[:8]} of {places}")

    def _edit(self, event: Edit) -> None:
        if (id := self._chosen(event)) is None:
            return
        fields: dict[str, Any] = {"content": event.content} if event.content else {"expires_at": event.expires_at}
        before = self.books.ends.get(id)
        parts = self._parts(id)
        changed = self._done(lambda: changing.update(self.core, Update(id=id, namespace=event.namespace, **fields)))
        if changed is None:
            return

        def ends(at: float | None) -> None:
            for part in parts:
                self.books.ends.pop(part, None)
                if at is not None:
                    self.books.ends[part] = at

        if not event.content:
            ends(event.expires_at)
        self._remember(event.namespace, changed.operation, lambda: None if event.content else ends(before))

    def _forget(self, event: Forget) -> None:
        if (id := self._chosen(event)) is None:
            return
        parts = self._parts(id)
        deleted = self._done(lambda: changing.delete(self.core, Delete(ids=[id], namespace=event.namespace)))
        if deleted is not None:
            self._remember(event.namespace, deleted.operation, self.books.removed(parts, "deleted"))

    def _share(self, event: Share) -> None:
        id = self._chosen(event)
        concerned = [known for part in self._parts(id or "") for known in self._known(part)]
        if id is None or not concerned or concerned[0].namespace == event.to:
            return  # it is gone, or was moved there before
        call = ShareCall(ids=[id], to=event.to, move=event.move, namespace=event.namespace)
        shared = self._done(lambda: sharing.share(self.core, call))
        if shared is None:
            return
        one, former = shared.memories[0], concerned[0].namespace
        if one.outcome == "moved":
            self._remember(event.namespace, shared.operation, self._moved(concerned, event.to, former))
        elif one.outcome == "copied":
            copy = Known(event.to, reading.get(self.core, Get(id=one.id)).content)
            self.books.notes[one.id] = copy
            if (ends := self.books.ends.get(id)) is not None:
                self.books.ends[one.id] = ends
            self._remember(event.namespace, shared.operation, lambda: setattr(copy, "gone", "taken back"))
        else:
            self._check_merge(one.id, event.to)
            self._remember(event.namespace, shared.operation, lambda: None)

    def _moved(self, concerned: list[Known], to: str, former: str) -> Callable[[], None]:
        def go(namespace: str) -> None:
            for known in concerned:
                known.namespace = namespace

        go(to)
        return lambda: go(former)

    def _take_back(self, namespace: str) -> None:
        if not self._latest.get(namespace):
            return
        operation, back = self._latest[namespace].pop()
        if self._done(lambda: changing.undo(self.core, Undo(operation=operation, namespace=namespace))) is not None:
            back()

    # Parts -----------------------------------------------------------------------------------------------------------

    def _known(self, id: str) -> list[Known]:
        return [known for known in (self.books.turns.get(id), self.books.notes.get(id)) if known]

    def _chosen(self, event: Edit | Forget | Share) -> str | None:
        """Return the memory that an event means: a note, or one of those that came from conversations."""
        if event.id is not None:
            return self.books.note(event.id)
        with self.core.store.reading() as connection:
            among = _ANSWERS if isinstance(event, Share) else _TOLD
            found = [id for (id,) in connection.execute(f"{among} ORDER BY m.id", (event.namespace,))]
        return found[int(event.which * len(found))] if found else None

    def _parts(self, id: str) -> list[str]:
        """Return the notes and turns that a memory is made of."""
        if not id:
            return []
        try:
            return [*reading.get(self.core, Get(id=id)).metadata.get("turns", []), id]
        except NotFound:
            return []

    def _done(self, call: Callable[[], Any]) -> Any:
        """Return the result of a write, None when what it names is gone or was changed since."""
        try:
            return call().result(LIMIT_S)
        except (NotFound, Conflict):
            return None
        except MemorydError as error:
            self.failures.append(f"{error.code}: {error.message}")
            return None

    def _remember(self, namespace: str, operation: str, back: Callable[[], None]) -> None:
        self._latest.setdefault(namespace, []).append((operation, back))
