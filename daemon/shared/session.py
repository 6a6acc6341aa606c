"""One transaction's work on one shared root: memories as they are here, what is written of them, what is erased.

Everything runs in the writer's transaction; what one machine and role changed is one operation of the log.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct

from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import erasing, removing
from memoryd.daemon.shared import changes
from memoryd.daemon.shared.changes import Body
from memoryd.daemon.store import erasing as store_erasing
from memoryd.daemon.store import history, rows, shared, vectors
from memoryd.daemon.store.actor import Actor, act_as
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.shared import Root, Version
from memoryd.daemon.store.tiers import L1, L2
from memoryd.daemon.store.vectors import Vector
from memoryd.daemon.store.writer import Transaction

KIND = f"{history.JOB}shared"


class Applied(Struct):
    """What became of the memories that came from the server."""

    created: int = 0
    changed: int = 0
    deleted: int = 0
    purged: int = 0
    conflicts: list[str] = []
    refused: list[str] = []


class Here(NamedTuple):
    """A memory as it is here: its row, its version with what was changed since, what it says."""

    row: Row | None
    version: Version
    body: Body | None


class Session:
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
        self._operations: dict[str, int] = {}
        self.done = Applied()

    def read(self, ids: Sequence[str]) -> dict[str, Here]:
        """Return memories as they are here; a change that has no name yet gets one."""
        found, known = rows.read_ids(self.connection, ids), shared.read_versions(self.connection, ids)
        return {id: self._name(id, found.get(id), known.get(id)) for id in ids}

    def _name(self, id: str, row: Row | None, version: Version | None) -> Here:
        version = version or Version(memory=id, root=self.root.id)
        if row is not None and row.namespace not in self.namespaces:
            place = self.core.store.namespaces.name(row.namespace)
            row = row if place == version.namespace else None  # it left what is shared
        body = None if row is None else changes.read_body(row)
        if (body is None and not version.version) or version.purged:
            return Here(row, version, body)
        place = version.namespace if row is None else self.core.store.namespaces.name(row.namespace)
        said = changes.hash_body(place, body, version.conflict_of)
        if said == version.body:
            return Here(row, version, body)
        name, ancestors = changes.descend(version, said)
        own = {"machine": "", "author": "", "pushed": 0, "namespace": place}
        return Here(row, msgspec.structs.replace(version, version=name, ancestors=ancestors, body=said, **own), body)

    def settle(self, version: Version) -> None:
        """Write a version; the outbox has the memory exactly if it is still to be pushed."""
        shared.put_version(self.connection, version)
        if version.pushed:
            shared.unqueue(self.connection, version.memory)
        else:
            shared.queue(self.connection, version.memory, self.root.id)

    def insert(self, row: Row) -> None:
        self.record(row.id, None, row.namespace)
        row.row = rows.insert(self.connection, row)
        vector, place = self.vectors.get(row.text_hash), (row.row, row.namespace, row.type)
        made = None if vector is None or self.generation is None else (self.generation, vector)
        if made is not None:
            vectors.put(self.connection, made[0].model, row.text_hash, made[1])
        self.transaction.after_commit(lambda: self.core.embedding.index_rows([place], [made]))

    def delete(self, here: Here) -> None:
        if here.row is not None:
            removing.remove(self.core, self.transaction, [here.row], self._begin())
            self.done.deleted += 1

    def record(self, id: str, before: Row | None, namespace: int | None = None) -> None:
        number = before.namespace if before is not None else namespace
        assert number is not None
        if before is None and not self.is_news:
            return
        history.record(self.connection, self._begin(), id, self.core.store.namespaces.name(number), before)

    def _begin(self) -> int:
        if self.origin not in self._operations:
            with act_as(Actor(process=self.origin)):
                number = history.begin(self.connection, KIND, self.root.name, self.core.clock())
            self._operations[self.origin] = number
        return self._operations[self.origin]

    def erase(self, version: Version) -> None:
        """Erase a memory with its history and what was made of it; its version stays, so that it never comes back."""
        derived = store_erasing.find_derived(self.connection, [version.memory])
        erasing.erase_within(self.core, self.transaction, [version.memory, *derived])
        self.settle(msgspec.structs.replace(version, purged=1, further="{}", machine="", author=""))
        self.done.purged += 1
