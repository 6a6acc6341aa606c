"""What a daemon counts, for tests that complete namespaces."""

from memoryd.client.protocol import Stats


def stats(by_namespace: dict[str, int]) -> Stats:
    """Return figures in which only the namespaces matter."""
    return Stats(
        memories=sum(by_namespace.values()),
        by_namespace=by_namespace,
        by_type={},
        by_source={},
        by_tier={},
        embedded=0,
        pending_embeddings=0,
        embedding_cache=0,
        operations=0,
        database_bytes=0,
        oldest_at=None,
        newest_at=None,
    )
