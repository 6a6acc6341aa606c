"""Embed pending memories, a batch at a time."""

import logging

from memoryd.daemon.embedding.api import is_trouble
from memoryd.daemon.embedding.bulk import BulkPool
from memoryd.daemon.embedding.generation import Generation
from memoryd.daemon.store import contexts, vectors
from memoryd.daemon.store import rows as row_store
from memoryd.daemon.store.store import Store
from memoryd.daemon.store.writer import Transaction

BATCH = 64  # texts per write

log = logging.getLogger(__name__)


def embed_pending(store: Store, bulk: BulkPool, generation: Generation) -> bool:
    """Embed one batch of pending memories; return whether there were any. Memories that fail are set aside."""
    rows = generation.list_pending(max(BATCH, getattr(generation.embedder, "batch", 1)))
    if not rows:
        if not generation.failing:
            generation.trouble = ""
        return False
    with store.reading() as connection:
        texts = row_store.read_embedded_texts(connection, rows)
    made = bulk.embed(generation.embedder, [text for _, _, text in texts], patient=True)
    if made and all(map(is_trouble, made)):
        _postpone(generation, str(made[0]))
        return False
    generation.trouble = ""
    outcomes = [(row, key, vector) for (row, key, _), vector in zip(texts, made, strict=True)]
    failed = {row: error for row, _, error in outcomes if isinstance(error, Exception)}

    def write(transaction: Transaction) -> None:
        for _, key, vector in outcomes:
            if not isinstance(vector, Exception):
                vectors.put(transaction.connection, generation.model, key, vector)
        # Read the rows again: they may have been changed or deleted meanwhile.
        now = list(vectors.read_some(transaction.connection, generation.model, rows))
        transaction.after_commit(lambda: generation.refresh(rows, now))

    store.write(write).result()
    if failed:
        generation.set_aside(failed)
        log.warning("%d memories could not be embedded, the first: %s", len(failed), next(iter(failed.values())))
    return True


def embed_contexts(store: Store, bulk: BulkPool, generation: Generation) -> bool:
    """Embed one batch of texts within their contexts; return whether there were any. Failed ones are not retried."""
    rows = generation.list_alone(BATCH)
    if not rows:
        return False
    with store.reading() as connection:
        stored = contexts.read(connection, rows)
        own = vectors.find(connection, generation.model, [one.text_hash for one in stored.values()])
    wanted = [one for one in stored.values() if one.text_hash in own]
    made = bulk.embed(generation.embedder, [one.content for one in wanted], patient=True)
    if made and all(map(is_trouble, made)):
        return False
    ready = [(one, vector) for one, vector in zip(wanted, made, strict=True) if not isinstance(vector, Exception)]
    numbers = [one.row for one, _ in ready]
    if len(ready) < len(wanted):
        error = next(one for one in made if isinstance(one, Exception))
        log.warning("%d contexts could not be embedded, the first: %s", len(wanted) - len(ready), error)

    def write(transaction: Transaction) -> None:
        for one, vector in ready:
            blended = contexts.merge(own[one.text_hash], vector)
            vectors.put(transaction.connection, generation.model, one.search_hash, blended)
        now = list(vectors.read_some(transaction.connection, generation.model, numbers))
        transaction.after_commit(lambda: generation.refresh(numbers, now))

    store.write(write).result()
    generation.give_up(set(rows).difference(numbers))
    return True


def _postpone(generation: Generation, reason: str) -> None:
    """Set all pending memories aside until the server answers again, instead of sending each to it."""
    waiting = generation.list_pending(len(generation.pending))
    generation.set_aside(waiting)
    generation.trouble = reason
    log.warning("%d memories wait for their vectors: %s", len(waiting), reason)
