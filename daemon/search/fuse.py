"""Stage: combine cosine and BM25 into one score.

`weighted`: w x max(0, cosine) + (1 - w) x BM25, both between 0 and 1. The cosine is put on one scale for all models
(`Floors.rescale`): in some, unrelated texts have a cosine of 0.8, and words would decide alone. The best BM25 counts as
1, unless it is less than half of the total weight of the query's words: then words say little, and the cosine decides.
`rrf`: the sum of 1 / (60 + rank) over both arms (Cormack, Clarke, Buettcher 2009), scaled so that the best is 1.
`similarity`: the cosine alone.
"""

from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.search.traces import Candidate

RRF_K = 60
MIN_FULL = 0.5  # of the total weight of the query's words


def fuse(retrieval: Retrieval, sources: Sources) -> None:
    """Score all candidates and rank them, newer rows first among equals."""
    candidates = retrieval.list_alive()
    profile = retrieval.profile
    method = retrieval.call.options.fusion or profile.fusion or "weighted"
    if retrieval.call.mode == "dense" or not retrieval.call.query.strip():
        method = "similarity"
    if retrieval.vector is None and method == "similarity":
        method = "weighted"
    best = max((candidate.bm25 or 0.0 for candidate in candidates), default=0.0)
    retrieval.full_bm25 = max(best, MIN_FULL * retrieval.question.weight) if retrieval.question else best
    retrieval.weight = _weight(retrieval, sources, method)
    retrieval.method = method
    for candidate in candidates:
        if method == "rrf":
            last = retrieval.depth if profile.missing_is_last else None
            candidate.score = rrf(candidate.similarity_rank, candidate.bm25_rank, last=last)
        else:
            candidate.score = score_of(candidate, retrieval)
    if method == "weighted":
        retrieval.notes["vector_weight"] = retrieval.weight
    retrieval.notes["fusion"] = method
    retrieval.ranked = sorted(candidates, key=order)


def _weight(retrieval: Retrieval, sources: Sources, method: str) -> float:
    if retrieval.vector is None:
        return 0.0
    if method == "similarity":
        return 1.0
    weights = (retrieval.call.options.vector_weight, retrieval.profile.vector_weight, sources.config.vector_weight)
    return next(weight for weight in weights if weight is not None)


def score_of(candidate: Candidate, retrieval: Retrieval) -> float:
    """Return the weighted score of a candidate, on the scale of this retrieval."""
    weight = retrieval.weight
    meaning = weight * retrieval.rescale(candidate.similarity)
    words = (1 - weight) * retrieval.profile.words(candidate.bm25 or 0.0, retrieval.full_bm25)
    candidate.parts = {"meaning": meaning, "words": words}
    return meaning + words


def rrf(*ranks: int | None, last: int | None = None) -> float:
    """Return the reciprocal rank fusion of ranks from 1, scaled to at most 1.

    A missing rank adds nothing, or counts as `last` + 1 if that is given.
    """
    missing = None if last is None else last + 1
    places = [rank or missing for rank in ranks]
    return sum(1 / (RRF_K + rank) for rank in places if rank is not None) * (RRF_K + 1) / len(ranks)


def order(candidate: Candidate) -> tuple[float, int]:
    """Return the sort key of a ranking: best score first, then the newer row."""
    return -candidate.score, -candidate.row
