"""Stage 1: the query's vector, from the cache of query vectors or begun now.

The embedding runs beside the full-text search of the next stage, which waits for it only afterwards.
"""

from concurrent.futures import Future

from memoryd.daemon.search.retrieval import Retrieval, Sources


def embed(retrieval: Retrieval, sources: Sources) -> None:
    """Begin to embed the query; without a model the search continues with words alone."""
    begun = sources.embedding.query_vector(retrieval.call.query)
    if begun is None:
        retrieval.degrade("vector")
        retrieval.notes["model"] = "not ready"
        return
    retrieval.generation, retrieval.vector = begun
    if not sources.caller.bound:  # who does not reach everything must not learn what others have asked
        retrieval.notes["cached"] = not isinstance(begun[1], Future)
