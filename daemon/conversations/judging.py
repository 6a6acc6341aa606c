"""Judging: turns are rated, those in L0 get vectors, what was promoted is condensed. In the background.

What is to be done is in the extraction queue on disk (`store/extraction.py`), so it survives a crash and waits for a
model where it needs one. A judgement is applied wherever the turn is by then: in L0, or in the memory that it has
become. Ratings and summaries are derived, so they are no operations.

Threads: the extraction worker's. `step` may be called by others; it does one small batch at a time.
"""

import logging
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from memoryd.daemon.conversations import citing, comparing
from memoryd.daemon.core.core import Core
from memoryd.daemon.embedding.generation import Generation
from memoryd.daemon.llm.provider import RULES, Provider, ask
from memoryd.daemon.store import extraction, rows, turns, vectors
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.writer import Transaction

_RATED, _EMBEDDED, _CONDENSED = 16, 4, 1  # per batch: a stop waits for one
_NO_MODEL_S = 2.0

log = logging.getLogger(__name__)


class RatedItem(NamedTuple):
    """What a key represents: the turn while it is in L0, else the memory."""

    key: str
    namespace: int
    role: str
    content: str
    row: Row | None  # the memory


def step(core: Core) -> bool:
    """Process one batch of queued turns; return whether there were any."""
    return _rate(core, core.cognition.provider) or step_without_model(core) or _condense(core)


def step_with_model(core: Core) -> bool:
    """Process one batch of what asks the provider, which may be a language model; return whether there was any."""
    return _rate(core, core.cognition.provider) or _condense(core)


def step_without_model(core: Core) -> bool:
    """Process one batch of what asks no language model; return whether there was any."""
    return _embed(core) or comparing.step(core) or citing.step(core)


def step_at_once(core: Core) -> bool:
    """Do one batch of rating and embedding, by rules: somebody waits for it."""
    return _rate(core, RULES) or _embed(core)


def wait_s(core: Core) -> float | None:
    """Return how long to wait for work, None for until something comes."""
    return None if core.embedding.active else _NO_MODEL_S


def count_batches(core: Core) -> int:
    """Return how many steps it takes to rate and embed what waits now."""
    jobs = count_waiting(core)
    return math.ceil(jobs.get("rate", 0) / _RATED) + math.ceil(jobs.get("embed", 0) / _EMBEDDED)


def count_waiting(core: Core) -> dict[str, int]:
    """Return how many turns and memories wait for which task."""
    with core.store.reading() as connection:
        return extraction.count(connection)


# Rating --------------------------------------------------------------------------------------------------------------


def _rate(core: Core, provider: Provider) -> bool:
    keys, things = _read_asked(core, "rate", _RATED)
    rated = dict(zip((thing.key for thing in things), _rate_importance(provider, things), strict=True))

    def write(transaction: Transaction) -> None:
        connection = transaction.connection
        concerned = set()
        asked = extraction.select_waiting(connection, "rate", keys)  # others may have been rated meanwhile
        for thing in (one for one in things if one.key in asked):
            if turns.rate(connection, thing.key, rated[thing.key]):
                concerned.add(thing.namespace)
            else:  # it may have become a memory since
                rows.rate_promoted(connection, thing.key, rated[thing.key])
        extraction.remove(connection, "rate", keys)
        core.active.follow(transaction, concerned)

    if keys:
        core.store.write(write).result()
    return bool(keys)


def _rate_importance(provider: Provider, things: Sequence[RatedItem]) -> list[float]:
    spoken = [(thing.role, thing.content) for thing in things]
    if not spoken:
        return []
    return ask(log, provider, "rate turns", lambda by: [min(1.0, max(0.0, one)) for one in by.rate(spoken)])[1]


# Embedding -----------------------------------------------------------------------------------------------------------


def _embed(core: Core) -> bool:
    generation = core.embedding.active
    if generation is None:
        return False
    with core.cognition.embedding:
        return _store_vectors(core, generation)


def _store_vectors(core: Core, generation: Generation) -> bool:
    """Store the vectors of turns by their texts: searches of L0 read them, and the memories that turns become."""
    keys, things = _read_asked(core, "embed", _EMBEDDED)
    if not keys:
        return False
    made = core.embedding.embed_texts([thing.content for thing in things])
    if core.embedding.active is not generation:
        return True
    known = [(thing, given[1]) for thing, given in zip(things, made, strict=True) if given and given[0] is generation]

    def write(transaction: Transaction) -> None:
        for thing, vector in known:
            key = vectors.text_hash(thing.content)
            vectors.put(transaction.connection, generation.model, key, np.asarray(vector, np.float32))
        extraction.remove(transaction.connection, "embed", keys)

    core.store.write(write).result()
    return True


# Condensing ----------------------------------------------------------------------------------------------------------


def _condense(core: Core) -> bool:
    keys, things = _read_asked(core, "condense", _CONDENSED)
    lacking = [thing.row for thing in things if thing.row and not thing.row.summary]
    made = [(row, _summarise(core.cognition.provider, row.content)) for row in lacking]

    def write(transaction: Transaction) -> None:
        rows.put_summaries(transaction.connection, [(row, summary) for row, summary in made if summary])
        extraction.remove(transaction.connection, "condense", keys)

    if keys:
        core.store.write(write).result()
    return bool(keys)


def _summarise(provider: Provider, content: str) -> str:
    return ask(log, provider, "condense a memory", lambda by: by.condense(content))[1]


# The queue -----------------------------------------------------------------------------------------------------------


def _read_asked(core: Core, task: str, limit: int) -> tuple[list[str], list[RatedItem]]:
    """Return the next keys of a task, and what they stand for; some may stand for nothing any more."""
    with core.store.reading() as connection:
        keys = extraction.read_keys(connection, task, limit)
        active = turns.read_keys(connection, keys) if keys else {}
        present = rows.read_ids(connection, [key for key in keys if key not in active]) if keys else {}
    things = [RatedItem(key, turn.namespace, turn.role, turn.content, None) for key, turn in active.items()]
    memories = [(key, row) for key, row in present.items() if row.turns or task == "condense"]
    return keys, things + [RatedItem(key, row.namespace, "", row.content, row) for key, row in memories]
