"""Statistics: counts of what is stored, use of the daemon, and its present state, for people, `top` and metrics."""

from msgspec import Struct

from memoryd.client.protocol.base import Scoped, rpc
from memoryd.client.protocol.jobs import Job
from memoryd.client.protocol.service import ModelState, ThreadState
from memoryd.client.protocol.tiers import TierState

# Upper limits of the buckets of `MethodStats.at_most`: from 2^-13 s (122 µs), each twice the one before, to 16 s.
LATENCY_LIMITS_S = tuple(2.0**exponent for exponent in range(-13, 5))


class Recent(Struct, kw_only=True):
    """Calls of one method in the last 30 to 60 seconds."""

    over_s: float
    """length of this time"""
    calls: int
    """how many"""
    p50_ms: float
    """median time in the daemon"""
    p95_ms: float
    """95th percentile"""
    p99_ms: float
    """99th percentile"""


class MethodStats(Struct, kw_only=True):
    """Calls of one method since the daemon started; percentiles are exact within 9 %."""

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
    """seconds that all calls took together"""
    at_most: list[int] = []
    """how many calls took at most 2^-13, 2^-12 … 2^4 seconds"""
    recent: Recent | None = None
    """the calls of the last 30 to 60 seconds"""


class LlmUsage(Struct, kw_only=True):
    """Use of the language model since the daemon started; its server counts the tokens."""

    model: str
    """its name"""
    requests: int = 0
    """requests sent to its server"""
    answers: int = 0
    """answers that could be used"""
    failures: int = 0
    """questions without a usable answer; rules answered them"""
    retries: int = 0
    """requests that repeated a failed one"""
    repaired: int = 0
    """answers that were almost JSON and were repaired"""
    refused: int = 0
    """questions that were not asked, because of the daily limit or after several failures in a row"""
    tokens_in: int = 0
    """tokens of the questions"""
    tokens_out: int = 0
    """tokens of the answers"""
    last_error: str = ""
    """the latest error"""


class Connected(Struct, kw_only=True):
    """A connected client: its process as the kernel knows it, and its calls."""

    pid: int
    """id of the process"""
    name: str
    """its program or script; empty: unknown"""
    since: float
    """when it connected"""
    calls: int
    """calls since then"""
    under_way: int = 0
    """calls that are not answered yet, including subscriptions"""
    subscriptions: int = 0
    """how many of these are subscriptions"""
    token: str = ""
    """name of the token that it presented"""


class Runtime(Struct, kw_only=True):
    """The present state of the daemon."""

    version: str
    """its version"""
    pid: int
    """its process id"""
    at: float
    """its time"""
    uptime_s: float
    """seconds since it started"""
    cpu_s: float
    """seconds of processor time that it used"""
    rss_bytes: int
    """resident memory"""
    index_bytes: int
    """the vector index's part of it"""
    wal_bytes: int
    """size of the write-ahead log, a part of `database_bytes`"""
    model: ModelState
    """the embedding model"""
    degraded: list[str] = []
    """what does not work now: `vector` while there is no model"""
    queues: dict[str, int] = {}
    """how much waits: calls by lane, writes, texts without a vector, turns by task of the extraction queue"""
    tiers: list[TierState] = []
    """the tiers and their contents"""
    jobs: list[Job] = []
    """the background jobs"""
    clients: list[Connected] = []
    """the connected clients"""
    threads: list[ThreadState] = []
    """the daemon's threads"""


class Stats(Struct, kw_only=True):
    """Counts of what is stored, and use of the daemon since it started."""

    memories: int
    """memories within reach"""
    by_namespace: dict[str, int]
    """memories per namespace"""
    by_type: dict[str, int]
    """memories per type"""
    by_source: dict[str, int]
    """memories per source"""
    by_tier: dict[str, int]
    """memories per tier"""
    embedded: int
    """memories that have a vector"""
    pending_embeddings: int
    """memories that wait for a vector"""
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
    """calls per method since the daemon started"""
    llm: LlmUsage | None = None
    """use of the language model; null: none is configured"""
    daemon: Runtime | None = None
    """present state of the daemon; null for a caller with a token"""
    turns: int = 0
    """turns in L0, which are no memories yet"""


@rpc("within", reads=True, page=True)
class GetStats(Scoped[Stats], kw_only=True, frozen=True, tag="stats"):
    """Return counts of what is stored within reach, and use and present state of the daemon."""
