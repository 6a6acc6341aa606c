"""Stage: the hot buffer. Rows that recent searches here returned and that fit this query always become candidates."""

import numpy as np
from numpy.typing import NDArray

from memoryd.daemon.embedding.generation import Generation
from memoryd.daemon.search.candidates import cosines
from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.store.vectors import Vector

_ROUNDING = 0.002  # error of the cosines of the index


def hot(retrieval: Retrieval, sources: Sources) -> None:
    """Add the rows of the caller's hot buffer whose cosine to the query reaches the model's floor of relevance."""
    rows = np.array(sources.hot.list_rows(retrieval.call.namespace), np.int64)
    rows = rows[retrieval.allowed.select(rows)]
    generation, vector = retrieval.generation, retrieval.vector
    if not len(rows) or generation is None or not isinstance(vector, np.ndarray):
        return
    similarities = dict(retrieval.nearest)
    floor = generation.embedder.floors.relevant
    if min(similarities.values(), default=1.0) >= floor - _ROUNDING:  # rows beyond the nearest may reach it, too
        similarities |= _read_others(sources, generation, vector, rows)
    near = [row for row in rows.tolist() if similarities.get(row, -1.0) >= floor]
    for row in near:
        is_new = row not in retrieval.candidates
        candidate = retrieval.ensure_candidate(row, "hot")
        if is_new:
            candidate.similarity = similarities[row]
            candidate.bm25_rank, candidate.bm25 = retrieval.words.get(row, (None, None))
    retrieval.notes.update(hits=len(near), held=len(rows))


def _read_others(sources: Sources, generation: Generation, vector: Vector, rows: NDArray[np.int64]) -> dict[int, float]:
    """Return the exact cosines of the rows that may reach the floor."""
    floor = generation.embedder.floors.relevant - _ROUNDING
    likely = [row for row, similarity in generation.index.compute_similarities(vector, rows) if similarity >= floor]
    with sources.store.reading() as connection:
        return cosines(generation.read_exact(connection, likely), vector)
