"""Stage: the hot buffer. Rows that recent searches here returned and that fit this query always become candidates."""

import numpy as np

from memoryd.daemon.search.candidates import cosines
from memoryd.daemon.search.retrieval import Retrieval, Sources

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
        measured = generation.index.compute_similarities(vector, rows)
        likely = [row for row, similarity in measured if similarity >= floor - _ROUNDING]
        with sources.store.reading() as connection:
            similarities |= cosines(generation.read_exact(connection, likely), vector)
    near = [row for row in rows.tolist() if similarities.get(row, -1.0) >= floor]
    for row in near:
        is_new = row not in retrieval.candidates
        candidate = retrieval.ensure_candidate(row, "hot")
        if is_new:
            candidate.similarity = similarities[row]
    retrieval.notes.update(hits=len(near), held=len(rows))
