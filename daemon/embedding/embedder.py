"""The embedder of the daemon: it loads the model, maintains the vector index and embeds pending memories.

There is no table of pending memories: a memory is pending if its text has no vector of the model. When the model is
ready, an add embeds its own text; otherwise the thread of this module does it later, also after a crash. A missing or
failing model is retried indefinitely with growing pauses, and so is a text that it cannot embed; meanwhile search uses
words alone.

A `Generation` is one model with its index. `use` builds the next generation in the background from the same rows, and
swaps when nothing is pending: until then searches use the old vectors.

Threads: one of its own. `index_rows` and `remove_rows` are called by the writer thread, queries by any.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
import numpy as np

from memoryd.client.errors import ModelUnavailable, Unavailable
from memoryd.client.protocol import ModelState, Progress
from memoryd.daemon.arrays.arrays import Arrays
from memoryd.daemon.arrays.vector_index import RowKey
from memoryd.daemon.config import ModelConfig
from memoryd.daemon.embedding import long_texts
from memoryd.daemon.embedding.api import is_api
from memoryd.daemon.embedding.backlog import embed_contexts, embed_pending
from memoryd.daemon.embedding.bulk import BulkPool, attempt
from memoryd.daemon.embedding.generation import Generation
from memoryd.daemon.embedding.query_vectors import QueryVectors
from memoryd.daemon.store import codes, text_parts, vectors
from memoryd.daemon.store.store import Store
from memoryd.daemon.store.vectors import Vector
from memoryd.daemon.store.writer import Transaction
from memoryd.models import Embedder, ModelError, ModelMissing, installed, read_manifest

_CLOSE_LIMIT_S = 2.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 300.0

log = logging.getLogger(__name__)

T = TypeVar("T")
Loader = Callable[[str, Path], Embedder]
Fetcher = Callable[[str, Path, threading.Event], None]
_State = Literal["missing", "fetching", "loading", "ready", "failed"]


class Embedding:
    """Embeds texts for the whole daemon, and reports the state of the model."""

    def __init__(
        self, store: Store, arrays: Arrays, config: ModelConfig, folder: Path, load: Loader, fetch: Fetcher | None
    ) -> None:
        self._arrays = arrays
        self._store, self._config, self._folder = store, config, folder
        self._load, self._fetch = load, fetch
        self.active: Generation | None = None
        self.on_active: Callable[[], None] = lambda: None  # called whenever a model has become the active one
        self._next: Generation | None = None
        self._loading: Generation | None = None
        self._state = ModelState(name=store.read_setting("model") or config.name, state="loading")
        self._wanted = store.read_setting("next_model") or self._state.name
        self.queries = QueryVectors()
        self._bulk = BulkPool()
        self._wake = threading.Event()  # set when there may be work
        self._retry = threading.Event()  # set to retry without the pause
        self._warned = False  # of a missing model: once, not at each attempt
        self._settled = threading.Event()  # set after the first attempt to load
        self._closing = threading.Event()
        self._reread = False  # whether the index is to be rebuilt
        self._pause_s = 0.0
        self._retry_at: float | None = None  # monotonic time at which failed texts are retried
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start to load the model and to embed pending memories."""
        self._thread = self._store.supervisor.start("embedding", self._work, self._closing, self._wake)

    def interrupt(self) -> None:
        """Stop the thread's work and refuse to embed for waiting calls; pending memories stay pending."""
        self._closing.set()
        self._retry_now()
        self._bulk.interrupt()

    def close(self) -> bool:
        """Stop the thread; return whether it has ended: loading a model or embedding a text cannot be interrupted."""
        self.interrupt()
        if self._thread:
            self._thread.join(_CLOSE_LIMIT_S)
        self.queries.close()
        self._bulk.close()
        return not (self._thread and self._thread.is_alive())

    # Vectors ---------------------------------------------------------------------------------------------------------

    def embed_text(self, text: str) -> tuple[Generation, Vector] | None:
        """Return the model and the vector of a memory's text, from the cache if it was embedded before.

        Return None if there is no model or it fails: the memory is then pending. Raise `Unavailable` when the daemon
        is stopping.
        """
        if self._closing.is_set():
            raise Unavailable("The daemon is stopping.", {"retry_after_ms": 100})
        generation = self.active
        if generation is None:
            return None
        with self._store.reading() as connection:
            known = vectors.read_cached(connection, generation.model, vectors.text_hash(text))
        if known is not None:
            return generation, known
        return _find_vector(generation, attempt(generation.embedder, text))

    def embed_texts(self, texts: Sequence[str]) -> list[tuple[Generation, Vector] | None]:
        """Return the result of `embed_text` for each text; those without a cached vector are embedded in parallel."""
        generation = self.active
        if generation is None:
            return [None] * len(texts)
        with self._store.reading() as connection:
            known = [vectors.read_cached(connection, generation.model, vectors.text_hash(text)) for text in texts]
        unknown = [text for text, vector in zip(texts, known, strict=True) if vector is None]
        made = iter(self._bulk.embed(generation.embedder, unknown))
        return [_find_vector(generation, next(made) if vector is None else vector) for vector in known]

    # Rows ------------------------------------------------------------------------------------------------------------

    def index_early(self, keys: Sequence[RowKey], given: Sequence[tuple[Generation, Vector] | None]) -> None:
        """Add rows that are not committed yet to the index."""
        for generation in {id(one[0]): one[0] for one in given if one}.values():
            there = [(key, one[1]) for key, one in zip(keys, given, strict=True) if one and one[0] is generation]
            generation.index.extend([key for key, _ in there], np.stack([vector for _, vector in there]))

    def index_rows(self, keys: Sequence[RowKey], given: Sequence[tuple[Generation, Vector] | None]) -> None:
        """Add committed rows to the index of each generation, or to its pending rows if their vector is missing."""
        for generation in self._list_generations():
            made = [one[1] if one and one[0].model == generation.model else None for one in given]
            generation.index_rows(keys, made)
        self._wake.set()

    def remove_rows(self, rows: Sequence[int]) -> None:
        """Remove rows from the indexes."""
        for generation in self._list_generations():
            generation.remove_rows(rows)

    def refresh(self, rows: Iterable[int]) -> None:
        """Update the index for some rows from the database: after an undo, a change of text or a rollback."""
        numbers = list(rows)
        for generation in self._list_generations():
            with self._store.reading() as connection:
                generation.refresh(numbers, vectors.read_some(connection, generation.model, numbers))
        self._wake.set()

    def _list_generations(self) -> list[Generation]:
        return list({id(g): g for g in (self.active, self._next, self._loading) if g}.values())

    # State -----------------------------------------------------------------------------------------------------------

    def report_state(self) -> ModelState:
        """Return the state of the model, with the progress of preparing another one."""
        state, generation = self._state, self._next
        trouble = next((one.trouble for one in (generation, self.active) if one and one.trouble), "")
        if trouble and not state.error:
            state = msgspec.structs.replace(state, error=trouble)
        if generation is None:
            return state
        total = len(generation.index) + generation.count_waiting()
        progress = Progress(stage=generation.name, done=len(generation.index), total=total)
        return msgspec.structs.replace(state, reembedding=progress)

    def count_pending(self) -> int | None:
        """Return how many memories are pending, None if there is no model yet."""
        generation = self.active
        return generation.count_waiting() if generation else None

    def use(self, name: str) -> None:
        """Switch to another model in the background; raise `ModelUnavailable` when it is not installed."""
        if not is_api(name) and name not in installed(self._folder):
            try:
                read_manifest(name, self._folder)  # its error names the missing file
            except ModelError as error:
                raise ModelUnavailable(str(error)) from None
        if self._state.state in ("missing", "failed", "fetching"):  # there are no vectors to search meanwhile
            self._store.set_setting("model", name).result()
            self._state = ModelState(name=name, state="loading")
        else:
            self._store.set_setting("next_model", name).result()
        self._wanted = name
        self._retry_now()

    def rebuild(self) -> None:
        """Reload the vectors from disk, for example after a repair; until then search uses the loaded ones."""
        self._reread = True
        self._retry_now()

    def _retry_now(self) -> None:
        self._retry.set()
        self._wake.set()

    def wait_settled(self, limit_s: float) -> None:
        """Wait until the first attempt to load the model has ended, well or not."""
        self._settled.wait(limit_s)

    # The thread ------------------------------------------------------------------------------------------------------

    def _work(self) -> float | None:
        """Do a step of work; return how long to wait before the next one, None to wait until woken."""
        if self._retry_at is not None and time.monotonic() >= self._retry_at:
            self._retry_at = None
            for generation in self._list_failing():
                generation.retry()
        try:
            more = self._step()
        except Exception as error:
            if self._closing.is_set():  # the next start of the daemon repeats the step
                return 0.0
            self._note_failure(error)
            self._settled.set()
            self._retry.wait(self._pause_s)
            self._retry.clear()
            self._retry_at = time.monotonic()  # retry failed texts together with the model
            return 0.0
        self._settled.set()
        return 0.0 if more else self._rest_s()

    def _step(self) -> bool:
        """Do one step of work, for the active model first; return whether there is more."""
        if self.active is None or self._reread:
            self._activate_first()
        known = self._list_generations()
        return (
            any(embed_pending(self._store, self._bulk, generation) for generation in known)
            or any(embed_contexts(self._store, self._bulk, generation) for generation in known)
            or any(long_texts.embed_parts(self._store, self._bulk, one.parts, one.model, one.embedder) for one in known)
            or self._switch()
        )

    def _rest_s(self) -> float | None:
        """Return how long to wait: until failed texts are retried, None if there are none."""
        if not self._list_failing():
            self._pause_s, self._retry_at = 0.0, None
            return None
        if self._retry_at is None:
            self._lengthen_pause()
            self._retry_at = time.monotonic() + self._pause_s
        return max(0.0, self._retry_at - time.monotonic())

    def _list_failing(self) -> list[Generation]:
        return [generation for generation in self._list_generations() if generation.failing]

    def _lengthen_pause(self) -> None:
        self._pause_s = min(_LONGEST_PAUSE_S, 2 * self._pause_s or _FIRST_PAUSE_S)

    def _activate_first(self) -> None:
        name, active = self._state.name, self.active
        self._note("loading", self._state.error)
        generation = self._build_generation(name, active.embedder if active else self._load(name, self._folder))
        if self._wanted == name:
            self._store.write(partial(_adopt, generation=generation), over_limit=True).result()
        self.active, self._reread = generation, False
        self._note("ready")
        self.on_active()
        found = len(generation.index), len(generation.pending)
        log.info("model %s ready, %d vectors, %d pending", name, *found, extra={"told": True})

    def _note(self, state: _State, error: str = "", attempts: int | None = None) -> None:
        """Set the state that `status` reports: `ready` if there is an active model, whatever else fails."""
        generation, name = self.active, self._state.name
        if generation is None and state in ("missing", "failed") and not self._warned:
            log.warning("the model %s is %s, search uses words alone: %s", name, state, error)
        self._warned = generation is None and (self._warned or state in ("missing", "failed"))
        self._state = ModelState(
            name=name,
            state="ready" if generation else state,
            dimensions=generation.embedder.dimensions if generation else None,
            format=generation.embedder.format if generation else "",
            error=error,
            attempts=self._state.attempts if attempts is None else attempts,
        )

    def _build_generation(self, name: str, embedder: Embedder) -> Generation:
        """Return the generation of a model with its vectors; rows written meanwhile are added to it, too."""

        def ensure(transaction: Transaction) -> int:
            return vectors.ensure_model(transaction.connection, name, embedder.fingerprint, embedder.dimensions)

        model = self._store.write(ensure, over_limit=True).result()
        generation = self._restore(model, name, embedder) or self._fill(model, name, embedder)
        with self._store.reading() as connection:
            stored = self._until_stopped(text_parts.iterate_vectors(connection, model))
            generation.parts.fill(stored, text_parts.list_uncut(connection))
        return generation

    def _until_stopped(self, rows: Iterable[T]) -> Iterator[T]:
        """Yield rows; raise `Unavailable` when the daemon stops."""
        for row in rows:
            if self._closing.is_set():
                raise Unavailable("The daemon is stopping.")
            yield row

    def _fill(self, model: int, name: str, embedder: Embedder) -> Generation:
        """Return the generation of a model with the vectors in the database."""
        generation = Generation(model, name, embedder, self._arrays.positions)
        self._loading = generation
        try:
            with self._store.reading() as connection:
                generation.fill(self._until_stopped(vectors.read_all(connection, generation.model)))
        except BaseException:
            self._loading = None
            raise
        return generation

    def _restore(self, model: int, name: str, embedder: Embedder) -> Generation | None:
        """Return the generation of a model with the codes that the last daemon saved, None if it saved none."""
        kept = self._store.take_codes()
        if kept is None:
            return None
        generation = Generation(model, name, embedder, self._arrays.positions)
        try:
            if (kept.header.model, kept.header.fingerprint) != (model, embedder.fingerprint):
                return None
            generation.restore(kept)
        except codes.UNREADABLE as error:
            log.warning("the codes of the former daemon cannot be used: %s", error)
            return None
        finally:
            kept.file.close()
        self._loading = generation  # receives each change from here on; earlier ones are read below
        changed = self._store.take_changed()
        if changed is None:
            self._loading = None
            return None
        if changed:
            with self._store.reading() as connection:
                generation.refresh(changed, vectors.read_some(connection, model, changed))
        return generation

    def _switch(self) -> bool:
        """Prepare the requested model and swap to it, or stop preparing one; return whether there is more to do."""
        active, coming = self.active, self._next
        if active is None or self._wanted == active.name:
            if active is not None and coming is not None:
                self._next = self._loading = None
                self._store.write(partial(_adopt, generation=active)).result()
                self._note("ready")
            return False
        if coming is None or coming.name != self._wanted:
            name, self._next = self._wanted, None
            self._next = self._build_generation(name, self._load(name, self._folder))
            return True
        if len(coming.failing) > len(coming.index):
            return False  # it fails on most texts: keep the old one and retry later
        self._store.write(partial(self._swap, generation=coming)).result()
        return True

    def _swap(self, transaction: Transaction, generation: Generation) -> None:
        """Make the next generation the active one, unless something is pending again."""
        if generation.pending:
            return
        _adopt(transaction, generation)
        transaction.after_commit(lambda: self._activate(generation))

    def _activate(self, generation: Generation) -> None:
        self.active, self._next, self._loading = generation, None, None
        self._state = ModelState(name=generation.name, state="ready")
        self._note("ready")
        self.on_active()

    def _note_failure(self, error: Exception) -> None:
        """Set the state after a failure, fetch a missing model, and choose the pause before the next attempt."""
        attempts = self._state.attempts + 1
        missing = isinstance(error, ModelMissing)
        if not isinstance(error, ModelError):
            log.warning("the embedding model failed (attempt %d): %s", attempts, error)
        reason = str(error)
        if missing and self._fetch and self._config.fetch and not self._closing.is_set():
            self._note("fetching", attempts=attempts)
            try:
                self._fetch(self._wanted if self.active else self._state.name, self._folder, self._closing)
                self._pause_s = 0.01
                return
            except Exception as trouble:
                reason = str(trouble)
        self._note("missing" if missing else "failed", reason, attempts)
        self._lengthen_pause()


def _find_vector(generation: Generation, made: Vector | Exception) -> tuple[Generation, Vector] | None:
    if isinstance(made, Exception):
        log.warning("embedding failed, the memory waits in the queue: %s", made)
        return None
    return generation, made


def _adopt(transaction: Transaction, generation: Generation) -> None:
    """Record the model as that of the database and delete the vectors of all others."""
    vectors.adopt(transaction.connection, generation.model, generation.name)
