"""What tests of the graph share: memories of L2 with given vectors, making the graph anew, what it is."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from memoryd.daemon.core.core import Core
from memoryd.daemon.store import vectors
from memoryd.daemon.store.vectors import Vector
from memoryd.daemon.topics import rebuild
from memoryd.daemon.topics.tables.graph import note_searches
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


def make_graph(core: Core) -> dict[str, int]:
    """Make the graph of all namespaces anew; return the counts."""
    counts: dict[str, int] = {}
    for step in rebuild.plan(core, core.clock()):
        for name, number in rebuild.run(core, step, lambda: None).items():
            counts[name] = counts.get(name, 0) + number
    return {name: number for name, number in counts.items() if number}


def search_together(core: Core, *rows: int, times: int = 1) -> None:
    """Note that searches returned some rows together."""
    core.store.write(lambda transaction: note_searches(transaction.connection, [rows] * times)).result(LIMIT_S)


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
    """Return everything that the graph is."""
    return [
        query(core, "SELECT n.name, n.namespace, kind, size, n.label, named_by, asked, texts, t.name, t.label"
                    " FROM nodes n LEFT JOIN topics t ON t.id = topic ORDER BY 1"),
        query(core, "SELECT memory, name FROM members JOIN nodes ON id = node ORDER BY 1"),
        query(core, "SELECT a.name, b.name, e.kind, weight FROM edges e JOIN nodes a ON a.id = origin"
                    " JOIN nodes b ON b.id = target ORDER BY 1, 2, 3"),
    ]  # fmt: skip


def check(core: Core, most: int = 20) -> None:
    """Assert what holds once the graph is made, whatever was stored."""
    l2 = query(core, "SELECT row FROM memories WHERE tier = 'L2' ORDER BY row")
    assert query(core, "SELECT memory FROM members ORDER BY memory") == l2
    counted = query(core, "SELECT node, count(*) FROM members GROUP BY node ORDER BY node")
    assert query(core, "SELECT id, size FROM nodes WHERE kind = 'cluster' ORDER BY id") == counted
    assert all(1 <= size <= most for _, size in counted)
    medoids = (
        "SELECT name FROM nodes n WHERE kind = 'cluster' AND NOT EXISTS (SELECT 1 FROM members p"
        " JOIN memories m ON m.row = p.memory WHERE p.node = n.id AND m.id = n.name AND m.namespace = n.namespace)"
    )
    assert query(core, medoids) == []
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
    assert query(core, "SELECT 1 FROM nodes n JOIN topics t ON t.id = topic WHERE n.namespace <> t.namespace") == []
    assert query(core, "PRAGMA foreign_key_check") == []
