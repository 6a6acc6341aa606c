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

_WORDS_DEPTH = 10

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
            found = fulltext.search(
                connection, match, retrieval.chosen, retrieval.now, _WORDS_DEPTH * retrieval.depth, retrieval.deadline
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
    rows = sources.store.chosen_rows(retrieval.chosen, retrieval.now) if retrieval.chosen.narrow else None
    exact = _nearest(retrieval, sources, generation, vector, rows)
    for rank, (row, similarity) in enumerate(sorted(exact.items(), key=lambda item: -item[1])[: retrieval.depth], 1):
        candidate = retrieval.candidate(row)
        candidate.similarity, candidate.similarity_rank = similarity, rank
    only_words = [row for row, candidate in retrieval.candidates.items() if candidate.similarity is None]
    known = {row: exact[row] for row in only_words if row in exact}
    unknown = [row for row in only_words if row not in exact]
    for row, similarity in {**known, **_exact(retrieval, sources, generation, vector, unknown)}.items():
        retrieval.candidates[row].similarity = similarity
    retrieval.notes["vectors"] = len(exact)


def _nearest(
    retrieval: Retrieval, sources: Sources, generation: Generation, vector: Vector, rows: NDArray[np.int64] | None
) -> dict[int, float]:
    """Return the exact cosines of the nearest rows, enough of them alive if there are."""
    wanted = max(RESCORE, retrieval.depth + RESCORE // 2)
    found = generation.index.nearest(vector, wanted, retrieval.chosen.reached, rows=rows)
    exact = _exact(retrieval, sources, generation, vector, found.rows.tolist())
    if rows is None and len(exact) < retrieval.depth and len(found.rows) == wanted:
        # Superseded and expired rows took the places: look among those alive only.
        rows = sources.store.chosen_rows(retrieval.chosen, retrieval.now)
        return _nearest(retrieval, sources, generation, vector, rows)
    return exact


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
