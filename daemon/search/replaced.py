"""Stage: find memories also by the texts of the memories that they superseded.

A question often uses the words of the former version. The superseded memory is never a hit itself: its BM25 and cosine
count for its successor, which lists it in `formers`.
"""

import numpy as np

from memoryd.daemon.arrays import lexical
from memoryd.daemon.arrays.columns import Mask
from memoryd.daemon.search.candidates import cosines
from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.search.traces import Candidate, Origin
from memoryd.daemon.store import rows, successors
from memoryd.daemon.store.connection import Connection

_MAX_FOUND = 10  # per arm


def replaced(retrieval: Retrieval, sources: Sources) -> None:
    """Raise the cosine and BM25 of successors to those of the memories that they superseded."""
    if not retrieval.profile.cues:
        return
    mask = sources.arrays.columns.find_superseded(retrieval.chosen.reached, retrieval.passed)
    if mask is None:
        return
    with sources.store.reading() as connection:
        formers = _find(retrieval, connection, sources, mask)
        successor_of = _follow(connection, list(formers), retrieval.allowed)
        records = rows.read_rows(connection, list(successor_of))
        similarities: dict[int, float] = {}
        if retrieval.generation is not None and isinstance(retrieval.vector, np.ndarray):
            new = sorted(set(successor_of.values()) - retrieval.candidates.keys())
            similarities = cosines(retrieval.generation.read_exact(connection, new), retrieval.vector)
    for row, successor in successor_of.items():
        former = formers[row]
        former.record = records.get(row)
        origin: Origin = "meaning" if former.bm25 is None else "words"
        is_new = successor not in retrieval.candidates
        candidate = retrieval.ensure_candidate(successor, origin)
        if is_new:
            candidate.similarity = similarities.get(successor)
        candidate.similarity = _best(candidate.similarity, former.similarity)
        candidate.bm25 = _best(candidate.bm25, former.bm25)
        candidate.formers += (former,)
    retrieval.notes["formers"] = len(successor_of)


def _find(retrieval: Retrieval, connection: Connection, sources: Sources, mask: Mask) -> dict[int, Candidate]:
    """Return the superseded memories that fit the question best, by row."""
    found: dict[int, Candidate] = {}
    if retrieval.question is not None:
        for row, bm25 in lexical.rank(sources.arrays.postings, retrieval.question, mask, _MAX_FOUND):
            found[row] = Candidate(row, bm25=bm25)
    generation, vector = retrieval.generation, retrieval.vector
    if generation is not None and isinstance(vector, np.ndarray):
        near = generation.index.find_nearest(vector, _MAX_FOUND, mask).rows.tolist()
        for row, similarity in cosines(generation.read_exact(connection, sorted({*near, *found})), vector).items():
            found.setdefault(row, Candidate(row)).similarity = similarity
    return found


def _follow(connection: Connection, numbers: list[int], allowed: Mask) -> dict[int, int]:
    """Return by row the nearest successor within the mask; rows without one are left out."""
    nearest: dict[int, int | None] = {}
    unknown = set(numbers)
    while unknown:
        pairs = dict(successors.find_nearest(connection, sorted(unknown)))
        nearest |= {row: pairs.get(row) for row in unknown}
        unknown = {by for by in nearest.values() if by is not None} - nearest.keys()
    ends: dict[int, int] = {}
    for row in numbers:
        at, passed = nearest[row], {row}
        while at is not None and at not in passed and not allowed.select(np.array([at], np.int64))[0]:
            passed.add(at)
            at = nearest[at]
        if at is not None and at not in passed:
            ends[row] = at
    return ends


def _best(one: float | None, other: float | None) -> float | None:
    return max((value for value in (one, other) if value is not None), default=None)
