"""What tests of the daemon's parts share: shorthands for calls on a core, embedders that fail or wait on purpose."""

import importlib.util
import inspect
import random
import threading
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from memoryd.client.protocol import (
    Add,
    Added,
    AddedMany,
    AddMany,
    Call,
    Delete,
    GetTrace,
    Hits,
    NewMemory,
    Search,
    SearchOptions,
    Trace,
    Undo,
    Update,
)
from memoryd.daemon.arrays.arrays import Arrays
from memoryd.daemon.arrays.columns import Mask
from memoryd.daemon.arrays.vector_index import VectorIndex
from memoryd.daemon.config import Config
from memoryd.daemon.core.core import Core
from memoryd.daemon.registry import HANDLERS, finish
from memoryd.daemon.search.fuse import score_of
from memoryd.daemon.search.profiles import PROFILES
from memoryd.daemon.search.retrieval import Retrieval
from memoryd.daemon.search.traces import Candidate
from memoryd.daemon.server import handlers  # noqa: F401 (they register themselves)
from memoryd.daemon.store import rows, vectors
from memoryd.daemon.store.actor import Actor, act_as
from memoryd.daemon.store.filters import Filter
from memoryd.daemon.store.hashes import content_hash
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.store import Store
from memoryd.daemon.store.writer import Transaction
from memoryd.models import ModelMissing

# Several folders have a conftest, so this one cannot be imported by its name.
_spec = importlib.util.spec_from_file_location("memoryd_tests_conftest", Path(__file__).with_name("conftest.py"))
assert _spec is not None
assert _spec.loader is not None
_conftest = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_conftest)
Clock, Daemon, Process, WordEmbedder, wait_until = (
    _conftest.Clock,
    _conftest.Daemon,
    _conftest.Process,
    _conftest.WordEmbedder,
    _conftest.wait_until,
)

LIMIT_S = 100

R = TypeVar("R")


class CountingEmbedder(WordEmbedder):  # type: ignore[misc, valid-type]
    """Counts what it embeds; refuses texts with the word `poison`; waits while `gate` is closed."""

    def __init__(self, name: str = "words", fingerprint: str = "words-1", turn: int = 0) -> None:
        self.name, self.fingerprint, self._turn = name, fingerprint, turn
        self.queries: list[str] = []
        self.texts: list[str] = []
        self.gate = threading.Event()
        self.gate.set()
        self.broken = False

    def embed_query(self, text: str) -> Any:
        self.queries.append(text)
        assert self.gate.wait(LIMIT_S)
        return self._made(text)

    def embed_texts(self, texts: Sequence[str]) -> Any:
        self.texts += texts
        assert self.gate.wait(LIMIT_S)
        return np.stack([self._made(text) for text in texts])

    def _made(self, text: str) -> Any:
        if self.broken or "poison" in text:
            raise RuntimeError("this text cannot be embedded")
        return np.roll(self._vector(text), self._turn)  # another turn is another model: not comparable


def arrays_of(store: Store) -> Arrays:
    """Return the arrays that follow a store."""
    assert isinstance(store.derived, Arrays)
    return store.derived


def build_mask(store: Store, selection: Filter, now: float) -> Mask:
    """Return which memories of a store a filter leaves."""
    return arrays_of(store).build_mask(store, selection, now)


@contextmanager
def running(
    folder: Path, load: Any, *, fetch: Any = None, clock: Any = None, config: Config | None = None, ready: bool = True
) -> Iterator[Core]:
    """A core on `folder`; `load` is an embedder or a function that loads one by name."""
    loader = load if callable(load) else lambda name, where: load
    made = Core(folder / "data", config or Config(), folder, loader, fetch, clock or Clock())
    try:
        made.start()
        if ready:
            wait_until(lambda: made.embedding.active is not None)
        yield made
    finally:
        made.close()


def no_model(name: str, where: Path) -> Any:
    """Load as where no model is installed: `running(folder, no_model, ready=False)` has words alone."""
    raise ModelMissing("there is none")


def ask(core: Core, call: Call[R], **beside: Any) -> R:
    """Call the handler of a method and wait for its result; `beside` is what it takes beside core and call."""
    handler = HANDLERS[type(call)]
    have = {"core": core, "sources": core.sources, **beside}
    wants = inspect.signature(handler).parameters.keys() - {"call"}
    with act_as(Actor(beside["caller"].name)) if "caller" in beside else nullcontext():
        result = handler(call=call, **{name: have[name] for name in wants if name in have})
    if isinstance(result, Generator):
        result = finish(result)
    answer: R = result.result(LIMIT_S) if isinstance(result, Future) else result
    return answer


def move_to_l2(core: Core) -> None:
    """Move all of L1 to L2, as the sweep does with what was not used for long."""

    def move(transaction: Transaction) -> None:
        for row in rows.select(transaction.connection, "m.tier = 'L1'", ()):
            rows.change(transaction.connection, row.row, {"tier": "L2"})

    core.store.write(move).result(LIMIT_S)


def add(core: Core, content: str, namespace: str = "", **options: Any) -> Added:
    call = {name: options.pop(name) for name in ("reach", "dedup", "dedup_threshold") if name in options}
    return ask(core, Add(memory=NewMemory(content=content, **options), namespace=namespace, **call))


def add_own(core: Core, content: str, namespace: str = "", **options: Any) -> Added:
    """Add what the person saved."""
    return add(core, content, namespace, **{"origin": "person", **options})


def add_many(core: Core, memories: Sequence[str | NewMemory], namespace: str = "", **options: Any) -> AddedMany:
    given = [memory if isinstance(memory, NewMemory) else NewMemory(content=memory) for memory in memories]
    if not given:
        return AddedMany(results=[], created=0, merged=0, operations=[])
    return ask(core, AddMany(memories=given, namespace=namespace, **options))


def update(core: Core, id: str, **fields: Any) -> Any:
    return ask(core, Update(id=id, **fields))


def delete(core: Core, *ids: str, **options: Any) -> Any:
    return ask(core, Delete(ids=list(ids), **options))


def undo(core: Core, operation: str | None = None, **options: Any) -> Any:
    return ask(core, Undo(operation=operation, **options))


def options_of(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a search with those that are options in their struct."""
    options = {name: fields[name] for name in fields if name in SearchOptions.__struct_fields__}
    return {name: fields[name] for name in fields if name not in options} | {"options": SearchOptions(**options)}


def search(core: Core, query: str = "", **fields: Any) -> Hits:
    return ask(core, Search(query=query, **options_of(fields)))


def trace(core: Core, id: str) -> Trace:
    return ask(core, GetTrace(id=id))


def found(core: Core, query: str, **options: Any) -> list[str]:
    return [hit.content for hit in search(core, query, **options)]


def weigh(similarity: float | None, bm25: float | None, full: float, weight: float, profile: Any = "default") -> float:
    """Return the weighted score of a candidate by a cosine and a BM25 of which `full` counts as 1."""
    none: Any = None
    state = Retrieval(none, none, 0.0, 0.0, 1, None, none, PROFILES[profile], 1, weight=weight, full_bm25=full)
    candidate = Candidate(1, similarity=similarity, bm25=bm25)
    score = score_of(candidate, state)
    assert sum(candidate.parts.values()) == score
    return score


def make_row(content: str, **fields: Any) -> Row:
    """Return a row with the fields that a test is about; of the others any that will do."""
    given: dict[str, Any] = {
        "row": 0,
        "id": "0" * 32,
        "namespace": 1,
        "type": "fact",
        "source": "manual",
        "tier": "L1",
        "importance": 0.5,
        "created_at": 0.0,
        "updated_at": 0.0,
        "content_hash": b"",
        "text_hash": b"",
    }
    return Row(content=content, **{**given, **fields})


def draw_text(dice: random.Random, words: Sequence[str], most: int) -> str:
    """Return one to `most` words in any order."""
    return " ".join(dice.choices(words, k=dice.randint(1, most)))


def insert(store: Store, content: str, namespace: str = "", **fields: Any) -> Row:
    """Put a row into a bare store."""

    def job(transaction: Any) -> Row:
        number = store.namespaces.ensure(transaction, namespace)
        given = {
            "id": vectors.text_hash(content).hex()[:32],
            "created_at": 1.0,
            "updated_at": 1.0,
            "content_hash": content_hash(content),
            "text_hash": vectors.text_hash(content),
            **fields,
        }
        row = make_row(content, namespace=number, **given)
        row.row = rows.insert(transaction.connection, row)
        return row

    return store.write(job).result(LIMIT_S)


def read_codes(index: VectorIndex) -> dict[int, bytes]:
    """Return the codes of each row of an index."""
    arrays = index.dump()
    rows = arrays["rows"]
    halves = [[arrays[name] for name in arrays if name.startswith(half)] for half in ("heads", "rest")]
    codes = np.hstack([np.concatenate(blocks) for blocks in halves])
    return {int(row): code.tobytes() for row, code in zip(rows, codes, strict=True) if row >= 0}


def disk_and_memory(core: Core) -> tuple[dict[int, bytes], dict[int, bytes]]:
    """Return the vectors of all memories as they are on disk and as the index holds them, quantised alike."""
    generation = core.embedding.active
    assert generation is not None
    index = generation.index

    def codes(vector: Any) -> bytes:
        return np.rint(vector / (np.abs(vector).max() / 127)).astype(np.int8).tobytes()

    with core.store.reading() as connection:
        stored = {
            row: codes(np.frombuffer(blob, np.float32))
            for row, _, _, _, blob, *_ in vectors.read_all(connection, generation.model)
            if blob is not None
        }
    return stored, read_codes(index)
