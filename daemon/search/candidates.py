"""Stage: find candidates by full text (BM25) and by vectors; both arms use the same mask.

Each candidate of one arm also gets its score in the other, so that fusion compares like with like: always the exact
cosine (of its text alone or within its context, whichever is nearer), and its BM25 if it is among the rows that full
text ranks (`_WORDS_DEPTH` times as many as become candidates).
"""

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from functools import partial

import numpy as np

from memoryd.client.errors import StorageFailed
from memoryd.daemon.arrays import lexical
from memoryd.daemon.arrays.vector_index import RESCORE
from memoryd.daemon.embedding.generation import Generation
from memoryd.daemon.search.hints import read_hints
from memoryd.daemon.search.retrieval import NearRows, Retrieval, Sources, elapsed_ms
from memoryd.daemon.store import fulltext, text_parts, vectors
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.store import Damaged, Interrupted
from memoryd.daemon.store.vectors import Vector

EMBED_LIMIT_S = 5.0  # for embedding a query without a deadline
_WORDS_DEPTH = 4
_LARGE = 100_000  # vectors; scanning more is worth a second thread
_MAX_CHECKED = 500  # memories that are checked for parts without a vector

RowVectors = tuple[list[int], Vector]  # rows and their vectors, shape (rows, dimensions)
_NONE: RowVectors = ([], np.zeros((0, 0), np.float32))

log = logging.getLogger(__name__)


def candidates(retrieval: Retrieval, sources: Sources) -> None:
    """Fill the candidates; a slow or failed arm is left out and named in `degraded`."""
    generation = retrieval.generation
    # Counted before the index is searched: a memory that gets its vector meanwhile may still be missed.
    waiting = _count_waiting(retrieval, sources, generation) if generation else 0
    if generation:  # always present, so that a caller cannot see whether the query's vector was cached
        retrieval.notes.update(embed_wait_ms=0.0, vector_ms=0.0)
    # Full text runs in another thread if embedding or scanning takes longer than handing the work over.
    is_slow = generation is not None and (retrieval.vector is None or len(generation.index) >= _LARGE)
    if generation and retrieval.embedding is None and is_slow:
        by_words = _search_both(retrieval, sources, generation)
    else:
        _search_vectors_when_embedded(retrieval, sources)
        by_words = _search_words(retrieval, sources, read_vectors=retrieval.near is not None)
        _await_vector(retrieval, sources)
    if generation and retrieval.vector is not None and by_words is not None:
        try:
            _add_dense(retrieval, sources, generation, retrieval.vector, by_words)
        except StorageFailed:  # the store has logged it
            retrieval.degrade("vector")
        if waiting:
            retrieval.degrade("pending_embeddings")
            retrieval.notes["pending_embeddings"] = waiting
    words = retrieval.words
    for candidate in retrieval.candidates.values():
        candidate.bm25_rank, candidate.bm25 = words.get(candidate.row, (None, None))


def _count_waiting(retrieval: Retrieval, sources: Sources, generation: Generation) -> int:
    """Return how many memories within the mask have no vector yet; if none, how many lack vectors of their parts."""
    if count := generation.count_missing(retrieval.allowed):
        return count
    touched = np.array(list(generation.parts.list_touched(_MAX_CHECKED)), np.int64)
    touched = touched[retrieval.allowed.select(touched)]
    if not len(touched):
        return 0
    with sources.store.reading() as connection:
        return len(text_parts.select_long(connection, touched.tolist()))


def _search_words(retrieval: Retrieval, sources: Sources, read_vectors: bool = True) -> RowVectors | None:
    """Add the candidates of full text and the hints of the query; return the candidates' vectors.

    While the query is being embedded there is time to read these vectors; otherwise (`read_vectors` is false) they
    are read together with those of the nearest rows. Return None if they cannot be read.
    """
    began = time.perf_counter()
    if retrieval.call.mode != "dense" and retrieval.call.query.strip():
        _add_lexical(retrieval, sources)
    retrieval.notes["fulltext_ms"] = elapsed_ms(began)
    retrieval.hints = read_hints(retrieval.call.query, datetime.fromtimestamp(retrieval.now, UTC))
    if retrieval.generation is None or not read_vectors:
        return _NONE
    try:
        return _read_stored(sources, retrieval.generation, list(retrieval.candidates))
    except StorageFailed:
        retrieval.degrade("vector")
        return None


def _search_both(retrieval: Retrieval, sources: Sources, generation: Generation) -> RowVectors | None:
    """Embed the query and search the index in this thread while another one searches full text."""
    queries = sources.embedding.queries
    words = queries.run_beside(partial(_search_words, retrieval, sources))
    began = time.perf_counter()
    if retrieval.vector is None:
        try:
            retrieval.vector = queries.embed(generation, retrieval.call.query)
        except Exception as error:
            _note_failure(retrieval, error)
        retrieval.notes["embed_wait_ms"] = elapsed_ms(began)
    if (vector := retrieval.vector) is not None:
        began, retrieval.near = time.perf_counter(), Future()
        _settle(retrieval.near, lambda: find_nearest(retrieval, sources, generation, vector))
        retrieval.notes["vector_ms"] = elapsed_ms(began)
    return _search_words(retrieval, sources) if words.cancel() else words.result()


def _search_vectors_when_embedded(retrieval: Retrieval, sources: Sources) -> None:
    """Have the embedding thread search the index as soon as it has the vector, in parallel to full text."""
    generation, embedding = retrieval.generation, retrieval.embedding
    if generation is None or embedding is None:
        return
    near = retrieval.near = Future()

    def search(done: "Future[Vector]") -> None:
        if done.cancelled() or done.exception():
            return  # `_await_vector` meets the same error, and `near` is not used then
        _settle(near, lambda: find_nearest(retrieval, sources, generation, done.result()))

    embedding.add_done_callback(search)


def _settle(near: "Future[NearRows]", find: Callable[[], NearRows]) -> None:
    try:
        near.set_result(find())
    except Exception as error:
        near.set_exception(error)


def _add_lexical(retrieval: Retrieval, sources: Sources) -> None:
    try:
        postings = sources.arrays.postings
        with sources.store.reading() as connection, fulltext.stopping_at(connection, retrieval.deadline):
            question = lexical.ask(connection, postings, retrieval.call.query, retrieval.within)
    except Interrupted:
        retrieval.degrade("fulltext")
        return
    except Damaged as error:
        log.error("full text is damaged: %s", error)
        retrieval.degrade("fulltext")
        return
    retrieval.notes["words"] = question.asked
    if question.left_out:
        retrieval.notes["too_common"] = question.left_out
    rank_words(retrieval, sources, question)
    for row in _list_by_words(retrieval):
        retrieval.ensure_candidate(row, "words")
    retrieval.notes["fulltext"] = len(retrieval.words)


def rank_words(retrieval: Retrieval, sources: Sources, question: lexical.TextQuery) -> None:
    """Rank the memories of this machine by the words of the query."""
    retrieval.question = question
    ranking = lexical.rank(sources.arrays.postings, question, retrieval.allowed, _WORDS_DEPTH * retrieval.depth)
    retrieval.words = {row: (rank, score) for rank, (row, score) in enumerate(ranking, start=1)}


def _read_stored(sources: Sources, generation: Generation, rows: list[int]) -> RowVectors:
    with sources.store.reading() as connection:
        return generation.read_exact(connection, rows) if rows else _NONE


def _await_vector(retrieval: Retrieval, sources: Sources) -> None:
    """Wait for the query's vector, no longer than the deadline allows."""
    embedding = retrieval.embedding
    if embedding is None:
        return
    remaining_s, began = retrieval.remaining_s(), time.perf_counter()
    try:
        retrieval.vector = embedding.result(EMBED_LIMIT_S if remaining_s is None else remaining_s)
    except Exception as error:
        embedding.cancel()  # has an effect only if it has not started
        _note_failure(retrieval, error)
    retrieval.notes["embed_wait_ms"] = elapsed_ms(began)


def _note_failure(retrieval: Retrieval, error: Exception) -> None:
    retrieval.degrade("vector")
    if isinstance(error, TimeoutError):
        retrieval.notes["embed"] = "too slow"
    else:
        log.warning("embedding the query failed: %s", error)
        retrieval.notes["embed"] = str(error)


def _add_dense(
    retrieval: Retrieval, sources: Sources, generation: Generation, vector: Vector, by_words: RowVectors
) -> None:
    """Add the nearest rows as candidates, and set the exact cosine of every candidate."""
    began = time.perf_counter()
    begun = retrieval.near
    near = begun.result() if begun else find_nearest(retrieval, sources, generation, vector, _list_by_words(retrieval))
    retrieval.nearest = near.similarities
    for rank, row in enumerate(near.rows[: retrieval.depth], start=1):
        retrieval.ensure_candidate(row, "meaning").similarity_rank = rank
    similarities = {**near.measured, **cosines(by_words, vector)}
    with sources.store.reading() as connection:
        similarities |= find_nearer_alone(connection, generation, vector, similarities)
    for candidate in retrieval.candidates.values():
        candidate.similarity = similarities.get(candidate.row)
    retrieval.notes["vectors"] = len(near.rows)
    retrieval.notes["vector_ms"] = round(retrieval.notes["vector_ms"] + elapsed_ms(began), 3)


def find_nearer_alone(
    connection: Connection, generation: Generation, vector: Vector, similarities: dict[int, float]
) -> dict[int, float]:
    """Return by row the cosine of a text without context, or of one of its parts, if it is above the given one."""
    nearer = generation.parts.measure(connection, vector, similarities)
    if len(generation.own):
        cosines_alone = generation.own.compute_similarities(vector, np.array(list(similarities), np.int64))
        likely = [row for row, similarity in cosines_alone if similarity > similarities[row]]
        nearer |= cosines(vectors.read_exact(connection, generation.model, likely), vector)  # short texts: no parts
    return {row: similarity for row, similarity in nearer.items() if similarity > similarities[row]}


def _list_by_words(retrieval: Retrieval) -> list[int]:
    """Return the rows of the candidates that full text found."""
    return list(retrieval.words)[: retrieval.depth]


def find_nearest(
    retrieval: Retrieval, sources: Sources, generation: Generation, vector: Vector, others: Sequence[int] = ()
) -> NearRows:
    """Return the rows within the mask that are nearest to the query, and the cosines of these and of `others`.

    Cosines are computed from the stored vectors: the index is exact to about 0.001 only, and its values depend
    slightly on all stored memories, including those that the caller may not see.
    """
    depth = max(RESCORE, retrieval.depth + RESCORE // 4)
    nearest = generation.index.find_nearest(vector, depth, retrieval.allowed)
    by_parts = generation.parts.find_nearest(vector, RESCORE, retrieval.allowed)
    nearest_rows = {*nearest.rows.tolist(), *by_parts}
    measured = cosines(_read_stored(sources, generation, sorted(nearest_rows.union(others))), vector)
    near = {row: measured[row] for row in nearest_rows & measured.keys()}
    if by_parts:
        with sources.store.reading() as connection:
            best = generation.parts.measure(connection, vector, near)
        near |= {row: max(cosine, near[row]) for row, cosine in best.items()}
    rows = sorted(near)
    rows.sort(key=lambda row: round(near[row], 6), reverse=True)
    return NearRows(rows, near, measured | near)


def cosines(row_vectors: RowVectors, vector: Vector) -> dict[int, float]:
    """Return the cosines of rows with a vector; each is independent of the other rows, bit by bit."""
    rows, matrix = row_vectors
    return dict(zip(rows, np.vecdot(matrix, vector).tolist(), strict=True)) if rows else {}
