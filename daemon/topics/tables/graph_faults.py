"""What can be wrong with the graph on disk, and starting it again. All of it is derived: nothing is lost with it."""

from typing import Any

import apsw
import numpy as np

from memoryd.daemon.store.schema import DERIVED
from memoryd.daemon.store.tiers import L2
from memoryd.daemon.topics.tables import graph

_CHECKED = 256  # nodes whose centroid is rebuilt

_FAULTS = {
    "memories of L2 are neither in a node nor waiting for one": (
        f"memories m WHERE m.tier = {L2!r} AND NOT EXISTS (SELECT 1 FROM members WHERE memory = m.row)"
        " AND NOT EXISTS (SELECT 1 FROM backlog WHERE memory = m.row)"
    ),
    "members wait for a node as well": "members JOIN backlog USING (memory)",
    "members or waiting ones are not of L2": (
        "(SELECT memory FROM members UNION ALL SELECT memory FROM backlog) g"
        f" JOIN memories m ON m.row = g.memory WHERE m.tier <> {L2!r}"
    ),
    "nodes, members, edges, topics or waiting ones lead nowhere": (
        f'(SELECT 1 FROM pragma_foreign_key_check WHERE "table" IN ({", ".join(map(repr, DERIVED))}))'
    ),
    "members are in a node of another namespace": (
        "members p JOIN memories m ON m.row = p.memory JOIN nodes n ON n.id = p.node WHERE n.namespace <> m.namespace"
    ),
    "nodes have other members than their size says": (
        "nodes n WHERE n.settled AND n.kind = 'cluster' AND n.size <> (SELECT count(*) FROM members WHERE node = n.id)"
    ),
    "edges of co-occurrence are the wrong way round": "edges WHERE kind = 'co_occurs' AND origin >= target",
}


def find_problems(connection: apsw.Connection) -> list[str]:
    """Return what is wrong with the graph: each kind of fault, how often."""
    counts: dict[str, Any] = {
        what: connection.execute(f"SELECT count(*) FROM {where}").get for what, where in _FAULTS.items()
    }
    counts["centroids are not the mean of their members"] = _count_off_centre(connection)
    return [f"graph: {number} {what}" for what, number in counts.items() if number]


def _count_off_centre(connection: apsw.Connection) -> int:
    """Return how many of some settled nodes, spread over all, have a centroid that is not the mean of their members."""
    chosen: list[Any] = connection.execute(
        "SELECT id, model FROM nodes WHERE settled AND kind = 'cluster'"
        " AND id % max(1, (SELECT count(*) FROM nodes) / ?1) = 0 LIMIT ?1",
        (_CHECKED,),
    ).fetchall()
    return sum(not _is_centred(connection, node, model) for node, model in chosen)


def _is_centred(connection: apsw.Connection, node: int, model: int) -> bool:
    rows = graph.read_members(connection, [node]).get(node, [])
    known, matrix = graph.read_vectors(connection, model, rows)
    _, means = graph.read_centroids(connection, [node])
    if not rows or len(known) != len(rows):
        return True  # unknown now: vectors are being made
    return matrix.shape[1] == means.shape[1] and bool(np.allclose(matrix.mean(axis=0), means[0], atol=1e-3))


def clear(connection: apsw.Connection) -> None:
    """Delete the graph; all of L2 waits for a node."""
    for table in DERIVED:
        connection.execute(f"DELETE FROM {table}")
    connection.execute(f"INSERT INTO backlog SELECT row FROM memories WHERE tier = {L2!r}")
