"""The daemon itself: health, counts, models, checks."""

from typing import Literal

from msgspec import Struct

from memoryd.client.protocol.base import Call, Done, Progress


class ModelState(Struct, kw_only=True):
    """The embedder: `state` is missing, fetching, loading, ready or failed; `reembedding` while models are swapped."""

    name: str
    state: Literal["missing", "fetching", "loading", "ready", "failed"]
    dimensions: int | None = None
    error: str = ""
    attempts: int = 0
    reembedding: Progress | None = None


class Status(Struct, kw_only=True):
    """Health of the daemon."""

    version: str
    protocol: int
    pid: int
    uptime_s: float
    socket: str
    data_dir: str
    memories: int
    pending_embeddings: int
    model: ModelState
    degraded: list[str] = []
    connections: int = 0
    queued: dict[str, int] = {}
    rss_bytes: int = 0
    index_bytes: int = 0
    database_bytes: int = 0
    database_limit_bytes: int = 0
    database_used_bytes: int = 0


class Verification(Struct, kw_only=True):
    """Result of a check of the store: `problems` is empty when all is well."""

    memories: int
    pending_embeddings: int
    problems: list[str] = []
    repaired: list[str] = []


class BackedUp(Struct, kw_only=True):
    """A copy that was made and checked: what it holds, and which older copies went for it."""

    path: str
    size_bytes: int
    memories: int
    operations: int
    took_ms: float
    removed: list[str] = []


class GetStatus(Call[Status], kw_only=True, frozen=True, tag="status"):
    """Health of the daemon: model, queue of embeddings, connections, memory use."""


class UseModel(Call[Done], kw_only=True, frozen=True):
    """Switch to another installed embedding model. Memories are re-embedded in the background, search goes on."""

    name: str


class Verify(Call[Verification], kw_only=True, frozen=True):
    """Check the database, and that full text, vectors, hashes, graph and the account of turns agree with the rows.

    With `repair` everything derived is built anew from the rows, while the daemon goes on.
    """

    repair: bool = False


class Backup(Call[BackedUp], kw_only=True, frozen=True):
    """Copy the whole database to one file while it is in use, and check it: it holds all that was acknowledged before.

    `path` is an absolute path of a new file or of a folder; without one the copy goes to `backups` beside the database,
    of which the latest `[jobs] backups` are kept.
    """

    path: str = ""


class Shutdown(Call[Done], kw_only=True, frozen=True):
    """Finish the calls under way, write everything down and end the daemon."""


class Restart(Call[Done], kw_only=True, frozen=True):
    """Finish the calls under way and start again from what is installed now, on the same socket: nobody is refused."""


class Welcome(Struct, kw_only=True):
    """Which daemon answers; `installed` is the version on disk where it runs from, which an upgrade made newer."""

    version: str
    protocol: int
    installed: str
    restarting: bool = False


class Hello(Call[Welcome], kw_only=True, frozen=True):
    """Say which version the client is of, ahead of its first call.

    Where a newer version was installed in the place that the daemon runs from, and the client is no older than that,
    the daemon restarts as `restart` does, so that an upgrade leaves no old code running. Nothing else depends on it.
    """

    version: str
