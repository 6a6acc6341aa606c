"""Statistics: what is stored, how the daemon is used and how it is at this moment, for people, `top` and metrics."""

from msgspec import Struct

from memoryd.client.protocol.base import Scoped, rpc
from memoryd.client.protocol.jobs import Job
from memoryd.client.protocol.service import ModelState, ThreadState
from memoryd.client.protocol.tiers import TierState

# The limits in seconds that `MethodStats.at_most` counts by: 2^-13 (122 µs), each twice the one before, to 16.
LATENCY_LIMITS_S = tuple(2.0**exponent for exponent in range(-13, 5))


class Recent(Struct, kw_only=True):
    """Calls of one method in the latest half minute to minute."""

    over_s: float
    """how long that is"""
    calls: int
    """how many"""
    p50_ms: float
    """median time in the daemon"""
    p95_ms: float
    """95th percentile"""
    p99_ms: float
    """99th percentile"""


class MethodStats(Struct, kw_only=True):
    """Calls of one method since the start: count, errors, latency in the daemon; percentiles are within 9 %.

    `at_most` has a count for each of the limits 2^-13, 2^-12 … 2^4 seconds.
    """

    calls: int
    """how many"""
    errors: int
    """how many failed"""
    p50_ms: float
    """median time in the daemon"""
    p95_ms: float
    """95th percentile"""
    p99_ms: float
    """99th percentile"""
    total_s: float = 0.0
    """seconds that all of them took together"""
    at_most: list[int] = []
    """how many took no longer than each limit"""
    recent: Recent | None = None
    """the latest past"""


class LlmUsage(Struct, kw_only=True):
    """How the language model was used since the daemon started; `tokens_*` as its server counts them."""

    model: str
    """its name"""
    requests: int = 0
    """sent to its server"""
    answers: int = 0
    """that could be used"""
    failures: int = 0
    """questions without one; the rules answered them"""
    retries: int = 0
    """requests that repeated one which failed"""
    repaired: int = 0
    """answers that were almost JSON"""
    refused: int = 0
    """questions not asked: the limit of the day, or after failures in a row"""
    tokens_in: int = 0
    """of the questions"""
    tokens_out: int = 0
    """of the answers"""
    last_error: str = ""
    """of the latest failure"""


class Connected(Struct, kw_only=True):
    """A client: its process as the kernel knows it, and what it calls."""

    pid: int
    """of the process that connected"""
    name: str
    """its program or script; empty when it cannot be known"""
    since: float
    """when it connected"""
    calls: int
    """calls since then"""
    under_way: int = 0
    """calls that are not answered yet, subscriptions included"""
    subscriptions: int = 0
    """how many of these follow events"""
    token: str = ""
    """name of the token that it presented"""


class Runtime(Struct, kw_only=True):
    """How the daemon is at this moment. `queues` counts what waits: calls by lane, writes, texts without a vector,
    turns by task of the extraction queue."""

    version: str
    """of the daemon"""
    pid: int
    """its process"""
    at: float
    """its time"""
    uptime_s: float
    """seconds since it started"""
    cpu_s: float
    """seconds of processor time that it used"""
    rss_bytes: int
    """resident memory"""
    index_bytes: int
    """of that the vector index"""
    wal_bytes: int
    """size of the write-ahead log, a part of `database_bytes`"""
    model: ModelState
    """the embedding model"""
    degraded: list[str] = []
    """what does not work now: `vector` while there is no model"""
    queues: dict[str, int] = {}
    """how many wait, by what for"""
    tiers: list[TierState] = []
    """what each tier holds"""
    jobs: list[Job] = []
    """the background jobs"""
    clients: list[Connected] = []
    """who is connected"""
    threads: list[ThreadState] = []
    """the daemon's threads"""


class Stats(Struct, kw_only=True):
    """What is stored and how the daemon was used since it started."""

    memories: int
    """how many are within reach"""
    by_namespace: dict[str, int]
    """how many per namespace"""
    by_type: dict[str, int]
    """how many per type"""
    by_source: dict[str, int]
    """how many per source"""
    by_tier: dict[str, int]
    """how many per tier"""
    embedded: int
    """how many of them have a vector"""
    pending_embeddings: int
    """how many wait for a vector"""
    embedding_cache: int
    """vectors on disk, of all namespaces"""
    operations: int
    """entries of the operation log"""
    database_bytes: int
    """size of the database and its log, of all namespaces"""
    oldest_at: float | None
    """creation of the oldest memory"""
    newest_at: float | None
    """creation of the newest memory"""
    methods: dict[str, MethodStats] = {}
    """per method since the daemon's start"""
    llm: LlmUsage | None = None
    """use of the language model; null: none is configured"""
    daemon: Runtime | None = None
    """how the daemon is now; null for a caller that a token binds"""
    turns: int = 0
    """turns in L0, which are no memories yet"""


@rpc("within", reads=True, page=True)
class GetStats(Scoped[Stats], kw_only=True, frozen=True, tag="stats"):
    """Counts of what is stored within reach, and how the daemon was used and is now."""
