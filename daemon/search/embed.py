"""Stage: the query's vector, if it is given, belongs to a memory, or is in the cache of query vectors.

Otherwise the next stage embeds the query while it searches full text. If that may take too long (the call has a
deadline, or the model is behind an API) it is started now in another thread, so that it can be given up.
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
    """Find or start to make the query's vector; without a model the search continues with words alone."""
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
    if not sources.caller.bound:  # a caller with a token must not learn what others have searched for
        retrieval.notes["cached"] = cached is not None
    if cached is None and (retrieval.deadline is not None or is_api(generation.name)):
        retrieval.embedding = queries.run_beside(partial(queries.embed, generation, call.query))
    retrieval.vector = cached


def _use_given(retrieval: Retrieval, sources: Sources) -> None:
    """Use the vector of the call or of the memory that it names; fail without a model, since words cannot help."""
    call, generation = retrieval.call, sources.embedding.active
    if call.options.vector and call.like:
        raise Invalid("Give a vector or the id of a memory, not both.")
    if generation is None:
        raise ModelUnavailable("No embedding model is ready, so nothing can be compared with a vector.")
    _compare_by(retrieval, generation)
    given = call.options.vector
    retrieval.vector = _check(given, generation) if given else _find_like(retrieval, sources, generation)


def _compare_by(retrieval: Retrieval, generation: Generation) -> None:
    retrieval.generation, retrieval.scale = generation, generation.embedder.floors.rescale


def _check(numbers: list[float], generation: Generation) -> Vector:
    """Return the given numbers as a unit vector; raise `Invalid` if the index cannot compare it."""
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
    """Return the vector of the memory named by `like`, and exclude that memory from the hits."""
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
