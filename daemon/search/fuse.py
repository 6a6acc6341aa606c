"""Stage 3: one score of cosine and BM25.

`weighted`: w x max(0, cosine) + (1 - w) x BM25 / best BM25. `rrf`: the sum of 1 / (60 + rank) over both arms (Cormack,
Clarke, Buettcher 2009), scaled so that first in both arms gives 1. Both lie between 0 and 1.
"""

from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.search.traces import Candidate

RRF_K = 60


def fuse(retrieval: Retrieval, sources: Sources) -> None:
    """Score all candidates and rank them, newer rows first among equals."""
    method = retrieval.call.fusion or sources.config.fusion
    found = retrieval.alive()
    if method == "rrf":
        for candidate in found:
            candidate.score = rrf(candidate.similarity_rank, candidate.bm25_rank)
    else:
        weight = sources.config.vector_weight if retrieval.call.vector_weight is None else retrieval.call.vector_weight
        best = max((candidate.bm25 or 0.0 for candidate in found), default=0.0)
        if retrieval.vector is None:
            weight = 0.0
        for candidate in found:
            candidate.score = weighted(candidate.similarity, candidate.bm25, best, weight)
        retrieval.notes["vector_weight"] = weight
    retrieval.notes["fusion"] = method
    retrieval.ranked = sorted(found, key=_order)


def weighted(similarity: float | None, bm25: float | None, best_bm25: float, weight: float) -> float:
    """Return the weighted score; a missing part counts 0."""
    words = (bm25 or 0.0) / best_bm25 if best_bm25 > 0 else 0.0
    return weight * max(0.0, similarity or 0.0) + (1 - weight) * words


def rrf(*ranks: int | None) -> float:
    """Return the reciprocal rank fusion of ranks from 1, scaled to at most 1."""
    return sum(1 / (RRF_K + rank) for rank in ranks if rank is not None) * (RRF_K + 1) / len(ranks)


def _order(candidate: Candidate) -> tuple[float, int]:
    return -candidate.score, -candidate.row
