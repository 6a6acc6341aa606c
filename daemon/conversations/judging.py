"""Background work on single turns: rate them, embed those in L0, summarise promoted ones.

The queue is on disk (`store/extraction.py`), so it survives a crash, and entries wait until a model is loaded. A result
is applied to the turn in L0, or to the memory that it has become meanwhile. Ratings and summaries are derived data, so
they are not recorded as operations.

Threads: the extraction worker's. Other threads may call `step`, which does one small batch.
"""

import logging
import math
from typing import NamedTuple

import numpy as np

from memoryd.daemon.conversations import citing, comparing
from memoryd.daemon.core.core import Core
from memoryd.daemon.embedding.generation import Generation
from memoryd.daemon.llm.provider import RULES, Provider, ask
from memoryd.daemon.store import extraction, rows, turns, vectors
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.writer import Transaction

_RATED, _EMBEDDED, _CONDENSED = 16, 4, 1  # per batch; small, since a stopping daemon waits for the batch
_NO_MODEL_S = 2.0

log = logging.getLogger(__name__)


class QueuedItem(NamedTuple):
    """The turn or memory that a key of the queue refers to: the turn while it is in L0, then its memory."""

    key: str
    namespace: int
    role: str
    content: str
    row: Row | None  # the memory


def step(core: Core) -> bool:
    """Process one batch of queued turns; return whether there were any."""
    return _rate(core, core.cognition.provider) or step_without_model(core) or _condense(core)


def step_with_model(core: Core) -> bool:
    """Process one batch of the tasks that ask the provider, maybe a language model; return whether there was one."""
    return _rate(core, core.cognition.provider) or _condense(core)


def step_without_model(core: Core) -> bool:
    """Process one batch of the tasks that need no language model; return whether there was one."""
    return _embed(core) or comparing.step(core) or citing.step(core)


def step_at_once(core: Core) -> bool:
    """Rate one batch by rules or embed one, for a caller that waits; return whether there was one."""
    return _rate(core, RULES) or _embed(core)


def wait_s(core: Core) -> float | None:
    """Return how long to wait before looking for work again, None to wait until woken."""
    return None if core.embedding.active else _NO_MODEL_S


def count_batches(core: Core) -> int:
    """Return how many batches it takes to rate and embed the turns that wait now."""
    jobs = count_waiting(core)
    return math.ceil(jobs.get("rate", 0) / _RATED) + math.ceil(jobs.get("embed", 0) / _EMBEDDED)


def count_waiting(core: Core) -> dict[str, int]:
    """Return how many turns and memories wait for which task."""
    with core.store.reading() as connection:
        return extraction.count(connection)


# Rating --------------------------------------------------------------------------------------------------------------


def _rate(core: Core, provider: Provider) -> bool:
    keys, items = _read_batch(core, "rate", _RATED)
    ratings: dict[str, float] = {}
    if items:
        spoken = [(item.role, item.content) for item in items]
        _, rated = ask(log, provider, "rate turns", lambda by: [min(1.0, max(0.0, one)) for one in by.rate(spoken)])
        ratings = dict(zip((item.key for item in items), rated, strict=True))

    def write(transaction: Transaction) -> None:
        connection = transaction.connection
        changed = set()
        waiting = extraction.select_waiting(connection, "rate", keys)  # others may have been rated meanwhile
        for item in items:
            if item.key not in waiting:
                continue
            if turns.rate(connection, item.key, ratings[item.key]):
                changed.add(item.namespace)
            else:  # the turn has become a memory
                rows.rate_promoted(connection, item.key, ratings[item.key])
        extraction.remove(connection, "rate", keys)
        core.active.follow(transaction, changed)

    if keys:
        core.store.write(write).result()
    return bool(keys)


# Embedding -----------------------------------------------------------------------------------------------------------


def _embed(core: Core) -> bool:
    generation = core.embedding.active
    if generation is None:
        return False
    with core.cognition.embedding:
        return _store_vectors(core, generation)


def _store_vectors(core: Core, generation: Generation) -> bool:
    """Embed turns and store the vectors under their texts, where searches of L0 and later memories find them."""
    keys, items = _read_batch(core, "embed", _EMBEDDED)
    if not keys:
        return False
    embedded = core.embedding.embed_texts([item.content for item in items])
    if core.embedding.active is not generation:
        return True
    made = [(item, one[1]) for item, one in zip(items, embedded, strict=True) if one and one[0] is generation]

    def write(transaction: Transaction) -> None:
        for item, vector in made:
            key = vectors.text_hash(item.content)
            vectors.put(transaction.connection, generation.model, key, np.asarray(vector, np.float32))
        extraction.remove(transaction.connection, "embed", keys)

    core.store.write(write).result()
    return True


# Condensing ----------------------------------------------------------------------------------------------------------


def _condense(core: Core) -> bool:
    keys, items = _read_batch(core, "condense", _CONDENSED)
    rows_without = [item.row for item in items if item.row and not item.row.summary]
    made = [(row, _summarise(core.cognition.provider, row.content)) for row in rows_without]

    def write(transaction: Transaction) -> None:
        rows.put_summaries(transaction.connection, [(row, summary) for row, summary in made if summary])
        extraction.remove(transaction.connection, "condense", keys)

    if keys:
        core.store.write(write).result()
    return bool(keys)


def _summarise(provider: Provider, content: str) -> str:
    return ask(log, provider, "condense a memory", lambda by: by.condense(content))[1]


# The queue -----------------------------------------------------------------------------------------------------------


def _read_batch(core: Core, task: str, limit: int) -> tuple[list[str], list[QueuedItem]]:
    """Return the next keys of a task and their turns or memories; some of these may have been deleted."""
    with core.store.reading() as connection:
        keys = extraction.read_keys(connection, task, limit)
        active = turns.read_keys(connection, keys) if keys else {}
        present = rows.read_ids(connection, [key for key in keys if key not in active]) if keys else {}
    items = [QueuedItem(key, turn.namespace, turn.role, turn.content, None) for key, turn in active.items()]
    memories = [(key, row) for key, row in present.items() if row.turns or task == "condense"]
    return keys, items + [QueuedItem(key, row.namespace, "", row.content, row) for key, row in memories]
