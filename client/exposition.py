"""Metrics of the daemon in the text format of Prometheus, which `memctl metrics` prints.

Units are seconds and bytes, counters end with `_total`, latencies are a histogram. Labels have no names and texts of
users, such as namespaces, so that another user's collector may read the metrics.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from memoryd.client.protocol import LATENCY_LIMITS_S, MethodStats, Runtime, Stats, ThreadState

PREFIX = "memoryd_"
_STATES = ("missing", "fetching", "loading", "ready", "failed")
_JOB_STATES = ("waiting", "running", "queued", "paused", "quarantined", "off")
_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})

MetricLabels = Mapping[str, str]


class Family(NamedTuple):
    """One metric: its name without the prefix, its kind, its meaning, and its values with suffix and labels."""

    name: str
    kind: str
    about: str
    values: Sequence[tuple[str, MetricLabels, float]]


def format_stats(stats: Stats) -> str:
    """Return all metrics in the text format."""
    return "".join(_format_family(family) for family in _families(stats) if family.values)


def _format_family(family: Family) -> str:
    name = PREFIX + family.name
    about = family.about.replace("\\", r"\\").replace("\n", r"\n")
    lines = [f"# HELP {name} {about}", f"# TYPE {name} {family.kind}"]
    lines += [
        f"{name}{suffix}{_format_labels(labels)} {_format_number(value)}" for suffix, labels, value in family.values
    ]
    return "\n".join(lines) + "\n"


def _format_labels(labels: MetricLabels) -> str:
    inner = ",".join(f'{name}="{str(value).translate(_ESCAPES)}"' for name, value in labels.items())
    return f"{{{inner}}}" if inner else ""


def _format_number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**53 else repr(float(value))


def _families(stats: Stats) -> Iterator[Family]:
    yield from _stored_families(stats)
    yield from _call_families(stats.methods)
    if stats.llm:
        llm = stats.llm
        asked = [("", {"outcome": "answered"}, llm.answers), ("", {"outcome": "failed"}, llm.failures)]
        yield Family("llm_requests_total", "counter", "Questions to the language model.", asked)
        tokens = [("", {"direction": "in"}, llm.tokens_in), ("", {"direction": "out"}, llm.tokens_out)]
        yield Family("llm_tokens_total", "counter", "Tokens of the language model, as its server counts them.", tokens)
    if stats.daemon:
        yield from _process_families(stats.daemon)
        yield from _work_families(stats.daemon)
        yield from _thread_families(stats.daemon.threads)


def _stored_families(stats: Stats) -> Iterator[Family]:
    tiers = [("", {"tier": tier}, count) for tier, count in sorted(stats.by_tier.items())]
    yield Family("memories", "gauge", "Memories in the database by tier, without turns of L0.", tiers)
    yield _make_gauge("vectors", "Vectors in the index.", stats.embedded)
    yield _make_gauge("pending_embeddings", "Memories that wait for a vector.", stats.pending_embeddings)
    yield _make_gauge("operations", "Entries of the operation log.", stats.operations)
    yield _make_gauge("database_bytes", "Size of the database with its write-ahead log.", stats.database_bytes)


def _call_families(methods: Mapping[str, MethodStats]) -> Iterator[Family]:
    errors = [("", {"method": name}, method.errors) for name, method in methods.items()]
    yield Family("call_errors_total", "counter", "Calls that failed.", errors)
    buckets = [value for name, method in methods.items() for value in _histogram_values(name, method)]
    yield Family("call_duration_seconds", "histogram", "Time of calls in the daemon.", buckets)


def _histogram_values(name: str, method: MethodStats) -> Iterator[tuple[str, MetricLabels, float]]:
    for limit_s, count in zip(LATENCY_LIMITS_S, method.at_most, strict=False):
        yield "_bucket", {"method": name, "le": repr(limit_s)}, count
    yield "_bucket", {"method": name, "le": "+Inf"}, method.calls
    yield "_sum", {"method": name}, method.total_s
    yield "_count", {"method": name}, method.calls


def _process_families(daemon: Runtime) -> Iterator[Family]:
    yield Family("info", "gauge", "Version of the daemon.", [("", {"version": daemon.version}, 1)])
    yield _make_gauge(
        "start_time_seconds", "When the daemon started, Unix time.", round(daemon.at - daemon.uptime_s, 3)
    )
    yield Family("cpu_seconds_total", "counter", "Processor time of the daemon.", [("", {}, daemon.cpu_s)])
    yield _make_gauge("resident_memory_bytes", "Resident memory.", daemon.rss_bytes)
    yield _make_gauge("vector_index_bytes", "Resident memory of the vector index.", daemon.index_bytes)
    yield _make_gauge("write_ahead_log_bytes", "Size of the database's write-ahead log.", daemon.wal_bytes)
    yield _make_gauge("clients", "Connected clients.", len(daemon.clients))
    followed = sum(client.subscriptions for client in daemon.clients)
    yield _make_gauge("subscriptions", "Clients' subscriptions to events.", followed)
    states = [("", {"state": state}, float(daemon.model.state == state)) for state in _STATES]
    yield Family("model_state", "gauge", "State of the embedding model: 1 for the one it is in.", states)


def _work_families(daemon: Runtime) -> Iterator[Family]:
    queues = [("", {"queue": name}, count) for name, count in daemon.queues.items()]
    yield Family("queue_length", "gauge", "Items that wait or are being processed, by queue.", queues)
    held = [("", {"tier": tier.name}, tier.count) for tier in daemon.tiers]
    yield Family("tier_items", "gauge", "Turns, memories or chunks that a tier holds.", held)
    ram = [("", {"tier": tier.name}, tier.ram_bytes) for tier in daemon.tiers]
    yield Family("tier_memory_bytes", "gauge", "RAM that a tier uses.", ram)
    jobs = daemon.jobs
    states = [
        ("", {"job": job.name, "state": state}, float(job.state == state)) for job in jobs for state in _JOB_STATES
    ]
    yield Family("job_state", "gauge", "State of a background job: 1 for the one it is in.", states)
    failures = [("", {"job": job.name}, job.failures) for job in jobs]
    yield Family("job_failures", "gauge", "Consecutive failures of a job.", failures)
    ran = [("", {"job": job.name}, job.last_run_at) for job in jobs if job.last_run_at is not None]
    yield Family("job_last_run_timestamp_seconds", "gauge", "When a job last began, Unix time.", ran)


def _thread_families(threads: Sequence[ThreadState]) -> Iterator[Family]:
    restarts = [("", {"thread": thread.name}, thread.restarts) for thread in threads]
    yield Family("thread_restarts_total", "counter", "How often a thread failed and started again.", restarts)
    failing = [("", {"thread": thread.name}, thread.is_failing()) for thread in threads]
    yield Family("thread_failing", "gauge", "Whether a thread fails at present.", failing)


def _make_gauge(name: str, about: str, value: float) -> Family:
    return Family(name, "gauge", about, [("", {}, value)])
