"""Stage 1: the query's vector: given, that of a memory, or from the cache of query vectors.

Another one is left to the next stage, which embeds it beside its full-text search. One that may take longer than it can
be waited for is begun now in another thread: where the call has a deadline, or a server embeds.
"""

from functools import partial

import numpy as np

from memoryd.client.errors import Conflict, Invalid, ModelUnavailable
from memoryd.daemon.embedding.api import is_api
from memoryd.daemon.embedding.generation import Generation
from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.store import namespaces, turns, vectors
from memoryd.daemon.store.vectors import Vector


def embed(retrieval: Retrieval, sources: Sources) -> None:
    """Begin to embed the query; without a model the search continues with words alone."""
    call = retrieval.call
    if call.mode == "lexical":
        retrieval.notes["mode"] = call.mode
        return
    if call.options.vector or call.like:
        _use_given(retrieval, sources)
        return
    generation = sources.embedding.active
    if generation is None:
        retrieval.degrade("vector")
        retrieval.notes["model"] = "not ready"
        return
    queries = sources.embedding.queries
    _compare_by(retrieval, generation)
    cached = queries.find(generation, call.query)
    if not sources.caller.bound:  # who does not reach everything must not learn what others have asked
        retrieval.notes["cached"] = cached is not None
    if cached is None and (retrieval.deadline is not None or is_api(generation.name)):  # it may have to be given up
        retrieval.embedding = queries.run_beside(partial(queries.embed, generation, call.query))
    retrieval.vector = cached


def _use_given(retrieval: Retrieval, sources: Sources) -> None:
    """Search by the vector of the call or of the memory that it names; there is no other way to look for those."""
    call, generation = retrieval.call, sources.embedding.active
    if call.options.vector and call.like:
        raise Invalid("A search is by a vector or like a memory, not both.")
    if generation is None:
        raise ModelUnavailable("No embedding model is ready, so nothing can be compared with a vector.")
    _compare_by(retrieval, generation)
    given = call.options.vector
    retrieval.vector = _check(given, generation) if given else _find_like(retrieval, sources, generation)


def _compare_by(retrieval: Retrieval, generation: Generation) -> None:
    retrieval.generation, retrieval.scale = generation, generation.embedder.floors.rescale


def _check(numbers: list[float], generation: Generation) -> Vector:
    """Return a vector as the index has them, of length 1."""
    vector = np.array(numbers, np.float64)
    length = float(np.linalg.norm(vector))
    if len(numbers) != generation.index.dimensions:
        raise Invalid(
            f"The vector has {len(numbers)} dimensions; those of {generation.name} have {generation.index.dimensions}."
        )
    if not np.isfinite(length) or length == 0.0:
        raise Invalid("The vector is zero or holds a value that is not a finite number.")
    return (vector / length).astype(np.float32)


def _find_like(retrieval: Retrieval, sources: Sources, generation: Generation) -> Vector:
    """Return the vector of the memory that the hits are to be like, and leave that memory out."""
    prefix, within = retrieval.call.like, namespaces.condition(retrieval.chosen.reached)
    with sources.store.reading() as connection:
        row = turns.resolve_row(connection, prefix, within)
        key = row.text_hash or vectors.text_hash(row.content)
        vector = vectors.find(connection, generation.model, [key]).get(key)
    if vector is None:
        raise Conflict(f"Memory {row.id[:8]} has no vector yet; it waits in the queue.", {"id": row.id})
    retrieval.excluded = row.id
    if row.row > 0:
        retrieval.allowed = retrieval.allowed.exclude(row.row)
    return vector
