"""The embedder of the daemon: loads the model, keeps the vector index, works off the durable queue of embeddings.

The queue needs no table: a memory whose text has no vector of the model is pending. An add brings its vector with it
when the model is ready; otherwise this thread makes it later, also after a crash. A missing or failing model is tried
again for ever, with growing pauses; meanwhile search answers from full text.

A `Generation` is one model with its index. `use` builds the next generation in the background from the same rows, and
swaps when nothing is pending: searches go on with the old vectors until then.

Threads: one of its own. `written` and `removed` are called by the writer thread, queries by any.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from memoryd.client.errors import ModelUnavailable
from memoryd.client.protocol import ModelState, Progress
from memoryd.daemon.config import ModelConfig
from memoryd.daemon.embedding.bulk import BulkPool
from memoryd.daemon.embedding.generation import Generation
from memoryd.daemon.store import vectors
from memoryd.daemon.store.store import Store
from memoryd.daemon.store.vectors import Vector
from memoryd.daemon.store.writer import Transaction
from memoryd.models import Embedder, ModelError, ModelMissing, installed

BATCH = 16  # texts of the backlog per write
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 300.0

log = logging.getLogger(__name__)

Loader = Callable[[str, Path], Embedder]
Fetcher = Callable[[str, Path, threading.Event], None]


class Embedding:
    """Text to vectors for the whole daemon, and the state of the model."""

    def __init__(self, store: Store, config: ModelConfig, folder: Path, load: Loader, fetch: Fetcher | None) -> None:
        self._store, self._config, self._folder = store, config, folder
        self._load, self._fetch = load, fetch
        self.active: Generation | None = None
        self._next: Generation | None = None
        self._loading: Generation | None = None
        self._state = ModelState(name=store.setting("model") or config.name, state="loading")
        self._wanted = store.setting("next_model") or self._state.name
        self._queries: OrderedDict[tuple[int, str], Vector] = OrderedDict()
        self._queries_lock = threading.Lock()
        self._query_pool = ThreadPoolExecutor(4, "query-embed")
        self.bulk = BulkPool()
        self._wake = threading.Event()  # there may be work
        self._retry = threading.Event()  # try again at once what failed
        self._settled = threading.Event()  # the first attempt to load has ended
        self._closing = threading.Event()
        self._pause_s = 0.0
        self._batch = BATCH
        self._thread = threading.Thread(target=self._run, name="embedding", daemon=True)

    def start(self) -> None:
        """Begin to load the model and work off the queue."""
        self._thread.start()

    def close(self) -> None:
        """Stop the thread; what is pending stays in the queue."""
        self._closing.set()
        self._retry_now()
        if self._thread.is_alive():
            self._thread.join()
        self._query_pool.shutdown(wait=True, cancel_futures=True)
        self.bulk.close()

    # Vectors ---------------------------------------------------------------------------------------------------------

    def query_vector(self, text: str) -> "tuple[Generation, Vector | Future[Vector]] | None":
        """Return the model and the vector of a query, or a future of it; None while there is no model."""
        generation = self.active
        if generation is None:
            return None
        key = (generation.model, text)
        with self._queries_lock:
            known = self._queries.get(key)
            if known is not None:
                self._queries.move_to_end(key)
                return generation, known
        return generation, self._query_pool.submit(self._embed_query, generation, text)

    def _embed_query(self, generation: Generation, text: str) -> Vector:
        vector = generation.embedder.embed_query(text)
        with self._queries_lock:
            self._queries[generation.model, text] = vector
            while len(self._queries) > self._config.query_cache:
                self._queries.popitem(last=False)
        return vector

    def text_vector(self, text: str) -> tuple[Generation, Vector] | None:
        """Return the model and the vector of a memory's text, from the cache if it was embedded before.

        None while there is no model or when it fails: the memory then waits in the queue.
        """
        generation = self.active
        if generation is None:
            return None
        with self._store.reading() as connection:
            known = vectors.cached(connection, generation.model, vectors.text_hash(text))
        if known is not None:
            return generation, known
        try:
            return generation, generation.embedder.embed_texts([text])[0]
        except Exception as error:
            log.warning("embedding failed, the memory waits in the queue: %s", error)
            return None

    def text_vectors(self, texts: Sequence[str]) -> list[tuple[Generation, Vector] | None]:
        """Return what `text_vector` returns for each text; the unknown ones are embedded side by side."""
        generation = self.active
        if generation is None:
            return [None] * len(texts)
        with self._store.reading() as connection:
            known = [vectors.cached(connection, generation.model, vectors.text_hash(text)) for text in texts]
        unknown = [text for text, vector in zip(texts, known, strict=True) if vector is None]
        try:
            made = iter(self.bulk.embed(generation.embedder, unknown))
        except Exception as error:
            log.warning("embedding failed, %d memories wait in the queue: %s", len(texts), error)
            return [None] * len(texts)
        return [(generation, next(made) if vector is None else vector) for vector in known]

    # Rows ------------------------------------------------------------------------------------------------------------

    def written(self, row: int, namespace: int, kind: str, given: tuple[Generation, Vector] | None) -> None:
        """Take a committed row into the index, or into the queue of each generation that has no vector of it."""
        for generation in self._generations():
            vector = given[1] if given and given[0] is generation else None
            generation.written(row, namespace, kind, vector)
        self._wake.set()

    def removed(self, row: int) -> None:
        """Forget a row."""
        for generation in self._generations():
            generation.removed(row)

    def refresh(self, row: int) -> None:
        """Bring the index in line with what is on disk for a row: after an undo, a change of text, a rollback."""
        generation = self.active
        with self._store.reading() as connection:
            found: Any = connection.execute(_PLACES.format(row)).fetchone()
            known = vectors.cached(connection, generation.model, found[3]) if found and generation else None
        if found is None:
            self.removed(row)
        else:
            _, namespace, kind, _ = found
            self.written(row, namespace, kind, None if generation is None or known is None else (generation, known))

    def _generations(self) -> list[Generation]:
        return list({id(g): g for g in (self.active, self._next, self._loading) if g}.values())

    # State -----------------------------------------------------------------------------------------------------------

    def state(self) -> ModelState:
        """Return the state of the model, with progress while another one is being prepared."""
        state, generation = self._state, self._next
        if generation is None:
            return state
        total = len(generation.index) + len(generation.pending)
        progress = Progress(stage=generation.embedder.name, done=len(generation.index), total=total)
        return ModelState(
            name=state.name,
            state=state.state,
            dimensions=state.dimensions,
            error=state.error,
            attempts=state.attempts,
            reembedding=progress,
        )

    def pending(self) -> int | None:
        """Return how many memories wait for a vector, None while that is not known (no model yet)."""
        return len(self.active.pending) if self.active else None

    def use(self, name: str) -> None:
        """Switch to another installed model in the background; raise `ModelUnavailable` when it is not installed."""
        if name not in installed(self._folder):
            raise ModelUnavailable(f"The model {name} is not installed; run: memctl model pull {name}")
        self._store.set_setting("next_model", name).result()
        self._wanted = name
        self._retry_now()

    def rebuild(self) -> None:
        """Read the vectors anew from disk, for example after a repair."""
        self.active = None
        self._retry_now()

    def _retry_now(self) -> None:
        self._retry.set()
        self._wake.set()

    def wait_settled(self, limit_s: float) -> None:
        """Wait until the first attempt to load the model has ended, well or not."""
        self._settled.wait(limit_s)

    # The thread ------------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._closing.is_set():
            self._wake.clear()
            try:
                more = self._step()
                self._pause_s = 0.0
                self._settled.set()
            except Exception as error:
                self._settled.set()
                self._failed(error)
                self._retry.wait(self._pause_s)
                self._retry.clear()
                continue
            if not more:
                self._wake.wait()

    def _step(self) -> bool:
        """Do one piece of work; tell whether there is more."""
        if self.active is None:
            self._activate_first()
        elif self._wanted != self.active.embedder.name:
            if self._next is None or self._next.embedder.name != self._wanted:
                self._next = None
                self._next = self._generation(self._wanted)
            if not self._next.pending:
                self._swap(self._next)
        return any(self._work_off(generation) for generation in self._generations())

    def _activate_first(self) -> None:
        name = self._state.name
        self._state = ModelState(name=name, state="loading", attempts=self._state.attempts, error=self._state.error)
        self.active = generation = self._generation(name)
        self._state = ModelState(
            name=name, state="ready", dimensions=generation.embedder.dimensions, attempts=self._state.attempts
        )
        log.info("model %s ready, %d vectors, %d pending", name, len(generation.index), len(generation.pending))

    def _generation(self, name: str) -> Generation:
        """Load a model and its vectors. Rows written meanwhile go to it as to the others."""
        embedder = self._load(name, self._folder)
        fingerprint, dimensions = embedder.fingerprint, embedder.dimensions

        def number(transaction: Transaction) -> int:
            return vectors.model_number(transaction.connection, name, fingerprint, dimensions)

        generation = Generation(self._store.write(number).result(), embedder)
        self._loading = generation
        try:
            with self._store.reading() as connection:
                generation.fill(vectors.everything(connection, generation.model))
        except BaseException:
            self._loading = None
            raise
        return generation

    def _work_off(self, generation: Generation) -> bool:
        """Embed one batch of what is pending; tell whether more is left."""
        rows = generation.next_pending(self._batch)
        if not rows:
            return False
        generation.postpone(rows)  # to the end of the queue, so that a text which fails does not stop the others
        size, self._batch = self._batch, 1
        with self._store.reading() as connection:
            texts = [(row, text) for row, text in connection.execute(_TEXTS.format(", ".join(map(str, rows))))]
        made = self.bulk.embed(generation.embedder, [text for _, text in texts])
        self._store.write(lambda transaction: self._keep(transaction, generation, rows, texts, made)).result()
        self._batch = min(BATCH, 2 * size)
        return bool(generation.pending)

    def _keep(
        self,
        transaction: Transaction,
        generation: Generation,
        rows: list[int],
        texts: list[tuple[int, str]],
        made: Vector,
    ) -> None:
        connection = transaction.connection
        found = connection.execute(_PLACES.format(", ".join(map(str, rows))))
        places = {row: (namespace, kind, key) for row, namespace, kind, key in found}
        for (row, text), vector in zip(texts, made, strict=True):
            key = vectors.text_hash(text)
            vectors.put(connection, generation.model, key, vector)
            if row in places and places[row][2] == key:  # else it was changed or deleted meanwhile
                namespace, kind, _ = places[row]
                transaction.after_commit(partial(generation.written, row, namespace, kind, vector))
        for row in rows:
            if row not in places:
                transaction.after_commit(partial(generation.removed, row))

    def _swap(self, generation: Generation) -> None:
        """Make the next generation the active one, at a moment when nothing is being written."""
        name = generation.embedder.name

        def job(transaction: Transaction) -> None:
            if generation.pending:
                return
            transaction.connection.execute(
                "INSERT INTO settings (name, value) VALUES ('model', ?1) ON CONFLICT (name) DO UPDATE SET value = ?1",
                (name,),
            )
            transaction.connection.execute("DELETE FROM settings WHERE name = 'next_model'")
            vectors.drop_unused(transaction.connection, generation.model)
            transaction.after_commit(lambda: self._activate(generation))

        self._store.write(job).result()

    def _activate(self, generation: Generation) -> None:
        self.active, self._next = generation, None
        self._loading = None
        self._state = ModelState(
            name=generation.embedder.name, state="ready", dimensions=generation.embedder.dimensions
        )

    def _failed(self, error: Exception) -> None:
        """Keep what went wrong for `status`, fetch a missing model, pause before the next attempt."""
        attempts = self._state.attempts + 1
        missing = isinstance(error, ModelMissing)
        if not isinstance(error, ModelError):
            log.warning("the embedding model failed (attempt %d): %s", attempts, error)
        reason = str(error)
        if missing and self._fetch and self._config.fetch and not self._closing.is_set():
            self._state = ModelState(name=self._state.name, state="fetching", attempts=attempts)
            try:
                self._fetch(self._wanted, self._folder, self._closing)
                self._pause_s = 0.01
                return
            except Exception as trouble:
                reason = str(trouble)
        if self.active is None:
            self._state = ModelState(
                name=self._state.name, state="missing" if missing else "failed", error=reason, attempts=attempts
            )
        self._pause_s = min(_LONGEST_PAUSE_S, 2 * self._pause_s or _FIRST_PAUSE_S)


_TEXTS = "SELECT row, content FROM memories WHERE row IN ({})"
_PLACES = "SELECT row, namespace, type, text_hash FROM memories WHERE row IN ({})"
