"""What tests of the graph share: memories of L2 with given vectors, runs of maintenance, what the graph is."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import Step
from memoryd.daemon.store import vectors
from memoryd.daemon.store.vectors import Vector
from memoryd.daemon.topics import clustering
from memoryd.daemon.topics.writes import apply
from workbench import LIMIT_S, insert

DIMENSIONS = 64  # of the words' embedder


def near(direction: int, cosine: float = 1.0, turn: int = 63) -> Vector:
    """Return a unit vector at a cosine to axis `direction`, the rest along axis `turn`."""
    vector = np.zeros(DIMENSIONS, np.float32)
    vector[direction], vector[turn] = cosine, (1 - cosine**2) ** 0.5
    return vector


def remember(core: Core, texts: Sequence[str], namespace: str = "", given: Sequence[Vector] | None = None) -> list[int]:
    """Put memories into L2, with given vectors or the embedder's; return their row numbers."""
    generation = core.embedding.active
    assert generation is not None
    made = generation.embedder.embed_texts(texts) if given is None else given

    def job(transaction: Any) -> None:
        for text, vector in zip(texts, made, strict=True):
            vectors.put(transaction.connection, generation.model, vectors.text_hash(text), vector)

    core.store.write(job).result(LIMIT_S)
    return [insert(core.store, text, namespace, tier="L2").row for text in texts]


def steps(core: Core) -> list[Step]:
    """Return what maintenance would do."""
    return list(clustering.plan(core, core.clock()))


def carry_out(core: Core, planned: Iterable[Step], size: int = 7) -> dict[str, int]:
    """Write steps in slices; return the counts."""
    waiting = list(planned)
    counts: dict[str, int] = {}
    for start in range(0, len(waiting), size):
        part = waiting[start : start + size]
        done = core.store.write(lambda transaction, part=part: apply(core, transaction, part, 0)).result(LIMIT_S)
        counts = {name: counts.get(name, 0) + done.get(name, 0) for name in {**counts, **done}}
    return counts


def maintain(core: Core) -> dict[str, int]:
    """Run maintenance once."""
    return carry_out(core, steps(core))


def groups(core: Core, namespace: str | None = None) -> list[list[int]]:
    """Return the members of each cluster, by row number."""
    sql = "SELECT node, memory FROM members JOIN nodes ON id = node"
    if namespace is not None:
        sql += f" WHERE namespace = {core.store.namespaces.find_number(namespace)}"
    found: dict[int, list[int]] = {}
    with core.store.reading() as connection:
        for node, memory in connection.execute(f"{sql} ORDER BY memory"):
            found.setdefault(node, []).append(memory)
    return sorted(found.values())


def query(core: Core, sql: str, *values: Any) -> list[Any]:
    """Return rows of the database."""
    with core.store.reading() as connection:
        return connection.execute(sql, values).fetchall()


def graph(core: Core) -> list[Any]:
    """Return everything that the graph is, times aside."""
    return [
        query(core, "SELECT id, namespace, kind, label, topic, size, settled, centroid FROM nodes ORDER BY id"),
        query(core, "SELECT memory, node FROM members ORDER BY 1"),
        query(core, "SELECT origin, target, kind, weight FROM edges ORDER BY 1, 2, 3"),
        query(core, "SELECT id, namespace, label FROM topics ORDER BY 1"),
    ]


def check(core: Core, most: int = 20) -> None:
    """Assert what holds after maintenance, whatever was stored."""
    assert query(core, "SELECT count(*) FROM backlog") == [(0,)]
    l2 = query(core, "SELECT row FROM memories WHERE tier = 'L2' ORDER BY row")
    assert query(core, "SELECT memory FROM members ORDER BY memory") == l2
    counted = query(core, "SELECT node, count(*) FROM members GROUP BY node ORDER BY node")
    assert query(core, "SELECT id, size FROM nodes WHERE kind = 'cluster' ORDER BY id") == counted
    assert all(1 <= size <= most for _, size in counted)
    crossing = (
        "SELECT 1 FROM members m JOIN nodes n ON n.id = m.node JOIN memories r ON r.row = m.memory"
        " WHERE n.namespace <> r.namespace"
    )
    assert query(core, crossing) == []
    between = (
        "SELECT 1 FROM edges e JOIN nodes a ON a.id = e.origin JOIN nodes b ON b.id = e.target"
        " WHERE e.kind <> 'co_occurs' AND a.namespace <> b.namespace"
    )
    assert query(core, between) == []
    assert query(core, "SELECT 1 FROM edges WHERE kind = 'co_occurs' AND origin >= target") == []
    assert query(core, "PRAGMA foreign_key_check") == []
    for blob, rows in _centroids(core):
        assert np.allclose(np.frombuffer(blob, np.float32), rows.mean(axis=0), atol=1e-4)


def _centroids(core: Core) -> list[tuple[bytes, Vector]]:
    generation = core.embedding.active
    assert generation is not None
    found: dict[int, tuple[bytes, list[int]]] = {}
    for node, blob, memory in query(core, "SELECT id, centroid, memory FROM nodes JOIN members ON node = id"):
        found.setdefault(node, (blob, []))[1].append(memory)
    with core.store.reading() as connection:
        return [(blob, vectors.read_exact(connection, generation.model, rows)[1]) for blob, rows in found.values()]
