"""Machines for tests: a core each, on its own file, with an engine that is stepped by hand."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memoryd.daemon.config import Config
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import erasing
from memoryd.daemon.shared import server
from memoryd.daemon.shared.engine import Engine
from memoryd.daemon.shared.server import ServerConnection
from memoryd.daemon.shared.tables import shared
from memoryd.daemon.shared.tables.shared import Root
from memoryd.daemon.store import rows
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.writer import Transaction
from workbench import Clock, WordEmbedder, add, delete, update

ROOT, PLACE = "acme", "acme/api"


class Machine:
    """One machine: its memories, its clock, its way to the server."""

    def __init__(self, folder: Path, name: str, address: str, **options: Any) -> None:
        self.name, self.address, self.folder = name, address, folder / name
        embedder, conversations = options.get("embedder") or WordEmbedder(), options.get("conversations", False)
        loader = lambda model, where: embedder  # noqa: E731
        self.core = Core(self.folder, Config(), folder, loader, clock=options.get("clock") or Clock())
        self.engine = self.open(ROOT, options.get("places", (PLACE,)), conversations)

    def open(self, root: str, places: Sequence[str], conversations: bool = False) -> Engine:
        """Return the engine of a root, which is shared from now on if it was not."""
        with self.core.store.reading() as connection:
            found = shared.find_root(connection, root)
        if found is None:
            found = self.core.store.write(lambda t: self._share(t, root, places, conversations)).result()
        return Engine(self.core, found, self.name, self._connect)

    def _share(self, transaction: Transaction, name: str, places: Sequence[str], conversations: bool) -> Root:
        root = Root(name=name, server=self.address, passfile="", conversations=int(conversations), added_at=0.0)
        root.id = shared.add_root(transaction.connection, root)
        numbers = [self.core.store.namespaces.ensure(transaction, place) for place in places]
        shared.share_namespaces(transaction.connection, root.id, numbers)
        found = shared.find_root(transaction.connection, name)
        assert found is not None
        return found

    def _connect(self, root: Root) -> ServerConnection:
        return server.connect(self.address)

    def add(self, text: str, namespace: str = PLACE, **options: Any) -> str:
        return str(add(self.core, text, namespace, **options).id)

    def update(self, id: str, **fields: Any) -> None:
        update(self.core, id, **fields)

    def delete(self, *ids: str) -> None:
        delete(self.core, *ids)

    def give_key(self, id: str, key: str | None) -> None:
        def write(transaction: Transaction) -> None:
            [row] = rows.read_ids(transaction.connection, [id]).values()
            rows.change(transaction.connection, row.row, {"key": key})

        self.core.store.write(write).result()

    def erase(self, id: str) -> None:
        self.core.store.write(lambda transaction: erasing.erase_within(self.core, transaction, [id])).result()

    def id_there(self, id: str) -> str:
        with self.core.store.reading() as connection:
            entry = shared.read_of_memory(connection, id)
        return entry.id if entry else ""

    def move(self, id: str, namespace: str) -> None:
        def write(transaction: Transaction) -> None:
            [row] = rows.read_ids(transaction.connection, [id]).values()
            place = self.core.store.namespaces.ensure(transaction, namespace)
            rows.change(transaction.connection, row.row, {"namespace": place})

        self.core.store.write(write).result()

    def choose(self, namespace: str) -> None:
        def write(transaction: Transaction) -> None:
            place = self.core.store.namespaces.ensure(transaction, namespace)
            shared.share_namespaces(transaction.connection, self.engine.root.id, [place])

        self.core.store.write(write).result()
        self.engine.root.cursor = 0

    def keys(self, namespace: str = PLACE) -> dict[str, str]:
        with self.core.store.reading() as connection:
            return {key: id for id, key in _select(connection, "m.id, m.key", namespace) if key}

    def conflicts(self) -> dict[str, str]:
        with self.core.store.reading() as connection:
            return {id: of for id, of in _select(connection, "m.id, e.conflict_of", PLACE) if of}

    def sync(self) -> None:
        """Exchange until nothing waits."""
        assert self.engine.exchange_all(), self.engine.figures.error
        assert self.engine.exchange_all(), self.engine.figures.error

    def texts(self, namespace: str = PLACE) -> dict[str, str]:
        """Return the text of each shared memory."""
        with self.core.store.reading() as connection:
            return dict(_select(connection, "m.id, m.content", namespace))

    def rows(self, namespace: str = PLACE) -> list[Any]:
        """Return all that machines must agree on, of each shared memory."""
        said = "e.id, m.type, m.source, m.importance, m.pinned, m.superseded_by, m.summary, m.metadata, m.content"
        with self.core.store.reading() as connection:
            return sorted(_select(connection, f"{said}, m.key, e.tag, e.conflict_of", namespace))

    def waiting(self) -> int:
        with self.core.store.reading() as connection:
            return shared.count_waiting(connection, self.engine.root.id)

    def close(self) -> None:
        self.engine.close()
        self.core.close()


def _select(connection: Connection, columns: str, namespace: str) -> list[Any]:
    return list(
        connection.execute(
            f"SELECT {columns} FROM memories m JOIN namespaces n ON n.id = m.namespace"
            " LEFT JOIN shared_entries e ON e.memory = m.id WHERE n.name = ?",
            (namespace,),
        )
    )


@contextmanager
def machines(folder: Path, address: str, *names: str, **options: Any) -> Iterator[list[Machine]]:
    """Some machines on one server."""
    made: list[Machine] = []
    try:
        for name in names:
            made.append(Machine(folder, name, address, **options))
        yield made
    finally:
        for machine in made:
            machine.close()


def converge(*made: Machine) -> None:
    """Let all exchange until none has anything to push or pull."""
    for _ in range(2 * len(made) + 2):
        for machine in made:
            machine.sync()
        if len({str(machine.rows()) for machine in made}) == 1 and not any(machine.waiting() for machine in made):
            return
    first = set(made[0].rows())
    apart = [(machine.name, machine.waiting(), sorted(set(machine.rows()) ^ first)[:3]) for machine in made]
    raise AssertionError(apart)
