"""Stage 2: candidates from full text (BM25) and from the vectors, each arm filtered alike.

Each row of one arm gets its score of the other as well, so that fusion compares like with like: the exact cosine
always, of its text within its context or alone, whichever is nearer; BM25 as far as full text is read (`_WORDS_DEPTH`
times deeper than the rows that it makes candidates).
"""

import logging
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from datetime import UTC, datetime

import numpy as np

from memoryd.client.errors import StorageFailed
from memoryd.daemon.embedding.generation import Generation
from memoryd.daemon.search.hints import read_hints
from memoryd.daemon.search.retrieval import Near, Retrieval, Sources
from memoryd.daemon.search.shared import ask
from memoryd.daemon.store import fulltext, vectors
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.index import RESCORE
from memoryd.daemon.store.store import Damaged, Interrupted
from memoryd.daemon.store.vectors import Vector

_WORDS_DEPTH = 4

Stored = tuple[list[int], Vector]  # rows and their vectors, shape (rows, dimensions)
_NONE: Stored = ([], np.zeros((0, 0), np.float32))

log = logging.getLogger(__name__)


def candidates(retrieval: Retrieval, sources: Sources) -> None:
    """Fill the candidates; a slow or failed arm is left out and named in `degraded`."""
    _find_nearest_when_embedded(retrieval, sources)
    began = time.perf_counter()
    if retrieval.call.mode != "dense" and retrieval.call.query.strip():
        _add_lexical(retrieval, sources)
    retrieval.notes["fulltext_ms"] = _elapsed_ms(began)
    # Read while the query is being embedded, for later stages.
    retrieval.hints = read_hints(retrieval.call.query, datetime.fromtimestamp(retrieval.now, UTC))
    if generation := retrieval.generation:
        try:
            _add_vectors(retrieval, sources, generation)
        except StorageFailed:  # the store has logged it, and repairs it
            retrieval.degrade("vector")
    else:
        retrieval.vector = vector = _await_vector(retrieval, sources)
        ask(retrieval, sources, vector)
    for candidate in retrieval.candidates.values():
        candidate.bm25_rank, candidate.bm25 = retrieval.words.get(candidate.row, (None, None))


def _add_vectors(retrieval: Retrieval, sources: Sources, generation: Generation) -> None:
    # Read while the query is still being embedded.
    by_words = _read_stored(sources, generation, list(retrieval.candidates))
    began = time.perf_counter()
    retrieval.vector = vector = _await_vector(retrieval, sources)
    retrieval.notes["embed_wait_ms"] = _elapsed_ms(began)
    ask(retrieval, sources, vector)  # while the embedding thread searches the index
    if vector is not None:
        began = time.perf_counter()
        _add_dense(retrieval, sources, generation, vector, by_words)
        retrieval.notes["vector_ms"] = _elapsed_ms(began)


def _find_nearest_when_embedded(retrieval: Retrieval, sources: Sources) -> None:
    """Have the embedding thread go on to the index as soon as it has the vector, beside the full-text search."""
    generation, embedding = retrieval.generation, retrieval.vector
    if generation is None or not isinstance(embedding, Future):
        return
    near: Future[Near] = Future()
    retrieval.near = near

    def search(done: "Future[Vector]") -> None:
        if done.cancelled() or done.exception():
            return  # who waits for the vector meets this there, and never asks for what is near it
        try:
            near.set_result(find_nearest(retrieval, sources, generation, done.result()))
        except Exception as error:
            near.set_exception(error)

    embedding.add_done_callback(search)


def _add_lexical(retrieval: Retrieval, sources: Sources) -> None:
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
        retrieval.ensure_candidate(row, "words")
    retrieval.notes["fulltext"] = len(found)


def _read_stored(sources: Sources, generation: Generation, rows: list[int]) -> Stored:
    with sources.store.reading() as connection:
        return generation.read_exact(connection, rows) if rows else _NONE


def _await_vector(retrieval: Retrieval, sources: Sources) -> Vector | None:
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


def _add_dense(
    retrieval: Retrieval, sources: Sources, generation: Generation, vector: Vector, by_words: Stored
) -> None:
    """Make candidates of the nearest rows, and give every candidate its exact cosine."""
    near = retrieval.near.result() if retrieval.near else find_nearest(retrieval, sources, generation, vector)
    retrieval.nearest = near.similarities
    for rank, row in enumerate(near.rows[: retrieval.depth], start=1):
        retrieval.ensure_candidate(row, "meaning").similarity_rank = rank
    similarities = {**near.similarities, **_cosines(by_words, vector)}
    with sources.store.reading() as connection:
        similarities |= find_nearer_alone(connection, generation, vector, similarities)
    for candidate in retrieval.candidates.values():
        candidate.similarity = similarities.get(candidate.row)
    retrieval.notes["vectors"] = len(near.rows)
    _note_pending(retrieval, generation)


def _note_pending(retrieval: Retrieval, generation: Generation) -> None:
    """Say so where texts that the search may return wait for their vector."""
    if count := generation.count_missing(retrieval.allowed):
        retrieval.degrade("pending_embeddings")
        retrieval.notes["pending_embeddings"] = count


def find_nearer_alone(
    connection: Connection, generation: Generation, vector: Vector, similarities: dict[int, float]
) -> dict[int, float]:
    """Return the cosines of own texts that are nearer to the query than these within their contexts, and of parts."""
    nearer = generation.parts.measure(connection, vector, similarities)
    if len(generation.own):
        found = generation.own.compute_similarities(vector, np.array(list(similarities), np.int64))
        likely = [row for row, similarity in found if similarity > similarities[row]]
        nearer |= _cosines(vectors.read_exact(connection, generation.model, likely), vector)  # short texts: no parts
    return {row: similarity for row, similarity in nearer.items() if similarity > similarities[row]}


def find_nearest(retrieval: Retrieval, sources: Sources, generation: Generation, vector: Vector) -> Near:
    """Return the rows nearest to the query that pass the filters.

    All get their exact cosine: that of the index is exact to about 0.001, and depends a little on all that is stored,
    also on what the caller may not see.
    """
    wanted = max(RESCORE, retrieval.depth + RESCORE // 4)
    found = generation.index.find_nearest(vector, wanted, retrieval.allowed)
    by_parts = generation.parts.find_nearest(vector, RESCORE, retrieval.allowed)
    near = _cosines(_read_stored(sources, generation, sorted({*found.rows.tolist(), *by_parts})), vector)
    if by_parts:
        with sources.store.reading() as connection:
            best = generation.parts.measure(connection, vector, near)
        near |= {row: max(cosine, near[row]) for row, cosine in best.items()}
    return Near(sorted(near, key=lambda row: (-round(near[row], 6), row)), near)


def _cosines(stored: Stored, vector: Vector) -> dict[int, float]:
    rows, matrix = stored
    return dict(zip(rows, (matrix @ vector).tolist(), strict=True)) if rows else {}


def _elapsed_ms(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 3)
