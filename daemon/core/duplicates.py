"""Duplicates: what a text meets in the place where it goes.

Equal normalised text is the same memory; above the threshold of similarity the texts are the same unless they disagree
(`agreement`). Asked in the writer's transaction by add and share, so that two clients at once get one memory.
"""

from typing import NamedTuple

import apsw

from memoryd.client.protocol import NewMemory
from memoryd.daemon.core.agreement import disagreement
from memoryd.daemon.core.checks import content_hash
from memoryd.daemon.core.core import Core
from memoryd.daemon.embedding.generation import Generation
from memoryd.daemon.store import rows, vectors
from memoryd.daemon.store.caller import Caller
from memoryd.daemon.store.filters import ALIVE, alive_at
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.vectors import Vector

NEIGHBOURS = 8  # near-duplicates looked at; those of an agreeing text are among the very nearest

Embedded = tuple[Generation, Vector] | None


class Place(NamedTuple):
    """Where an add goes: the namespace, who may be superseded from there, how duplicates are judged, who adds."""

    name: str
    number: int
    visible: str  # SQL condition on the namespaces the caller reaches
    dedup: bool
    threshold: float | None
    caller: Caller


class Near(NamedTuple):
    """A memory above the threshold of similarity, and why it is not the same (None: it is)."""

    row: Row
    similarity: float
    disagreement: str | None


class Verdict(NamedTuple):
    """What a text meets: the memory that says the same, the highest similarity, those that it contradicts."""

    same: Row | None
    similarity: float | None
    contradicted: list[Row]


def judge(core: Core, connection: apsw.Connection, place: Place, memory: NewMemory, embedded: Embedded) -> Verdict:
    """Compare a memory with those of its place: equal text, then near texts that agree."""
    if not place.dedup:
        return Verdict(None, None, [])
    if same := equal(core, connection, place, memory, content_hash(memory.content)):
        return Verdict(same, 1.0, [])
    near = _near(core, connection, place, memory, embedded) if embedded else []
    agreeing = next((neighbour for neighbour in near if neighbour.disagreement is None), None)
    if agreeing is not None:
        return Verdict(agreeing.row, agreeing.similarity, [])
    return Verdict(None, near[0].similarity if near else None, [neighbour.row for neighbour in near])


def equal(core: Core, connection: apsw.Connection, place: Place, memory: NewMemory, key: bytes) -> Row | None:
    """Return the memory of the place that has the same normalised text and type."""
    found = rows.select(
        connection,
        # By hash, which is nearly unique; the plus keeps the planner from walking through the whole namespace.
        f"m.content_hash = ? AND m.namespace = ? AND +m.type = ? AND +m.tier <> 'documents' AND {ALIVE} LIMIT 1",
        (key, place.number, memory.type, *alive_at(core.clock.passed())),
    )
    return found[0] if found else None


def _near(
    core: Core, connection: apsw.Connection, place: Place, memory: NewMemory, embedded: tuple[Generation, Vector]
) -> list[Near]:
    """Return the memories above the threshold, nearest first, judged for disagreement."""
    generation, vector = embedded
    threshold = generation.embedder.floors.duplicate if place.threshold is None else place.threshold
    found = generation.index.nearest_like(vector, NEIGHBOURS, place.number, memory.type)
    candidates = found.rows[found.similarities > threshold - 0.01].tolist()  # the index is exact to about 0.001
    if not candidates:
        return []
    numbers, matrix = vectors.of_rows(connection, generation.model, candidates, ALIVE, alive_at(core.clock.passed()))
    if not numbers:
        return []
    exact = dict(zip(numbers, (matrix @ vector).tolist(), strict=True))
    known = rows.by_rows(connection, [number for number in numbers if exact[number] >= threshold])
    near = [Near(row, exact[row.row], disagreement(row.content, memory.content)) for row in known.values()]
    return sorted(near, key=lambda neighbour: -neighbour.similarity)
