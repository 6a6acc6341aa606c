"""Stage: the floors of the call on score and similarity. There are none by default, so a search always has hits.

In a search by words alone, candidates without any word of the query are dropped.
"""

from memoryd.daemon.search.retrieval import Retrieval, Sources


def cut(retrieval: Retrieval, sources: Sources) -> None:
    """Drop candidates below `min_score` or `min_similarity` of the call or, if not given, of its profile."""
    del sources
    options, profile, generation = retrieval.call.options, retrieval.profile, retrieval.generation
    min_score = profile.min_score if options.min_score is None else options.min_score
    min_similarity = options.min_similarity
    if min_similarity is None and profile.floor and generation is not None and retrieval.vector is not None:
        min_similarity = generation.embedder.floors.relevant
    needs_words = retrieval.method == "weighted" and retrieval.weight == 0.0
    for candidate in retrieval.ranked:
        if needs_words and not candidate.bm25:
            candidate.lost = "words alone count, and it holds none of the query"
        elif candidate.score < min_score:
            candidate.lost = f"score {candidate.score:.3f} is below min_score {min_score:g}"
        elif min_similarity is not None and (candidate.similarity is None or candidate.similarity < min_similarity):
            cosine = "unknown" if candidate.similarity is None else f"{candidate.similarity:.3f}"
            candidate.lost = f"similarity {cosine} is below min_similarity {min_similarity:g}"
    retrieval.ranked = [candidate for candidate in retrieval.ranked if not candidate.lost]
