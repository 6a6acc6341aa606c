"""Stage 2: candidates from full text (BM25) and from the vectors, each arm filtered alike.

Each row of one arm gets its score of the other as well, so that fusion compares like with like: the exact cosine
always, BM25 as far as full text is read (`_WORDS_DEPTH` times deeper than the rows that it makes candidates).
"""

import logging
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError

import numpy as np
from numpy.typing import NDArray

from memoryd.daemon.embedding.generation import Generation
from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.store import fulltext, vectors
from memoryd.daemon.store.index import RESCORE
from memoryd.daemon.store.store import Damaged, Interrupted
from memoryd.daemon.store.vectors import Vector

_WORDS_DEPTH = 4

log = logging.getLogger(__name__)


def candidates(retrieval: Retrieval, sources: Sources) -> None:
    """Fill the candidates; a slow or failed arm is left out and named in `degraded`."""
    began = time.perf_counter()
    _words(retrieval, sources)
    retrieval.notes["fulltext_ms"] = _ms_since(began)
    began = time.perf_counter()
    retrieval.vector = vector = _vector(retrieval, sources)
    retrieval.notes["embed_wait_ms"] = _ms_since(began)
    if vector is not None and retrieval.generation is not None:
        began = time.perf_counter()
        _meaning(retrieval, sources, retrieval.generation, vector)
        retrieval.notes["vector_ms"] = _ms_since(began)
    for candidate in retrieval.candidates.values():
        candidate.bm25_rank, candidate.bm25 = retrieval.words.get(candidate.row, (None, None))


def _words(retrieval: Retrieval, sources: Sources) -> None:
    try:
        with sources.store.reading() as connection:
            match = fulltext.build_match(connection, retrieval.call.query, sources.config.max_postings)
            if match is None:
                return
            retrieval.notes["words"] = match.asked
            if match.left_out:
                retrieval.notes["too_common"] = match.left_out
            depth = retrieval.depth
            found = fulltext.search(
                connection,
                match,
                retrieval.chosen,
                retrieval.now,
                limit=_WORDS_DEPTH * depth,
                deadline=retrieval.deadline,
                enough=depth,
            )
    except Interrupted:
        retrieval.degrade("fulltext")
        return
    except Damaged as error:
        log.error("full text is damaged: %s", error)
        retrieval.degrade("fulltext")
        sources.store.repair_soon()
        return
    retrieval.words = {row: (rank, score) for rank, (row, score) in enumerate(found, start=1)}
    for row, _ in found[: retrieval.depth]:
        retrieval.candidate(row)
    retrieval.notes["fulltext"] = len(found)


def _vector(retrieval: Retrieval, sources: Sources) -> Vector | None:
    """Return the query's vector, waiting for it no longer than the deadline allows."""
    if not isinstance(retrieval.vector, Future):
        return retrieval.vector
    remaining_s = retrieval.remaining_s()
    try:
        return retrieval.vector.result(sources.config.embed_limit_s if remaining_s is None else remaining_s)
    except FutureTimeoutError:
        retrieval.vector.cancel()  # if it has not begun nobody needs it
        retrieval.notes["embed"] = "too slow"
    except Exception as error:
        log.warning("embedding the query failed: %s", error)
        retrieval.notes["embed"] = str(error)
    retrieval.degrade("vector")
    return None


def _meaning(retrieval: Retrieval, sources: Sources, generation: Generation, vector: Vector) -> None:
    """Make candidates of the nearest rows, and give every candidate its exact cosine."""
    rows = sources.store.chosen_rows(retrieval.chosen, retrieval.now) if retrieval.chosen.narrow else None
    nearest, exact = _nearest(retrieval, sources, generation, vector, rows)
    for rank, row in enumerate(nearest[: retrieval.depth], start=1):
        retrieval.candidate(row).similarity_rank = rank
    for candidate in retrieval.candidates.values():
        candidate.similarity = exact.get(candidate.row)
    retrieval.notes["vectors"] = len(nearest)


def _nearest(
    retrieval: Retrieval, sources: Sources, generation: Generation, vector: Vector, rows: NDArray[np.int64] | None
) -> tuple[list[int], dict[int, float]]:
    """Return the nearest rows, and the exact cosines of them and of the candidates so far."""
    wanted = max(RESCORE, retrieval.depth + RESCORE // 2)
    found = generation.index.nearest(vector, wanted, retrieval.chosen.reached, rows=rows).rows.tolist()
    exact = _exact(retrieval, sources, generation, vector, [*found, *retrieval.candidates])
    nearest = sorted((row for row in found if row in exact), key=lambda row: -exact[row])
    if rows is None and len(nearest) < retrieval.depth and len(found) == wanted:
        # Superseded and expired rows took the places: look among those alive only.
        rows = sources.store.chosen_rows(retrieval.chosen, retrieval.now)
        return _nearest(retrieval, sources, generation, vector, rows)
    return nearest, exact


def _exact(
    retrieval: Retrieval, sources: Sources, generation: Generation, vector: Vector, rows: list[int]
) -> dict[int, float]:
    if not rows:
        return {}
    where, values = retrieval.chosen.where(retrieval.now)
    with sources.store.reading() as connection:
        numbers, matrix = vectors.of_rows(connection, generation.model, rows, where, values)
    return dict(zip(numbers, (matrix @ vector).tolist(), strict=True)) if numbers else {}


def _ms_since(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 3)
