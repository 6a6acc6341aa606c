"""What a daemon says of itself, for tests in which little of it matters."""

from typing import Any

from memoryd.client.protocol import ModelState, Stats, Status


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


def healthy(**known: Any) -> Status:
    """Return the status of a daemon that is well, except for these fields."""
    fields: dict[str, Any] = {
        "version": "0.1.0",
        "protocol": 1,
        "pid": 1,
        "uptime_s": 1.0,
        "socket": "",
        "data_dir": "",
        "memories": 0,
        "pending_embeddings": 0,
        "model": ModelState(name="mini", state="ready", dimensions=384),
    }
    return Status(**fields | known)
