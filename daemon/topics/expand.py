"""Stage: add candidates from the graph: members of the best hits' nodes, and of nodes often retrieved with these.

They get the score of their own cosine and words, and no other score changes. (Raising the scores of memories that had
been retrieved together with a hit cost 6 points of nDCG@10 after 77 searches, and gained nothing.)
"""

import numpy as np

from memoryd.daemon.search.candidates import cosines
from memoryd.daemon.search.fuse import order, score_of
from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.search.traces import Candidate
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.vectors import Vector
from memoryd.daemon.topics.tables import graph

ANCHORS = 5  # hits whose nodes are used
NEIGHBOURS = 4  # neighbouring nodes of each
MEMBERS = 2  # of each node
LEAST_WEIGHT = 2.0  # searches that returned two nodes together, for them to count as related


def expand(retrieval: Retrieval, sources: Sources) -> None:
    """Add the candidates, and sort again."""
    generation, vector = retrieval.generation, retrieval.vector
    if not (retrieval.call.options.graph and retrieval.profile.graph) or generation is None:
        return
    anchors = [candidate.row for candidate in retrieval.ranked[:ANCHORS] if candidate.row > 0]
    if not anchors or not isinstance(vector, np.ndarray):
        return
    with sources.store.reading() as connection:
        nodes = _find_nodes(connection, anchors, retrieval.chosen.reached)
        members = graph.read_members(connection, nodes) if nodes else {}
        found = [row for rows in members.values() for row in _find_best(retrieval, vector, rows)]
        new = _add(retrieval, connection, found, vector)
    if new:
        retrieval.ranked = sorted(retrieval.list_alive(), key=order)
    if nodes:
        retrieval.notes.update(topics=len(nodes), members=len(found), new=len(new))


def _find_nodes(connection: Connection, anchors: list[int], spaces: frozenset[int] | None) -> list[int]:
    """Return the nodes of the anchors and those that co-occurred with them, in the reached namespaces."""
    own = list(dict.fromkeys(graph.find_nodes(connection, anchors).values()))
    related = graph.neighbours(connection, own, NEIGHBOURS, spaces) if own else {}
    others = (node for near in related.values() for node, weight in near if weight >= LEAST_WEIGHT)
    return list(dict.fromkeys([*own, *others]))


def _find_best(retrieval: Retrieval, vector: Vector, rows: list[int]) -> list[int]:
    """Return the members most similar to the query among those that pass the filters."""
    assert retrieval.generation is not None
    numbers = np.array(rows, np.int64)
    near = retrieval.generation.index.compute_similarities(vector, numbers[retrieval.allowed.select(numbers)])
    return [row for row, _ in sorted(near, key=lambda pair: (-pair[1], pair[0]))[:MEMBERS]]


def _add(retrieval: Retrieval, connection: Connection, found: list[int], vector: Vector) -> list[Candidate]:
    """Add rows as candidates with their scores; return the new ones."""
    assert retrieval.generation is not None
    rows = [row for row in found if row not in retrieval.candidates]
    similarities = cosines(retrieval.generation.read_exact(connection, rows), vector)
    new = [retrieval.ensure_candidate(row, "graph") for row in similarities]
    for candidate in new:
        candidate.similarity = similarities[candidate.row]
        candidate.bm25_rank, candidate.bm25 = retrieval.words.get(candidate.row, (None, None))
        candidate.score = 0.0 if retrieval.method == "rrf" else score_of(candidate, retrieval)
    return new
