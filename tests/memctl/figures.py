"""What a daemon counts, for tests in which few of its figures matter."""

from typing import Any

from memoryd.client.protocol import Stats


def counted(**known: Any) -> Stats:
    """Return these figures, nothing counted in the others."""
    nothing: dict[str, Any] = {
        "memories": 0,
        "by_namespace": {},
        "by_type": {},
        "by_source": {},
        "by_tier": {},
        "embedded": 0,
        "pending_embeddings": 0,
        "embedding_cache": 0,
        "operations": 0,
        "database_bytes": 0,
        "oldest_at": None,
        "newest_at": None,
    }
    return Stats(**nothing | known)
