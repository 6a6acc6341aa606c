"""One transaction's work on one shared root: memories and entries as they are here, what is written of them.

Everything runs in the writer's transaction, unnoticed by the triggers: what comes from the server is no change of this
machine. What one machine and role changed is one operation of the log.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec
from msgspec import Struct

from memoryd.client.protocol import NewMemory
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import duplicates, erasing, removing
from memoryd.daemon.shared.tables import shared
from memoryd.daemon.shared.tables.shared import Root, SharedEntry
from memoryd.daemon.store import history, links, rows, vectors
from memoryd.daemon.store.actor import Actor, act_as
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import L1, L2
from memoryd.daemon.store.vectors import Vector
from memoryd.daemon.store.writer import Transaction

KIND = f"{history.JOB}shared"
# What a pull does not change of a memory that is here.
_KEPT = ("row", "tier", "access_count", "last_accessed_at", "neighbours")


class Applied(Struct):
    """How many memories from the server were created here, changed, deleted, purged."""

    created: int = 0
    changed: int = 0
    deleted: int = 0
    purged: int = 0
    conflicts: list[str] = []


class ExchangeSession:
    """What the steps of one transaction share."""

    def __init__(
        self, core: Core, transaction: Transaction, root: Root, first_copy: bool = False, is_news: bool = True
    ) -> None:
        self.core, self.transaction, self.root = core, transaction, root
        self.connection = transaction.connection
        self.tier = L2 if first_copy else L1
        self.namespaces = shared.list_shared_namespaces(self.connection, root.id)
        self.is_news = is_news  # what was not here before gets an entry in the history
        self.vectors: dict[bytes, Vector] = {}  # of texts, that the server has
        self.generation = core.embedding.active
        self.origin = ""  # who made the changes that are applied: machine and role
        self._operations: dict[str, str] = {}
        self._later: list[Callable[[], object]] = []  # once it is committed
        transaction.after_commit(self._run_later)
        self.done = Applied()

    @contextmanager
    def step(self) -> Iterator[None]:
        """Do one row's work, or nothing of it."""
        operations, later = dict(self._operations), len(self._later)
        try:
            with self.connection, shared.change_locally(self.connection):
                yield
        except BaseException:
            self._operations = operations
            del self._later[later:]
            raise

    def _run_later(self) -> None:
        for call in self._later:
            call()

    def read(self, entry: SharedEntry | None) -> Row | None:
        """Return the memory of an entry as it is here."""
        if entry is None or entry.memory is None:
            return None
        return rows.read_ids(self.connection, [entry.memory]).get(entry.memory)

    def write(self, made: Row) -> Row:
        """Insert a memory, or put it in place of the one that has its id; return it as it is stored."""
        old = rows.read_ids(self.connection, [made.id]).get(made.id)
        if old is None:
            made.tier = self.tier
            self._record(made, None)
            made.row = rows.insert(self.connection, made)
            self._index(made)
            self.done.created += 1
            return made
        different = {
            name: new
            for name in rows.COLUMNS
            if name not in _KEPT and (new := getattr(made, name)) != getattr(old, name)
        }
        if different:
            self.change(old, **different)
            if not different.keys().isdisjoint(("namespace", "type", "text_hash")):
                self._later.append(lambda: self.core.embedding.refresh([old.row]))
            self.done.changed += 1
        return old

    def _index(self, made: Row) -> None:
        """Have searches find a memory once it is committed, with the vector that the server has of it."""
        vector, place = self.vectors.get(made.text_hash), (made.row, made.namespace, made.type)
        given = None if vector is None or self.generation is None else (self.generation, vector)
        if given is not None:
            vectors.put(self.connection, given[0].model, made.text_hash, given[1])
        self._later.append(lambda: self.core.embedding.index_rows([place], [given]))

    def change(self, row: Row, **fields: object) -> None:
        """Change columns of a memory."""
        self._record(row, row)
        rows.change(self.connection, row.row, fields)
        after = msgspec.structs.replace(row, **fields)
        if after.content != row.content:
            edited = duplicates.New(NewMemory(content=after.content, type=after.type), None)
            duplicates.relink(self.core, self.connection, row, after, edited)

    def delete(self, row: Row) -> None:
        """Delete a memory; `undo` of the operation brings it back."""
        removing.remove(self.core, self.transaction, [row], self._begin())
        self.done.deleted += 1

    def erase(self, memory: str) -> None:
        """Erase a memory for good, with its history."""
        erasing.erase_within(self.core, self.transaction, [memory])
        self.done.purged += 1

    def link(self, one: str, other: str) -> None:
        """Show two memories beside each other, as they disagree."""
        if one != other and len(rows.read_ids(self.connection, [one, other])) == 2:
            links.add(self.connection, one, other, links.CONTRADICTS, self.core.clock())

    def _record(self, row: Row, before: Row | None) -> None:
        if before is not None or self.is_news:
            place = self.core.store.namespaces.name(row.namespace)
            history.record(self.connection, self._begin(), row.id, place, before)

    def _begin(self) -> str:
        if self.origin not in self._operations:
            with act_as(Actor(process=self.origin)):
                operation = history.begin(self.connection, KIND, self.root.name, self.core.clock())
            self._operations[self.origin] = operation
        return self._operations[self.origin]
