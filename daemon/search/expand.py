"""Stage: the graph. Members of the best hits' topics, and of topics that were often retrieved together with them.

One scale for all: a memory that the graph brings has the score that its own cosine and words give it. What belongs to a
topic that co-occurred with a hit's gets a share of that hit's score on top, growing with how often they were retrieved
together, and never comes near the hit itself. So the graph adds recall and costs none; only what was retrieved together
three times and more is sure of the last place among the hits.
"""

from typing import NamedTuple

import numpy as np

from memoryd.daemon.graph import nodes as graph
from memoryd.daemon.search.fuse import order, score_of
from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.search.traces import Candidate
from memoryd.daemon.store.facts import passing
from memoryd.daemon.store.store import Connection
from memoryd.daemon.store.vectors import Vector

ANCHORS = 5  # hits whose topics are looked at
NEIGHBOURS = 4  # topics looked at for each of them
MEMBERS = 2  # of each topic
LEAST_WEIGHT = 2.0  # retrievals in which two topics met, below which they do not count as related
SURE_WEIGHT = 3.0  # from here on the best neighbour is among the hits, in the last place if its score gives no better
_LIFT = 0.5
_BELOW = 0.95


class Reached(NamedTuple):
    """A topic: the score of the hit that led there and how often the two were retrieved together (0: the hit's own)."""

    anchor: float
    weight: float


def expand(retrieval: Retrieval, sources: Sources) -> None:
    """Add what the graph brings and rank anew."""
    generation, vector = retrieval.generation, retrieval.vector
    if not (retrieval.call.graph and retrieval.profile.graph) or generation is None:
        return
    anchors = [candidate for candidate in retrieval.ranked[:ANCHORS] if candidate.row > 0]
    if not anchors or not isinstance(vector, np.ndarray):
        return
    with sources.store.reading() as connection:
        topics = _topics(connection, anchors, retrieval.chosen.reached)
        if not topics:
            return
        found = {
            row: topic
            for topic, rows in graph.members(connection, topics).items()
            for row in _best(retrieval, vector, rows)
        }
        _score(retrieval, connection, found, topics, vector)
    retrieval.ranked = sorted(retrieval.alive(), key=order)
    _mark_sure(retrieval, found, topics)
    retrieval.notes.update(topics=len(topics), members=len(found))


def _topics(connection: Connection, anchors: list[Candidate], spaces: frozenset[int] | None) -> dict[int, Reached]:
    """Return the topics of the anchors and those that co-occurred with them, in the reached namespaces."""
    scores = {candidate.row: candidate.score for candidate in anchors}
    own: dict[int, Reached] = {}
    for row, node in graph.nodes_of(connection, scores).items():
        own[node] = Reached(max(scores[row], own[node].anchor if node in own else 0.0), 0.0)
    topics = dict(own)
    for node, others in graph.neighbours(connection, own, NEIGHBOURS, spaces).items():
        for other, weight in others:
            reached = Reached(own[node].anchor, weight)
            if other not in own and weight >= LEAST_WEIGHT and _lift(reached) > _lift(topics.get(other)):
                topics[other] = reached
    return topics


def _lift(reached: Reached | None) -> float:
    """Return what a topic adds to its members' scores: the hit's score x weight / (weight + 2) / 2."""
    return 0.0 if reached is None else _LIFT * reached.anchor * reached.weight / (reached.weight + 2.0)


def _best(retrieval: Retrieval, vector: Vector, rows: list[int]) -> list[int]:
    """Return the members most similar to the query among those that the filters leave."""
    assert retrieval.generation is not None
    numbers = np.array(rows, np.int64)
    near = retrieval.generation.index.similarities(vector, numbers[passing(retrieval.allowed, numbers)])
    return [row for row, _ in sorted(near, key=lambda pair: (-pair[1], pair[0]))[:MEMBERS]]


def _score(
    retrieval: Retrieval, connection: Connection, found: dict[int, int], topics: dict[int, Reached], vector: Vector
) -> None:
    assert retrieval.generation is not None
    new = [row for row in found if row not in retrieval.candidates]
    known, matrix = retrieval.generation.exact(connection, new)
    for row, similarity in zip(known, (matrix @ vector).tolist() if known else [], strict=True):
        candidate = retrieval.candidate(row, "graph")
        candidate.similarity = similarity
        candidate.bm25_rank, candidate.bm25 = retrieval.words.get(row, (None, None))
        candidate.score = 0.0 if retrieval.method == "rrf" else score_of(candidate, retrieval)
    for row, topic in found.items():
        lift = _lift(topics[topic])
        if row in retrieval.candidates and lift:
            candidate = retrieval.candidate(row, "graph")
            candidate.score = max(candidate.score, min(_BELOW * topics[topic].anchor, candidate.score + lift))


def _mark_sure(retrieval: Retrieval, found: dict[int, int], topics: dict[int, Reached]) -> None:
    """Mark the best neighbour that was often retrieved together with a hit."""
    for candidate in retrieval.ranked:
        if candidate.row in found and topics[found[candidate.row]].weight >= SURE_WEIGHT:
            candidate.sure = True
            return
