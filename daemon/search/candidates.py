"""Stage 2: candidates from full text (BM25) and from the vectors, each arm filtered alike.

Each row of one arm gets its score of the other as well, so that fusion compares like with like: the exact cosine
always, BM25 as far as full text is read (`_WORDS_DEPTH` times deeper than the rows that it makes candidates).
"""

import logging
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress

from memoryd.daemon.embedding.generation import Generation
from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.store import fulltext
from memoryd.daemon.store.index import RESCORE
from memoryd.daemon.store.store import Damaged, Interrupted
from memoryd.daemon.store.vectors import Vector

_WORDS_DEPTH = 4
_EXACT = 40  # of the nearest: the ten best by their codes' order lie well within

# For the query's vector before full text is read, which takes a fraction of that: beside each other the two are slower
# than one after the other, unless there are processors to spare. When embedding takes long, words are read meanwhile.
_PATIENCE_S = 0.02

log = logging.getLogger(__name__)


def candidates(retrieval: Retrieval, sources: Sources) -> None:
    """Fill the candidates; a slow or failed arm is left out and named in `degraded`."""
    began = time.perf_counter()
    _wait_a_moment(retrieval)
    waited_ms, began = _ms_since(began), time.perf_counter()
    _words(retrieval, sources)
    retrieval.notes["fulltext_ms"], began = _ms_since(began), time.perf_counter()
    retrieval.vector = vector = _vector(retrieval, sources)
    retrieval.notes["embed_wait_ms"] = round(waited_ms + _ms_since(began), 3)
    if vector is not None and retrieval.generation is not None:
        began = time.perf_counter()
        _meaning(retrieval, sources, retrieval.generation, vector)
        retrieval.notes["vector_ms"] = _ms_since(began)
    for candidate in retrieval.candidates.values():
        candidate.bm25_rank, candidate.bm25 = retrieval.words.get(candidate.row, (None, None))


def _wait_a_moment(retrieval: Retrieval) -> None:
    """Wait for the query's vector, but not for one that takes long; who needs it meets its failure."""
    if isinstance(retrieval.vector, Future):
        remaining_s = retrieval.remaining_s()
        patience_s = _PATIENCE_S if remaining_s is None else min(_PATIENCE_S, remaining_s / 2)
        with suppress(Exception):
            retrieval.vector = retrieval.vector.result(patience_s)


def _words(retrieval: Retrieval, sources: Sources) -> None:
    try:
        postings = sources.store.postings
        with sources.store.reading() as connection, fulltext.stopping_at(connection, retrieval.deadline):
            question = fulltext.ask(
                connection, postings, retrieval.call.query, sources.config.max_postings, retrieval.within
            )
    except Interrupted:
        retrieval.degrade("fulltext")
        return
    except Damaged as error:
        log.error("full text is damaged: %s", error)
        retrieval.degrade("fulltext")
        sources.store.repair_soon()
        return
    retrieval.question = question
    retrieval.notes["words"] = question.asked
    if question.left_out:
        retrieval.notes["too_common"] = question.left_out
    found = fulltext.rank(postings, question, retrieval.allowed, _WORDS_DEPTH * retrieval.depth)
    retrieval.words = {row: (rank, score) for rank, (row, score) in enumerate(found, start=1)}
    for row, _ in found[: retrieval.depth]:
        retrieval.candidate(row, "words")
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
    """Make candidates of the nearest rows that pass the filters, and give every candidate its cosine.

    It is exact for those that can become hits; the others keep that of the index, which is exact to about 0.001.
    """
    found = generation.index.nearest(vector, max(RESCORE, retrieval.depth + RESCORE // 4), retrieval.allowed)
    coarse: dict[int, float] = dict(zip(found.rows.tolist(), found.similarities.tolist(), strict=True))
    first = dict.fromkeys(list(coarse)[: max(_EXACT, 3 * retrieval.call.limit)])
    with sources.store.reading() as connection:
        rows, matrix = generation.exact(connection, list({**first, **retrieval.candidates}))
    exact: dict[int, float] = dict(zip(rows, (matrix @ vector).tolist(), strict=True)) if rows else {}
    gone = first.keys() - exact.keys()
    near = {row: exact.get(row, similarity) for row, similarity in coarse.items() if row not in gone}
    ranked = sorted(near, key=lambda row: -near[row])
    for rank, row in enumerate(ranked[: retrieval.depth], start=1):
        retrieval.candidate(row, "meaning").similarity_rank = rank
    for candidate in retrieval.candidates.values():
        candidate.similarity = exact.get(candidate.row, near.get(candidate.row))
    retrieval.notes["vectors"] = len(near)


def _ms_since(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 3)
