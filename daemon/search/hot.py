"""Stage: the hot buffer. What was returned here lately and fits this query is a candidate in any case."""

import numpy as np

from memoryd.daemon.search.retrieval import Retrieval, Sources


def hot(retrieval: Retrieval, sources: Sources) -> None:
    """Add the rows of the caller's hot buffer whose cosine to the query reaches the model's floor of relevance."""
    rows = np.array(sources.hot.list_rows(retrieval.call.namespace), np.int64)
    rows = rows[retrieval.allowed.select(rows)]
    generation, vector = retrieval.generation, retrieval.vector
    if not len(rows) or generation is None or not isinstance(vector, np.ndarray):
        return
    floor = generation.embedder.floors.relevant
    near = [row for row, similarity in generation.index.compute_similarities(vector, rows) if similarity >= floor]
    with sources.store.reading() as connection:
        new, matrix = generation.read_exact(connection, [row for row in near if row not in retrieval.candidates])
    for row in near:
        retrieval.ensure_candidate(row, "hot")
    for row, similarity in zip(new, (matrix @ vector).tolist() if new else [], strict=True):
        candidate = retrieval.candidates[row]
        candidate.similarity = similarity
        candidate.bm25_rank, candidate.bm25 = retrieval.words.get(row, (None, None))
    retrieval.notes.update(hits=len(near), held=len(rows))
