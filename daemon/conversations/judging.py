"""The judge: rates turns, finds those that repeat a memory, condenses what was promoted. In the background.

What is to be done is a queue on disk (`cognition`), so it survives a crash and waits for a model where it needs one. A
judgement lands wherever the turn then is: in L0, or in the memory that it has become. Ratings and summaries are
derived, so they are no operations; a memory that goes because it repeats another is one.

Threads: one of its own at low priority. `step` may be called by others; it does one small portion at a time.
"""

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memoryd.daemon.conversations import citing
from memoryd.daemon.core.core import Core
from memoryd.daemon.embedding.generation import Generation
from memoryd.daemon.language.agreement import disagreement
from memoryd.daemon.llm.provider import RULES, Provider
from memoryd.daemon.store import history, rows, turns, vectors
from memoryd.daemon.store.filters import Filter
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import L1, L2
from memoryd.daemon.store.turns import Skip, Turn
from memoryd.daemon.store.vectors import Vector
from memoryd.daemon.store.writer import Transaction

REPEATS = "near-duplicate"
KIND = f"{history.JOB}judge"
_RATED, _COMPARED, _CONDENSED = 16, 4, 1  # per portion: a stop waits for one
_NEIGHBOURS = 8  # near-duplicates looked at
_NO_MODEL_S = 2.0

log = logging.getLogger(__name__)


class Thing(NamedTuple):
    """What a key stands for: the turn while it is in L0, else the memory."""

    key: str
    namespace: int
    role: str
    content: str
    turn: Turn | None
    row: Row | None


class Judge:
    """The thread."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin; what an earlier run of the daemon left is done first."""
        wake = self._core.cognition.wake
        self._thread = self._core.supervisor.start("judge", self._work, self._closing, wake, nice=True)

    def close(self) -> None:
        """End the thread; what is not judged stays in the queue."""
        self._closing.set()
        self._core.cognition.provider.close()
        self._core.cognition.wake.set()
        if self._thread:
            self._thread.join()

    def _work(self) -> float | None:
        while self._portion() and not self._closing.is_set():
            pass
        return None if self._core.embedding.active else _NO_MODEL_S

    def _portion(self) -> bool:
        """Do a portion and give way; tell whether there was any."""
        began = time.perf_counter()
        done = step(self._core)
        self._core.rest(time.perf_counter() - began)
        return done


def step(core: Core) -> bool:
    """Do one portion of what can be done now; tell whether there was any."""
    return _rate(core, core.cognition.provider) or _compare(core) or citing.step(core) or _condense(core)


def step_at_once(core: Core) -> bool:
    """Do one portion of rating and comparing, by rules: somebody waits for it."""
    return _rate(core, RULES) or _compare(core)


def portions(core: Core) -> int:
    """Return how many steps it takes to rate and compare what waits now."""
    jobs = waiting(core)
    return math.ceil(jobs.get("rate", 0) / _RATED) + math.ceil(jobs.get("compare", 0) / _COMPARED)


def waiting(core: Core) -> dict[str, int]:
    """Return how many turns and memories wait for which job."""
    with core.store.reading() as connection:
        return turns.count_asked(connection)


# Rating --------------------------------------------------------------------------------------------------------------


def _rate(core: Core, provider: Provider) -> bool:
    keys, things = _asked(core, "rate", _RATED)
    rated = dict(zip((thing.key for thing in things), _importances(provider, things), strict=True))

    def job(transaction: Transaction) -> None:
        connection = transaction.connection
        concerned = set()
        asked = turns.unjudged(connection, keys)  # others may have been thought about meanwhile
        for thing in (one for one in things if one.key in asked):
            if turns.rate(connection, thing.key, rated[thing.key]):
                concerned.add(thing.namespace)
            else:  # it may have become a memory since
                rows.rate_promoted(connection, thing.key, rated[thing.key])
        turns.answered(connection, keys, "rate")
        core.active.follow(transaction, concerned)

    if keys:
        core.store.write(job).result()
    return bool(keys)


def _importances(provider: Provider, things: Sequence[Thing]) -> list[float]:
    spoken = [(thing.role, thing.content) for thing in things]
    try:
        found = provider.rate(spoken) if spoken else []
        return [min(1.0, max(0.0, one)) for one in found]
    except Exception as error:
        log.warning("%s could not rate turns, the rules do: %s", provider.name, error)
        return RULES.rate(spoken)


# Comparing -----------------------------------------------------------------------------------------------------------


def _compare(core: Core) -> bool:
    generation = core.embedding.active
    if generation is None:
        return False
    with core.cognition.comparing:
        return _compared(core, generation)


def _compared(core: Core, generation: Generation) -> bool:
    keys, things = _asked(core, "compare", _COMPARED)
    if not keys:
        return False
    made = core.embedding.text_vectors([thing.content for thing in things])
    known = [(thing, given[1]) for thing, given in zip(things, made, strict=True) if given and given[0] is generation]
    repeated = [(thing, same) for thing, vector in known if (same := _same(core, generation, thing, vector))]

    def job(transaction: Transaction) -> None:
        for thing, vector in known:
            key = vectors.text_hash(thing.content)
            vectors.put(transaction.connection, generation.model, key, np.asarray(vector, np.float32))
        _forget(core, transaction, repeated)
        turns.answered(transaction.connection, keys, "compare")

    core.store.write(job).result()
    return True


def _same(core: Core, generation: Generation, thing: Thing, vector: Vector) -> str | None:
    """Return the id of a memory of the same namespace that says what a turn says."""
    passed, floor = core.clock.passed(), generation.embedder.floors.duplicate
    # What stands in a file is no memory yet: the file may change, and what was said would be lost with it.
    memories = Filter(reached=frozenset([thing.namespace]), words={"tier": [L1, L2]})
    mask = core.store.facts.allowed(memories, passed)
    found = generation.index.nearest(vector, _NEIGHBOURS, mask)
    near = found.rows[found.similarities > floor - 0.01].tolist()  # the index is exact to about 0.001
    if not near:
        return None
    with core.store.reading() as connection:
        numbers, matrix = generation.exact(connection, near)
        close = [number for number, cosine in zip(numbers, (matrix @ vector).tolist(), strict=True) if cosine >= floor]
        others = [row for row in rows.by_rows(connection, close).values() if row.id != thing.key]
    return next((row.id for row in others if disagreement(row.content, thing.content) is None), None)


def _forget(core: Core, transaction: Transaction, repeated: Sequence[tuple[Thing, str]]) -> None:
    """Take out turns that repeat a memory which is still there, wherever they are by now; bump that memory."""
    connection = transaction.connection
    present = rows.by_ids(connection, [id for thing, same in repeated for id in (thing.key, same)])
    active = turns.by_keys(connection, [thing.key for thing, _ in repeated])
    concerned = set()
    for thing, same in repeated:
        turn, row, original = active.get(thing.key), present.get(thing.key), present.pop(same, None)
        if original is None or (turn is None and (row is None or row.pinned)):
            continue
        present[same] = original
        place = core.store.namespaces.name(thing.namespace)
        operation = history.begin(connection, KIND, place, core.clock())
        rows.accessed(connection, [(original.row, 1, core.clock())])
        if turn is not None:
            history.record_turn(connection, operation, turn, place)
            turns.remove(connection, [turn])
            turns.count(connection, turn.namespace, f"dropped: {REPEATS}")
            concerned.add(turn.namespace)
        elif row is not None:
            present.pop(row.id)
            history.record(connection, operation, row.id, place, row)
            rows.delete(connection, [row.row])
            transaction.after_commit(lambda number=row.row: core.embedding.removed(number))  # type: ignore[misc]
        reason = f"{REPEATS} ({same[:8]})"
        skip = Skip(thing.namespace, turn.session if turn else "", thing.role, thing.content, reason, core.clock())
        turns.skip(connection, [skip], core.config.tiers.skipped)
    core.active.follow(transaction, concerned)


# Condensing ----------------------------------------------------------------------------------------------------------


def _condense(core: Core) -> bool:
    if core.embedding.active is None and core.embedding.state().state in ("loading", "fetching"):
        return False  # it will be there soon, and the summary better
    keys, things = _asked(core, "condense", _CONDENSED)
    made = [(thing.row, _condensed(core, thing.content)) for thing in things if thing.row and not thing.row.summary]

    def job(transaction: Transaction) -> None:
        summaries = [(row, summary) for row, summary in made if summary]
        rows.put_summaries(transaction.connection, summaries)
        turns.answered(transaction.connection, keys, "condense")

    if keys:
        core.store.write(job).result()
    return bool(keys)


def _condensed(core: Core, content: str) -> str:
    provider, embed = core.cognition.provider, embedder(core)
    try:
        return provider.condense(content, embed)
    except Exception as error:
        log.warning("%s could not condense a memory, the rules do: %s", provider.name, error)
        return RULES.condense(content, embed)


def embedder(core: Core) -> Callable[[Sequence[str]], NDArray[np.float32] | None]:
    """Return what gives the vectors of sentences, as the active model makes them."""

    def embed(texts: Sequence[str]) -> NDArray[np.float32] | None:
        found = core.embedding.text_vectors(texts)
        made = [given[1] for given in found if given is not None]
        return np.stack(made) if made and len(made) == len(texts) else None

    return embed


# The queue -----------------------------------------------------------------------------------------------------------


def _asked(core: Core, job: str, limit: int) -> tuple[list[str], list[Thing]]:
    """Return the next keys of a job, and what they stand for; some may stand for nothing any more."""
    with core.store.reading() as connection:
        keys = turns.asked(connection, job, limit)
        active = turns.by_keys(connection, keys) if keys else {}
        present = rows.by_ids(connection, [key for key in keys if key not in active]) if keys else {}
    things = [Thing(key, turn.namespace, turn.role, turn.content, turn, None) for key, turn in active.items()]
    things += [
        Thing(key, row.namespace, "", row.content, None, row)
        for key, row in present.items()
        if row.turns or job == "condense"
    ]
    return keys, things
