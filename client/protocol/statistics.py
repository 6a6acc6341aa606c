"""What is stored, how the daemon is used and how it is at this moment: for people, for `top` and for metrics."""

from msgspec import Struct

from memoryd.client.protocol.base import Scoped
from memoryd.client.protocol.jobs import Job
from memoryd.client.protocol.service import ModelState
from memoryd.client.protocol.tiers import TierState

# The limits in seconds that `MethodStats.at_most` counts by: 2^-13 (122 µs), each twice the one before, to 16.
LATENCY_LIMITS_S = tuple(2.0**exponent for exponent in range(-13, 5))


class Recent(Struct, kw_only=True):
    """Calls of one method in the latest half minute to minute."""

    over_s: float
    calls: int
    p50_ms: float
    p95_ms: float
    p99_ms: float


class MethodStats(Struct, kw_only=True):
    """Calls of one method since the start: count, errors, latency in the daemon; percentiles are within 9 %.

    `at_most` has a count for each of the limits 2^-13, 2^-12 … 2^4 seconds.
    """

    calls: int
    errors: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    total_s: float = 0.0
    at_most: list[int] = []
    recent: Recent | None = None


class LlmUsage(Struct, kw_only=True):
    """How the language model was used since the daemon started; `tokens_*` as its server counts them."""

    model: str
    requests: int = 0
    answers: int = 0
    failures: int = 0
    retries: int = 0
    repaired: int = 0
    refused: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    last_error: str = ""


class Connected(Struct, kw_only=True):
    """A client: its process as the kernel knows it, and what it calls."""

    pid: int
    name: str
    since: float
    calls: int
    under_way: int = 0
    subscriptions: int = 0
    token: str = ""


class Runtime(Struct, kw_only=True):
    """How the daemon is at this moment. `queues` counts what waits: calls by lane, writes, texts without a vector,
    turns to be judged, turns of conversations that are still to be thought about."""

    version: str
    pid: int
    at: float
    uptime_s: float
    cpu_s: float
    rss_bytes: int
    index_bytes: int
    wal_bytes: int
    model: ModelState
    degraded: list[str] = []
    queues: dict[str, int] = {}
    tiers: list[TierState] = []
    jobs: list[Job] = []
    clients: list[Connected] = []


class Stats(Struct, kw_only=True):
    """What is stored and how the daemon was used since it started."""

    memories: int
    by_namespace: dict[str, int]
    by_type: dict[str, int]
    by_source: dict[str, int]
    by_tier: dict[str, int]
    embedded: int
    pending_embeddings: int
    embedding_cache: int
    operations: int
    database_bytes: int
    oldest_at: float | None
    newest_at: float | None
    methods: dict[str, MethodStats] = {}
    llm: LlmUsage | None = None
    daemon: Runtime | None = None


class GetStats(Scoped[Stats], kw_only=True, frozen=True, tag="stats"):
    """Counts of what is stored within reach, and how the daemon was used and is now."""
