"""A plugin for pytest that has LangGraph's own tests of stores run on `MemorydStore`: it replaces what makes the store.

Each store has a daemon of its own, whose embedder is the one that the tests give. PostgreSQL is not asked for anything.
"""

import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import langgraph.store.memory
import numpy as np
import pytest

from memoryd.client.integrations.langgraph import AsyncMemorydStore, MemorydStore
from memoryd.daemon.config import Config
from memoryd.daemon.core.core import Core
from workbench import WordEmbedder, _conftest, wait_until

_OPEN: list["Server"] = []
REPEATED = frozenset(("pipe", "pool", "file", "halfvec", "inner_product", "l2"))


class GivenEmbedder(WordEmbedder):  # type: ignore[misc, valid-type]
    """The embedding function that a test gives."""

    def __init__(self, given: Any) -> None:
        self._given, self._lock = given, threading.Lock()
        self.dimensions = given.dims

    def embed_query(self, text: str) -> Any:
        return self.embed_texts([text])[0]

    def embed_texts(self, texts: Any) -> Any:
        with self._lock:
            made = np.array(self._given.embed_documents(list(texts)), np.float32)
        return made / np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-9)


class Server:
    """A daemon of its own for a store."""

    def __init__(self, index: Any) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="lg-"))
        embedder = GivenEmbedder(index["embed"]) if index else WordEmbedder()
        data = _conftest._place_empty_database(self.folder / "data")
        self.core = Core(data, Config(), self.folder, lambda name, where: embedder)
        self.core.start()
        wait_until(lambda: self.core.embedding.active is not None)
        self.daemon = _conftest.Daemon(self.core, Config(), self.folder / "s")
        _OPEN.append(self)

    def close(self) -> None:
        self.daemon.stop()
        self.core.close()
        shutil.rmtree(self.folder)


def choose(index: Any, with_unindexed: bool = False) -> dict[str, Any]:
    """Return what a store is made with."""
    fields = index.get("fields") or index.get("text_fields") if index else None
    return {"index": {"fields": fields} if fields else None, "mode": "dense", "with_unindexed": with_unindexed}


class SuiteStore(MemorydStore):
    """A store on a daemon of its own, with what the tests call of the stores that they were written for."""

    MIGRATIONS: tuple[str, ...] = ()
    WITH_UNINDEXED = False

    def __init__(self, *, index: Any = None, ttl: Any = None) -> None:
        super().__init__(Server(index).daemon.client(), ttl=ttl, **choose(index, self.WITH_UNINDEXED))
        self.index_config, self.embeddings = index, index and index["embed"]

    def setup(self) -> None: ...
    def start_ttl_sweeper(self) -> None: ...
    def stop_ttl_sweeper(self) -> None: ...

    @classmethod
    @contextmanager
    def from_conn_string(
        cls, conn: str, *, index: Any = None, ttl: Any = None, **others: Any
    ) -> Iterator["SuiteStore"]:
        yield cls(index=index, ttl=ttl)

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        yield type("Nothing", (), {"execute": lambda self, *words: None})()


class ReferenceStore(SuiteStore):
    """The same in the place of `InMemoryStore`."""

    WITH_UNINDEXED = True


class AsyncSuiteStore(AsyncMemorydStore):
    """The same for asynchronous stores."""

    MIGRATIONS: tuple[str, ...] = ()

    def __init__(self, *, index: Any = None, ttl: Any = None) -> None:
        super().__init__(Server(index).daemon.client(), ttl=ttl, **choose(index))
        self.index_config, self.embeddings = index, index and index["embed"]

    async def setup(self) -> None: ...
    async def start_ttl_sweeper(self) -> None: ...
    async def stop_ttl_sweeper(self) -> None: ...

    @classmethod
    @asynccontextmanager
    async def from_conn_string(cls, conn: str, *, index: Any = None, ttl: Any = None, **others: Any) -> Any:
        yield cls(index=index, ttl=ttl)

    @asynccontextmanager
    async def _cursor(self) -> Any:
        yield NoDatabase()


class NoDatabase:
    """A connection to PostgreSQL on which nothing happens."""

    async def execute(self, *words: Any) -> None: ...


class NoConnection:
    """What makes such connections, with and without await."""

    @classmethod
    @contextmanager
    def connect(cls, *words: Any, **options: Any) -> Iterator[Any]:
        yield type("Nothing", (), {"execute": lambda self, *words: None})()


class NoAsyncConnection:
    @classmethod
    def __class_getitem__(cls, row: Any) -> Any:
        return cls

    @classmethod
    async def connect(cls, *words: Any, **options: Any) -> Any:
        @asynccontextmanager
        async def connection() -> Any:
            yield NoDatabase()

        return connection()


def _replace() -> None:
    langgraph.store.memory.InMemoryStore = ReferenceStore  # type: ignore[misc, assignment]
    if "sqlite" in Path.cwd().name:
        import langgraph.store.sqlite as sqlite
        import langgraph.store.sqlite.aio as aio

        sqlite.SqliteStore, sqlite.AsyncSqliteStore, aio.AsyncSqliteStore = SuiteStore, AsyncSuiteStore, AsyncSuiteStore
    if "postgres" in Path.cwd().name:
        import langgraph.store.postgres as postgres
        import psycopg

        postgres.PostgresStore, postgres.AsyncPostgresStore = SuiteStore, AsyncSuiteStore
        psycopg.Connection, psycopg.AsyncConnection = NoConnection, NoAsyncConnection  # type: ignore[misc, assignment]


_replace()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out repetitions: connections, places of the file and columns of pgvector are all one to this store."""
    items[:] = [item for item in items if REPEATED.isdisjoint(_list_parameters(item))]


def _list_parameters(item: pytest.Item) -> Iterator[str]:
    spec = getattr(item, "callspec", None)
    for value in spec.params.values() if spec else ():
        yield from (part for part in (value if isinstance(value, tuple) else (value,)) if isinstance(part, str))


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """End the daemons of a test."""
    while _OPEN:
        _OPEN.pop().close()
